//! Conversations of honest, silent, greedy and hostile peers, by seed; the books must balance.

use std::cell::Cell;
use std::collections::HashMap;
use std::net::SocketAddr;

use anteroom::engine::{Player, Seeded, Verdict};

use super::bytes::{Datagram, Event, Token, event, frame, kind, login_request};
use super::hall::{Answer, Hall, SERVICE, Told, server};
use super::peer::Peer;
use crate::world::PeerId;
use crate::world::link::Weather;
use crate::world::pipe::Pieces;
use crate::world::seeds::seeds;

mod checks;

/// The victim of forged Connects: it never sends a byte itself.
const VICTIM: &str = "10.66.66.66:66";
/// How many steps a conversation has.
const STEPS: usize = 400;
/// Few addresses, so that they collide.
const HOSTS: u64 = 3;
const PORTS: u64 = 3;

/// A peer and what it was made to do.
struct Guest {
    id: PeerId,
    name: String,
    nature: Nature,
    said: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nature {
    Honest,
    /// Logs in and may bind, and does little by itself.
    Silent,
    /// Honest in form, and wants everything at once.
    Greedy,
    /// Sends whatever it likes.
    Hostile,
}

/// What may happen in a step. A seed switches some of it off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    Enter,
    Leave,
    Speak,
    Start,
    FallSilent,
    Roam,
    Flood,
    Garbage,
    Forge,
    Kick,
    ChangeMind,
    Answer,
    Weather,
    LongSilence,
}

const DEEDS: [(Deed, u64); 14] = [
    (Deed::Enter, 12),
    (Deed::Leave, 8),
    (Deed::Speak, 60),
    (Deed::Start, 2),
    (Deed::FallSilent, 3),
    (Deed::Roam, 3),
    (Deed::Flood, 5),
    (Deed::Garbage, 10),
    (Deed::Forge, 15),
    (Deed::Kick, 3),
    (Deed::ChangeMind, 2),
    (Deed::Answer, 10),
    (Deed::Weather, 3),
    (Deed::LongSilence, 2),
];

struct Conversation {
    hall: Hall,
    dice: Seeded,
    deeds: Vec<(Deed, u64)>,
    players: Vec<Guest>,
    /// How much had been told when no session was left.
    emptied: Vec<usize>,
    /// Handles of everyone who ever joined.
    handles: Vec<Player>,
}

impl Conversation {
    fn new(seed: u64) -> Self {
        let mut dice = Seeded::new(seed.wrapping_mul(0x9E37));
        let mut hall = Hall::new(seed);
        hall.net.pieces = [Pieces::Whole, Pieces::Of(1), Pieces::Random(7)][dice.below(3) as usize];
        hall.echo_only(SERVICE, victim());
        let mut deeds = DEEDS.to_vec();
        deeds.retain(|(deed, _)| *deed == Deed::Enter || dice.below(4) > 0);
        Self {
            hall,
            dice,
            deeds,
            players: Vec::new(),
            emptied: Vec::new(),
            handles: Vec::new(),
        }
    }

    /// Returns how many events were heard and compared.
    fn run(&mut self) -> usize {
        for _ in 0..STEPS {
            let deed = self.deed();
            self.act(deed);
            let ms = match self.dice.below(4) {
                0 => 0,
                1 => self.dice.below(20),
                _ => self.dice.below(500),
            };
            self.pass(ms);
        }
        // All that is still under way may arrive now.
        self.hall.shelf.open().answer = Answer::Admit;
        self.calm();
        self.pass(60_000);
        let heard = self.check_players(true);
        self.hall.stop(SERVICE);
        self.pass(2000);
        self.check_stopped();
        heard
    }

    fn deed(&mut self) -> Deed {
        let all: u64 = self.deeds.iter().map(|(_, weight)| weight).sum();
        let mut at = self.dice.below(all);
        for (deed, weight) in &self.deeds {
            match at.checked_sub(*weight) {
                Some(rest) => at = rest,
                None => return *deed,
            }
        }
        Deed::Enter
    }

    /// Lets time pass, and looks at the books after every single step of the world.
    fn pass(&mut self, ms: u64) {
        let shelf = self.hall.shelf.clone();
        let mut emptied = std::mem::take(&mut self.emptied);
        self.hall.within(ms, |world| {
            let told = shelf.open().told.len();
            if world.stat(SERVICE, "sessions") == 0 && emptied.last() != Some(&told) {
                emptied.push(told);
            }
            false
        });
        self.emptied = emptied;
        self.check_counters();
    }

