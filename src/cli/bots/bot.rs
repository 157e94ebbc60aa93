//! One bot: a player that sends its marks at a fixed rate and notes whose come back.

use anteroom::driver::{Driver, End, Notice, State};

use super::ledger::{Ledger, Peer};
use super::mark::{Crew, Mark};

/// Players of a game.
pub const PLAYERS: usize = 4;

/// How a bot's login went, and its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The server has not answered.
    LoggingIn,
    /// The login was accepted.
    LoggedIn,
    /// It plays.
    Playing,
    /// It has played, and logs in again.
    Rejoining,
    /// It is over; whether it ever played.
    Over {
        /// Why.
        end: End,
        /// Whether the login had succeeded.
        has_played: bool,
    },
}

/// One player.
pub struct Bot {
    pub driver: Driver,
    pub stage: Stage,
    /// The others of this run in its game, by their numbers.
    pub peers: [Option<Peer>; PLAYERS],
    /// When it sends next, in microseconds; never while that is the largest number.
    pub sends_at_us: u64,
    /// Which address it was connected to.
    pub attempt: usize,
    /// How often it has come to play.
    pub joins: u32,
    sequence: u32,
}

impl Bot {
    /// One that has begun to log in.
    pub fn new(driver: Driver, attempt: usize) -> Self {
        Self {
            driver,
            attempt,
            joins: 0,
            stage: Stage::LoggingIn,
            peers: [const { None }; PLAYERS],
            sends_at_us: u64::MAX,
            sequence: 0,
        }
    }

    /// How much is still to arrive from others.
    pub fn outstanding(&self) -> u64 {
        self.peers.iter().flatten().map(Peer::outstanding).sum()
    }

    /// Its own number in its game.
    pub fn number(&self) -> Option<usize> {
        self.driver.player().map(usize::from)
    }

    /// Takes what has come. Returns whether its stage has changed.
    pub fn poll(&mut self, crew: &Crew, now_us: impl Fn() -> u64, ledger: &mut Ledger) -> bool {
        let (peers, joins) = (&mut self.peers, &mut self.joins);
        let state = self.driver.poll(&mut |notice| match notice {
            Notice::Accepted { .. } => *peers = Default::default(),
            Notice::Joined => *joins += 1,
            Notice::PlayerJoined { player, name } => {
                if let Some(slot) = peers.get_mut(usize::from(player)) {
                    *slot = crew.bot_of(name).map(Peer::new);
                }
            }
            Notice::PlayerLeft { player, .. } => {
                if let Some(slot) = peers.get_mut(usize::from(player)) {
                    *slot = None;
                }
            }
            Notice::Data { bytes } => hear(peers, crew, bytes, &now_us, ledger),
            _ => {}
        });
        let stage = match state {
            State::Playing => Stage::Playing,
            State::Connecting | State::LoggingIn | State::Binding if self.joins > 0 => {
                Stage::Rejoining
            }
            State::Connecting | State::LoggingIn => Stage::LoggingIn,
            State::Binding => Stage::LoggedIn,
            State::Ended(_) if matches!(self.stage, Stage::Over { .. }) => self.stage,
            State::Ended(end) => Stage::Over {
                end,
                has_played: self.joins > 0,
            },
        };
        std::mem::replace(&mut self.stage, stage) != stage
    }

    /// Sends its next mark; returns its sequence if it plays.
    pub fn send(&mut self, mut mark: Mark) -> Option<u32> {
        mark.sequence = self.sequence;
        self.driver.send(&mark.bytes()).ok()?;
        self.sequence += 1;
        Some(mark.sequence)
    }
}

/// What the relay passed on: the sender's number, and its mark.
fn hear(
    peers: &mut [Option<Peer>; PLAYERS],
    crew: &Crew,
    bytes: &[u8],
    now_us: impl Fn() -> u64,
    ledger: &mut Ledger,
) {
    let Some((player, bytes)) = bytes.split_first() else {
        return;
    };
    let peer = peers.get_mut(usize::from(*player)).and_then(Option::as_mut);
    let mark = Mark::read(bytes).filter(|mark| mark.crew == crew.tag());
    if let (Some(peer), Some(mark)) = (peer, mark)
        && peer.bot == mark.bot as usize
    {
        ledger.received += 1;
        ledger.delay_us.add(now_us().saturating_sub(mark.sent_us));
        peer.hear(mark.sequence, mark.sent_us);
    }
}
