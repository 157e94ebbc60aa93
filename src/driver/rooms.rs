//! The client of rooms over real sockets, polled like the [`Driver`](super::Driver) of rtyp.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use anteroom::driver::rooms::{Driver, Notice, State};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let mut driver = Driver::connect("127.0.0.1:4243".parse()?)?;
//!     loop {
//!         let mut may_log_in = false;
//!         let state = driver.poll(&mut |notice| match notice {
//!             Notice::Opened => may_log_in = true,
//!             Notice::LoggedIn => println!("welcome"),
//!             Notice::Ended(end) => println!("{end}"),
//!             _ => {}
//!         });
//!         if may_log_in {
//!             driver.login("R9", "eight or more bytes")?;
//!         }
//!         if let State::Ended(_) = state {
//!             return Ok(());
//!         }
//!         // The rest of the game's frame.
//!         std::thread::sleep(Duration::from_millis(16));
//!     }
//! }
//! ```

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use mio::{Registry, Token};

use super::datagrams::Counts;
use super::link::Link;
use super::stream::{self, Progress};
use super::{DATAGRAMS_PER_POLL, HELD_MS, READ_BYTES, READS_PER_POLL, WAIT_MAX_MS};
use crate::engine::{Conn, Effect, Env, Input, Machine, Outbox, Time};
use crate::protocol::rooms::Client;
use crate::server::clock::Clock;
use crate::server::dice::Dice;

pub use crate::protocol::rooms::wire::{NotCreated, NotRegistered, Reason, Room, Rooms};
pub use crate::protocol::rooms::{Ask, End, NotJoined, Notice, Seen, SendError, State};

/// The one connection.
const CONN: Conn = Conn {
    slot: 0,
    generation: 0,
};

/// One player, and its sockets.
///
/// Dropping it closes its connection, by which the server knows that the player left.
pub struct Driver {
    client: Client,
    /// Until all is closed.
    link: Option<Link>,
    /// Of the socket, once it is closed.
    counts: Counts,
    clock: Clock,
    dice: Dice,
    out: Outbox,
    /// How long the wait that began with the last call may take.
    wait: Option<Duration>,
    /// Timers are held until the sockets are dry, or until this time.
    held: Option<Time>,
    /// The last poll left something unread.
    has_more: bool,
    /// The client has told something outside of a poll.
    has_untold: bool,
}

/// How it comes to be, and who waits for it.
impl Driver {
    /// Begins to connect. Whether there is a session is told by [`Driver::poll`], within 10 s.
    ///
    /// # Errors
    /// The system's if there can be no socket, or no way to the server at all.
    pub fn connect(server: SocketAddr) -> io::Result<Self> {
        let mut driver = Self {
            client: Client::new(),
            link: Some(Link::connect(server, CONN)?),
            counts: Counts::default(),
            clock: Clock::new(),
            dice: Dice::new(),
            out: Outbox::new(),
            wait: None,
            held: None,
            has_more: false,
            has_untold: false,
        };
        driver.rest();
        Ok(driver)
    }

    /// Registers the sockets for whatever is to be known of them: who waits with this registry is
    /// to poll when one of the tokens comes, or at the deadline.
    ///
    /// # Errors
    /// The system's.
    pub fn register(
        &mut self,
        registry: &Registry,
        stream: Token,
        datagrams: Token,
    ) -> io::Result<()> {
        match &mut self.link {
            Some(link) => link.register(registry, stream, datagrams),
            None => Ok(()),
        }
    }

    /// Takes the sockets out of the registry again. One that was closed has left by itself.
    ///
    /// # Errors
    /// The system's.
    pub fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        match &mut self.link {
            Some(link) => link.deregister(registry),
            None => Ok(()),
        }
    }
}

