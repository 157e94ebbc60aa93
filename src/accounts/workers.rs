//! The threads that hash, and the queue before them.

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use zeroize::Zeroizing;

use super::Answer;
use super::failures::Guess;
use super::hash::{Cost, HashError, Hasher, SALT_LEN};
use super::store::{Insertion, Store};
use crate::engine::{Ticket, Time};

/// How far apart two lines about the same trouble are in the log, in milliseconds.
const COMPLAINT_MS: u64 = 60_000;

/// How much is done at once, and what it costs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    /// Jobs that run.
    pub(super) workers: usize,
    /// Jobs that wait.
    pub(super) queue: usize,
    /// Accounts in all.
    pub(super) accounts_max: usize,
    /// What a hash costs.
    pub(super) cost: Cost,
}

/// A question on its way to a worker.
pub(super) struct Job {
    pub(super) ticket: Ticket,
    pub(super) at: Time,
    pub(super) user: Box<str>,
    /// Zeroed when the job is done or dropped.
    pub(super) password: Zeroizing<Box<[u8]>>,
    pub(super) task: Task,
}

/// What is asked.
pub(super) enum Task {
    /// Whether it is the user's password.
    Login(Guess),
    /// A new account.
    Register {
        /// Fresh random bytes.
        salt: [u8; SALT_LEN],
    },
}

impl Task {
    /// What is to be counted if it fails.
    pub(super) fn guess(&self) -> Option<Guess> {
        match self {
            Self::Login(guess) => Some(*guess),
            Self::Register { .. } => None,
        }
    }
}

/// What a job came to.
pub(super) struct Outcome {
    pub(super) answer: Answer,
    pub(super) guess: Option<Guess>,
    /// How many hashes it took.
    pub(super) hashes: u64,
    /// Whether it could not be answered for a reason that is in the log.
    pub(super) has_failed: bool,
}

/// The threads. They end when this is dropped, after what they are at.
pub(super) struct Workers {
    settings: Settings,
    shared: Arc<Shared>,
    /// None only while this is dropped.
    jobs: Option<SyncSender<Job>>,
    outcomes: Receiver<Outcome>,
    threads: Vec<JoinHandle<()>>,
    /// Jobs whose outcome was not taken yet.
    open: usize,
}

/// Told of each answer, on a worker's thread.
pub(super) type Tell = Box<dyn Fn(Ticket, Answer) + Send + Sync>;

struct Shared {
    store: Arc<Store>,
    accounts_max: usize,
    tell: Tell,
    is_over: AtomicBool,
    complaints: Mutex<Complaints>,
}

impl Workers {
    /// Starts the threads.
    ///
    /// # Errors
    /// What the system said if it has no thread for us.
    pub(super) fn start(settings: Settings, store: Store, tell: Tell) -> io::Result<Self> {
        // Room for all that may be open, so that no send ever waits or fails.
        let (jobs, waiting) = sync_channel(settings.workers + settings.queue);
        let (done, outcomes) = sync_channel(settings.workers + settings.queue);
        let mut workers = Self {
            settings,
            shared: Arc::new(Shared {
                store: Arc::new(store),
                accounts_max: settings.accounts_max,
                tell,
                is_over: AtomicBool::new(false),
                complaints: Mutex::default(),
            }),
            jobs: Some(jobs),
            outcomes,
            threads: Vec::new(),
            open: 0,
        };
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..settings.workers {
            let hasher = Hasher::new(settings.cost);
            let hasher = hasher.map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
            let (shared, waiting, done) = (workers.shared.clone(), waiting.clone(), done.clone());
            let thread = thread::Builder::new().name("accounts".to_owned());
            let thread = thread.spawn(move || work(&shared, hasher, &waiting, &done))?;
            workers.threads.push(thread);
        }
        Ok(workers)
    }

    /// Where the accounts are.
    pub(super) fn store(&self) -> &Arc<Store> {
        &self.shared.store
    }

