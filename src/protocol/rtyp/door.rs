//! What both doors share: a newcomer is judged, the game is asked, and it enters or does not.

use std::net::IpAddr;

use super::Service;
use super::core::{Core, News};
use super::counters::Count;
use super::games::Seat;
use super::session::{Bound, Cause, Data, Door, Ghost, Stage, Tokens, due};
use super::wire::{self, PlayerToken, Reason, Reject, SessionToken, ToClient};
use crate::engine::table::Session;
use crate::engine::{Conn, Credit, Env, Event, Key, Path, Ticket, Time, Verdict, entropy};
use crate::guard::limit::{Refused, Visit};
use crate::guard::network::network;

/// From LoginAccepted to the bound endpoint.
const BIND_MS: u64 = 10_000;
/// For the game to answer about a newcomer.
const ANSWER_MS: u64 = 4_000;
/// A bound session that was silent for longer than this is a ghost.
const GHOST_MS: u64 = 3_000;
/// Draws of a token that is not taken. One in 2^32 is taken by each player, so a second draw is
/// rare and a fourth says that the generator is broken.
const TOKEN_DRAWS: usize = 4;

/// Somebody who wants to enter.
pub struct Newcomer<'a> {
    /// Raw.
    pub name: &'a [u8],
    /// The game it wants to enter; empty: any.
    pub room: &'a [u8],
    /// The address it has proven.
    pub ip: IpAddr,
    pub door: Door,
    /// The connection it came by, at the TCP door.
    pub conn: Option<Conn>,
    /// The ghost at its very endpoint.
    pub ghost: Option<Key>,
}

impl Service {
    /// Judges a newcomer, and if all is well puts it to the game.
    pub(super) fn knock(
        &mut self,
        env: &mut Env<'_>,
        newcomer: &Newcomer<'_>,
    ) -> Result<(), Reject> {
        let name = wire::name(newcomer.name).ok_or(Reject::BadName)?;
        let (key, seat) = self.core.admit(env, newcomer, name)?;
        let ticket = Ticket {
            service: self.core.service,
            key,
            question: 0,
        };
        let player = self.core.player(key, seat);
        self.tell(
            env,
            Event::Connecting {
                ticket,
                player,
                name,
                ip: newcomer.ip,
            },
        );
        Ok(())
    }
}

/// From the newcomer to the question.
impl Core {
    /// Gives the newcomer a seat, tokens and a session that waits for the game's word.
    fn admit(
        &mut self,
        env: &mut Env<'_>,
        newcomer: &Newcomer<'_>,
        name: &str,
    ) -> Result<(Key, Seat), Reject> {
        let wanted = self.games.wanted(newcomer.room)?;
        let mut ghosts = Vec::new();
        let seat = self.seat(env.now, newcomer, name, wanted, &mut ghosts)?;
        let visit = self.enter(env.now, newcomer, &mut ghosts)?;
        let heirless = ghosts.clone();
        let data = Data {
            name: name.into(),
            seat,
            ip: newcomer.ip,
            visit,
            ghosts,
            heir: None,
            stage: Stage::Asked(newcomer.door),
        };
        let Some(key) = self.open(env, newcomer, data) else {
            self.refuse(env, newcomer.ip, Count::NoEntropy);
            return Err(Reject::Refused);
        };
        for ghost in &heirless {
            if let Some(session) = self.engine.get_mut(ghost.key) {
                session.data.heir = Some(key);
            }
        }
        if !heirless.iter().any(|ghost| ghost.gives_seat) {
            self.games.take(seat, key);
        }
        self.engine.arm(key, due::ANSWER, env.now + ANSWER_MS);
        Ok((key, seat))
    }

    /// The seat of the newcomer's own ghost, or else a free one.
    fn seat(
        &self,
        now: Time,
        newcomer: &Newcomer<'_>,
        name: &str,
        wanted: Option<u32>,
        ghosts: &mut Vec<Ghost>,
    ) -> Result<Seat, Reject> {
        // The ghost at its endpoint may have come there from another address.
        let at_endpoint = newcomer
            .ghost
            .and_then(|key| Some((key, self.engine.get(key)?)));
        let mut ghosts_there = self.ghosts(now, newcomer.ip).chain(at_endpoint);
        let own = ghosts_there.find(|(_, session)| {
            let Data {
                name: its_name,
                seat,
                ..
            } = &session.data;
            **its_name == *name && wanted.is_none_or(|game| game == seat.game)
        });
        let at_endpoint = newcomer
            .ghost
            .filter(|key| own.is_none_or(|(own, _)| own != *key));
        ghosts.extend(at_endpoint.map(|key| Ghost {
            key,
            gives_seat: false,
        }));
        if let Some((key, session)) = own {
            ghosts.push(Ghost {
                key,
                gives_seat: true,
            });
            return Ok(session.data.seat);
        }
        let has_name = |key| {
            self.engine
                .get(key)
                .is_some_and(|it| *it.data.name == *name)
        };
        self.games.place(wanted, has_name)
    }

