//! The client, against a host written by hand and against the service.

use std::net::SocketAddr;

use anteroom::engine::{Env, Input, Machine, Time};
use anteroom::protocol::rooms::{Client, End, SendError, State};

use crate::world::machine::Shared;
use crate::world::seeds::seed;
use crate::world::{PeerId, World};
use host::{Host, string};

mod endings;
mod host;
mod packets;
mod requests;
mod room;
mod service;

/// Where the client plays from, and the server is.
const OWN: &str = "10.0.0.1:5000";
const HOST: &str = "10.9.9.9:4243";
/// The machine's number.
const CLIENT: usize = 0;

/// A client, and all that it ever told.
struct Player {
    client: Client,
    /// The notices as they print, and when they came.
    told: Vec<(u64, String)>,
}

impl Player {
    fn new() -> Self {
        Self {
            client: Client::new(),
            told: Vec::new(),
        }
    }

    fn note(&mut self, now: u64) {
        let notices = self.client.notices();
        self.told
            .extend(notices.map(|notice| (now, format!("{notice:?}"))));
    }

    /// How often a notice was told that starts like this.
    fn count(&self, start: &str) -> usize {
        let told = self.told.iter();
        told.filter(|(_, notice)| notice.starts_with(start)).count()
    }
}

impl Machine for Player {
    fn handle(&mut self, env: &mut Env<'_>, input: Input<'_>) {
        self.client.handle(env, input);
        self.note(env.now.ms());
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
    /// The client has begun to connect.
    fn new(host: Host) -> Self {
        let mut world = World::new(seed());
        let player = Shared::new(Player::new());
        world.machine(Box::new(player.clone()), &[address(OWN)]);
        let host = world.add(host);
        world.dial(CLIENT, address(OWN), address(HOST));
        let mut table = Self {
            world,
            player,
            host,
        };
        table.world.for_ms(15);
        table
    }

    /// The client has its token, and has said Init.
    fn open() -> Self {
        let table = Self::new(Host::new(HOST));
        assert_eq!(table.state(), State::Open);
        table
    }

    /// The client is R9, in the room `den` on seat 1; the answer is the newest packet.
    fn in_room() -> Self {
        let mut table = Self::open();
        table.ask(|client| client.login("R9", "password"));
        table.say(0, &[1]);
        table.ask(|client| client.join_room("den", ""));
        table.say(9, &[&[1, 1], &string("den")[..]].concat());
        assert_eq!(table.count("InRoom"), 1);
        table.world.for_ms(5);
        table
    }

    /// Has the client ask, and lets it get there.
    #[track_caller]
    fn ask(&mut self, ask: impl FnOnce(&mut Client) -> Result<(), SendError>) {
        ask(&mut self.player.get().client).expect("it may ask");
        self.world.for_ms(5);
    }

    /// The host says something, and it gets there.
    #[track_caller]
    fn say(&mut self, kind: u8, payload: &[u8]) -> host::Said {
        let said = self.host().say(kind, payload);
        self.world.for_ms(5);
        said
    }

    #[track_caller]
    fn raw(&mut self, bytes: &[u8]) {
        self.host().raw(bytes);
        self.world.for_ms(5);
    }

    fn logout(&mut self) {
        let player = self.player.clone();
        self.world.call(CLIENT, |env| {
            let mut player = player.get();
            player.client.logout(env);
            player.note(env.now.ms());
        });
    }

    fn host(&mut self) -> &mut Host {
        &mut self.world[self.host]
    }

    fn state(&self) -> State {
        self.player.get().client.state()
    }

    fn count(&self, start: &str) -> usize {
        self.player.get().count(start)
    }

    fn stat(&self, name: &str) -> u64 {
        self.world.stat(CLIENT, name)
    }

    /// The ids of the entities that the client knows.
    fn entities(&self) -> Vec<u32> {
        let player = self.player.get();
        player
            .client
            .entities()
            .iter()
            .map(|seen| seen.id)
            .collect()
    }

    /// The session is over for this reason, and the connection with it.
    #[track_caller]
    fn assert_ended(&mut self, end: End) {
        self.world.for_ms(50);
        assert_eq!(self.state(), State::Ended(end));
        assert_eq!(self.count("Ended"), 1);
        assert!(self.host().end.is_some(), "the connection still stands");
        assert_eq!(self.world.connections(CLIENT), (0, 0));
        assert_eq!(self.world.deadline(CLIENT), None);
    }
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}