    /// Whether as many jobs run and wait as may.
    pub(super) fn is_full(&self) -> bool {
        self.open >= self.settings.workers + self.settings.queue
    }

    /// Has a worker do `job`; whether one will. To be called only while there is room.
    pub(super) fn push(&mut self, job: Job) -> bool {
        debug_assert!(!self.is_full());
        let jobs = self.jobs.as_ref();
        let is_taken = jobs.is_some_and(|jobs| jobs.try_send(job).is_ok());
        self.open += usize::from(is_taken);
        is_taken
    }

    /// What the next job came to, if one is done.
    pub(super) fn outcome(&mut self) -> Option<Outcome> {
        let outcome = self.outcomes.try_recv().ok()?;
        self.open -= 1;
        Some(outcome)
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        // Who waits for a job wakes up; what still waits for a worker is dropped.
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // A worker that panicked said so.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Workers {
    /// Tells nothing of a job.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers")
            .field("settings", &self.settings)
            .field("store", &self.shared.store)
            .field("open", &self.open)
            .finish_non_exhaustive()
    }
}

/// The life of a worker.
fn work(
    shared: &Shared,
    mut hasher: Hasher,
    waiting: &Mutex<Receiver<Job>>,
    done: &SyncSender<Outcome>,
) {
    while let Some(job) = next(waiting) {
        if shared.is_over.load(Ordering::Acquire) {
            return;
        }
        let (ticket, outcome) = shared.outcome(&mut hasher, job);
        let answer = outcome.answer;
        // First the books, then the answer: whoever reacts to it finds it counted.
        if done.try_send(outcome).is_err() {
            return;
        }
        (shared.tell)(ticket, answer);
    }
}

fn next(waiting: &Mutex<Receiver<Job>>) -> Option<Job> {
    let waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
    waiting.recv().ok()
}

impl Shared {
    fn outcome(&self, hasher: &mut Hasher, job: Job) -> (Ticket, Outcome) {
        let before = hasher.runs();
        // Should the database panic, that is one failed job and not one worker less.
        let judged = catch_unwind(AssertUnwindSafe(|| self.judge(hasher, &job)));
        let answer = judged.unwrap_or_else(|_| Err("a worker panicked".to_owned()));
        if let Err(trouble) = &answer {
            self.complain(job.at, trouble);
        }
        let outcome = Outcome {
            has_failed: answer.is_err(),
            answer: answer.unwrap_or(Answer::Busy),
            guess: job.task.guess(),
            hashes: hasher.runs() - before,
        };
        (job.ticket, outcome)
    }

    /// The answer, or what stands against one.
    fn judge(&self, hasher: &mut Hasher, job: &Job) -> Result<Answer, String> {
        match &job.task {
            Task::Login(_) => self.login(hasher, job),
            Task::Register { salt } => self.register(hasher, job, salt),
        }
    }

    fn login(&self, hasher: &mut Hasher, job: &Job) -> Result<Answer, String> {
        let phc = self.store.get(&job.user);
        let is_right = hasher.verify(&job.password, phc.as_deref());
        Ok(match is_right.map_err(trouble)? {
            true => Answer::LoggedIn,
            false => Answer::Wrong,
        })
    }

    fn register(
        &self,
        hasher: &mut Hasher,
        job: &Job,
        salt: &[u8; SALT_LEN],
    ) -> Result<Answer, String> {
        // The answer tells anyway that the name is taken; a hash would keep nothing secret.
        let refusal = self.store.refusal(&job.user, self.accounts_max);
        let insertion = match refusal {
            Some(refusal) => refusal,
            None => {
                let phc = hasher.hash(&job.password, salt).map_err(trouble)?;
                let inserted = self.store.insert(&job.user, &phc, self.accounts_max);
                inserted.map_err(|error| error.to_string())?
            }
        };
        match insertion {
            Insertion::Inserted => Ok(Answer::Registered),
            Insertion::Taken => Ok(Answer::Taken),
            Insertion::TooMany => Err("there are as many as the limit `accounts` allows".into()),
        }
    }

