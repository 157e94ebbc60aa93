//! Players who talk at their own pace, whatever becomes of what they say.

use std::io::{self, ErrorKind};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use mio::net::UdpSocket;
use mio::{Events, Interest, Poll, Token};

use super::bytes::{PAYLOAD, Speaker, kind};
use super::players::{Player, Players};

/// Each says something this often.
const SAYS_EVERY: Duration = Duration::from_millis(20);
/// An echo that takes longer is lost.
const LATE: Duration = Duration::from_millis(100);
/// Where in the payload it says when it was said, and in which round.
const AT: usize = 0;
const ROUND: usize = 8;

/// Players with a session each.
pub struct Talkers {
    poll: Poll,
    events: Events,
    talkers: Vec<Talker>,
    began: Instant,
    round: u64,
}

/// What came of what was said in a round.
#[derive(Default)]
pub struct Talk {
    /// How often something was said.
    pub said: usize,
    /// After how many microseconds each echo was there, of those that came.
    pub delays_us: Vec<f64>,
}

impl Talk {
    /// How much of it came back, from 0 to 1.
    pub fn share(&self) -> f64 {
        self.delays_us.len() as f64 / self.said.max(1) as f64
    }
}

struct Talker {
    /// The session lives as long as this.
    _tcp: TcpStream,
    udp: UdpSocket,
    speaker: Speaker,
}

impl Talkers {
    /// Those who have joined.
    pub fn new(players: Players) -> io::Result<Self> {
        let poll = Poll::new()?;
        let mut talkers = Vec::new();
        for Player { tcp, udp, speaker } in players.each() {
            let mut udp = UdpSocket::from_std(udp);
            let token = Token(talkers.len());
            poll.registry()
                .register(&mut udp, token, Interest::READABLE)?;
            let _tcp = tcp;
            talkers.push(Talker { _tcp, udp, speaker });
        }
        Ok(Self {
            poll,
            events: Events::with_capacity(64),
            talkers,
            began: Instant::now(),
            round: 0,
        })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.talkers.len()
    }

    /// They only answer for so long.
    pub fn wait(&mut self, lasting: Duration) {
        self.round += 1;
        self.hear_until(Instant::now() + lasting, &mut Talk::default());
    }

    /// They talk for so long, and wait for the last echo.
    pub fn talk(&mut self, lasting: Duration) -> Talk {
        self.round += 1;
        let mut talk = Talk::default();
        let start = Instant::now();
        let step = SAYS_EVERY / self.talkers.len() as u32;
        let words = (lasting.as_nanos() / step.as_nanos()) as u32;
        for word in 0..words {
            self.hear_until(start + step * word, &mut talk);
            let who = word as usize % self.talkers.len();
            self.say(who, &mut talk);
        }
        let end = start + step * words + LATE;
        while talk.delays_us.len() < talk.said && Instant::now() < end {
            self.hear_until(end.min(Instant::now() + step), &mut talk);
        }
        talk
    }

    fn say(&mut self, who: usize, talk: &mut Talk) {
        let mut payload = PAYLOAD;
        payload[AT..AT + 8].copy_from_slice(&self.now_us().to_le_bytes());
        payload[ROUND..ROUND + 8].copy_from_slice(&self.round.to_le_bytes());
        let talker = &mut self.talkers[who];
        talk.said += 1;
        // One that the system does not take is one that does not come back.
        let _ = talker.udp.send(talker.speaker.say(kind::DATA, &payload));
    }

    /// Takes what comes until then.
    fn hear_until(&mut self, until: Instant, talk: &mut Talk) {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let polled = self.poll.poll(&mut self.events, Some(left));
            if let Err(error) = polled {
                assert_eq!(error.kind(), ErrorKind::Interrupted, "the poll works");
            }
            let heard: Vec<usize> = self.events.iter().map(|it| it.token().0).collect();
            for who in heard {
                self.hear(who, talk);
            }
            if left.is_zero() {
                return;
            }
        }
    }

    /// Takes all that has come to one of them, and answers what is to be answered.
    fn hear(&mut self, who: usize, talk: &mut Talk) {
        let (now_us, round) = (self.now_us(), self.round);
        let Talker { udp, speaker, .. } = &mut self.talkers[who];
        let mut bytes = [0; 256];
        while let Ok(count) = udp.recv(&mut bytes) {
            match speaker.hear(&bytes[..count]) {
                (kind::DATA, payload) if u64_at(payload, ROUND) == round => {
                    talk.delays_us.push((now_us - u64_at(payload, AT)) as f64);
                }
                (kind::PING, nonce) => {
                    let _ = udp.send(speaker.say(kind::PONG, nonce));
                }
                _ => {}
            }
        }
    }

    fn now_us(&self) -> u64 {
        self.began.elapsed().as_micros() as u64
    }
}

fn u64_at(payload: &[u8], at: usize) -> u64 {
    let bytes = payload[at..at + 8].try_into().expect("8 bytes");
    u64::from_le_bytes(bytes)
}
