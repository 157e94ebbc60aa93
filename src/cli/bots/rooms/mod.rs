//! `anteroom bots --rooms`: users with accounts of their own that fly ships in rooms of 16 and talk
//! now and then.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anteroom::driver::rooms::Ask;
use mio::{Events, Poll, Token, Waker};

use super::Failure;
use super::mark::Crew;
use crate::cli::endpoint::Endpoint;
use crate::cli::{args, print, serve, signals};
use books::Books;
use bot::{Bot, Stage};

mod books;
mod bot;

/// Players of a room.
const PLAYERS: usize = 16;
/// So many are on their way in at a time: a server works out few passwords at once.
const ENTERING_AT_ONCE: usize = 8;
/// What is under way when the time is up has so long to arrive.
const QUIET: Duration = Duration::from_secs(3);
/// What the server has told last it has told four times by then.
const ECHO: Duration = Duration::from_millis(600);
/// The farewells have so long.
const FAREWELL: Duration = Duration::from_millis(1_500);
/// While only the clock is waited for, it is looked at this often.
const GLANCE: Duration = Duration::from_millis(20);

const WAKER: Token = Token(usize::MAX);

/// Runs the bots for their time, or until a signal, and prints the table.
///
/// # Errors
/// [`Failure`] if there are no sockets, or a bot did not come into a room.
pub fn run(arguments: &args::Bots) -> Result<(), Failure> {
    serve::raise_descriptor_limit();
    let endpoint = Endpoint::resolve(&arguments.server, false).map_err(Failure::System)?;
    let mut fleet = Fleet::new(endpoint, arguments).map_err(Failure::System)?;
    fleet.run().map_err(Failure::System)?;
    print(&fleet.books.table());
    match fleet.books.failed() {
        0 => Ok(()),
        failed => Err(Failure::Logins {
            failed,
            count: arguments.count,
        }),
    }
}

/// The bots and their books.
struct Fleet {
    endpoint: Endpoint,
    crew: Crew,
    poll: Poll,
    bots: Vec<Bot>,
    books: Books,
    count: usize,
    /// Between two keys of a bot.
    interval: Duration,
    end: Option<Instant>,
    is_stopped: Arc<AtomicBool>,
    are_leaving: bool,
}

impl Fleet {
    /// Bots that have done nothing yet. From now on a signal ends the run.
    fn new(endpoint: Endpoint, arguments: &args::Bots) -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        let is_stopped = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_stopped);
        signals::stop_with(move || {
            flag.store(true, Ordering::Relaxed);
            // It fails only for a poll that is gone, and then there is nobody to wake.
            let _ = waker.wake();
        })?;
        let seconds = arguments.seconds.map(u64::from);
        Ok(Self {
            endpoint,
            crew: Crew::new(),
            poll,
            bots: Vec::new(),
            books: Books::default(),
            count: arguments.count as usize,
            interval: Duration::from_secs(1) / arguments.rate_hz,
            end: seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds)),
            is_stopped,
            are_leaving: false,
        })
    }

    /// Plays, waits for what is under way, and says farewell.
    fn run(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        while !self.is_over() {
            self.begin();
            self.enter_rooms();
            self.play();
            self.turn(&mut events)?;
        }
        self.count_who_is_missing();
        let is_heard = |bot: &Bot| !bot.driver.client().is_asking(Ask::Chat);
        self.turns_until(&mut events, QUIET, is_heard)?;
        self.turns_until(&mut events, ECHO, |_| false)?;
        self.are_leaving = true;
        self.bots.iter_mut().for_each(|bot| {
            bot.driver.logout();
            bot.rest();
        });
        self.turns_until(&mut events, FAREWELL, |bot| bot.driver.is_closed())
    }

    fn is_over(&self) -> bool {
        let has_begun_all = self.bots.len() == self.count;
        self.end.is_some_and(|end| end <= Instant::now())
            || self.is_stopped.load(Ordering::Relaxed)
            || has_begun_all && self.bots.iter().all(Bot::is_over)
    }

    /// The time is up. Who is in no room by now has failed, unless somebody stopped it.
    fn count_who_is_missing(&mut self) {
        if self.is_stopped.load(Ordering::Relaxed) {
            return;
        }
        let missing = self
            .bots
            .iter()
            .filter(|bot| !bot.has_played && !bot.is_over());
        let missing = missing.count() + self.count - self.bots.len();
        let why = "not done when the time was up";
        self.books.failed_to_enter(missing as u32, &why);
    }

    /// Turns until all bots are as they should be, at most so long.
    fn turns_until(
        &mut self,
        events: &mut Events,
        patience: Duration,
        is_done: impl Fn(&Bot) -> bool,
    ) -> io::Result<()> {
        let end = Instant::now() + patience;
        while Instant::now() < end && !self.bots.iter().all(|bot| bot.is_over() || is_done(bot)) {
            self.turn(events)?;
        }
        Ok(())
    }

    /// Waits for something, and takes it.
    fn turn(&mut self, events: &mut Events) -> io::Result<()> {
        let now = Instant::now();
        let keys = self.bots.iter().filter_map(Bot::presses_at);
        let due = self.bots.iter().map(|bot| bot.due).chain(keys).min();
        let wait = due.map_or(GLANCE, |due| due.saturating_duration_since(now));
        match self.poll.poll(events, Some(wait.min(GLANCE))) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        let now = Instant::now();
        for event in events.iter().filter(|event| event.token() != WAKER) {
            if let Some(bot) = self.bots.get_mut(event.token().0 / 2) {
                bot.due = now;
            }
        }
        for index in 0..self.bots.len() {
            if self.bots[index].due <= now {
                self.take(index)?;
            }
        }
        Ok(())
    }

    /// Something may have come for a bot, or is due there.
    fn take(&mut self, index: usize) -> io::Result<()> {
        let bot = &mut self.bots[index];
        bot.poll(&mut self.books);
        let Stage::Over(end) = bot.stage else {
            return Ok(());
        };
        if std::mem::replace(&mut bot.is_counted, true) {
            return Ok(());
        }
        let (why, attempt) = (bot.failure.take(), bot.attempt);
        let why = why.unwrap_or_else(|| end.to_string());
        match bot.has_played {
            _ if self.are_leaving => {}
            true => self.books.ended(&why),
            false if self.endpoint.has_another_for_rooms(attempt, end) => {
                self.bots[index] = self.connect(index)?;
            }
            false => self.books.failed_to_enter(1, &why),
        }
        Ok(())
    }
}

