#![doc = include_str!("PROTOCOL.md")]

use crate::engine::{Env, Event, Game, Input, Machine, Replies, Time};
use crate::guard::limit::Addresses;
use crate::guard::limits::Limits;

mod channel;
mod client;
mod core;
mod counters;
mod door;
mod games;
mod hello;
mod login;
mod play;
mod replies;
mod roam;
mod session;
pub mod wire;

pub use client::{BadHello, BadName, Client, End, Notice, SendError, State};

use self::core::{Core, News};
use replies::Acting;

/// The rtyp service without sockets: a [`Machine`] that any driver may feed.
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
    /// The UDP port that players are told.
    pub udp_port: u16,
    /// How many games there are, 1 to 65536.
    pub games: u32,
    /// By which a hello names them, each 1 to 16 bytes; empty: by their numbers from 1.
    pub names: Vec<String>,
    /// The limits of a peer.
    pub limits: Limits,
    /// Whether loopback addresses are limited like others.
    pub limit_loopback: bool,
    /// The table of addresses, one for all services of a process.
    pub addresses: Addresses,
}

impl Default for Settings {
    /// One game, the limits' defaults, and a table of addresses of its own.
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            service: 0,
            udp_port: 4242,
            games: 1,
            names: Vec::new(),
            addresses: Addresses::new(&limits),
            limits,
            limit_loopback: false,
        }
    }
}

impl Service {
    /// A service in which nobody plays yet.
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

    /// Sends what is due, and tells the game of who left by that, until all is said.
    fn settle(&mut self, env: &mut Env<'_>) {
        self.core.flush(env);
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
                News::Left(player, reason) => {
                    let reason = reason.code();
                    self.tell(env, Event::Left { player, reason });
                }
            }
            self.core.flush(env);
        }
    }

    fn tick(&mut self, env: &mut Env<'_>) {
        while let Some(due) = self.core.engine.due(env.now) {
            self.due(env, due);
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

    /// When the game's time comes; never once everybody has been sent away, since that is what a
    /// server that stops waits for.
    fn game_wake(&self) -> Option<Time> {
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
            Input::Stream { conn, bytes } => self.stream(env, conn, bytes),
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
        let game = self.game_wake();
        engine.into_iter().chain(game).min()
    }

    fn stats(&self) -> Vec<(&'static str, u64)> {
        let sessions = self.core.engine.session_count() as u64;
        std::iter::once(("sessions", sessions))
            .chain(self.core.counters.named())
            .collect()
    }
}

impl Service {
    /// Acts on the players as their game does, from outside of it.
    pub fn act(&mut self, env: &mut Env<'_>, act: impl FnOnce(&mut dyn Replies)) {
        act(&mut Acting {
            core: &mut self.core,
            env,
        });
        self.settle(env);
    }
}
