//! Who exists: sessions and the links they came by, their indexes and their deadlines.
//!
//! A *link* is a transport peer, a *session* is a player. Indexes change only here, where sessions
//! come and go; [`Engine::end`] is the only removal, so from that moment the tokens and the endpoint
//! are free and every key is stale. What must still be said to somebody who is gone over UDP is a
//! *farewell*: a few datagrams for an endpoint, which know no session.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::net::{IpAddr, SocketAddr};

use super::deadlines::Deadlines;
use super::slots::{KEEP_EMPTY, Slots};
use super::wheel::{TimerId, Wheel};
use super::{Conn, Credit, Key, Outbox, Path, Time};

/// A player's stay, with whatever the protocol keeps about it in `data`.
#[derive(Debug)]
pub struct Session<S> {
    /// The protocol's own.
    pub data: S,
    /// When the last valid datagram came. Only stored; the timeout looks at it when it is due.
    pub heard: Time,
    conn: Option<Conn>,
    /// The address it is counted for.
    origin: IpAddr,
    token: u64,
    /// Another token by which it is known, so that no other session gets it.
    alias: Option<u64>,
    endpoint: Option<SocketAddr>,
    deadlines: Deadlines,
    /// The session's one entry in the wheel, not later than its earliest deadline.
    timer: Option<(TimerId, Time)>,
}

impl<S> Session<S> {
    /// The stream connection the session came by.
    pub fn conn(&self) -> Option<Conn> {
        self.conn
    }

    /// The token.
    pub fn token(&self) -> u64 {
        self.token
    }

    /// The second token.
    pub fn alias(&self) -> Option<u64> {
        self.alias
    }

    /// The endpoint it is bound to.
    pub fn endpoint(&self) -> Option<SocketAddr> {
        self.endpoint
    }
}

/// A stream connection that the driver has opened and not closed.
#[derive(Debug)]
struct Link {
    peer: SocketAddr,
    session: Option<Key>,
    /// The beginning of a message whose rest has not come; no heap while there is none.
    partial: Vec<u8>,
    timer: Option<TimerId>,
}

/// What is still to be said to an endpoint whose session is over.
#[derive(Debug)]
struct Farewell {
    path: Path,
    datagrams: VecDeque<Box<[u8]>>,
    every_ms: u64,
    timer: TimerId,
}

/// So many farewells are remembered; of what is beyond, only the first datagram is said.
const FAREWELLS_MAX: usize = 1024;

/// What a wheel entry stands for.
#[derive(Debug, Clone, Copy)]
enum Alarm {
    Session(Key),
    Link(Conn),
    Farewell(SocketAddr),
}

/// A deadline that has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// This deadline of this session, as the protocol numbers them.
    Session(Key, usize),
    /// The time a link had to become a session.
    Link(Conn),
    /// A farewell is to be said on by [`Engine::say_farewell`].
    Farewell(SocketAddr),
}

/// Sessions, links and their deadlines.
#[derive(Debug)]
pub struct Engine<S> {
    /// Each in a box of its own: a table that grows moves no sessions, one that has grown keeps
    /// little for those who left.
    sessions: Slots<Box<Session<S>>>,
    tokens: HashMap<u64, Key>,
    endpoints: HashMap<SocketAddr, Key>,
    /// The sessions of each address.
    origins: HashMap<IpAddr, Vec<Key>>,
    links: HashMap<Conn, Link>,
    farewells: HashMap<SocketAddr, Farewell>,
    wheel: Wheel<Alarm>,
}

impl<S> Default for Engine<S> {
    fn default() -> Self {
        Self {
            sessions: Slots::default(),
            tokens: HashMap::new(),
            endpoints: HashMap::new(),
            origins: HashMap::new(),
            links: HashMap::new(),
            farewells: HashMap::new(),
            wheel: Wheel::new(Time::ZERO),
        }
    }
}

