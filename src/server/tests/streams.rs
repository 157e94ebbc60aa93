//! Connections: their bytes, their ends, and their limits.

use std::io::{Read, Write};
use std::net::Shutdown;

use super::*;

/// The server's own connection of which it said so just now.
fn opened(server: &Running) -> Conn {
    match server.note() {
        Note::Opened(conn) => conn,
        note => panic!("{note:?}"),
    }
}

#[test]
fn a_stream_is_echoed_and_its_end_is_told_once() {
    let server = Running::new(&on(&["127.0.0.1"]));
    let mut stream = connect(server.tcp());
    let conn = opened(&server);
    stream.write_all(b"hello").expect("written");
    stream.shutdown(Shutdown::Write).expect("shut down");
    assert_eq!(read_all(stream), b"hello");
    assert_eq!(server.note(), Note::Stream(conn, 5));
    assert_eq!(server.note(), Note::Closed(conn));
    let notes = server.stop();
    assert_eq!(notes.try_iter().collect::<Vec<_>>(), [Note::Stop]);
}

#[test]
fn a_rejection_arrives_whatever_else_was_sent() {
    let server = Running::new(&on(&["127.0.0.1"]));
    for round in 0..200_usize {
        let mut stream = connect(server.tcp());
        let mut bytes = vec![0; 1 + round * 300];
        bytes[0] = REJECT;
        stream.write_all(&bytes).expect("written");
        assert_eq!(read_all(stream), REJECTED, "round {round}");
    }
    assert_eq!(server.stat("accepted"), 200);
    server.stop();
}

#[test]
fn a_slot_is_used_again_under_another_generation() {
    let server = Running::new(&on(&["127.0.0.1"]));
    let mut last: Option<Conn> = None;
    for _ in 0..5 {
        let mut stream = connect(server.tcp());
        let conn = opened(&server);
        if let Some(last) = last {
            assert_eq!(conn.slot, last.slot);
            assert_eq!(conn.generation, last.generation + 1);
        }
        last = Some(conn);
        stream.write_all(&[DROP]).expect("written");
        assert_eq!(read_all(stream), b"");
        assert_eq!(server.note(), Note::Stream(conn, 1));
        // Its slot is free when a later turn answers.
        server.stat("accepted");
    }
    server.stop();
}

#[test]
fn who_never_reads_is_dropped_and_its_machine_told() {
    let server = Running::new(&on(&["127.0.0.1"]));
    let mut stream = connect(server.tcp());
    let conn = opened(&server);
    // One message at a time, or the peer's own bytes would pile up instead.
    loop {
        if stream.write_all(&[FLOOD]).is_err() {
            break;
        }
        if server.note() == Note::Closed(conn) {
            break;
        }
    }
    assert_eq!(server.stat("slow-readers"), 1);
    assert_eq!(server.stat("open"), 0);
    server.stop();
}

/// Has a connection flood its peer, which does not read, until the first bytes wait for it; returns
/// how many bytes that were.
fn flood(server: &mut Bound, stream: &mut TcpStream) -> usize {
    let mut flooded = 0;
    while server.server.streams.waiting() == 0 {
        stream.write_all(&[FLOOD]).expect("written");
        let notes = server.turn_until(1);
        assert!(matches!(notes[..], [Note::Stream(_, 1)]), "{notes:?}");
        flooded += FLOOD_BYTES;
    }
    flooded
}

#[test]
fn what_waits_for_a_slow_reader_comes_when_it_reads() {
    let mut server = Bound::new(&on(&["127.0.0.1"]));
    let mut stream = connect(server.tcp());
    server.turn_until(1);
    let flooded = flood(&mut server, &mut stream);
    let reader = std::thread::spawn(move || {
        let mut bytes = vec![0; flooded];
        stream.read_exact(&mut bytes).expect("all of it");
        stream.write_all(b"more").expect("written");
        bytes.clear();
        bytes.resize(4, 0);
        stream.read_exact(&mut bytes).expect("an echo");
        bytes
    });
    let notes = server.turn_until(2);
    assert!(matches!(notes[0], Note::Stream(_, 4)), "{notes:?}");
    assert_eq!(server.server.streams.waiting(), 0);
    assert_eq!(reader.join().expect("no panic"), b"more");
}

