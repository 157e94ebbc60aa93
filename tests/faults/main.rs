//! What goes wrong in the world: the real program and the real library server against peers that
//! vanish, fall silent, flood or die, on a system that runs out of things or stops the process.
//!
//! Everything goes over loopback, or through network namespaces that a test makes for itself.
#![cfg(target_os = "linux")]

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

mod bytes;
mod descriptors;
mod embedding;
mod flood;
mod garbage;
mod hellos;
mod idle;
mod logs;
mod player;
mod program;
mod rtyp;
mod storms;

/// Longer than anything here takes, on a busy machine too; whoever waits for it has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// Floods take turns: several at once would starve each other's players and prove nothing.
fn alone() -> MutexGuard<'static, ()> {
    static FLOODS: Mutex<()> = Mutex::new(());
    FLOODS.lock().unwrap_or_else(PoisonError::into_inner)
}
