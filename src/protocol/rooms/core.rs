//! The service without its game: sessions, rooms, and what every part of the policy shares.

use std::collections::VecDeque;
use std::net::IpAddr;

use super::Settings;
use super::counters::{Count, Counters};
use super::directory::Directory;
use super::session::{Data, Place, due};
use super::wire::{Message, Reason, Token, write_packet};
use crate::bytes::Writer;
use crate::engine::bucket::Rate;
use crate::engine::table::Engine;
use crate::engine::{Close, Credit, Env, Key, Path, Player};
use crate::guard::limit::Entrance;
use crate::guard::limits::Limit;

/// Requests taken from a session at once.
const REQUESTS_AT_ONCE: u64 = 32;

/// Everything but the game.
pub struct Core {
    pub service: u8,
    /// The port clients are told.
    pub udp_port: u16,
    pub engine: Engine<Data>,
    pub directory: Directory,
    pub counters: Counters,
    pub entrance: Entrance,
    pub sessions_max: usize,
    pub rooms_max: usize,
    /// What a session may ask for.
    pub requests_rate: Rate,
    /// Who is being shown everything: once, since it will ask again.
    pub refreshing: Option<Player>,
    /// No newcomers any more.
    pub is_stopping: bool,
    /// What the game has not heard yet.
    pub news: VecDeque<News>,
}

/// What the game has not heard yet.
pub enum News {
    Joined(Player, Box<str>),
    Left(Player, u8),
}

/// Why a session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The client's connection is over.
    Closed,
    /// The server ends it, for this reason.
    Server(Reason),
}

impl Core {
    pub fn new(settings: &Settings) -> Self {
        let limits = &settings.limits;
        let number = |limit| usize::try_from(limits.get(limit)).unwrap_or(usize::MAX);
        Self {
            service: settings.service,
            udp_port: settings.udp_port,
            engine: Engine::default(),
            directory: Directory::default(),
            counters: Counters::default(),
            entrance: settings.addresses.entrance(limits, settings.limit_loopback),
            sessions_max: number(Limit::RoomsSessions),
            // A page says how many there are in 16 bits.
            rooms_max: number(Limit::RoomsRooms).min(usize::from(u16::MAX)),
            requests_rate: Rate::per_second(limits.get(Limit::EventsRate), REQUESTS_AT_ONCE),
            refreshing: None,
            is_stopping: false,
            news: VecDeque::new(),
        }
    }

    /// Counts what a peer did, and warns of it if an operator may want to know.
    pub fn refuse(&mut self, env: &mut Env<'_>, about: IpAddr, count: Count) {
        self.counters.add(count);
        if count.is_warning() {
            env.out.warn(about, count.name());
        }
    }

    /// What is kept about a session.
    pub fn data(&mut self, key: Key) -> Option<&mut Data> {
        self.engine.get_mut(key).map(|session| &mut session.data)
    }

    /// The handle a game knows a session's stay in its room by.
    pub fn player(&mut self, key: Key) -> Option<Player> {
        let service = self.service;
        let data = self.data(key)?;
        let Place { room, seat } = data.place?;
        Some(Player {
            service,
            key,
            game: room,
            number: seat,
            stay: data.stays,
        })
    }

    /// Where a session's datagrams go.
    fn path(&mut self, key: Key) -> Option<Path> {
        self.data(key)?.path
    }

    /// Sends one packet with this payload. Its endpoint is at the address of the session's TCP
    /// connection, so it is proven.
    pub fn say_payload(&mut self, env: &mut Env<'_>, key: Key, kind: u8, payload: &[u8]) {
        let Some(path) = self.path(key) else { return };
        let Some(data) = self.data(key) else { return };
        let id = data.take_id();
        env.out.datagram(path, Credit::Proven, |w| {
            write_packet(w, kind, id, Token::SERVER, |w| w.bytes(payload));
        });
    }

    /// Sends one packet, once.
    pub fn say(&mut self, env: &mut Env<'_>, key: Key, message: &Message<'_>) {
        let mut payload = Vec::new();
        message.write_payload(&mut Writer::new(&mut payload));
        self.say_payload(env, key, message.kind(), &payload);
    }

    /// Answers the request `id` of type `request`, and remembers the answer for its repetitions.
    pub fn answer_request(
        &mut self,
        env: &mut Env<'_>,
        key: Key,
        (request, id): (u8, u16),
        message: &Message<'_>,
    ) {
        let mut payload = Vec::new();
        message.write_payload(&mut Writer::new(&mut payload));
        self.answer_payload(env, key, (request, id), message.kind(), payload);
    }

