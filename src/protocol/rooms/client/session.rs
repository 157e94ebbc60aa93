//! A session as its client sees it: datagrams in and out.

use super::super::wire::{
    Component, Message, NotCreated, NotRegistered, Packet, PacketError, Request, Token,
    write_packet,
};
use super::Report;
use super::asking::{Ask, Asking, Due};
use super::counters::Count;
use super::notice::{End, NotJoined, Notice};
use super::picture::{Picture, Seen, Told};
use crate::engine::seq::{self, Arrival, History};
use crate::engine::{Credit, Entity, Env, Path, Time, source};

/// Who sent nothing for so long sends Init.
const SIGN_OF_LIFE_MS: u64 = 1_000;
/// An unknown entity draws an Init at most so often. (The server shows everything once in 5 s,
/// but the Init that asked may have been lost.)
const INIT_MS: u64 = 1_000;
/// What is older than this many ids is in nobody's window.
const LONG_AGO: i16 = 2 * 1024;
/// Who heard nothing valid for so long asks for something, since a server has nothing to say to
/// who is in no room …
const PROBE_MS: u64 = 15_000;
/// … and gives up after this.
const SILENCE_MS: u64 = 30_000;
/// What is asked then: the rooms behind the last there can be.
const PROBE: Request<'static> = Request::GetRooms { first: u16::MAX };

/// The session, from the token to its end.
#[derive(Debug)]
pub struct Session {
    sender: Sender,
    pub asking: Asking,
    /// The request for rooms that is waited for is nobody's but our own.
    is_probing: bool,
    received: History,
    heard_at: Time,
    /// When Init was sent last, and whether it is to be sent for an unknown entity.
    init_at: Time,
    wants_init: bool,
    user: Option<Box<str>>,
    room: Option<Room>,
    /// Whether anything came over UDP.
    has_heard: bool,
}

/// The room it is in.
#[derive(Debug)]
pub struct Room {
    pub name: Box<str>,
    pub seat: u8,
    /// The answer that let it in: what is older is about another room. `None` once that is so
    /// long ago that nothing older is taken any more: ids come round again.
    since: Option<u16>,
    picture: Picture,
}

impl Room {
    /// Whether message `id` is about this room and none before it.
    fn is_ours(&self, id: u16) -> bool {
        self.since.is_none_or(|since| seq::distance(since, id) > 0)
    }

    /// Message `id` is about this room.
    fn stays_on(&mut self, id: u16) {
        let is_recent = |since: &u16| seq::distance(*since, id) < LONG_AGO;
        self.since = self.since.filter(is_recent);
    }
}

/// What is needed to send.
#[derive(Debug)]
struct Sender {
    path: Path,
    token: Token,
    next_id: u16,
    sent_at: Time,
}

impl Sender {
    fn take_id(&mut self) -> u16 {
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        id
    }

    /// Sends a packet. The server's endpoint was told by itself over TCP, so it is proven.
    fn send(&mut self, env: &mut Env<'_>, kind: u8, id: u16, payload: &[u8]) {
        self.sent_at = env.now;
        env.out.datagram(self.path, Credit::Proven, |w| {
            write_packet(w, kind, id, self.token, |w| w.bytes(payload));
        });
    }

    /// Sends a request that has no answer, once.
    fn request(&mut self, env: &mut Env<'_>, request: &Request<'_>) {
        self.sent_at = env.now;
        let id = self.take_id();
        env.out.datagram(self.path, Credit::Proven, |w| {
            request.write(w, id, self.token);
        });
    }
}

impl Session {
    /// Begins with the token, which came in packet `first`; says Init, which binds our endpoint.
    pub fn new(env: &mut Env<'_>, path: Path, token: Token, first: u16) -> Self {
        let mut received = History::default();
        received.note(first);
        let mut session = Self {
            sender: Sender {
                path,
                token,
                next_id: 1,
                sent_at: env.now,
            },
            asking: Asking::default(),
            is_probing: false,
            received,
            heard_at: env.now,
            init_at: env.now,
            wants_init: false,
            user: None,
            room: None,
            has_heard: false,
        };
        session.init(env);
        session
    }

    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    pub fn room(&self) -> Option<&Room> {
        self.room.as_ref()
    }

