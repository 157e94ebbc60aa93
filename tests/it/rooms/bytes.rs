//! The bytes of Rooms, written and read by hand from the document.

use std::collections::HashSet;

/// The types of packets.
pub mod kind {
    pub const LOGIN: u8 = 0x00;
    pub const REGISTER: u8 = 0x01;
    pub const LOGOUT: u8 = 0x02;
    pub const CHAT: u8 = 0x03;
    pub const CREATE_ENTITY: u8 = 0x04;
    pub const UPDATE: u8 = 0x05;
    pub const DELETE_ENTITY: u8 = 0x06;
    pub const CREATE_ROOM: u8 = 0x07;
    pub const DELETE_ROOM: u8 = 0x08;
    pub const JOIN_ROOM: u8 = 0x09;
    pub const GET_ROOMS: u8 = 0x0A;
    pub const LEAVE_ROOM: u8 = 0x0B;
    pub const KEY: u8 = 0x0C;
    pub const WRONG_PASSWORD: u8 = 0x0D;
    pub const FULL_ROOM: u8 = 0x0E;
    pub const INIT: u8 = 0x0F;
    pub const ASSIGN_TOKEN: u8 = 0x10;
}

/// The token in everything the server says.
pub const SERVER_TOKEN: u32 = 0xFFFF_FFFF;

/// A packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    pub kind: u8,
    pub id: u16,
    pub token: u32,
    pub payload: Vec<u8>,
}

impl Packet {
    /// All of it, with its checksum.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![1, self.kind];
        bytes.extend(self.id.to_be_bytes());
        bytes.extend(self.token.to_be_bytes());
        bytes.extend((self.payload.len() as u32).to_be_bytes());
        bytes.extend(&self.payload);
        summed(bytes)
    }

    /// Reads what the server sent; fails the test if that is no packet of the server.
    #[track_caller]
    pub fn parse(bytes: &[u8]) -> Self {
        assert!((14..=1200).contains(&bytes.len()), "{bytes:02X?}");
        let (front, sum) = bytes.split_at(bytes.len() - 2);
        assert_eq!(summed(front.to_vec()), bytes, "the sum is not {sum:02X?}");
        assert_eq!(bytes[0], 1, "{bytes:02X?}");
        let packet = Self {
            kind: bytes[1],
            id: u16::from_be_bytes([bytes[2], bytes[3]]),
            token: be32(&bytes[4..]),
            payload: front[12..].to_vec(),
        };
        assert_eq!(be32(&bytes[8..]) as usize, packet.payload.len());
        assert_eq!(packet.token, SERVER_TOKEN, "{bytes:02X?}");
        packet
    }
}

/// The bytes, and their sum behind them.
pub fn summed(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = bytes.iter().map(|byte| u32::from(*byte)).sum::<u32>() % 65_536;
    bytes.extend((sum as u16).to_be_bytes());
    bytes
}

fn be32(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// Takes the whole packets off the front of a stream.
pub fn take_packets(stream: &mut Vec<u8>) -> Vec<Packet> {
    let mut packets = Vec::new();
    while stream.len() >= 12 {
        let len = 14 + be32(&stream[8..]) as usize;
        if stream.len() < len {
            break;
        }
        let rest = stream.split_off(len);
        packets.push(Packet::parse(stream));
        *stream = rest;
    }
    packets
}

/// What a client asks for: a type and a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    pub kind: u8,
    pub payload: Vec<u8>,
}

impl Ask {
    pub fn new(kind: u8, payload: &[u8]) -> Self {
        Self {
            kind,
            payload: payload.to_vec(),
        }
    }

    pub fn login(user: &str, password: &str) -> Self {
        Self::new(kind::LOGIN, &[text(user), text(password)].concat())
    }

    pub fn register(user: &str, password: &str) -> Self {
        Self::new(kind::REGISTER, &[text(user), text(password)].concat())
    }

    pub fn logout() -> Self {
        Self::new(kind::LOGOUT, &[0])
    }

    pub fn chat(line: &str) -> Self {
        Self::new(kind::CHAT, &text(line))
    }

    pub fn create(name: &str, password: &str, max_players: u8) -> Self {
        let payload = [text(name), text(password), vec![max_players]].concat();
        Self::new(kind::CREATE_ROOM, &payload)
    }

