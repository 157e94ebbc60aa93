//! The numbered rules of RTYP's PROTOCOL.md, each held by a test of its name.

mod binding;
mod budgets;
mod datagrams;
mod framing;
mod games;
mod judging;
mod lanes;
mod liveness;
mod login;
mod proof;
mod telling;
