//! The games a server hosts: who sits where, and where a newcomer is placed.

use super::wire::Reject;
use crate::engine::Key;

/// Numbers in a game, 0 to 3: a seed's rule.
pub const SEATS: usize = 4;

/// A number in a game.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seat {
    /// The game, from 0.
    pub game: u32,
    /// The player's number in it, 0 to 3.
    pub number: u8,
}

/// One game.
#[derive(Debug, Clone, Copy, Default)]
struct Game {
    seats: [Option<Key>; SEATS],
    /// Takes no new players until the last has left.
    running: bool,
}

impl Game {
    /// The lowest number nobody has.
    fn free_number(&self) -> Option<usize> {
        self.seats.iter().position(Option::is_none)
    }
}

/// All games of a service.
#[derive(Debug)]
pub struct Games {
    games: Vec<Game>,
    /// All games before this one are full, so that a full server is not searched for each newcomer.
    full_before: usize,
    /// By which a hello names them, if not by their numbers from 1.
    names: Vec<String>,
}

impl Games {
    /// `count` open games with nobody in them.
    /// A hello names them by `names`, or if there are none by their numbers from 1.
    pub fn new(count: u32, names: &[String]) -> Self {
        Self {
            games: vec![Game::default(); count as usize],
            full_before: 0,
            names: names.to_vec(),
        }
    }

    /// Where a newcomer goes: the first open game with a free number in which nobody `has_name`;
    /// if `wanted`, only that game is looked at.
    ///
    /// # Errors
    /// `NameTaken` if only the name stands in the way, else `GameStarted` if only a running game
    /// has a free number, else `ServerFull`.
    pub fn place(
        &self,
        wanted: Option<u32>,
        has_name: impl Fn(Key) -> bool,
    ) -> Result<Seat, Reject> {
        let mut refusal = Reject::ServerFull;
        let all = self.games.iter().enumerate().skip(self.full_before);
        let looked_at = all.filter(|(index, _)| wanted.is_none_or(|game| game as usize == *index));
        for (index, game) in looked_at {
            let Some(number) = game.free_number() else {
                continue;
            };
            if game.running {
                if refusal == Reject::ServerFull {
                    refusal = Reject::GameStarted;
                }
            } else if game.seats.iter().flatten().any(|key| has_name(*key)) {
                refusal = Reject::NameTaken;
            } else {
                return Ok(Seat {
                    game: index as u32,
                    number: number as u8,
                });
            }
        }
        Err(refusal)
    }

    /// The game that a room's name means; `None` if it is empty, which means any.
    ///
    /// # Errors
    /// `NoSuchGame`.
    pub fn wanted(&self, room: &[u8]) -> Result<Option<u32>, Reject> {
        if room.is_empty() {
            return Ok(None);
        }
        let named = self.names.iter().position(|name| name.as_bytes() == room);
        let numbered = || numbered(room).filter(|index| *index < self.games.len());
        let index = if self.names.is_empty() {
            numbered()
        } else {
            named
        };
        index
            .map(|index| Some(index as u32))
            .ok_or(Reject::NoSuchGame)
    }

    /// Gives a seat to a session. Returns whether it did: not if another has it.
    pub fn take(&mut self, seat: Seat, key: Key) -> bool {
        let place = &mut self.games[seat.game as usize].seats[usize::from(seat.number)];
        let is_taken = *place.get_or_insert(key) == key;
        let is_full = |game: &Game| game.free_number().is_none();
        while self.games.get(self.full_before).is_some_and(is_full) {
            self.full_before += 1;
        }
        is_taken
    }

    /// Frees a seat, if the session holds it. A game whose last session leaves is open again.
    pub fn leave(&mut self, seat: Seat, key: Key) {
        let game = &mut self.games[seat.game as usize];
        let place = &mut game.seats[usize::from(seat.number)];
        if *place == Some(key) {
            *place = None;
            self.full_before = self.full_before.min(seat.game as usize);
        }
        game.running &= game.seats.iter().any(Option::is_some);
    }

