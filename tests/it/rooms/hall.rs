//! The service in a world, with a game that keeps a diary and knows a few users.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard};

use anteroom::engine::{
    Entropy, Event, Game, Gone, Input, Machine, Player, Replies, Ticket, Time, Verdict,
};
use anteroom::game::Arena;
use anteroom::protocol::rooms::{Service, Settings};

use super::bytes::{Ask, Said};
use super::peer::{Peer, SERVER};
use crate::world::{PeerId, World};

/// What a game was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    Login { user: String, password: String },
    Register { user: String, password: String },
    Joined { player: Player, name: String },
    Left { player: Player, reason: u8 },
    Key { player: Player, key: i32 },
    Refresh { player: Player },
}

/// How the game answers about users.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Answer {
    /// At once, by what it knows.
    #[default]
    Honest,
    /// That it is busy.
    Busy,
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
    pub users: BTreeMap<String, String>,
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

/// The arena, and all that it is told written down.
struct Chronicler {
    arena: Arena,
    shelf: Shelf,
}

impl Game for Chronicler {
    fn event(&mut self, now: Time, event: Event<'_>, out: &mut dyn Replies) {
        let verdict = self.note(&event);
        if let Some((ticket, verdict)) = verdict {
            let answered = out.answer(ticket, verdict);
            assert_eq!(answered, Ok(()), "asked and gone at once");
        }
        self.arena.event(now, event, out);
    }

    fn wake(&self) -> Option<Time> {
        self.arena.wake()
    }

    fn tick(&mut self, now: Time, out: &mut dyn Replies) {
        self.arena.tick(now, out);
    }
}

impl Chronicler {
    fn note(&mut self, event: &Event<'_>) -> Option<(Ticket, Verdict)> {
        let mut diary = self.shelf.open();
        diary.told.push(told(event));
        let (ticket, is_right) = match *event {
            Event::Login {
                ticket,
                user,
                password,
                ..
            } => {
                let known = diary.users.get(user);
                (
                    ticket,
                    known.is_some_and(|known| known == password.reveal()),
                )
            }
            Event::Register { ticket, user, .. } => (ticket, !diary.users.contains_key(user)),
            _ => return None,
        };
        diary.tickets.push(ticket);
        let verdict = match diary.answer {
            Answer::Wait => return None,
            Answer::Busy => Verdict::Busy,
            Answer::Honest if is_right => Verdict::Admit,
            Answer::Honest => Verdict::Refuse,
        };
        if let (Event::Register { user, password, .. }, Verdict::Admit) = (event, verdict) {
            let password = password.reveal().to_owned();
            diary.users.insert((*user).to_owned(), password);
        }
        Some((ticket, verdict))
    }
}

fn told(event: &Event<'_>) -> Told {
    let owned = |text: &str| text.to_owned();
    match *event {
        Event::Login { user, password, .. } => Told::Login {
            user: owned(user),
            password: owned(password.reveal()),
        },
        Event::Register { user, password, .. } => Told::Register {
            user: owned(user),
            password: owned(password.reveal()),
        },
        Event::Joined { player, name } => Told::Joined {
            player,
            name: owned(name),
        },
        Event::Left { player, reason } => Told::Left { player, reason },
        Event::Key { player, key } => Told::Key { player, key },
        Event::Refresh { player } => Told::Refresh { player },
        _ => unreachable!("not said in this protocol: {event:?}"),
    }
}

/// The service, its game's diary, and everyone around.
pub struct Hall {
    world: World<Peer>,
    pub shelf: Shelf,
}

/// The service's index in the world.
pub const SERVICE: usize = 0;
/// Everybody's password.
pub const PASSWORD: &str = "password";

