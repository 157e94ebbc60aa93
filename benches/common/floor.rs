//! The floor: a bare mio loop that makes the calls a server has to make, and nothing else.
//!
//! It receives as the server does (the same socket options, the same buffers, a batch a call) and
//! sends each datagram back to its source, unless it is to drop what is of no use to anybody. It
//! accepts, reads until there is no more, and answers whatever a connection says with ten bytes,
//! as a LoginAccepted has. It knows nobody.

use std::io::{self, IoSliceMut, Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mio::net::{TcpListener, TcpStream, UdpSocket};
use mio::{Events, Interest, Poll, Token};
use quinn_udp::{RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use slab::Slab;
use socket2::SockRef;

/// Connections accepted in a turn, and calls for datagrams: a turn is bounded as the server's is.
const ACCEPTS_MAX: usize = 16;
const BATCHES_MAX: usize = 8;
/// Datagrams in a call.
const BATCH: usize = 32;
/// Bytes of a buffer, as the server has them: with room for joined datagrams.
const BUFFER_BYTES: usize = 65_536 + 21 * 64;
/// What the server asks for unless a limit says otherwise.
const RECEIVE_BUFFER_BYTES: usize = 1_048_576;
/// What a connection is told.
const ACCEPTED: [u8; 10] = [8, 0, 2, 1, 0, 0, 0, 0, 0x92, 0x10];

/// A loop that runs by itself looks this often whether it is to end.
const LOOK_EVERY: Duration = Duration::from_millis(50);

const LISTENER: Token = Token(0);
const SOCKET: Token = Token(1);
const STREAMS: usize = 2;

/// A loop that can be turned once: takes what has come, and does not wait for more.
pub trait Loop {
    fn turn(&mut self);
    fn tcp(&self) -> SocketAddr;
    fn udp(&self) -> SocketAddr;
}

/// The bare loop.
pub struct Floor {
    poll: Poll,
    events: Events,
    listener: TcpListener,
    socket: UdpSocket,
    state: UdpSocketState,
    streams: Slab<TcpStream>,
    memory: Box<[u8]>,
    meta: [RecvMeta; BATCH],
    /// What is sent back; all else is dropped.
    echoes: fn(&[u8]) -> bool,
    /// There may be somebody to accept; the poll tells only once.
    accepts: bool,
    /// There may be datagrams.
    receives: bool,
}

impl Floor {
    /// Binds any ports of the loopback address, and sends everything back.
    pub fn bind() -> io::Result<Self> {
        Self::echoing(|_| true)
    }

    /// Sends back what is wanted, and drops all else.
    pub fn echoing(echoes: fn(&[u8]) -> bool) -> io::Result<Self> {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let poll = Poll::new()?;
        let mut listener = TcpListener::bind(any)?;
        let mut socket = UdpSocket::bind(any)?;
        SockRef::from(&socket).set_recv_buffer_size(RECEIVE_BUFFER_BYTES)?;
        let registry = poll.registry();
        registry.register(&mut listener, LISTENER, Interest::READABLE)?;
        registry.register(&mut socket, SOCKET, Interest::READABLE)?;
        Ok(Self {
            poll,
            events: Events::with_capacity(256),
            state: UdpSocketState::new(UdpSockRef::from(&socket))?,
            listener,
            socket,
            streams: Slab::new(),
            memory: vec![0; BATCH * BUFFER_BYTES].into_boxed_slice(),
            meta: [RecvMeta::default(); BATCH],
            echoes,
            accepts: false,
            receives: false,
        })
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTS_MAX {
            let Ok((mut stream, _)) = self.listener.accept() else {
                self.accepts = false;
                return;
            };
            let entry = self.streams.vacant_entry();
            let token = Token(STREAMS + entry.key());
            let registry = self.poll.registry();
            if registry
                .register(&mut stream, token, Interest::READABLE)
                .is_ok()
            {
                entry.insert(stream);
            }
        }
    }

    fn read(&mut self, slot: usize) {
        let Some(stream) = self.streams.get_mut(slot) else {
            return;
        };
        loop {
            match stream.read(&mut self.memory) {
                Ok(1..) => {
                    let _ = stream.write(&ACCEPTED);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Ok(0) | Err(_) => {
                    self.streams.remove(slot);
                    return;
                }
            }
        }
    }

    /// Turns on its own until it is to end.
    pub fn run(&mut self, is_over: &AtomicBool) {
        while !is_over.load(Ordering::Acquire) {
            self.wait_and_turn(LOOK_EVERY);
        }
    }

    /// Waits for something to come, unless something is left over, and takes it.
    fn wait_and_turn(&mut self, wait: Duration) {
        let has_more = self.accepts || self.receives;
        let wait = if has_more { Duration::ZERO } else { wait };
        self.poll
            .poll(&mut self.events, Some(wait))
            .expect("the poll works");
        let mut events = std::mem::replace(&mut self.events, Events::with_capacity(0));
        for event in &events {
            match event.token() {
                LISTENER => self.accepts = true,
                SOCKET => self.receives = true,
                Token(number) => self.read(number - STREAMS),
            }
        }
        std::mem::swap(&mut self.events, &mut events);
        if self.accepts {
            self.accept();
        }
        for _ in 0..BATCHES_MAX {
            if self.receives {
                self.receives = self.receive() == BATCH;
            }
        }
    }

    /// Sends a batch back; returns how many datagrams were in it.
    fn receive(&mut self) -> usize {
        let mut buffers = self.memory.chunks_exact_mut(BUFFER_BYTES);
        let mut buffers: [IoSliceMut<'_>; BATCH] =
            std::array::from_fn(|_| IoSliceMut::new(buffers.next().unwrap_or_default()));
        let received = self.socket.try_io(|| {
            let socket = UdpSockRef::from(&self.socket);
            self.state.recv(socket, &mut buffers, &mut self.meta)
        });
        let count = received.unwrap_or(0);
        for (meta, buffer) in self.meta.iter().zip(&buffers).take(count) {
            let contents = &buffer[..meta.len];
            if !(self.echoes)(contents) {
                continue;
            }
            let transmit = Transmit {
                destination: meta.addr,
                ecn: None,
                contents,
                segment_size: None,
                src_ip: None,
            };
            let _ = self.socket.try_io(|| {
                let socket = UdpSockRef::from(&self.socket);
                self.state.try_send(socket, &transmit)
            });
        }
        count
    }
}

impl Loop for Floor {
    fn turn(&mut self) {
        self.wait_and_turn(Duration::ZERO);
    }

    fn tcp(&self) -> SocketAddr {
        self.listener.local_addr().expect("it is bound")
    }

    fn udp(&self) -> SocketAddr {
        self.socket.local_addr().expect("it is bound")
    }
}
