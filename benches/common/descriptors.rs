//! How many sockets a bench may have.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What a bench needs besides its players' sockets.
const OTHERS: usize = 64;

/// Allows as many descriptors as the system lets us have; returns how many are for sockets.
pub fn raise() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let most = Rlimit {
        current: limit.maximum,
        ..limit
    };
    let limit = setrlimit(Resource::Nofile, most).map_or(limit, |()| most);
    let count = limit.current.map_or(usize::MAX, |count| count as usize);
    count.saturating_sub(OTHERS)
}
