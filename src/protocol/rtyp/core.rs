//! The service without its game: sessions, games, and what every part of the policy shares.

use std::collections::VecDeque;

use super::counters::{Count, Counters};
use super::games::{Games, Seat};
use super::session::{Bound, Cause, Data, Stage, due};
use super::wire::{self, Reason, event, kind};
use crate::engine::bucket::Rate;
use crate::engine::table::Engine;
use crate::engine::{Close, Env, Key, Player, Time};

/// What a client's events may cost the server: bodies a second, and at once.
const BODIES: Rate = Rate::per_second(8 * 1024, 8 * 1024);
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
    /// Who left and the game has not heard of.
    pub left: VecDeque<(Player, Reason)>,
    /// Who may have something to be sent when the call ends.
    touched: Vec<Key>,
    /// Who has more events waiting than may.
    overflowed: Vec<Key>,
    scratch: Vec<u8>,
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
    pub fn new(session_rate: u64, events_rate: u64) -> Self {
        Self {
            traffic: (session_rate > 0).then(|| Rate::per_second(session_rate, session_rate)),
            events: Rate::per_second(events_rate, EVENTS_BURST),
            bodies: BODIES,
        }
    }
}

impl Core {
    pub fn new(service: u8, udp_port: u16, games: u32, rates: Rates) -> Self {
        Self {
            service,
            udp_port,
            engine: Engine::default(),
            games: Games::new(games),
            counters: Counters::default(),
            rates,
            is_stopping: false,
            left: VecDeque::new(),
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

    /// Ends a session: the one way out. Number, name, token and endpoint are free when this
    /// returns; the client is told if the server ends it, and the others if it was bound.
    pub fn end(&mut self, env: &mut Env<'_>, key: Key, cause: Cause) {
        let Some(session) = self.engine.end(key) else {
            return;
        };
        let seat = session.data.seat;
        self.counters.add(ended(cause));
        self.games.leave(seat);
        if let Some(conn) = session.conn() {
            // Who was not let in yet is not told of an end.
            if let Cause::Server(reason) = cause
                && !matches!(session.data.stage, Stage::Asked)
            {
                let logout = wire::ToClient::Logout {
                    reason: reason.code(),
                };
                env.out.stream(conn, |w| logout.write(w));
            }
            env.out.close(conn, Close::Drain);
        }
        if session.data.is_bound() {
            let reason = cause.reason();
            self.left.push_back((self.player(key, seat), reason));
            for other in self.players(seat.game, None) {
                self.push(other, event::PLAYER_LEFT, &[&[seat.number, reason.code()]]);
            }
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