    /// Whether anything came over UDP.
    pub fn has_heard(&self) -> bool {
        self.has_heard
    }

    pub fn entities(&self) -> &[Seen] {
        self.room
            .as_ref()
            .map_or(&[], |room| room.picture.entities())
    }

    /// Whether the user's own request of this type waits for its answer.
    pub fn is_asking(&self, ask: Ask) -> bool {
        self.asking.asked(ask).is_some() && !(ask == Ask::Rooms && self.is_probing)
    }

    /// Asks for the user, with the next tick.
    pub fn ask(&mut self, now: Time, ask: Ask, request: &Request<'_>) {
        if ask == Ask::Rooms {
            self.is_probing = false;
        }
        self.asking.ask(now, ask, request);
    }

    pub fn key(&mut self, env: &mut Env<'_>, key: i32) {
        self.sender.request(env, &Request::Key(key));
    }

    pub fn logout(&mut self, env: &mut Env<'_>) {
        self.sender.request(env, &Request::Logout { reason: 0 });
    }

    /// Says Init if nothing was sent for a while.
    pub fn keep_alive(&mut self, env: &mut Env<'_>) {
        if self.sender.sent_at + SIGN_OF_LIFE_MS <= env.now {
            self.init(env);
        }
    }

    fn init(&mut self, env: &mut Env<'_>) {
        self.sender.request(env, &Request::Init);
        self.init_at = env.now;
        self.wants_init = false;
    }

    pub fn deadline(&self) -> Time {
        let mut due = self.sender.sent_at + SIGN_OF_LIFE_MS;
        due = due.min(self.heard_at + SILENCE_MS);
        due = due.min(self.asking.deadline());
        if self.asking.asked(Ask::Rooms).is_none() {
            due = due.min(self.heard_at + PROBE_MS);
        }
        if self.wants_init {
            due = due.min(self.init_at + INIT_MS);
        }
        self.room
            .as_ref()
            .map_or(due, |room| due.min(room.picture.deadline()))
    }

    /// Does what is due.
    pub fn tick(&mut self, env: &mut Env<'_>, report: &mut Report) -> Option<End> {
        if self.heard_at + SILENCE_MS <= env.now {
            return Some(End::Silent);
        }
        self.tend_requests(env, report);
        if self.heard_at + PROBE_MS <= env.now && self.asking.asked(Ask::Rooms).is_none() {
            self.asking.ask(env.now, Ask::Rooms, &PROBE);
            self.is_probing = true;
            self.tend_requests(env, report);
        }
        if let Some(room) = &mut self.room {
            while let Some(entity) = room.picture.expire(env.now) {
                report.notices.push(Notice::Gone { entity });
            }
        }
        if self.wants_init && self.init_at + INIT_MS <= env.now {
            self.init(env);
        }
        self.keep_alive(env);
        None
    }

    /// Sends requests that are due, and gives up those that were sent often enough.
    fn tend_requests(&mut self, env: &mut Env<'_>, report: &mut Report) {
        while let Some(due) = self.asking.due(env.now) {
            match due {
                Due::Send(ask, kind, sent_as, payload) => {
                    let id = sent_as.unwrap_or_else(|| self.sender.take_id());
                    self.sender.send(env, kind, id, payload);
                    self.asking.numbered(ask, id);
                    if sent_as.is_some() {
                        report.counters.add(Count::Repeats);
                    }
                }
                Due::NoAnswer(Ask::Rooms) if self.is_probing => {}
                Due::NoAnswer(ask) => report.notices.push(Notice::NoAnswer(ask)),
            }
        }
    }
}