/// Sessions.
impl<S> Engine<S> {
    /// A new session with this token, counted for the address `origin`. Returns `None`, and does
    /// nothing, if a live session has the token.
    pub fn open(
        &mut self,
        token: u64,
        conn: Option<Conn>,
        origin: IpAddr,
        now: Time,
        data: S,
    ) -> Option<Key> {
        if self.tokens.contains_key(&token) {
            return None;
        }
        let key = self.sessions.insert(Box::new(Session {
            data,
            heard: now,
            conn,
            origin,
            token,
            alias: None,
            endpoint: None,
            deadlines: Deadlines::default(),
            timer: None,
        }));
        self.tokens.insert(token, key);
        self.origins.entry(origin).or_default().push(key);
        if let Some(conn) = conn {
            self.settle(conn, key);
        }
        Some(key)
    }

    /// Gives the session a second token. Returns whether it did: not if it has one, or a live
    /// session has this token.
    pub fn add_token(&mut self, key: Key, token: u64) -> bool {
        if self.tokens.contains_key(&token) {
            return false;
        }
        let Some(session) = self.sessions.get_mut(key) else {
            return false;
        };
        if session.alias.is_some() {
            return false;
        }
        session.alias = Some(token);
        self.tokens.insert(token, key);
        true
    }

    /// Binds the session to an endpoint. Returns whether it did: not if it has one, or the
    /// endpoint has a session.
    pub fn bind(&mut self, key: Key, endpoint: SocketAddr) -> bool {
        if self.endpoints.contains_key(&endpoint) {
            return false;
        }
        let Some(session) = self.sessions.get_mut(key) else {
            return false;
        };
        if session.endpoint.is_some() {
            return false;
        }
        session.endpoint = Some(endpoint);
        self.endpoints.insert(endpoint, key);
        self.forget_farewell(&endpoint);
        true
    }

    /// Moves a bound session to another endpoint. Returns whether it did: not if that has a
    /// session.
    pub fn rebind(&mut self, key: Key, endpoint: SocketAddr) -> bool {
        let Some(session) = self.sessions.get_mut(key) else {
            return false;
        };
        let Some(old) = session.endpoint.take() else {
            return false;
        };
        if self.endpoints.contains_key(&endpoint) {
            session.endpoint = Some(old);
            return false;
        }
        self.endpoints.remove(&old);
        self.bind(key, endpoint)
    }

    /// The session that has this token.
    pub fn with_token(&self, token: u64) -> Option<Key> {
        self.tokens.get(&token).copied()
    }

    /// The session that is bound to this endpoint.
    pub fn at(&self, endpoint: &SocketAddr) -> Option<Key> {
        self.endpoints.get(endpoint).copied()
    }

    /// The session; `None` if it is over.
    pub fn get(&self, key: Key) -> Option<&Session<S>> {
        self.sessions.get(key).map(Box::as_ref)
    }

    /// The session; `None` if it is over.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut Session<S>> {
        self.sessions.get_mut(key).map(Box::as_mut)
    }

    /// Ends the session: the one way out. Token and endpoint are free and every key is stale from
    /// now on; its link is forgotten with it. `None` if it is over already.
    pub fn end(&mut self, key: Key) -> Option<Session<S>> {
        let session = self.sessions.remove(key)?;
        take(&mut self.tokens, &session.token);
        if let Some(alias) = session.alias {
            take(&mut self.tokens, &alias);
        }
        self.forget_origin(session.origin, key);
        if let Some(endpoint) = session.endpoint {
            take(&mut self.endpoints, &endpoint);
        }
        if let Some((timer, _)) = session.timer {
            self.wheel.cancel(timer);
        }
        if let Some(conn) = session.conn {
            self.forget(conn);
        }
        self.debug_check();
        Some(*session)
    }

    /// The sessions counted for this address.
    pub fn sessions_from(&self, origin: IpAddr) -> &[Key] {
        self.origins.get(&origin).map_or(&[], Vec::as_slice)
    }

    fn forget_origin(&mut self, origin: IpAddr, key: Key) {
        let Some(keys) = self.origins.get_mut(&origin) else {
            return;
        };
        keys.retain(|there| *there != key);
        if keys.is_empty() {
            take(&mut self.origins, &origin);
        }
    }

    /// All sessions, by slot.
    pub fn sessions(&self) -> impl Iterator<Item = (Key, &Session<S>)> {
        self.sessions.iter().map(|(key, session)| (key, &**session))
    }

    /// How many sessions there are.
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }
}

