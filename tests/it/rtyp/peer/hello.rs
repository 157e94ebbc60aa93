//! The way into version 2, by hand: hello, cookie, hello.

use std::net::SocketAddr;

use super::super::bytes::{Datagram, Token, kind};
use super::super::talk::Talk;
use super::Peer;

const HELLO_MS: u64 = 250;
const GIVE_UP_MS: u64 = 5000;

/// What a peer of version 2 says until it is let in.
#[derive(Debug, Clone)]
pub struct Hello {
    pub room: Vec<u8>,
    pub name: Vec<u8>,
    /// The newest that came; 0 before.
    pub cookie: u64,
    pub(super) due: Option<u64>,
    give_up_at: u64,
}

// What a test makes it do.
impl Peer {
    /// An honest peer of version 2.
    #[track_caller]
    pub fn v2(address: &str) -> Self {
        Self {
            version: 2,
            ..Self::new(address)
        }
    }

    /// One that does nothing by itself.
    #[track_caller]
    pub fn v2_silent(address: &str) -> Self {
        Self {
            version: 2,
            ..Self::silent(address)
        }
    }

    /// Says hello under this name; an honest one until it is answered.
    pub fn hello(&mut self, name: &str) {
        self.hello_to(b"", name.as_bytes());
    }

    /// Says hello for this room.
    pub fn hello_to(&mut self, room: &[u8], name: &[u8]) {
        let cookie = self.hello.as_ref().map_or(0, |hello| hello.cookie);
        self.hello = Some(Hello {
            room: room.to_vec(),
            name: name.to_vec(),
            cookie,
            due: None,
            give_up_at: self.now + GIVE_UP_MS,
        });
        self.say_hello();
    }

    /// Says the hello once more, with the newest cookie; returns it.
    #[track_caller]
    pub fn say_hello(&mut self) -> Datagram {
        let hello = self.hello.as_mut().expect("a hello to be said");
        hello.due = (self.conduct.connect).then_some(self.now + HELLO_MS);
        let datagram = Datagram::hello(hello.cookie, &hello.room, &hello.name);
        self.raw(&datagram.bytes());
        datagram
    }

    /// Says a ClientBye, once.
    #[track_caller]
    pub fn bye(&mut self) -> Datagram {
        self.send(kind::CLIENT_BYE, &[0])
    }

    /// Its process is gone, from one moment to the next.
    pub fn die(&mut self) {
        if self.version == 1 {
            self.abort();
        }
        self.fall_silent();
        self.over = true;
    }

    /// Sends from another port or address from now on.
    pub fn comes_from(&mut self, address: SocketAddr) {
        self.udp = address;
    }
}

// What a test asks it.
impl Peer {
    /// Its secret; fails if it has none.
    #[track_caller]
    pub fn secret(&self) -> u64 {
        self.greeted.expect("no ServerHello came").0
    }

    /// What the server calls it.
    #[track_caller]
    pub fn public(&self) -> u32 {
        match self.talk().theirs {
            Token::Public(token) => token,
            token => panic!("{token:?} is of version 1"),
        }
    }

    /// The newest cookie that came; 0 if none did.
    pub fn cookie(&self) -> u64 {
        self.hello.as_ref().map_or(0, |hello| hello.cookie)
    }

    /// How many challenges came.
    pub fn challenges(&self) -> usize {
        let challenges = self.outside.iter();
        challenges
            .filter(|(_, it)| it.kind == kind::CONNECT_CHALLENGE)
            .count()
    }
}

// What it does by itself.
impl Peer {
    /// A datagram outside of any session.
    pub(super) fn heard_outside(&mut self, datagram: &Datagram) {
        self.outside.push((self.now, datagram.clone()));
        let Some(hello) = &mut self.hello else { return };
        match datagram.kind {
            kind::CONNECT_CHALLENGE => {
                let cookie: [u8; 8] = datagram.payload[..].try_into().expect("a cookie");
                let is_first = hello.cookie == 0;
                hello.cookie = u64::from_le_bytes(cookie);
                if is_first && self.conduct.connect && self.talk.is_none() {
                    self.say_hello();
                }
            }
            _ => hello.due = None,
        }
    }

    /// A ServerHello came, and there is no session yet.
    pub(super) fn heard_hello(&mut self, datagram: &Datagram) {
        let (secret, number) = datagram.payload.split_at(8);
        let secret = u64::from_le_bytes(secret.try_into().expect("eight bytes"));
        if datagram.ack != 0xFFFF && self.conduct.restart {
            // The session of somebody before us: it is ended, and hello said anew.
            let mut bye = Datagram::secret(kind::CLIENT_BYE, secret, &[0]);
            bye.sequence = datagram.ack.wrapping_add(1);
            self.raw(&bye.bytes());
            self.say_hello();
            return;
        }
        if let Some(hello) = &mut self.hello {
            hello.due = None;
        }
        self.greeted = Some((secret, number[0]));
        let mut talk = Talk::between(
            Token::Secret(secret),
            datagram.session,
            self.first,
            self.now,
        );
        // Who takes an old session for its own hears of numbers that it never sent.
        talk.strict = datagram.ack == 0xFFFF;
        self.talk = Some(talk);
    }

    /// Says hello again, or gives up.
    pub(super) fn hello_due(&mut self) {
        let Some(hello) = &mut self.hello else { return };
        if hello.due.is_none_or(|due| due > self.now) {
            return;
        }
        if self.now >= hello.give_up_at {
            hello.due = None;
            self.gave_up = true;
            self.over = true;
        } else {
            self.say_hello();
        }
    }
}
