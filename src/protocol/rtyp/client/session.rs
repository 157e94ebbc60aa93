//! The conversation over UDP, from LoginAccepted on: binding, then playing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::super::channel::Channel;
use super::super::wire::{
    self, Events, FromClient, FromServer, Header, HeaderError, PAYLOAD_MAX, Payload, RawEvent,
    SharedToken, kind,
};
use super::counters::Count;
use super::notice::{End, Notice};
use super::{Report, SendError};
use crate::bytes::Writer;
use crate::engine::lane::carried::Admission;
use crate::engine::seq::Arrival;
use crate::engine::{Conn, Credit, Env, Path, Time, entropy, source};

/// Connect is repeated after this time …
const CONNECT_EVERY_MS: u64 = 250;
/// … for so long.
const BIND_MS: u64 = 5_000;
/// A Ping goes when nothing was sent, or nothing valid heard, for so long; never sooner after the
/// one before.
const QUIET_MS: u64 = 1_000;
/// A Ping goes at the latest this long after the one before, so that the round trip stays true.
const PING_EVERY_MS: u64 = 4_000;
/// Who heard nothing valid for so long gives up.
const SILENCE_MS: u64 = 30_000;

/// The session and its conversation.
#[derive(Debug)]
pub struct Session {
    conn: Conn,
    player: u8,
    path: Path,
    /// The session field of every datagram of the server.
    token: wire::Session,
    channel: Channel,
    phase: Phase,
    /// When the newest datagram was sent.
    sent_at: Time,
    /// An Ack was owed when the client was last polled, and nothing has been sent since.
    owed_at_tick: bool,
    scratch: Vec<u8>,
}

#[derive(Debug)]
enum Phase {
    /// No Accept has come.
    Binding { connect_at: Time, give_up_at: Time },
    /// An Accept has come.
    Playing {
        /// When the newest valid datagram came.
        heard_at: Time,
        pinged_at: Time,
        /// Bit n: another player of number n is in the game.
        present: u8,
    },
}

impl Session {
    /// The session that LoginAccepted names; its first Connect leaves.
    pub fn new(env: &mut Env<'_>, conn: Conn, server: SocketAddr, token: u32, player: u8) -> Self {
        let mut session = Self {
            conn,
            player,
            path: path_to(server),
            token: wire::Session::Shared(SharedToken(token)),
            channel: Channel::new(wire::Session::Shared(SharedToken(token))),
            phase: Phase::Binding {
                connect_at: env.now + CONNECT_EVERY_MS,
                give_up_at: env.now + BIND_MS,
            },
            sent_at: env.now,
            owed_at_tick: false,
            scratch: Vec::new(),
        };
        session.send(env, kind::CONNECT, |_| ());
        session
    }

    pub fn conn(&self) -> Conn {
        self.conn
    }

    pub fn player(&self) -> u8 {
        self.player
    }

    pub fn is_playing(&self) -> bool {
        matches!(self.phase, Phase::Playing { .. })
    }

    pub fn is_present(&self, player: u8) -> bool {
        match self.phase {
            Phase::Binding { .. } => false,
            Phase::Playing { present, .. } => bit(player) & present != 0,
        }
    }

    pub fn rtt_ms(&self) -> Option<u64> {
        self.channel.rtt_ms()
    }

    pub fn is_all_acknowledged(&self) -> bool {
        self.channel.is_all_acknowledged()
    }

    /// Queues an event.
    pub fn push(&mut self, event: FromClient<'_>) -> Result<(), SendError> {
        event
            .parts(|kind, parts| self.channel.push(kind, parts))
            .map_err(|_| SendError::Full)
    }

    /// Sends one datagram, its payload written by `write`.
    pub fn send(&mut self, env: &mut Env<'_>, kind: u8, write: impl FnOnce(&mut Writer<'_>)) {
        let header = self.channel.header(kind);
        // The server is where the TCP connection leads: proven.
        env.out.datagram(self.path, Credit::Proven, |w| {
            header.write(w);
            write(w);
        });
        self.channel.sent();
        self.sent_at = env.now;
        self.owed_at_tick = false;
    }
}

/// What time brings.
impl Session {
    /// When [`Session::tick`] is due; `now` is the time of the latest call.
    pub fn deadline(&self, now: Time) -> Time {
        let timers = match self.phase {
            Phase::Binding {
                connect_at,
                give_up_at,
            } => connect_at.min(give_up_at),
            Phase::Playing { heard_at, .. } => self.ping_at().min(heard_at + SILENCE_MS),
        };
        let channel = self.channel.events_due(now).min(self.channel.ack_due(now));
        timers.min(channel)
    }

