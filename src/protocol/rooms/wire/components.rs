//! The records of an Update Component packet, one behind the other.

use std::iter::Peekable;

use super::{CUSTOM_BYTES_MAX, PAYLOAD_MAX, check};
use crate::bytes::{Reader, WireError, Writer};

/// Component number: where an entity is.
pub const POSITION: u16 = 1;
/// Component number: how many points an entity has left.
pub const HEALTH: u16 = 2;
/// Component numbers from here on are the game's own.
pub const CUSTOM_FROM: u16 = 256;

/// One component of an entity, or something of the game's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Component<'a> {
    /// Where an entity is.
    Position {
        /// Which.
        entity: u32,
        /// To the right, in the game's units.
        x: Finite,
        /// Downwards, in the game's units.
        y: Finite,
    },
    /// How many points an entity has left.
    Health {
        /// Which.
        entity: u32,
        /// The game's own measure.
        points: i32,
    },
    /// The game's own.
    Custom(Custom<'a>),
}

/// An `f32` that is a number and no infinity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Finite(f32);

// Only NaN is not equal to itself.
impl Eq for Finite {}

impl Finite {
    /// `value`, if it is finite.
    pub const fn new(value: f32) -> Option<Self> {
        if value.is_finite() {
            Some(Self(value))
        } else {
            None
        }
    }

    /// The number.
    pub const fn get(self) -> f32 {
        self.0
    }
}

/// A component of the game's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Custom<'a> {
    component: u16,
    bytes: &'a [u8],
}

impl<'a> Custom<'a> {
    /// A component from [`CUSTOM_FROM`] on, with at most [`CUSTOM_BYTES_MAX`] bytes; `None`
    /// outside of that.
    pub const fn new(component: u16, bytes: &'a [u8]) -> Option<Self> {
        if component >= CUSTOM_FROM && bytes.len() <= CUSTOM_BYTES_MAX {
            Some(Self { component, bytes })
        } else {
            None
        }
    }

    /// Its number.
    pub const fn component(self) -> u16 {
        self.component
    }

    /// The game's own bytes; nothing in the packet is behind them.
    pub const fn bytes(self) -> &'a [u8] {
        self.bytes
    }
}

impl<'a> Component<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        Ok(match reader.u16_be("component")? {
            POSITION => Self::Position {
                entity: reader.u32_be("entity")?,
                x: read_finite(reader, "x")?,
                y: read_finite(reader, "y")?,
            },
            HEALTH => Self::Health {
                entity: reader.u32_be("entity")?,
                points: reader.i32_be("points")?,
            },
            component => {
                let custom = Custom::new(component, reader.rest());
                Self::Custom(custom.ok_or(WireError::Invalid("component"))?)
            }
        })
    }

    /// Appends the record.
    fn write(&self, writer: &mut Writer<'_>) {
        match *self {
            Self::Position { entity, x, y } => {
                writer.u16_be(POSITION);
                writer.u32_be(entity);
                writer.f32_be(x.get());
                writer.f32_be(y.get());
            }
            Self::Health { entity, points } => {
                writer.u16_be(HEALTH);
                writer.u32_be(entity);
                writer.i32_be(points);
            }
            Self::Custom(custom) => {
                writer.u16_be(custom.component);
                writer.bytes(custom.bytes);
            }
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Position { .. } => 2 + 4 + 4 + 4,
            Self::Health { .. } => 2 + 4 + 4,
            Self::Custom(custom) => 2 + custom.bytes.len(),
        }
    }
}

fn read_finite(reader: &mut Reader<'_>, field: &'static str) -> Result<Finite, WireError> {
    Finite::new(reader.f32_be(field)?).ok_or(WireError::Invalid(field))
}

/// The records of one packet, in its order: one or more, all whole, a custom one only as the
/// last. Clone it to walk twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Components<'a> {
    rest: &'a [u8],
}

impl<'a> Components<'a> {
    /// Reads the payload of an Update Component packet to its last byte.
    ///
    /// # Errors
    /// No record, one cut short, a component number without a meaning, an `f32` that is not
    /// finite.
    pub fn read(payload: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(payload);
        check(reader.left() > 0, "components")?;
        while reader.left() > 0 {
            Component::read(&mut reader)?;
        }
        Ok(Self { rest: payload })
    }

    /// The bytes of the records that are left.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Components<'a> {
    type Item = Component<'a>;

    fn next(&mut self) -> Option<Component<'a>> {
        // All were read once already: the only failure left is that none is.
        let mut reader = Reader::new(self.rest);
        let component = Component::read(&mut reader).ok()?;
        self.rest = reader.rest();
        Some(component)
    }
}

