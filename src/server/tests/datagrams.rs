//! Datagrams: answered from where they came to, taken apart, never lost to somebody else.

use std::net::{SocketAddr, UdpSocket};

use quinn_udp::{Transmit, UdpSockRef, UdpSocketState};

use super::*;

#[test]
fn a_wildcard_socket_answers_from_the_address_that_was_asked() {
    let server = Running::new(&on(&["0.0.0.0"]));
    let port = server.udp().port();
    for ip in ["127.0.0.1", "127.0.0.2", "127.8.9.10"] {
        let to = SocketAddr::new(ip.parse().expect("an address"), port);
        echoed(&endpoint("127.0.0.1", to), b"who is there?");
    }
    server.stop();
}

#[test]
fn every_address_of_a_service_has_the_same_port_and_answers() {
    let server = Running::new(&on(&["127.0.0.1", "127.0.0.2", "127.0.0.3"]));
    let addresses = server.remote.addresses()[0].clone();
    assert_eq!((addresses.tcp.len(), addresses.udp.len()), (3, 3));
    for (tcp, udp) in addresses.tcp.iter().zip(&addresses.udp) {
        assert_eq!(tcp.port(), addresses.tcp[0].port());
        assert_eq!(udp.port(), addresses.udp[0].port());
        echoed(&endpoint("127.0.0.9", *udp), b"here");
    }
    assert!(addresses.receive_buffers.iter().all(|bytes| *bytes > 0));
    server.stop();
}

#[test]
fn ipv6_is_served_beside_ipv4_where_there_is_any() {
    if UdpSocket::bind("[::1]:0").is_err() {
        return;
    }
    let server = Running::new(&Config::default());
    let [v4, v6] = server.remote.addresses()[0].udp[..] else {
        panic!("one socket for each family");
    };
    assert_eq!(v4.port(), v6.port());
    let v4 = SocketAddr::from(([127, 0, 0, 2], v4.port()));
    echoed(&endpoint("127.0.0.1", v4), b"four");
    let v6 = SocketAddr::new("::1".parse().expect("an address"), v6.port());
    echoed(&endpoint("::1", v6), b"six");
    server.stop();
}

#[test]
fn datagrams_of_every_size_come_whole() {
    let server = Running::new(&on(&["127.0.0.1"]));
    let socket = endpoint("127.0.0.1", server.udp());
    for size in [0, 1, 1_200, 9_000, 65_507] {
        echoed(&socket, &vec![7; size]);
        assert_eq!(server.note(), Note::Datagram(size));
    }
    assert_eq!(server.stat("datagram-bytes-in"), 1 + 1_200 + 9_000 + 65_507);
    server.stop();
}

#[test]
fn datagrams_that_the_system_joined_are_taken_apart() {
    let server = Running::new(&on(&["127.0.0.1"]));
    let socket = endpoint("127.0.0.1", server.udp());
    let state = UdpSocketState::new(UdpSockRef::from(&socket)).expect("a socket");
    socket.set_nonblocking(false).expect("set");
    let contents = [7; 950];
    let transmit = Transmit {
        destination: server.udp(),
        ecn: None,
        contents: &contents,
        segment_size: Some(100),
        src_ip: None,
    };
    if state.max_gso_segments() < 10 {
        return;
    }
    state
        .try_send(UdpSockRef::from(&socket), &transmit)
        .expect("sent");
    for size in [100, 100, 100, 100, 100, 100, 100, 100, 100, 50] {
        assert_eq!(server.note(), Note::Datagram(size));
    }
    assert_eq!(server.stat("datagrams-in"), 10);
    server.stop();
}

#[test]
fn an_endpoint_that_is_gone_costs_nobody_else_an_answer() {
    let server = Running::new(&on(&["127.0.0.1"]));
    let alive = endpoint("127.0.0.1", server.udp());
    for round in 0..50_u8 {
        let gone = endpoint("127.0.0.1", server.udp());
        gone.send(b"answer this").expect("sent");
        drop(gone);
        echoed(&alive, &[round]);
    }
    assert_eq!(server.stat("datagrams-in"), 100);
    assert_eq!(server.stat("datagrams-out"), 100);
    server.stop();
}

#[test]
fn more_datagrams_than_a_turn_takes_need_no_new_event() {
    let mut server = Bound::new(&on(&["127.0.0.1"]));
    let socket = endpoint("127.0.0.1", server.udp());
    // Few enough for the smallest receive buffer.
    for _ in 0..200 {
        socket.send(b"x").expect("sent");
    }
    let second = endpoint("127.0.0.1", server.udp());
    for _ in 0..100 {
        second.send(b"x").expect("sent");
    }
    let turns_before = server.server.stats();
    assert_eq!(turns_before.get("echo", "datagrams-in"), Some(0));
    server.server.turn(Some(PATIENCE)).expect("a turn");
    let taken = server.notes.try_iter().count();
    assert!((32..300).contains(&taken), "{taken} in one turn");
    server.turn_until(300 - taken);
}
