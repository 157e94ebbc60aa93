//! The machine without sockets: what a datagram costs, welcome or not.
//!
//! The floor is a bare `recv_from` from a full queue, which is what the same datagram costs
//! before anybody has looked at it.
#![forbid(unsafe_code)]

mod common;

use std::process::ExitCode;

use anteroom::engine::Path;
use anteroom::guard::limits::Limits;

use common::bytes::{DATAGRAM, HEADER, PAYLOAD, Speaker, kind};
use common::machine::{Driven, Echo, Peer, strangers};
use common::pairs::{ns, ns_each};
use common::queue::over_receive;
use common::report::Report;

/// What a datagram that is not welcome may cost, as a part of receiving it.
const UNWELCOME: f64 = 0.25;
/// Sessions there are meanwhile.
const SESSIONS: u32 = 1_000;
/// Senders whose datagrams come in turn: more than fit into the nearest caches.
const SENDERS: usize = 4_096;

fn main() -> ExitCode {
    let mut report = Report::new("engine: a machine with 1000 sessions, without sockets");
    let mut machine = Machine::new();
    for (what, counter, datagrams) in unwelcome(&machine.peers) {
        let before = machine.driven.count(counter);
        let pairs = over_receive(&report, |count| machine.feed(&datagrams, count));
        let counted = machine.driven.count(counter) - before;
        assert!(counted > 0, "{what} is not counted as {counter}");
        report.pairs(what, &pairs, Some(UNWELCOME));
    }
    let pairs = over_receive(&report, |count| machine.play(count));
    report.pairs("Data, and its way back to the sender", &pairs, None);
    report.exit()
}

/// Datagrams, each with the way it comes.
type Datagrams = Vec<(Path, Vec<u8>)>;

/// Datagrams nobody wants, by what they are and under which name they are counted.
fn unwelcome(peers: &[Peer]) -> Vec<(&'static str, &'static str, Datagrams)> {
    let strangers = strangers(SENDERS);
    let data = Speaker::new(0xDEAD_BEEF).say(kind::DATA, &PAYLOAD).to_vec();
    let connect = Speaker::new(0xDEAD_BEEF).say(kind::CONNECT, &[]).to_vec();
    let from_strangers = |bytes: &[u8]| -> Datagrams {
        strangers
            .iter()
            .map(|path| (*path, bytes.to_vec()))
            .collect()
    };
    let mut magic = data.clone();
    magic[0] = b'X';
    let mut version = data.clone();
    version[4] = 9;
    let forged = peers.iter().map(|peer| (peer.path, data.clone()));
    vec![
        (
            "cut short",
            "ignored-short",
            from_strangers(&data[..HEADER - 1]),
        ),
        ("no RTYP", "ignored-magic", from_strangers(&magic)),
        (
            "unknown version",
            "ignored-version",
            from_strangers(&version),
        ),
        ("unknown endpoint", "ignored-unbound", from_strangers(&data)),
        (
            "Connect with an unknown token",
            "ignored-unknown-token",
            from_strangers(&connect),
        ),
        (
            "forged source, wrong token",
            "ignored-wrong-token",
            forged.collect(),
        ),
    ]
}

/// A service with players.
struct Machine {
    driven: Driven,
    peers: Vec<Peer>,
}

impl Machine {
    fn new() -> Self {
        let mut driven = Driven::new(Box::new(Echo), SESSIONS, Limits::default());
        let mut peers: Vec<Peer> = Vec::new();
        for number in 0..SESSIONS {
            peers.push(driven.join(number, "bench"));
            driven.converse(&mut peers);
        }
        Self { driven, peers }
    }

    /// Nanoseconds of each of `count` datagrams, taken from `datagrams` in turn.
    fn feed(&mut self, datagrams: &[(Path, Vec<u8>)], count: usize) -> f64 {
        ns_each(count, || {
            for (path, bytes) in datagrams.iter().cycle().take(count) {
                self.driven.datagram(*path, bytes);
            }
        })
    }

    /// Nanoseconds of each of `count` datagrams that the players send in turn, and that come back.
    /// Each player sends fifty a second.
    fn play(&mut self, count: usize) -> f64 {
        let mut spent = std::time::Duration::ZERO;
        let mut left = count;
        while left > 0 {
            for peer in self.peers.iter_mut().take(left) {
                peer.speaker.say(kind::DATA, &PAYLOAD);
            }
            let round = left.min(self.peers.len());
            let start = common::pairs::cpu_time();
            for peer in &self.peers[..round] {
                self.driven
                    .datagram(peer.path, peer.speaker.again(DATAGRAM));
            }
            spent += common::pairs::cpu_time() - start;
            left -= round;
            let peers = &mut self.peers;
            self.driven.pass(20, peers);
        }
        ns(spent, count)
    }
}
