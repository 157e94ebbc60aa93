//! The floor of everything that comes by datagram: a bare `recv_from` from a full queue, which is
//! what the datagram costs before anybody has looked at it.

use std::io;
use std::net::UdpSocket;
use std::time::Duration;

use super::bytes::DATAGRAM;
use super::pairs::{Pairs, cpu_time, ns};
use super::report::Report;

/// Datagrams that fit into a socket's queue whatever the system's defaults are.
const QUEUE: usize = 128;

/// The floor and `subject`, which takes a number of datagrams and returns the nanoseconds of one.
pub fn over_receive(report: &Report, mut subject: impl FnMut(usize) -> f64) -> Pairs {
    let mut queue = Queue::new().expect("two sockets");
    let rounds = report.repeat(500);
    let floor = || queue.receive(rounds).expect("the queue works");
    Pairs::measure(floor, || subject(rounds * QUEUE))
}

/// A socket's queue that is filled and emptied.
struct Queue {
    sender: UdpSocket,
    receiver: UdpSocket,
}

impl Queue {
    fn new() -> io::Result<Self> {
        let receiver = UdpSocket::bind("127.0.0.1:0")?;
        let sender = UdpSocket::bind("127.0.0.1:0")?;
        sender.connect(receiver.local_addr()?)?;
        Ok(Self { sender, receiver })
    }

    /// Nanoseconds to receive a datagram, `rounds` times a queue of them.
    fn receive(&mut self, rounds: usize) -> io::Result<f64> {
        let mut spent = Duration::ZERO;
        let mut buffer = [0; 2048];
        for _ in 0..rounds {
            for _ in 0..QUEUE {
                self.sender.send(&[0xA5; DATAGRAM])?;
            }
            let start = cpu_time();
            for _ in 0..QUEUE {
                self.receiver.recv_from(&mut buffer)?;
            }
            spent += cpu_time() - start;
        }
        Ok(ns(spent, rounds * QUEUE))
    }
}