/// Appends a payload with as many of `components` as fit, at least one if there is one, and leaves
/// the others for the next packet. A custom one is the last of its packet. Returns how many it
/// took.
pub fn write_components<'c>(
    writer: &mut Writer<'_>,
    components: &mut Peekable<impl Iterator<Item = Component<'c>>>,
) -> usize {
    let start = writer.len();
    let mut count = 0;
    while let Some(component) =
        components.next_if(|component| writer.len() - start + component.bytes() <= PAYLOAD_MAX)
    {
        component.write(writer);
        count += 1;
        if matches!(component, Component::Custom(_)) {
            break;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::super::tests::{only_whole, written};
    use super::*;

    const UPDATE: &[u8] =
        b"\0\x01\0\0\0\x07\x43\x48\0\0\xBF\x80\0\0\0\x02\0\0\x01\0\xFF\xFF\xFF\xFE\x01\0own";

    fn position(entity: u32) -> Component<'static> {
        Component::Position {
            entity,
            x: Finite::new(200.0).unwrap(),
            y: Finite::new(-1.0).unwrap(),
        }
    }

    fn health() -> Component<'static> {
        Component::Health {
            entity: 256,
            points: -2,
        }
    }

    fn custom(bytes: &[u8]) -> Component<'_> {
        Component::Custom(Custom::new(256, bytes).unwrap())
    }

    /// Everything the packets of these components say, and how many records each has.
    fn packed(components: &[Component<'_>]) -> Vec<(usize, Vec<u8>)> {
        let mut components = components.iter().copied().peekable();
        let mut packets = Vec::new();
        while components.peek().is_some() {
            let mut count = 0;
            let payload = written(|w| count = write_components(w, &mut components));
            assert!(count > 0, "every packet takes something along");
            packets.push((count, payload));
        }
        packets
    }

    #[test]
    fn r10_records_are_their_bytes() {
        let components = [position(7), health(), custom(b"own")];
        assert_eq!(packed(&components), [(3, UPDATE.to_vec())]);
        let read = Components::read(UPDATE).unwrap();
        assert_eq!(read.as_bytes(), UPDATE);
        assert_eq!(read.collect::<Vec<_>>(), components);
    }

    #[test]
    fn r10_records_are_whole_and_at_least_one() {
        let is_read = |payload: &[u8]| Components::read(payload).is_ok();
        only_whole(&UPDATE[..14], is_read);
        only_whole(&UPDATE[14..24], is_read);
        assert_eq!(Components::read(b""), Err(WireError::Invalid("components")));
        for cut in 1..UPDATE.len() {
            // Behind a record, or within the bytes of the game.
            let is_whole = [14, 24].contains(&cut) || cut >= 26;
            assert_eq!(is_read(&UPDATE[..cut]), is_whole, "cut at {cut}");
        }
    }

    #[test]
    fn r10_components_without_a_meaning_are_refused() {
        for component in [0, 3, 4, 255_u16] {
            let payload = [&component.to_be_bytes()[..], &UPDATE[2..14]].concat();
            let refused = Err(WireError::Invalid("component"));
            assert_eq!(Components::read(&payload), refused);
            assert_eq!(Custom::new(component, b""), None);
        }
        for component in [256, 257, u16::MAX] {
            let payload = component.to_be_bytes();
            let custom = Custom::new(component, b"").unwrap();
            let mut read = Components::read(&payload).unwrap();
            assert_eq!(read.next(), Some(Component::Custom(custom)));
            assert_eq!(read.next(), None);
            assert_eq!((custom.component(), custom.bytes()), (component, &b""[..]));
        }
    }

    #[test]
    fn r1_only_finite_numbers_are_taken() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert_eq!(Finite::new(bad), None);
            for (at, field) in [(6, "x"), (10, "y")] {
                let mut payload = UPDATE[..14].to_vec();
                payload[at..at + 4].copy_from_slice(&bad.to_be_bytes());
                let refused = Err(WireError::Invalid(field));
                assert_eq!(Components::read(&payload), refused);
            }
        }
        for good in [f32::MAX, f32::MIN, f32::MIN_POSITIVE, 1e-45, -0.0] {
            let finite = Finite::new(good).unwrap();
            assert_eq!(finite.get().to_bits(), good.to_bits());
        }
    }

    #[test]
    fn r10_as_many_records_are_packed_as_fit() {
        let positions: Vec<_> = (0..200).map(position).collect();
        let packets = packed(&positions);
        let counts: Vec<_> = packets.iter().map(|(count, _)| *count).collect();
        assert_eq!(counts, [84, 84, 32]);
        assert!(packets[0].1.len() <= PAYLOAD_MAX && packets[0].1.len() + 14 > PAYLOAD_MAX);
        let again: Vec<_> = packets
            .iter()
            .flat_map(|(_, payload)| Components::read(payload).unwrap())
            .collect();
        assert_eq!(again, positions);
    }

    #[test]
    fn r10_a_custom_record_ends_its_packet() {
        let counts = |components: &[Component<'_>]| -> Vec<usize> {
            let packets = packed(components).into_iter();
            packets.map(|(count, _)| count).collect()
        };
        let largest = [7; CUSTOM_BYTES_MAX];
        let beside = &largest[..CUSTOM_BYTES_MAX - 10];
        assert_eq!(Custom::new(256, &[7; CUSTOM_BYTES_MAX + 1]), None);
        assert_eq!(counts(&[custom(b"a"), custom(b"b"), health()]), [1, 1, 1]);
        assert_eq!(counts(&[health(), custom(&largest), health()]), [1, 1, 1]);
        assert_eq!(counts(&[health(), custom(beside), health()]), [2, 1]);
        let full = packed(&[custom(&largest)]);
        assert_eq!(full[0].1.len(), PAYLOAD_MAX);
        assert_eq!(counts(&[]), []);
    }
}
