//! Datagrams at the server: binding, and what a bound player may say, in the document's order.

use std::net::IpAddr;

use super::Service;
use super::core::Core;
use super::counters::Count;
use super::session::{Bound, Cause, Data, Stage, Tokens, due};
use super::wire::{
    Events, FromClient, FromServer, HEADER_BYTES, Header, HeaderError, Payload, Reason, Session,
    SharedToken, event, kind,
};
use crate::engine::lane::carried::{Admission, Receiver};
use crate::engine::seq::Arrival;
use crate::engine::{Env, Event, Key, Path, source};

/// A bound session from which nothing valid came for so long is over.
pub const SILENCE_MS: u64 = 10_000;

impl Service {
    /// A datagram came.
    pub(super) fn datagram(&mut self, env: &mut Env<'_>, path: Path, bytes: &[u8]) {
        if !source::is_plausible(&path) {
            return self
                .core
                .refuse(env, path.remote.ip(), Count::IgnoredSource);
        }
        let ip = path.remote.ip();
        let (header, payload) = match Header::from_client(bytes) {
            Ok(read) => read,
            Err(error) => return self.core.refuse(env, ip, ignored(error)),
        };
        let size = bytes.len();
        let done = match (header.session, self.core.engine.at(&path.remote)) {
            (Session::Secret(_), _) if header.kind == kind::CLIENT_HELLO => {
                self.hello(env, path, size, payload)
            }
            (_, Some(key)) => self.heard(env, key, path, size, &header, payload),
            (Session::Secret(_), None) => self.core.roam(env, path, size, &header, payload),
            (_, None) => self.core.bind(env, path, &header, payload),
        };
        if let Err(count) = done {
            self.core.refuse(env, ip, count);
        }
    }

    /// A datagram from a bound endpoint.
    fn heard(
        &mut self,
        env: &mut Env<'_>,
        key: Key,
        path: Path,
        size: usize,
        header: &Header,
        payload: &[u8],
    ) -> Result<(), Count> {
        let Some(bound) = self.core.bound(key) else {
            return Err(Count::IgnoredUnbound);
        };
        if header.session != bound.token {
            return Err(Count::IgnoredWrongToken);
        }
        bound.proof.heard(env.now, size);
        let arrival = bound.channel.arrival(header.sequence);
        let is_connect = header.kind == kind::CONNECT && payload.is_empty();
        if is_connect && matches!(header.session, Session::Shared(_)) {
            if arrival == Arrival::New {
                self.core.valid(env, key, path, header);
                self.core.note(key, header);
            }
            return self.core.accept_again(env, key);
        }
        match arrival {
            Arrival::New => {}
            Arrival::Repeated => return Err(Count::IgnoredRepeated),
            Arrival::Old => return Err(Count::IgnoredOld),
        }
        match self.core.read(key, header, payload) {
            Some(payload) => {
                self.core.valid(env, key, path, header);
                self.payload(env, key, header, payload)
            }
            None => {
                self.core
                    .end(env, key, Cause::Server(Reason::ProtocolError));
                Ok(())
            }
        }
    }

    /// What a valid datagram carries.
    fn payload(
        &mut self,
        env: &mut Env<'_>,
        key: Key,
        header: &Header,
        payload: Payload<'_>,
    ) -> Result<(), Count> {
        match payload {
            Payload::Events(events) => self.events(env, key, header, &events),
            Payload::ClientBye(_) => {
                self.core.end(env, key, Cause::Left);
                Ok(())
            }
            payload => {
                self.core.note(key, header);
                self.core.pay_for(env, key, &payload)?;
                match payload {
                    Payload::Ping(nonce) => self.core.pinged(env, key, nonce),
                    Payload::Pong(nonce) => self.core.ponged(env, key, nonce),
                    Payload::Data(bytes) => {
                        let Some(session) = self.core.engine.get(key) else {
                            return Ok(());
                        };
                        let player = self.core.player(key, session.data.seat);
                        self.tell(env, Event::Data { player, bytes });
                    }
                    _ => {}
                }
                Ok(())
            }
        }
    }

    /// Takes the events of a datagram, all or none of them, and hands on those whose turn it is.
    fn events(
        &mut self,
        env: &mut Env<'_>,
        key: Key,
        header: &Header,
        events: &Events<'_>,
    ) -> Result<(), Count> {
        self.core.take_events(env, key, header, events)?;
        let Some(session) = self.core.engine.get_mut(key) else {
            return Ok(());
        };
        let seat = session.data.seat;
        let Some(bound) = session.data.bound() else {
            return Ok(());
        };
        // The game may do anything with the session meanwhile, even end it, so its lane is lent.
        let mut lane = std::mem::replace(&mut bound.channel.incoming, Receiver::new(0));
        let player = self.core.player(key, seat);
        for raw in events.clone() {
            lane.take(raw.id, raw.kind, raw.body, &mut |kind, body| {
                let Ok(said) = FromClient::read(kind, body) else {
                    return;
                };
                if self.core.bound(key).is_none() {
                    return;
                }
                let event = match said {
                    FromClient::Chat(text) => Event::Chat { player, text },
                    FromClient::Custom(body) => Event::Custom { player, body },
                    FromClient::Start => Event::Start { player },
                };
                self.tell(env, event);
            });
        }
        if let Some(bound) = self.core.bound(key) {
            bound.channel.incoming = lane;
        }
        Ok(())
    }
}