/// Links.
impl<S> Engine<S> {
    /// A connection was opened. It has until `deadline` to become a session.
    pub fn opened(&mut self, conn: Conn, peer: SocketAddr, deadline: Time) {
        let timer = Some(self.wheel.arm(Alarm::Link(conn), deadline));
        let link = Link {
            peer,
            session: None,
            partial: Vec::new(),
            timer,
        };
        if let Some(Link {
            timer: Some(stale), ..
        }) = self.links.insert(conn, link)
        {
            self.wheel.cancel(stale);
        }
    }

    /// Whether the connection is open and known.
    pub fn knows(&self, conn: Conn) -> bool {
        self.links.contains_key(&conn)
    }

    /// The other end of the connection.
    pub fn peer(&self, conn: Conn) -> Option<SocketAddr> {
        self.links.get(&conn).map(|link| link.peer)
    }

    /// The session that came by this connection.
    pub fn session_of(&self, conn: Conn) -> Option<Key> {
        self.links.get(&conn)?.session
    }

    /// Takes what came before on this connection and was not a whole message.
    pub fn take_partial(&mut self, conn: Conn) -> Vec<u8> {
        self.links
            .get_mut(&conn)
            .map(|link| std::mem::take(&mut link.partial))
            .unwrap_or_default()
    }

    /// Keeps the beginning of a message until its rest comes. The protocol bounds its length.
    pub fn keep_partial(&mut self, conn: Conn, bytes: &[u8]) {
        if let Some(link) = self.links.get_mut(&conn) {
            link.partial = bytes.to_vec();
        }
    }

    /// Forgets a connection that is closed, or about to be. A session that came by it stays.
    pub fn forget(&mut self, conn: Conn) {
        let Some(link) = take(&mut self.links, &conn) else {
            return;
        };
        if let Some(timer) = link.timer {
            self.wheel.cancel(timer);
        }
    }

    /// All connections that have not become sessions.
    pub fn strangers(&self) -> impl Iterator<Item = Conn> {
        self.links
            .iter()
            .filter(|(_, link)| link.session.is_none())
            .map(|(conn, _)| *conn)
    }

    /// The connection has become a session: its deadline is met.
    fn settle(&mut self, conn: Conn, key: Key) {
        let Some(link) = self.links.get_mut(&conn) else {
            return;
        };
        link.session = Some(key);
        if let Some(timer) = link.timer.take() {
            self.wheel.cancel(timer);
        }
    }
}

/// Farewells.
impl<S> Engine<S> {
    /// Says the first of `datagrams` to an endpoint, which has paid for it, and the others one
    /// every `every_ms`, unless it gets a session before.
    pub fn farewell(
        &mut self,
        out: &mut Outbox,
        path: Path,
        datagrams: impl IntoIterator<Item = Box<[u8]>>,
        every_ms: u64,
        now: Time,
    ) {
        self.forget_farewell(&path.remote);
        let timer = self.wheel.arm(Alarm::Farewell(path.remote), now + every_ms);
        let datagrams = datagrams.into_iter().collect();
        self.farewells.insert(
            path.remote,
            Farewell {
                path,
                datagrams,
                every_ms,
                timer,
            },
        );
        self.say_farewell(out, path.remote, now);
        if self.farewells.len() > FAREWELLS_MAX {
            self.forget_farewell(&path.remote);
        }
    }