/// What comes.
impl Session {
    /// A datagram came: judged in the document's order, then taken.
    pub fn datagram(
        &mut self,
        env: &mut Env<'_>,
        path: Path,
        bytes: &[u8],
        report: &mut Report,
    ) -> Result<Count, Count> {
        // The address is compared without its scope, which the system has judged.
        let server = self.sender.path.remote;
        let is_server = path.remote.ip() == server.ip() && path.remote.port() == server.port();
        if !source::is_plausible(&path) || !is_server {
            return Err(Count::IgnoredSource);
        }
        let packet = Packet::read(bytes).map_err(ignored)?;
        if packet.token != Token::SERVER {
            return Err(Count::IgnoredToken);
        }
        match self.received.judge(packet.id) {
            Arrival::New => {}
            Arrival::Repeated => return Err(Count::IgnoredRepeated),
            Arrival::Old => return Err(Count::IgnoredOld),
        }
        let message = match Message::read(packet.kind, packet.payload) {
            Ok(Message::AssignToken { .. } | Message::Logout { .. }) | Err(_) => {
                return Err(Count::IgnoredMalformed);
            }
            Ok(message) => message,
        };
        self.heard_at = env.now;
        self.has_heard = true;
        report.counters.add(Count::Received);
        if !self.may_be_early(&message) {
            self.received.note(packet.id);
        }
        match self.asking.answered(&message, self.user.as_deref()) {
            Some(ask) => {
                self.answered(env, ask, packet.id, &message, report);
                Ok(Count::Answers)
            }
            None => self.told(env.now, packet.id, &message, report),
        }
    }

    /// Whether this is about a room whose answer is still on the way: it counts as never seen, so
    /// that one of its repetitions is taken behind the answer.
    fn may_be_early(&self, message: &Message<'_>) -> bool {
        let is_entering = [Ask::CreateRoom, Ask::JoinRoom]
            .iter()
            .any(|ask| self.asking.asked(*ask).is_some());
        let is_of_room = matches!(
            message,
            Message::Chat { .. } | Message::CreateEntity { .. } | Message::DeleteEntity { .. }
        );
        self.room.is_none() && is_entering && is_of_room
    }

    /// The answer to a request has come.
    fn answered(
        &mut self,
        env: &mut Env<'_>,
        ask: Ask,
        id: u16,
        message: &Message<'_>,
        report: &mut Report,
    ) {
        let notices = &mut report.notices;
        match (message, self.asking.asked(ask)) {
            (Message::LoginAnswer(true), Some(Request::Login { user, .. })) => {
                self.user = Some(text(user));
                notices.push(Notice::LoggedIn);
            }
            (Message::LoginAnswer(_), _) => notices.push(Notice::NotLoggedIn),
            (Message::RegisterAnswer(result), _) => notices.push(match result {
                Ok(()) => Notice::Registered,
                Err(code) => Notice::NotRegistered(
                    NotRegistered::from_code(*code).unwrap_or(NotRegistered::Busy),
                ),
            }),
            (Message::Chat { text, .. }, _) => notices.said(text),
            (Message::CreateRoomAnswer(Ok(())), Some(Request::CreateRoom { name, .. })) => {
                let name = text(name);
                self.enter(env, name, 0, id, report);
            }
            (Message::CreateRoomAnswer(result), _) => {
                let code = result.err().and_then(NotCreated::from_code);
                let why = code.unwrap_or(NotCreated::TooManyRooms);
                notices.push(Notice::NotCreated(why));
            }
            (Message::JoinAnswer { seat, name }, _) => match seat {
                Some(seat) => self.enter(env, (*name).into(), *seat, id, report),
                None => notices.push(Notice::NotJoined(NotJoined::Refused)),
            },
            (Message::WrongPassword, _) => {
                notices.push(Notice::NotJoined(NotJoined::WrongPassword));
            }
            (Message::FullRoom, _) => notices.push(Notice::NotJoined(NotJoined::Full)),
            (Message::DeleteRoom { ok: true, .. }, _) => self.out_of_room(true, report),
            (Message::DeleteRoom { .. }, _) => notices.push(Notice::NotDeleted),
            (Message::Rooms(page), _) if !self.is_probing => {
                notices.rooms(page);
            }
            (Message::LeaveAnswer(_), _) => self.out_of_room(false, report),
            // The answer to our own question whether the server is there.
            _ => {}
        }
        self.asking.forget(env.now, ask);
    }

