//! Servers begin, are told things from elsewhere, and end.

use std::time::Instant;

use super::*;
use crate::engine::Key;
use crate::server::RemoteError;

#[test]
fn everybody_hears_the_farewell() {
    let server = Running::new(&on(&["127.0.0.1"]));
    let streams: Vec<TcpStream> = (0..100).map(|_| connect(server.tcp())).collect();
    for _ in 0..100 {
        assert!(matches!(server.note(), Note::Opened(_)));
    }
    let readers: Vec<JoinHandle<Vec<u8>>> = streams
        .into_iter()
        .map(|stream| std::thread::spawn(move || read_all(stream)))
        .collect();
    let asked = Instant::now();
    server.stop();
    assert!(asked.elapsed() < Duration::from_millis(2_500));
    for reader in readers {
        assert_eq!(reader.join().expect("no reset"), FAREWELL);
    }
}

#[test]
fn a_peer_that_ignores_the_farewell_delays_the_end_by_a_second_at_most() {
    let server = Running::new(&on(&["127.0.0.1"]));
    let stream = connect(server.tcp());
    assert!(matches!(server.note(), Note::Opened(_)));
    let asked = Instant::now();
    server.stop();
    assert!(asked.elapsed() < Duration::from_millis(2_500));
    assert_eq!(read_all(stream), FAREWELL);
}

#[test]
fn the_port_is_free_when_the_server_has_ended() {
    let server = Running::new(&on(&["127.0.0.1"]));
    let (tcp, udp) = (server.tcp(), server.udp());
    let stream = connect(tcp);
    assert!(matches!(server.note(), Note::Opened(_)));
    server.stop();
    drop(stream);
    let (mut plan, _notes) = plan("echo", 0);
    plan.tcp = Some(tcp.port());
    plan.udp = udp.port();
    let again = Server::with_plans(&on(&["127.0.0.1"]), vec![plan]).expect("bound again");
    assert_eq!(again.addresses()[0].tcp, [tcp]);
    assert_eq!(again.addresses()[0].udp, [udp]);
}

#[test]
fn a_port_in_use_is_named() {
    let server = Bound::new(&on(&["127.0.0.1"]));
    for taken in [server.tcp(), server.udp()] {
        let (mut plan, _notes) = plan("echo", 0);
        plan.tcp = Some(server.tcp().port());
        if taken == server.udp() {
            plan.tcp = None;
            plan.udp = taken.port();
        }
        let refused = Server::with_plans(&on(&["127.0.0.1"]), vec![plan]);
        let error = refused.err().expect("the port is taken");
        assert!(matches!(error, Error::PortInUse { address, .. } if address == taken));
        assert!(error.to_string().contains(&taken.port().to_string()));
    }
}

#[test]
fn nothing_to_serve_and_too_many_addresses_are_errors() {
    let nothing = Server::with_plans(&Config::default(), Vec::new());
    assert!(matches!(nothing.err(), Some(Error::NoService)));
    let config = on(&["127.0.0.1"; 65]);
    let (plan, _notes) = plan("echo", 0);
    let refused = Server::with_plans(&config, vec![plan]);
    assert!(matches!(
        refused.err(),
        Some(Error::OutOfRange {
            value: 65,
            max: 64,
            ..
        })
    ));
}

#[test]
fn servers_of_one_process_know_nothing_of_each_other() {
    let (one, two) = (
        Running::new(&on(&["127.0.0.1"])),
        Running::new(&on(&["127.0.0.1"])),
    );
    assert_ne!(one.udp(), two.udp());
    echoed(&endpoint("127.0.0.1", one.udp()), b"one");
    one.stop();
    echoed(&endpoint("127.0.0.1", two.udp()), b"two");
    assert_eq!(two.stat("datagrams-in"), 1);
    two.stop();
}

#[test]
fn two_services_share_a_loop_and_are_counted_apart() {
    let ((first, first_notes), (second, second_notes)) = (plan("first", 0), plan("second", 0));
    let server = Server::with_plans(&on(&["127.0.0.1"]), vec![first, second]).expect("bound");
    let (remote, thread) = server.spawn().expect("a thread");
    let [first, second] = remote.addresses() else {
        panic!("two services");
    };
    echoed(&endpoint("127.0.0.1", first.udp[0]), b"1");
    let stream = connect(second.tcp[0]);
    let opened = second_notes.recv_timeout(PATIENCE).expect("in time");
    assert!(matches!(opened, Note::Opened(_)));
    assert_eq!(first_notes.recv_timeout(PATIENCE), Ok(Note::Datagram(1)));
    let stats = remote.stats().expect("running");
    assert_eq!(stats.get("first", "datagrams-in"), Some(1));
    assert_eq!(stats.get("first", "accepted"), Some(0));
    assert_eq!(stats.get("second", "accepted"), Some(1));
    assert_eq!(stats.get("third", "accepted"), None);
    remote.stop().expect("running");
    assert_eq!(read_all(stream), FAREWELL);
    thread.join().expect("no panic").expect("no error");
}

