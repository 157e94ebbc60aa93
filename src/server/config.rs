//! What a server is to be.

use std::collections::HashSet;
use std::fmt;
use std::net::IpAddr;

use super::error::Error;
use crate::engine::{Game, Machine};
use crate::game::{Arena, Relay};
use crate::guard::limits::Limits;
use crate::protocol::{Kind, Seat};

/// How many addresses a service may be bound to.
const ADDRESSES_MAX: u64 = 64;

/// How many bytes a game's name may have.
const GAME_NAME_MAX: u64 = 16;

/// How many games rtyp may host.
const GAMES_MAX: u64 = 65_536;

/// What a server is to be: where it listens, how it limits its peers, and what it serves.
#[derive(Debug, Default)]
pub struct Config {
    /// The addresses to bind, at most 64. Empty, which is the default, stands for all of them:
    /// `0.0.0.0`, and `[::]` where the host has IPv6. IPv6 sockets take IPv6 alone.
    pub bind: Vec<IpAddr>,
    /// The numbers by which peers are limited.
    pub limits: Limits,
    /// Whether loopback addresses are limited like others.
    pub limit_loopback: bool,
    /// The rtyp service; `None`, which is the default, for none.
    pub rtyp: Option<Rtyp>,
    /// The rooms service; `None`, which is the default, for none.
    pub rooms: Option<Rooms>,
}

/// What the rooms service is to be.
pub struct Rooms {
    /// Its TCP and UDP port; 4243 by default. 0 stands for any two, each the same on all
    /// addresses.
    pub port: u16,
    /// What is played in every room, and who may log in: the questions of
    /// [`Event::Login`](crate::Event::Login) and [`Event::Register`](crate::Event::Register) come
    /// here. By default [`Arena`] alone, which lets nobody in; put [`Accounts`] around it, or
    /// answer in a game of your own.
    ///
    /// [`Accounts`]: crate::accounts::Accounts
    pub game: Box<dyn Game + Send>,
}

impl Default for Rooms {
    fn default() -> Self {
        Self {
            port: 4243,
            game: Box::new(Arena::new()),
        }
    }
}

impl fmt::Debug for Rooms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rooms")
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

impl Rooms {
    fn plan(self) -> Plan {
        let kind = Kind::Rooms { game: self.game };
        Plan {
            name: kind.name(),
            tcp: Some(self.port),
            udp: self.port,
            build: Box::new(|seat| kind.machine(seat)),
        }
    }
}

/// What the rtyp service is to be.
pub struct Rtyp {
    /// Its TCP and UDP port; 4242 by default. 0 stands for any two, each the same on all
    /// addresses.
    pub port: u16,
    /// The UDP port that clients are told, if it is not the one that is bound (the server is
    /// behind a router that forwards another).
    pub advertise_udp: Option<u16>,
    /// How many games it hosts, from 1 to 65536; 1 by default.
    pub games: u32,
    /// The names by which a client of version 2 asks for one of the games, each different and of 1
    /// to 16 bytes; as many as games, or none, which is the default: then they are called `1`, `2`
    /// and so on.
    pub names: Vec<String>,
    /// What is played in them; [`Relay`] by default.
    pub game: Box<dyn Game + Send>,
}

impl Default for Rtyp {
    fn default() -> Self {
        Self {
            port: 4242,
            advertise_udp: None,
            games: 1,
            names: Vec::new(),
            game: Box::new(Relay::new()),
        }
    }
}

impl fmt::Debug for Rtyp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rtyp")
            .field("port", &self.port)
            .field("advertise_udp", &self.advertise_udp)
            .field("games", &self.games)
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}

/// A service to be: its ports, and how its machine is made once they are known.
pub(super) struct Plan {
    /// The protocol's name.
    pub(super) name: &'static str,
    /// The TCP port, 0 for any; `None` for a service without streams.
    pub(super) tcp: Option<u16>,
    /// The UDP port, 0 for any.
    pub(super) udp: u16,
    /// Makes the machine.
    pub(super) build: Build,
}

/// Makes a service's machine.
pub(super) type Build = Box<dyn FnOnce(&Seat) -> Box<dyn Machine + Send>>;

impl Config {
    /// Takes out the services that are to be.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if one is to be what it cannot be.
    pub(super) fn take_plans(&mut self) -> Result<Vec<Plan>, Error> {
        let rtyp = self.rtyp.take().map(Rtyp::plan).transpose()?;
        let rooms = self.rooms.take().map(Rooms::plan);
        Ok(rtyp.into_iter().chain(rooms).collect())
    }

    /// Whether there are not too many addresses.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if there are.
    pub(super) fn check_addresses(&self) -> Result<(), Error> {
        in_range("bind", self.bind.len() as u64, 0, ADDRESSES_MAX)
    }
}

impl Rtyp {
    fn plan(self) -> Result<Plan, Error> {
        in_range("rtyp.games", u64::from(self.games), 1, GAMES_MAX)?;
        check_names(&self.names, u64::from(self.games))?;
        let kind = Kind::Rtyp {
            games: self.games,
            advertise_udp: self.advertise_udp,
            names: self.names,
            game: self.game,
        };
        Ok(Plan {
            name: kind.name(),
            tcp: Some(self.port),
            udp: self.port,
            build: Box::new(|seat| kind.machine(seat)),
        })
    }
}

/// Each game has a name of its own, or none has.
fn check_names(names: &[String], games: u64) -> Result<(), Error> {
    if names.is_empty() {
        return Ok(());
    }
    in_range("rtyp.names", names.len() as u64, games, games)?;
    let mut seen = HashSet::new();
    for name in names {
        in_range("rtyp.names", name.len() as u64, 1, GAME_NAME_MAX)?;
        if !seen.insert(name) {
            return Err(Error::SameName {
                argument: "rtyp.names",
                name: name.clone(),
            });
        }
    }
    Ok(())
}

fn in_range(argument: &'static str, value: u64, min: u64, max: u64) -> Result<(), Error> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(Error::OutOfRange {
        argument,
        value,
        min,
        max,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn games_have_names_of_their_own_or_none() {
        let named = |games: u32, names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            let rtyp = Rtyp {
                games,
                names,
                ..Rtyp::default()
            };
            rtyp.plan().map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!(named(2, &[]), Ok(()));
        assert_eq!(named(2, &["red", "sixteen bytes ok"]), Ok(()));
        let twice = "`rtyp.names` has \"red\" twice".to_owned();
        assert_eq!(named(2, &["red", "red"]), Err(twice));
        for wrong in [&["red"][..], &["red", ""], &["red", "seventeen bytes.."]] {
            assert!(named(2, wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_number_of_games_has_its_range() {
        for (games, allowed) in [(0, false), (1, true), (65_536, true), (65_537, false)] {
            let rtyp = Rtyp {
                games,
                ..Rtyp::default()
            };
            let plan = rtyp.plan();
            assert_eq!(plan.is_ok(), allowed, "{games}");
            if let Err(error) = plan {
                let expected = format!("`rtyp.games` is from 1 to 65536, not {games}");
                assert_eq!(error.to_string(), expected);
            }
        }
    }

    #[test]
    fn the_defaults_are_the_documents() {
        let rtyp = Rtyp::default();
        assert_eq!((rtyp.port, rtyp.games, rtyp.advertise_udp), (4242, 1, None));
        let plan = rtyp.plan().expect("in range");
        assert_eq!((plan.name, plan.tcp, plan.udp), ("rtyp", Some(4242), 4242));
    }
}
