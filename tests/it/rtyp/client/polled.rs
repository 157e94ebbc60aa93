//! The client as a game drives it: polled each frame, or kept alive from within a long load.

use std::net::SocketAddr;

use anteroom::engine::{Conn, Effect, Env, Input, Machine, Outbox, Path, Seeded, Time};
use anteroom::protocol::rtyp::{Client, State};

use super::super::bytes::{Datagram, Event, kind, login_accepted};
use super::super::peer::SERVER;
use super::{OWN, TOKEN, address};

/// A client whose driver is the test itself.
struct Frame {
    client: Client,
    dice: Seeded,
    now: u64,
    sequence: u16,
    /// The datagrams it sent.
    sent: Vec<Datagram>,
}

impl Frame {
    fn new() -> Self {
        Self {
            client: Client::new("R9").expect("a good name"),
            dice: Seeded::new(1),
            now: 5,
            sequence: 0,
            sent: Vec::new(),
        }
    }

    fn binding() -> Self {
        let mut frame = Self::new();
        let conn = CONN;
        let peer = address(SERVER);
        frame.input(Input::Opened { conn, peer });
        let bytes = &login_accepted(TOKEN, 0, peer.port());
        frame.input(Input::Stream { conn, bytes });
        frame
    }

    fn playing() -> Self {
        let mut frame = Self::binding();
        frame.datagram(kind::ACCEPT, b"");
        assert_eq!(frame.client.state(), State::Playing);
        frame.sent.clear();
        frame
    }

