//! Clients and the service: both ends are ours.

use anteroom::engine::{Event, Game, Replies, Time, Verdict};
use anteroom::game::Arena;
use anteroom::protocol::rooms::wire::Reason;
use anteroom::protocol::rooms::{Client, End, Service, Settings, State};

use super::host::Host;
use super::{Player, address};
use crate::world::World;
use crate::world::link::Weather;
use crate::world::machine::Shared;
use crate::world::seeds::{seed, seeds};

const SERVICE: usize = 0;
const SERVER: &str = "10.9.9.9:4243";
const PASSWORD: &str = "password";

/// The arena, with accounts for whoever asks and has this password.
#[derive(Default)]
struct Open(Arena);

impl Game for Open {
    fn event(&mut self, now: Time, event: Event<'_>, out: &mut dyn Replies) {
        let (ticket, password) = match event {
            Event::Register {
                ticket, password, ..
            }
            | Event::Login {
                ticket, password, ..
            } => (ticket, password),
            event => return self.0.event(now, event, out),
        };
        let verdict = match password.reveal() {
            PASSWORD => Verdict::Admit,
            _ => Verdict::Refuse,
        };
        out.answer(ticket, verdict).expect("it was just asked");
    }

    fn wake(&self) -> Option<Time> {
        self.0.wake()
    }

    fn tick(&mut self, now: Time, out: &mut dyn Replies) {
        self.0.tick(now, out);
    }
}

/// A service with the arena, and clients.
struct Party {
    world: World<Host>,
    players: Vec<Shared<Player>>,
}

impl Party {
    fn new(seed: u64, weather: Weather) -> Self {
        let mut world = World::new(seed);
        world.net.weather = weather;
        let service = Service::new(Box::new(Open::default()), &Settings::default());
        world.machine(Box::new(service), &[address(SERVER)]);
        Self {
            world,
            players: Vec::new(),
        }
    }

    /// Another client gets its token.
    fn dial(&mut self) -> usize {
        let own = address(&format!("10.0.0.{}:5000", self.players.len() + 1));
        let player = Shared::new(Player::new());
        let machine = self.world.machine(Box::new(player.clone()), &[own]);
        self.players.push(player);
        self.world.dial(machine, own, address(SERVER));
        self.until(5_000, |all| {
            all[machine - 1].get().client.state() == State::Open
        });
        machine - 1
    }

    #[track_caller]
    fn until(&mut self, ms: u64, condition: impl Fn(&[Shared<Player>]) -> bool) {
        let players = self.players.clone();
        self.world.until(ms, |_| condition(&players));
    }

    /// Has a client ask, again if there is no answer, until this is told.
    #[track_caller]
    fn ask(
        &mut self,
        place: usize,
        ask: impl Fn(&mut Client) -> Result<(), anteroom::protocol::rooms::SendError>,
        told: &str,
    ) {
        let before = self.players[place].get().count(told);
        for _ in 0..3 {
            ask(&mut self.players[place].get().client).expect("it may ask");
            let failed = self.players[place].get().count("NoAnswer");
            self.until(5_000, |all| {
                let player = all[place].get();
                player.count(told) > before || player.count("NoAnswer") > failed
            });
            if self.players[place].get().count(told) > before {
                return;
            }
        }
        panic!("{told} was not told: {:?}", self.players[place].get().told);
    }

    /// A client that is logged in.
    fn enter(&mut self, name: &str) -> usize {
        let place = self.dial();
        self.ask(
            place,
            |client| client.register(name, PASSWORD),
            "Registered",
        );
        self.ask(place, |client| client.login(name, PASSWORD), "LoggedIn");
        place
    }

    fn key(&mut self, place: usize, key: i32) {
        let player = self.players[place].clone();
        let pressed = self
            .world
            .call(place + 1, |env| player.get().client.key(env, key));
        pressed.expect("it is in a room");
    }

    /// What a client sees: id, kind and owner of each entity, and where it is.
    fn picture(&self, place: usize) -> Vec<String> {
        let player = self.players[place].get();
        let seen = player.client.entities().iter();
        seen.map(|it| format!("{} {} {:?} {:?}", it.id, it.kind, it.owner, it.position))
            .collect()
    }
}

/// A fifth of all datagrams is lost.
fn rain() -> Weather {
    Weather {
        loss: 200,
        double: 100,
        reorder: 200,
        reorder_span: 8,
        delay_ms: 40,
        jitter_ms: 20,
    }
}

