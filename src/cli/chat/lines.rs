//! What is typed: lines of standard input, read by a thread of its own since nothing else can
//! wait for it and for a socket on every system.

use std::io::{self, BufRead, Read};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

/// The longest line that is taken, in bytes; any text that can be said is far shorter.
const LINE_MAX: u64 = 1024;
/// So many lines wait; then whoever writes them has to.
const WAITING_MAX: usize = 64;

/// One line of input.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// Without its line feed.
    Text(String),
    /// It is too long, or no text.
    Unusable,
}

/// Waits for one line of standard input; `None` at its end, or where it is no text.
///
/// # Errors
/// The system's.
pub fn read_one() -> io::Result<Option<String>> {
    Ok(match next_line(&mut io::stdin().lock())? {
        Some(Line::Text(text)) => Some(text),
        Some(Line::Unusable) | None => None,
    })
}

/// Reads standard input to its end. Each line goes into the channel, which ends with the input;
/// `wake` is called after each, and after the end.
///
/// # Errors
/// The system's, if there can be no thread.
pub fn read(wake: impl Fn() + Send + 'static) -> io::Result<Receiver<Line>> {
    let (lines, receiver) = sync_channel(WAITING_MAX);
    let read_all = move || {
        let mut input = io::stdin().lock();
        // An input that fails has ended.
        while let Ok(Some(line)) = next_line(&mut input) {
            if lines.send(line).is_err() {
                return;
            }
            wake();
        }
        drop(lines);
        wake();
    };
    thread::Builder::new()
        .name("input".into())
        .spawn(read_all)?;
    Ok(receiver)
}

fn next_line(input: &mut impl BufRead) -> io::Result<Option<Line>> {
    let mut bytes = Vec::new();
    let count = input.take(LINE_MAX).read_until(b'\n', &mut bytes)?;
    if count == 0 {
        return Ok(None);
    }
    if bytes.last() != Some(&b'\n') && bytes.len() as u64 == LINE_MAX {
        skip_line(input)?;
        return Ok(Some(Line::Unusable));
    }
    let text = String::from_utf8(bytes);
    Ok(Some(text.map_or(Line::Unusable, |text| {
        let text = text.strip_suffix('\n').unwrap_or(&text);
        Line::Text(text.strip_suffix('\r').unwrap_or(text).to_owned())
    })))
}

/// Skips what is left of a line.
fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let (count, is_over) = match end {
            Some(end) => (end + 1, true),
            None => (buffer.len(), buffer.is_empty()),
        };
        input.consume(count);
        if is_over {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(mut input: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        while let Some(line) = next_line(&mut input).expect("a slice never fails") {
            lines.push(line);
        }
        lines
    }

    fn text(text: &str) -> Line {
        Line::Text(text.to_owned())
    }

    #[test]
    fn lines_end_at_their_line_feed_and_the_last_one_without() {
        assert_eq!(lines(b""), []);
        assert_eq!(
            lines(b"a\n\nb c\r\nd"),
            [text("a"), text(""), text("b c"), text("d")]
        );
    }

    #[test]
    fn a_line_that_is_too_long_or_no_text_costs_only_itself() {
        let longest = "x".repeat(LINE_MAX as usize - 1);
        let input = format!("{longest}\n{longest}x\n{longest}xyz\nnext\n");
        let expected = [text(&longest), Line::Unusable, Line::Unusable, text("next")];
        assert_eq!(lines(input.as_bytes()), expected);
        assert_eq!(lines(b"\xFF\xFE\nnext"), [Line::Unusable, text("next")]);
        assert_eq!(lines(&[b'x'; 5_000]), [Line::Unusable]);
    }
}
