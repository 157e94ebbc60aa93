//! Built-in games, written on the same public API that an embedding program has.

pub mod relay;

pub use relay::Relay;