    /// Does what is due but for events and acknowledgements, or says why all is over.
    pub fn tick(&mut self, env: &mut Env<'_>) -> Option<End> {
        match &mut self.phase {
            Phase::Binding { give_up_at, .. } if *give_up_at <= env.now => {
                return Some(End::Unreachable);
            }
            Phase::Binding { connect_at, .. } => {
                if *connect_at <= env.now {
                    *connect_at = env.now + CONNECT_EVERY_MS;
                    self.send(env, kind::CONNECT, |_| ());
                }
            }
            Phase::Playing { heard_at, .. } if *heard_at + SILENCE_MS <= env.now => {
                return Some(End::Silent);
            }
            Phase::Playing { .. } => {
                if self.ping_at() <= env.now {
                    self.ping(env);
                }
            }
        }
        self.acknowledge_polled(env);
        None
    }

    /// Sends the events and the acknowledgement that are due.
    pub fn settle(&mut self, env: &mut Env<'_>) {
        while self.channel.events_due(env.now) <= env.now {
            let mut payload = std::mem::take(&mut self.scratch);
            payload.clear();
            let mut writer = Writer::new(&mut payload);
            let packed = self.channel.pack(env.now, PAYLOAD_MAX, &mut writer);
            if packed > 0 {
                self.send(env, kind::EVENTS, |w| w.bytes(&payload));
            }
            self.scratch = payload;
            if packed == 0 {
                break;
            }
        }
        if self.channel.ack_due(env.now) <= env.now {
            self.send(env, kind::ACK, |_| ());
        }
    }

    /// What a long load needs: see [`Client::keep_alive`](super::Client::keep_alive).
    pub fn keep_alive(&mut self, env: &mut Env<'_>) {
        match &mut self.phase {
            Phase::Binding {
                connect_at,
                give_up_at,
            } => {
                if *connect_at <= env.now && env.now < *give_up_at {
                    *connect_at = env.now + CONNECT_EVERY_MS;
                    self.send(env, kind::CONNECT, |_| ());
                }
            }
            Phase::Playing { .. } => {
                if self.sent_at + QUIET_MS <= env.now {
                    self.ping(env);
                }
            }
        }
    }

    /// When the next Ping goes.
    fn ping_at(&self) -> Time {
        let Phase::Playing {
            heard_at,
            pinged_at,
            ..
        } = self.phase
        else {
            return Time::NEVER;
        };
        let quiet_at = heard_at.min(self.sent_at) + QUIET_MS;
        let due = quiet_at.min(pinged_at + PING_EVERY_MS);
        due.max(pinged_at + QUIET_MS)
    }

    fn ping(&mut self, env: &mut Env<'_>) {
        // Nobody's secret: without the generator, any number that differs from the last ones.
        let spare = u32::from(self.channel.header(kind::PING).sequence);
        let nonce = entropy::u32(env.dice).unwrap_or(spare);
        self.send(env, kind::PING, |w| w.u32_le(nonce));
        self.channel.asked(env.now, nonce);
        self.channel.rest();
        if let Phase::Playing { pinged_at, .. } = &mut self.phase {
            *pinged_at = env.now;
        }
    }

    /// A game that polls each frame acknowledges in the frame after the one in which the events
    /// came, unless what it sent between has done so.
    fn acknowledge_polled(&mut self, env: &mut Env<'_>) {
        if self.owed_at_tick {
            self.send(env, kind::ACK, |_| ());
        }
        self.owed_at_tick = self.channel.ack_due(env.now) != Time::NEVER;
    }
}

/// What comes from the server.
impl Session {
    /// Judges a datagram in the document's order, and takes it. Says under which name it counts.
    pub fn heard(
        &mut self,
        env: &mut Env<'_>,
        path: Path,
        bytes: &[u8],
        report: &mut Report,
    ) -> Result<Count, Count> {
        if !source::is_plausible(&path) || !self.is_server(path.remote) {
            return Err(Count::IgnoredSource);
        }
        let (header, payload) = Header::from_server(bytes).map_err(ignored)?;
        if header.session != self.token {
            return Err(Count::IgnoredWrongToken);
        }
        let is_accept = header.kind == kind::ACCEPT && payload.is_empty();
        if !self.is_playing() && !is_accept {
            return Err(Count::IgnoredUnbound);
        }
        match self.channel.arrival(header.sequence) {
            Arrival::New => {}
            Arrival::Repeated => return Err(Count::IgnoredRepeated),
            Arrival::Old => return Err(Count::IgnoredOld),
        }
        let payload = self.read(&header, payload).ok_or(Count::IgnoredMalformed)?;
        self.channel.acknowledged(env.now, &header);
        if let Phase::Playing { heard_at, .. } = &mut self.phase {
            *heard_at = env.now;
        }
        self.payload(env, &header, payload, report)
    }

