//! Packets at the server, judged in the document's order.

use super::Service;
use super::core::{Cause, Core};
use super::counters::Count;
use super::wire::{Packet, PacketError, Reason, Request, Token, kind};
use crate::engine::bucket::Rate;
use crate::engine::seq::Arrival;
use crate::engine::{Env, Event, Key, Path, source};

/// So many packets of a wrong shape end a session.
const MALFORMED_MAX: u8 = 10;
/// Keys taken from a session.
const KEYS_RATE: Rate = Rate::per_second(60, 60);
/// A client is shown everything at most once in this time.
const SHOW_EVERY_MS: u64 = 5_000;

impl Service {
    /// A datagram came.
    pub(super) fn datagram(&mut self, env: &mut Env<'_>, path: Path, bytes: &[u8]) {
        if let Err(count) = self.judge(env, path, bytes) {
            self.core.refuse(env, path.remote.ip(), count);
        }
    }

    fn judge(&mut self, env: &mut Env<'_>, path: Path, bytes: &[u8]) -> Result<(), Count> {
        if !source::is_plausible(&path) {
            return Err(Count::IgnoredSource);
        }
        let packet = Packet::read(bytes).map_err(ignored)?;
        let key = self.core.heard_from(path, packet.token)?;
        let data = self.core.data(key).ok_or(Count::IgnoredToken)?;
        match data.received.judge(packet.id) {
            Arrival::New => {}
            late => return self.core.repeated(env, key, &packet, late),
        }
        data.received.note(packet.id);
        let Ok(request) = Request::read(packet.kind, packet.payload) else {
            self.core.malformed(env, key);
            return Err(Count::IgnoredMalformed);
        };
        self.core.valid(env, key, path);
        self.core.afford(env, key, &packet)?;
        self.request(env, key, packet.id, request)
    }

    fn request(
        &mut self,
        env: &mut Env<'_>,
        key: Key,
        id: u16,
        request: Request<'_>,
    ) -> Result<(), Count> {
        match request {
            Request::Login { user, password } => self.login(env, key, id, user, password),
            Request::Register { user, password } => self.register(env, key, id, user, password),
            Request::Logout { .. } => {
                self.core.end(env, key, Cause::Server(Reason::Asked));
                Ok(())
            }
            Request::Key(code) => {
                let player = self.core.player(key).ok_or(Count::IgnoredOutsideRoom)?;
                self.core.afford_key(env, key)?;
                self.tell(env, Event::Key { player, key: code });
                Ok(())
            }
            Request::Init => self.show(env, key),
            Request::Chat { text } => self.core.chat(env, key, id, text),
            Request::CreateRoom {
                name,
                password,
                max_players,
            } => {
                self.core
                    .create_room(env, key, id, name, password, max_players);
                Ok(())
            }
            Request::DeleteRoom { name } => {
                self.core.delete_room(env, key, id, name);
                Ok(())
            }
            Request::JoinRoom { name, password } => {
                self.core.join_room(env, key, id, name, password);
                Ok(())
            }
            Request::GetRooms { first } => {
                self.core.get_rooms(env, key, id, first);
                Ok(())
            }
            Request::LeaveRoom => {
                self.core.leave(env, key, id);
                Ok(())
            }
        }
    }

    /// A sign of life; in a room also the question what there is.
    fn show(&mut self, env: &mut Env<'_>, key: Key) -> Result<(), Count> {
        let Some(player) = self.core.player(key) else {
            return Ok(());
        };
        let Some(data) = self.core.data(key) else {
            return Ok(());
        };
        if data
            .shown
            .is_some_and(|shown| env.now.since(shown) < SHOW_EVERY_MS)
        {
            return Err(Count::IgnoredInit);
        }
        data.shown = Some(env.now);
        self.core.refreshing = Some(player);
        self.tell(env, Event::Refresh { player });
        self.core.refreshing = None;
        Ok(())
    }
}

impl Core {
    /// The session of a token, if it is bound to the packet's endpoint, or not bound yet and the
    /// packet comes from the address of its TCP connection.
    fn heard_from(&mut self, path: Path, token: Token) -> Result<Key, Count> {
        let key = self
            .engine
            .with_token(token.0.into())
            .ok_or(Count::IgnoredToken)?;
        let session = self.engine.get(key).ok_or(Count::IgnoredToken)?;
        let is_its = match session.endpoint() {
            Some(endpoint) => endpoint == path.remote,
            None => session.data.ip == path.remote.ip() && self.engine.at(&path.remote).is_none(),
        };
        is_its.then_some(key).ok_or(Count::IgnoredEndpoint)
    }

    /// A packet that came before: the remembered answer goes again, in a packet of its own.
    fn repeated(
        &mut self,
        env: &mut Env<'_>,
        key: Key,
        packet: &Packet<'_>,
        late: Arrival,
    ) -> Result<(), Count> {
        let remembered = self.data(key).and_then(|data| {
            let (kind, payload) = data.remembered(packet.kind, packet.id)?;
            Some((kind, payload.to_vec()))
        });
        match remembered {
            Some((kind, payload)) if Request::read(packet.kind, packet.payload).is_ok() => {
                self.afford(env, key, packet)?;
                self.say_payload(env, key, kind, &payload);
                Ok(())
            }
            _ if late == Arrival::Repeated => Err(Count::IgnoredRepeated),
            _ => Err(Count::IgnoredOld),
        }
    }

    /// Takes a request that has an answer off the session's budget. One above it counts as unseen.
    fn afford(&mut self, env: &Env<'_>, key: Key, packet: &Packet<'_>) -> Result<(), Count> {
        let rate = self.requests_rate;
        let Some(data) = self.data(key) else {
            return Ok(());
        };
        let is_free = !kind::ANSWERED.contains(&packet.kind);
        if is_free || data.requests.take(env.now, rate) {
            return Ok(());
        }
        if data.remembered(packet.kind, packet.id).is_none() {
            data.received.forget(packet.id);
        }
        Err(Count::IgnoredRequests)
    }

    /// Takes a Key off the session's budget.
    fn afford_key(&mut self, env: &Env<'_>, key: Key) -> Result<(), Count> {
        let keys = self.data(key).map(|data| &mut data.keys);
        let is_affordable = keys.is_none_or(|keys| keys.take(env.now, KEYS_RATE));
        is_affordable.then_some(()).ok_or(Count::IgnoredKeys)
    }

    /// A packet has a wrong shape. The tenth ends the session.
    fn malformed(&mut self, env: &mut Env<'_>, key: Key) {
        let Some(data) = self.data(key) else { return };
        data.malformed += 1;
        if data.malformed >= MALFORMED_MAX {
            self.end(env, key, Cause::Server(Reason::ProtocolError));
        }
    }

    /// A valid packet came: the first binds its endpoint, each refreshes the timeout.
    fn valid(&mut self, env: &mut Env<'_>, key: Key, path: Path) {
        if self.engine.bind(key, path.remote) {
            self.counters.add(Count::Bindings);
            if let Some(conn) = self.engine.get(key).and_then(|session| session.conn()) {
                env.out.settled(conn);
            }
        }
        let Some(session) = self.engine.get_mut(key) else {
            return;
        };
        session.heard = env.now;
        session.data.path = Some(path);
    }
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
