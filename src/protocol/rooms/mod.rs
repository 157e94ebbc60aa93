#![doc = include_str!("PROTOCOL.md")]

use crate::engine::table::Due;
use crate::engine::{Env, Event, Game, Input, Key, Machine, Time};
use crate::guard::limit::Addresses;
use crate::guard::limits::Limits;

mod client;
mod connection;
mod core;
mod counters;
mod directory;
mod packets;
mod replies;
mod requests;
mod session;
pub mod wire;

pub use client::{Ask, Client, End, NotJoined, Notice, SHOT, Seen, SendError, State};

use self::core::{Cause, Core, News};
use replies::Acting;
use session::due;
use wire::Reason;

/// The rooms service without sockets: a [`Machine`] that any driver may feed.
pub struct Service {
    game: Box<dyn Game + Send>,
    core: Core,
    /// The game's `wake` is not believed before this time, so that one that never moves on
    /// cannot make the loop spin.
    game_rests_until: Time,
}

/// What a service is told when it starts.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The service's index in its process: handles and tickets carry it.
    pub service: u8,
    /// The UDP port that clients are told.
    pub udp_port: u16,
    /// The limits of a peer.
    pub limits: Limits,
    /// Whether loopback addresses are limited like others.
    pub limit_loopback: bool,
    /// The table of addresses, one for all services of a process.
    pub addresses: Addresses,
}

impl Default for Settings {
    /// The limits' defaults, and a table of addresses of its own.
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            service: 0,
            udp_port: 4243,
            addresses: Addresses::new(&limits),
            limits,
            limit_loopback: false,
        }
    }
}

impl Service {
    /// A service with no rooms yet. `game` is played in all of them, and answers who may log in.
    pub fn new(game: Box<dyn Game + Send>, settings: &Settings) -> Self {
        Self {
            game,
            core: Core::new(settings),
            game_rests_until: Time::ZERO,
        }
    }

    /// Tells the game of something.
    fn tell(&mut self, env: &mut Env<'_>, event: Event<'_>) {
        self.game.event(
            env.now,
            event,
            &mut Acting {
                core: &mut self.core,
                env,
            },
        );
    }

    /// Tells the game who came and went, until all is said.
    fn settle(&mut self, env: &mut Env<'_>) {
        while let Some(news) = self.core.news.pop_front() {
            match news {
                News::Joined(player, name) => {
                    self.tell(
                        env,
                        Event::Joined {
                            player,
                            name: &name,
                        },
                    );
                }
                News::Left(player, reason) => self.tell(env, Event::Left { player, reason }),
            }
        }
    }

    fn tick(&mut self, env: &mut Env<'_>) {
        while let Some(due) = self.core.engine.due(env.now) {
            match due {
                Due::Session(key, which) => self.session_due(env, key, which),
                // Every connection is a session, and nothing is said to one that is over.
                Due::Link(_) | Due::Farewell(_) => {}
            }
        }
        if self.game_wake().is_some_and(|wake| wake <= env.now) {
            self.game_rests_until = env.now + 1;
            self.game.tick(
                env.now,
                &mut Acting {
                    core: &mut self.core,
                    env,
                },
            );
        }
    }

    fn session_due(&mut self, env: &mut Env<'_>, key: Key, which: usize) {
        match which {
            due::SILENCE => self.silent(env, key),
            due::REPEAT => self.core.say_again(env, key),
            due::LOGIN => self.core.login_unanswered(key),
            _ => self.core.register_unanswered(env, key),
        }
    }

    /// Ends a session that was silent for too long, or looks again when it would be.
    fn silent(&mut self, env: &mut Env<'_>, key: Key) {
        let Some(session) = self.core.engine.get(key) else {
            return;
        };
        let over_at = session.heard + connection::SILENCE_MS;
        if env.now < over_at {
            self.core.engine.arm(key, due::SILENCE, over_at);
        } else {
            self.core.end(env, key, Cause::Server(Reason::TimedOut));
        }
    }

    fn game_wake(&self) -> Option<Time> {
        // Nobody is left to play, and the end waits for nothing but farewells.
        if self.core.is_stopping {
            return None;
        }
        self.game.wake().map(|wake| wake.max(self.game_rests_until))
    }
}

impl Machine for Service {
    fn handle(&mut self, env: &mut Env<'_>, input: Input<'_>) {
        match input {
            Input::Opened { conn, peer } => self.opened(env, conn, peer),
            Input::Stream { conn, .. } => self.stream(env, conn),
            Input::Closed { conn } => self.closed(env, conn),
            Input::Datagram { path, bytes } => self.datagram(env, path, bytes),
            Input::Tick => self.tick(env),
            Input::Command(command) => command(&mut Acting {
                core: &mut self.core,
                env,
            }),
            Input::Stop => self.stop(env),
        }
        self.settle(env);
    }

    fn deadline(&self) -> Option<Time> {
        let engine = self.core.engine.deadline();
        engine.into_iter().chain(self.game_wake()).min()
    }

    fn stats(&self) -> Vec<(&'static str, u64)> {
        let sessions = self.core.engine.session_count() as u64;
        let rooms = self.core.directory.len() as u64;
        let now = [("sessions", sessions), ("rooms", rooms)];
        now.into_iter().chain(self.core.counters.named()).collect()
    }
}