#[test]
fn orders_of_other_threads_are_done_in_their_order() {
    let server = Running::new(&on(&["127.0.0.1"]));
    let remote = server.remote.clone();
    let ordering = std::thread::spawn(move || {
        for game in 0..500 {
            let command = move |replies: &mut dyn Replies| replies.start(game);
            remote.command("echo", command).expect("running");
        }
    });
    for game in 0..500 {
        assert_eq!(server.note(), Note::Command(game));
    }
    ordering.join().expect("no panic");
    let ticket = Ticket {
        service: 0,
        key: Key {
            slot: 1,
            generation: 2,
        },
        question: 0,
    };
    server.remote.answer(ticket, Verdict::Admit).expect("ours");
    assert_eq!(server.note(), Note::Answer(ticket, Verdict::Admit));
    server.stop();
}

#[test]
fn orders_that_cannot_be_done_say_so() {
    let server = Running::new(&on(&["127.0.0.1"]));
    let remote = server.remote.clone();
    assert_eq!(
        remote.command("tea", |_| ()),
        Err(RemoteError::NoSuchService)
    );
    let foreign = Ticket {
        service: 1,
        key: Key {
            slot: 0,
            generation: 0,
        },
        question: 0,
    };
    let refused = remote.answer(foreign, Verdict::Admit);
    assert_eq!(refused, Err(RemoteError::NoSuchService));
    server.stop();
    assert_eq!(remote.stop(), Err(RemoteError::Gone));
    assert_eq!(remote.command("echo", |_| ()), Err(RemoteError::Gone));
    assert_eq!(remote.stats(), Err(RemoteError::Gone));
}

#[test]
fn a_loop_of_ones_own_turns_a_server() {
    let mut server = Bound::new(&on(&["127.0.0.1"]));
    let remote = server.server.remote();
    assert!(server.server.turn(Some(Duration::ZERO)).expect("a turn"));
    let socket = endpoint("127.0.0.1", server.udp());
    socket.send(b"hello").expect("sent");
    assert_eq!(server.turn_until(1), [Note::Datagram(5)]);
    let mut buffer = [0; 16];
    assert_eq!(socket.recv(&mut buffer).expect("answered"), 5);
    remote.stop().expect("alive");
    while server.server.turn(Some(PATIENCE)).expect("a turn") {}
    assert_eq!(server.notes.try_iter().collect::<Vec<_>>(), [Note::Stop]);
    assert!(!server.server.turn(None).expect("it is over"));
}

#[test]
fn time_passes_by_itself_and_only_as_it_should() {
    let mut server = Bound::ticking(&on(&["127.0.0.1"]), 20);
    assert!(server.turn_dry().is_empty(), "nothing is due of nothing");
    let socket = endpoint("127.0.0.1", server.udp());
    socket.send(b"x").expect("sent");
    let began = Instant::now();
    let notes = server.turn_until(2);
    assert_eq!(notes[0], Note::Datagram(1));
    assert!(matches!(notes[1], Note::Tick(_)));
    assert!(began.elapsed() >= Duration::from_millis(20), "too early");
    assert!(server.turn_dry().is_empty());
}

#[test]
fn a_stall_cannot_hide_in_a_long_wait() {
    let mut server = Bound::ticking(&on(&["127.0.0.1"]), 5_000);
    let wait = |server: &Bound, asked| server.server.shortest(asked, server.server.world.now);
    server.turn_dry();
    assert_eq!(wait(&server, None), None, "nobody can be late");
    assert_eq!(wait(&server, Some(PATIENCE)), Some(PATIENCE));
    let socket = endpoint("127.0.0.1", server.udp());
    socket.send(b"x").expect("sent");
    server.turn_until(1);
    server.turn_dry();
    for asked in [None, Some(PATIENCE)] {
        let wait = wait(&server, asked).expect("something is due");
        assert!(wait <= Duration::from_millis(500), "{wait:?}");
    }
}

#[test]
fn a_stall_makes_nobody_late_and_who_spoke_meanwhile_is_heard_first() {
    let mut server = Bound::ticking(&on(&["127.0.0.1"]), 300);
    let sockets: Vec<UdpSocket> = (0..3)
        .map(|_| endpoint("127.0.0.1", server.udp()))
        .collect();
    sockets[0].send(b"x").expect("sent");
    server.turn_until(1);
    let heard = server.server.world.now;
    server.server.clock.stall(20_000);
    for _ in 0..100 {
        sockets[1].send(b"x").expect("sent");
        sockets[2].send(b"x").expect("sent");
    }
    let notes = server.turn_until(201);
    assert!(notes[..200].iter().all(|note| *note == Note::Datagram(1)));
    let Note::Tick(ticked) = notes[200] else {
        panic!("{:?}", notes[200]);
    };
    assert!((300..600).contains(&ticked.since(heard)), "{ticked:?}");
}

#[test]
fn timers_wait_for_the_sockets_after_a_gap_but_not_for_ever() {
    let mut server = Bound::new(&on(&["127.0.0.1"]));
    server.server.hold_timers();
    server.server.pass_time();
    assert!(server.server.held.is_some(), "no socket was read yet");
    server.server.turn(None).expect("it does not wait");
    assert!(server.server.held.is_none(), "all have run dry");
    server.server.hold_timers();
    let until = server.server.held.expect("held");
    server.server.world.now = until;
    server.server.pass_time();
    assert!(server.server.held.is_none(), "for a second at most");
}
