//! A game with accounts: who may log in is answered here, everything else is the game's.

use std::io;
use std::sync::{Arc, OnceLock};

use super::{Accounts, Answer, Question, Store};
use crate::engine::{Event, Game, Replies, Ticket, Time, Verdict};
use crate::guard::limits::Limits;
use crate::server::Remote;
use crate::server::dice::Dice;

/// A game in front of which stand [`Accounts`]: they answer Login and Register, from threads of
/// their own, and the game hears of everything else.
#[derive(Debug)]
pub struct Gate<G> {
    game: G,
    accounts: Accounts,
    dice: Dice,
}

/// Lets the answers out of a [`Gate`], once there is a server for them.
#[derive(Debug)]
pub struct Opener {
    remote: Arc<OnceLock<Remote>>,
}

impl<G: Game> Gate<G> {
    /// Puts accounts in front of `game`. Until the other part is told of the server
    /// ([`Opener::open`]) nobody is answered.
    ///
    /// # Errors
    /// The system's, if it has no thread for the hashing.
    pub fn new(game: G, store: Store, limits: &Limits) -> io::Result<(Self, Opener)> {
        let remote = Arc::new(OnceLock::<Remote>::new());
        let told = Arc::clone(&remote);
        let tell = move |ticket: Ticket, answer: Answer| {
            if let Some(remote) = told.get() {
                // The server may have ended meanwhile.
                let _ = remote.answer(ticket, verdict(answer));
            }
        };
        let accounts = Accounts::new(store, limits, tell)?;
        let dice = Dice::new();
        Ok((
            Self {
                game,
                accounts,
                dice,
            },
            Opener { remote },
        ))
    }

    fn ask(&mut self, now: Time, ticket: Ticket, question: Question<'_>, out: &mut dyn Replies) {
        if let Some(answer) = self.accounts.ask(now, &mut self.dice, ticket, question) {
            // Who asked is there still: the question has only just come.
            let _ = out.answer(ticket, verdict(answer));
        }
    }
}

impl Opener {
    /// The answers go to the server behind `remote` from now on.
    pub fn open(self, remote: Remote) {
        // Nobody else sets it, and this can be called once.
        let _ = self.remote.set(remote);
    }
}

impl<G: Game> Game for Gate<G> {
    fn event(&mut self, now: Time, event: Event<'_>, out: &mut dyn Replies) {
        match event {
            Event::Login {
                ticket,
                user,
                password,
                ip,
            } => {
                let password = password.reveal();
                self.ask(now, ticket, Question::Login { user, password, ip }, out);
            }
            Event::Register {
                ticket,
                user,
                password,
                ..
            } => {
                let password = password.reveal();
                self.ask(now, ticket, Question::Register { user, password }, out);
            }
            event => self.game.event(now, event, out),
        }
    }

    fn wake(&self) -> Option<Time> {
        self.game.wake()
    }

    fn tick(&mut self, now: Time, out: &mut dyn Replies) {
        self.game.tick(now, out);
    }
}

fn verdict(answer: Answer) -> Verdict {
    match answer {
        Answer::LoggedIn | Answer::Registered => Verdict::Admit,
        Answer::Wrong | Answer::Taken | Answer::BadName | Answer::BadPassword => Verdict::Refuse,
        Answer::Busy => Verdict::Busy,
    }
}
