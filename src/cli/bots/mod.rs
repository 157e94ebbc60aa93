//! `anteroom bots`: players that log in, send at a fixed rate and count what the others of their
//! game get of it. Load and demonstration; all of them run on one thread.

use std::fmt;
use std::io;

use super::endpoint::Endpoint;
use super::{args, print, serve};
use swarm::Swarm;

mod bot;
mod histogram;
mod ledger;
mod mark;
mod outcome;
mod rooms;
mod swarm;

/// Runs the bots for their time, or until a signal, and prints the table.
///
/// # Errors
/// [`Failure`] if there are no sockets, or a login failed.
pub fn run(arguments: args::Bots) -> Result<(), Failure> {
    if arguments.rooms {
        return rooms::run(&arguments);
    }
    serve::raise_descriptor_limit();
    let endpoint = Endpoint::resolve(&arguments.server, arguments.v2).map_err(Failure::System)?;
    let mut swarm = Swarm::new(endpoint, &arguments).map_err(Failure::System)?;
    swarm.run().map_err(Failure::System)?;
    print(&swarm.table());
    match swarm.failed_logins() {
        0 => Ok(()),
        failed => Err(Failure::Logins {
            failed,
            count: arguments.count,
        }),
    }
}

/// Why it ends with a failure.
#[derive(Debug)]
pub enum Failure {
    /// The host is unknown, or the system lets nobody wait for sockets or signals.
    System(io::Error),
    /// Logins failed; the table says why.
    Logins {
        /// So many …
        failed: u32,
        /// … of so many.
        count: u32,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(error) => error.fmt(f),
            Self::Logins { failed, count } => write!(f, "{failed} of {count} logins failed"),
        }
    }
}
