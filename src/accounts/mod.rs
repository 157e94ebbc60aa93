//! The built-in answerer of logins and registrations; an embedding program may answer itself
//! instead and leave this out (feature `accounts`).
//!
//! [`Accounts`] takes a [`Question`] with its ticket on the server's thread, where it does nothing
//! but look into small tables, and gives the [`Answer`] later, from a thread of its own: a password
//! is worth tens of milliseconds and 19 MiB of Argon2id, and a new account waits for the disk. Who
//! has an account is in a [`Store`].
//!
//! What protects whom:
//! - The server: at most as many jobs run as it has cores less one (one at least), and
//!   `hash-queue` wait. Beyond, a registration is told so, and a login is put off: never told that
//!   it is wrong.
//! - Passwords: failed logins are counted, five a minute for a user from an address and thirty
//!   from an address (IPv6: a /64), loopback as any other; the next ones are wrong without looking.
//! - Names: an unknown user costs the hash that a wrong password costs.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::thread;

use zeroize::Zeroizing;

use crate::engine::{Entropy, Ticket, Time};
use crate::guard::limits::{Limit, Limits};

mod error;
mod failures;
mod file;
mod gate;
mod hash;
mod store;
#[cfg(test)]
mod tests;
mod workers;

use failures::{Failures, Guess, Judgement};
use hash::{Cost, SALT_LEN};
use workers::{Job, Outcome, Settings, Task, Workers};

pub use error::StoreError;
pub use gate::{Gate, Opener};
pub use store::Store;

/// The longest user name, in bytes.
pub const USER_LEN_MAX: usize = 16;
/// The shortest password of a new account, in bytes.
pub const PASSWORD_LEN_MIN: usize = 8;
/// The longest password, in bytes.
pub const PASSWORD_LEN_MAX: usize = 64;

/// What somebody asks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Question<'a> {
    /// Whether this is the user's password.
    Login {
        /// The name.
        user: &'a str,
        /// The password.
        password: &'a str,
        /// Where they are.
        ip: IpAddr,
    },
    /// For an account.
    Register {
        /// The name: 1 to 16 bytes without control characters.
        user: &'a str,
        /// The password: 8 to 64 bytes.
        password: &'a str,
    },
}

impl fmt::Debug for Question<'_> {
    /// Tells nothing of the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, user) = match self {
            Self::Login { user, .. } => ("Login", user),
            Self::Register { user, .. } => ("Register", user),
        };
        let mut debug = f.debug_struct(name);
        debug.field("user", user).finish_non_exhaustive()
    }
}

/// What they are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Login: it is the user's password.
    LoggedIn,
    /// Login: it is not, or there is no such user, or too many failed.
    Wrong,
    /// Register: the account is there, on the disk if there is a file.
    Registered,
    /// Register: the user has one already.
    Taken,
    /// Register: the name is empty, too long, or has control characters.
    BadName,
    /// Register: the password is too short or too long.
    BadPassword,
    /// Nothing was decided. A registration is told so; a login is not answered, and counts as
    /// never seen: it may come again.
    Busy,
}

/// Answers questions about accounts, in its own time.
///
/// Dropped, it finishes the jobs that run, answers them, and forgets those that wait.
#[derive(Debug)]
pub struct Accounts {
    workers: Workers,
    failures: Failures,
    counters: Counters,
}

impl Accounts {
    /// Starts the worker threads, one less than there are cores and at least one. Of `limits`,
    /// `hash-queue` and `accounts` count. `tell` is called on a worker's thread, once for each
    /// question that [`ask`](Self::ask) did not answer at once and that was not dropped with this;
    /// it must not wait for the thread that asks. `Remote` is made for that.
    ///
    /// # Errors
    /// What the system said if it has no thread for us.
    pub fn new(
        store: Store,
        limits: &Limits,
        tell: impl Fn(Ticket, Answer) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let number = |limit| usize::try_from(limits.get(limit)).unwrap_or(usize::MAX);
        let settings = Settings {
            workers: cores.saturating_sub(1).max(1),
            queue: number(Limit::HashQueue),
            accounts_max: number(Limit::Accounts),
            cost: Cost::OWASP,
        };
        Self::with_settings(store, settings, tell)
    }

    fn with_settings(
        store: Store,
        settings: Settings,
        tell: impl Fn(Ticket, Answer) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        Ok(Self {
            workers: Workers::start(settings, store, Box::new(tell))?,
            failures: Failures::default(),
            counters: Counters::default(),
        })
    }