    pub fn delete(name: &str) -> Self {
        Self::new(kind::DELETE_ROOM, &text(name))
    }

    pub fn join(name: &str, password: &str) -> Self {
        Self::new(kind::JOIN_ROOM, &[text(name), text(password)].concat())
    }

    pub fn rooms(first: u16) -> Self {
        Self::new(kind::GET_ROOMS, &first.to_be_bytes())
    }

    pub fn leave() -> Self {
        Self::new(kind::LEAVE_ROOM, &[])
    }

    pub fn key(key: i32) -> Self {
        Self::new(kind::KEY, &key.to_be_bytes())
    }

    pub fn init() -> Self {
        Self::new(kind::INIT, &[])
    }

    /// Whether it has an answer.
    pub fn is_answered(&self) -> bool {
        matches!(self.kind, 0x00 | 0x01 | 0x03 | 0x07..=0x0B)
    }

    /// The packet.
    pub fn packet(&self, id: u16, token: u32) -> Packet {
        Packet {
            kind: self.kind,
            id,
            token,
            payload: self.payload.clone(),
        }
    }
}

/// A `str`.
pub fn text(text: &str) -> Vec<u8> {
    raw_text(text.as_bytes())
}

/// A `str` of any bytes.
pub fn raw_text(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u16).to_be_bytes()[..], bytes].concat()
}

/// What a server says.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    Login(bool),
    Register(bool, u8),
    Logout(u8),
    Chat { user: String, text: String },
    Create { entity: u32, kind: u16, owner: u8 },
    Update(Vec<Position>),
    Delete(u32),
    CreateRoom(bool, u8),
    DeleteRoom(bool, String),
    Join(bool, u8, String),
    Page(Page),
    Leave(bool),
    WrongPassword,
    FullRoom,
    Assign { token: u32, udp_port: u16 },
}

/// Where an entity is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Position {
    pub entity: u32,
    pub x: f32,
    pub y: f32,
}

/// A page of rooms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    pub total: u16,
    pub first: u16,
    pub rooms: Vec<Listed>,
}

/// A room on a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub name: String,
    pub private: bool,
    pub players: u8,
    pub max_players: u8,
}

impl Said {
    /// Reads a payload; fails the test if the server must not say that.
    #[track_caller]
    pub fn parse(packet: &Packet) -> Self {
        let mut fields = Fields(&packet.payload);
        let said = match packet.kind {
            kind::LOGIN => Self::Login(fields.bool()),
            kind::REGISTER => Self::Register(fields.bool(), fields.u8()),
            kind::LOGOUT => Self::Logout(fields.u8()),
            kind::CHAT => Self::Chat {
                user: fields.text(),
                text: fields.text(),
            },
            kind::CREATE_ENTITY => Self::Create {
                entity: fields.u32(),
                kind: fields.u16(),
                owner: fields.u8(),
            },
            kind::UPDATE => Self::Update(fields.positions()),
            kind::DELETE_ENTITY => Self::Delete(fields.u32()),
            kind::CREATE_ROOM => Self::CreateRoom(fields.bool(), fields.u8()),
            kind::DELETE_ROOM => Self::DeleteRoom(fields.bool(), fields.text()),
            kind::JOIN_ROOM => Self::Join(fields.bool(), fields.u8(), fields.text()),
            kind::GET_ROOMS => Self::Page(fields.page()),
            kind::LEAVE_ROOM => Self::Leave(fields.bool()),
            kind::WRONG_PASSWORD => Self::WrongPassword,
            kind::FULL_ROOM => Self::FullRoom,
            kind::ASSIGN_TOKEN => Self::Assign {
                token: fields.u32(),
                udp_port: fields.u16(),
            },
            _ => panic!("no server says {packet:02X?}"),
        };
        assert!(fields.0.is_empty(), "bytes left over: {packet:02X?}");
        said.check();
        said
    }

