//! Whatever a peer sent is escaped before it is printed or logged, and stored and passed on
//! unchanged.
//!
//! Control characters (C0, 7F, C1) and bidirectional controls become `\u{…}`, a backslash becomes
//! `\\`, and what is not UTF-8 becomes `\x..`. So a name can neither move a terminal's cursor nor
//! forge a line of the log, and every escaped text stands for one input only.

use std::fmt::{self, Display, Formatter, Write};

/// `text`, harmless to print.
pub fn escaped(text: &str) -> impl Display {
    Escaped(text.as_bytes())
}

/// `bytes`, harmless to print: as UTF-8 as far as they are, the rest as `\x..`.
pub fn escaped_bytes(bytes: &[u8]) -> impl Display {
    Escaped(bytes)
}

struct Escaped<'a>(&'a [u8]);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            write_text(f, chunk.valid())?;
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

fn write_text(f: &mut Formatter<'_>, text: &str) -> fmt::Result {
    text.chars().try_for_each(|c| match c {
        '\\' => f.write_str("\\\\"),
        c if c.is_control() || is_bidirectional_control(c) => write!(f, "{}", c.escape_unicode()),
        c => f.write_char(c),
    })
}

/// Characters that show nothing and turn the reading direction of what follows.
fn is_bidirectional_control(c: char) -> bool {
    matches!(c, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that must not reach a terminal.
    fn controls() -> impl Iterator<Item = char> {
        let c0 = '\0'..='\u{1F}';
        let del_and_c1 = '\u{7F}'..='\u{9F}';
        let marks = ['\u{61C}', '\u{200E}', '\u{200F}'];
        let embeddings = '\u{202A}'..='\u{202E}';
        let isolates = '\u{2066}'..='\u{2069}';
        c0.chain(del_and_c1)
            .chain(marks)
            .chain(embeddings)
            .chain(isolates)
    }

    #[test]
    fn ordinary_text_is_untouched() {
        let text = "R9 Jürgen 名前 👩\u{200D}🚀 'quoted\" ~ \u{A0}\u{202F}\u{2065}\u{206A}";
        assert_eq!(escaped(text).to_string(), text);
        assert_eq!(escaped_bytes(text.as_bytes()).to_string(), text);
    }

    #[test]
    fn every_control_is_written_as_its_number() {
        assert_eq!(controls().count(), 32 + 33 + 3 + 5 + 4);
        for c in controls() {
            let expected = format!("a\\u{{{:x}}}b", u32::from(c));
            assert_eq!(escaped(&format!("a{c}b")).to_string(), expected);
        }
    }

    #[test]
    fn nothing_else_is_escaped() {
        let controls: Vec<char> = controls().collect();
        for c in ('\0'..=char::MAX).filter(|c| *c != '\\' && !controls.contains(c)) {
            let mut buffer = [0; 4];
            let text: &str = c.encode_utf8(&mut buffer);
            assert_eq!(escaped(text).to_string(), text);
        }
    }

    #[test]
    fn a_backslash_stays_unambiguous() {
        assert_eq!(escaped("\\u{7}").to_string(), "\\\\u{7}");
        assert_eq!(escaped("\u{7}").to_string(), "\\u{7}");
        assert_eq!(escaped_bytes(b"\\xff").to_string(), "\\\\xff");
        assert_eq!(escaped_bytes(b"\xff").to_string(), "\\xff");
    }

    #[test]
    fn what_is_not_utf8_is_written_byte_by_byte() {
        // A lone continuation, an overlong slash, a surrogate, and a character cut short.
        let bytes = b"a\x80b\xc0\xafc\xed\xa0\x80d\xe5\x90";
        assert_eq!(
            escaped_bytes(bytes).to_string(),
            r"a\x80b\xc0\xafc\xed\xa0\x80d\xe5\x90"
        );
    }
}
