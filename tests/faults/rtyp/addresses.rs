//! From where the server answers, and which addresses are one and the same.

use std::net::{Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Instant;

use socket2::{Domain, Socket, Type};

use crate::PATIENCE;
use crate::bytes::kind;
use crate::player::{Login, Player, connect, exchange};
use crate::program::{Program, anteroom};

/// A server at all addresses of this host.
fn everywhere() -> Program {
    Program::spawn(&mut anteroom(&[]))
}

fn has_ipv6() -> bool {
    let has = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_ok();
    if !has {
        println!("skipped: this host has no IPv6");
    }
    has
}

#[test]
fn r33_a_player_is_answered_from_the_address_it_asked() {
    let server = everywhere();
    let mut fixed = Player::enter(server.at("127.0.0.1").0, "fixed");
    // The player itself fails if anything comes from elsewhere.
    let mut wanderer = Login::new(server.at("127.0.0.1").0, "wanderer").at_udp();
    wanderer.server = server.at("127.0.0.2").1;
    wanderer.bind();
    for round in 0..20 {
        exchange(&mut fixed, &mut wanderer, round);
    }
}

#[test]
fn r33_the_newest_datagram_says_which_address_that_is() {
    let server = everywhere();
    let mut fixed = Player::enter(server.at("127.0.0.1").0, "fixed");
    let mut wanderer = Player::enter(server.at("127.0.0.1").0, "wanderer");
    for (round, ip) in (0..).zip(["127.0.0.2", "127.8.9.10", "127.0.0.1", "127.0.0.2"]) {
        wanderer.is_heard();
        wanderer.server = server.at(ip).1;
        wanderer.is_heard();
        exchange(&mut fixed, &mut wanderer, round);
    }
}

#[test]
fn r33_ipv6_is_answered_from_where_it_asked_too() {
    if !has_ipv6() {
        return;
    }
    let server = everywhere();
    let mut six = Player::enter(server.at("::1").0, "six");
    let mut four = Player::enter(server.at("127.0.0.3").0, "four");
    for round in 0..20 {
        exchange(&mut six, &mut four, round);
    }
}

/// A socket of both families, which the system lets speak to IPv4 hosts.
fn dual(kind: Type) -> Socket {
    let socket = Socket::new(Domain::IPV6, kind, None).expect("a socket");
    socket.set_only_v6(false).expect("set");
    socket
}

fn mapped(address: SocketAddr) -> SocketAddr {
    let SocketAddr::V4(v4) = address else {
        panic!("{address} is no IPv4 address");
    };
    SocketAddr::from((v4.ip().to_ipv6_mapped(), v4.port()))
}

fn connect_mapped(to: SocketAddr) -> TcpStream {
    let socket = dual(Type::STREAM);
    let connected = socket.connect(&mapped(to).into());
    connected.expect("the server listens");
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    stream
}

fn bind_mapped(ip: &str) -> UdpSocket {
    let socket = dual(Type::DGRAM);
    let local = mapped(SocketAddr::new(ip.parse().expect("an address"), 0));
    socket.bind(&local.into()).expect("a port");
    socket.into()
}

/// Binds the endpoint with two bare Connects. One that is proven hears a Ping between the two
/// Accepts; from one that is not, too few bytes have come to pay for it.
fn is_proven(player: &mut Player) -> bool {
    player.pings = false;
    let deadline = Instant::now() + PATIENCE;
    let mut heard = || player_hears(player, deadline);
    let (first, second) = (heard(), heard());
    assert_eq!(first, kind::ACCEPT);
    second == kind::PING
}

fn player_hears(player: &mut Player, deadline: Instant) -> u8 {
    player.send(kind::CONNECT, &[]);
    player.hear(deadline).expect("an answer").kind
}

#[test]
fn an_ipv4_address_is_the_same_when_it_is_mapped() {
    if !has_ipv6() {
        return;
    }
    let server = everywhere();
    let (tcp, udp) = server.at("127.0.0.1");
    let plain_udp = || UdpSocket::bind("127.0.0.1:0").expect("a port");

    let login = Login::over(connect_mapped(tcp), "mapped stream");
    let mut player = Player::new(login, plain_udp(), udp);
    assert!(is_proven(&mut player));

    let login = Login::over(connect(tcp), "mapped endpoint");
    let mut player = Player::new(login, bind_mapped("127.0.0.1"), mapped(udp));
    assert!(is_proven(&mut player));

    // And this is how it shows that an address is another.
    for foreign in ["127.0.0.9", "127.0.0.2"] {
        let login = Login::over(connect(tcp), foreign);
        let mut player = Player::new(login, bind_mapped(foreign), mapped(udp));
        assert!(!is_proven(&mut player), "{foreign}");
    }
}
