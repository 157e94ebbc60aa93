//! The relay: what one player says, every other player of its game hears.

use crate::engine::{Event, Game, Player, Refusal, Replies, Time, Verdict};

/// Passes Data, Chat and Custom events on to every other player of the sender's game, with the
/// sender's number in front. Grants a Start once two players are there.
#[derive(Debug, Default)]
pub struct Relay {
    /// The players of each game.
    games: Vec<Vec<Player>>,
}

impl Relay {
    /// A relay nobody is in.
    pub fn new() -> Self {
        Self::default()
    }

    fn joined(&mut self, player: Player) {
        let game = player.game() as usize;
        if self.games.len() <= game {
            self.games.resize_with(game + 1, Vec::new);
        }
        self.games[game].push(player);
    }

    fn left(&mut self, player: Player) {
        if let Some(players) = self.games.get_mut(player.game() as usize) {
            players.retain(|there| *there != player);
        }
    }

    /// The players of the game that `player` is in.
    fn players(&self, player: Player) -> &[Player] {
        self.games
            .get(player.game() as usize)
            .map_or(&[], Vec::as_slice)
    }

    /// Does something to every other player of the game. What one of them cannot be sent is its
    /// own affair: the service counts it.
    fn others(&self, player: Player, mut pass: impl FnMut(Player) -> Result<(), Refusal>) {
        for other in self
            .players(player)
            .iter()
            .filter(|other| **other != player)
        {
            let _ = pass(*other);
        }
    }
}

impl Game for Relay {
    fn event(&mut self, _: Time, event: Event<'_>, out: &mut dyn Replies) {
        match event {
            Event::Connecting { ticket, .. } => {
                // It fails only for somebody who is gone already.
                let _ = out.answer(ticket, Verdict::Admit);
            }
            Event::Joined { player, .. } => self.joined(player),
            Event::Left { player, .. } => self.left(player),
            Event::Data { player, bytes } => {
                self.others(player, |other| {
                    out.send(other, &[&[player.number()], bytes])
                });
            }
            Event::Chat { player, text } => {
                self.others(player, |other| out.chat(other, player.number(), text));
            }
            Event::Custom { player, body } => {
                self.others(player, |other| {
                    out.custom(other, &[&[player.number()], body])
                });
            }
            // Not said in the relay's protocol.
            Event::Login { .. }
            | Event::Register { .. }
            | Event::Key { .. }
            | Event::Refresh { .. } => {}
            Event::Start { player } => {
                if self.players(player).len() >= 2 {
                    out.start(player.game());
                }
            }
        }
    }
}
