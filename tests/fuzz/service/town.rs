//! The service in a small world, and what must hold whatever happens there: it does not panic;
//! after a tick nothing is still due; nobody who has proven nothing gets more bytes than he sent;
//! no stream is written to that is closed; who has left does nothing any more; whoever falls silent
//! is forgotten, and then there is room again for everybody.

use anteroom::Verdict;
use anteroom::engine::{Conn, Effect, Env, Input, Machine, Outbox, Seeded, Time};
use anteroom::protocol::rtyp::{Service, Settings};

use super::endpoint::{ADDRESSES, Endpoint, Session, UNLIMITED};
use super::mood::Mood;

/// Streams there can be at once: as many as the games have room for.
const STREAMS: usize = 4 * GAMES as usize;
const GAMES: u32 = 2;
/// The last addresses are nobody's.
const STREAM_ADDRESSES: usize = ADDRESSES.len() - 2;
/// Longer than anything is remembered of whoever is silent.
const SILENCE_MS: u64 = 60_000;
/// More often than this nothing is due in that time.
const TICKS_MAX: usize = 20_000;

/// The service and everyone around it.
pub struct Town {
    pub mood: Mood,
    service: Service,
    now: Time,
    dice: Seeded,
    out: Outbox,
    streams: [Stream; STREAMS],
    endpoints: [Endpoint; ADDRESSES.len()],
    is_stopped: bool,
}

/// A place for a connection.
#[derive(Default)]
struct Stream {
    /// The connection that is open.
    open: Option<Conn>,
    /// Which of the addresses it comes from.
    address: usize,
    /// How many were open before.
    generation: u32,
    /// The last session that came by it.
    session: Option<Session>,
}

/// What happens to the service.
impl Town {
    /// A service whose games nobody plays.
    pub fn new() -> Self {
        let mood = Mood::default();
        let settings = Settings {
            games: GAMES,
            ..Settings::default()
        };
        Self {
            service: Service::new(mood.game(), &settings),
            mood,
            now: Time::from_ms(1_000),
            dice: Seeded::new(7),
            out: Outbox::new(),
            streams: Default::default(),
            endpoints: ADDRESSES.map(Endpoint::new),
            is_stopped: false,
        }
    }

    /// A connection comes from one of the addresses, if its place is free.
    pub fn open(&mut self, stream: usize, address: usize) {
        let slot = stream % STREAMS;
        let stream = &mut self.streams[slot];
        if stream.open.is_some() {
            return;
        }
        stream.address = address % STREAM_ADDRESSES;
        stream.generation += 1;
        let conn = Conn {
            slot: slot as u32,
            generation: stream.generation,
        };
        stream.open = Some(conn);
        let peer = self.endpoints[stream.address].path.remote;
        self.input(Input::Opened { conn, peer });
    }

    /// Bytes come on a connection.
    pub fn write(&mut self, stream: usize, bytes: &[u8]) {
        if let Some(conn) = self.streams[stream % STREAMS].open {
            self.input(Input::Stream { conn, bytes });
        }
    }

    /// A connection ends.
    pub fn close(&mut self, stream: usize) {
        let stream = stream % STREAMS;
        if let Some(conn) = self.streams[stream].open {
            self.input(Input::Closed { conn });
            self.streams[stream].open = None;
        }
    }

    /// A datagram comes.
    pub fn send(&mut self, endpoint: usize, bytes: &[u8]) {
        let endpoint = &mut self.endpoints[endpoint % ADDRESSES.len()];
        endpoint.says(bytes);
        let path = endpoint.path;
        self.input(Input::Datagram { path, bytes });
    }

    /// Time passes, and each deadline is met.
    pub fn pass(&mut self, ms: u64) {
        let until = self.now + ms;
        let mut ticks = 0;
        while let Some(due) = self.service.deadline().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            self.tick();
            ticks += 1;
            assert!(ticks <= TICKS_MAX, "something is due again and again");
        }
        self.now = until;
    }

    /// Time passes, and all deadlines are met late, at once.
    pub fn skip(&mut self, ms: u64) {
        self.now = self.now + ms;
        if self.service.deadline().is_some_and(|due| due <= self.now) {
            self.tick();
        }
    }

    fn tick(&mut self) {
        self.input(Input::Tick);
        let due = self.service.deadline();
        assert!(due.is_none_or(|due| due > self.now), "still due");
    }

    /// The game answers the oldest question, which may be too late.
    pub fn answer(&mut self, admits: bool) {
        let Some(ticket) = self.mood.ticket() else {
            return;
        };
        let verdict = match admits {
            true => Verdict::Admit,
            false => Verdict::Refuse,
        };
        let answer = Box::new(move |replies: &mut dyn anteroom::Replies| {
            // Who asked may be gone.
            let _ = replies.answer(ticket, verdict);
        });
        self.input(Input::Command(answer));
    }

    /// The game sends one of those who are there away.
    pub fn kick(&mut self, index: usize) {
        let Some(player) = self.mood.player(index) else {
            return;
        };
        let kick = Box::new(move |replies: &mut dyn anteroom::Replies| {
            assert_eq!(replies.kick(player), Ok(()), "there, and gone");
        });
        self.input(Input::Command(kick));
        assert_ne!(self.mood.player(index), Some(player), "kicked, and there");
    }

    /// The server is told to stop.
    pub fn stop(&mut self) {
        self.is_stopped = true;
        self.input(Input::Stop);
        assert!(self.mood.is_empty(), "everybody was sent away");
    }

    /// All streams end, nobody says anything any more, and nothing is left but the counters.
    pub fn abandon(mut self) -> Vec<(&'static str, u64)> {
        self.fall_silent();
        if !self.is_stopped {
            self.fill();
            self.fall_silent();
        }
        let stats = self.service.stats();
        assert!(stats.contains(&("sessions", 0)), "{stats:?}");
        stats
    }

    fn fall_silent(&mut self) {
        for stream in 0..STREAMS {
            self.close(stream);
        }
        self.pass(SILENCE_MS);
        assert_eq!(self.service.deadline(), None);
        assert!(self.mood.is_empty(), "the game was not told");
    }

    /// All games are filled from where no limit holds.
    fn fill(&mut self) {
        self.mood.change(0);
        for number in 0..STREAMS {
            self.streams[number].session = None;
            self.open(number, UNLIMITED);
            self.write(number, &[5, 0, 1, 1, 1, 0, b'a' + number as u8]);
            let has_entered = self.streams[number].session.is_some();
            assert!(has_entered, "there is no room for number {number}");
        }
    }
}

