//! The program around the library: arguments, log, and one file for each sub-command.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use args::{Invocation, UsageError};
use log::Log;

mod args;
mod bots;
mod chat;
mod endpoint;
mod log;
mod serve;
mod signals;

/// The exit code for a wrong argument.
const USAGE: u8 = 2;

/// Does what `arguments` ask for, the program's own name not among them.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    match args::parse(arguments) {
        Ok(Invocation::Help) => print(&args::help()),
        Ok(Invocation::Version) => print(concat!("anteroom ", env!("CARGO_PKG_VERSION"), "\n")),
        Ok(Invocation::Serve(arguments)) => return logged(|| serve::run(arguments)),
        Ok(Invocation::Bots(arguments)) => return logged(|| bots::run(arguments)),
        Ok(Invocation::Chat(arguments)) => return logged(|| chat::run(arguments)),
        Err(error) => return refuse(&error),
    }
    ExitCode::SUCCESS
}

/// Runs a sub-command with the process's log around it. A failure is the log's last line, however
/// little else it is to tell.
fn logged<E: Display>(command: impl FnOnce() -> Result<(), E>) -> ExitCode {
    let log = match Log::start() {
        Ok(log) => log,
        Err(error) => {
            let _ = writeln!(io::stderr(), "anteroom: no thread for the log: {error}");
            return ExitCode::FAILURE;
        }
    };
    let result = command();
    if let Err(error) = &result {
        log.say(format!("anteroom: {error}\n").as_bytes());
    }
    log.finish();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Prints and flushes. A standard output that nobody reads any more is no failure.
fn print(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Says why on standard error, and by the exit code that it is one of the arguments.
fn refuse(error: &UsageError) -> ExitCode {
    let _ = writeln!(io::stderr(), "anteroom: {error}\nTry `anteroom --help`.");
    ExitCode::from(USAGE)
}