/// The way in.
impl Fleet {
    fn begin(&mut self) {
        let is_entering = |bot: &&Bot| bot.stage == Stage::Entering;
        while self.bots.len() < self.count
            && self.bots.iter().filter(is_entering).count() < ENTERING_AT_ONCE
        {
            match self.connect(self.bots.len()) {
                Ok(bot) => self.bots.push(bot),
                Err(error) => {
                    self.count -= 1;
                    self.books.failed_to_enter(1, &error);
                }
            }
        }
    }

    fn connect(&mut self, index: usize) -> io::Result<Bot> {
        let (stream, datagrams) = (Token(index * 2), Token(index * 2 + 1));
        let mut driver = self.endpoint.connect_to_rooms()?;
        driver.register(self.poll.registry(), stream, datagrams)?;
        let name = self.crew.name_of(index);
        Ok(Bot::new(name, driver, self.endpoint.attempt()))
    }

    /// Who is logged in makes a room, if it is the first of its sixteen, or joins it once it is
    /// there.
    fn enter_rooms(&mut self) {
        for index in 0..self.bots.len() {
            if self.bots[index].stage != Stage::LoggedIn {
                continue;
            }
            let first = index - index % PLAYERS;
            let room = format!("room of {}", self.crew.name_of(first));
            let mut roommates = self.bots[first..].iter().take(PLAYERS);
            let is_made = roommates.any(|bot| bot.stage == Stage::Playing);
            let is_first = self.bots[first..index].iter().all(Bot::is_over);
            if is_made || is_first {
                self.bots[index].enter(&room, !is_made, PLAYERS as u8);
            }
        }
    }

    /// Keys at the rate; and lines, once nobody is on the way in any more, so that it is known who
    /// is to hear them.
    fn play(&mut self) {
        let now = Instant::now();
        let is_settled = |bot: &Bot| bot.stage == Stage::Playing || bot.is_over();
        let are_settled = self.bots.len() == self.count && self.bots.iter().all(is_settled);
        for index in 0..self.bots.len() {
            if self.bots[index].stage != Stage::Playing {
                continue;
            }
            self.bots[index].press(now, self.interval, &mut self.books);
            if are_settled {
                let first = index - index % PLAYERS;
                let room = self.bots[first..].iter().take(PLAYERS);
                let players = room.filter(|bot| bot.stage == Stage::Playing).count();
                self.bots[index].talk(now, index, players - 1);
            }
        }
    }
}