    /// As [`Core::answer_request`], with the payload written already.
    pub fn answer_payload(
        &mut self,
        env: &mut Env<'_>,
        key: Key,
        (request, id): (u8, u16),
        kind: u8,
        payload: Vec<u8>,
    ) {
        self.say_payload(env, key, kind, &payload);
        if let Some(data) = self.data(key) {
            data.remember(request, id, kind, payload.into_boxed_slice());
        }
    }

    /// Tells something unasked, which nothing refreshes: four times under one id.
    pub fn tell(&mut self, env: &mut Env<'_>, key: Key, message: &Message<'_>) {
        let Some(path) = self.path(key) else { return };
        let Some(data) = self.data(key) else { return };
        let id = data.take_id();
        let mut packet = Vec::new();
        message.write(&mut Writer::new(&mut packet), id);
        env.out.datagram(path, Credit::Proven, |w| w.bytes(&packet));
        let is_one_dropped = data.repeat(packet.into_boxed_slice(), env.now);
        let repeat_due = data.repeat_due();
        self.engine.arm(key, due::REPEAT, repeat_due);
        if is_one_dropped {
            self.counters.add(Count::UnsentTooMany);
        }
    }

    /// Says again what is due.
    pub fn say_again(&mut self, env: &mut Env<'_>, key: Key) {
        let Some(path) = self.path(key) else { return };
        let Some(data) = self.data(key) else { return };
        data.say_again(env.now, |packet| {
            env.out.datagram(path, Credit::Proven, |w| w.bytes(packet));
        });
        let repeat_due = data.repeat_due();
        self.engine.arm(key, due::REPEAT, repeat_due);
    }

    /// Takes a session out of its room; the game hears of it.
    pub fn leave_room(&mut self, key: Key, reason: Reason) -> bool {
        let Some(player) = self.player(key) else {
            return false;
        };
        self.directory.leave(player.game(), key);
        if let Some(data) = self.data(key) {
            data.forget_room();
        }
        self.news.push_back(News::Left(player, left(reason)));
        true
    }

    /// Gives a session a seat; the game hears of it.
    pub fn enter_room(&mut self, key: Key, place: Place) {
        let Some(data) = self.data(key) else { return };
        data.place = Some(place);
        data.stays = data.stays.wrapping_add(1);
        data.shown = None;
        let name = data.user.clone().unwrap_or_default();
        if let Some(player) = self.player(key) {
            self.news.push_back(News::Joined(player, name));
        }
    }

    /// Ends a session: the one way out. Its token, endpoint, user and seat are free when this
    /// returns; the client is told over TCP if the server ends it, the game if it was in a room.
    pub fn end(&mut self, env: &mut Env<'_>, key: Key, cause: Cause) {
        let reason = match cause {
            Cause::Closed => Reason::Asked,
            Cause::Server(reason) => reason,
        };
        self.leave_room(key, reason);
        let Some(session) = self.engine.end(key) else {
            return;
        };
        self.refuse(env, session.data.ip, ended(cause));
        let Some(conn) = session.conn() else { return };
        if cause != Cause::Closed {
            let logout = Message::Logout {
                reason: reason.code(),
            };
            let id = session.data.next_id;
            env.out.stream(conn, |w| logout.write(w, id));
        }
        env.out.close(conn, Close::Drain);
    }
}

/// Why a player left its room, as games are told.
fn left(reason: Reason) -> u8 {
    match reason {
        Reason::Asked | Reason::Full | Reason::LoggedInElsewhere => 0,
        Reason::Shutdown => 1,
        Reason::TimedOut => 2,
        Reason::ProtocolError => 3,
        Reason::Kicked => 4,
    }
}

fn ended(cause: Cause) -> Count {
    match cause {
        Cause::Closed | Cause::Server(Reason::Asked) => Count::EndedLeft,
        Cause::Server(Reason::Full) => Count::EndedForAnother,
        Cause::Server(Reason::Shutdown) => Count::EndedShutdown,
        Cause::Server(Reason::TimedOut) => Count::EndedTimedOut,
        Cause::Server(Reason::ProtocolError) => Count::EndedProtocolError,
        Cause::Server(Reason::LoggedInElsewhere) => Count::EndedElsewhere,
        Cause::Server(Reason::Kicked) => Count::EndedKicked,
    }
}
