//! Everything that is tested from outside, in one binary.

mod driver;
mod rooms;
mod rtyp;
mod world;