/// The poll.
impl Driver {
    /// Takes what has come, does what is due, and tells `on` what happened, in order; as
    /// [`super::Driver::poll`].
    pub fn poll(&mut self, on: &mut dyn FnMut(Notice<'_>)) -> State {
        let now = self.clock.wake(self.wait);
        if self.clock.take_gap() {
            self.held = Some(now + HELD_MS);
        }
        if std::mem::take(&mut self.has_untold) {
            self.client.notices().for_each(&mut *on);
        }
        self.advance(now, on);
        // What was sent before the end is read before the end.
        let is_dry = self.take_datagrams(now, on) & self.take_stream(now, on);
        self.has_more = !is_dry;
        if is_dry || self.held.is_none_or(|until| until <= now) {
            self.held = None;
            self.feed(now, Input::Tick, on);
        }
        self.tend();
        self.rest();
        self.state()
    }

    /// How long [`Driver::poll`] may wait if nothing comes, at most 500 ms; zero if something is
    /// due or was left unread, `None` once all is over.
    pub fn deadline(&mut self) -> Option<Duration> {
        self.clock.wake(self.wait);
        self.rest();
        self.wait
    }
}

/// What a game does and asks. Requests leave with the next poll, due at once.
impl Driver {
    /// Asks for an account.
    ///
    /// # Errors
    /// As [`Client::register`].
    pub fn register_account(&mut self, user: &str, password: &str) -> Result<(), SendError> {
        self.client.register(user, password)
    }

    /// Says who the client is.
    ///
    /// # Errors
    /// As [`Client::login`].
    pub fn login(&mut self, user: &str, password: &str) -> Result<(), SendError> {
        self.client.login(user, password)
    }

    /// Asks for a new room for 1 to 16 players.
    ///
    /// # Errors
    /// As [`Client::create_room`].
    pub fn create_room(
        &mut self,
        name: &str,
        password: &str,
        max_players: u8,
    ) -> Result<(), SendError> {
        self.client.create_room(name, password, max_players)
    }

    /// Asks for a seat in a room.
    ///
    /// # Errors
    /// As [`Client::join_room`].
    pub fn join_room(&mut self, name: &str, password: &str) -> Result<(), SendError> {
        self.client.join_room(name, password)
    }

    /// Asks which rooms there are, behind the first `first`.
    ///
    /// # Errors
    /// As [`Client::rooms`].
    pub fn rooms(&mut self, first: u16) -> Result<(), SendError> {
        self.client.rooms(first)
    }

    /// Leaves the room.
    ///
    /// # Errors
    /// As [`Client::leave_room`].
    pub fn leave_room(&mut self) -> Result<(), SendError> {
        self.client.leave_room()
    }

    /// Ends the own room.
    ///
    /// # Errors
    /// As [`Client::delete_room`].
    pub fn delete_room(&mut self, name: &str) -> Result<(), SendError> {
        self.client.delete_room(name)
    }

    /// Says a line to the room.
    ///
    /// # Errors
    /// As [`Client::chat`].
    pub fn chat(&mut self, text: &str) -> Result<(), SendError> {
        self.client.chat(text)
    }

    /// Tells that a key was pressed, at once and unreliable.
    ///
    /// # Errors
    /// As [`Client::key`].
    pub fn key(&mut self, key: i32) -> Result<(), SendError> {
        self.act(|client, env| client.key(env, key))
    }

    /// Leaves. All is over when the server has said so too, at most a second later, as long as it
    /// is polled ([`Driver::is_closed`]).
    pub fn logout(&mut self) {
        if !matches!(self.state(), State::Ended(_)) {
            self.act(Client::logout);
            self.has_untold = true;
        }
    }

    /// Keeps the session alive from within a long load, when nobody polls. To be called as often
    /// as is convenient, at least every 5 s.
    pub fn keep_alive(&mut self) {
        self.act(Client::keep_alive);
    }

    /// How far it has come.
    pub fn state(&self) -> State {
        self.client.state()
    }

    /// The client, to be asked for more: its user, its room, the entities in there.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Whether the session is over and all is closed: nothing is due any more.
    pub fn is_closed(&self) -> bool {
        matches!(self.state(), State::Ended(_)) && self.link.is_none()
    }

