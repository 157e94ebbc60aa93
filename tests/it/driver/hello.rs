//! The driver in version 2: it has one socket.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use anteroom::driver::{End, Reject, State};

use super::super::rtyp::bytes::{Datagram, Token};
use super::super::rtyp::client::greeter::{Said, kind, outside};
use super::{PATIENCE, Player, Serving, TOKEN};

#[test]
fn players_of_both_versions_meet_at_a_server() {
    let serving = Serving::new();
    let mut leia = serving.player("Leia");
    let mut luke = Player::hello(serving.udp(), "Luke");
    assert_eq!(luke.driver.state(), State::LoggingIn);
    luke.until_state(State::Playing);
    luke.until(|it| it.heard("PlayerJoined { player: 0, name: \"Leia\" }"));
    luke.driver.send(b"xy").expect("it plays");
    leia.until(|it| it.heard("Data { bytes: [1, 120, 121] }"));
    leia.driver.chat("hi").expect("it plays");
    leia.poll();
    luke.until(|it| it.heard("Chat { player: 0, text: \"hi\" }"));
    luke.until(|it| it.driver.rtt_ms().is_some());
    let mut second = Player::hello(serving.udp(), "Luke");
    let taken = End::Rejected(Reject::NameTaken.code());
    second.until_state(State::Ended(taken));
    assert!(second.driver.is_closed());
    luke.driver.logout();
    leia.until(|it| it.heard("PlayerLeft { player: 1, reason: Left }"));
    let mut han = Player::hello(serving.udp(), "Han");
    han.until_state(State::Playing);
    leia.until(|it| it.heard("PlayerJoined { player: 1, name: \"Han\" }"));
    // Dropping it is leaving too.
    drop(han);
    leia.until(|it| {
        it.told
            .iter()
            .filter(|told| told.starts_with("PlayerLeft"))
            .count()
            == 2
    });
    let mut last = Player::hello(serving.udp(), "R9");
    last.until_state(State::Playing);
    drop(serving);
    last.until(|it| it.heard("Ended(Logout(Shutdown))"));
    last.until(|it| it.driver.is_closed());
}

/// A server of version 2 whose only socket the test holds.
struct Greeting {
    udp: UdpSocket,
}

impl Greeting {
    const COOKIE: u64 = 0x0102_0304;
    const SECRET: u64 = 0xFEED_FACE;

    fn new() -> Self {
        let udp = UdpSocket::bind("127.0.0.1:0").expect("bound");
        udp.set_read_timeout(Some(PATIENCE)).expect("set");
        Self { udp }
    }

    fn receive(&self) -> (Said, SocketAddr) {
        let mut buffer = [0; 2048];
        let (len, from) = self.udp.recv_from(&mut buffer).expect("a datagram");
        (Said::parse(&buffer[..len]), from)
    }

    /// The next of this type, whatever comes before it.
    fn next(&self, kind: u8) -> (Said, SocketAddr) {
        loop {
            let (said, from) = self.receive();
            if said.kind == kind {
                return (said, from);
            }
        }
    }

    fn send(&self, to: SocketAddr, datagram: &Datagram) {
        self.udp.send_to(&datagram.bytes(), to).expect("sent");
    }

    /// A player says hello, is challenged and let in.
    fn play(&self) -> (Player, SocketAddr) {
        let address = self.udp.local_addr().expect("its address");
        let mut player = Player::hello(address, "R9");
        player.poll();
        let (hello, from) = self.next(kind::CLIENT_HELLO);
        assert_eq!(hello.cookie(), 0);
        let cookie = Self::COOKIE.to_le_bytes();
        self.send(from, &outside(kind::CONNECT_CHALLENGE, &cookie));
        player.until(|it| it.driver.stats().contains(&("received", 1)));
        let (hello, _) = self.next(kind::CLIENT_HELLO);
        assert_eq!(hello.cookie(), Self::COOKIE);
        let session = [&Self::SECRET.to_le_bytes()[..], &[3]].concat();
        let mut hello = outside(kind::SERVER_HELLO, &session);
        hello.session = Token::Public(TOKEN);
        self.send(from, &hello);
        player.until_state(State::Playing);
        (player, from)
    }
}

#[test]
fn version_2_needs_no_connection_and_says_farewell_three_times() {
    let host = Greeting::new();
    let (mut player, from) = host.play();
    assert_eq!(player.driver.player(), Some(3));
    player.driver.logout();
    assert_eq!(player.driver.state(), State::Ended(End::Left));
    assert!(!player.driver.is_closed());
    let start = Instant::now();
    player.until(|it| it.driver.is_closed());
    assert!(start.elapsed() >= Duration::from_millis(190));
    assert!(player.heard("Ended(Left)"));
    let byes: Vec<u16> = (0..3)
        .map(|_| {
            let (bye, source) = host.next(kind::CLIENT_BYE);
            assert_eq!((bye.token, source), (Greeting::SECRET, from));
            bye.sequence
        })
        .collect();
    assert!(byes.windows(2).all(|two| two[1] == two[0] + 1), "{byes:?}");
    assert_eq!(player.driver.deadline(), None);
}

#[test]
fn a_player_of_version_2_that_is_dropped_says_farewell_once() {
    let host = Greeting::new();
    let (player, _) = host.play();
    drop(player);
    let (bye, _) = host.next(kind::CLIENT_BYE);
    assert_eq!(bye.token, Greeting::SECRET);
    let soon = Some(Duration::from_millis(300));
    host.udp.set_read_timeout(soon).expect("set");
    assert!(host.udp.recv_from(&mut [0; 2048]).is_err());
}

/// The system refuses what is sent meanwhile, and says so.
#[test]
fn a_server_that_is_not_there_yet_is_greeted_as_soon_as_it_is() {
    let nobody = UdpSocket::bind("127.0.0.1:0").expect("bound");
    let address = nobody.local_addr().expect("its address");
    drop(nobody);
    let mut player = Player::hello(address, "R9");
    let start = Instant::now();
    player.until(|_| start.elapsed() > Duration::from_millis(600));
    assert_eq!(player.driver.state(), State::LoggingIn);
    let host = UdpSocket::bind(address).expect("still free");
    host.set_nonblocking(true).expect("set");
    player.until(|_| host.recv_from(&mut [0; 2048]).is_ok());
}
