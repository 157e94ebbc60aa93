//! The service without its game: sessions, games, and what every part of the policy shares.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use super::Settings;
use super::counters::{Count, Counters};
use super::games::{Games, Seat};
use super::session::{Bound, Cause, Data, Door, Stage, due};
use super::wire::{HEADER_BYTES, Payload, Reason, ToClient, event, kind};
use crate::bytes::Writer;
use crate::engine::bucket::Rate;
use crate::engine::table::Engine;
use crate::engine::{Close, Conn, Env, Key, Player, Time};
use crate::guard::budget::{Challenges, WrongTokens};
use crate::guard::cookie::Cookies;
use crate::guard::limit::Entrance;
use crate::guard::limits::{Limit, Limits};

/// What a client's events may cost the server: bodies a second, and at once.
const BODIES: Rate = Rate::per_second(8 * 1024, 8 * 1024);
/// A bye is said so often …
const BYES: usize = 3;
/// … with this time between.
const BYE_EVERY_MS: u64 = 100;
/// Events at once.
const EVENTS_BURST: u64 = 32;

/// Everything but the game.
pub struct Core {
    pub service: u8,
    /// The port players are told.
    pub udp_port: u16,
    pub engine: Engine<Data>,
    pub games: Games,
    pub counters: Counters,
    pub rates: Rates,
    /// No newcomers any more.
    pub is_stopping: bool,
    /// Who joined or left and the game has not heard of.
    pub news: VecDeque<News>,
    /// Sessions and attempts per address.
    pub entrance: Entrance,
    /// Drawn for the first hello.
    pub cookies: Option<Cookies>,
    pub challenges: Challenges,
    pub wrong_tokens: WrongTokens,
    /// Who may have something to be sent when the call ends.
    touched: Vec<Key>,
    /// Who has more events waiting than may.
    overflowed: Vec<Key>,
    scratch: Vec<u8>,
}

/// What the game has not heard yet.
pub enum News {
    Joined(Player, Box<str>),
    Left(Player, Reason),
}

/// What a client may send.
pub struct Rates {
    /// Data, Ping and Pong; `None` if there is no limit.
    pub traffic: Option<Rate>,
    pub events: Rate,
    pub bodies: Rate,
}

impl Rates {
    /// From the limits `session-rate` (0: none) and `events-rate`.
    fn new(limits: &Limits) -> Self {
        let session_rate = limits.get(Limit::SessionRate);
        let events_rate = limits.get(Limit::EventsRate);
        Self {
            traffic: (session_rate > 0).then(|| Rate::per_second(session_rate, session_rate)),
            events: Rate::per_second(events_rate, EVENTS_BURST),
            bodies: BODIES,
        }
    }
}