    /// Starts a game. Returns whether it did: not if it runs, has nobody in it or does not exist.
    pub fn start(&mut self, game: u32) -> bool {
        let Some(game) = self.games.get_mut(game as usize) else {
            return false;
        };
        if game.running || game.seats.iter().all(Option::is_none) {
            return false;
        }
        game.running = true;
        true
    }

    /// Whether the game runs.
    pub fn is_running(&self, game: u32) -> bool {
        self.games
            .get(game as usize)
            .is_some_and(|game| game.running)
    }

    /// The sessions of a game by number; a session that is not bound has its place too.
    pub fn seats(&self, game: u32) -> [Option<Key>; SEATS] {
        self.games
            .get(game as usize)
            .map_or([None; SEATS], |game| game.seats)
    }
}

/// The index of the game with this number, written as one writes numbers.
fn numbered(room: &[u8]) -> Option<usize> {
    let number: usize = std::str::from_utf8(room).ok()?.parse().ok()?;
    let index = number.checked_sub(1)?;
    (number.to_string().as_bytes() == room).then_some(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(slot: u32) -> Key {
        Key {
            slot,
            generation: 0,
        }
    }

    #[test]
    fn a_game_runs_until_its_last_session_leaves() {
        let mut games = Games::new(1, &[]);
        assert!(!games.start(0) && !games.start(1), "nobody is there");
        let first = games.place(None, |_| false).unwrap();
        games.take(first, key(1));
        let second = games.place(None, |_| false).unwrap();
        games.take(second, key(2));
        assert_eq!((first.number, second.number), (0, 1));
        assert!(games.start(0));
        assert!(!games.start(0), "it runs");
        assert_eq!(games.place(None, |_| false), Err(Reject::GameStarted));
        games.leave(first, key(1));
        assert!(games.is_running(0));
        games.leave(second, key(2));
        assert_eq!(games.place(None, |_| false), Ok(first));
    }

    #[test]
    fn the_lowest_free_number_of_the_first_fitting_game() {
        let mut games = Games::new(2, &[]);
        for slot in 0..4 {
            let seat = games.place(None, |_| false).unwrap();
            assert_eq!((seat.game, u32::from(seat.number)), (0, slot));
            games.take(seat, key(slot));
        }
        assert_eq!(games.place(None, |_| true), Ok(Seat { game: 1, number: 0 }));
        games.leave(Seat { game: 0, number: 2 }, key(9));
        assert_eq!(
            games.place(None, |_| false),
            Ok(Seat { game: 1, number: 0 }),
            "not its own"
        );
        games.leave(Seat { game: 0, number: 2 }, key(2));
        assert_eq!(
            games.place(None, |_| false),
            Ok(Seat { game: 0, number: 2 })
        );
        assert_eq!(games.place(None, |_| true), Ok(Seat { game: 1, number: 0 }));
        assert_eq!(games.place(Some(0), |_| true), Err(Reject::NameTaken));
        games.take(Seat { game: 1, number: 0 }, key(9));
        assert_eq!(games.place(None, |_| true), Err(Reject::NameTaken));
    }

    #[test]
    fn a_number_that_becomes_free_in_a_full_server_is_found() {
        let mut games = Games::new(50, &[]);
        for slot in 0..200 {
            let seat = games.place(None, |_| false).unwrap();
            assert!(games.take(seat, key(slot)));
        }
        assert_eq!(games.place(None, |_| false), Err(Reject::ServerFull));
        for (game, number) in [(49, 3), (0, 0), (17, 2)] {
            let seat = Seat { game, number };
            games.leave(seat, key(game * 4 + u32::from(number)));
            assert_eq!(games.place(None, |_| false), Ok(seat));
            assert!(games.take(seat, key(999)));
            assert!(!games.take(seat, key(998)), "it is taken");
            assert_eq!(games.place(None, |_| false), Err(Reject::ServerFull));
        }
    }
}