    fn act(&mut self, deed: Deed) {
        match deed {
            Deed::Enter => self.enter(),
            Deed::Leave => self.leave(),
            Deed::Speak => self.speak(),
            Deed::Start => self.with_bound(|peer, _| peer.event(Event::start())),
            Deed::FallSilent => self.with_bound(|peer, _| peer.fall_silent()),
            Deed::Roam => self.roam(),
            Deed::Flood => self.flood(),
            Deed::Garbage => self.garbage(),
            Deed::Forge => self.forge(),
            Deed::Kick => self.kick(),
            Deed::ChangeMind => {
                let answers = [Answer::Admit, Answer::Admit, Answer::Refuse, Answer::Wait];
                let answer = answers[self.dice.below(4) as usize];
                self.hall.shelf.open().answer = answer;
            }
            Deed::Answer => self.answer(),
            Deed::Weather => {
                let weathers = [Weather::clear(5), Weather::clear(150), Weather::storm()];
                let weather = weathers[self.dice.below(3) as usize];
                self.set_weather(weather);
            }
            Deed::LongSilence => self.pass(11_000),
        }
    }

    fn enter(&mut self) {
        let number = self.players.len();
        let (name, host) = self.name_and_host();
        let port = 5000 + self.dice.below(PORTS);
        let nature = match self.dice.below(10) {
            0..6 => Nature::Honest,
            6 => Nature::Silent,
            7 => Nature::Greedy,
            _ => Nature::Hostile,
        };
        let version = 1 + self.dice.below(2) as u8;
        let udp = match version {
            1 => format!("10.0.0.{host}:{port}"),
            // A stray ServerHello of who was there before would be taken for its own.
            _ => format!("10.0.0.{host}:{}", 10_000 + number),
        };
        let mut peer = match nature {
            Nature::Honest | Nature::Greedy => Peer::new(&udp),
            Nature::Silent | Nature::Hostile => Peer::silent(&udp),
        };
        peer.version = version;
        peer.first = self.dice.next_u64() as u16;
        if self.dice.below(4) == 0 {
            // Logs in from elsewhere, so that its endpoint is not proven.
            peer.tcp = "10.0.1.1:5000".parse().expect("an address");
        }
        let id = self.hall.add(peer);
        if nature == Nature::Hostile && version == 1 && self.dice.below(3) == 0 {
            let garbage = self.bytes(40);
            self.hall[id].open();
            self.hall[id].write(&garbage);
        } else {
            self.hall[id].login(&name);
        }
        self.players.push(Guest {
            id,
            name,
            nature,
            said: Vec::new(),
        });
    }

    /// Those of somebody new, or of one of the last who came.
    fn name_and_host(&mut self) -> (String, u64) {
        let number = self.players.len();
        let host = 1 + self.dice.below(HOSTS);
        let before = 1 + self.dice.below(6) as usize;
        match number.checked_sub(before) {
            Some(index) if self.dice.below(3) == 0 => {
                let guest = &self.players[index];
                let ip = self.hall[guest.id].udp.ip().to_string();
                let host = (1..=HOSTS).find(|host| ip == format!("10.0.0.{host}"));
                (guest.name.clone(), host.expect("one of few"))
            }
            _ => (format!("p{number}"), host),
        }
    }

    fn leave(&mut self) {
        let ways: [fn(&mut Peer); 4] = [Peer::leave, Peer::fin, Peer::abort, |peer| {
            peer.write(&frame(&[9]));
        }];
        let ways_2: [fn(&mut Peer); 4] = [Peer::leave, Peer::leave, Peer::die, |peer| {
            peer.send(99, &[]);
        }];
        let way = self.dice.below(4) as usize;
        let Some(index) =
            self.any(|_, peer| peer.version == 1 && !peer.is_over() || peer.is_bound())
        else {
            return;
        };
        let peer = &mut self.hall[self.players[index].id];
        match peer.version {
            1 => ways[way](peer),
            _ => ways_2[way](peer),
        }
    }