#[test]
fn the_last_bytes_come_behind_what_waits() {
    let mut server = Bound::new(&on(&["127.0.0.1"]));
    let mut stream = connect(server.tcp());
    server.turn_until(1);
    let flooded = flood(&mut server, &mut stream);
    stream.write_all(&[REJECT]).expect("written");
    server.turn_until(1);
    assert!(server.server.streams.waiting() > REJECTED.len());
    let began = server.server.world.now;
    let reader = std::thread::spawn(move || read_all(stream));
    while !server.server.streams.is_empty() {
        server.server.turn(Some(PATIENCE)).expect("a turn");
    }
    let took = server.server.world.now.since(began);
    assert!(
        took < 900,
        "it is closed when all is said, not when patience ends"
    );
    let bytes = reader.join().expect("no reset");
    assert_eq!(bytes.len(), flooded + REJECTED.len());
    assert!(bytes.ends_with(REJECTED));
}

#[test]
fn more_bytes_than_a_turn_takes_need_no_new_event() {
    let mut server = Bound::new(&on(&["127.0.0.1"]));
    let mut stream = connect(server.tcp());
    server.turn_until(1);
    stream.write_all(&[SWALLOW; 100_000]).expect("written");
    let mut read = 0;
    while read < 100_000 {
        let before = read;
        server.server.turn(Some(MOMENT)).expect("a turn");
        for note in server.notes.try_iter() {
            if let Note::Stream(_, count) = note {
                read += count;
            }
        }
        assert!(read > before, "there is more");
        assert!(read - before <= 16 * 1024, "no more than its share");
    }
}

#[test]
fn more_connections_than_a_turn_accepts_need_no_new_event() {
    let mut server = Bound::new(&on(&["127.0.0.1"]));
    let streams: Vec<TcpStream> = (0..40).map(|_| connect(server.tcp())).collect();
    server.server.turn(Some(PATIENCE)).expect("a turn");
    assert_eq!(server.notes.try_iter().count(), 16);
    server.turn_until(24);
    drop(streams);
}

#[test]
fn an_address_may_have_so_many_that_have_not_logged_in() {
    let mut config = on(&["127.0.0.1"]);
    config.limit_loopback = true;
    config.limits.set("pending-per-ip", 2).expect("in range");
    let server = Running::new(&config);
    let mut first = connect(server.tcp());
    let first_conn = opened(&server);
    let _second = connect(server.tcp());
    opened(&server);
    assert_eq!(read_all(connect(server.tcp())), b"", "the third");
    first.write_all(&[SETTLE]).expect("written");
    assert_eq!(server.note(), Note::Stream(first_conn, 1));
    let _third = connect(server.tcp());
    opened(&server);
    assert_eq!(server.stat("pending-refused"), 1);
    server.stop();
}

#[test]
fn the_oldest_that_has_not_logged_in_makes_room() {
    let mut config = on(&["127.0.0.1"]);
    config.limits.set("pending", 2).expect("in range");
    let server = Running::new(&config);
    let mut settled = connect(server.tcp());
    let settled_conn = opened(&server);
    settled.write_all(&[SETTLE]).expect("written");
    assert_eq!(server.note(), Note::Stream(settled_conn, 1));
    let oldest = connect(server.tcp());
    let oldest_conn = opened(&server);
    let _younger = connect(server.tcp());
    opened(&server);
    let _youngest = connect(server.tcp());
    let mut notes = [server.note(), server.note()];
    notes.sort_by_key(|note| matches!(note, Note::Closed(_)));
    assert!(matches!(notes[0], Note::Opened(_)));
    assert_eq!(notes[1], Note::Closed(oldest_conn));
    assert_eq!(read_all(oldest), b"");
    assert_eq!(server.stat("pending-evicted"), 1);
    settled.write_all(b"still here").expect("written");
    assert_eq!(server.note(), Note::Stream(settled_conn, 10));
    server.stop();
}

#[test]
fn a_peer_that_does_not_close_is_closed_after_a_second() {
    let server = Running::new(&on(&["127.0.0.1"]));
    let mut stream = connect(server.tcp());
    opened(&server);
    stream.write_all(&[REJECT]).expect("written");
    // Until the server gives up, what is sent is thrown away; then it is answered by a reset.
    let deadline = std::time::Instant::now() + PATIENCE;
    while stream.write_all(b"and another thing").is_ok() {
        assert!(std::time::Instant::now() < deadline, "it drains for ever");
        std::thread::yield_now();
    }
    server.stop();
}

#[test]
fn so_many_may_be_closing_and_the_one_closing_longest_makes_room() {
    let mut server = Bound::new(&on(&["127.0.0.1"]));
    server.server.streams.limit_closing(2);
    let mut streams = Vec::new();
    for dropped in [0, 0, 1, 2] {
        let mut stream = connect(server.tcp());
        stream.write_all(&[REJECT]).expect("written");
        server.turn_until(2);
        let stats = server.server.stats();
        assert_eq!(stats.get("echo", "closing-dropped"), Some(dropped));
        streams.push(stream);
    }
    for stream in streams {
        assert_eq!(read_all(stream), REJECTED);
    }
}