    fn act<T>(&mut self, act: impl FnOnce(&mut Client, &mut Env<'_>) -> T) -> T {
        let mut out = Outbox::new();
        let result = act(
            &mut self.client,
            &mut Env {
                now: Time::from_ms(self.now),
                dice: &mut self.dice,
                out: &mut out,
            },
        );
        for effect in out.effects() {
            if let Effect::Datagram { path, bytes } = effect {
                assert_eq!(path.remote, address(SERVER));
                self.sent.push(Datagram::parse(bytes));
            }
        }
        result
    }

    fn input(&mut self, input: Input<'_>) {
        self.act(|client, env| client.handle(env, input));
    }

    /// The server's next datagram comes.
    fn datagram(&mut self, kind: u8, payload: &[u8]) {
        let datagram = Datagram::new(kind, TOKEN, payload).sequence(self.sequence);
        self.sequence += 1;
        let path = path();
        let bytes = &datagram.bytes();
        self.input(Input::Datagram { path, bytes });
    }

    fn event(&mut self, id: u16) {
        self.datagram(kind::EVENTS, &Event::started().bytes(id));
    }

    /// A frame later it is polled, and nothing has come.
    fn poll(&mut self, ms: u64) {
        self.now += ms;
        self.input(Input::Tick);
    }

    fn kinds(&mut self) -> Vec<u8> {
        self.sent.drain(..).map(|datagram| datagram.kind).collect()
    }
}

const CONN: Conn = Conn {
    slot: 0,
    generation: 0,
};

fn path() -> Path {
    let local: SocketAddr = address(OWN);
    Path {
        socket: 0,
        local,
        remote: address(SERVER),
    }
}

#[test]
fn r13_a_polled_client_acknowledges_in_its_next_frame() {
    for frame_ms in [1, 16, 100] {
        let mut frame = Frame::playing();
        frame.event(0);
        frame.poll(0);
        assert_eq!(frame.kinds(), []);
        frame.poll(frame_ms);
        assert_eq!(frame.sent[0].ack, frame.sequence - 1);
        assert_eq!(frame.kinds(), [kind::ACK]);
        frame.poll(frame_ms);
        assert_eq!(frame.kinds(), []);
    }
}

#[test]
fn r13_what_a_game_sends_between_acknowledges_in_its_place() {
    let mut frame = Frame::playing();
    frame.event(0);
    frame.poll(0);
    frame
        .act(|client, env| client.send(env, b"x"))
        .expect("sent");
    assert_eq!(frame.sent[0].ack, frame.sequence - 1);
    frame.poll(16);
    frame.poll(16);
    assert_eq!(frame.kinds(), [kind::DATA]);
    // An event of the same frame as that poll waits for a frame of its own.
    frame.event(1);
    frame.poll(0);
    frame
        .act(|client, env| client.send(env, b"x"))
        .expect("sent");
    frame.event(2);
    frame.poll(0);
    assert_eq!(frame.kinds(), [kind::DATA]);
    frame.poll(16);
    assert_eq!(frame.kinds(), [kind::ACK]);
}

#[test]
fn r13_one_that_waits_for_its_deadline_acknowledges_within_25_ms() {
    let mut frame = Frame::playing();
    frame.event(0);
    let deadline = frame.client.deadline().expect("an Ack is owed");
    assert_eq!(deadline, Time::from_ms(frame.now + 25));
    frame.poll(25);
    assert_eq!(frame.kinds(), [kind::ACK]);
}

#[test]
fn r13_it_acknowledges_before_16_more_datagrams_have_come() {
    let mut frame = Frame::playing();
    frame.event(0);
    for _ in 0..14 {
        frame.datagram(kind::DATA, b"\x01");
        assert_eq!(frame.kinds(), []);
    }
    frame.datagram(kind::DATA, b"\x01");
    assert_eq!(frame.kinds(), [kind::ACK]);
    // Data alone obliges to nothing, and neither does an Ack.
    for _ in 0..100 {
        frame.datagram(kind::DATA, b"\x01");
        frame.datagram(kind::ACK, b"");
        frame.poll(1);
    }
    assert_eq!(frame.kinds(), []);
}

#[test]
fn a_long_load_keeps_alive_without_being_polled() {
    let mut frame = Frame::playing();
    for _ in 0..200 {
        frame.now += 100;
        frame.act(|client, env| client.keep_alive(env));
    }
    assert_eq!(frame.kinds(), [kind::PING; 20]);
    // Whoever sends needs none.
    for _ in 0..100 {
        frame.now += 100;
        frame
            .act(|client, env| client.send(env, b"x"))
            .expect("sent");
        frame.act(|client, env| client.keep_alive(env));
    }
    assert_eq!(frame.kinds(), [kind::DATA; 100]);
    assert_eq!(frame.client.state(), State::Playing);
}

#[test]
fn a_long_load_goes_on_asking_for_the_accept() {
    let mut frame = Frame::binding();
    frame.sent.clear();
    for _ in 0..20 {
        frame.now += 50;
        frame.act(|client, env| client.keep_alive(env));
    }
    assert_eq!(frame.kinds(), [kind::CONNECT; 4]);
    let mut frame = Frame::new();
    frame.act(|client, env| client.keep_alive(env));
    assert_eq!(frame.kinds(), []);
}

#[test]
fn it_is_due_at_once_before_it_is_driven_and_when_something_waits_to_be_sent() {
    let mut frame = Frame::new();
    assert_eq!(frame.client.deadline(), Some(Time::ZERO));
    frame.poll(0);
    assert_eq!(frame.client.deadline(), Some(Time::from_ms(10_005)));
    let mut frame = Frame::playing();
    assert!(frame.client.deadline() > Some(Time::from_ms(frame.now)));
    frame.client.chat("hi").expect("queued");
    assert_eq!(frame.client.deadline(), Some(Time::from_ms(frame.now)));
    frame.poll(0);
    assert_eq!(frame.kinds(), [kind::EVENTS]);
    assert!(frame.client.deadline() > Some(Time::from_ms(frame.now)));
}

#[test]
fn notices_are_those_of_the_latest_call() {
    let mut frame = Frame::playing();
    assert_eq!(frame.client.notices().count(), 1);
    frame.poll(1);
    assert_eq!(frame.client.notices().count(), 0);
    frame.act(|client, env| client.logout(env));
    assert_eq!(frame.client.notices().count(), 1);
}

#[test]
fn without_entropy_it_still_pings() {
    struct Broken;
    impl anteroom::engine::Entropy for Broken {
        fn fill(&mut self, _: &mut [u8]) -> Result<(), anteroom::engine::NoEntropy> {
            Err(anteroom::engine::NoEntropy)
        }
    }
    let mut frame = Frame::playing();
    for _ in 0..3 {
        frame.now += 1_000;
        let mut out = Outbox::new();
        let mut env = Env {
            now: Time::from_ms(frame.now),
            dice: &mut Broken,
            out: &mut out,
        };
        frame.client.handle(&mut env, Input::Tick);
        for effect in out.effects() {
            if let Effect::Datagram { bytes, .. } = effect {
                frame.sent.push(Datagram::parse(bytes));
            }
        }
    }
    let nonces: Vec<&[u8]> = frame.sent.iter().map(|ping| &ping.payload[..]).collect();
    assert_eq!(nonces.len(), 3);
    assert!(nonces[0] != nonces[1] && nonces[1] != nonces[2]);
}