    /// Counters by name: the client's, and what the system did to its datagrams.
    pub fn stats(&self) -> Vec<(&'static str, u64)> {
        let mut stats = self.client.stats();
        let mut counts = self.counts;
        if let Some(datagrams) = self.link.as_ref().and_then(|link| link.datagrams.as_ref()) {
            counts.add(datagrams.counts());
        }
        stats.extend(counts.named());
        stats
    }
}

/// The parts of a poll.
impl Driver {
    /// Looks after the connection: whether it stands.
    fn advance(&mut self, now: Time, on: &mut dyn FnMut(Notice<'_>)) {
        let Some(stream) = self.link.as_mut().and_then(|link| link.stream.as_mut()) else {
            return;
        };
        match stream.advance(now) {
            Progress::None => {}
            Progress::Established(peer) => {
                self.feed(now, Input::Opened { conn: CONN, peer }, on);
            }
            Progress::Failed(kind) => {
                self.client.unconnected(kind);
                self.client.notices().for_each(on);
            }
        }
    }

    /// Takes datagrams; returns whether there are no more.
    fn take_datagrams(&mut self, now: Time, on: &mut dyn FnMut(Notice<'_>)) -> bool {
        let mut buffer = [0; READ_BYTES];
        for _ in 0..DATAGRAMS_PER_POLL {
            let link = self.link.as_mut();
            let Some(datagrams) = link.and_then(|link| link.datagrams.as_mut()) else {
                return true;
            };
            let Some((path, len)) = datagrams.receive(&mut buffer) else {
                return true;
            };
            let bytes = &buffer[..len];
            self.feed(now, Input::Datagram { path, bytes }, on);
        }
        false
    }

    /// Reads the stream; returns whether nothing more has come.
    fn take_stream(&mut self, now: Time, on: &mut dyn FnMut(Notice<'_>)) -> bool {
        let mut buffer = [0; READ_BYTES];
        for _ in 0..READS_PER_POLL {
            let link = self.link.as_mut();
            let Some(stream) = link.and_then(|link| link.stream.as_mut()) else {
                return true;
            };
            match stream.read(&mut buffer) {
                stream::Read::Nothing => return true,
                stream::Read::Over => {
                    self.feed(now, Input::Closed { conn: CONN }, on);
                    return true;
                }
                stream::Read::Bytes(len) => {
                    let bytes = &buffer[..len];
                    self.feed(now, Input::Stream { conn: CONN, bytes }, on);
                }
            }
        }
        false
    }

    /// Closes what nobody needs any more.
    fn tend(&mut self) {
        if matches!(self.state(), State::Ended(_))
            && let Some(mut link) = self.link.take()
        {
            link.abandon(&mut self.counts);
        }
    }

    /// Gives the client an input, does what it wants done, and passes on what it tells.
    fn feed(&mut self, now: Time, input: Input<'_>, on: &mut dyn FnMut(Notice<'_>)) {
        let mut env = Env {
            now,
            dice: &mut self.dice,
            out: &mut self.out,
        };
        self.client.handle(&mut env, input);
        self.perform(now);
        self.client.notices().for_each(on);
    }

    /// Lets the client act outside of a poll.
    fn act<T>(&mut self, act: impl FnOnce(&mut Client, &mut Env<'_>) -> T) -> T {
        let now = self.clock.wake(self.wait);
        let mut env = Env {
            now,
            dice: &mut self.dice,
            out: &mut self.out,
        };
        let result = act(&mut self.client, &mut env);
        self.perform(now);
        self.rest();
        result
    }

    fn perform(&mut self, now: Time) {
        let mut link = self.link.as_mut();
        for effect in self.out.effects() {
            let Some(link) = &mut link else { break };
            match (effect, &mut link.datagrams, &mut link.stream) {
                (Effect::Datagram { path, bytes }, Some(datagrams), _) => {
                    datagrams.send(path.remote, bytes);
                }
                (Effect::Close { how, .. }, _, Some(stream)) => stream.close(how, now),
                // A client of rooms writes nothing to its connection.
                _ => {}
            }
        }
        self.out.clear();
    }

    /// The call is over, and a wait begins.
    fn rest(&mut self) {
        let now = self.clock.rest();
        let due = match self.has_more || self.has_untold {
            true => Some(now),
            false => self.client.deadline(),
        };
        self.wait = due.map(|due| Duration::from_millis(due.since(now).min(WAIT_MAX_MS)));
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.logout();
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}
