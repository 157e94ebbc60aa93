//! The numbered rules of RTYP's PROTOCOL.md, each held by a test of its name.

mod binding;
mod budgets;
mod byes;
mod cookies;
mod datagrams;
mod framing;
mod games;
mod ghosts;
mod hello;
mod hello_again;
mod judging;
mod lanes;
mod limits;
mod liveness;
mod login;
mod proof;
mod returning;
mod roaming;
mod telling;
mod thieves;

use super::hall::Hall;
use super::peer::Peer;
use crate::world::PeerId;

/// Somebody new of version 2 who does nothing by itself: says hello, and again with the cookie.
fn knock(hall: &mut Hall, address: &str, room: &[u8], name: &[u8]) -> PeerId {
    let peer = hall.add(Peer::v2_silent(address));
    hall[peer].hello_to(room, name);
    hall.for_ms(11);
    hall[peer].say_hello();
    hall.for_ms(11);
    peer
}
