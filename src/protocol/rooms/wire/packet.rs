//! The envelope: a header of 12 bytes, the payload, and a checksum, over UDP and TCP alike.

use std::fmt;

use super::token::Token;
use super::{ENVELOPE_BYTES, HEADER_BYTES, PACKET_MAX, PAYLOAD_MAX, VERSION};
use crate::bytes::{Reader, WireError, Writer};

/// One packet, its payload not looked into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// One of [`kind`](super::kind), or a number that is none.
    pub kind: u8,
    /// The number of this packet among its sender's, wrapping.
    pub id: u16,
    /// The client's, or [`Token::SERVER`].
    pub token: Token,
    /// At most [`PAYLOAD_MAX`] bytes.
    pub payload: &'a [u8],
}

/// Why bytes are no packet. Each is counted apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PacketError {
    /// Above [`PACKET_MAX`].
    Long,
    /// Below [`ENVELOPE_BYTES`].
    Short,
    /// Another version than [`VERSION`].
    Version,
    /// The payload is not as long as the header says, or in a stream cannot be.
    Length,
    /// The bytes do not add up to the checksum.
    Checksum,
}

impl fmt::Display for PacketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Long => "longer than a packet may be",
            Self::Short => "shorter than header and checksum",
            Self::Version => "a version that is not spoken here",
            Self::Length => "a payload of another length than it says",
            Self::Checksum => "damaged on its way",
        })
    }
}

impl std::error::Error for PacketError {}

impl<'a> Packet<'a> {
    /// Reads one whole packet: a datagram, or what [`frame`] took off a stream.
    ///
    /// # Errors
    /// The first that applies, in the order of [`PacketError`].
    pub fn read(bytes: &'a [u8]) -> Result<Self, PacketError> {
        if bytes.len() > PACKET_MAX {
            return Err(PacketError::Long);
        }
        let (summed, sum) = bytes.split_last_chunk().ok_or(PacketError::Short)?;
        let mut reader = Reader::new(summed);
        let header = Header::read(&mut reader).map_err(|_| PacketError::Short)?;
        if header.version != VERSION {
            return Err(PacketError::Version);
        }
        if header.payload_bytes() != reader.left() {
            return Err(PacketError::Length);
        }
        if checksum(summed) != u16::from_be_bytes(*sum) {
            return Err(PacketError::Checksum);
        }
        Ok(Self {
            kind: header.kind,
            id: header.id,
            token: header.token,
            payload: reader.rest(),
        })
    }

    /// Appends the whole packet. One with a payload above [`PAYLOAD_MAX`] is taken by no reader.
    pub fn write(&self, writer: &mut Writer<'_>) {
        write_packet(writer, self.kind, self.id, self.token, |writer| {
            writer.bytes(self.payload);
        });
    }
}

