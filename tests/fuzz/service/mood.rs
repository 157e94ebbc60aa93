//! A relay that admits whom it likes, when it likes, and keeps account of who is there.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use anteroom::game::Relay;
use anteroom::{Event, Game, Player, Replies, Ticket, Time, Verdict};

/// A hand on the game.
#[derive(Clone, Default)]
pub struct Mood(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    answer: Answer,
    /// Questions not answered yet.
    tickets: VecDeque<Ticket>,
    /// Who has joined and not left.
    players: Vec<Player>,
}

#[derive(Clone, Copy, Default)]
enum Answer {
    #[default]
    Admit,
    Refuse,
    Later,
}

impl Mood {
    /// The game to be played.
    pub fn game(&self) -> Box<dyn Game + Send> {
        Box::new(Moody {
            relay: Relay::new(),
            mood: self.clone(),
        })
    }

    /// How it answers from now on.
    pub fn change(&self, to: u8) {
        self.state().answer = match to % 3 {
            0 => Answer::Admit,
            1 => Answer::Refuse,
            _ => Answer::Later,
        };
    }

    /// The question that has waited longest.
    pub fn ticket(&self) -> Option<Ticket> {
        self.state().tickets.pop_front()
    }

    /// One of those who are there.
    pub fn player(&self, index: usize) -> Option<Player> {
        let state = self.state();
        let count = state.players.len().max(1);
        state.players.get(index % count).copied()
    }

    /// Whether anybody is there.
    pub fn is_empty(&self) -> bool {
        self.state().players.is_empty()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("nothing fails with it locked")
    }
}

struct Moody {
    relay: Relay,
    mood: Mood,
}

impl Game for Moody {
    fn event(&mut self, now: Time, event: Event<'_>, out: &mut dyn Replies) {
        match event {
            Event::Connecting { ticket, .. } => {
                let answer = self.mood.state().answer;
                match answer {
                    Answer::Admit => {}
                    Answer::Refuse => {
                        let answered = out.answer(ticket, Verdict::Refuse);
                        return assert!(answered.is_ok(), "asked and gone at once");
                    }
                    Answer::Later => return self.mood.state().tickets.push_back(ticket),
                }
            }
            Event::Joined { player, .. } => {
                let players = &mut self.mood.state().players;
                let seat = |it: &Player| (it.game(), it.number());
                let has_seat = |it: &Player| seat(it) == seat(&player);
                assert!(!players.iter().any(has_seat), "its seat is taken");
                players.push(player);
            }
            Event::Left { player, .. } => {
                let players = &mut self.mood.state().players;
                let at = players.iter().position(|there| *there == player);
                players.remove(at.expect("left and had not joined"));
            }
            Event::Data { player, .. }
            | Event::Chat { player, .. }
            | Event::Custom { player, .. }
            | Event::Start { player } => {
                let is_there = self.mood.state().players.contains(&player);
                assert!(is_there, "said something and is not there");
            }
            other => panic!("not said in this protocol: {other:?}"),
        }
        self.relay.event(now, event, out);
    }
}