    /// The limits of the newcomer's address. Where that of sessions would refuse it, the ghost of
    /// the address that is silent the longest makes room.
    fn enter(
        &mut self,
        now: Time,
        newcomer: &Newcomer<'_>,
        ghosts: &mut Vec<Ghost>,
    ) -> Result<Visit, Reject> {
        let ip = newcomer.ip;
        if ghosts.is_empty() {
            match self.entrance.enter(now, ip) {
                Err(Refused::Sessions) => {
                    let oldest = self
                        .ghosts(now, ip)
                        .min_by_key(|(_, session)| session.heard);
                    let (key, _) = oldest.ok_or(Reject::TooMany)?;
                    ghosts.push(Ghost {
                        key,
                        gives_seat: false,
                    });
                }
                entered => return entered.map_err(|_| Reject::TooMany),
            }
        }
        self.entrance.attempt(now, ip).map_err(|_| Reject::TooMany)
    }

    /// The ghosts of an address, but for those that a newcomer is about to end.
    fn ghosts(&self, now: Time, ip: IpAddr) -> impl Iterator<Item = (Key, &Session<Data>)> {
        let there = self.engine.sessions_from(network(ip)).iter();
        there
            .filter_map(|key| Some((*key, self.engine.get(*key)?)))
            .filter(move |(_, session)| is_ghost(now, session) && !self.has_heir(session))
    }

    /// Whether the game is asked about a newcomer that will end the session.
    pub fn has_heir(&self, session: &Session<Data>) -> bool {
        let heir = session.data.heir;
        heir.is_some_and(|heir| self.engine.get(heir).is_some())
    }

    /// Whether a bound session is a ghost now.
    pub fn is_ghost(&self, now: Time, key: Key) -> bool {
        self.engine
            .get(key)
            .is_some_and(|session| is_ghost(now, session))
    }

    fn open(&mut self, env: &mut Env<'_>, newcomer: &Newcomer<'_>, data: Data) -> Option<Key> {
        let origin = network(newcomer.ip);
        let token = match newcomer.door {
            Door::Login => self.draw(env, draw_short)?,
            Door::Hello(_) => self.draw(env, draw_long)?,
        };
        let public = match newcomer.door {
            Door::Login => None,
            Door::Hello(_) => Some(self.draw(env, draw_short)?),
        };
        let key = self
            .engine
            .open(token, newcomer.conn, origin, env.now, data)?;
        if let Some(public) = public {
            self.engine.add_token(key, public);
        }
        if let Door::Hello(path) = newcomer.door {
            // Not if a ghost has the endpoint: it ends first.
            self.engine.bind(key, path.remote);
        }
        Some(key)
    }

    /// A token that no live session has; `None` if the generator fails.
    fn draw(&self, env: &mut Env<'_>, draw: fn(&mut Env<'_>) -> Option<u64>) -> Option<u64> {
        for _ in 0..TOKEN_DRAWS {
            match draw(env) {
                Some(0) => {}
                Some(token) if self.engine.with_token(token).is_none() => return Some(token),
                Some(_) => {}
                None => break,
            }
        }
        None
    }
}

/// From the answer to the session, or to none.
impl Core {
    /// The game has answered about a newcomer. Returns whether anybody waited for it.
    pub fn answer(&mut self, env: &mut Env<'_>, key: Key, verdict: Verdict) -> bool {
        let Some(session) = self.engine.get(key) else {
            return false;
        };
        let Stage::Asked(door) = session.data.stage else {
            return false;
        };
        let entered = match verdict {
            Verdict::Admit => self.end_ghosts(env, key),
            Verdict::Refuse | Verdict::Busy => Err(Reject::Refused),
        };
        match (entered, door) {
            (Err(reason), _) => self.reject(env, key, reason),
            (Ok(()), Door::Login) => self.accept_login(env, key),
            (Ok(()), Door::Hello(path)) => self.accept_hello(env, key, path),
        }
        true
    }

    /// Ends the ghosts in whose place the newcomer comes, if they still are ghosts.
    fn end_ghosts(&mut self, env: &mut Env<'_>, key: Key) -> Result<(), Reject> {
        let Some(session) = self.engine.get(key) else {
            return Ok(());
        };
        let ghosts = session.data.ghosts.clone();
        let is_alive = |ghost: &&Ghost| {
            let session = self.engine.get(ghost.key);
            session.is_some_and(|session| !is_ghost(env.now, session))
        };
        if let Some(alive) = ghosts.iter().find(is_alive) {
            return Err(alive.stands_for());
        }
        for ghost in ghosts {
            // It may have ended by itself.
            if self.engine.get(ghost.key).is_some() {
                self.counters.add(Count::GhostsEnded);
                self.end(env, ghost.key, Cause::Server(Reason::TimedOut));
            }
        }
        let Some(session) = self.engine.get_mut(key) else {
            return Ok(());
        };
        let settled = self.entrance.settle(&mut session.data.visit);
        settled.map_err(|_| Reject::TooMany)
    }