    /// Says the next datagram of a farewell.
    pub fn say_farewell(&mut self, out: &mut Outbox, endpoint: SocketAddr, now: Time) {
        let Some(farewell) = self.farewells.get_mut(&endpoint) else {
            return;
        };
        if let Some(datagram) = farewell.datagrams.pop_front() {
            out.datagram(farewell.path, Credit::Proven, |w| w.bytes(&datagram));
        }
        self.wheel.cancel(farewell.timer);
        if farewell.datagrams.is_empty() {
            self.farewells.remove(&endpoint);
        } else {
            farewell.timer = self
                .wheel
                .arm(Alarm::Farewell(endpoint), now + farewell.every_ms);
        }
    }

    fn forget_farewell(&mut self, endpoint: &SocketAddr) {
        if let Some(farewell) = self.farewells.remove(endpoint) {
            self.wheel.cancel(farewell.timer);
        }
    }
}

/// Deadlines.
impl<S> Engine<S> {
    /// Sets a session's deadline, in place of what it was. Costs nothing in the wheel unless it
    /// is now the session's earliest.
    pub fn arm(&mut self, key: Key, which: usize, at: Time) {
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        session.deadlines.set(which, at);
        if session.timer.is_none_or(|(_, armed)| at < armed) {
            self.rearm(key);
        }
    }

    /// Clears a session's deadline.
    pub fn disarm(&mut self, key: Key, which: usize) {
        if let Some(session) = self.sessions.get_mut(key) {
            session.deadlines.clear(which);
        }
    }

    /// When [`Engine::due`] is worth calling next.
    pub fn deadline(&self) -> Option<Time> {
        self.wheel.next()
    }

    /// The next deadline that has come, which is cleared by that.
    pub fn due(&mut self, now: Time) -> Option<Due> {
        while let Some(alarm) = self.wheel.pop(now) {
            match alarm {
                Alarm::Farewell(endpoint) => return Some(Due::Farewell(endpoint)),
                Alarm::Link(conn) => {
                    let Some(link) = self.links.get_mut(&conn) else {
                        continue;
                    };
                    link.timer = None;
                    return Some(Due::Link(conn));
                }
                Alarm::Session(key) => {
                    let Some(session) = self.sessions.get_mut(key) else {
                        continue;
                    };
                    session.timer = None;
                    let which = session.deadlines.take_due(now);
                    self.rearm(key);
                    if let Some(which) = which {
                        return Some(Due::Session(key, which));
                    }
                }
            }
        }
        None
    }

    /// Makes the session's wheel entry stand at its earliest deadline.
    fn rearm(&mut self, key: Key) {
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        if let Some((timer, _)) = session.timer.take() {
            self.wheel.cancel(timer);
        }
        let earliest = session.deadlines.earliest();
        if earliest != Time::NEVER {
            session.timer = Some((self.wheel.arm(Alarm::Session(key), earliest), earliest));
        }
    }

    /// In debug builds: each index points at a live session, none is named twice, and no session
    /// is armed later than its earliest deadline. Large tables are not swept, tests would crawl.
    fn debug_check(&self) {
        if !cfg!(debug_assertions) || self.sessions.len() > 64 {
            return;
        }
        let aliases = self
            .sessions
            .iter()
            .filter(|(_, session)| session.alias.is_some())
            .count();
        assert_eq!(
            self.tokens.len(),
            self.sessions.len() + aliases,
            "no token is left over"
        );
        let counted: usize = self.origins.values().map(Vec::len).sum();
        assert_eq!(counted, self.sessions.len(), "each session has one origin");
        let bound = self
            .sessions
            .iter()
            .filter(|(_, session)| session.endpoint.is_some())
            .count();
        assert_eq!(
            self.endpoints.len(),
            bound,
            "one endpoint for each bound session"
        );
        for (key, session) in self.sessions.iter() {
            assert_eq!(self.tokens.get(&session.token), Some(&key));
            if let Some(endpoint) = session.endpoint {
                assert_eq!(self.endpoints.get(&endpoint), Some(&key));
            }
            let armed = session.timer.map_or(Time::NEVER, |(_, at)| at);
            assert!(
                armed <= session.deadlines.earliest(),
                "a deadline would be missed"
            );
        }
    }
}

