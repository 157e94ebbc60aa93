//! Players that load a loop through real sockets, in lock-step with it and on its thread: they put
//! datagrams into the socket's queue, the loop is turned until all are answered, and only the
//! turns are timed. So a batch is as large for the server as for the floor, whichever is faster,
//! and no scheduler has a part in it.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use super::bytes::{PAYLOAD, Speaker, accepted_token, kind, login_request};
use super::floor::Loop;
use super::pairs::cpu_time;

/// Datagrams in flight, and logins.
pub const WINDOW: usize = 32;
/// No loop takes so long for a window.
const PATIENCE: Duration = Duration::from_secs(20);

/// One player.
pub struct Player {
    /// Its session lives as long as this.
    pub tcp: TcpStream,
    pub udp: UdpSocket,
    pub speaker: Speaker,
}

/// The players of one loop.
#[derive(Default)]
pub struct Players {
    players: Vec<Player>,
    /// Whose turn it is to send.
    next: usize,
}

impl Players {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.players.len()
    }

    /// Each of them.
    pub fn each(self) -> Vec<Player> {
        self.players
    }

    /// `count` players log in and bind, a window at a time.
    pub fn join(subject: &mut dyn Loop, count: usize) -> io::Result<Self> {
        let mut players = Self::default();
        while players.players.len() < count {
            let window = WINDOW.min(count - players.players.len());
            players.join_window(subject, window)?;
        }
        Ok(players)
    }

    /// A window of players joins; returns the CPU time of the loop from their connections to
    /// their Accepts.
    pub fn join_window(&mut self, subject: &mut dyn Loop, window: usize) -> io::Result<Duration> {
        // All under one name: so each is alone in its game, and nothing is announced to anybody.
        let login = login_request("bench");
        let mut streams = Vec::new();
        for _ in 0..window {
            let mut stream = TcpStream::connect(subject.tcp())?;
            stream.write_all(&login)?;
            stream.set_nonblocking(true)?;
            streams.push(stream);
        }
        let mut accepted = [0; 10];
        let mut tokens = vec![None; window];
        let mut spent = turn_until(subject, &mut tokens, |index| {
            let read = (&streams[index]).read(&mut accepted);
            would_block(read).map(|_| accepted_token(&accepted))
        });
        let mut joined = Vec::new();
        for (tcp, token) in streams.into_iter().zip(tokens.into_iter().flatten()) {
            let udp = UdpSocket::bind("127.0.0.1:0")?;
            udp.connect(subject.udp())?;
            udp.set_nonblocking(true)?;
            let mut speaker = Speaker::new(token);
            udp.send(speaker.say(kind::CONNECT, &[]))?;
            joined.push(Player { tcp, udp, speaker });
        }
        let mut bound = vec![None; window];
        spent += turn_until(subject, &mut bound, |index| joined[index].answer());
        self.players.append(&mut joined);
        Ok(spent)
    }

    /// Sends a window of Data, 64 bytes each, by the next players in turn; returns the CPU time
    /// of the loop until all have come back.
    pub fn echo_window(&mut self, subject: &mut dyn Loop) -> io::Result<Duration> {
        let count = self.players.len();
        for _ in 0..WINDOW {
            let player = &mut self.players[self.next % count];
            player.udp.send(player.speaker.say(kind::DATA, &PAYLOAD))?;
            self.next = (self.next + 1) % count;
        }
        let first = self.next + count - WINDOW % count;
        let mut answers = [None; WINDOW];
        let players = &mut self.players;
        let spent = turn_until(subject, &mut answers, |index| {
            players[(first + index) % count].answer()
        });
        Ok(spent)
    }

    /// All leave; the loop has seen it when this returns.
    pub fn leave(self, subject: &mut dyn Loop) {
        let count = self.players.len();
        drop(self.players);
        for _ in 0..2 + count.div_ceil(16) {
            subject.turn();
        }
    }
}

impl Player {
    /// Takes the next Data or Accept that has come, and answers the Pings before it. The answer
    /// of the floor is what was said to it, so a Connect is as good as an Accept.
    fn answer(&mut self) -> Option<()> {
        let mut bytes = [0; 256];
        loop {
            let count = would_block(self.udp.recv(&mut bytes))?;
            match self.speaker.hear(&bytes[..count]) {
                (kind::DATA | kind::ACCEPT | kind::CONNECT, _) => return Some(()),
                (kind::PING, nonce) => {
                    let pong = self.speaker.say(kind::PONG, nonce);
                    self.udp.send(pong).expect("the loop is there");
                }
                _ => {}
            }
        }
    }
}

/// Turns the loop until every one of `answers` is there, as `take` finds it by its index; returns
/// the CPU time of the turns.
fn turn_until<T>(
    subject: &mut dyn Loop,
    answers: &mut [Option<T>],
    mut take: impl FnMut(usize) -> Option<T>,
) -> Duration {
    let until = Instant::now() + PATIENCE;
    let mut spent = Duration::ZERO;
    while answers.iter().any(Option::is_none) {
        assert!(Instant::now() < until, "the loop does not answer");
        let start = cpu_time();
        subject.turn();
        spent += cpu_time() - start;
        for (index, answer) in answers.iter_mut().enumerate() {
            if answer.is_none() {
                *answer = take(index);
            }
        }
    }
    spent
}

/// What was received, if anything was.
///
/// # Panics
/// If receiving failed, or the other end is gone.
fn would_block(received: io::Result<usize>) -> Option<usize> {
    match received {
        Ok(0) => panic!("the loop closed the connection"),
        Ok(count) => Some(count),
        Err(error) if error.kind() == ErrorKind::WouldBlock => None,
        Err(error) => panic!("cannot receive: {error}"),
    }
}
