//! Four clients and a service that talk in memory: what each side allocates in a call.

use std::collections::VecDeque;

use allocation_counter::measure;
use anteroom::engine::{Conn, Effect, Env, Input, Machine, Outbox, Path, Seeded};
use anteroom::game::Relay;
use anteroom::guard::limits::Limits;
use anteroom::protocol::rtyp::{Client, State};

use super::bytes::{PAYLOAD, Speaker, kind};
use super::machine::{Driven, path, strangers};

const PLAYERS: usize = 4;

/// A client and its world.
struct Player {
    client: Client,
    conn: Conn,
    dice: Seeded,
    out: Outbox,
}

/// All of them; time is the service's.
struct Table {
    driven: Driven,
    players: Vec<Player>,
    /// What the clients have said and the service has not heard, with the number of who did.
    to_service: VecDeque<(usize, Message)>,
    /// How often a client has allocated.
    allocations: u64,
}

/// What is on its way.
enum Message {
    Datagram(Vec<u8>),
    Stream(Vec<u8>),
}

impl Table {
    /// Four players who know each other.
    fn new() -> Self {
        let mut driven = Driven::new(Box::new(Relay::new()), 1, Limits::default());
        let players = (0..PLAYERS).map(|number| player(&mut driven, number));
        let players = players.collect();
        let mut table = Self {
            driven,
            players,
            to_service: VecDeque::new(),
            allocations: 0,
        };
        for index in 0..PLAYERS {
            let conn = table.players[index].conn;
            let peer = path(0).local;
            table.input(index, Input::Opened { conn, peer });
            table.pass(50);
        }
        for player in &table.players {
            assert_eq!(player.client.state(), State::Playing);
        }
        table
    }

    /// A client takes an input; what it says is on its way.
    fn input(&mut self, index: usize, input: Input<'_>) {
        self.act(index, |client, env| client.handle(env, input));
    }

    /// A client does something; what it says is on its way.
    fn act(&mut self, index: usize, act: impl FnOnce(&mut Client, &mut Env<'_>)) {
        let player = &mut self.players[index];
        let (client, out) = (&mut player.client, &mut player.out);
        let mut env = Env {
            now: self.driven.now,
            dice: &mut player.dice,
            out,
        };
        let spent = measure(|| {
            env.out.clear();
            act(client, &mut env);
        });
        self.allocations += spent.count_total;
        let said = messages(&player.out).into_iter();
        self.to_service
            .extend(said.map(|(_, message)| (index, message)));
    }

    /// Brings what is on its way to where it goes, in order, until nothing is.
    fn deliver(&mut self) {
        while let Some((from, message)) = self.to_service.pop_front() {
            let (conn, path) = (self.players[from].conn, path(from as u32));
            match message {
                Message::Datagram(bytes) => self.driven.datagram(path, &bytes),
                Message::Stream(bytes) => self.driven.stream(conn, &bytes),
            }
            self.spread();
        }
    }

    /// Gives what the service has just said to the clients.
    fn spread(&mut self) {
        for (to, message) in messages(&self.driven.out) {
            let is_for = |index: &usize| to.is(*index, self.players[*index].conn);
            let Some(index) = (0..PLAYERS).find(is_for) else {
                continue;
            };
            let conn = self.players[index].conn;
            match &message {
                Message::Datagram(bytes) => {
                    let path = from_service();
                    self.input(index, Input::Datagram { path, bytes });
                }
                Message::Stream(bytes) => self.input(index, Input::Stream { conn, bytes }),
            }
        }
    }

    /// Lets time pass, a millisecond at a time, with all that is due in it.
    fn pass(&mut self, ms: u64) {
        for _ in 0..ms {
            self.driven.now = self.driven.now + 1;
            let now = self.driven.now;
            if self.driven.service.deadline().is_some_and(|due| due <= now) {
                self.driven.input(Input::Tick);
                self.spread();
            }
            for index in 0..PLAYERS {
                let deadline = self.players[index].client.deadline();
                if deadline.is_some_and(|due| due <= now) {
                    self.input(index, Input::Tick);
                }
            }
            self.deliver();
        }
    }

    /// Everybody plays: Data thirty times a second, a chat and a Custom event each second.
    fn play(&mut self, seconds: u64) {
        for tick in 0..seconds * 30 {
            for index in 0..PLAYERS {
                self.act(index, |client, env| {
                    client.send(env, &PAYLOAD).expect("playing");
                    if tick % 30 == 7 {
                        client.chat("hello").expect("playing");
                        client.custom(&PAYLOAD).expect("playing");
                    }
                });
            }
            self.deliver();
            self.pass(33);
        }
    }
}

/// Player number `number`, whose connection the service has accepted.
fn player(driven: &mut Driven, number: usize) -> Player {
    Player {
        client: Client::new(&format!("P{number}")).expect("a name"),
        conn: driven.open(number as u32),
        dice: Seeded::new(number as u64),
        out: Outbox::new(),
    }
}

/// Whom an effect of the service is for.
enum To {
    Conn(Conn),
    Path(Path),
}

impl To {
    /// Whether it is for the player of this number and connection.
    fn is(&self, number: usize, conn: Conn) -> bool {
        match self {
            Self::Conn(to) => *to == conn,
            Self::Path(to) => to.remote == path(number as u32).remote,
        }
    }
}

/// What is in `out`, apart from it.
fn messages(out: &Outbox) -> Vec<(To, Message)> {
    let message = |effect| match effect {
        Effect::Datagram { path, bytes } => {
            Some((To::Path(path), Message::Datagram(bytes.to_vec())))
        }
        Effect::Stream { conn, bytes } => Some((To::Conn(conn), Message::Stream(bytes.to_vec()))),
        Effect::Settled { .. } | Effect::Warning { .. } => None,
        Effect::Close { .. } => panic!("nobody leaves"),
    };
    out.effects().filter_map(message).collect()
}

/// The way from the service, as a client sees it.
fn from_service() -> Path {
    let Path {
        socket,
        local,
        remote,
    } = path(0);
    Path {
        socket,
        local: remote,
        remote: local,
    }
}

#[test]
fn a_client_in_steady_traffic_allocates_nothing() {
    let mut table = Table::new();
    table.play(30);
    table.allocations = 0;
    table.play(60);
    assert_eq!(table.allocations, 0);
}

#[test]
fn a_client_refuses_without_allocating() {
    let mut table = Table::new();
    table.play(1);
    let mut forger = Speaker::new(0xDEAD_BEEF);
    let data = forger.say(kind::DATA, &PAYLOAD).to_vec();
    let stranger = strangers(1)[0];
    let refused = [
        (stranger, &data[..]),
        (from_service(), &data[..]),
        (from_service(), &data[..17]),
        (from_service(), &[0; 1_201][..]),
        (from_service(), b"no datagram of this protocol"),
    ];
    let before = table.players[0].client.stats();
    table.allocations = 0;
    for (path, bytes) in refused {
        for _ in 0..100 {
            table.input(0, Input::Datagram { path, bytes });
        }
    }
    assert_eq!(table.allocations, 0);
    let counted = table.players[0].client.stats();
    let refusals = before
        .iter()
        .zip(&counted)
        .map(|(before, now)| now.1 - before.1);
    assert_eq!(refusals.sum::<u64>(), 500, "{counted:?}");
}
