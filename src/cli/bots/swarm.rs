//! All bots of a run, in one loop: it waits for their sockets and for the next of their timers.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anteroom::driver::End;
use anteroom::engine::Time;
use anteroom::engine::wheel::{TimerId, Wheel};
use mio::{Events, Poll, Token, Waker};

use super::bot::{Bot, Stage};
use super::ledger::Ledger;
use super::mark::{Crew, Mark};
use super::outcome::Outcome;
use crate::cli::args;
use crate::cli::endpoint::Endpoint;
use crate::cli::signals;

/// So many logins are unanswered at a time: servers allow few from one address.
const LOGINS_AT_ONCE: u32 = 8;
/// What is under way when the sending ends has so long to arrive.
const QUIET_US: u64 = 2_000_000;
/// The farewells have so long.
const FAREWELL_US: u64 = 1_500_000;
/// While only the clock is waited for, it is looked at this often.
const GLANCE_US: u64 = 20_000;
const SECOND_US: u64 = 1_000_000;
/// After a stall all bots together make up for so many sends at once: a server's buffer is no
/// larger than it has to be.
const BURST: u64 = 512;

const WAKER: Token = Token(usize::MAX);

/// The bots and their books.
pub struct Swarm {
    endpoint: Endpoint,
    crew: Crew,
    poll: Poll,
    start: Instant,
    bots: Vec<Bot>,
    /// By bot: what is armed for it.
    armed: Vec<Option<TimerId>>,
    timers: Wheel<usize>,
    ledger: Ledger,
    outcome: Outcome,
    count: u32,
    /// So many have begun to log in, and so many of those are not answered.
    begun: u32,
    logging_in: u32,
    interval_us: u64,
    /// A send that was missed is made up for if it is not later than this.
    patience_us: u64,
    end_us: u64,
    is_stopped: Arc<AtomicBool>,
    live: Live,
}

impl Swarm {
    /// Bots that have done nothing yet. From now on a signal ends the run.
    ///
    /// # Errors
    /// The system's.
    pub fn new(endpoint: Endpoint, arguments: &args::Bots) -> io::Result<Self> {
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
        let interval_us = SECOND_US / u64::from(arguments.rate_hz);
        Ok(Self {
            endpoint,
            crew: Crew::new(),
            poll,
            start: Instant::now(),
            bots: Vec::new(),
            armed: Vec::new(),
            timers: Wheel::new(Time::ZERO),
            ledger: Ledger::new(),
            outcome: Outcome::default(),
            count: arguments.count,
            begun: 0,
            logging_in: 0,
            interval_us,
            patience_us: interval_us * BURST / u64::from(arguments.count),
            end_us: seconds.map_or(u64::MAX, |seconds| seconds * SECOND_US),
            is_stopped,
            live: Live::default(),
        })
    }

    /// Plays, waits for what is under way, and says farewell.
    ///
    /// # Errors
    /// The system's, if it lets nobody wait for sockets.
    pub fn run(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        while !self.is_over() {
            self.begin_logins();
            self.turn(&mut events, self.end_us.min(self.live.due_us()))?;
            self.live
                .show(self.now_us(), &self.bots, self.count, &self.ledger);
        }
        self.live.clear();
        self.give_up_logins();
        self.bots
            .iter_mut()
            .for_each(|bot| bot.sends_at_us = u64::MAX);
        self.turns_until(&mut events, QUIET_US, |bot| bot.outstanding() == 0)?;
        for bot in self
            .bots
            .iter_mut()
            .filter(|bot| bot.stage == Stage::Playing)
        {
            let peers = bot.peers.iter_mut().flatten();
            peers.for_each(|peer| peer.judge(&mut self.ledger));
        }
        self.bots.iter_mut().for_each(|bot| bot.driver.logout());
        self.turns_until(&mut events, FAREWELL_US, |bot| bot.driver.is_closed())
    }

    /// What is printed at the end.
    pub fn table(&self) -> String {
        let rejoins = self.bots.iter().map(|bot| bot.joins.saturating_sub(1));
        self.outcome.table(rejoins.sum(), &self.ledger)
    }

    /// How many logins have failed.
    pub fn failed_logins(&self) -> u32 {
        self.outcome.failed_logins()
    }

    fn now_us(&self) -> u64 {
        us_since(self.start)
    }

    /// Whether the time is up, somebody has stopped it, or nobody plays any more.
    fn is_over(&self) -> bool {
        let is_gone = |bot: &Bot| matches!(bot.stage, Stage::Over { .. });
        self.is_stopped.load(Ordering::Relaxed)
            || self.now_us() >= self.end_us
            || self.begun == self.count && self.bots.iter().all(is_gone)
    }
}

