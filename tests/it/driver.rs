//! The driver over loopback: against a server, and against sockets that a test holds itself.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anteroom::driver::{Door, Driver, End, Reject, SendError, State};
use anteroom::{Config, Error, Remote, Rtyp, Server};
use mio::{Events, Poll, Token};

use super::rtyp::bytes::{self, Datagram, Event, kind, login_accepted, login_rejected, logout};

mod hello;
mod rejoin;

const TOKEN: u32 = 0xDEAD_BEEF;
const PATIENCE: Duration = Duration::from_secs(20);

/// A driver in a poll of its own, and all that it told.
struct Player {
    driver: Driver,
    poll: Poll,
    told: Vec<String>,
}

impl Player {
    fn connect(server: SocketAddr, name: &str) -> Self {
        Self::enter(server, name, Door::Login { rejoins: false })
    }

    fn hello(server: SocketAddr, name: &str) -> Self {
        Self::enter(server, name, Door::Hello { room: "" })
    }

    fn enter(server: SocketAddr, name: &str, door: Door<'_>) -> Self {
        let mut driver = Driver::enter(server, name, door).expect("sockets");
        let poll = Poll::new().expect("a poll");
        driver
            .register(poll.registry(), Token(0), Token(1))
            .expect("registered");
        Self {
            driver,
            poll,
            told: Vec::new(),
        }
    }

    /// Polls once, without waiting.
    fn poll(&mut self) -> State {
        let told = &mut self.told;
        self.driver
            .poll(&mut |notice| told.push(format!("{notice:?}")))
    }

    /// Waits as a loop does: for the sockets, or for the deadline.
    #[track_caller]
    fn until(&mut self, mut condition: impl FnMut(&mut Self) -> bool) {
        let end = Instant::now() + PATIENCE;
        let mut events = Events::with_capacity(8);
        loop {
            self.poll();
            if condition(self) {
                return;
            }
            assert!(Instant::now() < end, "in vain: {:?}", self.told);
            let wait = self.driver.deadline().unwrap_or(PATIENCE);
            let wait = wait.min(Duration::from_millis(50));
            self.poll.poll(&mut events, Some(wait)).expect("polled");
        }
    }

    #[track_caller]
    fn until_state(&mut self, state: State) {
        self.until(|player| player.driver.state() == state);
    }

    /// It was told this, once.
    fn heard(&self, notice: &str) -> bool {
        self.told.iter().filter(|told| *told == notice).count() == 1
    }
}

/// A server with one game of the relay.
struct Serving {
    remote: Remote,
    thread: Option<JoinHandle<Result<(), Error>>>,
}

impl Serving {
    fn new() -> Self {
        let server = Server::bind(Config {
            bind: vec!["127.0.0.1".parse().expect("an address")],
            rtyp: Some(Rtyp {
                port: 0,
                ..Rtyp::default()
            }),
            ..Config::default()
        });
        let (remote, thread) = server.expect("bound").spawn().expect("a thread");
        let thread = Some(thread);
        Self { remote, thread }
    }

    fn address(&self) -> SocketAddr {
        self.remote.addresses()[0].tcp[0]
    }

    /// Version 2 needs this one alone.
    fn udp(&self) -> SocketAddr {
        self.remote.addresses()[0].udp[0]
    }

    fn player(&self, name: &str) -> Player {
        let mut player = Player::connect(self.address(), name);
        player.until_state(State::Playing);
        player
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.remote.stop();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join().expect("no panic");
            assert!(ended.is_ok(), "{ended:?}");
        }
    }
}

