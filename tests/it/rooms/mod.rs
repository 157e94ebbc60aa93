//! Rooms, from outside: a client written by hand, and what is tested with it.

pub mod bytes;
mod client;
mod evening;
pub mod hall;
mod hostile;
mod loss;
mod model;
pub mod peer;
pub mod picture;
mod rules;