#[test]
fn an_evening_in_the_rain_ends_with_one_picture_and_every_line_once() {
    seeds(10, |seed| {
        let mut party = Party::new(seed, rain());
        let names = ["Leia", "Luke", "Han"];
        for name in names {
            party.enter(name);
        }
        party.ask(0, |client| client.create_room("den", "hush", 16), "InRoom");
        party.ask(
            1,
            |client| client.join_room("den", "wrong"),
            "NotJoined(WrongPassword)",
        );
        for place in [1, 2] {
            party.ask(place, |client| client.join_room("den", "hush"), "InRoom");
        }
        let mut said = [0; 3];
        for round in 0..30 {
            for place in 0..3 {
                party.key(place, [262, 264, 32][(round + place) % 3]);
            }
            let place = round % 3;
            let text = format!("{} {round}", names[place]);
            if party.players[place].get().client.chat(&text).is_ok() {
                said[place] += 1;
            }
            party.world.for_ms(300);
        }
        party.world.for_ms(12_000);
        for place in 0..3 {
            let player = party.players[place].get();
            let own = player.count("Said") + player.count("NoAnswer(Chat)");
            assert_eq!(own, said[place], "seed {seed}");
            // Four times, a fifth lost each time: one in 600 lines does not get there.
            let heard = player.count("Chat");
            let total: usize = said.iter().sum();
            assert!(
                heard + 2 >= total - said[place],
                "seed {seed}: {heard} of {total}"
            );
            let mut lines: Vec<&String> = player.told.iter().map(|(_, it)| it).collect();
            lines.retain(|it| it.starts_with("Chat"));
            let count = lines.len();
            lines.sort();
            lines.dedup();
            assert_eq!(lines.len(), count, "seed {seed}: a line came twice");
        }
        let picture = party.picture(0);
        assert_eq!(picture.len(), 3, "seed {seed}: {picture:?}");
        assert!(
            picture.iter().all(|it| it.contains("Some((")),
            "{picture:?}"
        );
        assert_eq!(party.picture(1), picture, "seed {seed}");
        assert_eq!(party.picture(2), picture, "seed {seed}");
        let player = party.players[0].get();
        assert_eq!(player.client.room(), Some(("den", 0)));
        drop(player);
        assert_eq!(party.world.stat(SERVICE, "rooms"), 1);
    });
}

#[test]
fn a_member_who_leaves_takes_its_ship_along() {
    let mut party = Party::new(seed(), Weather::default());
    for name in ["Leia", "Luke"] {
        party.enter(name);
    }
    party.ask(0, |client| client.create_room("den", "", 2), "InRoom");
    party.ask(
        1,
        |client| client.join_room("den", ""),
        "InRoom { name: \"den\", seat: 1 }",
    );
    party.until(1_000, |all| {
        all.iter().all(|it| it.get().client.entities().len() == 2)
    });
    party.ask(0, |client| client.rooms(0), "Rooms(Rooms { total: 1");
    party.ask(
        0,
        |client| client.leave_room(),
        "OutOfRoom { is_over: false }",
    );
    party.until(1_000, |all| all[1].get().client.entities().len() == 1);
    assert_eq!(party.players[0].get().client.entities().len(), 0);
    // The room is Luke's now.
    party.ask(
        1,
        |client| client.delete_room("den"),
        "OutOfRoom { is_over: true }",
    );
    assert_eq!(party.world.stat(SERVICE, "rooms"), 0);
}

#[test]
fn the_same_user_elsewhere_a_logout_and_a_stop_end_sessions() {
    let mut party = Party::new(seed(), Weather::default());
    let (first, second) = (party.enter("R9"), party.dial());
    party.ask(
        second,
        |client| client.login("R9", "mistaken"),
        "NotLoggedIn",
    );
    party.ask(second, |client| client.login("R9", PASSWORD), "LoggedIn");
    let elsewhere = format!("Ended({:?})", End::Logout(Reason::LoggedInElsewhere));
    party.until(1_000, |all| all[first].get().count(&elsewhere) == 1);
    party.world.stop(second + 1);
    party.until(500, |all| {
        all[second].get().client.state() == State::Ended(End::Left)
    });
    assert_eq!(party.world.stat(SERVICE, "sessions"), 0);
    let third = party.enter("R9");
    party.world.stop(SERVICE);
    let stopped = State::Ended(End::Logout(Reason::Shutdown));
    party.until(500, |all| all[third].get().client.state() == stopped);
}

#[test]
fn an_idle_session_lives_for_an_hour() {
    let weather = Weather {
        loss: 100,
        ..Weather::clear(30)
    };
    let mut party = Party::new(seed(), weather);
    party.enter("R9");
    party.world.for_ms(3_600_000);
    assert_eq!(party.players[0].get().client.state(), State::Open);
    assert_eq!(party.players[0].get().count("NoAnswer"), 0);
}

#[test]
fn a_dead_line_ends_both_ends() {
    let mut party = Party::new(seed(), Weather::default());
    party.enter("R9");
    let (own, server) = (address("10.0.0.1:5000"), address(SERVER));
    for (from, to) in [(own, server), (server, own)] {
        party.world.net.link(from, to).weather.loss = 1_000;
    }
    party.world.for_ms(11_000);
    let state = party.players[0].get().client.state();
    assert_eq!(state, State::Ended(End::Logout(Reason::TimedOut)));
    assert_eq!(party.world.stat(SERVICE, "sessions"), 0);
}
