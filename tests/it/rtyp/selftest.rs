//! The hand-written client against the hand-written host: the bench itself must stand.

use std::net::SocketAddr;

use super::bytes::{Event, Said, event, kind, left, logout};
use super::host::Host;
use super::peer::{Peer, SERVER};
use crate::world::link::Weather;
use crate::world::pipe::{Ending, Pieces};
use crate::world::seeds::seeds;
use crate::world::{Action, Actor, Arrival, PeerId, World};

/// Either of the two.
enum Either {
    Peer(Box<Peer>),
    Host(Box<Host>),
}

impl Either {
    fn peer(&self) -> &Peer {
        match self {
            Self::Peer(peer) => peer,
            Self::Host(_) => panic!("not the peer"),
        }
    }

    fn host(&self) -> &Host {
        match self {
            Self::Host(host) => host,
            Self::Peer(_) => panic!("not the host"),
        }
    }

    fn actor(&mut self) -> &mut dyn Actor {
        match self {
            Self::Peer(peer) => &mut **peer,
            Self::Host(host) => &mut **host,
        }
    }
}

impl Actor for Either {
    fn addresses(&self) -> Vec<SocketAddr> {
        match self {
            Self::Peer(peer) => peer.addresses(),
            Self::Host(host) => host.addresses(),
        }
    }

    fn clock(&mut self, now: u64) {
        self.actor().clock(now);
    }

    fn arrival(&mut self, arrival: Arrival<'_>) {
        self.actor().arrival(arrival);
    }

    fn wake(&self) -> Option<u64> {
        match self {
            Self::Peer(peer) => peer.wake(),
            Self::Host(host) => host.wake(),
        }
    }

    fn tick(&mut self) {
        self.actor().tick();
    }

    fn actions(&mut self) -> Vec<Action> {
        self.actor().actions()
    }
}

struct Pair {
    world: World<Either>,
    peer: PeerId,
    host: PeerId,
}

impl Pair {
    fn new(seed: u64, first: u16) -> Self {
        let mut world = World::new(seed);
        let peer = Peer::new("10.0.0.1:5000").first(first);
        let peer = world.add(Either::Peer(Box::new(peer)));
        let host = Host::new(SERVER, 0xDEAD_BEEF);
        let host = world.add(Either::Host(Box::new(host)));
        Self { world, peer, host }
    }

    fn peer(&mut self) -> &mut Peer {
        match &mut self.world[self.peer] {
            Either::Peer(peer) => peer,
            Either::Host(_) => unreachable!("added as a peer"),
        }
    }

    fn host(&mut self) -> &mut Host {
        match &mut self.world[self.host] {
            Either::Host(host) => host,
            Either::Peer(_) => unreachable!("added as a host"),
        }
    }

    fn bound(seed: u64, first: u16, weather: Weather) -> Self {
        let mut pair = Self::new(seed, first);
        pair.world.net.weather = weather;
        pair.peer().login("R9");
        let peer = pair.peer;
        pair.world
            .until(5000, |world| world[peer].peer().is_bound());
        pair
    }
}

/// The example of the document, byte for byte.
#[test]
fn the_bytes_are_those_of_the_document() {
    let mut pair = Pair::new(1, 0);
    pair.host().player = 2;
    pair.world.net.pieces = Pieces::Of(1);
    pair.peer().login("R9");
    let host = pair.host;
    pair.world
        .until(1000, |world| !world[host].host().messages.is_empty());
    assert_eq!(pair.host().messages[0].1, [1, 1, 2, 0, 0x52, 0x39]);
    let peer = pair.peer;
    pair.world
        .until(1000, |world| world[peer].peer().is_bound());
    assert_eq!(pair.peer().accepted(), Some((0xDEAD_BEEF, 2, 4242)));
    let connect = pair.host().datagrams[0].1.bytes();
    assert_eq!(
        connect,
        [
            0x52, 0x54, 0x59, 0x50, 1, 1, 0, 0, 0xFF, 0xFF, 0, 0, 0, 0, 0xEF, 0xBE, 0xAD, 0xDE
        ]
    );
}

