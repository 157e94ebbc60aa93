//! The session server of small multiplayer games, as a library.
//!
//! Players log in over TCP, get a secret token, bind a UDP endpoint with it and play; the server
//! keeps who is there, tells the others, delivers reliable events and ends sessions cleanly. It
//! is one synchronous event loop on one thread: run it on a thread of your own ([`Server::run`],
//! [`Server::spawn`]) or turn it inside your own loop ([`Server::turn`]).
//!
//! # A server, a game and a player in one program
//!
//! ```
//! use std::time::Duration;
//!
//! use anteroom::driver::{Notice, State};
//! use anteroom::{Config, Driver, Event, Game, Replies, Rtyp, Server, Time, Verdict};
//!
//! /// Says back to each player what it says.
//! struct Echo;
//!
//! impl Game for Echo {
//!     fn event(&mut self, _now: Time, event: Event<'_>, out: &mut dyn Replies) {
//!         // What is said to somebody who is gone does nothing, and says so.
//!         let _ = match event {
//!             Event::Connecting { ticket, .. } => {
//!                 out.answer(ticket, Verdict::Admit).map_err(Into::into)
//!             }
//!             Event::Data { player, bytes } => out.send(player, &[b"echo: ", bytes]),
//!             _ => Ok(()),
//!         };
//!     }
//! }
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let server = Server::bind(Config {
//!         bind: vec!["127.0.0.1".parse()?],
//!         rtyp: Some(Rtyp { game: Box::new(Echo), port: 0, ..Rtyp::default() }),
//!         ..Config::default()
//!     })?;
//!     let address = server.addresses()[0].tcp[0];
//!     let (remote, thread) = server.spawn()?;
//!
//!     let mut player = Driver::connect(address, "R9")?;
//!     let mut answer = Vec::new();
//!     while answer.is_empty() {
//!         let state = player.poll(&mut |notice| {
//!             if let Notice::Data { bytes } = notice {
//!                 answer = bytes.to_vec();
//!             }
//!         });
//!         match state {
//!             State::Playing => player.send(b"hello")?,
//!             State::Ended(end) => return Err(end.to_string().into()),
//!             _ => {}
//!         }
//!         std::thread::sleep(Duration::from_millis(1)); // the game's frame
//!     }
//!     assert_eq!(answer, b"echo: hello");
//!
//!     remote.stop()?; // from any thread: everybody is told
//!     thread.join().expect("the server does not panic")?;
//!     Ok(())
//! }
//! ```
//!
//! # The way of a datagram
//!
//! [`server`] owns the sockets, the clock and the dice. It receives a batch, and gives each
//! datagram to the service it came to as an [`Input`](engine::Input). The service is a
//! [`Machine`](engine::Machine) that sees nothing of the world but the [`Env`](engine::Env) it is
//! given: the time, random bytes, and an [`Outbox`](engine::Outbox) for what it wants done. A
//! [`protocol`] says what the bytes mean and what to answer; the [`engine`] knows who exists, what
//! is due and how a session ends; the [`guard`] says no. What the player said reaches the [`Game`],
//! whose [`Replies`] act at once and end up in the same outbox. Then the server sends what is in
//! there. So a conversation of ten minutes over a bad line runs in a test in microseconds.
//!
//! # What the library does not do
//!
//! It sets up no logger (it logs through the crate `log`), no signal handler and no global; it
//! never exits the process and never panics on input. Several servers live in one process.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

#[cfg(feature = "accounts")]
pub mod accounts;
pub mod bytes;
pub mod driver;
pub mod engine;
pub mod game;
pub mod guard;
pub mod protocol;
pub mod server;

pub use driver::Driver;
pub use engine::{
    Component, Entity, Event, Game, Gone, Player, Refusal, Replies, Secret, Ticket, Time, Verdict,
};
pub use guard::limits::Limits;
pub use server::{Addresses, Config, Error, Remote, RemoteError, Rooms, Rtyp, Server, Stats};