/// Takes an entry out of a table; one that was large and has run empty gives its memory back.
fn take<K: Eq + Hash, V>(table: &mut HashMap<K, V>, key: &K) -> Option<V> {
    let value = table.remove(key);
    if table.is_empty() && table.capacity() > KEEP_EMPTY {
        table.shrink_to_fit();
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOME: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const CONN: Conn = Conn {
        slot: 3,
        generation: 0,
    };

    fn endpoint(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    #[test]
    fn an_ended_session_frees_its_token_and_endpoint_at_once() {
        let mut engine = Engine::default();
        let key = engine.open(7, None, HOME, Time::ZERO, ()).unwrap();
        assert_eq!(engine.open(7, None, HOME, Time::ZERO, ()), None);
        assert!(engine.bind(key, endpoint(1)));
        assert!(!engine.bind(key, endpoint(2)), "it has one");
        let other = engine.open(8, None, HOME, Time::ZERO, ()).unwrap();
        assert!(!engine.bind(other, endpoint(1)), "another session has it");
        assert!(engine.end(key).is_some());
        assert!(engine.end(key).is_none());
        assert_eq!(
            (engine.with_token(7), engine.at(&endpoint(1))),
            (None, None)
        );
        assert!(engine.bind(other, endpoint(1)));
    }

    #[test]
    fn deadlines_come_once_and_in_order_and_a_stale_one_finds_nobody() {
        let at = Time::from_ms;
        let mut engine = Engine::default();
        let key = engine.open(1, None, HOME, at(0), ()).unwrap();
        engine.arm(key, 0, at(1000));
        engine.arm(key, 1, at(400));
        engine.arm(key, 2, at(2000));
        engine.disarm(key, 2);
        let gone = engine.open(2, None, HOME, at(0), ()).unwrap();
        engine.arm(gone, 0, at(300));
        engine.end(gone);
        assert_eq!(engine.due(at(399)), None);
        assert_eq!(engine.due(at(450)), Some(Due::Session(key, 1)));
        assert_eq!(engine.due(at(450)), None);
        engine.arm(key, 1, at(5000));
        assert_eq!(engine.due(at(1100)), Some(Due::Session(key, 0)));
        assert_eq!(engine.due(at(4999)), None);
        assert_eq!(engine.due(at(5010)), Some(Due::Session(key, 1)));
        assert_eq!(engine.deadline(), None);
    }

    #[test]
    fn a_link_is_due_unless_it_became_a_session() {
        let at = Time::from_ms;
        let mut engine = Engine::default();
        let late = Conn {
            slot: 4,
            generation: 9,
        };
        engine.opened(CONN, endpoint(1), at(5000));
        engine.opened(late, endpoint(2), at(5000));
        let key = engine.open(1, Some(CONN), HOME, at(0), ()).unwrap();
        assert_eq!(
            (engine.session_of(CONN), engine.session_of(late)),
            (Some(key), None)
        );
        assert_eq!(engine.strangers().collect::<Vec<_>>(), [late]);
        assert_eq!(engine.due(at(6000)), Some(Due::Link(late)));
        assert_eq!(engine.due(at(6000)), None);
        engine.end(key);
        assert!(!engine.knows(CONN), "the link goes with its session");
    }

    #[test]
    fn a_partial_message_is_kept_and_handed_back_once() {
        let mut engine: Engine<()> = Engine::default();
        engine.opened(CONN, endpoint(1), Time::from_ms(5000));
        engine.keep_partial(CONN, b"ab");
        assert_eq!(engine.take_partial(CONN), b"ab");
        assert_eq!(engine.take_partial(CONN).capacity(), 0, "nothing is held");
    }
}
