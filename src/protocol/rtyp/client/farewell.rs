//! Version 2's way out: ClientBye, said three times since nothing acknowledges it.

use super::super::wire::{Reason, kind};
use super::session::Session;
use crate::engine::{Env, Time};

/// So often it is said …
const BYES: u8 = 3;
/// … with this time between.
const BYE_EVERY_MS: u64 = 100;

/// What is left to be said of a session that is over.
#[derive(Debug)]
pub struct Farewell {
    session: Box<Session>,
    left: u8,
    next_at: Time,
}

impl Farewell {
    /// The first ClientBye leaves.
    pub fn new(env: &mut Env<'_>, session: Box<Session>) -> Self {
        let mut farewell = Self {
            session,
            left: BYES,
            next_at: env.now,
        };
        farewell.tick(env);
        farewell
    }

    /// When the next one is due.
    pub fn deadline(&self) -> Time {
        self.next_at
    }

    /// Says it once more, if that is due. Returns whether it was the last time.
    pub fn tick(&mut self, env: &mut Env<'_>) -> bool {
        if self.next_at <= env.now {
            let reason = Reason::Left.code();
            self.session.send(env, kind::CLIENT_BYE, |w| w.u8(reason));
            self.left -= 1;
            self.next_at = env.now + BYE_EVERY_MS;
        }
        self.left == 0
    }
}
