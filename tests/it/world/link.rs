//! One direction of a datagram link: what it loses, doubles, delays and reorders, all by seed.

use anteroom::engine::Seeded;

/// Parts in a thousand.
pub type PerMille = u64;

/// A datagram that was held back is let go after this long, even if nothing came behind it.
const HELD_MS: u64 = 1000;

/// What a link does to datagrams. The default is a quick, clean one.
#[derive(Debug, Clone, Copy)]
pub struct Weather {
    /// Lost without a trace.
    pub loss: PerMille,
    /// Delivered twice; each copy has its own delay.
    pub double: PerMille,
    /// Held back until some of the next `reorder_span` datagrams have overtaken it.
    pub reorder: PerMille,
    /// By how many datagrams one may be overtaken.
    pub reorder_span: u64,
    /// Every datagram takes this long.
    pub delay_ms: u64,
    /// And up to this much longer.
    pub jitter_ms: u64,
}

impl Default for Weather {
    fn default() -> Self {
        Self {
            loss: 0,
            double: 0,
            reorder: 0,
            reorder_span: 64,
            delay_ms: 5,
            jitter_ms: 0,
        }
    }
}

impl Weather {
    /// Clean, with this delay.
    pub fn clear(delay_ms: u64) -> Self {
        Self {
            delay_ms,
            ..Self::default()
        }
    }

    /// As bad as it gets: 30 % lost, 30 % doubled, half of them reordered over 64 datagrams, and
    /// 300 ms on the way.
    pub fn storm() -> Self {
        Self {
            loss: 300,
            double: 300,
            reorder: 500,
            reorder_span: 64,
            delay_ms: 300,
            jitter_ms: 0,
        }
    }
}

/// Decides by the bytes whether a datagram may pass.
pub type Filter = Box<dyn FnMut(&[u8]) -> bool>;

/// One direction between two endpoints.
#[derive(Default)]
pub struct Link {
    /// What happens to those that pass the filter.
    pub weather: Weather,
    /// Asked first; `None` lets everything pass.
    pub filter: Option<Filter>,
    held: Vec<Held>,
}

struct Held {
    overtakers: u64,
    until: u64,
    bytes: Vec<u8>,
}

/// What becomes of a datagram: copies that arrive at a time, and when to look for held ones.
#[derive(Debug, Default)]
pub struct Carried {
    pub arrivals: Vec<(u64, Vec<u8>)>,
    pub look_again: Option<u64>,
}

impl Link {
    /// A link without a filter.
    pub fn new(weather: Weather) -> Self {
        Self {
            weather,
            ..Self::default()
        }
    }

    /// Takes one datagram on its way.
    pub fn carry(&mut self, now: u64, bytes: &[u8], dice: &mut Seeded) -> Carried {
        let mut carried = Carried::default();
        if let Some(filter) = &mut self.filter
            && !filter(bytes)
        {
            return carried;
        }
        let copies = if dice.below(1000) < self.weather.loss {
            0
        } else if dice.below(1000) < self.weather.double {
            2
        } else {
            1
        };
        for _ in 0..copies {
            self.overtake(now, dice, &mut carried);
            if self.weather.reorder_span > 0 && dice.below(1000) < self.weather.reorder {
                self.held.push(Held {
                    overtakers: 1 + dice.below(self.weather.reorder_span),
                    until: now + HELD_MS,
                    bytes: bytes.to_vec(),
                });
                carried.look_again = Some(now + HELD_MS);
            } else {
                let at = self.arrival(now, dice);
                carried.arrivals.push((at, bytes.to_vec()));
            }
        }
        carried
    }

    /// Lets go of what was held for long enough.
    pub fn let_go(&mut self, now: u64, dice: &mut Seeded) -> Vec<(u64, Vec<u8>)> {
        let mut free = Vec::new();
        for held in self.held.extract_if(.., |held| held.until <= now) {
            free.push(held.bytes);
        }
        free.into_iter()
            .map(|bytes| (self.arrival(now, dice), bytes))
            .collect()
    }

    /// One more datagram passes those that are held.
    fn overtake(&mut self, now: u64, dice: &mut Seeded, carried: &mut Carried) {
        for held in &mut self.held {
            held.overtakers -= 1;
        }
        let free: Vec<Held> = self
            .held
            .extract_if(.., |held| held.overtakers == 0)
            .collect();
        for held in free {
            // One millisecond behind the one that overtook it.
            let at = self.arrival(now, dice) + 1;
            carried.arrivals.push((at, held.bytes));
        }
    }

    fn arrival(&self, now: u64, dice: &mut Seeded) -> u64 {
        let jitter = match self.weather.jitter_ms {
            0 => 0,
            most => dice.below(most + 1),
        };
        now + self.weather.delay_ms + jitter
    }
}