    /// Takes a question. Never waits. The answer is returned if it is known at once; else, `None`,
    /// it is told later. `dice` are for the salt of a new account.
    pub fn ask(
        &mut self,
        now: Time,
        dice: &mut dyn Entropy,
        ticket: Ticket,
        question: Question<'_>,
    ) -> Option<Answer> {
        self.settle();
        let task = match question {
            Question::Login { user, password, ip } => self.login(now, user, password, ip),
            Question::Register { user, password } => self.register(dice, user, password),
        };
        let answer = match task {
            Ok(task) => self.push(now, ticket, question, task),
            Err(answer) => Some(answer),
        };
        if let Some(answer) = answer {
            self.counters.count(answer);
            self.counters.unseen += u64::from(answer == Answer::Wrong);
        }
        answer
    }

    /// Where the accounts are.
    pub fn store(&self) -> &Store {
        self.workers.store()
    }

    /// What was counted, in a fixed order: the answers, by what they were; of those wrong, how many
    /// without looking; the hashes computed; and how many jobs failed for a reason that is in the
    /// log, once a minute.
    pub fn stats(&mut self) -> Vec<(&'static str, u64)> {
        self.settle();
        self.counters.list()
    }

    fn login(&mut self, now: Time, user: &str, password: &str, ip: IpAddr) -> Result<Task, Answer> {
        // What no account can have needs no look.
        if !is_user(user) || !(1..=PASSWORD_LEN_MAX).contains(&password.len()) {
            return Err(Answer::Wrong);
        }
        let guess = Guess::new(now, ip, user);
        match self.failures.judge(&guess) {
            Judgement::Look if self.workers.is_full() => Err(Answer::Busy),
            Judgement::Look => Ok(Task::Login(guess)),
            Judgement::Wait => Err(Answer::Busy),
            Judgement::Refuse => Err(Answer::Wrong),
        }
    }

    fn register(
        &mut self,
        dice: &mut dyn Entropy,
        user: &str,
        password: &str,
    ) -> Result<Task, Answer> {
        if !is_user(user) {
            return Err(Answer::BadName);
        }
        if !(PASSWORD_LEN_MIN..=PASSWORD_LEN_MAX).contains(&password.len()) {
            return Err(Answer::BadPassword);
        }
        if self.workers.is_full() {
            return Err(Answer::Busy);
        }
        let mut salt = [0; SALT_LEN];
        dice.fill(&mut salt).map_err(|_| Answer::Busy)?;
        Ok(Task::Register { salt })
    }

    fn push(
        &mut self,
        now: Time,
        ticket: Ticket,
        question: Question<'_>,
        task: Task,
    ) -> Option<Answer> {
        let (Question::Login { user, password, .. } | Question::Register { user, password }) =
            question;
        let guess = task.guess();
        let is_taken = self.workers.push(Job {
            ticket,
            at: now,
            user: user.into(),
            password: Zeroizing::new(password.as_bytes().into()),
            task,
        });
        if !is_taken {
            return Some(Answer::Busy);
        }
        if let Some(guess) = guess {
            self.failures.begin(guess);
        }
        None
    }

    /// Enters what the workers have done since into the books.
    fn settle(&mut self) {
        while let Some(outcome) = self.workers.outcome() {
            if let Some(guess) = &outcome.guess {
                self.failures.end(guess, outcome.answer == Answer::Wrong);
            }
            self.counters.count(outcome.answer);
            self.counters.add(&outcome);
        }
    }
}

/// Whether `name` can be a user's.
fn is_user(name: &str) -> bool {
    let has_control = name.bytes().any(|byte| byte.is_ascii_control());
    (1..=USER_LEN_MAX).contains(&name.len()) && !has_control
}

/// See [`Accounts::stats`].
#[derive(Debug, Default)]
struct Counters {
    logged_in: u64,
    wrong: u64,
    unseen: u64,
    registered: u64,
    taken: u64,
    bad_name: u64,
    bad_password: u64,
    busy: u64,
    hashes: u64,
    failures: u64,
}

impl Counters {
    fn count(&mut self, answer: Answer) {
        let counter = match answer {
            Answer::LoggedIn => &mut self.logged_in,
            Answer::Wrong => &mut self.wrong,
            Answer::Registered => &mut self.registered,
            Answer::Taken => &mut self.taken,
            Answer::BadName => &mut self.bad_name,
            Answer::BadPassword => &mut self.bad_password,
            Answer::Busy => &mut self.busy,
        };
        *counter += 1;
    }

    fn add(&mut self, outcome: &Outcome) {
        self.hashes += outcome.hashes;
        self.failures += u64::from(outcome.has_failed);
    }

    fn list(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("accounts-logged-in", self.logged_in),
            ("accounts-wrong", self.wrong),
            ("accounts-wrong-unseen", self.unseen),
            ("accounts-registered", self.registered),
            ("accounts-taken", self.taken),
            ("accounts-bad-name", self.bad_name),
            ("accounts-bad-password", self.bad_password),
            ("accounts-busy", self.busy),
            ("accounts-hashes", self.hashes),
            ("accounts-failures", self.failures),
        ]
    }
}
