//! Accounts with cheap hashes, and files in a folder of their own.

mod file;
#[cfg(unix)]
mod full;

/// What the rules of Rooms ask of accounts.
mod rooms {
    mod answers;
    mod crash;
}

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use super::hash::Cost;
use super::workers::Settings;
use super::{Accounts, Answer, Question, Store};
use crate::engine::{Key, Seeded, Ticket, Time};

/// Longer than anything here takes; whoever waits for it has failed.
const PATIENCE: Duration = Duration::from_secs(60);

const CHEAP: Cost = Cost {
    memory_kib: 8,
    passes: 1,
};

const SETTINGS: Settings = Settings {
    workers: 2,
    queue: 64,
    accounts_max: 1_000,
    cost: CHEAP,
};

/// Where questions are asked and answers heard.
struct Desk {
    accounts: Accounts,
    told: Receiver<(Ticket, Answer)>,
    dice: Seeded,
    now: Time,
    asked: u32,
}

impl Desk {
    fn new(store: Store) -> Self {
        Self::with_settings(store, SETTINGS)
    }

    fn with_settings(store: Store, settings: Settings) -> Self {
        let (teller, told) = channel();
        let tell = move |ticket, answer| {
            // The test may have seen enough.
            let _ = teller.send((ticket, answer));
        };
        Self {
            accounts: Accounts::with_settings(store, settings, tell).expect("threads"),
            told,
            dice: Seeded::new(1),
            now: Time::from_ms(1_000),
            asked: 0,
        }
    }

    /// Asks under a new ticket.
    fn ask(&mut self, question: Question<'_>) -> Option<Answer> {
        self.asked += 1;
        let ticket = ticket(self.asked);
        self.accounts
            .ask(self.now, &mut self.dice, ticket, question)
    }

    /// Asks and waits for the answer.
    fn answer(&mut self, question: Question<'_>) -> Answer {
        if let Some(answer) = self.ask(question) {
            return answer;
        }
        let (of, answer) = self.told();
        assert_eq!(of, ticket(self.asked));
        answer
    }

    fn told(&self) -> (Ticket, Answer) {
        self.told.recv_timeout(PATIENCE).expect("an answer")
    }

    fn login(&mut self, user: &str, password: &str) -> Answer {
        self.answer(login(user, password))
    }

    fn register(&mut self, user: &str, password: &str) -> Answer {
        self.answer(register(user, password))
    }

    fn stat(&mut self, name: &str) -> u64 {
        let stats = self.accounts.stats();
        let found = stats.iter().find(|(of, _)| *of == name);
        found.expect("a counter").1
    }
}

fn ticket(n: u32) -> Ticket {
    Ticket {
        service: 0,
        key: Key {
            slot: n,
            generation: 0,
        },
        question: 0,
    }
}

fn login<'a>(user: &'a str, password: &'a str) -> Question<'a> {
    login_from("192.0.2.1", user, password)
}

fn login_from<'a>(ip: &str, user: &'a str, password: &'a str) -> Question<'a> {
    let ip: IpAddr = ip.parse().expect("an address");
    Question::Login { user, password, ip }
}

fn register<'a>(user: &'a str, password: &'a str) -> Question<'a> {
    Question::Register { user, password }
}

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("anteroom-accounts-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).expect("a new folder");
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("accounts")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A file with so many accounts, `user0` on, with the passwords `password0` on.
fn filled(path: &Path, count: usize) {
    let mut desk = Desk::new(Store::open(path).expect("a new file"));
    for n in 0..count {
        let answer = desk.register(&format!("user{n}"), &format!("password{n}"));
        assert_eq!(answer, Answer::Registered);
    }
}
