//! Built-in games, written on the same public API that an embedding program has.

pub mod arena;
pub mod relay;

pub use arena::Arena;
pub use relay::Relay;
