//! SIGTERM and SIGINT: the first asks for an orderly end, the second ends the process at once.
//! SIGUSR1 asks for numbers.

use std::io;
use std::process;
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

/// From now on the first signal calls `stop` on a thread of its own, and a second one exits with
/// 128 and the signal's number, as a shell reports who died of it.
///
/// # Errors
/// The system's, if it grants no handler or no thread.
pub fn stop_with(stop: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    let watch = move || {
        let mut received = signals.forever();
        if received.next().is_some() {
            stop();
        }
        if let Some(signal) = received.next() {
            exit_of(signal);
        }
    };
    thread::Builder::new().name("signals".into()).spawn(watch)?;
    Ok(())
}

/// From now on SIGUSR1 calls `tell` on a thread of its own.
///
/// # Errors
/// The system's, if it grants no handler or no thread.
pub fn tell_with(tell: impl Fn() + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new([SIGUSR1])?;
    let watch = move || signals.forever().for_each(|_| tell());
    thread::Builder::new().name("numbers".into()).spawn(watch)?;
    Ok(())
}

#[expect(
    clippy::exit,
    reason = "whoever signals twice does not want to wait for the farewells"
)]
fn exit_of(signal: i32) {
    process::exit(128 + signal);
}
