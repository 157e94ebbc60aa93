//! A server around a machine that echoes, over real sockets on loopback.

mod datagrams;
#[cfg(unix)]
mod descriptors;
mod lifecycle;
mod rooms;
mod rtyp;
mod streams;

use std::io::Read;
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{Config, Error, Plan, Remote, Server};
use crate::engine::event::Gone;
use crate::engine::{
    Close, Conn, Credit, Env, Input, Machine, Player, Refusal, Replies, Ticket, Time, Verdict,
};
use crate::protocol::Seat;

/// Longer than anything here takes; whoever waits for it has failed.
const PATIENCE: Duration = Duration::from_secs(10);

/// Long enough for what is there already.
const MOMENT: Duration = Duration::from_millis(100);

/// What happened to the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Note {
    Opened(Conn),
    Stream(Conn, usize),
    Closed(Conn),
    Datagram(usize),
    Tick(Time),
    Command(u32),
    Answer(Ticket, Verdict),
    Stop,
}

/// Echoes datagrams and streams, save for a few first bytes that make it do something else.
struct Echo {
    notes: Sender<Note>,
    open: Vec<Conn>,
    due: Option<Time>,
    /// How long after an input [`Input::Tick`] is due; 0: never.
    tick_ms: u64,
}

const REJECT: u8 = b'R';
const DROP: u8 = b'N';
const FLOOD: u8 = b'F';
const SETTLE: u8 = b'S';
const SWALLOW: u8 = b'-';
const FLOOD_BYTES: usize = 60_000;
const REJECTED: &[u8] = b"rejected";
const FAREWELL: &[u8] = b"farewell";

impl Echo {
    fn note(&self, note: Note) {
        // A test that has seen enough listens no more.
        let _ = self.notes.send(note);
    }

    fn stream(&mut self, env: &mut Env<'_>, conn: Conn, bytes: &[u8]) {
        self.note(Note::Stream(conn, bytes.len()));
        match bytes[0] {
            REJECT => {
                env.out.stream(conn, |w| w.bytes(REJECTED));
                self.close(env, conn, Close::Drain);
            }
            DROP => self.close(env, conn, Close::Now),
            FLOOD => env.out.stream(conn, |w| w.bytes(&[FLOOD; FLOOD_BYTES])),
            SETTLE => env.out.settled(conn),
            SWALLOW => {}
            _ => env.out.stream(conn, |w| w.bytes(bytes)),
        }
    }

    fn close(&mut self, env: &mut Env<'_>, conn: Conn, how: Close) {
        self.open.retain(|open| *open != conn);
        env.out.close(conn, how);
        // A machine may be careless: what it says of a connection that is gone does nothing.
        env.out.close(conn, how);
        env.out.settled(conn);
    }
}

impl Machine for Echo {
    fn handle(&mut self, env: &mut Env<'_>, input: Input<'_>) {
        if self.tick_ms > 0 && self.due.is_none() {
            self.due = Some(env.now + self.tick_ms);
        }
        match input {
            Input::Opened { conn, .. } => {
                self.open.push(conn);
                self.note(Note::Opened(conn));
            }
            Input::Stream { conn, bytes } => self.stream(env, conn, bytes),
            Input::Closed { conn } => {
                assert!(self.open.contains(&conn), "told twice");
                self.open.retain(|open| *open != conn);
                self.note(Note::Closed(conn));
            }
            Input::Datagram { path, bytes } => {
                self.note(Note::Datagram(bytes.len()));
                let echo = env.out.datagram(path, Credit::Proven, |w| w.bytes(bytes));
                assert!(echo);
            }
            Input::Tick => {
                self.due = None;
                self.note(Note::Tick(env.now));
            }
            Input::Command(command) => command(self),
            Input::Stop => {
                self.note(Note::Stop);
                for conn in std::mem::take(&mut self.open) {
                    env.out.stream(conn, |w| w.bytes(FAREWELL));
                    self.close(env, conn, Close::Drain);
                }
            }
        }
    }

    fn deadline(&self) -> Option<Time> {
        self.due
    }

    fn stats(&self) -> Vec<(&'static str, u64)> {
        vec![("open", self.open.len() as u64)]
    }
}

impl Replies for Echo {
    fn answer(&mut self, ticket: Ticket, verdict: Verdict) -> Result<(), Gone> {
        self.note(Note::Answer(ticket, verdict));
        Ok(())
    }

    fn send(&mut self, _: Player, _: &[&[u8]]) -> Result<(), Refusal> {
        Err(Refusal::Gone)
    }

    fn chat(&mut self, _: Player, _: u8, _: &str) -> Result<(), Refusal> {
        Err(Refusal::Gone)
    }

