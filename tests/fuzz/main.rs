//! What is fuzzed, over the seeds and a fixed number of mutations of them: the same functions that
//! the targets of cargo-fuzz call, which are in a package of their own here.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anteroom::engine::Seeded;
use anteroom::protocol::rtyp::wire;

mod service;

/// Mutations of all seeds together.
const WIRE: usize = 50_000;
const SERVICE: usize = 10_000;
/// What the scripts come to, all together: where they no longer do, the seeds need care.
const REACHED: [&str; 22] = [
    "logins",
    "bindings",
    "challenges",
    "ghosts-ended",
    "moves",
    "ended-left",
    "ended-shutdown",
    "ended-timed-out",
    "ended-protocol-error",
    "ended-kicked",
    "ended-malformed-stream",
    "rejected-server-full",
    "rejected-name-taken",
    "rejected-game-started",
    "rejected-too-many",
    "rejected-refused",
    "login-late",
    "ignored-candidate",
    "ignored-waiting",
    "ignored-bound-elsewhere",
    "ignored-events-rate",
    "unsent-unproven",
];

#[test]
fn the_readers_of_rtyp_take_anything() {
    over_seeds("wire", WIRE, wire::fuzz);
}

#[test]
fn the_service_takes_anything() {
    let counted = RefCell::new(BTreeMap::new());
    over_seeds("service", SERVICE, |script| {
        for (name, count) in service::run(script) {
            *counted.borrow_mut().entry(name).or_insert(0) += count;
        }
    });
    let counted = counted.into_inner();
    println!("{counted:?}");
    let unreached: Vec<_> = REACHED.iter().filter(|name| counted[*name] == 0).collect();
    assert!(unreached.is_empty(), "no script comes to {unreached:?}");
}

/// Calls `run` with each seed of a target, and with so many mutations.
fn over_seeds(target: &str, mutations: usize, run: impl Fn(&[u8])) {
    let seeds = seeds(target);
    for (path, seed) in &seeds {
        let _input = Input(path.display().to_string(), seed);
        run(seed);
    }
    let mut dice = Seeded::new(1);
    for number in 0..mutations {
        let (path, seed) = &seeds[number % seeds.len()];
        let (_, other) = &seeds[below(&mut dice, seeds.len())];
        let mutation = mutated(&mut dice, seed, other);
        let _input = Input(
            format!("mutation {number} of {}", path.display()),
            &mutation,
        );
        run(&mutation);
    }
}

fn seeds(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/seeds");
    let entries = fs::read_dir(folder.join(target)).expect("seeds");
    let mut paths: Vec<PathBuf> = entries.map(|it| it.expect("a seed").path()).collect();
    // A folder has no order.
    paths.sort();
    assert!(paths.len() > 5, "{paths:?}");
    let read = |path: PathBuf| {
        let bytes = fs::read(&path).expect("a seed");
        (path, bytes)
    };
    paths.into_iter().map(read).collect()
}

/// `seed` with up to eight changes, some of which take from `other`.
fn mutated(dice: &mut Seeded, seed: &[u8], other: &[u8]) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=below(dice, 8) {
        let at = below(dice, bytes.len() + 1);
        let end = at + below(dice, bytes.len() - at + 1);
        match below(dice, 7) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 => bytes.insert(at, dice.next_u64() as u8),
            3 => bytes.extend_from_within(at..end),
            4 => {
                let from = below(dice, other.len() + 1);
                let to = from + below(dice, other.len() - from + 1);
                bytes.splice(at..at, other[from..to].iter().copied());
            }
            _ if at < bytes.len() => bytes[at] ^= 1 << below(dice, 8),
            _ => {}
        }
    }
    bytes
}

fn below(dice: &mut Seeded, bound: usize) -> usize {
    dice.below(bound as u64) as usize
}

/// Says what the input was when the test fails with it.
struct Input<'a>(String, &'a [u8]);

impl Drop for Input<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}: {:02X?}", self.0, self.1);
        }
    }
}