/// What clients say.
impl Town {
    /// A ClientHello, with the last cookie that came or with a wrong one.
    pub fn hello(&mut self, endpoint: usize, is_wrong: bool, room: &[u8], name: &[u8]) {
        let cookie = self.endpoints[endpoint % ADDRESSES.len()].cookie;
        let mut bytes = b"RTYP\x02\x10\0\0\xFF\xFF\0\0\0\0".to_vec();
        bytes.extend([0; 8]);
        bytes.extend((cookie ^ u64::from(is_wrong)).to_le_bytes());
        for text in [room, name] {
            bytes.extend((text.len() as u16).to_le_bytes());
            bytes.extend(text);
        }
        self.send(endpoint, &bytes);
    }

    /// A datagram of a session, whether it is this endpoint's or not. Its number is the next, or
    /// so many ahead.
    pub fn say(&mut self, endpoint: usize, session: usize, kind: u8, ahead: i8, payload: &[u8]) {
        let heard = self.endpoints[endpoint % ADDRESSES.len()].heard;
        let bytes = match self.session(session) {
            Some(session) => session.datagram(kind, ahead, heard, payload),
            None => Session::unknown().datagram(kind, ahead, heard, payload),
        };
        self.send(endpoint, &bytes);
    }

    /// The answer to the last Ping that came to the endpoint.
    pub fn pong(&mut self, endpoint: usize, session: usize) {
        let nonce = self.endpoints[endpoint % ADDRESSES.len()].nonce();
        self.say(endpoint, session, 4, 0, &nonce);
    }

    /// Half of the numbers stand for those who came by a stream, half for those who came by hello.
    fn session(&mut self, number: usize) -> Option<&mut Session> {
        let index = number / 2;
        let session = match number % 2 {
            0 => &mut self.streams[index % STREAMS].session,
            _ => &mut self.endpoints[index % ADDRESSES.len()].session,
        };
        session.as_mut()
    }
}

/// What the service does.
impl Town {
    fn input(&mut self, input: Input<'_>) {
        let mut env = Env {
            now: self.now,
            dice: &mut self.dice,
            out: &mut self.out,
        };
        self.service.handle(&mut env, input);
        let mut out = std::mem::take(&mut self.out);
        for effect in out.effects() {
            self.perform(&effect);
        }
        out.clear();
        self.out = out;
    }

    fn perform(&mut self, effect: &Effect<'_>) {
        match *effect {
            Effect::Datagram { path, bytes } => {
                let mut streams = self.streams.iter().filter(|it| it.open.is_some());
                let ip = path.remote.ip();
                let is_ours = |it: &Stream| self.endpoints[it.address].path.remote.ip() == ip;
                let has_stream = streams.any(is_ours);
                let mut endpoints = self.endpoints.iter_mut();
                let to = endpoints.find(|it| it.path == path);
                to.expect("sent to nobody").hears(bytes, has_stream);
            }
            Effect::Stream { conn, bytes } => {
                let stream = self.opened(conn).expect("written to, and closed");
                if let [8, 0, 2, token @ ..] = bytes {
                    stream.session = Some(Session::new(1, &token[..4]));
                }
            }
            Effect::Settled { conn } => assert!(self.opened(conn).is_some()),
            Effect::Close { conn, .. } => {
                self.opened(conn).expect("closed twice").open = None;
            }
            Effect::Warning { what, .. } => assert!(!what.is_empty()),
        }
    }

    fn opened(&mut self, conn: Conn) -> Option<&mut Stream> {
        let mut streams = self.streams.iter_mut();
        streams.find(|stream| stream.open == Some(conn))
    }
}