    /// Tells the operator, once a minute: strangers decide how often it happens.
    fn complain(&self, now: Time, trouble: &str) {
        let complaints = self.complaints.lock();
        let is_due = complaints
            .unwrap_or_else(PoisonError::into_inner)
            .is_due(now);
        if is_due {
            log::warn!("a login or registration got no answer: {trouble}");
        }
    }
}

/// When something was last complained about.
#[derive(Debug, Default)]
struct Complaints(Option<Time>);

impl Complaints {
    /// Whether there is to be a line in the log now.
    fn is_due(&mut self, now: Time) -> bool {
        let is_due = self.0.is_none_or(|last| now.since(last) >= COMPLAINT_MS);
        if is_due {
            self.0 = Some(now);
        }
        is_due
    }
}

fn trouble(error: HashError) -> String {
    match error {
        HashError::NoMemory => "there is no memory for a password's hash".to_owned(),
        HashError::BadHash => "a password's hash cannot be read or computed".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::engine::Key;

    const SETTINGS: Settings = Settings {
        workers: 1,
        queue: 64,
        accounts_max: 1_000,
        cost: Cost {
            memory_kib: 8,
            passes: 1,
        },
    };

    fn job(n: u32) -> Job {
        Job {
            ticket: Ticket {
                service: 0,
                key: Key {
                    slot: n,
                    generation: 0,
                },
                question: 0,
            },
            at: Time::ZERO,
            user: format!("user{n}").into(),
            password: Zeroizing::new(b"password"[..].into()),
            task: Task::Register {
                salt: [0; SALT_LEN],
            },
        }
    }

    #[test]
    fn the_end_waits_for_the_running_job_alone() {
        let (teller, told) = channel();
        let (gate, wait) = sync_channel::<()>(0);
        let wait = Mutex::new(wait);
        let tell = move |ticket: Ticket, answer| {
            teller.send((ticket.key.slot, answer)).expect("the test");
            let _ = wait.lock().expect("nobody panicked").recv();
        };
        let store = Store::in_memory();
        let mut workers = Workers::start(SETTINGS, store, Box::new(tell)).expect("a thread");
        assert!((0..50).all(|n| workers.push(job(n))));
        assert_eq!(told.recv(), Ok((0, Answer::Registered)));
        let (shared, store) = (workers.shared.clone(), workers.store().clone());
        let end = thread::spawn(move || drop(workers));
        while !shared.is_over.load(Ordering::Acquire) {
            thread::yield_now();
        }
        gate.send(()).expect("the worker waits");
        end.join().expect("it ends");
        assert_eq!(told.try_iter().count(), 0, "what waited was dropped");
        assert_eq!(store.len(), 1);
    }

    #[test]
    fn as_many_workers_as_asked_for_run_at_once() {
        let settings = Settings {
            workers: 3,
            ..SETTINGS
        };
        let (teller, told) = channel();
        let together = std::sync::Barrier::new(3);
        let tell = move |_, answer| {
            together.wait();
            teller.send(answer).expect("the test");
        };
        let store = Store::in_memory();
        let mut workers = Workers::start(settings, store, Box::new(tell)).expect("threads");
        assert_eq!(workers.threads.len(), 3);
        assert!((0..6).all(|n| workers.push(job(n))));
        assert!(
            told.iter()
                .take(6)
                .all(|answer| answer == Answer::Registered)
        );
        drop(workers);
    }

    #[test]
    fn a_complaint_is_due_once_a_minute() {
        let mut complaints = Complaints::default();
        let times = (5_000..200_000).filter(|ms| complaints.is_due(Time::from_ms(*ms)));
        assert_eq!(times.collect::<Vec<_>>(), [5_000, 65_000, 125_000, 185_000]);
    }
}