/// The loop.
impl Swarm {
    /// Turns until `is_done` holds for all bots that are there, or for so long.
    fn turns_until(
        &mut self,
        events: &mut Events,
        limit_us: u64,
        is_done: impl Fn(&Bot) -> bool,
    ) -> io::Result<()> {
        let end_us = self.now_us() + limit_us;
        for index in 0..self.bots.len() {
            self.take(index);
        }
        while self.now_us() < end_us && !self.bots.iter().all(&is_done) {
            self.turn(events, end_us.min(self.now_us() + GLANCE_US))?;
        }
        Ok(())
    }

    /// Waits for something to happen, at most until then, and does what is due.
    fn turn(&mut self, events: &mut Events, until_us: u64) -> io::Result<()> {
        let timer_us = self
            .timers
            .next()
            .map_or(u64::MAX, |at| at.ms().saturating_mul(1000));
        let wait_us = timer_us.min(until_us).saturating_sub(self.now_us());
        let wait = (wait_us < u64::MAX / 2).then(|| Duration::from_micros(wait_us));
        match self.poll.poll(events, wait) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        for event in events.iter().filter(|event| event.token() != WAKER) {
            self.take(event.token().0 / 2);
        }
        let now = Time::from_ms(self.now_us() / 1000);
        while let Some(index) = self.timers.pop(now) {
            self.armed[index] = None;
            self.due(index);
        }
        Ok(())
    }

    /// Something may have come for a bot.
    fn take(&mut self, index: usize) {
        let start = self.start;
        let now_us = move || us_since(start);
        let before = self.bots[index].stage;
        if self.bots[index].poll(&self.crew, now_us, &mut self.ledger) {
            self.changed(index, before);
        }
        self.arm(index);
    }

    /// A bot's timer has fired: it is to send, or its driver has something to do.
    fn due(&mut self, index: usize) {
        let now_us = self.now_us();
        let bot = &mut self.bots[index];
        if let Some(late_us) = now_us.checked_sub(bot.sends_at_us) {
            // What was missed long ago is let go. The bots stay spread over the interval.
            let missed = late_us.saturating_sub(self.patience_us) / self.interval_us;
            bot.sends_at_us += (missed + 1) * self.interval_us;
            self.send(index);
        }
        if self.bots[index]
            .driver
            .deadline()
            .is_some_and(|wait| wait.is_zero())
        {
            self.take(index);
        } else {
            self.arm(index);
        }
    }

    /// Arms a bot's timer for what it has to do next.
    fn arm(&mut self, index: usize) {
        if let Some(timer) = self.armed[index].take() {
            self.timers.cancel(timer);
        }
        let now_us = self.now_us();
        let bot = &mut self.bots[index];
        let wait = bot.driver.deadline();
        let driver_us = wait.map_or(u64::MAX, |wait| now_us + wait.as_micros() as u64);
        let due_us = bot.sends_at_us.min(driver_us);
        if due_us < u64::MAX {
            let due = Time::from_ms(due_us.div_ceil(1000));
            self.armed[index] = Some(self.timers.arm(index, due));
        }
    }
}

/// The bots.
impl Swarm {
    fn begin_logins(&mut self) {
        while self.begun < self.count && self.logging_in < LOGINS_AT_ONCE {
            self.begun += 1;
            let index = self.bots.len();
            match self.endpoint.connect(&self.crew.name_of(index)) {
                Ok(driver) => {
                    self.bots.push(Bot::new(driver, self.endpoint.attempt()));
                    self.armed.push(None);
                    self.logging_in += 1;
                    self.register(index);
                }
                Err(error) => self.outcome.failed(1, &error),
            }
        }
    }

    fn register(&mut self, index: usize) {
        let (stream, datagrams) = (Token(index * 2), Token(index * 2 + 1));
        let registry = self.poll.registry();
        if let Err(error) = self.bots[index]
            .driver
            .register(registry, stream, datagrams)
        {
            // It is polled at its deadlines all the same.
            log::warn!("a bot's sockets cannot be waited for: {error}");
        }
        self.arm(index);
    }

