//! The numbered rules of RTYP's PROTOCOL.md, each held by a test of its name.

mod datagrams;
mod framing;