#[test]
fn events_pass_a_storm_once_and_in_order_both_ways() {
    seeds(10, |seed| {
        let mut pair = Pair::bound(seed, 65_500, Weather::storm());
        for number in 0..300u16 {
            let event = Event::new(event::CUSTOM, &number.to_le_bytes());
            pair.peer().event(event.clone());
            pair.host().event(event);
        }
        let (peer, host) = (pair.peer, pair.host);
        pair.world.until(120_000, |world| {
            world[peer].peer().events().len() == 300 && world[host].host().talk.events.len() == 300
        });
        for number in 0..300u16 {
            let body = number.to_le_bytes();
            assert_eq!(pair.peer().events()[usize::from(number)].body, body);
            assert_eq!(pair.host().talk.events[usize::from(number)].body, body);
        }
        pair.world.until(60_000, |world| {
            world[peer].peer().talk().unacknowledged() == 0
                && world[host].host().talk.unacknowledged() == 0
        });
    });
}

#[test]
fn a_quiet_day_is_cheap_and_wraps_the_numbers() {
    let mut pair = Pair::bound(1, 0, Weather::clear(20));
    pair.world.for_ms(100_000_000);
    assert!(pair.peer().talk().numbers_used() > 65_536);
    pair.peer().say("still here");
    let host = pair.host;
    pair.world
        .until(1000, |world| !world[host].host().talk.events.is_empty());
    pair.world.for_ms(100);
    assert_eq!(pair.peer().talk().unacknowledged(), 0);
}

#[test]
fn a_peer_gives_up_when_no_accept_comes() {
    let mut pair = Pair::new(1, 0);
    pair.host().hosting.accept = false;
    pair.peer().login("R9");
    pair.world.for_ms(6000);
    assert!(pair.peer().gave_up);
    assert_eq!(
        pair.host().messages.last().map(|it| it.1.clone()),
        Some(vec![4, 0])
    );
    let connects = pair.host().came(kind::CONNECT).len();
    assert_eq!(connects, 20);
    assert!(matches!(pair.host().end, Some((_, Ending::Fin))));
}

#[test]
fn a_filter_sees_the_bytes_and_takes_one_direction() {
    let mut pair = Pair::bound(1, 0, Weather::clear(10));
    let (from, to) = (pair.peer().udp, pair.host().address);
    pair.world.net.link(from, to).filter = Some(Box::new(|bytes| bytes[5] != kind::ACK));
    pair.host().event(Event::started());
    pair.world.for_ms(900);
    assert_eq!(pair.peer().events(), [Event::started()]);
    assert_eq!(pair.host().talk.unacknowledged(), 1);
    // The next Ping draws a Pong, which acknowledges what no Ack could.
    pair.world.for_ms(4000);
    assert_eq!(pair.host().talk.unacknowledged(), 0);
}

#[test]
fn what_was_said_before_the_end_arrives_and_what_was_thrown_away_does_not() {
    let mut pair = Pair::bound(1, 0, Weather::clear(10));
    pair.host().write(&logout(left::SHUTDOWN));
    pair.host().fin();
    pair.world.for_ms(100);
    assert_eq!(pair.peer().logged_out(), Some(left::SHUTDOWN));
    assert!(matches!(pair.peer().end, Some((_, Ending::Fin))));
    assert!(matches!(pair.host().end, Some((_, Ending::Fin))));

    let mut pair = Pair::bound(1, 0, Weather::clear(10));
    pair.host().write(&logout(left::SHUTDOWN));
    pair.host().abort();
    pair.world.for_ms(100);
    assert!(matches!(pair.peer().end, Some((_, Ending::Reset))));
    assert!(matches!(pair.peer().said[..], [(_, Said::Accepted { .. })]));
}
