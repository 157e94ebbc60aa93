//! What a bench prints, and whether it failed.

use std::process::ExitCode;

use super::pairs::Pairs;

/// In a quick run, which is short and shares its machine with others, only a miss by more than
/// this factor is a failure.
const QUICK_GRACE: f64 = 1.5;

/// The lines of one bench.
pub struct Report {
    quick: bool,
    judged: bool,
    failed: bool,
}

impl Report {
    /// Takes `--quick` from the arguments; ignores all else that cargo or a filter may say.
    /// Without cargo's `--bench`, which is how `cargo test` runs a bench, the run is quick and
    /// only shows that the bench works: numbers of an unoptimised build say nothing.
    pub fn new(title: &str) -> Self {
        let is_given = |name: &str| std::env::args().any(|arg| arg == name);
        let judged = is_given("--bench") && !cfg!(debug_assertions);
        let quick = is_given("--quick") || !judged;
        println!("\n{title}{}", if quick { " (quick)" } else { "" });
        Self {
            quick,
            judged,
            failed: false,
        }
    }

    /// `full` repetitions, or a tenth of them in a quick run.
    pub fn repeat(&self, full: usize) -> usize {
        if self.quick { (full / 10).max(1) } else { full }
    }

    /// Whether the run is short.
    pub fn is_quick(&self) -> bool {
        self.quick
    }

    /// Prints what was measured with its floor; `limit` is what their ratio may be.
    pub fn pairs(&mut self, what: &str, pairs: &Pairs, limit: Option<f64>) {
        let (floor, subject, ratio) = (pairs.floor(), pairs.subject(), pairs.ratio());
        let verdict = limit.map_or(String::new(), |limit| self.judge(ratio.median, limit));
        println!(
            "{what:<44} {:>8.1} ns   floor {:>8.1} ns   ratio {:>5.3} ({:.3} to {:.3}){verdict}",
            subject.median, floor.median, ratio.median, ratio.least, ratio.most
        );
    }

    /// Prints a single number with what it may be.
    pub fn number(&mut self, what: &str, value: f64, unit: &str, limit: Option<f64>) {
        let verdict = limit.map_or(String::new(), |limit| self.judge(value, limit));
        println!("{what:<44} {value:>8.3} {unit}{verdict}");
    }

    /// Prints a number with what it is to be at least.
    pub fn at_least(&mut self, what: &str, value: f64, least: Option<f64>) {
        let verdict = least.map_or(String::new(), |least| {
            self.judge_as(least / value, 1.0, &format!("at least {least}"))
        });
        println!("{what:<44} {value:>8.3}{verdict}");
    }

    /// Prints something that is to be known and has no limit.
    pub fn note(&self, text: &str) {
        println!("{text}");
    }

    fn judge(&mut self, value: f64, limit: f64) -> String {
        self.judge_as(value, limit, &format!("limit {limit}"))
    }

    fn judge_as(&mut self, value: f64, limit: f64, wanted: &str) -> String {
        if !self.judged {
            return format!("   {wanted}: not judged");
        }
        let verdict = match value / limit {
            ..=1.0 => "ok",
            ..=QUICK_GRACE if self.quick => "above it, let pass in a quick run",
            _ => {
                self.failed = true;
                "FAIL"
            }
        };
        format!("   {wanted}: {verdict}")
    }

    /// Fails if a limit was missed.
    pub fn exit(self) -> ExitCode {
        if self.failed {
            println!("FAIL: a limit was missed");
        }
        ExitCode::from(u8::from(self.failed))
    }
}
