//! The conversation over UDP: from LoginAccepted on, binding, then playing; or from ServerHello
//! on, playing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::super::channel::Channel;
use super::super::wire::{
    self, DATAGRAM_MAX, Events, FromClient, FromServer, HEADER_BYTES_2, Header, PAYLOAD_MAX,
    Payload, PlayerToken, RawEvent, Reason, SessionToken, SharedToken, kind,
};
use super::counters::Count;
use super::notice::{End, Notice};
use super::{Report, SendError};
use crate::bytes::Writer;
use crate::engine::lane::carried::Admission;
use crate::engine::seq::Arrival;
use crate::engine::{Credit, Env, Path, Time, entropy};

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
pub const SILENCE_MS: u64 = 30_000;
/// The longest payload of a datagram of version 2 to the server.
const PAYLOAD_MAX_2: usize = DATAGRAM_MAX - HEADER_BYTES_2;

/// The session and its conversation.
#[derive(Debug)]
pub struct Session {
    player: u8,
    path: Path,
    /// The session field of every datagram of ours …
    ours: wire::Session,
    /// … and of the server's.
    theirs: wire::Session,
    channel: Channel,
    phase: Phase,
    /// A Ping was answered.
    is_answered: bool,
    /// The server has ended the session, over UDP.
    dismissed: Option<Reason>,
    /// When the newest datagram was sent.
    sent_at: Time,
    /// An Ack was owed when the client was last polled, and nothing has been sent since.
    owed_at_tick: bool,
    scratch: Vec<u8>,
}

/// What names a session of version 2.
#[derive(Debug, Clone, Copy)]
pub struct Tokens {
    /// The secret, in what we send.
    pub token: SessionToken,
    /// In what the server sends.
    pub from: PlayerToken,
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

impl Phase {
    fn playing(now: Time) -> Self {
        Self::Playing {
            heard_at: now,
            pinged_at: now,
            present: 0,
        }
    }
}

/// How it comes to be.
impl Session {
    /// The session that LoginAccepted names; its first Connect leaves.
    pub fn accepted(env: &mut Env<'_>, path: Path, token: SharedToken, player: u8) -> Self {
        let token = wire::Session::Shared(token);
        let phase = Phase::Binding {
            connect_at: env.now + CONNECT_EVERY_MS,
            give_up_at: env.now + BIND_MS,
        };
        let mut session = Self::new(env.now, path, (token, token), player, phase);
        session.send(env, kind::CONNECT, |_| ());
        session
    }

    /// The session that the ServerHello of this sequence names; its first Ping leaves.
    pub fn greeted(
        env: &mut Env<'_>,
        path: Path,
        tokens: Tokens,
        player: u8,
        sequence: u16,
    ) -> Self {
        let Tokens { token, from } = tokens;
        let sides = (wire::Session::Secret(token), wire::Session::Public(from));
        let mut session = Self::new(env.now, path, sides, player, Phase::playing(env.now));
        session.channel.note(sequence);
        session.ping(env);
        session
    }

    fn new(
        now: Time,
        path: Path,
        (ours, theirs): (wire::Session, wire::Session),
        player: u8,
        phase: Phase,
    ) -> Self {
        Self {
            player,
            path,
            ours,
            theirs,
            channel: Channel::new(ours),
            phase,
            is_answered: false,
            dismissed: None,
            sent_at: now,
            owed_at_tick: false,
            scratch: Vec::new(),
        }
    }
}

/// What it is asked, and told to send.
impl Session {
    pub fn player(&self) -> u8 {
        self.player
    }

    /// Where its datagrams go, and come from.
    pub fn server(&self) -> SocketAddr {
        self.path.remote
    }

    /// Whether this names it in what the server sends.
    pub fn is_from(&self, token: PlayerToken) -> bool {
        self.theirs == wire::Session::Public(token)
    }

    pub fn is_playing(&self) -> bool {
        matches!(self.phase, Phase::Playing { .. })
    }

    /// Whether a Ping was answered, so that the server is known to hear us.
    pub fn is_answered(&self) -> bool {
        self.is_answered
    }

    /// Why the server has ended it, once it has said so in a ServerBye.
    pub fn dismissed(&self) -> Option<Reason> {
        self.dismissed
    }

    /// When the newest valid datagram came, once it plays.
    pub fn heard_at(&self) -> Option<Time> {
        match self.phase {
            Phase::Binding { .. } => None,
            Phase::Playing { heard_at, .. } => Some(heard_at),
        }
    }

    pub fn is_present(&self, player: u8) -> bool {
        match self.phase {
            Phase::Binding { .. } => false,
            Phase::Playing { present, .. } => bit(player) & present != 0,
        }
    }

    /// The longest payload it can send, in bytes.
    pub fn payload_max(&self) -> usize {
        match self.ours {
            wire::Session::Secret(_) => PAYLOAD_MAX_2,
            wire::Session::Shared(_) | wire::Session::Public(_) => PAYLOAD_MAX,
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
        // The server is where the TCP connection leads, or where our user says: proven.
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
        let room = self.payload_max();
        while self.channel.events_due(env.now) <= env.now {
            let mut payload = std::mem::take(&mut self.scratch);
            payload.clear();
            let mut writer = Writer::new(&mut payload);
            let packed = self.channel.pack(env.now, room, &mut writer);
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
    /// Judges a datagram of the server's in the document's order, and takes it. Says under which
    /// name it counts.
    pub fn heard(
        &mut self,
        env: &mut Env<'_>,
        header: &Header,
        payload: &[u8],
        report: &mut Report,
    ) -> Result<Count, Count> {
        if header.session != self.theirs {
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
        let payload = self.read(header, payload).ok_or(Count::IgnoredMalformed)?;
        self.channel.acknowledged(env.now, header);
        if let Phase::Playing { heard_at, .. } = &mut self.phase {
            *heard_at = env.now;
        }
        self.payload(env, header, payload, report)
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
                self.is_answered |= self.channel.answered(env.now, nonce).is_some();
            }
            Payload::Data(bytes) => report.notices.push(Notice::Data { bytes }),
            Payload::ServerBye(reason) => self.dismissed = Some(Reason::of_server_logout(reason)),
            _ => {}
        }
        Ok(Count::Received)
    }

    /// The first Accept: the game may begin, and a Ping goes at once.
    fn bound(&mut self, env: &mut Env<'_>, report: &mut Report) {
        self.phase = Phase::playing(env.now);
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
}

/// The way to the server from one of our sockets. Its address is the driver's affair.
pub fn path_to(server: SocketAddr, socket: u8) -> Path {
    let unspecified = match server.ip() {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    Path {
        socket,
        local: SocketAddr::new(unspecified, 0),
        remote: server,
    }
}

/// The bit of a player; none if there can be no such number.
fn bit(player: u8) -> u8 {
    1_u8.checked_shl(player.into()).unwrap_or(0)
}
