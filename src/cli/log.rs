//! The program's log: what the library says goes through a bounded queue to a thread of its own,
//! which writes it to standard error. A standard error that nobody reads stops that thread and
//! nothing else; what no longer fits is counted, and told as one line when there is room again.

use std::collections::VecDeque;
use std::env;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use env_logger::{Builder, Target};

/// The variable that says what is logged, and what it says when it says nothing.
const FILTER: &str = "RUST_LOG";
const DEFAULT: &str = "info";

/// So many lines wait at most; beyond, they are suppressed.
const LINES_MAX: usize = 1024;
/// What was suppressed is told at most this often.
const REPORT_EVERY: Duration = Duration::from_secs(1);
/// At exit, what still waits may take this long.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// A log whose writer never waits. Clones share one queue.
#[derive(Clone, Default)]
pub struct Log {
    shared: Arc<Shared>,
}

impl Log {
    /// Starts the thread and makes this the process's log, as RUST_LOG says, else from `info` on.
    ///
    /// # Errors
    /// The system's, if there can be no thread.
    pub fn start() -> io::Result<Self> {
        let log = Self::writing_to(io::stderr())?;
        let asked = env::var(FILTER).unwrap_or_default();
        // env_logger itself would complain on a standard error that may be gone.
        let is_understood = env_filter::Builder::new().try_parse(&asked).is_ok();
        let filter = if is_understood && !asked.is_empty() {
            &asked
        } else {
            DEFAULT
        };
        Builder::new()
            .parse_filters(filter)
            .target(Target::Pipe(Box::new(log.clone())))
            .init();
        if !is_understood {
            log::warn!("{FILTER} is not understood; it is taken as `{DEFAULT}`");
        }
        Ok(log)
    }

    fn writing_to(mut out: impl Write + Send + 'static) -> io::Result<Self> {
        let log = Self::default();
        let shared = Arc::clone(&log.shared);
        thread::Builder::new()
            .name("log".into())
            .spawn(move || shared.write_all_to(&mut out))?;
        Ok(log)
    }

    /// Queues `line`, which ends with its line feed, or counts it as suppressed; never waits.
    pub fn say(&self, line: &[u8]) {
        self.shared.lock().push(line);
        self.shared.changed.notify_all();
    }

    /// Waits until everything is written, at most half a second.
    pub fn finish(&self) {
        let mut queue = self.shared.lock();
        queue.finishing = true;
        self.shared.changed.notify_all();
        let unwritten = |queue: &mut Queue| !queue.is_written();
        let changed = &self.shared.changed;
        // Written or not, and by a sound thread or not: there is nobody left to tell.
        let _ = changed.wait_timeout_while(queue, LAST_WORDS, unwritten);
    }
}

/// For env_logger, which writes each record as one whole.
impl Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.say(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl Shared {
    /// The thread: writes what there is, for ever. Errors of `out` concern nobody.
    fn write_all_to(&self, out: &mut impl Write) {
        loop {
            let line = self.next_line();
            let _ = out.write_all(&line).and_then(|()| out.flush());
            self.lock().writing = false;
            self.changed.notify_all();
        }
    }

    fn next_line(&self) -> Vec<u8> {
        let mut queue = self.lock();
        loop {
            if let Some(line) = queue.pop() {
                return line;
            }
            queue = self.wait(queue);
        }
    }

    /// Waits for a change, and no longer than until something suppressed may be told.
    fn wait<'a>(&self, queue: MutexGuard<'a, Queue>) -> MutexGuard<'a, Queue> {
        if queue.suppressed == 0 {
            let woken = self.changed.wait(queue);
            return woken.unwrap_or_else(PoisonError::into_inner);
        }
        let woken = self.changed.wait_timeout(queue, REPORT_EVERY);
        woken.unwrap_or_else(PoisonError::into_inner).0
    }

    /// The queue is whole even if a thread died while holding it.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Default)]
struct Queue {
    lines: VecDeque<Vec<u8>>,
    /// How many lines found no room and have not been told of yet.
    suppressed: u64,
    /// When such lines were last told of.
    reported: Option<Instant>,
    /// Whether the thread holds a line that it has not written yet.
    writing: bool,
    /// The end is near: what was suppressed is told without delay.
    finishing: bool,
}

impl Queue {
    /// A report of what was suppressed goes in first, so that it stands where the lines are missing.
    fn push(&mut self, line: &[u8]) {
        if let Some(report) = self.report() {
            self.lines.push_back(report);
        }
        if self.has_room() {
            self.lines.push_back(line.to_vec());
        } else {
            self.suppressed += 1;
        }
    }

