//! One way to the server: a UDP socket, and the connection it goes with if the version has one.

use std::io;
use std::net::SocketAddr;

use mio::{Registry, Token};

use super::datagrams::{self, Counts, Datagrams};
use super::stream::Stream;
use crate::engine::{Conn, Time};

/// A connection and its socket, or a socket alone.
#[derive(Debug)]
pub(super) struct Link {
    /// By which the client knows the connection; its slot is also the number of the socket.
    pub(super) conn: Conn,
    /// `None` in version 2.
    pub(super) stream: Option<Stream>,
    /// Until the session is over.
    pub(super) datagrams: Option<Datagrams>,
}

/// Where somebody waits for the sockets, under which tokens.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) registry: Registry,
    pub(super) stream: Token,
    pub(super) datagrams: Token,
}

impl Link {
    /// Begins to connect, and binds a socket for what comes of it.
    pub(super) fn connect(server: SocketAddr, conn: Conn) -> io::Result<Self> {
        let stream = Stream::connect(datagrams::folded(server))?;
        let datagrams = Datagrams::bind(stream.local_ip(), server)?;
        Ok(Self {
            conn,
            stream: Some(stream),
            datagrams: Some(datagrams),
        })
    }

    /// A socket that hears nobody but the server.
    pub(super) fn without_connection(server: SocketAddr, conn: Conn) -> io::Result<Self> {
        let mut datagrams = Datagrams::bind(None, server)?;
        datagrams.connect(datagrams::folded(server))?;
        Ok(Self {
            conn,
            stream: None,
            datagrams: Some(datagrams),
        })
    }

    pub(super) fn register(
        &mut self,
        registry: &Registry,
        stream: Token,
        datagrams: Token,
    ) -> io::Result<()> {
        if let Some(socket) = &mut self.stream {
            socket.register(registry, stream)?;
        }
        match &mut self.datagrams {
            Some(socket) => socket.register(registry, datagrams),
            None => Ok(()),
        }
    }

    pub(super) fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        if let Some(socket) = &mut self.stream {
            socket.deregister(registry)?;
        }
        match &mut self.datagrams {
            Some(socket) => socket.deregister(registry),
            None => Ok(()),
        }
    }

    /// Whether its connection is being made.
    pub(super) fn is_connecting(&self) -> bool {
        self.stream.as_ref().is_some_and(Stream::is_connecting)
    }

    /// Whether nothing can come of it any more.
    pub(super) fn is_over(&self) -> bool {
        match &self.stream {
            Some(stream) => stream.is_closed(),
            None => self.datagrams.is_none(),
        }
    }

    /// When its connection has something to do.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.stream.as_ref().and_then(Stream::deadline)
    }

    /// The session is over: what was not closed with care is closed now.
    pub(super) fn abandon(&mut self, counts: &mut Counts) {
        if let Some(stream) = &mut self.stream {
            stream.abandon();
        }
        self.hang_up(counts);
    }

    /// Closes the socket, and keeps what it has counted.
    pub(super) fn hang_up(&mut self, counts: &mut Counts) {
        if let Some(datagrams) = self.datagrams.take() {
            counts.add(datagrams.counts());
        }
    }
}
