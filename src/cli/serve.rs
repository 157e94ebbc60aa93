//! `anteroom serve`: a server of all finished protocols, until a signal ends it.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use anteroom::accounts::{Gate, Opener, Store, StoreError};
use anteroom::game::Arena;
use anteroom::guard::limits::Limit;
use anteroom::{Addresses, Config, Remote, Rooms, Rtyp, Server};

use super::args::Serve;
use super::{print, signals};

/// Connections that may be closing while others come.
const CLOSING: u64 = 1_024;
/// What the server itself needs.
const OWN: u64 = 64;

/// Serves until a signal, and then until everybody has been told.
///
/// # Errors
/// [`Failure`] if there is no server, or none any more.
pub fn run(arguments: Serve) -> Result<(), Failure> {
    let descriptors = raise_descriptor_limit();
    warn_of_few(descriptors, &arguments);
    let is_kept = arguments.accounts.is_some();
    let (config, opener) = config(arguments)?;
    let server = Server::bind(config).map_err(Failure::Server)?;
    if let Some(opener) = opener {
        opener.open(server.remote());
    }
    let remote = server.remote();
    let stop = move || {
        // A server that has ended by itself needs no stopping.
        let _ = remote.stop();
    };
    signals::stop_with(stop).map_err(Failure::Signals)?;
    let remote = server.remote();
    signals::tell_with(move || tell(&remote)).map_err(Failure::Signals)?;
    print(&greeting(server.addresses(), is_kept));
    server.run().map_err(Failure::Server)
}

/// The configuration, and what lets the answers about accounts out if there are accounts.
fn config(arguments: Serve) -> Result<(Config, Option<Opener>), Failure> {
    let rooms = match arguments.rooms {
        Some(port) => Some(rooms(port, &arguments)?),
        None => None,
    };
    let (rooms, opener) = rooms.unzip();
    let config = Config {
        bind: arguments.bind,
        limits: arguments.limits,
        limit_loopback: arguments.limit_loopback,
        rtyp: arguments.rtyp.map(|port| Rtyp {
            games: arguments.games,
            port,
            advertise_udp: arguments.advertise_udp,
            ..Rtyp::default()
        }),
        rooms,
    };
    Ok((config, opener))
}

/// The arena, with accounts in a file or in memory.
fn rooms(port: u16, arguments: &Serve) -> Result<(Rooms, Opener), Failure> {
    let store = match &arguments.accounts {
        Some(path) => Store::open(path).map_err(Failure::Accounts)?,
        None => Store::in_memory(),
    };
    let gate = Gate::new(Arena::new(), store, &arguments.limits);
    let (gate, opener) = gate.map_err(Failure::Threads)?;
    let game = Box::new(gate);
    Ok((Rooms { port, game }, opener))
}

/// A connection is a descriptor: as many as the system grants without being root.
pub fn raise_descriptor_limit() -> Option<u64> {
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(limit) => {
            log::debug!("{limit} descriptors may be open");
            Some(limit)
        }
        Err(error) => {
            log::warn!("the limit of open descriptors stays as it is: {error}");
            None
        }
    }
}

/// With few descriptors, who says nothing keeps others waiting before the limit `pending` makes
/// room for them.
fn warn_of_few(descriptors: Option<u64>, arguments: &Serve) {
    let needed = arguments.limits.get(Limit::Pending) + CLOSING + OWN;
    if let Some(descriptors) = descriptors.filter(|there| *there < needed) {
        log::warn!(
            "{descriptors} descriptors may be open, but {needed} could be before anybody plays; \
             raise the hard limit or lower `pending`"
        );
    }
}

/// Logs one line of counters for each service.
fn tell(remote: &Remote) {
    match remote.stats() {
        Ok(stats) => {
            for (service, counters) in &stats.services {
                log::info!("{service}: {}", numbers(counters));
            }
        }
        Err(error) => log::warn!("no numbers: {error}"),
    }
}

/// What was counted: the first, how many sessions there are, and of the others those that are not
/// 0.
fn numbers(counters: &[(&str, u64)]) -> String {
    let is_told = |(name, count): &&(&str, u64)| *name == "sessions" || *count > 0;
    let told = counters.iter().filter(is_told);
    let words: Vec<String> = told
        .map(|(name, count)| format!("{name}={count}"))
        .collect();
    words.join(" ")
}

/// One line for each service, and then `ready`.
fn greeting(services: &[Addresses], is_kept: bool) -> String {
    let line = |it: &Addresses| {
        let (tcp, udp) = (joined(&it.tcp), joined(&it.udp));
        let accounts = match (it.service, is_kept) {
            ("rooms", true) => " accounts=file",
            ("rooms", false) => " accounts=memory",
            _ => "",
        };
        format!("{} tcp={tcp} udp={udp}{accounts}\n", it.service)
    };
    services.iter().map(line).collect::<String>() + "ready\n"
}

fn joined(addresses: &[SocketAddr]) -> String {
    let texts: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
    texts.join(",")
}

/// Why there is no server, or none any more.
#[derive(Debug)]
pub enum Failure {
    /// As the library says.
    Server(anteroom::Error),
    /// The file of accounts cannot be used.
    Accounts(StoreError),
    /// The system has no thread for hashing passwords.
    Threads(io::Error),
    /// The system lets nobody wait for signals.
    Signals(io::Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(error) => error.fmt(f),
            Self::Accounts(error) => error.fmt(f),
            Self::Threads(error) => write!(f, "cannot hash passwords: {error}"),
            Self::Signals(error) => write!(f, "cannot wait for signals: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_that_say_something() {
        let counters = [
            ("sessions", 0),
            ("logins", 3),
            ("ignored-short", 0),
            ("moves", 1),
        ];
        assert_eq!(numbers(&counters), "sessions=0 logins=3 moves=1");
    }

    #[test]
    fn the_greeting_is_the_documented_one() {
        let addresses = ["0.0.0.0:4242", "[::]:4242"].map(|text| text.parse().expect("an address"));
        let rtyp = Addresses {
            service: "rtyp",
            tcp: addresses.to_vec(),
            udp: addresses.to_vec(),
            receive_buffers: vec![],
        };
        let expected = "rtyp tcp=0.0.0.0:4242,[::]:4242 udp=0.0.0.0:4242,[::]:4242\nready\n";
        assert_eq!(greeting(std::slice::from_ref(&rtyp), false), expected);
        let rooms = Addresses {
            service: "rooms",
            ..rtyp
        };
        let line = "rooms tcp=0.0.0.0:4242,[::]:4242 udp=0.0.0.0:4242,[::]:4242";
        let kept = format!("{line} accounts=file\nready\n");
        assert_eq!(greeting(std::slice::from_ref(&rooms), true), kept);
        let memory = format!("{line} accounts=memory\nready\n");
        assert_eq!(greeting(&[rooms], false), memory);
    }
}
