//! The whole rtyp service, fed with whatever a script says. A script is a row of steps, each a
//! byte that says which, and then what that takes; what is missing at its end is zero.
//!
//! Few addresses and names, so that they collide; steps that do what a client does, so that a
//! script comes far; and steps that say any bytes. What must hold meanwhile is in [`town`].

mod endpoint;
mod mood;
mod town;

use town::Town;

/// No script has more steps.
const STEPS_MAX: usize = 300;

/// Names, good and bad.
const NAMES: [&[u8]; 6] = [b"R9", b"one", b"two", b"sixteen bytes ok", b"", b"\x07"];
/// Rooms: any, two that are there, and one that is not.
const ROOMS: [&[u8]; 4] = [b"", b"1", b"2", b"3"];
/// How much time passes.
const TIMES_MS: [u64; 8] = [1, 20, 100, 250, 1_000, 3_001, 5_000, 10_000];

/// Does what the script says; then all leave, or fall silent, and must be forgotten. Returns what
/// the service has counted.
///
/// # Panics
/// If anything does not hold.
pub fn run(script: &[u8]) -> Vec<(&'static str, u64)> {
    let mut town = Town::new();
    let mut script = Script(script);
    for _ in 0..STEPS_MAX {
        let Some(which) = script.next() else { break };
        step(&mut town, which, &mut script);
    }
    town.abandon()
}

/// A step that does what happens to a server; those of its clients are in [`say`].
fn step(town: &mut Town, which: u8, script: &mut Script<'_>) {
    match which % 16 {
        0 => town.open(script.index(), script.index()),
        1 => {
            let stream = script.index();
            town.write(stream, script.some());
        }
        2 => town.close(script.index()),
        3 => town.pass(TIMES_MS[script.index() % TIMES_MS.len()]),
        4 => town.skip(TIMES_MS[script.index() % TIMES_MS.len()]),
        5 => town.mood.change(script.u8()),
        6 => town.answer(script.u8().is_multiple_of(2)),
        7 => town.kick(script.index()),
        // Once in a while: afterwards not much can happen.
        8 if script.u8() == 0 => town.stop(),
        _ => say(town, which % 8, script),
    }
}

/// A step of a client, honest or not.
fn say(town: &mut Town, which: u8, script: &mut Script<'_>) {
    match which {
        0 => {
            let stream = script.index();
            let name = NAMES[script.index() % NAMES.len()];
            let mut login = vec![name.len() as u8 + 4, 0, 1, 1, name.len() as u8, 0];
            login.extend(name);
            town.write(stream, &login);
        }
        1 => town.write(script.index(), &[2, 0, 4, 0]),
        2 => {
            let endpoint = script.index();
            town.send(endpoint, script.some());
        }
        3 => {
            let name = NAMES[script.index() % NAMES.len()];
            let room = ROOMS[script.index() % ROOMS.len()];
            town.hello(script.index(), script.u8().is_multiple_of(4), room, name);
        }
        4 => town.pong(script.index(), script.index()),
        5 => {
            let (endpoint, session) = (script.index(), script.index());
            let (kind, ahead) = (script.u8() % 24, script.u8());
            town.say(endpoint, session, kind, ahead as i8, script.some());
        }
        6 => {
            let (endpoint, session) = (script.index(), script.index());
            let (first, count) = (script.u8(), script.u8() % 34);
            let events = events(first, count, script.u8(), script.some());
            town.say(endpoint, session, 6, 0, &events);
        }
        _ => {
            // A Connect and a Ping: what most of them say.
            let (endpoint, session) = (script.index(), script.index());
            town.say(endpoint, session, 1, 0, &[]);
            town.say(endpoint, session, 3, 0, b"ping");
        }
    }
}

/// Events from this id on, all alike.
fn events(first: u8, count: u8, kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in 0..count {
        // Ids up to where they wrap are within a byte.
        let id = i16::from(first as i8).wrapping_add(number.into());
        bytes.extend(id.to_le_bytes());
        bytes.push(kind % 8);
        bytes.extend((body.len() as u16).to_le_bytes());
        bytes.extend(body);
    }
    bytes
}

/// What is left of a script.
struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn u8(&mut self) -> u8 {
        self.next().unwrap_or(0)
    }

    /// Whom or what a step is about; taken modulo how many there are.
    fn index(&mut self) -> usize {
        self.u8().into()
    }

    /// As many bytes as a byte says; what is above 200 stands for that many times 16.
    fn some(&mut self) -> &'a [u8] {
        let len = match self.u8() {
            len @ 0..=200 => usize::from(len),
            len => (usize::from(len) - 200) * 16 + 200,
        };
        let (bytes, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        bytes
    }
}