#[test]
fn two_players_meet_at_a_server_talk_and_leave() {
    let serving = Serving::new();
    let mut leia = serving.player("Leia");
    let mut luke = serving.player("Luke");
    luke.until(|it| it.heard("PlayerJoined { player: 0, name: \"Leia\" }"));
    leia.until(|it| it.heard("PlayerJoined { player: 1, name: \"Luke\" }"));
    assert_eq!(
        (leia.driver.player(), luke.driver.player()),
        (Some(0), Some(1))
    );
    leia.driver.send(b"xy").expect("it plays");
    luke.until(|it| it.heard("Data { bytes: [0, 120, 121] }"));
    luke.driver.chat("hi").expect("it plays");
    assert_eq!(luke.driver.deadline(), Some(Duration::ZERO));
    luke.driver.custom(b"z").expect("it plays");
    luke.driver.start().expect("it plays");
    luke.until(|it| it.heard("GameStarted"));
    leia.until(|it| it.heard("GameStarted"));
    assert!(leia.heard("Chat { player: 1, text: \"hi\" }"));
    assert!(leia.heard("Custom { body: [1, 122] }"));
    luke.until(|it| it.driver.client().is_all_acknowledged());
    assert!(luke.driver.rtt_ms().is_some());
    luke.driver.logout();
    assert_eq!(luke.driver.state(), State::Ended(End::Left));
    luke.until(|it| it.driver.is_closed());
    assert!(luke.heard("Ended(Left)"));
    assert_eq!(luke.driver.deadline(), None);
    leia.until(|it| it.heard("PlayerLeft { player: 1, reason: Left }"));
    drop(serving);
    leia.until(|it| it.heard("Ended(Logout(Shutdown))"));
}

#[test]
fn a_game_that_only_polls_each_frame_plays_too() {
    let serving = Serving::new();
    let mut driver = Driver::connect(serving.address(), "R9").expect("sockets");
    let end = Instant::now() + PATIENCE;
    while driver.poll(&mut |_| ()) != State::Playing {
        assert!(Instant::now() < end, "in vain");
        std::thread::yield_now();
    }
    driver.send(b"x").expect("it plays");
    while driver.rtt_ms().is_none() {
        assert!(Instant::now() < end, "in vain");
        driver.poll(&mut |_| ());
        std::thread::yield_now();
    }
}

#[test]
fn a_rejection_is_told() {
    let serving = Serving::new();
    let _first = serving.player("R9");
    let mut second = Player::connect(serving.address(), "R9");
    let taken = End::Rejected(Reject::NameTaken.code());
    second.until_state(State::Ended(taken));
    assert!(second.heard("Ended(Rejected(4))"));
    assert!(second.driver.is_closed());
    assert_eq!(second.driver.send(b"x"), Err(SendError::NotPlaying));
}

#[test]
fn who_drops_its_driver_has_left() {
    let serving = Serving::new();
    let mut leia = serving.player("Leia");
    let luke = serving.player("Luke");
    leia.until(|it| it.heard("PlayerJoined { player: 1, name: \"Luke\" }"));
    drop(luke);
    leia.until(|it| it.heard("PlayerLeft { player: 1, reason: Left }"));
}

#[test]
fn a_bad_name_is_refused_at_once() {
    let server = "127.0.0.1:9".parse().expect("an address");
    let refused = Driver::connect(server, "").expect_err("a bad name");
    assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
    let room = "seventeen bytes..";
    let refused = Driver::enter(server, "R9", Door::Hello { room }).expect_err("a bad room");
    assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
}

#[test]
fn nobody_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let server = listener.local_addr().expect("its address");
    drop(listener);
    let mut player = Player::connect(server, "R9");
    let refused = End::Unconnected(io::ErrorKind::ConnectionRefused);
    player.until_state(State::Ended(refused));
    assert!(player.heard("Ended(Unconnected(ConnectionRefused))"));
    assert!(player.driver.is_closed());
}

/// A server whose sockets the test holds.
struct Host {
    listener: TcpListener,
    udp: UdpSocket,
}