    /// Contradictions and nonsense.
    #[track_caller]
    fn check(&self) {
        match self {
            Self::Register(ok, reason) => assert!(*reason <= 4 && *ok == (*reason == 0)),
            Self::CreateRoom(ok, reason) => assert!(*reason <= 7 && *ok == (*reason == 0)),
            Self::Join(ok, seat, name) => {
                assert!(*ok == (*seat != 255) && (!ok || *seat < 16), "{self:?}");
                assert!(!ok || is_plain(name, 32), "{self:?}");
            }
            Self::DeleteRoom(ok, name) => assert!(!ok || is_plain(name, 32), "{self:?}"),
            Self::Logout(reason) => assert!(*reason <= 6),
            Self::Chat { user, text } => {
                assert!(is_plain(user, 16) && is_plain(text, 200), "{self:?}");
            }
            Self::Page(page) => page.check(),
            _ => {}
        }
    }

    /// The type of request that it may answer.
    pub fn answers(packet: &Packet) -> u8 {
        match packet.kind {
            kind::WRONG_PASSWORD | kind::FULL_ROOM => kind::JOIN_ROOM,
            kind => kind,
        }
    }
}

impl Page {
    #[track_caller]
    fn check(&self) {
        let behind = usize::from(self.first) + self.rooms.len();
        assert!(self.rooms.is_empty() || behind <= usize::from(self.total));
        for room in &self.rooms {
            assert!((1..=16).contains(&room.max_players), "{room:?}");
            assert!((1..=room.max_players).contains(&room.players), "{room:?}");
            assert!(is_plain(&room.name, 32), "{room:?}");
        }
    }
}

fn is_plain(text: &str, max: usize) -> bool {
    let is_control = |byte: u8| byte < 0x20 || byte == 0x7F;
    (1..=max).contains(&text.len()) && !text.bytes().any(is_control)
}

struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    #[track_caller]
    fn take(&mut self, count: usize) -> &'a [u8] {
        assert!(self.0.len() >= count, "cut short: {:02X?}", self.0);
        let (front, rest) = self.0.split_at(count);
        self.0 = rest;
        front
    }

    fn u8(&mut self) -> u8 {
        self.take(1)[0]
    }

    fn u16(&mut self) -> u16 {
        u16::from_be_bytes([self.u8(), self.u8()])
    }

    fn u32(&mut self) -> u32 {
        be32(self.take(4))
    }

    fn f32(&mut self) -> f32 {
        let value = f32::from_bits(self.u32());
        assert!(value.is_finite());
        value
    }

    fn bool(&mut self) -> bool {
        let byte = self.u8();
        assert!(byte <= 1);
        byte == 1
    }

    fn text(&mut self) -> String {
        let len = self.u16();
        let bytes = self.take(usize::from(len)).to_vec();
        String::from_utf8(bytes).expect("the server says UTF-8 only")
    }

    fn positions(&mut self) -> Vec<Position> {
        let mut positions = Vec::new();
        while !self.0.is_empty() {
            assert_eq!(self.u16(), 1, "the arena says positions only");
            positions.push(Position {
                entity: self.u32(),
                x: self.f32(),
                y: self.f32(),
            });
        }
        assert!(!positions.is_empty());
        positions
    }

    fn page(&mut self) -> Page {
        let (total, first, count) = (self.u16(), self.u16(), self.u8());
        let listed = (0..count).map(|_| Listed {
            name: self.text(),
            private: self.bool(),
            players: self.u8(),
            max_players: self.u8(),
        });
        Page {
            total,
            first,
            rooms: listed.collect(),
        }
    }
}

/// The last 1024 ids of the other side.
#[derive(Debug, Default)]
pub struct Window {
    newest: Option<u16>,
    seen: HashSet<u16>,
}

impl Window {
    /// Whether the id is new; it is seen from now on.
    pub fn take(&mut self, id: u16) -> bool {
        let newest = *self.newest.get_or_insert(id);
        let behind = newest.wrapping_sub(id);
        if behind >= 0x8000 {
            self.newest = Some(id);
            self.seen.retain(|seen| id.wrapping_sub(*seen) < 1024);
        } else if behind >= 1024 {
            return false;
        }
        self.seen.insert(id)
    }
}

/// Whether `id` comes before `than`.
pub fn is_older(id: u16, than: u16) -> bool {
    id != than && than.wrapping_sub(id) < 0x8000
}