    fn custom(&mut self, _: Player, _: &[&[u8]]) -> Result<(), Refusal> {
        Err(Refusal::Gone)
    }

    fn start(&mut self, game: u32) {
        self.note(Note::Command(game));
    }

    fn kick(&mut self, _: Player) -> Result<(), Gone> {
        Err(Gone)
    }
}

/// A server of one echo service, not yet running.
struct Bound {
    server: Server,
    notes: Receiver<Note>,
}

/// The same, running on a thread of its own.
struct Running {
    remote: Remote,
    thread: JoinHandle<Result<(), Error>>,
    notes: Receiver<Note>,
}

fn on(ips: &[&str]) -> Config {
    let bind = ips.iter().map(|ip| ip.parse().expect("an address"));
    Config {
        bind: bind.collect(),
        ..Config::default()
    }
}

fn plan(name: &'static str, tick_ms: u64) -> (Plan, Receiver<Note>) {
    let (sender, notes) = channel();
    let build = move |_: &Seat| -> Box<dyn Machine + Send> {
        Box::new(Echo {
            notes: sender,
            open: Vec::new(),
            due: None,
            tick_ms,
        })
    };
    let plan = Plan {
        name,
        tcp: Some(0),
        udp: 0,
        build: Box::new(build),
    };
    (plan, notes)
}

impl Bound {
    fn new(config: &Config) -> Self {
        Self::ticking(config, 0)
    }

    fn ticking(config: &Config, tick_ms: u64) -> Self {
        let (plan, notes) = plan("echo", tick_ms);
        let server = Server::with_plans(config, vec![plan]).expect("bound");
        Self { server, notes }
    }

    fn spawn(self) -> Running {
        let (remote, thread) = self.server.spawn().expect("a thread");
        Running {
            remote,
            thread,
            notes: self.notes,
        }
    }

    fn tcp(&self) -> SocketAddr {
        self.server.addresses()[0].tcp[0]
    }

    fn udp(&self) -> SocketAddr {
        self.server.addresses()[0].udp[0]
    }

    /// Turns, without any event from outside, until `count` notes have come.
    fn turn_until(&mut self, count: usize) -> Vec<Note> {
        let mut notes = Vec::new();
        for _ in 0..10_000 {
            notes.extend(self.notes.try_iter());
            if notes.len() >= count {
                return notes;
            }
            self.server.turn(Some(PATIENCE)).expect("a turn");
        }
        panic!("{} of {count} notes", notes.len());
    }

    /// Turns as long as the poll is not asked to wait.
    fn turn_dry(&mut self) -> Vec<Note> {
        for _ in 0..100 {
            self.server.turn(Some(Duration::ZERO)).expect("a turn");
        }
        self.notes.try_iter().collect()
    }
}

impl Running {
    fn new(config: &Config) -> Self {
        Bound::new(config).spawn()
    }

    fn tcp(&self) -> SocketAddr {
        self.remote.addresses()[0].tcp[0]
    }

    fn udp(&self) -> SocketAddr {
        self.remote.addresses()[0].udp[0]
    }

    fn note(&self) -> Note {
        self.notes.recv_timeout(PATIENCE).expect("a note in time")
    }

    fn stat(&self, name: &str) -> u64 {
        let stats = self.remote.stats().expect("stats");
        stats.get("echo", name).expect("a counter of this name")
    }

    /// Stops the server; it must have ended when this returns.
    fn stop(self) -> Receiver<Note> {
        self.remote.stop().expect("running");
        self.thread.join().expect("no panic").expect("no error");
        self.notes
    }
}

fn connect(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(&to, PATIENCE).expect("accepted");
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    stream.set_write_timeout(Some(PATIENCE)).expect("set");
    stream
}

/// A socket at `ip` that talks to `to` alone: answers from elsewhere do not reach it.
fn endpoint(ip: &str, to: SocketAddr) -> UdpSocket {
    let ip: IpAddr = ip.parse().expect("an address");
    let socket = UdpSocket::bind((ip, 0)).expect("a port");
    socket.connect(to).expect("connected");
    socket.set_read_timeout(Some(PATIENCE)).expect("set");
    socket
}

fn echoed(socket: &UdpSocket, bytes: &[u8]) {
    socket.send(bytes).expect("sent");
    let mut buffer = vec![0; 65_536];
    let count = socket.recv(&mut buffer).expect("an answer in time");
    assert_eq!(&buffer[..count], bytes);
}

/// All that comes until the end; a reset is no end.
fn read_all(mut stream: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("an end, no reset");
    bytes
}