impl Host {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let udp = UdpSocket::bind("127.0.0.1:0").expect("bound");
        udp.set_read_timeout(Some(PATIENCE)).expect("set");
        Self { listener, udp }
    }

    /// A player connects and has sent its login.
    fn login(&self) -> (Player, TcpStream) {
        let address = self.listener.local_addr().expect("its address");
        let mut player = Player::connect(address, "R9");
        let stream = self.asked(&mut player);
        (player, stream)
    }

    /// It is accepted, and plays.
    fn play(&self) -> (Player, TcpStream, SocketAddr) {
        let (mut player, mut stream) = self.login();
        let client = self.grant(&mut player, &mut stream, TOKEN);
        (player, stream, client)
    }

    /// A player that has begun to connect plays.
    fn accept(&self, player: &mut Player, token: u32) -> (TcpStream, SocketAddr) {
        let mut stream = self.asked(player);
        let client = self.grant(player, &mut stream, token);
        (stream, client)
    }

    /// The login of a player that has begun to connect comes.
    fn asked(&self, player: &mut Player) -> TcpStream {
        let (mut stream, _) = self.listener.accept().expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        player.until_state(State::LoggingIn);
        read_login(&mut stream);
        stream
    }

    /// A login on a second connection comes, and is accepted.
    fn admit(&self, player: &mut Player, stream: &mut TcpStream, token: u32) -> SocketAddr {
        player.until(|_| stream.peek(&mut [0; 8]).is_ok_and(|len| len == 8));
        read_login(stream);
        // What was said in the first session.
        self.udp.set_nonblocking(true).expect("set");
        while self.udp.recv_from(&mut [0; 2048]).is_ok() {}
        self.udp.set_nonblocking(false).expect("set");
        self.grant(player, stream, token)
    }

    /// The login is accepted, and the endpoint that comes.
    fn grant(&self, player: &mut Player, stream: &mut TcpStream, token: u32) -> SocketAddr {
        let port = self.udp.local_addr().expect("its address").port();
        let accepted = login_accepted(token, 0, port);
        stream.write_all(&accepted).expect("written");
        player.until_state(State::Binding);
        let (connect, client) = self.receive();
        assert_eq!(
            (connect.kind, connect.session),
            (kind::CONNECT, bytes::Token::Shared(token))
        );
        self.send(client, Datagram::new(kind::ACCEPT, token, &[]));
        player.until_state(State::Playing);
        client
    }

    fn receive(&self) -> (Datagram, SocketAddr) {
        let mut buffer = [0; 2048];
        let (len, from) = self.udp.recv_from(&mut buffer).expect("a datagram");
        (Datagram::parse(&buffer[..len]), from)
    }

    fn send(&self, to: SocketAddr, datagram: Datagram) {
        self.udp.send_to(&datagram.bytes(), to).expect("sent");
    }
}

fn read_login(stream: &mut TcpStream) {
    let mut login = [0; 8];
    stream.read_exact(&mut login).expect("a login");
    assert_eq!(login, *b"\x06\0\x01\x01\x02\0R9");
}

/// Closes with a reset.
fn reset(stream: TcpStream) {
    let linger = Some(Duration::ZERO);
    socket2::SockRef::from(&stream)
        .set_linger(linger)
        .expect("set");
}

#[test]
fn last_words_are_told_though_a_reset_follows() {
    let host = Host::new();
    let (mut player, mut stream) = host.login();
    stream.write_all(&login_rejected(8)).expect("written");
    reset(stream);
    player.until(|it| it.driver.is_closed());
    assert!(player.heard("Ended(Rejected(8))"), "{:?}", player.told);

    let (mut player, mut stream, _) = host.play();
    stream.write_all(&logout(4)).expect("written");
    reset(stream);
    player.until(|it| it.driver.is_closed());
    assert!(player.heard("Ended(Logout(Kicked))"), "{:?}", player.told);
}

#[test]
fn a_connection_that_ends_without_a_word_is_told() {
    let host = Host::new();
    let (mut player, stream) = host.login();
    drop(stream);
    player.until_state(State::Ended(End::Closed));
    let (mut player, stream, _) = host.play();
    reset(stream);
    player.until_state(State::Ended(End::Closed));
    assert!(player.driver.is_closed());
}

#[test]
fn events_that_came_before_the_logout_are_told_before_it() {
    let host = Host::new();
    let (mut player, mut stream, client) = host.play();
    let event = Event::said(9, "goodbye").bytes(0);
    let events = Datagram::new(kind::EVENTS, TOKEN, &event).sequence(1);
    host.send(client, events);
    stream.write_all(&logout(4)).expect("written");
    player.until(|it| it.driver.is_closed());
    let last_two = &player.told[player.told.len() - 2..];
    assert_eq!(
        last_two,
        [
            "Chat { player: 9, text: \"goodbye\" }",
            "Ended(Logout(Kicked))"
        ]
    );
}

