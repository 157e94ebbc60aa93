//! One bot: a user that comes into a room, flies and talks.

use std::time::{Duration, Instant};

use anteroom::driver::rooms::{Driver, End, NotRegistered, Notice, SendError, State};

use super::books::Books;

/// Between two lines of a bot.
const LINE_EVERY: Duration = Duration::from_secs(2);
/// What it flies, in turn: right, down, left, up, and some shots.
const KEYS: [i32; 5] = [262, 264, 263, 265, 32];
/// So many keys of one kind in a row.
const KEYS_IN_A_ROW: usize = 10;
/// An account is no secret of a bot's.
const PASSWORD: &str = "the password of a bot";

/// How far a bot has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It registers and logs in.
    Entering,
    /// It is logged in.
    LoggedIn,
    /// It has asked for a room.
    Moving,
    /// It is in its room.
    Playing,
    /// Its session is over.
    Over(End),
}

/// One user.
pub struct Bot {
    name: String,
    pub driver: Driver,
    pub stage: Stage,
    /// When its driver is to be polled.
    pub due: Instant,
    /// Which address it was connected to.
    pub attempt: usize,
    /// So many are to hear the line that it says now.
    pub hearers: u64,
    pub has_played: bool,
    /// Its end is in the books.
    pub is_counted: bool,
    /// What kept it out.
    pub failure: Option<String>,
    keys_at: Instant,
    keys: usize,
    line_at: Option<Instant>,
    lines: u32,
}

/// What follows from a notice.
enum Step {
    Register,
    LogIn,
    Fail(String),
}

impl Bot {
    /// One that has begun to connect.
    pub fn new(name: String, driver: Driver, attempt: usize) -> Self {
        let now = Instant::now();
        Self {
            name,
            driver,
            stage: Stage::Entering,
            due: now,
            attempt,
            hearers: 0,
            has_played: false,
            is_counted: false,
            failure: None,
            keys_at: now,
            keys: 0,
            line_at: None,
            lines: 0,
        }
    }

    pub fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over(_))
    }

    /// Takes what has come, and does what follows.
    pub fn poll(&mut self, books: &mut Books) {
        let mut steps = Vec::new();
        let (stage, hearers) = (&mut self.stage, self.hearers);
        let state = self.driver.poll(&mut |notice| {
            steps.extend(take(&notice, stage, hearers, books));
        });
        for step in steps {
            self.step(step);
        }
        if self.stage == Stage::Playing && !self.has_played {
            self.has_played = true;
            self.keys_at = Instant::now();
        }
        if let State::Ended(end) = state {
            self.stage = Stage::Over(end);
        }
        self.rest();
    }

    /// Asks for a room of this name, or for a seat in it.
    pub fn enter(&mut self, room: &str, makes_it: bool, players: u8) {
        let asked = match makes_it {
            true => self.driver.create_room(room, "", players),
            false => self.driver.join_room(room, ""),
        };
        self.stage = Stage::Moving;
        self.check(asked);
        self.rest();
    }

    /// Presses a key, if it is time for one.
    pub fn press(&mut self, now: Instant, interval: Duration, books: &mut Books) {
        if now < self.keys_at {
            return;
        }
        // What was missed is let go.
        self.keys_at = (self.keys_at + interval).max(now);
        let key = KEYS[self.keys / KEYS_IN_A_ROW % KEYS.len()];
        self.keys += 1;
        if self.driver.key(key).is_ok() {
            books.keys += 1;
        }
        self.rest();
    }

    /// When it presses its next key, if it is one that does.
    pub fn presses_at(&self) -> Option<Instant> {
        (self.stage == Stage::Playing).then_some(self.keys_at)
    }

    /// Says a line that so many are to hear, if it is time for one and the last was heard. The
    /// bots stay spread over the interval.
    pub fn talk(&mut self, now: Instant, index: usize, hearers: usize) {
        let share = LINE_EVERY * (index % 16) as u32 / 16;
        let line_at = *self.line_at.get_or_insert(now + share);
        let text = format!("line {} of {}", self.lines, self.name);
        if line_at <= now && self.driver.chat(&text).is_ok() {
            self.hearers = hearers as u64;
            self.lines += 1;
            self.line_at = Some(now + LINE_EVERY);
            self.rest();
        }
    }

    fn step(&mut self, step: Step) {
        let (name, password) = (&self.name, PASSWORD);
        let asked = match step {
            Step::Register => self.driver.register_account(name, password),
            Step::LogIn => self.driver.login(name, password),
            Step::Fail(why) => {
                self.failure = Some(why);
                self.driver.logout();
                Ok(())
            }
        };
        self.check(asked);
    }

    /// What cannot even be asked keeps it out.
    fn check(&mut self, asked: Result<(), SendError>) {
        if let Err(error) = asked {
            self.failure = Some(error.to_string());
            self.driver.logout();
        }
    }

    /// Notes when its driver is due.
    pub fn rest(&mut self) {
        let wait = self.driver.deadline();
        // Over is over: a day is as good as never.
        self.due = Instant::now() + wait.unwrap_or(Duration::from_secs(86_400));
    }
}

/// Enters a notice into the books; returns what follows from it.
fn take(notice: &Notice<'_>, stage: &mut Stage, hearers: u64, books: &mut Books) -> Option<Step> {
    match notice {
        Notice::Opened => return Some(Step::Register),
        Notice::Registered => {
            books.registered += 1;
            return Some(Step::LogIn);
        }
        // Its answer may have been lost with all its repetitions.
        Notice::NotRegistered(NotRegistered::Taken) => return Some(Step::LogIn),
        Notice::NotRegistered(NotRegistered::Busy) => {
            books.request_failed(&"the server was busy");
            return Some(Step::Register);
        }
        Notice::NotRegistered(why) => return Some(Step::Fail(why.to_string())),
        Notice::LoggedIn => {
            books.logged_in += 1;
            *stage = Stage::LoggedIn;
        }
        Notice::NotLoggedIn => return Some(Step::Fail("wrong name or password".into())),
        Notice::InRoom { .. } => {
            books.in_rooms += 1;
            *stage = Stage::Playing;
        }
        Notice::NotCreated(why) => return Some(Step::Fail(why.to_string())),
        Notice::NotJoined(why) => return Some(Step::Fail(why.to_string())),
        Notice::NoAnswer(ask) => {
            books.request_failed(&format_args!("no answer to {ask:?}"));
            return match stage {
                Stage::Entering => Some(Step::Register),
                // It asks again.
                Stage::Moving => {
                    *stage = Stage::LoggedIn;
                    None
                }
                _ => None,
            };
        }
        Notice::Said { .. } => books.lines_expected += hearers,
        Notice::Chat { .. } => books.lines_seen += 1,
        Notice::Updated => books.updates += 1,
        _ => {}
    }
    None
}