    /// Somebody of version 2 comes from another port, or from another address.
    fn roam(&mut self) {
        let Some(index) = self.any(|_, peer| peer.version == 2 && peer.is_bound()) else {
            return;
        };
        let host = 1 + self.dice.below(HOSTS);
        let port = 20_000 + self.dice.below(10_000);
        let id = self.players[index].id;
        self.hall.rebind(id, &format!("10.0.0.{host}:{port}"));
    }

    fn speak(&mut self) {
        let Some(index) = self.any(|_, peer| peer.is_bound()) else {
            return;
        };
        let player = &mut self.players[index];
        let text = format!("{} says {}", player.id.0, player.said.len());
        let peer = &mut self.hall[player.id];
        match self.dice.below(4) {
            0 => peer.event(Event::new(event::CUSTOM, text.as_bytes())),
            1 => drop(peer.send(kind::DATA, text.as_bytes())),
            _ => {
                peer.say(&text);
                player.said.push(text);
            }
        }
    }

    fn flood(&mut self) {
        let greedy: Vec<PeerId> = self
            .players
            .iter()
            .filter(|player| player.nature == Nature::Greedy)
            .map(|player| player.id)
            .collect();
        for id in greedy {
            if !self.hall[id].is_bound() {
                continue;
            }
            for _ in 0..100 {
                self.hall[id].event(Event::new(event::CUSTOM, b"more"));
                self.hall[id].send(kind::DATA, &[0; 500]);
                self.hall[id].ping();
            }
        }
    }

    /// A hostile peer says anything, over TCP and in its own session over UDP.
    fn garbage(&mut self) {
        let is_hostile =
            |guest: &Guest, peer: &Peer| guest.nature == Nature::Hostile && !peer.is_over();
        let Some(index) = self.any(is_hostile) else {
            return;
        };
        let id = self.players[index].id;
        let garbage = self.bytes(600);
        let kind = self.dice.below(10) as u8;
        let choice = self.dice.below(6);
        let peer = &mut self.hall[id];
        match (choice, peer.talk.is_some()) {
            (0, _) if peer.version == 1 => peer.write(&garbage),
            (0 | 1, _) => peer.raw(&garbage),
            (2, true) => drop(peer.send(kind, &garbage[..garbage.len().min(9)])),
            (3, true) => drop(peer.send(kind::EVENTS, &garbage)),
            (_, true) => drop(peer.connect()),
            (2 | 3, false) if peer.version == 2 => drop(peer.say_hello()),
            (_, false) if peer.version == 2 => {
                peer.hello_to(&garbage[..garbage.len().min(3)], b"x")
            }
            _ => peer.write(&login_request(1, &garbage[..garbage.len().min(20)])),
        }
    }

    /// A hostile peer claims to be somebody else, or the victim; it knows no token but its own.
    fn forge(&mut self) {
        let has_token =
            |guest: &Guest, peer: &Peer| guest.nature == Nature::Hostile && peer.is_in();
        let Some(index) = self.any(has_token) else {
            return;
        };
        let id = self.players[index].id;
        let own = self.hall[id].talk().session;
        let host = 1 + self.dice.below(HOSTS);
        let port = 5000 + self.dice.below(PORTS);
        let changed = |bits: u32| match own {
            Token::Shared(token) => Token::Shared(token ^ bits),
            Token::Secret(token) => Token::Secret(token ^ u64::from(bits)),
            Token::Public(token) => panic!("{token} is no client's"),
        };
        let (from, session): (SocketAddr, Token) = match self.dice.below(3) {
            0 => (victim(), own),
            1 => (victim(), changed(1)),
            _ => {
                let somebody = format!("10.0.0.{host}:{port}");
                (somebody.parse().expect("an address"), changed(0x100))
            }
        };
        let kinds = [
            kind::CONNECT,
            kind::CONNECT,
            kind::PING,
            kind::DATA,
            kind::EVENTS,
            kind::ACK,
            kind::CLIENT_HELLO,
        ];
        let kind = kinds[self.dice.below(7) as usize];
        let payload: &[u8] = match kind {
            kind::PING => &[1, 2, 3, 4],
            kind::DATA => b"forged",
            kind::EVENTS => &Event::chat("forged").bytes(self.dice.below(4) as u16),
            _ => &[],
        };
        let sequence = self.dice.below(200) as u16;
        let datagram = match kind {
            kind::CLIENT_HELLO => Datagram::hello(self.dice.below(2), b"", b"forged"),
            _ => Datagram::with(kind, session, payload).sequence(sequence),
        };
        self.hall[id].raw_from(from, &datagram.bytes());
    }

