//! The client over real sockets, for a game to poll each frame.
//!
//! A [`Driver`] owns one player's sockets, all non-blocking: TCP and UDP in version 1, UDP alone in
//! version 2 ([`Door`]). [`Driver::poll`] takes what has come, does what is due and tells what
//! happened; it never waits. Everything else acts at once or with the next poll, and a game may
//! call it whenever it likes.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use anteroom::driver::{Driver, Notice, State};
//! use anteroom::guard::escape::escaped;
//!
//! fn main() -> std::io::Result<()> {
//!     let server = "127.0.0.1:4242".parse().expect("an address");
//!     let mut driver = Driver::connect(server, "R9")?;
//!     loop {
//!         let state = driver.poll(&mut |notice| match notice {
//!             Notice::PlayerJoined { player, name } => {
//!                 println!("player {player} is {}", escaped(name));
//!             }
//!             Notice::Data { bytes } => println!("{} bytes of somebody's position", bytes.len()),
//!             Notice::Ended(end) => println!("{end}"),
//!             _ => {}
//!         });
//!         match state {
//!             // Unreliable: a position that does not arrive is followed by the next.
//!             State::Playing => driver.send(b"my position").expect("it plays, and this fits"),
//!             State::Ended(_) => return Ok(()),
//!             _ => {}
//!         }
//!         // The rest of the game's frame; a long load in it calls `driver.keep_alive()`.
//!         std::thread::sleep(Duration::from_millis(16));
//!     }
//! }
//! ```
//!
//! A loop over many drivers, or over other sockets too, need not poll each frame: it waits for
//! the sockets ([`Driver::register`]), at most for [`Driver::deadline`].

use std::error::Error;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use mio::{Registry, Token};

use crate::engine::{Conn, Effect, Env, Input, Machine, Outbox, Time};
use crate::protocol::rtyp::Client;
use crate::server::clock::Clock;
use crate::server::dice::Dice;

mod datagrams;
mod link;
pub mod rooms;
mod stream;

pub use crate::protocol::rtyp::wire::{Reason, Reject};
pub use crate::protocol::rtyp::{BadHello, BadName, End, Notice, SendError, State};

use datagrams::Counts;
use link::{Link, Waiting};
use stream::{Progress, Stream};

/// After a gap in listening, time passes for nobody until the sockets are read dry, or so long.
const HELD_MS: u64 = 1_000;
/// A wait is no longer than this while anything is due at all: of a longer one nobody could tell
/// how much of it the process was stopped.
const WAIT_MAX_MS: u64 = 500;
/// One poll takes so many datagrams, and reads so often from the stream.
const DATAGRAMS_PER_POLL: usize = 64;
const READS_PER_POLL: usize = 4;
/// More than any datagram of the protocol, so that a longer one is recognised.
const READ_BYTES: usize = 2_048;

/// The session's link, and the one by which it logs in again.
const LINKS: usize = 2;

/// By which door a player gets in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door<'a> {
    /// Version 1: a login over TCP, which stays connected, and the game over UDP.
    Login {
        /// Whether it logs in again by itself when nothing was heard for 6 s, as when a router has
        /// forgotten it. The session is a new one then, told by [`Notice::Accepted`] again.
        rejoins: bool,
    },
    /// Version 2: a hello over UDP, and the game too. The session follows its player to another
    /// address by itself.
    Hello {
        /// One game by name, 1 to 16 bytes; empty: any.
        room: &'a str,
    },
}

/// One player, and its sockets.
///
/// Dropping it says to the server that the player left; in version 2 only once, which may be lost:
/// whoever wants the others to know soon calls [`Driver::logout`] and polls until
/// [`Driver::is_closed`].
pub struct Driver {
    client: Client,
    server: SocketAddr,
    links: [Option<Link>; LINKS],
    /// Connections were numbered so far.
    connections: u32,
    /// Who waits for the sockets, if there may be more of them.
    waiting: Option<Waiting>,
    /// Of sockets that are closed.
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
    /// Begins to connect and to log in as `name`, by version 1. Whether that succeeds is told by
    /// [`Driver::poll`], within 10 s.
    ///
    /// # Errors
    /// As [`Driver::enter`].
    pub fn connect(server: SocketAddr, name: &str) -> io::Result<Self> {
        Self::enter(server, name, Door::Login { rejoins: false })
    }