impl Core {
    /// Binds the endpoint to the session that a Connect names.
    fn bind(
        &mut self,
        env: &mut Env<'_>,
        path: Path,
        header: &Header,
        payload: &[u8],
    ) -> Result<(), Count> {
        let Session::Shared(token) = header.session else {
            return Err(Count::IgnoredUnbound);
        };
        if header.kind != kind::CONNECT || !payload.is_empty() {
            return Err(Count::IgnoredUnbound);
        }
        let key = self.accepted(env, path, token)?;
        if !self.engine.bind(key, path.remote) {
            return Err(Count::IgnoredBoundElsewhere);
        }
        self.counters.add(Count::Bindings);
        let by_address = self.ip(key) == Some(path.remote.ip());
        let mut bound = Bound::new(path, Tokens::Shared(token), by_address, env.now);
        bound.channel.note(header.sequence);
        bound.proof.heard(env.now, HEADER_BYTES + payload.len());
        bound.send(env, kind::ACCEPT, |_| ());
        self.play(env, key, bound);
        Ok(())
    }

    /// The session with this token, if it is to be bound and this may do it. Who guesses tokens
    /// at flood rates wins nothing: then only the address of the TCP connection binds.
    fn accepted(&mut self, env: &Env<'_>, path: Path, token: SharedToken) -> Result<Key, Count> {
        let key = self.engine.with_token(token.0.into());
        let stage = key
            .and_then(|key| self.engine.get(key))
            .map(|it| &it.data.stage);
        match (key, stage) {
            (Some(key), Some(Stage::Accepted)) => {
                let is_own = self.ip(key) == Some(path.remote.ip());
                if !is_own && self.wrong_tokens.is_exhausted(env.now) {
                    return Err(Count::IgnoredGuess);
                }
                Ok(key)
            }
            (Some(_), Some(Stage::Bound(_))) => Err(Count::IgnoredBoundElsewhere),
            _ => {
                self.wrong_tokens.count(env.now);
                Err(Count::IgnoredUnknownToken)
            }
        }
    }

    /// The address a session came from.
    fn ip(&self, key: Key) -> Option<IpAddr> {
        self.engine.get(key).map(|session| session.data.ip)
    }

    /// The session that a secret names.
    pub(super) fn secret_key(&self, header: &Header) -> Option<Key> {
        let Session::Secret(token) = header.session else {
            return None;
        };
        self.engine.with_token(token.0)
    }

    /// Tells a newly bound player who is there and whether the game runs, and the others of it.
    pub(super) fn announce(&mut self, key: Key) {
        let Some(session) = self.engine.get(key) else {
            return;
        };
        let (seat, name) = (session.data.seat, session.data.name.clone());
        for other in self.players(seat.game, Some(key)) {
            let Some(there) = self.engine.get(other) else {
                continue;
            };
            let (number, their_name) = (there.data.seat.number, there.data.name.clone());
            let they = FromServer::PlayerJoined {
                player: number,
                name: &their_name,
            };
            they.parts(|kind, parts| self.push(key, kind, parts));
            let it = FromServer::PlayerJoined {
                player: seat.number,
                name: &name,
            };
            it.parts(|kind, parts| self.push(other, kind, parts));
        }
        if self.games.is_running(seat.game) {
            self.push(key, event::GAME_STARTED, &[]);
        }
    }

    /// A Connect came again: the Accept was lost, or is on its way.
    fn accept_again(&mut self, env: &mut Env<'_>, key: Key) -> Result<(), Count> {
        let Some(bound) = self.bound(key) else {
            return Ok(());
        };
        if bound.send(env, kind::ACCEPT, |_| ()) {
            Ok(())
        } else {
            Err(Count::UnsentUnproven)
        }
    }