    fn kick(&mut self) {
        self.note_handles();
        if self.handles.is_empty() {
            return;
        }
        let any = self.dice.below(self.handles.len() as u64) as usize;
        let player = self.handles[any];
        let is_there = self.live().contains_key(&player);
        let kicked = self.hall.act(move |replies| replies.kick(player));
        assert_eq!(kicked.is_ok(), is_there, "{player:?}");
    }

    fn answer(&mut self) {
        let tickets = self.hall.shelf.open().tickets.clone();
        let Some(newest) = tickets.len().checked_sub(1) else {
            return;
        };
        let ticket = tickets[newest - self.dice.below(3).min(newest as u64) as usize];
        let verdict = match self.dice.below(3) {
            0 => Verdict::Refuse,
            _ => Verdict::Admit,
        };
        // Whoever was answered, refused or is gone is not answered again.
        if self.hall.answer(ticket, verdict).is_ok() {
            let again = self.hall.answer(ticket, verdict);
            assert!(again.is_err(), "answered twice");
        }
    }

    fn with_bound(&mut self, deed: impl FnOnce(&mut Peer, &mut Seeded)) {
        if let Some(index) = self.any(|_, peer| peer.is_bound()) {
            deed(&mut self.hall[self.players[index].id], &mut self.dice);
        }
    }

    /// One of the players for whom this holds.
    fn any(&mut self, is_wanted: impl Fn(&Guest, &Peer) -> bool) -> Option<usize> {
        let wanted: Vec<usize> = (0..self.players.len())
            .filter(|index| {
                let guest = &self.players[*index];
                is_wanted(guest, &self.hall[guest.id])
            })
            .collect();
        let count = wanted.len() as u64;
        (count > 0).then(|| wanted[self.dice.below(count) as usize])
    }

    fn bytes(&mut self, most: u64) -> Vec<u8> {
        let len = self.dice.below(most);
        (0..len).map(|_| self.dice.next_u64() as u8).collect()
    }

    fn calm(&mut self) {
        self.set_weather(Weather::clear(5));
    }

    fn set_weather(&mut self, weather: Weather) {
        self.hall.net.weather = weather;
        let players = self.players.iter();
        let there: Vec<SocketAddr> = players.map(|guest| self.hall[guest.id].udp).collect();
        for address in there {
            self.hall.net.link(address, server()).weather = weather;
            self.hall.net.link(server(), address).weather = weather;
        }
    }

    fn note_handles(&mut self) {
        let told = self.hall.told();
        let joined = told.iter().filter_map(|told| match told {
            Told::Joined { player, .. } => Some(*player),
            _ => None,
        });
        self.handles.extend(joined);
    }

    fn live(&self) -> HashMap<Player, String> {
        let mut live = HashMap::new();
        for told in &self.hall.shelf.open().told {
            match told {
                Told::Joined { player, name } => drop(live.insert(*player, name.clone())),
                Told::Left { player, .. } => drop(live.remove(player)),
                _ => {}
            }
        }
        live
    }
}

fn victim() -> SocketAddr {
    VICTIM.parse().expect("an address")
}

#[test]
fn the_books_balance() {
    // Conversations in which nobody hears anything must not pass for good ones, nor those in which
    // nobody moves or comes back in the place of a ghost.
    let counters = ["logins", "moves", "ghosts-ended"];
    let (heard, count) = (Cell::new(0), Cell::new(0));
    let sums = Cell::new([0; 3]);
    seeds(60, |seed| {
        let mut conversation = Conversation::new(seed);
        heard.set(heard.get() + conversation.run());
        count.set(count.get() + 1);
        let counted = counters.map(|name| conversation.hall.count(name));
        let sum = sums.get();
        sums.set([0, 1, 2].map(|index| sum[index] + counted[index]));
    });
    let (heard, count) = (heard.get(), count.get());
    println!("{heard} events; {counters:?}: {:?}", sums.get());
    assert!(heard >= count * 20, "only {heard} events were heard");
    let is_varied = sums.get().iter().all(|sum| *sum > 0);
    assert!(is_varied || count < 20, "{counters:?}: {:?}", sums.get());
}
