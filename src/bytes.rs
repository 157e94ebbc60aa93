//! Reading and writing of wire formats: the only code that indexes input.
//!
//! A [`Reader`] is a borrowed slice that gets shorter. Every read names the field it wanted, so a
//! refusal says which field was cut. A [`Writer`] appends to a buffer that the caller lends.

use std::fmt;

/// Why bytes could not be read as a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireError {
    /// The bytes ended inside this field.
    Short(&'static str),
    /// This many bytes were left over behind the last field of this message.
    Trailing(&'static str, usize),
    /// This field holds a value outside its rule.
    Invalid(&'static str),
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(field) => write!(f, "the bytes end inside `{field}`"),
            Self::Trailing(message, count) => {
                write!(f, "{count} bytes left over behind `{message}`")
            }
            Self::Invalid(field) => write!(f, "`{field}` is outside its rule"),
        }
    }
}

impl std::error::Error for WireError {}

/// A slice of input that gets shorter with every read.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts reading at the first of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// How many bytes are left.
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// [`WireError::Short`] if fewer are left.
    pub fn bytes(&mut self, count: usize, field: &'static str) -> Result<&'a [u8], WireError> {
        let (head, rest) = self
            .rest
            .split_at_checked(count)
            .ok_or(WireError::Short(field))?;
        self.rest = rest;
        Ok(head)
    }

    /// Everything that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// Ends a message: nothing may be left.
    ///
    /// # Errors
    /// [`WireError::Trailing`] if bytes are left.
    pub fn end(&self, message: &'static str) -> Result<(), WireError> {
        match self.rest.len() {
            0 => Ok(()),
            count => Err(WireError::Trailing(message, count)),
        }
    }

    /// One byte.
    ///
    /// # Errors
    /// [`WireError::Short`] if nothing is left; so for every number below.
    pub fn u8(&mut self, field: &'static str) -> Result<u8, WireError> {
        Ok(self.array::<1>(field)?[0])
    }

    /// A little-endian `u16`.
    ///
    /// # Errors
    /// [`WireError::Short`].
    pub fn u16_le(&mut self, field: &'static str) -> Result<u16, WireError> {
        self.array(field).map(u16::from_le_bytes)
    }

    /// A little-endian `u32`.
    ///
    /// # Errors
    /// [`WireError::Short`].
    pub fn u32_le(&mut self, field: &'static str) -> Result<u32, WireError> {
        self.array(field).map(u32::from_le_bytes)
    }

    /// A little-endian `u64`.
    ///
    /// # Errors
    /// [`WireError::Short`].
    pub fn u64_le(&mut self, field: &'static str) -> Result<u64, WireError> {
        self.array(field).map(u64::from_le_bytes)
    }

    /// A little-endian `u16` length and that many bytes.
    ///
    /// # Errors
    /// [`WireError::Short`] if the length points past the end.
    pub fn string_le(&mut self, field: &'static str) -> Result<&'a [u8], WireError> {
        let len = self.u16_le(field)?;
        self.bytes(usize::from(len), field)
    }

    /// A big-endian `u16`.
    ///
    /// # Errors
    /// [`WireError::Short`].
    pub fn u16_be(&mut self, field: &'static str) -> Result<u16, WireError> {
        self.array(field).map(u16::from_be_bytes)
    }

    /// A big-endian `u32`.
    ///
    /// # Errors
    /// [`WireError::Short`].
    pub fn u32_be(&mut self, field: &'static str) -> Result<u32, WireError> {
        self.array(field).map(u32::from_be_bytes)
    }

    /// A big-endian `i32`.
    ///
    /// # Errors
    /// [`WireError::Short`].
    pub fn i32_be(&mut self, field: &'static str) -> Result<i32, WireError> {
        self.array(field).map(i32::from_be_bytes)
    }

    /// A big-endian `f32`, whatever it holds: also an infinity, or none at all.
    ///
    /// # Errors
    /// [`WireError::Short`].
    pub fn f32_be(&mut self, field: &'static str) -> Result<f32, WireError> {
        self.array(field).map(f32::from_be_bytes)
    }

    /// A big-endian `u16` length and that many bytes.
    ///
    /// # Errors
    /// [`WireError::Short`] if the length points past the end.
    pub fn string_be(&mut self, field: &'static str) -> Result<&'a [u8], WireError> {
        let len = self.u16_be(field)?;
        self.bytes(usize::from(len), field)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], WireError> {
        let (head, rest) = self
            .rest
            .split_first_chunk()
            .ok_or(WireError::Short(field))?;
        self.rest = rest;
        Ok(*head)
    }
}

/// Appends fields to a buffer that the caller lends.
#[derive(Debug)]
pub struct Writer<'a> {
    buffer: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> Writer<'a> {
    /// Starts a message behind whatever `buffer` holds already.
    pub fn new(buffer: &'a mut Vec<u8>) -> Self {
        let start = buffer.len();
        Self { buffer, start }
    }

    /// How many bytes this writer has appended.
    pub fn len(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// Whether this writer has appended nothing yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends `bytes` as they are.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Appends one byte.
    pub fn u8(&mut self, value: u8) {
        self.buffer.push(value);
    }

    /// Appends a little-endian `u16`.
    pub fn u16_le(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    /// Appends a little-endian `u32`.
    pub fn u32_le(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    /// Appends a little-endian `u64`.
    pub fn u64_le(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    /// Appends a little-endian `u16` length and the bytes.
    ///
    /// # Panics
    /// If `bytes` is longer than 65535: every caller's field has a smaller limit of its own.
    pub fn string_le(&mut self, bytes: &[u8]) {
        self.u16_le(u16::try_from(bytes.len()).expect("a field is shorter than 64 KiB"));
        self.bytes(bytes);
    }

    /// Reserves a little-endian `u16` that [`Writer::patch_u16_le`] fills in later. Until then it
    /// holds the largest value, so a forgotten patch cannot be parsed.
    pub fn reserve_u16_le(&mut self) -> usize {
        let at = self.len();
        self.u16_le(u16::MAX);
        at
    }

    /// Fills in what [`Writer::reserve_u16_le`] reserved at `at`.
    pub fn patch_u16_le(&mut self, at: usize, value: u16) {
        let at = self.start + at;
        self.buffer[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }

    /// Appends a big-endian `u16`.
    pub fn u16_be(&mut self, value: u16) {
        self.bytes(&value.to_be_bytes());
    }

    /// Appends a big-endian `u32`.
    pub fn u32_be(&mut self, value: u32) {
        self.bytes(&value.to_be_bytes());
    }

    /// Appends a big-endian `i32`.
    pub fn i32_be(&mut self, value: i32) {
        self.bytes(&value.to_be_bytes());
    }

    /// Appends a big-endian `f32`.
    pub fn f32_be(&mut self, value: f32) {
        self.bytes(&value.to_be_bytes());
    }

    /// Appends a big-endian `u16` length and the bytes.
    ///
    /// # Panics
    /// If `bytes` is longer than 65535, as [`Writer::string_le`].
    pub fn string_be(&mut self, bytes: &[u8]) {
        self.u16_be(u16::try_from(bytes.len()).expect("a field is shorter than 64 KiB"));
        self.bytes(bytes);
    }

    /// Reserves a byte that [`Writer::patch_u8`] fills in later. Until then it holds the largest
    /// value, as in [`Writer::reserve_u16_le`].
    pub fn reserve_u8(&mut self) -> usize {
        let at = self.len();
        self.u8(u8::MAX);
        at
    }

    /// Fills in what [`Writer::reserve_u8`] reserved at `at`.
    pub fn patch_u8(&mut self, at: usize, value: u8) {
        self.buffer[self.start + at] = value;
    }

    /// Reserves a big-endian `u32` that [`Writer::patch_u32_be`] fills in later. Until then it
    /// holds the largest value, so a forgotten patch cannot be parsed.
    pub fn reserve_u32_be(&mut self) -> usize {
        let at = self.len();
        self.u32_be(u32::MAX);
        at
    }

    /// Fills in what [`Writer::reserve_u32_be`] reserved at `at`.
    pub fn patch_u32_be(&mut self, at: usize, value: u32) {
        let at = self.start + at;
        self.buffer[at..at + 4].copy_from_slice(&value.to_be_bytes());
    }

    /// What this writer has appended since its [`Writer::len`] was `at`; nothing if it never was.
    pub fn since(&self, at: usize) -> &[u8] {
        self.buffer.get(self.start + at..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_as_written_and_every_cut_is_refused() {
        let mut buffer = vec![0xAA];
        let mut writer = Writer::new(&mut buffer);
        writer.u8(1);
        writer.u16_le(0x0203);
        writer.u32_le(0x0405_0607);
        writer.u64_le(0x0809_0A0B_0C0D_0E0F);
        writer.string_le(b"R9");
        assert_eq!(writer.len(), 19);
        let bytes = &buffer[1..];
        let read = |bytes: &[u8]| -> Result<(), WireError> {
            let mut reader = Reader::new(bytes);
            assert_eq!(reader.u8("a")?, 1);
            assert_eq!(reader.u16_le("b")?, 0x0203);
            assert_eq!(reader.u32_le("c")?, 0x0405_0607);
            assert_eq!(reader.u64_le("d")?, 0x0809_0A0B_0C0D_0E0F);
            assert_eq!(reader.string_le("e")?, b"R9");
            reader.end("all")
        };
        assert_eq!(read(bytes), Ok(()));
        for cut in 0..bytes.len() {
            assert!(
                matches!(read(&bytes[..cut]), Err(WireError::Short(_))),
                "cut at {cut}"
            );
        }
        let longer = [bytes, &[0]].concat();
        assert_eq!(read(&longer), Err(WireError::Trailing("all", 1)));
    }

    #[test]
    fn big_endian_numbers_come_back_as_written_and_every_cut_is_refused() {
        let mut buffer = vec![0xAA];
        let mut writer = Writer::new(&mut buffer);
        writer.u16_be(0x0102);
        writer.u32_be(0x0304_0506);
        writer.i32_be(-2);
        writer.f32_be(-1.5);
        writer.string_be(b"R9");
        let bytes = &buffer[1..];
        assert_eq!(
            bytes,
            b"\x01\x02\x03\x04\x05\x06\xFF\xFF\xFF\xFE\xBF\xC0\0\0\0\x02R9"
        );
        let read = |bytes: &[u8]| -> Result<(), WireError> {
            let mut reader = Reader::new(bytes);
            assert_eq!(reader.u16_be("a")?, 0x0102);
            assert_eq!(reader.u32_be("b")?, 0x0304_0506);
            assert_eq!(reader.i32_be("c")?, -2);
            assert_eq!(reader.f32_be("d")?.to_bits(), (-1.5_f32).to_bits());
            assert_eq!(reader.string_be("e")?, b"R9");
            reader.end("all")
        };
        assert_eq!(read(bytes), Ok(()));
        for cut in 0..bytes.len() {
            assert!(
                matches!(read(&bytes[..cut]), Err(WireError::Short(_))),
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn patches_land_where_they_were_reserved() {
        let mut buffer = vec![9];
        let mut writer = Writer::new(&mut buffer);
        let byte_at = writer.reserve_u8();
        let at = writer.reserve_u32_be();
        assert_eq!(writer.since(0), [0xFF; 5]);
        writer.u8(2);
        writer.patch_u8(byte_at, 1);
        writer.patch_u32_be(at, 0x0A0B_0C0D);
        assert_eq!(writer.since(0), [1, 0x0A, 0x0B, 0x0C, 0x0D, 2]);
        assert_eq!(writer.since(5), [2]);
        assert_eq!(writer.since(7), []);
        assert_eq!(buffer, [9, 1, 0x0A, 0x0B, 0x0C, 0x0D, 2]);
    }

    #[test]
    fn a_forgotten_patch_cannot_be_parsed() {
        let mut buffer = vec![9];
        let mut writer = Writer::new(&mut buffer);
        let at = writer.reserve_u16_le();
        writer.bytes(b"xyz");
        assert_eq!(
            Reader::new(&buffer[1..]).string_le("s"),
            Err(WireError::Short("s"))
        );
        let mut writer = Writer {
            buffer: &mut buffer,
            start: 1,
        };
        writer.patch_u16_le(at, 3);
        assert_eq!(Reader::new(&buffer[1..]).string_le("s"), Ok(&b"xyz"[..]));
    }
}
