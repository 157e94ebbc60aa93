//! The client over real sockets, for a game to poll each frame.
//!
//! A [`Driver`] owns one player's TCP and UDP sockets, both non-blocking. [`Driver::poll`] takes
//! what has come, does what is due and tells what happened; it never waits. Everything else acts
//! at once or with the next poll, and a game may call it whenever it likes.
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
mod stream;

pub use crate::protocol::rtyp::wire::{Reason, Reject};
pub use crate::protocol::rtyp::{BadName, End, Notice, SendError, State};

use datagrams::Datagrams;
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

/// The one connection of a driver.
const CONN: Conn = Conn {
    slot: 0,
    generation: 0,
};

/// One player, and its sockets.
///
/// Dropping it closes the connection, by which the server and the other players know that the
/// player left.
pub struct Driver {
    client: Client,
    stream: Stream,
    /// Until the session is over.
    datagrams: Option<Datagrams>,
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

impl Driver {
    /// Begins to connect and to log in as `name`. Whether that succeeds is told by
    /// [`Driver::poll`], within 10 s.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] with [`BadName`] if the name is not 1 to 16 bytes without
    /// control characters; the system's if there can be no socket, or no way to the server at all.
    pub fn connect(server: SocketAddr, name: &str) -> io::Result<Self> {
        let client =
            Client::new(name).map_err(|bad| io::Error::new(io::ErrorKind::InvalidInput, bad))?;
        let stream = Stream::connect(datagrams::folded(server))?;
        let datagrams = Datagrams::bind(stream.local_ip(), server)?;
        let mut driver = Self {
            client,
            stream,
            datagrams: Some(datagrams),
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
        self.advance(now, on);
        // What was sent before the end is read before the end.
        let is_dry = self.take_datagrams(now, on) & self.take_stream(now, on);
        self.has_more = !is_dry;
        if is_dry || self.held.is_none_or(|until| until <= now) {
            self.held = None;
            self.feed(now, Input::Tick, on);
        }
        if let State::Ended(_) = self.state() {
            self.stream.abandon();
            self.datagrams = None;
        }
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

    /// Registers both sockets for whatever is to be known of them: who waits with this registry
    /// is to poll when one of the tokens comes, or at the deadline.
    ///
    /// # Errors
    /// The system's.
    pub fn register(
        &mut self,
        registry: &Registry,
        stream: Token,
        datagrams: Token,
    ) -> io::Result<()> {
        self.stream.register(registry, stream)?;
        match &mut self.datagrams {
            Some(socket) => socket.register(registry, datagrams),
            None => Ok(()),
        }
    }

    /// Takes the sockets out of the registry again. One that was closed has left by itself.
    ///
    /// # Errors
    /// The system's.
    pub fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        self.stream.deregister(registry)?;
        match &mut self.datagrams {
            Some(socket) => socket.deregister(registry),
            None => Ok(()),
        }
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

    /// Leaves. The session has ended when this returns, which the next poll tells; the connection
    /// closes when the server has closed, at most a second later ([`Driver::is_closed`]).
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

    /// Whether the session is over and the connection closed: nothing is due any more.
    pub fn is_closed(&self) -> bool {
        matches!(self.state(), State::Ended(_)) && self.stream.is_closed()
    }

    /// Counters by name: the client's, and what the system did to its datagrams.
    pub fn stats(&self) -> Vec<(&'static str, u64)> {
        let mut stats = self.client.stats();
        if let Some(datagrams) = &self.datagrams {
            stats.extend(datagrams.stats());
        }
        stats
    }
}

/// The parts of a poll.
impl Driver {
    /// Looks after the connection: whether it stands, what waits to be written, when it is to go.
    fn advance(&mut self, now: Time, on: &mut dyn FnMut(Notice<'_>)) {
        match self.stream.advance(now) {
            Progress::None => {}
            Progress::Established(peer) => self.feed(now, Input::Opened { conn: CONN, peer }, on),
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
            let Some(datagrams) = &mut self.datagrams else {
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
            match self.stream.read(&mut buffer) {
                stream::Read::Nothing => return true,
                stream::Read::Over => {
                    self.feed(now, Input::Closed { conn: CONN }, on);
                    return true;
                }
                stream::Read::Bytes(len) => {
                    let (conn, bytes) = (CONN, &buffer[..len]);
                    self.feed(now, Input::Stream { conn, bytes }, on);
                }
            }
        }
        false
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
                    if let Some(datagrams) = &mut self.datagrams {
                        datagrams.send(path.remote, bytes);
                    }
                }
                Effect::Stream { bytes, .. } => self.stream.write(bytes),
                Effect::Close { how, .. } => self.stream.close(how, now),
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
            timers.into_iter().chain(self.stream.deadline()).min()
        };
        self.wait = due.map(|due| Duration::from_millis(due.since(now).min(WAIT_MAX_MS)));
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}
