//! The service in a world, with a game that keeps a diary.

use std::net::{IpAddr, SocketAddr};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard};

use anteroom::engine::{
    Entropy, Event, Game, Gone, Input, Machine, Player, Replies, Ticket, Time, Verdict,
};
use anteroom::game::Relay;
use anteroom::guard::limit::Addresses;
use anteroom::guard::limits::Limits;
use anteroom::protocol::rtyp::{Service, Settings};

use super::peer::{Peer, SERVER};
use crate::world::net::Owner;
use crate::world::{PeerId, World};

/// What a game was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    Connecting {
        player: Player,
        name: String,
        ip: IpAddr,
    },
    Joined {
        player: Player,
        name: String,
    },
    Left {
        player: Player,
        reason: u8,
    },
    Data {
        player: Player,
        bytes: Vec<u8>,
    },
    Chat {
        player: Player,
        text: String,
    },
    Custom {
        player: Player,
        body: Vec<u8>,
    },
    Start {
        player: Player,
    },
}

/// How the game answers when it is asked about a newcomer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Answer {
    #[default]
    Admit,
    Refuse,
    /// Not at once.
    Wait,
}

/// What the game wrote down.
#[derive(Debug, Default)]
pub struct Diary {
    pub told: Vec<Told>,
    /// How much of it a test has read.
    read: usize,
    /// The questions that it was asked, in their order.
    pub tickets: Vec<Ticket>,
    pub answer: Answer,
}

/// A hand on the diary.
#[derive(Debug, Clone, Default)]
pub struct Shelf(Arc<Mutex<Diary>>);

impl Shelf {
    /// The diary, until the guard goes.
    pub fn open(&self) -> MutexGuard<'_, Diary> {
        self.0.lock().expect("no test panics with it open")
    }
}

/// Relay, and all that it is told written down. It answers questions as the diary says.
pub struct Chronicler {
    relay: Relay,
    shelf: Shelf,
}

impl Chronicler {
    /// Writes into the diary on this shelf.
    pub fn new(shelf: &Shelf) -> Self {
        Self {
            relay: Relay::new(),
            shelf: shelf.clone(),
        }
    }
}

impl Game for Chronicler {
    fn event(&mut self, now: Time, event: Event<'_>, out: &mut dyn Replies) {
        let mut diary = self.shelf.open();
        diary.told.push(told(&event));
        if let Event::Connecting { ticket, .. } = event {
            diary.tickets.push(ticket);
            match diary.answer {
                Answer::Admit => {}
                Answer::Refuse => {
                    let answered = out.answer(ticket, Verdict::Refuse);
                    return assert_eq!(answered, Ok(()), "asked and gone at once");
                }
                Answer::Wait => return,
            }
        }
        drop(diary);
        self.relay.event(now, event, out);
    }
}

fn told(event: &Event<'_>) -> Told {
    match *event {
        Event::Connecting {
            player, name, ip, ..
        } => Told::Connecting {
            player,
            name: name.to_owned(),
            ip,
        },
        Event::Joined { player, name } => Told::Joined {
            player,
            name: name.to_owned(),
        },
        Event::Left { player, reason } => Told::Left { player, reason },
        Event::Data { player, bytes } => Told::Data {
            player,
            bytes: bytes.to_vec(),
        },
        Event::Chat { player, text } => Told::Chat {
            player,
            text: text.to_owned(),
        },
        Event::Custom { player, body } => Told::Custom {
            player,
            body: body.to_vec(),
        },
        Event::Start { player } => Told::Start { player },
        _ => unreachable!("not said in this protocol: {event:?}"),
    }
}

/// The service, its game's diary, and everyone around.
pub struct Hall {
    world: World<Peer>,
    pub shelf: Shelf,
    /// The table of addresses.
    pub addresses: Addresses,
}

/// The service's index in the world.
pub const SERVICE: usize = 0;

impl Hall {
    /// One game, and the limits of the table.
    pub fn new(seed: u64) -> Self {
        Self::with(seed, |_| ())
    }

    /// So many games.
    pub fn with_games(seed: u64, games: u32) -> Self {
        Self::with(seed, |settings| settings.games = games)
    }

    /// A service with settings of the test's choice.
    pub fn with(seed: u64, change: impl FnOnce(&mut Settings)) -> Self {
        Self::empty(seed).serving(change, None, &[server()])
    }

    /// A service with dice of the test's choice.
    pub fn with_dice(seed: u64, dice: Box<dyn Entropy>) -> Self {
        Self::empty(seed).serving(|_| (), Some(dice), &[server()])
    }

    /// A service with several sockets.
    pub fn with_sockets(seed: u64, sockets: &[SocketAddr]) -> Self {
        Self::empty(seed).serving(|_| (), None, sockets)
    }

    /// A service whose game is of the test's choice.
    pub fn with_game(seed: u64, game: Box<dyn Game + Send>) -> Self {
        let mut hall = Self::empty(seed);
        let service = Service::new(game, &settings());
        hall.world.machine(Box::new(service), &[server()]);
        hall
    }

    fn empty(seed: u64) -> Self {
        Self {
            world: World::new(seed),
            shelf: Shelf::default(),
            addresses: Addresses::new(&Limits::default()),
        }
    }

