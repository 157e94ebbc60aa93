//! Everything that is tested from outside, in one binary.

mod driver;
mod rtyp;
mod world;