    /// A bot has come further, or its session is over.
    fn changed(&mut self, index: usize, before: Stage) {
        let now_us = self.now_us();
        let bot = &mut self.bots[index];
        if before == Stage::LoggingIn {
            self.logging_in -= 1;
        }
        match bot.stage {
            Stage::LoggingIn | Stage::LoggedIn | Stage::Rejoining => {}
            Stage::Playing if before == Stage::Rejoining => {}
            Stage::Playing => {
                self.outcome.done += 1;
                // Evenly spread, whatever brings the logins close together.
                let share = u64::from(self.begun) * self.interval_us / u64::from(self.count);
                bot.sends_at_us = now_us + share % self.interval_us;
            }
            Stage::Over { end, has_played } => {
                bot.sends_at_us = u64::MAX;
                if !has_played && self.endpoint.has_another(bot.attempt, end) {
                    return self.begin_again(index);
                }
                match (has_played, end) {
                    // At the end of the run, or a login that was not waited for.
                    (_, End::Left) => {}
                    (true, end) => self.outcome.ended(&end),
                    (false, end) => self.outcome.failed(1, &end),
                }
                self.forget(index);
            }
        }
    }

    /// Another address may do.
    fn begin_again(&mut self, index: usize) {
        match self.endpoint.connect(&self.crew.name_of(index)) {
            Ok(driver) => {
                self.bots[index] = Bot::new(driver, self.endpoint.attempt());
                self.logging_in += 1;
                self.register(index);
            }
            Err(error) => self.outcome.failed(1, &error),
        }
    }

    /// The bot is gone: nobody expects anything of it, and it expects nothing.
    fn forget(&mut self, index: usize) {
        let peers = std::mem::take(&mut self.bots[index].peers);
        for peer in peers.into_iter().flatten() {
            let Some(other) = self.bots.get_mut(peer.bot) else {
                continue;
            };
            for slot in &mut other.peers {
                slot.take_if(|peer| peer.bot == index);
            }
        }
    }

    /// Sends a bot's next mark, which is expected by those of its game who know it and whom it
    /// knows.
    fn send(&mut self, index: usize) {
        let mark = Mark {
            crew: self.crew.tag(),
            bot: index as u32,
            sequence: 0,
            sent_us: self.now_us(),
        };
        let bot = &mut self.bots[index];
        let Some(number) = bot.number() else { return };
        let Some(sequence) = bot.send(mark) else {
            return;
        };
        self.ledger.sent += 1;
        let others = bot
            .peers
            .each_ref()
            .map(|peer| peer.as_ref().map(|peer| peer.bot));
        for other in others.into_iter().flatten() {
            let Some(other) = self.bots.get_mut(other) else {
                continue;
            };
            let knows = other.peers.get_mut(number).and_then(Option::as_mut);
            if let Some(peer) = knows.filter(|peer| peer.bot == index) {
                peer.expect(sequence, mark.sent_us, &mut self.ledger);
            }
        }
    }

    /// The time is up. Who has not come to play by now has failed, unless somebody stopped it.
    fn give_up_logins(&mut self) {
        let answered = self.outcome.done + self.outcome.failed_logins();
        let open = self.count.saturating_sub(answered);
        if open > 0 && !self.is_stopped.load(Ordering::Relaxed) {
            self.outcome.failed(open, &"not done when the time was up");
        }
        self.count = self.begun;
    }
}

fn us_since(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// One line on a terminal that tells how it goes, every second.
struct Live {
    is_shown: bool,
    due_us: u64,
    sent: u64,
    received: u64,
}

impl Default for Live {
    fn default() -> Self {
        let is_shown = io::stderr().is_terminal();
        Self {
            is_shown,
            due_us: if is_shown { SECOND_US } else { u64::MAX },
            sent: 0,
            received: 0,
        }
    }
}

impl Live {
    fn due_us(&self) -> u64 {
        self.due_us
    }

    fn show(&mut self, now_us: u64, bots: &[Bot], count: u32, ledger: &Ledger) {
        if now_us < self.due_us {
            return;
        }
        self.due_us += SECOND_US;
        let playing = bots
            .iter()
            .filter(|bot| bot.stage == Stage::Playing)
            .count();
        let (seconds, sent) = (now_us / SECOND_US, ledger.sent - self.sent);
        let received = ledger.received - self.received;
        (self.sent, self.received) = (ledger.sent, ledger.received);
        let line = format!(
            "{seconds} s: {playing} of {count} play, {sent} datagrams/s sent, {received} received"
        );
        self.write(&line);
    }

    fn clear(&self) {
        if self.is_shown {
            self.write("");
            self.rewind();
        }
    }

    fn write(&self, line: &str) {
        // A terminal that is gone misses nothing.
        let _ = write!(io::stderr(), "\r{line:<78}");
    }

    fn rewind(&self) {
        let _ = write!(io::stderr(), "\r");
    }
}