    fn serving(
        mut self,
        change: impl FnOnce(&mut Settings),
        dice: Option<Box<dyn Entropy>>,
        sockets: &[SocketAddr],
    ) -> Self {
        let mut settings = settings();
        change(&mut settings);
        settings.addresses = Addresses::new(&settings.limits);
        self.addresses = settings.addresses.clone();
        let game = Chronicler::new(&self.shelf);
        let service: Box<dyn Machine> = Box::new(Service::new(Box::new(game), &settings));
        match dice {
            Some(dice) => self.world.machine_with(service, dice, sockets),
            None => self.world.machine(service, sockets),
        };
        self
    }

    /// An honest player that is bound. The last number of its address is `host`.
    #[track_caller]
    pub fn enter(&mut self, name: &str, host: u8) -> PeerId {
        self.enter_as(name, Peer::new(&address(host)))
    }

    /// An honest player of version 2. The last number of its address is `host`.
    #[track_caller]
    pub fn enter_2(&mut self, name: &str, host: u8) -> PeerId {
        self.enter_as(name, Peer::v2(&address(host)))
    }

    /// A player of the test's choice, logged in and, if it connects by itself, bound.
    #[track_caller]
    pub fn enter_as(&mut self, name: &str, peer: Peer) -> PeerId {
        let peer = self.world.add(peer);
        self.world[peer].login(name);
        self.world.until(1000, |world| {
            let peer = &world[peer];
            peer.is_bound() || !peer.conduct.connect && peer.accepted().is_some()
        });
        peer
    }

    /// A player of version 2 that is let in, and does nothing by itself from now on.
    #[track_caller]
    pub fn enter_2_silent(&mut self, name: &str, host: u8) -> PeerId {
        let peer = self.enter_2(name, host);
        self.settle();
        self.world[peer].fall_silent();
        peer
    }

    /// The peer sends from another address from now on, and hears nothing any more at the old.
    #[track_caller]
    pub fn rebind(&mut self, peer: PeerId, address: &str) {
        let address = address.parse().expect("an address");
        let old = self.world[peer].udp;
        self.world[peer].comes_from(address);
        self.world.net.disown(old);
        self.world.net.own(address, Owner::Peer(peer.0));
    }

    /// A player that is bound and does nothing by itself from now on.
    #[track_caller]
    pub fn enter_silent(&mut self, name: &str, host: u8) -> PeerId {
        let peer = self.enter(name, host);
        self.settle();
        self.world[peer].fall_silent();
        peer
    }

    /// Lets what is under way arrive, and be acknowledged.
    pub fn settle(&mut self) {
        self.world.for_ms(100);
    }

    /// Somebody who was added, connected and says these bytes first.
    pub fn greet(&mut self, host: u8, bytes: &[u8]) -> PeerId {
        let peer = self.world.add(Peer::silent(&address(host)));
        self.world[peer].open();
        self.world[peer].write(bytes);
        self.settle();
        peer
    }

    /// A counter of the service.
    #[track_caller]
    pub fn count(&self, name: &str) -> u64 {
        self.world.stat(SERVICE, name)
    }

    /// What the game was told since the last call.
    pub fn told(&self) -> Vec<Told> {
        let mut diary = self.shelf.open();
        let read = diary.read;
        diary.read = diary.told.len();
        diary.told[read..].to_vec()
    }

    /// The handle of the player with this name that joined last.
    #[track_caller]
    pub fn handle(&self, wanted: &str) -> Player {
        let diary = self.shelf.open();
        let joined = diary.told.iter().rev().find_map(|told| match told {
            Told::Joined { player, name } if name == wanted => Some(*player),
            _ => None,
        });
        drop(diary);
        joined.unwrap_or_else(|| panic!("nobody called {wanted} has joined"))
    }

    /// Acts on the players from outside, and returns what came of it.
    pub fn act<T: Send + 'static>(
        &mut self,
        act: impl FnOnce(&mut dyn Replies) -> T + Send + 'static,
    ) -> T {
        let result = Arc::new(Mutex::new(None));
        let slot = Arc::clone(&result);
        let command = move |replies: &mut dyn Replies| {
            *slot.lock().expect("taken once") = Some(act(replies));
        };
        self.world.input(SERVICE, Input::Command(Box::new(command)));
        let taken = result.lock().expect("taken once").take();
        taken.expect("a command is done at once")
    }

    /// Answers a question.
    pub fn answer(&mut self, ticket: Ticket, verdict: Verdict) -> Result<(), Gone> {
        self.act(move |replies| replies.answer(ticket, verdict))
    }
}

impl Deref for Hall {
    type Target = World<Peer>;

    fn deref(&self) -> &World<Peer> {
        &self.world
    }
}

impl DerefMut for Hall {
    fn deref_mut(&mut self) -> &mut World<Peer> {
        &mut self.world
    }
}

/// One game, the port of [`SERVER`], and the limits of the table.
pub fn settings() -> Settings {
    Settings {
        service: 3,
        udp_port: server().port(),
        games: 1,
        limits: Limits::default(),
        ..Settings::default()
    }
}

/// The server's address.
pub fn server() -> SocketAddr {
    SERVER.parse().expect("an address")
}

/// The address of a player, by its last number.
pub fn address(host: u8) -> String {
    format!("10.0.0.{host}:5000")
}
