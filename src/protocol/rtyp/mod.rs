//! RTYP: login over TCP, a session token, a bound UDP endpoint.

pub mod wire;
