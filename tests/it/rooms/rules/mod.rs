//! The numbered rules of the protocol's page that bind the server, a test or more for each.

mod accounts;
mod arena;
mod connection;
mod datagrams;
mod entrance;
mod envelope;
mod ids;
mod playing;
mod rooms;
