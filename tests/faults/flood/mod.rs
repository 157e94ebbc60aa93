//! What a flood is made of, for the tests and for the benches, which run the long ones.
//!
//! - [`sender`] sends from as many addresses as anybody can forge, [`hello`] is an honest client of
//!   version 2;
//! - [`watched`] is the program with its log, [`siege`] a whole flood of hellos at it.

pub mod hello;
pub mod sender;
pub mod siege;
pub mod watched;