    /// What a new datagram says; `None` if no honest client sends it.
    pub(super) fn read<'a>(
        &mut self,
        key: Key,
        header: &Header,
        payload: &'a [u8],
    ) -> Option<Payload<'a>> {
        let version = header.session.version();
        let payload = Payload::read(version, header.kind, payload).ok()?;
        match &payload {
            Payload::Connect => None,
            _ if !payload.is_for_server() => None,
            Payload::Events(events) => {
                let all_read = events
                    .clone()
                    .all(|e| FromClient::read(e.kind, e.body).is_ok());
                let lane = &self.bound(key)?.channel.incoming;
                let admission = lane.admits(events.clone().map(|e| (e.id, e.body.len())));
                (all_read && admission != Admission::TooFar).then_some(payload)
            }
            _ => Some(payload),
        }
    }

    /// A valid datagram came: it refreshes the timeout, and its acknowledgements count.
    fn valid(&mut self, env: &mut Env<'_>, key: Key, path: Path, header: &Header) {
        let Some(session) = self.engine.get_mut(key) else {
            return;
        };
        session.heard = env.now;
        let Some(bound) = session.data.bound() else {
            return;
        };
        bound.path = path;
        let is_event_acknowledged = bound.channel.acknowledged(env.now, header);
        // What an unproven endpoint's budget held back may go now that it spoke.
        if is_event_acknowledged || !bound.proof.holds(env.now) {
            self.touch(key);
        }
    }

    /// The datagram is received: it will be acknowledged.
    fn note(&mut self, key: Key, header: &Header) {
        let Some(bound) = self.bound(key) else { return };
        if bound.channel.note(header.sequence) {
            self.touch(key);
        }
    }

    /// Charges a session for Data, Ping and Pong. What is too much loses its payload only.
    fn pay_for(&mut self, env: &Env<'_>, key: Key, payload: &Payload<'_>) -> Result<(), Count> {
        if !matches!(
            payload,
            Payload::Data(_) | Payload::Ping(_) | Payload::Pong(_)
        ) {
            return Ok(());
        }
        let Some(rate) = self.rates.traffic else {
            return Ok(());
        };
        let Some(bound) = self.bound(key) else {
            return Ok(());
        };
        let is_paid = bound.traffic.take(env.now, rate);
        is_paid.then_some(()).ok_or(Count::IgnoredSessionRate)
    }

    /// Answers a Ping; to an endpoint that is not proven by a question of our own.
    fn pinged(&mut self, env: &mut Env<'_>, key: Key, nonce: u32) {
        let Some(bound) = self.bound(key) else { return };
        let is_answered = if bound.proof.holds(env.now) {
            bound.send(env, kind::PONG, |w| w.u32_le(nonce))
        } else {
            bound.ping(env)
        };
        if !is_answered {
            self.counters.add(Count::UnsentUnproven);
        }
    }

    /// Takes an answer to a Ping of ours.
    fn ponged(&mut self, env: &mut Env<'_>, key: Key, nonce: u32) {
        let Some(bound) = self.bound(key) else { return };
        bound.pong(env.now, nonce);
        let ping_due = bound.ping_due(env.now);
        self.engine.arm(key, due::PING, ping_due);
        self.touch(key);
    }

    /// Judges whether the events of a datagram are taken, and if so notes it as received.
    fn take_events(
        &mut self,
        env: &Env<'_>,
        key: Key,
        header: &Header,
        events: &Events<'_>,
    ) -> Result<(), Count> {
        let (events_rate, bodies_rate) = (self.rates.events, self.rates.bodies);
        let Some(bound) = self.bound(key) else {
            return Ok(());
        };
        let lane = &bound.channel.incoming;
        let (fresh, bytes) = match lane.admits(events.clone().map(|e| (e.id, e.body.len()))) {
            Admission::Take { fresh, fresh_bytes } => (fresh as u64, fresh_bytes as u64),
            Admission::Later | Admission::TooFar => return Err(Count::IgnoredEventsHeld),
        };
        if fresh > 0 {
            let now = env.now;
            if bound.events.is_empty(now, events_rate) || bound.bodies.is_empty(now, bodies_rate) {
                return Err(Count::IgnoredEventsRate);
            }
            bound.events.charge(now, events_rate, fresh);
            bound.bodies.charge(now, bodies_rate, bytes);
        }
        bound.channel.note(header.sequence);
        bound.channel.owe(env.now);
        self.touch(key);
        Ok(())
    }

    /// A deadline of a session has come.
    pub(super) fn session_due(&mut self, env: &mut Env<'_>, key: Key, which: usize) {
        match which {
            due::SILENCE => self.silent(env, key),
            due::ROAM => self.tend_candidate(env, key),
            due::PING => {
                let Some(bound) = self.bound(key) else { return };
                if bound.is_ping_due(env.now) {
                    bound.ping(env);
                    bound.channel.rest();
                }
                let ping_due = bound.ping_due(env.now);
                self.engine.arm(key, due::PING, ping_due);
            }
            due::STUCK => {
                let Some(bound) = self.bound(key) else { return };
                let stuck_at = bound.channel.stuck_at();
                if stuck_at <= env.now {
                    self.end(env, key, Cause::Server(Reason::TimedOut));
                } else {
                    self.engine.arm(key, due::STUCK, stuck_at);
                }
            }
            _ => self.touch(key),
        }
    }

    /// Ends a session that was silent for too long, or looks again when it would be.
    fn silent(&mut self, env: &mut Env<'_>, key: Key) {
        let Some(session) = self.engine.get_mut(key) else {
            return;
        };
        let over_at = session.heard + SILENCE_MS;
        let Data { stage, .. } = &session.data;
        if matches!(stage, Stage::Bound(_)) && env.now < over_at {
            self.engine.arm(key, due::SILENCE, over_at);
        } else {
            self.end(env, key, Cause::Server(Reason::TimedOut));
        }
    }
}

fn ignored(error: HeaderError) -> Count {
    match error {
        HeaderError::Long => Count::IgnoredLong,
        HeaderError::Short => Count::IgnoredShort,
        HeaderError::Magic => Count::IgnoredMagic,
        HeaderError::Version => Count::IgnoredVersion,
    }
}
