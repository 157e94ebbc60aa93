//! The service with the relay, and clients of both versions; both ends are ours.

use std::net::SocketAddr;

use anteroom::game::Relay;
use anteroom::protocol::rtyp::{Client, Service, State};

use super::super::hall::{server, settings};
use super::super::host::Host;
use super::{Player, address};
use crate::world::World;
use crate::world::link::Weather;
use crate::world::machine::Shared;

/// The service's number.
pub const SERVICE: usize = 0;

/// A service with the relay, and clients.
pub struct Party {
    pub world: World<Host>,
    pub players: Vec<Shared<Player>>,
    service: Shared<Service>,
}

impl Party {
    pub fn new(seed: u64, weather: Weather) -> Self {
        let mut world = World::new(seed);
        world.net.weather = weather;
        let service = Shared::new(service());
        world.machine(Box::new(service.clone()), &[server()]);
        Self {
            world,
            players: Vec::new(),
            service,
        }
    }

    /// The service is killed, and another one is there at once.
    pub fn restart(&mut self) {
        *self.service.get() = service();
    }

    /// Another client connects; returns its place.
    pub fn dial(&mut self, name: &str) -> usize {
        let own = self.next_own();
        let place = self.add(Client::new(name).expect("a good name"), own);
        self.world.dial(place + 1, own, server());
        place
    }

    /// Another client says hello from an address of its own; returns its place.
    pub fn greet(&mut self, name: &str) -> usize {
        let own = self.next_own();
        self.greet_from(name, own)
    }

    /// The same from this address.
    pub fn greet_from(&mut self, name: &str, own: SocketAddr) -> usize {
        self.add(hello(name), own)
    }

    /// The client is killed, and another one is there at once, at the same port.
    pub fn restart_client(&mut self, place: usize, name: &str) {
        *self.players[place].get() = Player::of(hello(name));
    }

    /// Nothing more comes from the client or goes to it, as if it were dead.
    pub fn cut(&mut self, own: SocketAddr) {
        for (from, to) in [(own, server()), (server(), own)] {
            self.world.net.link(from, to).weather.loss = 1_000;
        }
    }

    fn next_own(&self) -> SocketAddr {
        address(&format!("10.0.0.{}:5000", self.players.len() + 1))
    }

    fn add(&mut self, client: Client, own: SocketAddr) -> usize {
        let player = Shared::new(Player::of(client));
        let machine = self.world.machine(Box::new(player.clone()), &[own]);
        self.players.push(player);
        machine - 1
    }

    #[track_caller]
    pub fn enter(&mut self, name: &str) -> usize {
        let place = self.dial(name);
        self.until(5_000, |all| {
            all[place].get().client.state() == State::Playing
        });
        place
    }

    /// Says hello, and plays within 5 s.
    #[track_caller]
    pub fn enter_by_hello(&mut self, name: &str) -> usize {
        let place = self.greet(name);
        self.until_playing(place, 5_000);
        place
    }

    #[track_caller]
    pub fn until_playing(&mut self, place: usize, ms: u64) {
        self.until(ms, |all| all[place].get().client.state() == State::Playing);
    }

    /// Lets time pass until both sides know of the only session, and that they are heard.
    #[track_caller]
    pub fn until_known(&mut self, place: usize, ms: u64) {
        let player = self.players[place].clone();
        self.world.until(ms, |world| {
            let client = &player.get().client;
            let is_known = client.state() == State::Playing && client.rtt_ms().is_some();
            is_known && world.stat(SERVICE, "sessions") == 1
        });
    }

    #[track_caller]
    pub fn until(&mut self, ms: u64, condition: impl Fn(&[Shared<Player>]) -> bool) {
        let players = self.players.clone();
        self.world.until(ms, |_| condition(&players));
    }

    pub fn state(&self, place: usize) -> State {
        self.players[place].get().client.state()
    }

    pub fn act(&mut self, place: usize, act: impl FnOnce(&mut Client)) {
        act(&mut self.players[place].get().client);
    }

    pub fn send(&mut self, place: usize, bytes: &[u8]) {
        let player = self.players[place].clone();
        let sent = self
            .world
            .call(place + 1, |env| player.get().client.send(env, bytes));
        sent.expect("it plays");
    }

    pub fn leave(&mut self, place: usize) {
        self.world.stop(place + 1);
    }
}

/// A service with one game.
fn service() -> Service {
    Service::new(Box::new(Relay::new()), &settings())
}

fn hello(name: &str) -> Client {
    Client::v2(server(), name, "").expect("a good name")
}

/// Loss enough to need every repetition, and not so much that a binding or a session fails by it.
pub fn drizzle() -> Weather {
    Weather {
        loss: 200,
        double: 200,
        reorder: 300,
        reorder_span: 8,
        delay_ms: 40,
        jitter_ms: 20,
    }
}