    /// The server tells something that is no answer.
    fn told(
        &mut self,
        now: Time,
        id: u16,
        message: &Message<'_>,
        report: &mut Report,
    ) -> Result<Count, Count> {
        if let Message::DeleteRoom { ok: true, name } = message
            && self.room.as_ref().is_some_and(|room| *room.name == **name)
        {
            self.out_of_room(true, report);
            return Ok(Count::Told);
        }
        let is_about_rooms = matches!(
            message,
            Message::Chat { .. }
                | Message::CreateEntity { .. }
                | Message::DeleteEntity { .. }
                | Message::UpdateComponent(_)
        );
        if !is_about_rooms {
            return Err(Count::IgnoredUnasked);
        }
        let room = self.room.as_mut().filter(|room| room.is_ours(id));
        let room = room.ok_or(Count::IgnoredOutsideRoom)?;
        room.stays_on(id);
        let picture = &mut room.picture;
        match message {
            // The own line came already, as the answer.
            Message::Chat { user, .. } if self.user.as_deref() == Some(*user) => {
                Err(Count::IgnoredUnasked)
            }
            Message::Chat { user, text } => {
                report.notices.chat(user, text);
                Ok(Count::Told)
            }
            Message::CreateEntity {
                entity,
                kind,
                owner,
            } => created(picture, now, (*entity, *kind, *owner), report),
            Message::DeleteEntity { entity } => {
                if picture.deleted(*entity) == Told::News {
                    report.notices.push(Notice::Gone { entity: *entity });
                }
                Ok(Count::Told)
            }
            Message::UpdateComponent(components) => {
                if !picture.take_update(id) {
                    return Err(Count::IgnoredLateUpdate);
                }
                for component in components.clone() {
                    self.wants_init |= updated(picture, now, &component, report);
                }
                report.notices.push(Notice::Updated);
                Ok(Count::Updates)
            }
            _ => Err(Count::IgnoredUnasked),
        }
    }

    /// It is in a room, as message `id` says: Init asks what there is.
    fn enter(&mut self, env: &mut Env<'_>, name: Box<str>, seat: u8, id: u16, report: &mut Report) {
        report.notices.in_room(&name, seat);
        match &mut self.room {
            Some(room) if room.name == name => room.seat = seat,
            room => {
                *room = Some(Room {
                    name,
                    seat,
                    since: Some(id),
                    picture: Picture::default(),
                });
            }
        }
        self.init(env);
    }

    fn out_of_room(&mut self, is_over: bool, report: &mut Report) {
        self.room = None;
        self.wants_init = false;
        report.notices.push(Notice::OutOfRoom { is_over });
    }
}

fn created(
    picture: &mut Picture,
    now: Time,
    (id, kind, owner): (u32, u16, Option<u8>),
    report: &mut Report,
) -> Result<Count, Count> {
    match picture.created(now, id, kind, owner) {
        Told::News => report
            .notices
            .push(Notice::Created(Entity { id, kind, owner })),
        Told::Deleted => return Err(Count::IgnoredDeleted),
        Told::Full => return Err(Count::IgnoredEntitiesFull),
        Told::Known | Told::Unknown => {}
    }
    Ok(Count::Told)
}

/// Takes one record of an Update. Returns whether its entity is unknown.
fn updated(
    picture: &mut Picture,
    now: Time,
    component: &Component<'_>,
    report: &mut Report,
) -> bool {
    if let Component::Custom(custom) = component {
        report.notices.custom(custom.component(), custom.bytes());
        return false;
    }
    let told = picture.updated(now, component);
    match told {
        Told::Deleted => report.counters.add(Count::IgnoredDeleted),
        Told::Unknown => report.counters.add(Count::IgnoredUnknown),
        _ => {}
    }
    told == Told::Unknown
}

/// What was asked with is text: it was checked.
fn text(bytes: &[u8]) -> Box<str> {
    String::from_utf8_lossy(bytes).into()
}

fn ignored(error: PacketError) -> Count {
    match error {
        PacketError::Long => Count::IgnoredLong,
        PacketError::Short => Count::IgnoredShort,
        PacketError::Version => Count::IgnoredVersion,
        PacketError::Length => Count::IgnoredLength,
        PacketError::Checksum => Count::IgnoredChecksum,
    }
}