    /// Begins to get in as `name`. Whether that succeeds is told by [`Driver::poll`], within 10 s,
    /// or 5 s in version 2.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] with [`BadName`] or [`BadHello`] if the name is not 1 to 16
    /// bytes without control characters, or the room longer than 16; the system's if there can be
    /// no socket, or no way to the server at all.
    pub fn enter(server: SocketAddr, name: &str, door: Door<'_>) -> io::Result<Self> {
        let client = match door {
            Door::Login { rejoins: false } => Client::new(name).map_err(invalid)?,
            Door::Login { rejoins: true } => Client::rejoining(name).map_err(invalid)?,
            Door::Hello { room } => Client::v2(server, name, room).map_err(invalid)?,
        };
        let mut driver = Self {
            client,
            server,
            links: [const { None }; LINKS],
            connections: 0,
            waiting: None,
            counts: Counts::default(),
            clock: Clock::new(),
            dice: Dice::new(),
            out: Outbox::new(),
            wait: None,
            held: None,
            has_more: false,
            has_untold: false,
        };
        match door {
            Door::Login { .. } => driver.open(Link::connect)?,
            Door::Hello { .. } => driver.open(Link::without_connection)?,
        }
        driver.rest();
        Ok(driver)
    }

    /// Registers the sockets for whatever is to be known of them: who waits with this registry is
    /// to poll when one of the tokens comes, or at the deadline. Sockets that are made later, to
    /// log in again, are registered likewise.
    ///
    /// # Errors
    /// The system's.
    pub fn register(
        &mut self,
        registry: &Registry,
        stream: Token,
        datagrams: Token,
    ) -> io::Result<()> {
        for link in self.links.iter_mut().flatten() {
            link.register(registry, stream, datagrams)?;
        }
        if self.client.rejoins() {
            let registry = registry.try_clone()?;
            self.waiting = Some(Waiting {
                registry,
                stream,
                datagrams,
            });
        }
        Ok(())
    }

    /// Takes the sockets out of the registry again. One that was closed has left by itself.
    ///
    /// # Errors
    /// The system's.
    pub fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        self.waiting = None;
        let mut links = self.links.iter_mut().flatten();
        links.try_for_each(|link| link.deregister(registry))
    }
}

