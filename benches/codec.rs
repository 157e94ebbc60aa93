//! Reading and writing the bytes of RTYP. The floor is a copy of the same bytes.
#![forbid(unsafe_code)]

mod common;

use std::hint::black_box;
use std::process::ExitCode;

use anteroom::bytes::Writer;
use anteroom::protocol::rtyp::wire::{Header, Payload, ToServer, frame};

use common::bytes::{DATAGRAM, HEADER, PAYLOAD, Speaker, event, event_kind, kind, login_request};
use common::pairs::{Pairs, ns_each};
use common::report::Report;

fn main() -> ExitCode {
    let mut report = Report::new("codec: the bytes of RTYP");
    let data = Speaker::new(7).say(kind::DATA, &PAYLOAD).to_vec();
    let events = Speaker::new(7).say(kind::EVENTS, &chats(4)).to_vec();
    let login = login_request("R9");
    let mut line = |what: &str, bytes: &[u8], work: &mut dyn FnMut(&[u8])| {
        let count = report.repeat(1_000_000);
        let mut copy = vec![0; bytes.len()];
        let floor = || {
            ns_each(count, || {
                for _ in 0..count {
                    black_box(&mut copy[..]).copy_from_slice(black_box(bytes));
                }
            })
        };
        let subject = || {
            ns_each(count, || {
                for _ in 0..count {
                    work(black_box(bytes));
                }
            })
        };
        report.pairs(what, &Pairs::measure(floor, subject), None);
    };
    line("read a datagram of 64 bytes", &data, &mut |bytes| {
        let (header, payload) = black_box(Header::from_client(bytes)).expect("a header");
        black_box(Payload::read(1, header.kind, payload).expect("a payload"));
    });
    line("read four events", &events, &mut |bytes| {
        let (header, payload) = Header::from_client(bytes).expect("a header");
        if let Ok(Payload::Events(events)) = Payload::read(1, header.kind, payload) {
            black_box(events.map(|event| event.body.len()).sum::<usize>());
        }
    });
    line("read a LoginRequest", &login, &mut |bytes| {
        let body = frame(bytes).expect("a frame").expect("all of it");
        black_box(ToServer::read(body).expect("a login"));
    });
    let (header, payload) = Header::from_client(&data).expect("a header");
    let mut buffer = Vec::with_capacity(DATAGRAM);
    line("write a datagram of 64 bytes", &data, &mut |_| {
        buffer.clear();
        let mut writer = Writer::new(&mut buffer);
        black_box(&header).write(&mut writer);
        writer.bytes(payload);
        black_box(&buffer);
    });
    assert_eq!((buffer.len(), payload.len()), (DATAGRAM, DATAGRAM - HEADER));
    report.exit()
}

/// The payload of an Events datagram: so many lines of chat.
fn chats(count: u16) -> Vec<u8> {
    (0..count)
        .flat_map(|id| event(id, event_kind::CHAT, b"\x02\0hi"))
        .collect()
}
