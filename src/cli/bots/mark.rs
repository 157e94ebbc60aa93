//! What the bots of one run say, and by which names they know each other.

use std::hash::{BuildHasher, RandomState};

use anteroom::bytes::{Reader, WireError};

/// The bots of one run: another run at the same server is of another crew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crew {
    tag: u32,
}

impl Crew {
    /// A crew with a tag of its own.
    pub fn new() -> Self {
        let tag = RandomState::new().hash_one(std::process::id());
        Self {
            tag: tag as u32 & 0x00FF_FFFF,
        }
    }

    /// What tells its marks from others.
    pub fn tag(&self) -> u32 {
        self.tag
    }

    /// The name of one of its bots: at most 13 bytes.
    pub fn name_of(&self, bot: usize) -> String {
        format!("b{:06x}-{bot}", self.tag)
    }

    /// Which of its bots has this name.
    pub fn bot_of(&self, name: &str) -> Option<usize> {
        let bot = name.strip_prefix(&format!("b{:06x}-", self.tag))?;
        bot.parse().ok()
    }
}

/// What a bot sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// The tag of its crew.
    pub crew: u32,
    /// Which bot it is.
    pub bot: u32,
    /// The number of the datagram among the bot's own.
    pub sequence: u32,
    /// When it was sent, in microseconds on the crew's clock.
    pub sent_us: u64,
}

const MARK_BYTES: usize = 4 + 4 + 4 + 8;

impl Mark {
    /// As it travels.
    pub fn bytes(&self) -> [u8; MARK_BYTES] {
        let mut bytes = [0; MARK_BYTES];
        bytes[..4].copy_from_slice(&self.crew.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.bot.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[12..].copy_from_slice(&self.sent_us.to_le_bytes());
        bytes
    }

    /// As it came, if it is one.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let read = |bytes| -> Result<Self, WireError> {
            let mut reader = Reader::new(bytes);
            let mark = Self {
                crew: reader.u32_le("crew")?,
                bot: reader.u32_le("bot")?,
                sequence: reader.u32_le("sequence")?,
                sent_us: reader.u64_le("sent_us")?,
            };
            reader.end("mark")?;
            Ok(mark)
        };
        read(bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_come_back_as_sent_and_nothing_else_is_one() {
        let mark = Mark {
            crew: 1,
            bot: 2,
            sequence: 3,
            sent_us: u64::MAX - 4,
        };
        let bytes = mark.bytes();
        assert_eq!(Mark::read(&bytes), Some(mark));
        assert_eq!(Mark::read(&bytes[1..]), None);
        assert_eq!(Mark::read(&[&bytes[..], &[0]].concat()), None);
    }

    #[test]
    fn a_crew_knows_its_own_names_only() {
        let crew = Crew { tag: 0x00FF_FFFF };
        let name = crew.name_of(9_999);
        assert_eq!(name, "bffffff-9999");
        assert!(crew.name_of(10_000).len() <= 16);
        assert_eq!(crew.bot_of(&name), Some(9_999));
        assert_eq!(Crew { tag: 1 }.bot_of(&name), None);
        assert_eq!(crew.bot_of("Leia"), None);
        assert_ne!(Crew::new(), Crew::new());
    }
}