impl Hall {
    /// The limits of the table.
    pub fn new(seed: u64) -> Self {
        Self::with(seed, |_| ())
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

    fn empty(seed: u64) -> Self {
        Self {
            world: World::new(seed),
            shelf: Shelf::default(),
        }
    }

    fn serving(
        mut self,
        change: impl FnOnce(&mut Settings),
        dice: Option<Box<dyn Entropy>>,
        sockets: &[SocketAddr],
    ) -> Self {
        let mut settings = Settings {
            service: 3,
            udp_port: server().port(),
            ..Settings::default()
        };
        change(&mut settings);
        let game = Chronicler {
            arena: Arena::new(),
            shelf: self.shelf.clone(),
        };
        let service: Box<dyn Machine> = Box::new(Service::new(Box::new(game), &settings));
        match dice {
            Some(dice) => self.world.machine_with(service, dice, sockets),
            None => self.world.machine(service, sockets),
        };
        self
    }

    /// Somebody with a token whose Init was heard.
    #[track_caller]
    pub fn enter(&mut self, host: u16) -> PeerId {
        self.enter_as(Peer::new(address(host)))
    }

    /// Somebody of the test's choice, with a token.
    #[track_caller]
    pub fn enter_as(&mut self, peer: Peer) -> PeerId {
        let peer = self.world.add(peer);
        self.world[peer].open();
        self.world
            .until(1000, |world| world[peer].assigned().is_some());
        self.settle();
        peer
    }

    /// Somebody who connects; nothing is expected of it.
    pub fn open(&mut self, peer: Peer) -> PeerId {
        let peer = self.world.add(peer);
        self.world[peer].open();
        self.settle();
        peer
    }

    /// Somebody with a token and an endpoint that does nothing by itself.
    #[track_caller]
    pub fn silent(&mut self, host: u16) -> PeerId {
        let peer = self.enter_as(Peer::silent(address(host)));
        self.world[peer].send(&Ask::init());
        self.settle();
        peer
    }

    /// Somebody logged in. The account is there.
    #[track_caller]
    pub fn user(&mut self, name: &str, host: u16) -> PeerId {
        let peer = self.enter(host);
        self.log_in(peer, name);
        peer
    }

    /// Somebody logged in that does nothing by itself.
    #[track_caller]
    pub fn silent_user(&mut self, name: &str, host: u16) -> PeerId {
        let peer = self.silent(host);
        self.log_in(peer, name);
        peer
    }

    /// Makes the account and logs in.
    #[track_caller]
    pub fn log_in(&mut self, peer: PeerId, name: &str) {
        let mut diary = self.shelf.open();
        diary.users.insert(name.to_owned(), PASSWORD.to_owned());
        drop(diary);
        assert_eq!(
            self.ask(peer, &Ask::login(name, PASSWORD)),
            Said::Login(true)
        );
    }

    /// Asks, and waits for the answer.
    #[track_caller]
    pub fn ask(&mut self, peer: PeerId, ask: &Ask) -> Said {
        self.try_ask(peer, ask)
            .unwrap_or_else(|| panic!("no answer to {ask:02X?}"))
    }

    /// Asks, and waits for the answer or that there is none.
    #[track_caller]
    pub fn try_ask(&mut self, peer: PeerId, ask: &Ask) -> Option<Said> {
        let index = self.world[peer].ask(ask);
        self.world.within(3000, |world| {
            let request = &world[peer].requests[index];
            request.answer.is_some() || request.failed
        });
        self.world[peer].requests[index].answer.clone()
    }

    /// A room of this name, made by this peer.
    #[track_caller]
    pub fn create(&mut self, peer: PeerId, name: &str, max_players: u8) {
        let answer = self.ask(peer, &Ask::create(name, "", max_players));
        assert_eq!(answer, Said::CreateRoom(true, 0));
        self.settle();
    }

    /// A seat in a public room.
    #[track_caller]
    pub fn join(&mut self, peer: PeerId, name: &str) -> u8 {
        let answer = self.ask(peer, &Ask::join(name, ""));
        self.settle();
        match answer {
            Said::Join(true, seat, there) if there == name => seat,
            _ => panic!("{answer:?}"),
        }
    }

    /// Sends packets one by one and lets them arrive.
    #[track_caller]
    pub fn send(&mut self, peer: PeerId, ask: &Ask) -> u16 {
        let id = self.world[peer].send(ask);
        self.world.for_ms(11);
        id
    }

    /// Lets what is under way arrive.
    pub fn settle(&mut self) {
        self.world.for_ms(50);
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

    /// The newest question.
    #[track_caller]
    pub fn ticket(&self) -> Ticket {
        let diary = self.shelf.open();
        *diary.tickets.last().expect("nothing was asked")
    }

    /// How the game answers from now on.
    pub fn answers(&self, answer: Answer) {
        self.shelf.open().answer = answer;
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

/// The server's address.
pub fn server() -> SocketAddr {
    SERVER.parse().expect("an address")
}

/// The address of a player, by its number.
pub fn address(host: u16) -> SocketAddr {
    let [high, low] = host.to_be_bytes();
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, high, low)), 5000)
}
