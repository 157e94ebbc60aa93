//! What is printed: who is there, and what they say.

use std::fmt::Write as _;

use anteroom::driver::{End, Notice, Reason};
use anteroom::guard::escape::escaped;

use super::write;

/// Players have numbers below this.
const PLAYERS: usize = 4;

/// The lines to be printed, and the names that stand in them.
pub struct Screen {
    own: String,
    names: [Option<String>; PLAYERS],
    player: u8,
    text: String,
}

impl Screen {
    /// The screen of a player of this name.
    pub fn new(own: &str) -> Self {
        Self {
            own: escaped(own).to_string(),
            names: Default::default(),
            player: 0,
            text: String::new(),
        }
    }

    /// Prints a line that nobody said.
    pub fn tell(&mut self, what: &str) {
        self.line(format_args!("* {what}"));
    }

    /// Prints what a notice says.
    pub fn notice(&mut self, notice: Notice<'_>) {
        match notice {
            // Nobody is known yet, or of a session that was lost any more.
            Notice::Accepted { player } => {
                self.player = player;
                self.names = Default::default();
            }
            Notice::Joined => {
                let (own, player) = (self.own.clone(), self.player);
                self.line(format_args!(
                    "* you are {own}, player {player}; /start starts the game, /quit leaves"
                ));
            }
            Notice::PlayerJoined { player, name } => {
                let name = escaped(name).to_string();
                self.line(format_args!("* {name} is here, player {player}"));
                if let Some(slot) = self.names.get_mut(usize::from(player)) {
                    *slot = Some(name);
                }
            }
            Notice::PlayerLeft { player, reason } => {
                let name = self.name(player);
                match reason {
                    Reason::Left => self.line(format_args!("* {name} left")),
                    reason => self.line(format_args!("* {name} left: {reason}")),
                }
                if let Some(slot) = self.names.get_mut(usize::from(player)) {
                    *slot = None;
                }
            }
            Notice::GameStarted => self.tell("the game has started"),
            Notice::Chat { player, text } => {
                let name = self.name(player);
                self.line(format_args!("{name}: {}", escaped(text)));
            }
            // Every other end is this side's own, or a failure, which the program tells.
            Notice::Ended(end @ End::Logout(Reason::Shutdown)) => self.tell(&end.to_string()),
            Notice::Ended(_) | Notice::Custom { .. } | Notice::Data { .. } => {}
        }
    }

    /// Writes what there is to standard output; false if nobody reads it any more.
    pub fn flush(&mut self) -> bool {
        let is_written = self.text.is_empty() || write(&self.text);
        self.text.clear();
        is_written
    }

    fn name(&self, player: u8) -> String {
        let known = self.names.get(usize::from(player)).cloned().flatten();
        known.unwrap_or_else(|| format!("player {player}"))
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_talks_and_goes_is_told_and_nothing_foreign_is_printed_raw() {
        let mut screen = Screen::new("R9");
        for notice in [
            Notice::Accepted { player: 2 },
            Notice::Joined,
            Notice::PlayerJoined {
                player: 1,
                name: "Lu\u{202E}ke",
            },
            Notice::Chat {
                player: 1,
                text: "\u{9B}2J hi",
            },
            Notice::Data { bytes: b"\x1b" },
            Notice::GameStarted,
            Notice::PlayerLeft {
                player: 1,
                reason: Reason::TimedOut,
            },
            Notice::Chat {
                player: 1,
                text: "who?",
            },
            Notice::Chat {
                player: 255,
                text: "the game",
            },
            Notice::PlayerLeft {
                player: 3,
                reason: Reason::Left,
            },
            Notice::Ended(End::Left),
            Notice::Ended(End::Logout(Reason::Shutdown)),
        ] {
            screen.notice(notice);
        }
        let lines: Vec<&str> = screen.text.lines().collect();
        assert_eq!(
            lines,
            [
                "* you are R9, player 2; /start starts the game, /quit leaves",
                r"* Lu\u{202e}ke is here, player 1",
                r"Lu\u{202e}ke: \u{9b}2J hi",
                "* the game has started",
                r"* Lu\u{202e}ke left: timed out",
                "player 1: who?",
                "player 255: the game",
                "* player 3 left",
                "* the server is stopping",
            ]
        );
    }
}