#[test]
fn it_says_logout_then_nothing_and_closes_when_the_server_has() {
    let host = Host::new();
    let (mut player, mut stream, _) = host.play();
    // Unread input must not turn the end into a reset.
    stream.write_all(&[0xFF]).expect("written");
    player.driver.logout();
    player.driver.logout();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).expect("an orderly end");
    assert_eq!(rest, logout(0));
    assert!(!player.driver.is_closed());
    drop(stream);
    player.until(|it| it.driver.is_closed());
    assert!(player.heard("Ended(Left)"));
}

#[test]
fn a_server_that_does_not_close_is_left_after_a_second() {
    let host = Host::new();
    let (mut player, _stream, _) = host.play();
    player.driver.logout();
    let start = Instant::now();
    player.until(|it| it.driver.is_closed());
    let taken = start.elapsed();
    assert!((Duration::from_millis(900)..Duration::from_secs(5)).contains(&taken));
}

#[test]
fn strangers_do_not_even_reach_the_client() {
    let host = Host::new();
    let (mut player, _stream, client) = host.play();
    let stranger = UdpSocket::bind("127.0.0.1:0").expect("bound");
    let forged = Datagram::new(kind::DATA, TOKEN, b"forged").sequence(1);
    stranger.send_to(&forged.bytes(), client).ok();
    let real = Datagram::new(kind::DATA, TOKEN, b"x").sequence(2);
    host.send(client, real);
    player.until(|it| it.heard("Data { bytes: [120] }"));
    let stats = player.driver.stats();
    assert!(stats.contains(&("ignored-source", 0)), "{stats:?}");
    assert_eq!(player.told.len(), 3);
}

#[test]
fn one_poll_takes_a_bounded_part_of_a_flood() {
    let host = Host::new();
    let (mut player, _stream, client) = host.play();
    player.until(|it| it.driver.deadline().is_some_and(|wait| !wait.is_zero()));
    let before = player.told.len();
    for sequence in 1..=150 {
        let datagram = Datagram::new(kind::DATA, TOKEN, b"").sequence(sequence);
        host.send(client, datagram);
    }
    player.poll();
    let first_part = player.told.len() - before;
    assert_eq!(first_part, 64);
    assert_eq!(player.driver.deadline(), Some(Duration::ZERO));
    player.until(|it| it.told.len() - before == 150);
}

#[test]
fn a_long_load_is_bridged_by_keep_alive_alone() {
    let host = Host::new();
    let (mut player, _stream, _) = host.play();
    let (first, _) = host.receive();
    assert_eq!(first.kind, kind::PING, "the one on the first Accept");
    let timeout = Duration::from_millis(10);
    host.udp.set_read_timeout(Some(timeout)).expect("set");
    let start = Instant::now();
    let mut buffer = [0; 2048];
    let second = loop {
        player.driver.keep_alive();
        if let Ok((len, _)) = host.udp.recv_from(&mut buffer) {
            break Datagram::parse(&buffer[..len]);
        }
        assert!(start.elapsed() < PATIENCE, "in vain");
    };
    assert_eq!(second.kind, kind::PING);
    assert!(start.elapsed() > Duration::from_millis(900));
}

/// It takes its 5 s: nobody answers on UDP, and the system says so with each Connect.
#[test]
fn a_server_without_udp_is_unreachable_whatever_the_system_says() {
    let host = Host::new();
    let (mut player, mut stream) = host.login();
    let nobody = UdpSocket::bind("127.0.0.1:0").expect("bound");
    let port = nobody.local_addr().expect("its address").port();
    drop(nobody);
    let accepted = login_accepted(TOKEN, 0, port);
    stream.write_all(&accepted).expect("written");
    player.until_state(State::Ended(End::Unreachable));
    let mut rest = [0; 4];
    stream.read_exact(&mut rest).expect("a Logout");
    assert_eq!(rest[..], logout(0));
}