impl Core {
    pub fn new(settings: &Settings) -> Self {
        let limits = &settings.limits;
        Self {
            service: settings.service,
            udp_port: settings.udp_port,
            engine: Engine::default(),
            games: Games::new(settings.games, &settings.names),
            counters: Counters::default(),
            rates: Rates::new(limits),
            is_stopping: false,
            news: VecDeque::new(),
            entrance: settings.addresses.entrance(limits, settings.limit_loopback),
            cookies: None,
            challenges: Challenges::new(limits),
            wrong_tokens: WrongTokens::new(limits),
            touched: Vec::new(),
            overflowed: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// The handle a game knows a session by.
    pub fn player(&self, key: Key, seat: Seat) -> Player {
        Player {
            service: self.service,
            key,
            game: seat.game,
            number: seat.number,
            stay: 0,
        }
    }

    /// Counts what a peer did, and warns of it if an operator may want to know.
    pub fn refuse(&mut self, env: &mut Env<'_>, about: IpAddr, count: Count) {
        self.counters.add(count);
        if count.is_warning() {
            env.out.warn(about, count.name());
        }
    }

    /// The conversation of a bound session.
    pub fn bound(&mut self, key: Key) -> Option<&mut Bound> {
        self.engine.get_mut(key)?.data.bound()
    }

    /// Notes that the session may have something to be sent when the call ends.
    pub fn touch(&mut self, key: Key) {
        let Some(bound) = self.bound(key) else { return };
        if !std::mem::replace(&mut bound.is_touched, true) {
            self.touched.push(key);
        }
    }

    /// Queues an event for a bound session. A session that has too many waiting is ended before
    /// the call is over.
    pub fn push(&mut self, key: Key, kind: u8, parts: &[&[u8]]) {
        let Some(bound) = self.bound(key) else { return };
        match bound.channel.push(kind, parts) {
            Ok(()) => self.touch(key),
            Err(_) if self.overflowed.contains(&key) => {}
            Err(_) => self.overflowed.push(key),
        }
    }

    /// The bound sessions of a game by number, but for `except`.
    pub fn players(&self, game: u32, except: Option<Key>) -> impl Iterator<Item = Key> + use<> {
        let is_bound = |key: &Key| self.engine.get(*key).is_some_and(|s| s.data.is_bound());
        let seats = self.games.seats(game);
        let there = seats.map(|seat| seat.filter(|key| Some(*key) != except && is_bound(key)));
        there.into_iter().flatten()
    }

    /// Starts a game and tells everyone in it, once.
    pub fn start(&mut self, game: u32) {
        if self.games.start(game) {
            for key in self.players(game, None) {
                self.push(key, event::GAME_STARTED, &[]);
            }
        }
    }

    /// Ends a session: the one way out. Number, name, tokens and endpoint are free when this
    /// returns; the client is told if the server ends it, and the others if it was bound.
    pub fn end(&mut self, env: &mut Env<'_>, key: Key, cause: Cause) {
        let Some(session) = self.engine.end(key) else {
            return;
        };
        let conn = session.conn();
        let Data {
            seat,
            stage,
            ip,
            heir,
            ..
        } = session.data;
        self.games.leave(seat, key);
        self.refuse(env, ip, ended(cause));
        if let Some(conn) = conn {
            say_logout(env, conn, &stage, cause);
        }
        let Stage::Bound(bound) = stage else { return };
        let reason = cause.reason();
        let player = self.player(key, seat);
        self.news.push_back(News::Left(player, reason));
        for other in self.players(seat.game, None) {
            self.push(other, event::PLAYER_LEFT, &[&[seat.number, reason.code()]]);
        }
        // Where a newcomer is about to have a session a farewell would be taken for its own.
        if let (None, Cause::Server(reason)) = (conn, cause)
            && !self.is_at(heir, bound.path.remote)
        {
            self.say_bye(env, bound, reason);
        }
        self.pass_on(key, seat, heir);
    }

    /// Whether a newcomer says hello from this endpoint.
    fn is_at(&self, newcomer: Option<Key>, endpoint: SocketAddr) -> bool {
        let session = newcomer.and_then(|key| self.engine.get(key));
        session.is_some_and(|session| {
            matches!(session.data.stage, Stage::Asked(Door::Hello(path)) if path.remote == endpoint)
        })
    }

    /// Tells a player of version 2 that the server ended its session: three times, since nothing
    /// acknowledges it, and only as often as its endpoint's credit pays for.
    fn say_bye(&mut self, env: &mut Env<'_>, mut bound: Bound, reason: Reason) {
        let bye = Payload::ServerBye(reason.code());
        let affordable = bound.proof.room(env.now) / (HEADER_BYTES + 1);
        let byes = (0..BYES.min(affordable)).map(|_| {
            let mut bytes = Vec::with_capacity(HEADER_BYTES + 1);
            let mut writer = Writer::new(&mut bytes);
            bound.channel.header(kind::SERVER_BYE).write(&mut writer);
            bye.write(&mut writer);
            bound.channel.sent();
            bytes.into_boxed_slice()
        });
        let byes: Vec<Box<[u8]>> = byes.collect();
        if !byes.is_empty() {
            self.engine
                .farewell(env.out, bound.path, byes, BYE_EVERY_MS, env.now);
        }
    }

    /// Sends what is due to everyone who was touched.
    pub fn flush(&mut self, env: &mut Env<'_>) {
        loop {
            if let Some(key) = self.overflowed.pop() {
                self.end(env, key, Cause::Server(Reason::TimedOut));
            } else if let Some(key) = self.touched.pop() {
                self.flush_session(env, key);
            } else {
                return;
            }
        }
    }

    fn flush_session(&mut self, env: &mut Env<'_>, key: Key) {
        let Some(bound) = self
            .engine
            .get_mut(key)
            .and_then(|session| session.data.bound())
        else {
            return;
        };
        bound.is_touched = false;
        let now = env.now;
        let all_went = bound.send_events(env, &mut self.scratch);
        if bound.channel.ack_due(now) <= now && !bound.send(env, kind::ACK, |_| ()) {
            bound.channel.forgive();
        }
        // Events that cannot be paid for wait for the endpoint's next datagram, not for a time.
        let events_due = if all_went {
            bound.channel.events_due(now)
        } else {
            Time::NEVER
        };
        let (stuck_at, ack_due) = (bound.channel.stuck_at(), bound.channel.ack_due(now));
        self.engine.arm(key, due::EVENTS, events_due);
        self.engine.arm(key, due::STUCK, stuck_at);
        self.engine.arm(key, due::ACK, ack_due);
    }
}

/// Ends the conversation over TCP. Who was not let in yet is not told why.
fn say_logout(env: &mut Env<'_>, conn: Conn, stage: &Stage, cause: Cause) {
    if let Cause::Server(reason) = cause
        && !matches!(stage, Stage::Asked(_))
    {
        let reason = reason.code();
        let logout = ToClient::Logout { reason };
        env.out.stream(conn, |w| logout.write(w));
    }
    env.out.close(conn, Close::Drain);
}

fn ended(cause: Cause) -> Count {
    match cause {
        Cause::Left | Cause::Server(Reason::Left) => Count::EndedLeft,
        Cause::MalformedStream => Count::EndedMalformedStream,
        Cause::Server(Reason::Shutdown) => Count::EndedShutdown,
        Cause::Server(Reason::TimedOut) => Count::EndedTimedOut,
        Cause::Server(Reason::ProtocolError) => Count::EndedProtocolError,
        Cause::Server(Reason::Kicked) => Count::EndedKicked,
    }
}