    /// The session is over, and was a ghost if it has an heir: that gets its number and endpoint,
    /// before anybody else can.
    pub fn pass_on(&mut self, key: Key, seat: Seat, heir: Option<Key>) {
        let Some(heir) = heir else { return };
        let Some(session) = self.engine.get(heir) else {
            return;
        };
        let ghosts = &session.data.ghosts;
        let gives_seat = ghosts.iter().any(|it| it.key == key && it.gives_seat);
        let Stage::Asked(door) = session.data.stage else {
            return;
        };
        if gives_seat {
            self.games.take(seat, heir);
        }
        if let Door::Hello(path) = door {
            self.engine.bind(heir, path.remote);
        }
    }

    fn accept_login(&mut self, env: &mut Env<'_>, key: Key) {
        let Some(session) = self.engine.get_mut(key) else {
            return;
        };
        let Some(conn) = session.conn() else { return };
        session.data.stage = Stage::Accepted;
        let accepted = ToClient::LoginAccepted {
            session: session.token() as u32,
            player: session.data.seat.number,
            udp_port: self.udp_port,
        };
        env.out.stream(conn, |w| accepted.write(w));
        env.out.settled(conn);
        self.counters.add(Count::Logins);
        self.engine.disarm(key, due::ANSWER);
        self.engine.arm(key, due::SILENCE, env.now + BIND_MS);
    }

    fn accept_hello(&mut self, env: &mut Env<'_>, key: Key, path: Path) {
        self.engine.bind(key, path.remote);
        let Some(session) = self.engine.get_mut(key) else {
            return;
        };
        let Some(public) = session.alias() else {
            return;
        };
        let tokens = Tokens::Own {
            secret: SessionToken(session.token()),
            public: PlayerToken(public as u32),
        };
        let number = session.data.seat.number;
        let mut bound = Bound::new(path, tokens, false, env.now);
        bound.prove(env.now);
        bound.send_hello(env, number);
        self.counters.add(Count::Logins);
        self.engine.disarm(key, due::ANSWER);
        self.play(env, key, bound);
    }

    /// The session has its endpoint and plays: everybody hears of it.
    pub fn play(&mut self, env: &mut Env<'_>, key: Key, mut bound: Bound) {
        bound.ping(env);
        let ping_due = bound.ping_due(env.now);
        let Some(session) = self.engine.get_mut(key) else {
            return;
        };
        session.heard = env.now;
        session.data.stage = Stage::Bound(bound);
        let (seat, name) = (session.data.seat, session.data.name.clone());
        self.engine
            .arm(key, due::SILENCE, env.now + super::play::SILENCE_MS);
        self.engine.arm(key, due::PING, ping_due);
        self.announce(key);
        let player = self.player(key, seat);
        self.news.push_back(News::Joined(player, name));
    }

    /// Ends a session that the game did not admit: nobody has heard of it.
    pub fn reject(&mut self, env: &mut Env<'_>, key: Key, reason: Reject) {
        let Some(session) = self.engine.end(key) else {
            return;
        };
        self.games.leave(session.data.seat, key);
        let (ip, conn) = (session.data.ip, session.conn());
        match (session.data.stage, conn) {
            (Stage::Asked(Door::Hello(path)), _) => {
                self.say_hello_rejected(env, path, Credit::Proven, reason);
            }
            (_, Some(conn)) => self.say_login_rejected(env, conn, ip, reason),
            _ => {}
        }
    }

    /// Counts a rejection.
    pub fn count_rejected(&mut self, env: &mut Env<'_>, ip: IpAddr, reason: Reject) {
        let count = match reason {
            Reject::ServerFull => Count::RejectedServerFull,
            Reject::BadVersion => Count::RejectedBadVersion,
            Reject::BadName => Count::RejectedBadName,
            Reject::NameTaken => Count::RejectedNameTaken,
            Reject::GameStarted => Count::RejectedGameStarted,
            Reject::TooMany => Count::RejectedTooMany,
            Reject::NoSuchGame => Count::RejectedNoSuchGame,
            Reject::Refused => Count::RejectedRefused,
        };
        self.refuse(env, ip, count);
    }
}

fn is_ghost(now: Time, session: &Session<Data>) -> bool {
    session.data.is_bound() && now.since(session.heard) > GHOST_MS
}

fn draw_short(env: &mut Env<'_>) -> Option<u64> {
    entropy::u32(env.dice).ok().map(u64::from)
}

/// Above all short ones, so that no secret is ever looked like a public token.
fn draw_long(env: &mut Env<'_>) -> Option<u64> {
    entropy::u64(env.dice)
        .ok()
        .map(|token| if token >> 32 == 0 { 0 } else { token })
}
