//! The rules of RTYP that only sockets can break, and what its players do to each other there.

mod addresses;
mod deaf;
mod departed;
mod endings;
mod limits;
mod stalls;
mod stop;
