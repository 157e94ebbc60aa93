//! The protocols a server speaks: each a directory with its text, its codec and its policy.

pub mod rtyp;
