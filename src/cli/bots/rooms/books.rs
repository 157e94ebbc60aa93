//! How it went, and the table in which that is printed.

use std::fmt::Display;

use super::super::outcome::{Reasons, Table};

/// The sums of a run.
#[derive(Debug, Default)]
pub struct Books {
    /// Accounts that were made.
    pub registered: u32,
    /// Bots that were logged in.
    pub logged_in: u32,
    /// Bots that came into a room.
    pub in_rooms: u32,
    /// Keys that were pressed.
    pub keys: u64,
    /// Updates that were taken.
    pub updates: u64,
    /// So often a line of a bot was to be heard by another, and was.
    pub lines_expected: u64,
    pub lines_seen: u64,
    out: Reasons,
    requests: Reasons,
    ended: Reasons,
}

impl Books {
    /// So many bots came into no room, for this reason.
    pub fn failed_to_enter(&mut self, count: u32, why: &dyn Display) {
        if count > 0 {
            *self.out.entry(why.to_string()).or_default() += count;
        }
    }

    /// A request was not answered, or is to be asked again.
    pub fn request_failed(&mut self, why: &dyn Display) {
        *self.requests.entry(why.to_string()).or_default() += 1;
    }

    /// The session of a bot that played has ended before its time.
    pub fn ended(&mut self, why: &dyn Display) {
        *self.ended.entry(why.to_string()).or_default() += 1;
    }

    /// How many bots came into no room.
    pub fn failed(&self) -> u32 {
        self.out.values().sum()
    }

    /// One number a line, reasons below it.
    pub fn table(&self) -> String {
        let mut table = Table::default();
        table.row("registered", self.registered);
        table.row("logged in", self.logged_in);
        table.row("in rooms", self.in_rooms);
        table.row("in no room", self.failed());
        table.reasons(&self.out);
        table.row("requests failed", self.requests.values().sum::<u32>());
        table.reasons(&self.requests);
        table.row("sessions ended early", self.ended.values().sum::<u32>());
        table.reasons(&self.ended);
        table.row("keys sent", self.keys);
        table.row("updates received", self.updates);
        table.row("chat lines expected", self.lines_expected);
        table.row("chat lines seen", self.lines_seen);
        table.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_number_a_line_and_the_reasons_below_theirs() {
        let mut books = Books {
            registered: 3,
            logged_in: 2,
            in_rooms: 1,
            keys: 40,
            updates: 300,
            lines_expected: 7,
            lines_seen: 6,
            ..Books::default()
        };
        books.failed_to_enter(0, &"nothing");
        books.failed_to_enter(2, &"the room is full");
        books.request_failed(&"no answer to Chat");
        books.ended(&"the server is stopping");
        let expected = "\
registered                         3
logged in                          2
in rooms                           1
in no room                         2
  2 × the room is full
requests failed                    1
  1 × no answer to Chat
sessions ended early               1
  1 × the server is stopping
keys sent                         40
updates received                 300
chat lines expected                7
chat lines seen                    6
";
        assert_eq!(books.table(), expected);
        assert_eq!(books.failed(), 2);
    }
}