/// The poll.
impl Driver {
    /// Takes what has come, does what is due, and tells `on` what happened, in order. Bounded: a
    /// flood is taken in parts, one with each poll.
    ///
    /// Time that passes without a poll, beyond [`Driver::deadline`] and 500 ms, counts for
    /// nothing: a game that stood still finds its session alive if the server has kept it.
    pub fn poll(&mut self, on: &mut dyn FnMut(Notice<'_>)) -> State {
        let now = self.clock.wake(self.wait);
        if self.clock.take_gap() {
            self.held = Some(now + HELD_MS);
        }
        if std::mem::take(&mut self.has_untold) {
            self.client.notices().for_each(&mut *on);
        }
        let is_dry = self.take(now, on);
        self.has_more = !is_dry;
        if is_dry || self.held.is_none_or(|until| until <= now) {
            self.held = None;
            self.feed(now, Input::Tick, on);
        }
        self.tend(on);
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

/// What a game does and asks.
impl Driver {
    /// Sends the game's own bytes, unreliable and unordered, at once.
    ///
    /// # Errors
    /// As [`Client::send`]. What the system has no room for is lost, as on the way.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), SendError> {
        self.act(|client, env| client.send(env, bytes))
    }

    /// Queues a line of chat, reliable; it leaves with the next poll, due at once.
    ///
    /// # Errors
    /// As [`Client::chat`].
    pub fn chat(&mut self, text: &str) -> Result<(), SendError> {
        self.client.chat(text)
    }

    /// Queues the game's own event, reliable and in order; it leaves with the next poll.
    ///
    /// # Errors
    /// As [`Client::custom`].
    pub fn custom(&mut self, body: &[u8]) -> Result<(), SendError> {
        self.client.custom(body)
    }

    /// Asks for the game to start; it leaves with the next poll.
    ///
    /// # Errors
    /// As [`Client::start`].
    pub fn start(&mut self) -> Result<(), SendError> {
        self.client.start()
    }

    /// Leaves. The session has ended when this returns, which the next poll tells; all is closed
    /// when the server has closed, or in version 2 when the farewell was said three times, at most
    /// a second later ([`Driver::is_closed`]).
    pub fn logout(&mut self) {
        if !matches!(self.state(), State::Ended(_)) {
            self.has_untold = true;
            self.act(Client::logout);
        }
    }

    /// Keeps the session alive from within a long load, when nobody polls. Cheap: most calls only
    /// read the clock. To be called as often as is convenient, at least every 5 s.
    pub fn keep_alive(&mut self) {
        self.act(Client::keep_alive);
    }

    /// How far it has come.
    pub fn state(&self) -> State {
        self.client.state()
    }

    /// The own number in the game, 0 to 3, while the session exists.
    pub fn player(&self) -> Option<u8> {
        self.client.player()
    }

    /// The smoothed round trip to the server in milliseconds, once one was measured.
    pub fn rtt_ms(&self) -> Option<u64> {
        self.client.rtt_ms()
    }

    /// The client, to be asked for more.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Whether the session is over and all is closed: nothing is due any more.
    pub fn is_closed(&self) -> bool {
        let is_over = matches!(self.state(), State::Ended(_)) && self.client.deadline().is_none();
        let mut streams = self.links.iter().flatten().flat_map(|link| &link.stream);
        is_over && streams.all(Stream::is_closed)
    }

    /// Counters by name: the client's, and what the system did to its datagrams.
    pub fn stats(&self) -> Vec<(&'static str, u64)> {
        let mut stats = self.client.stats();
        let mut counts = self.counts;
        let sockets = self.links.iter().flatten().flat_map(|link| &link.datagrams);
        sockets.for_each(|socket| counts.add(socket.counts()));
        stats.extend(counts.named());
        stats
    }
}

/// The parts of a poll.
impl Driver {
    /// Takes what has come by every link; returns whether there is no more.
    fn take(&mut self, now: Time, on: &mut dyn FnMut(Notice<'_>)) -> bool {
        let mut is_dry = true;
        for slot in 0..LINKS {
            self.advance(slot, now, on);
            // What was sent before the end is read before the end.
            is_dry &= self.take_datagrams(slot, now, on);
            is_dry &= self.take_stream(slot, now, on);
        }
        is_dry
    }

    /// Looks after a connection: whether it stands, what waits to be written, when it is to go.
    fn advance(&mut self, slot: usize, now: Time, on: &mut dyn FnMut(Notice<'_>)) {
        let Some(link) = &mut self.links[slot] else {
            return;
        };
        let Some(stream) = &mut link.stream else {
            return;
        };
        let conn = link.conn;
        match stream.advance(now) {
            Progress::None => {}
            Progress::Established(peer) => self.feed(now, Input::Opened { conn, peer }, on),
            Progress::Failed(kind) => {
                self.client.unconnected(kind);
                self.client.notices().for_each(on);
            }
        }
    }

    /// Takes datagrams; returns whether there are no more.
    fn take_datagrams(&mut self, slot: usize, now: Time, on: &mut dyn FnMut(Notice<'_>)) -> bool {
        let mut buffer = [0; READ_BYTES];
        for _ in 0..DATAGRAMS_PER_POLL {
            let link = self.links[slot].as_mut();
            let Some(datagrams) = link.and_then(|link| link.datagrams.as_mut()) else {
                return true;
            };
            let Some((mut path, len)) = datagrams.receive(&mut buffer) else {
                return true;
            };
            path.socket = slot as u8;
            let bytes = &buffer[..len];
            self.feed(now, Input::Datagram { path, bytes }, on);
        }
        false
    }

    /// Reads a stream; returns whether nothing more has come.
    fn take_stream(&mut self, slot: usize, now: Time, on: &mut dyn FnMut(Notice<'_>)) -> bool {
        let mut buffer = [0; READ_BYTES];
        for _ in 0..READS_PER_POLL {
            let Some(link) = &mut self.links[slot] else {
                return true;
            };
            let Some(stream) = &mut link.stream else {
                return true;
            };
            let conn = link.conn;
            match stream.read(&mut buffer) {
                stream::Read::Nothing => return true,
                stream::Read::Over => {
                    self.feed(now, Input::Closed { conn }, on);
                    return true;
                }
                stream::Read::Bytes(len) => {
                    let bytes = &buffer[..len];
                    self.feed(now, Input::Stream { conn, bytes }, on);
                }
            }
        }
        false
    }

    /// Closes what nobody needs any more, and connects if the client wants it.
    fn tend(&mut self, on: &mut dyn FnMut(Notice<'_>)) {
        let is_ended = matches!(self.state(), State::Ended(_));
        let wants_connection = self.client.wants_connection();
        let has_farewell = is_ended && self.client.deadline().is_some();
        for slot in &mut self.links {
            let Some(link) = slot else { continue };
            if is_ended && !has_farewell {
                link.abandon(&mut self.counts);
            }
            if link.is_over() || link.is_connecting() && !wants_connection {
                link.hang_up(&mut self.counts);
                *slot = None;
            }
        }
        let is_connecting = self.links.iter().flatten().any(Link::is_connecting);
        if wants_connection
            && !is_connecting
            && let Err(error) = self.open(Link::connect)
        {
            self.client.unconnected(error.kind());
            self.client.notices().for_each(on);
        }
    }

    /// Opens a link in a free slot.
    fn open(&mut self, open: fn(SocketAddr, Conn) -> io::Result<Link>) -> io::Result<()> {
        let Some(slot) = self.links.iter().position(Option::is_none) else {
            return Err(io::ErrorKind::ResourceBusy.into());
        };
        let conn = Conn {
            slot: slot as u32,
            generation: self.connections,
        };
        let mut link = open(self.server, conn)?;
        self.connections = self.connections.wrapping_add(1);
        if let Some(waiting) = &self.waiting {
            link.register(&waiting.registry, waiting.stream, waiting.datagrams)?;
        }
        self.links[slot] = Some(link);
        Ok(())
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
        for effect in self.out.effects() {
            match effect {
                Effect::Datagram { path, bytes } => {
                    let link = self.links.get_mut(usize::from(path.socket));
                    let datagrams = link.and_then(Option::as_mut).map(|it| &mut it.datagrams);
                    if let Some(Some(datagrams)) = datagrams {
                        datagrams.send(path.remote, bytes);
                    }
                }
                Effect::Stream { conn, bytes } => {
                    if let Some(stream) = stream(&mut self.links, conn) {
                        stream.write(bytes);
                    }
                }
                Effect::Close { conn, how } => {
                    if let Some(stream) = stream(&mut self.links, conn) {
                        stream.close(how, now);
                    }
                }
                Effect::Settled { .. } | Effect::Warning { .. } => {}
            }
        }
        self.out.clear();
    }

    /// The call is over, and a wait begins.
    fn rest(&mut self) {
        let now = self.clock.rest();
        let due = if self.has_more || self.has_untold {
            Some(now)
        } else {
            let timers = self.client.deadline();
            let links = self.links.iter().flatten().filter_map(Link::deadline);
            timers.into_iter().chain(links).min()
        };
        self.wait = due.map(|due| Duration::from_millis(due.since(now).min(WAIT_MAX_MS)));
    }
}

/// The connection of this number, if there is one.
fn stream(links: &mut [Option<Link>; LINKS], conn: Conn) -> Option<&mut Stream> {
    let mut links = links.iter_mut().flatten();
    links.find(|link| link.conn == conn)?.stream.as_mut()
}

fn invalid(error: impl Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
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
