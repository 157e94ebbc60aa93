//! How the logins and sessions went, and the table in which that is printed.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};

use super::ledger::Ledger;

/// How often something went wrong, by why.
pub type Reasons = BTreeMap<String, u32>;

/// How the logins and sessions went.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Bots that came to play.
    pub done: u32,
    failed: Reasons,
    ended: Reasons,
}

impl Outcome {
    /// So many logins have failed, for this reason.
    pub fn failed(&mut self, count: u32, why: &dyn Display) {
        *self.failed.entry(why.to_string()).or_default() += count;
    }

    /// The session of a bot that played has ended before its time.
    pub fn ended(&mut self, why: &dyn Display) {
        *self.ended.entry(why.to_string()).or_default() += 1;
    }

    /// How many logins have failed.
    pub fn failed_logins(&self) -> u32 {
        self.failed.values().sum()
    }

    /// One number a line, reasons below it. `rejoins` is how often a session took the place of one
    /// that was lost.
    pub fn table(&self, rejoins: u32, ledger: &Ledger) -> String {
        let mut table = Table::default();
        table.row("logins done", self.done);
        table.row("logins failed", self.failed_logins());
        table.reasons(&self.failed);
        table.row("sessions rejoined", rejoins);
        table.row("sessions ended early", self.ended.values().sum::<u32>());
        table.reasons(&self.ended);
        table.row("datagrams sent", ledger.sent);
        table.row("datagrams received", ledger.received);
        table.row("datagrams lost", ledger.lost());
        for (name, per_mille) in [("p50", 500), ("p99", 990), ("p99.9", 999)] {
            let delay = match ledger.delay_us.percentile(per_mille) {
                Some(us) => format!("{}.{:03} ms", us / 1000, us % 1000),
                None => "-".to_owned(),
            };
            table.row(&format!("delay {name}"), delay);
        }
        table.text
    }
}

/// A table as text.
#[derive(Default)]
pub struct Table {
    /// What it has so far.
    pub text: String,
}

impl Table {
    /// Appends a number.
    pub fn row(&mut self, name: &str, value: impl Display) {
        let value = value.to_string();
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{name:<22}{value:>14}");
    }

    /// Appends the reasons for the number above.
    pub fn reasons(&mut self, reasons: &Reasons) {
        for (why, count) in reasons {
            let _ = writeln!(self.text, "  {count} × {why}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_number_a_line_and_the_reasons_below_theirs() {
        let mut outcome = Outcome {
            done: 97,
            ..Outcome::default()
        };
        outcome.failed(1, &"the server is full");
        outcome.failed(2, &"the server is full");
        outcome.ended(&"the server is stopping");
        let mut ledger = Ledger::new();
        (ledger.sent, ledger.received) = (3, 2);
        ledger.delay_us.add(12_345);
        assert_eq!(outcome.failed_logins(), 3);
        let expected = "\
logins done                       97
logins failed                      3
  3 × the server is full
sessions rejoined                  5
sessions ended early               1
  1 × the server is stopping
datagrams sent                     3
datagrams received                 2
datagrams lost                     0
delay p50                  12.415 ms
delay p99                  12.415 ms
delay p99.9                12.415 ms
";
        assert_eq!(outcome.table(5, &ledger), expected);
        let empty = Outcome::default().table(0, &Ledger::new());
        assert!(empty.ends_with("delay p99.9                        -\n"));
    }
}
