//! The client, against a host written by hand and against the service.

use std::net::SocketAddr;

use anteroom::engine::{Env, Input, Machine, Time};
use anteroom::protocol::rtyp::{Client, End, State};

use super::bytes::Datagram;
use super::host::Host;
use super::peer::SERVER;
use crate::world::machine::Shared;
use crate::world::seeds::seed;
use crate::world::{PeerId, World};

mod after_hello;
mod binding;
mod datagrams;
mod events;
mod greeted;
pub mod greeter;
mod hello;
mod hello_service;
mod liveness;
mod login;
mod party;
mod polled;
mod rejoin;
mod service;

/// The token that the host gives.
const TOKEN: u32 = 0xDEAD_BEEF;
/// Where the client plays from.
const OWN: &str = "10.0.0.1:5000";
/// The machine's number.
const CLIENT: usize = 0;

/// A client, and all that it ever told.
pub struct Player {
    pub client: Client,
    /// The notices as they print, and when they came.
    pub told: Vec<(u64, String)>,
}

impl Player {
    fn new(name: &str) -> Self {
        Self::of(Client::new(name).expect("a good name"))
    }

    fn of(client: Client) -> Self {
        Self {
            client,
            told: Vec::new(),
        }
    }

    /// How often a notice was told that starts like this.
    fn count(&self, start: &str) -> usize {
        let told = self.told.iter();
        told.filter(|(_, notice)| notice.starts_with(start)).count()
    }

    /// The notices without their times.
    fn notices(&self) -> Vec<&str> {
        self.told.iter().map(|(_, notice)| &notice[..]).collect()
    }
}

impl Machine for Player {
    fn handle(&mut self, env: &mut Env<'_>, input: Input<'_>) {
        self.client.handle(env, input);
        let now = env.now.ms();
        let notices = self.client.notices();
        self.told
            .extend(notices.map(|notice| (now, format!("{notice:?}"))));
    }

    fn deadline(&self) -> Option<Time> {
        self.client.deadline()
    }

    fn stats(&self) -> Vec<(&'static str, u64)> {
        self.client.stats()
    }
}

/// A client and the host it talks to.
struct Table {
    world: World<Host>,
    player: Shared<Player>,
    host: PeerId,
}

impl Table {
    /// Nobody has connected.
    fn new(host: Host) -> Self {
        let mut world = World::new(seed());
        let player = Shared::new(Player::new("R9"));
        world.machine(Box::new(player.clone()), &[address(OWN)]);
        let host = world.add(host);
        Self {
            world,
            player,
            host,
        }
    }

    /// The client has connected and sent its login.
    fn logging_in(host: Host) -> Self {
        let mut table = Self::new(host);
        table.dial();
        let host = table.host;
        table
            .world
            .until(1000, |world| !world[host].messages.is_empty());
        table
    }

    /// The client has just been accepted, and no Connect is answered.
    fn binding() -> Self {
        let mut host = Host::new(SERVER, TOKEN);
        host.hosting.accept = false;
        let mut table = Self::logging_in(host);
        table.until(1000, |player| player.count("Accepted") == 1);
        table
    }

    /// The client plays.
    fn playing() -> Self {
        Self::playing_at(Host::new(SERVER, TOKEN))
    }

    fn playing_at(host: Host) -> Self {
        let mut table = Self::logging_in(host);
        table.until(1000, |player| player.count("Joined") == 1);
        table
    }

    fn dial(&mut self) {
        self.world.dial(CLIENT, address(OWN), address(SERVER));
    }

    /// Lets time pass until the condition holds.
    #[track_caller]
    fn until(&mut self, ms: u64, condition: impl Fn(&Player) -> bool) {
        let player = self.player.clone();
        self.world.until(ms, |_| condition(&player.get()));
    }

    fn host(&mut self) -> &mut Host {
        &mut self.world[self.host]
    }

    fn state(&self) -> State {
        self.player.get().client.state()
    }

    fn stat(&self, name: &str) -> u64 {
        self.world.stat(CLIENT, name)
    }

    /// What the client may do only with an environment.
    fn act<T>(&mut self, act: impl FnOnce(&mut Client, &mut Env<'_>) -> T) -> T {
        let player = self.player.clone();
        self.world
            .call(CLIENT, |env| act(&mut player.get().client, env))
    }

    /// The host sends this datagram, numbered by the test.
    fn numbered(&mut self, kind: u8, sequence: u16, payload: &[u8]) {
        self.host().talk.strict = false;
        let datagram = Datagram::new(kind, TOKEN, payload).sequence(sequence);
        self.host().raw(&datagram.bytes());
        self.world.for_ms(5);
    }

    /// The newest acknowledgement that the client gave, drawn out of it by a Ping.
    fn acknowledged(&mut self) -> (u16, u32) {
        let ping = self.host().talk.ping();
        self.host().raw(&ping.bytes());
        self.world.for_ms(10);
        let (_, newest) = self.host().datagrams.last().expect("it has spoken").clone();
        (newest.ack, newest.ack_bits)
    }

    /// The session is over for this reason, and the connection with it.
    #[track_caller]
    fn assert_ended(&mut self, end: End) {
        self.world.for_ms(50);
        assert_eq!(self.state(), State::Ended(end));
        assert_eq!(self.player.get().count("Ended"), 1);
        let last = format!("Ended({end:?})");
        assert_eq!(self.player.get().notices().last(), Some(&&last[..]));
        assert!(self.host().end.is_some(), "the connection still stands");
        assert_eq!(self.world.connections(CLIENT), (0, 0));
        assert_eq!(self.world.deadline(CLIENT), None);
    }

    /// The last message over TCP.
    fn last_message(&mut self) -> Vec<u8> {
        let messages = &self.host().messages;
        messages
            .last()
            .map(|(_, it)| it.clone())
            .unwrap_or_default()
    }
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}
