//! The sockets of machines: what goes through them, and where they change while the machine runs.

use std::net::SocketAddr;

use super::machine::Tally;
use super::net::Owner;
use super::{Actor, World};

impl<P: Actor> World<P> {
    /// A machine has another socket.
    pub fn machine_has(&mut self, machine: usize, address: SocketAddr) {
        let sockets = &mut self.nodes[machine].sockets;
        self.net
            .own(address, Owner::Machine(machine, sockets.len() as u8));
        sockets.push(address);
    }

    /// From now on a machine's socket is seen at another address, as if its router had moved it:
    /// what goes to the old one is lost.
    pub fn readdress(&mut self, machine: usize, socket: u8, address: SocketAddr) {
        let own = &mut self.nodes[machine].sockets[usize::from(socket)];
        let old = std::mem::replace(own, address);
        self.net.disown(old);
        self.net.own(address, Owner::Machine(machine, socket));
    }

    /// What went between a machine and an endpoint.
    pub fn tally(&self, machine: usize, endpoint: SocketAddr) -> Tally {
        let tallies = &self.nodes[machine].tallies;
        tallies.get(&endpoint).copied().unwrap_or_default()
    }

    /// From now on the machine must never have sent more bytes to the endpoint than came from it.
    pub fn echo_only(&mut self, machine: usize, endpoint: SocketAddr) {
        let watched = &mut self.nodes[machine].echo_only;
        watched.insert(endpoint, Tally::default());
    }
}