    fn pop(&mut self) -> Option<Vec<u8>> {
        let line = self.lines.pop_front().or_else(|| self.report());
        self.writing = line.is_some();
        line
    }

    fn report(&mut self) -> Option<Vec<u8>> {
        let recent = |at: Instant| at.elapsed() < REPORT_EVERY && !self.finishing;
        if self.suppressed == 0 || !self.has_room() || self.reported.is_some_and(recent) {
            return None;
        }
        self.reported = Some(Instant::now());
        let count = std::mem::take(&mut self.suppressed);
        Some(format!("[WARN  anteroom] {count} lines of the log suppressed\n").into_bytes())
    }

    fn has_room(&self) -> bool {
        self.lines.len() < LINES_MAX
    }

    fn is_written(&self) -> bool {
        self.lines.is_empty() && self.suppressed == 0 && !self.writing
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// A standard error that takes a line only when it is told to.
    struct Gate {
        opened: Receiver<()>,
        written: Sender<String>,
    }

    impl Write for Gate {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            // Who holds the other end may be gone: then the gate stays open.
            let _ = self.opened.recv();
            let _ = self
                .written
                .send(String::from_utf8_lossy(line).into_owned());
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn gated() -> (Log, Sender<()>, Receiver<String>) {
        let (open, opened) = channel();
        let (written, lines) = channel();
        let log = Log::writing_to(Gate { opened, written }).expect("a thread");
        (log, open, lines)
    }

    fn next(lines: &Receiver<String>) -> String {
        let patience = Duration::from_secs(10);
        lines.recv_timeout(patience).expect("a line within 10 s")
    }

    #[test]
    fn lines_come_out_whole_and_in_order() {
        let (mut log, open, lines) = gated();
        drop(open);
        writeln!(log, "one").expect("never fails");
        log.say(b"two\n");
        log.finish();
        let written: Vec<String> = lines.try_iter().collect();
        assert_eq!(written.concat(), "one\ntwo\n");
    }

    #[test]
    fn nobody_reading_stops_nothing_and_what_is_lost_is_told_where_it_is_missing() {
        let (log, open, lines) = gated();
        log.say(b"held\n");
        open.send(()).expect("the thread lives");
        assert_eq!(next(&lines), "held\n");
        // The thread may take one more line before it stands still, or none yet.
        let said = LINES_MAX + 10;
        for number in 0..said {
            log.say(format!("{number}\n").as_bytes());
        }
        drop(open);
        let mut kept = 0;
        let report = loop {
            let line = next(&lines);
            if line != format!("{kept}\n") {
                break line;
            }
            kept += 1;
        };
        assert!((LINES_MAX..=LINES_MAX + 1).contains(&kept), "{kept}");
        let lost = said - kept;
        assert_eq!(
            report,
            format!("[WARN  anteroom] {lost} lines of the log suppressed\n")
        );
    }

    #[test]
    fn what_was_suppressed_is_told_once_a_second_at_most_and_at_the_end() {
        let mut queue = Queue::default();
        let fill = |queue: &mut Queue| {
            while queue.has_room() {
                queue.push(b"line\n");
            }
            queue.push(b"one too many\n");
        };
        fill(&mut queue);
        assert_eq!(queue.pop().as_deref(), Some(&b"line\n"[..]));
        queue.push(b"the report takes the place\n");
        let report = b"[WARN  anteroom] 1 lines of the log suppressed\n";
        assert_eq!(queue.lines.back().map(Vec::as_slice), Some(&report[..]));
        assert_eq!(queue.suppressed, 1);

        queue.lines.clear();
        assert_eq!(queue.pop(), None, "the second is not over");
        assert!(!queue.is_written());
        queue.reported = Instant::now().checked_sub(REPORT_EVERY);
        assert_eq!(queue.pop().as_deref(), Some(&report[..]));
        assert!(!queue.is_written(), "it is still being written");

        fill(&mut queue);
        queue.lines.clear();
        assert_eq!(queue.pop(), None);
        queue.finishing = true;
        assert_eq!(queue.pop().as_deref(), Some(&report[..]));
    }

    #[test]
    fn finishing_takes_no_longer_than_half_a_second() {
        let (log, _open, _lines) = gated();
        log.say(b"never written\n");
        let start = Instant::now();
        log.finish();
        let taken = start.elapsed();
        assert!(taken >= LAST_WORDS && taken < 10 * LAST_WORDS, "{taken:?}");
    }
}