    /// What a new datagram says; `None` if no honest server sends it.
    fn read<'a>(&self, header: &Header, payload: &'a [u8]) -> Option<Payload<'a>> {
        let payload = Payload::read(header.session.version(), header.kind, payload).ok()?;
        if let Payload::Events(events) = &payload {
            let is_read = |e: RawEvent<'_>| FromServer::read(e.kind, e.body).is_ok();
            let is_too_far = self.admits(events) == Admission::TooFar;
            return (events.clone().all(is_read) && !is_too_far).then_some(payload);
        }
        payload.is_for_client().then_some(payload)
    }

    /// Takes what a valid datagram carries.
    fn payload(
        &mut self,
        env: &mut Env<'_>,
        header: &Header,
        payload: Payload<'_>,
        report: &mut Report,
    ) -> Result<Count, Count> {
        if let Payload::Events(events) = payload {
            return self.events(env, header, &events, report);
        }
        // Whether an Ack is urgent by this is seen when the call settles.
        self.channel.note(header.sequence);
        match payload {
            Payload::Accept if !self.is_playing() => self.bound(env, report),
            Payload::Ping(nonce) => self.send(env, kind::PONG, |w| w.u32_le(nonce)),
            Payload::Pong(nonce) => {
                self.channel.answered(env.now, nonce);
            }
            Payload::Data(bytes) => report.notices.push(Notice::Data { bytes }),
            _ => {}
        }
        Ok(Count::Received)
    }

    /// The first Accept: the game may begin, and a Ping goes at once.
    fn bound(&mut self, env: &mut Env<'_>, report: &mut Report) {
        self.phase = Phase::Playing {
            heard_at: env.now,
            pinged_at: env.now,
            present: 0,
        };
        self.ping(env);
        report.notices.push(Notice::Joined);
    }

    /// Takes the events of a datagram, all or none of them, and hands on those whose turn it is.
    fn events(
        &mut self,
        env: &Env<'_>,
        header: &Header,
        events: &Events<'_>,
        report: &mut Report,
    ) -> Result<Count, Count> {
        if !matches!(self.admits(events), Admission::Take { .. }) {
            return Err(Count::IgnoredEventsHeld);
        }
        self.channel.note(header.sequence);
        self.channel.owe(env.now);
        let Phase::Playing { present, .. } = &mut self.phase else {
            return Ok(Count::Received);
        };
        for raw in events.clone() {
            let lane = &mut self.channel.incoming;
            lane.take(raw.id, raw.kind, raw.body, &mut |kind, body| {
                let Ok(Some(event)) = FromServer::read(kind, body) else {
                    return report.counters.add(Count::SkippedEvents);
                };
                match event {
                    FromServer::PlayerJoined { player, .. } => *present |= bit(player),
                    FromServer::PlayerLeft { player, .. } => *present &= !bit(player),
                    _ => {}
                }
                report.notices.push(event.into());
            });
        }
        Ok(Count::Received)
    }

    fn admits(&self, events: &Events<'_>) -> Admission {
        let lane = &self.channel.incoming;
        lane.admits(events.clone().map(|event| (event.id, event.body.len())))
    }

    /// The address is compared without its scope, which the system has judged.
    fn is_server(&self, remote: SocketAddr) -> bool {
        remote.ip() == self.path.remote.ip() && remote.port() == self.path.remote.port()
    }
}

/// The way to the server. From where is the driver's affair.
fn path_to(server: SocketAddr) -> Path {
    let unspecified = match server.ip() {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    Path {
        socket: 0,
        local: SocketAddr::new(unspecified, 0),
        remote: server,
    }
}

/// The bit of a player; none if there can be no such number.
fn bit(player: u8) -> u8 {
    1_u8.checked_shl(player.into()).unwrap_or(0)
}

fn ignored(error: HeaderError) -> Count {
    match error {
        HeaderError::Long => Count::IgnoredLong,
        HeaderError::Short => Count::IgnoredShort,
        HeaderError::Magic => Count::IgnoredMagic,
        HeaderError::Version => Count::IgnoredVersion,
    }
}
