//! What a readiness event is about, and the number that stands for it in the poll.

use mio::Token;

/// What a readiness event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// Another thread has an order.
    Orders,
    /// A listener, by service and index.
    Listener { service: u8, index: u8 },
    /// A datagram socket, by service and index.
    Datagrams { service: u8, index: u8 },
    /// A connection, by slot.
    Stream { slot: u32 },
}

/// Slots must be below this, so that the kind of source fits above them, also in 32 bits.
pub(super) const SLOTS_MAX: u32 = 1 << KIND_SHIFT;

const KIND_SHIFT: u32 = 30;

impl Source {
    pub(super) fn token(self) -> Token {
        let (kind, rest) = match self {
            Self::Orders => (0, 0),
            Self::Listener { service, index } => (1, pair(service, index)),
            Self::Datagrams { service, index } => (2, pair(service, index)),
            Self::Stream { slot } => (3, slot as usize),
        };
        Token(kind << KIND_SHIFT | rest)
    }

    pub(super) fn of(Token(number): Token) -> Self {
        let rest = number & (SLOTS_MAX as usize - 1);
        let [index, service, ..] = rest.to_le_bytes();
        match number >> KIND_SHIFT {
            0 => Self::Orders,
            1 => Self::Listener { service, index },
            2 => Self::Datagrams { service, index },
            _ => Self::Stream { slot: rest as u32 },
        }
    }
}

fn pair(service: u8, index: u8) -> usize {
    usize::from(service) << 8 | usize::from(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_comes_back_from_its_token() {
        let (service, index) = (255, 254);
        for source in [
            Source::Orders,
            Source::Listener { service, index },
            Source::Listener {
                service: 0,
                index: 1,
            },
            Source::Datagrams { service, index },
            Source::Stream { slot: 0 },
            Source::Stream {
                slot: SLOTS_MAX - 1,
            },
        ] {
            assert_eq!(Source::of(source.token()), source);
            assert!(source.token().0 <= u32::MAX as usize);
        }
    }
}