/// Appends a whole packet with the payload that `payload` appends. One above [`PAYLOAD_MAX`] is
/// taken by no reader.
pub fn write_packet(
    writer: &mut Writer<'_>,
    kind: u8,
    id: u16,
    token: Token,
    payload: impl FnOnce(&mut Writer<'_>),
) {
    let start = writer.len();
    writer.u8(VERSION);
    writer.u8(kind);
    writer.u16_be(id);
    writer.u32_be(token.0);
    let length_at = writer.reserve_u32_be();
    payload(writer);
    let length = writer.len() - start - HEADER_BYTES;
    writer.patch_u32_be(length_at, u32::try_from(length).unwrap_or(u32::MAX));
    let sum = checksum(writer.since(start));
    writer.u16_be(sum);
}

/// The first whole packet of a stream, for [`Packet::read`]; `None` if it is not whole yet. As
/// many bytes as it has are taken off the stream.
///
/// # Errors
/// [`PacketError::Version`] as soon as the first byte is there, [`PacketError::Length`] for a
/// payload above [`PAYLOAD_MAX`] as soon as the header is.
pub fn frame(stream: &[u8]) -> Result<Option<&[u8]>, PacketError> {
    if stream.first().is_some_and(|&version| version != VERSION) {
        return Err(PacketError::Version);
    }
    let Ok(header) = Header::read(&mut Reader::new(stream)) else {
        return Ok(None);
    };
    let payload_bytes = header.payload_bytes();
    if payload_bytes > PAYLOAD_MAX {
        return Err(PacketError::Length);
    }
    let bytes = ENVELOPE_BYTES + payload_bytes;
    Ok(Reader::new(stream).bytes(bytes, "packet").ok())
}

/// The header, nothing of it judged yet.
struct Header {
    version: u8,
    kind: u8,
    id: u16,
    token: Token,
    length: u32,
}

impl Header {
    fn read(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        Ok(Self {
            version: reader.u8("version")?,
            kind: reader.u8("type")?,
            id: reader.u16_be("message id")?,
            token: Token(reader.u32_be("token")?),
            length: reader.u32_be("payload length")?,
        })
    }

    /// The payload length, or where it cannot be one the largest number there is.
    fn payload_bytes(&self) -> usize {
        usize::try_from(self.length).unwrap_or(usize::MAX)
    }
}

/// The sum of the bytes, modulo 65536.
fn checksum(bytes: &[u8]) -> u16 {
    let sum = |sum: u16, &byte: &u8| sum.wrapping_add(u16::from(byte));
    bytes.iter().fold(0, sum)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{KEY, LOGIN, WRONG_PASSWORD, written};
    use super::*;

    const GOLDEN: [&[u8]; 3] = [KEY, WRONG_PASSWORD, LOGIN];

    #[test]
    fn r6_the_envelope_is_the_documents_bytes() {
        for (bytes, kind, id, token) in [
            (KEY, 0x0C, 2, 0xDEAD_BEEF),
            (WRONG_PASSWORD, 0x0D, 7, u32::MAX),
            (LOGIN, 0x00, 1, 0xDEAD_BEEF),
        ] {
            let packet = Packet {
                kind,
                id,
                token: Token(token),
                payload: &bytes[12..bytes.len() - 2],
            };
            assert_eq!(Packet::read(bytes), Ok(packet));
            assert_eq!(written(|w| packet.write(w)), bytes);
        }
    }

    #[test]
    fn r7_a_packet_is_14_to_1200_bytes() {
        for payload in [0, 1, PAYLOAD_MAX] {
            let bytes = packet_of(payload);
            assert_eq!(bytes.len(), 14 + payload);
            assert_eq!(Packet::read(&bytes).map(|p| p.payload.len()), Ok(payload));
        }
        let long = packet_of(PAYLOAD_MAX + 1);
        assert_eq!(Packet::read(&long), Err(PacketError::Long));
        assert_eq!(frame(&long), Err(PacketError::Length));
        for cut in 0..14 {
            assert_eq!(Packet::read(&KEY[..cut]), Err(PacketError::Short));
        }
    }

    #[test]
    fn r7_every_cut_and_every_byte_more_is_another_length() {
        for whole in GOLDEN {
            for cut in 0..whole.len() {
                let error = if cut < 14 {
                    PacketError::Short
                } else {
                    PacketError::Length
                };
                assert_eq!(Packet::read(&whole[..cut]), Err(error), "cut at {cut}");
            }
            let longer = [whole, &[0]].concat();
            assert_eq!(Packet::read(&longer), Err(PacketError::Length));
        }
        let longest = packet_of(PAYLOAD_MAX);
        for cut in 14..longest.len() {
            assert_eq!(Packet::read(&longest[..cut]), Err(PacketError::Length));
        }
    }

    #[test]
    fn r7_a_wrong_length_is_refused_though_the_checksum_is_right() {
        for wrong in [3, 5, 0, 1187, 1 << 16, (1 << 16) + 4, 1 << 31, u32::MAX] {
            let mut bytes = KEY.to_vec();
            bytes[8..12].copy_from_slice(&u32::to_be_bytes(wrong));
            sum_up(&mut bytes);
            assert_eq!(Packet::read(&bytes), Err(PacketError::Length), "{wrong}");
        }
    }

    #[test]
    fn faults_are_judged_in_order() {
        let mut bytes = packet_of(PAYLOAD_MAX + 1);
        (bytes[0], bytes[11]) = (2, 0xFF);
        assert_eq!(Packet::read(&bytes), Err(PacketError::Long));
        assert_eq!(Packet::read(&bytes[..13]), Err(PacketError::Short));
        bytes.pop();
        for version in [0, 2, 255] {
            bytes[0] = version;
            assert_eq!(Packet::read(&bytes), Err(PacketError::Version));
        }
        bytes[0] = 1;
        assert_eq!(Packet::read(&bytes), Err(PacketError::Length));
        bytes[10..12].copy_from_slice(&[0x04, 0xA2]);
        assert_eq!(Packet::read(&bytes), Err(PacketError::Checksum));
        sum_up(&mut bytes);
        assert!(Packet::read(&bytes).is_ok());
    }

    #[test]
    fn r8_no_single_flipped_bit_goes_unnoticed() {
        let longest = packet_of(PAYLOAD_MAX);
        for whole in GOLDEN.into_iter().chain([&longest[..]]) {
            let mut bytes = whole.to_vec();
            for bit in 0..8 * bytes.len() {
                bytes[bit / 8] ^= 1 << (bit % 8);
                let error = match bit / 8 {
                    0 => PacketError::Version,
                    8..12 => PacketError::Length,
                    _ => PacketError::Checksum,
                };
                assert_eq!(Packet::read(&bytes), Err(error), "bit {bit}");
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            assert!(Packet::read(&bytes).is_ok());
        }
    }

    #[test]
    fn r8_the_checksum_wraps() {
        let bytes = written(|w| {
            write_packet(w, 0xFF, 0xFFFF, Token::SERVER, |w| {
                w.bytes(&[0xFF; PAYLOAD_MAX])
            });
        });
        let sum = 1 + 7 * 0xFF + 0x04 + 0xA2 + 0xFF * 1186_u32;
        assert!(sum > 1 << 16);
        assert_eq!(bytes[1198..], u32::to_be_bytes(sum)[2..]);
        assert!(Packet::read(&bytes).is_ok());
    }

    #[test]
    fn a_packet_is_written_behind_what_is_there() {
        let mut buffer = b"before".to_vec();
        let mut writer = Writer::new(&mut buffer);
        writer.bytes(b"and");
        Packet::read(KEY).unwrap().write(&mut writer);
        Packet::read(LOGIN).unwrap().write(&mut writer);
        assert_eq!(buffer, [b"beforeand", KEY, LOGIN].concat());
    }

    #[test]
    fn r12_a_stream_gives_its_packets_one_by_one() {
        let stream = [LOGIN, WRONG_PASSWORD, KEY].concat();
        let mut rest = &stream[..];
        for whole in [LOGIN, WRONG_PASSWORD, KEY] {
            for cut in 0..whole.len() {
                assert_eq!(frame(&rest[..cut]), Ok(None), "cut at {cut}");
            }
            assert_eq!(frame(rest), Ok(Some(whole)));
            rest = &rest[whole.len()..];
        }
        assert_eq!(frame(rest), Ok(None));
    }

    #[test]
    fn r13_a_stream_that_cannot_go_on_is_refused_at_once() {
        for version in (0..=255).filter(|&version| version != 1) {
            assert_eq!(frame(&[version]), Err(PacketError::Version));
        }
        for (length, judged) in [(1186, Ok(None)), (1187, Err(PacketError::Length))] {
            let mut header = KEY[..12].to_vec();
            header[8..].copy_from_slice(&u32::to_be_bytes(length));
            assert_eq!(frame(&header[..11]), Ok(None));
            assert_eq!(frame(&header), judged);
        }
        let mut header = KEY[..12].to_vec();
        header[8..].fill(0xFF);
        assert_eq!(frame(&header), Err(PacketError::Length));
    }

    /// A whole packet with so many bytes of payload.
    fn packet_of(payload: usize) -> Vec<u8> {
        let payload: Vec<u8> = (0..=255).cycle().take(payload).collect();
        written(|w| write_packet(w, 5, 9, Token::SERVER, |w| w.bytes(&payload)))
    }

    /// Makes the checksum right again.
    fn sum_up(bytes: &mut [u8]) {
        let (summed, sum) = bytes.split_last_chunk_mut::<2>().unwrap();
        let total: usize = summed.iter().map(|&byte| usize::from(byte)).sum();
        *sum = u16::try_from(total % 65536).unwrap().to_be_bytes();
    }
}
