//! The books of a conversation: what each player must have heard, worked out from what the game
//! was told and from the document alone.

use std::collections::{BTreeMap, HashSet};

use anteroom::engine::Player;

use super::bytes::{Event, event};
use super::hall::Told;

/// A player's stay in a game, from its joining to its leaving.
#[derive(Debug)]
pub struct Stay {
    pub player: Player,
    pub name: String,
    pub left: bool,
    /// What it must have heard, in this order.
    pub hears: Vec<Event>,
    /// What it said in chat, as the game was told.
    pub said: Vec<String>,
    /// Whether the game ran when it joined cannot be told from here.
    pub is_unsure: bool,
}

/// All stays, and who is there now.
#[derive(Debug, Default)]
pub struct Books {
    pub stays: Vec<Stay>,
    /// By game and number.
    there: BTreeMap<(u32, u8), usize>,
    seen: HashSet<Player>,
    running: HashSet<u32>,
    /// Seats whose players somebody was to come in place of.
    inherited: HashSet<(u32, u8)>,
    /// Games whose last player was such a one: they are open again if its heir still waited then.
    unsure: HashSet<u32>,
}

impl Books {
    /// Keeps the books over all that was told. `emptied` names the places (how much had been told)
    /// at which no session was left, so that every game was open again.
    ///
    /// Fails the test if it makes no sense by itself: two players of one number or one name, a
    /// leaving without a joining or a second one, something said by who is not there.
    pub fn keep(told: &[Told], emptied: &[usize]) -> Self {
        let mut books = Self::default();
        for (place, told) in told.iter().enumerate() {
            if emptied.contains(&place) {
                assert!(
                    books.there.is_empty(),
                    "nobody is there and {:?}",
                    books.there
                );
                books.running.clear();
                books.unsure.clear();
            }
            books.enter(told);
        }
        books
    }

    /// The stays of everyone who had this name.
    pub fn named(&self, name: &str) -> Vec<&Stay> {
        self.stays.iter().filter(|stay| stay.name == name).collect()
    }

    fn enter(&mut self, told: &Told) {
        match told {
            Told::Connecting { player, name, .. } => {
                assert!(player.number() <= 3);
                self.is_free_or_its_ghosts(*player, name);
            }
            Told::Joined { player, name } => self.joined(*player, name),
            Told::Left { player, reason } => self.left(*player, *reason),
            Told::Chat { player, text } => {
                let speaker = self.here(*player);
                self.stays[speaker].said.push(text.clone());
                self.others(*player, &Event::said(player.number(), text));
            }
            Told::Custom { player, body } => {
                self.here(*player);
                let body = [&[player.number()], &body[..]].concat();
                self.others(*player, &Event::new(event::CUSTOM, &body));
            }
            Told::Data { player, .. } => {
                self.here(*player);
            }
            Told::Start { player } => self.started(*player),
        }
    }

    fn joined(&mut self, player: Player, name: &str) {
        assert!(self.seen.insert(player), "{player:?} has joined before");
        self.is_free(player, name);
        let there = self.game(player.game());
        let mut hears: Vec<Event> = there
            .iter()
            .map(|stay| {
                let stay = &self.stays[*stay];
                Event::joined(stay.player.number(), &stay.name)
            })
            .collect();
        if self.running.contains(&player.game()) {
            hears.push(Event::started());
        }
        self.others(player, &Event::joined(player.number(), name));
        let seat = (player.game(), player.number());
        self.there.insert(seat, self.stays.len());
        self.stays.push(Stay {
            player,
            name: name.to_owned(),
            left: false,
            hears,
            said: Vec::new(),
            is_unsure: self.unsure.contains(&player.game()),
        });
    }

    fn left(&mut self, player: Player, reason: u8) {
        let stay = self.here(player);
        assert!(reason <= 4);
        self.stays[stay].left = true;
        let seat = (player.game(), player.number());
        self.there.remove(&seat);
        if self.inherited.remove(&seat) && self.game(player.game()).is_empty() {
            self.unsure.insert(player.game());
        }
        self.others(player, &Event::left(player.number(), reason));
    }

    fn started(&mut self, player: Player) {
        self.here(player);
        let there = self.game(player.game());
        if there.len() >= 2 && self.running.insert(player.game()) {
            for stay in there {
                self.stays[stay].hears.push(Event::started());
            }
        }
    }

    /// Fails if the number or the name is taken by somebody who is there.
    fn is_free(&self, player: Player, name: &str) {
        for stay in self.game(player.game()) {
            let stay = &self.stays[stay];
            assert_ne!(stay.player.number(), player.number(), "the number is taken");
            assert_ne!(stay.name, name, "the name is taken");
        }
    }

    /// Fails if somebody has the number or the name and not both.
    fn is_free_or_its_ghosts(&mut self, player: Player, name: &str) {
        for stay in self.game(player.game()) {
            let stay = &self.stays[stay];
            let has_number = stay.player.number() == player.number();
            assert_eq!(has_number, stay.name == name, "{name} is no heir");
            if has_number {
                self.inherited.insert((player.game(), player.number()));
            }
        }
    }

    /// The stay of somebody who must be there.
    fn here(&self, player: Player) -> usize {
        let stay = self.there.get(&(player.game(), player.number()));
        let stay = *stay.unwrap_or_else(|| panic!("{player:?} is not there"));
        assert_eq!(self.stays[stay].player, player, "a handle gone stale");
        stay
    }

    /// The stays in a game, by number.
    fn game(&self, game: u32) -> Vec<usize> {
        let seats = self.there.range((game, 0)..=(game, u8::MAX));
        seats.map(|(_, stay)| *stay).collect()
    }

    fn others(&mut self, player: Player, event: &Event) {
        for stay in self.game(player.game()) {
            if self.stays[stay].player != player {
                self.stays[stay].hears.push(event.clone());
            }
        }
    }
}
