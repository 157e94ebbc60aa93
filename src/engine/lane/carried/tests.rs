//! The lane against its numbers, end by end, and both ends in conversation.

mod conversation;
mod receiver;
mod sender;

/// One event as a datagram carries it: id, kind, body.
type Carried = (u16, u8, Vec<u8>);

/// The bytes an event takes beside its body in these tests.
const HEAD: usize = 5;
/// The bytes a datagram has for events in these tests.
const ROOM: usize = 1182;

/// A body that tells one event from another, `len` bytes long.
fn body(number: usize, len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (number.wrapping_mul(31) + at * 7) as u8)
        .collect()
}
