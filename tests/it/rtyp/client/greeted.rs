//! A client of version 2 and the host it says hello to.

use anteroom::engine::Env;
use anteroom::protocol::rtyp::{Client, End, State};

use super::super::peer::SERVER;
use super::greeter::{Greeter, Greeting, Said, kind};
use super::{CLIENT, OWN, Player, address};
use crate::world::machine::Shared;
use crate::world::seeds::seed;
use crate::world::{PeerId, World};

/// The secret that the host gives.
pub const SECRET: u64 = 0xFEED_FACE_0BAD_F00D;
/// What it calls the player in public.
pub const PUBLIC: u32 = 0xCAFE_D00D;

/// A client and the host.
pub struct Greeted {
    pub world: World<Greeter>,
    pub player: Shared<Player>,
    host: PeerId,
}

impl Greeted {
    /// The client's first hello is on its way to this host.
    pub fn by(host: Greeter) -> Self {
        Self::into_room(host, "")
    }

    /// The same, to enter a game by name.
    pub fn into_room(host: Greeter, room: &str) -> Self {
        let mut world = World::new(seed());
        let client = Client::v2(address(SERVER), "R9", room).expect("a good name");
        let player = Shared::new(Player::of(client));
        world.machine(Box::new(player.clone()), &[address(OWN)]);
        let host = world.add(host);
        Self {
            world,
            player,
            host,
        }
    }

    /// The client's first hello has come, and nothing answers it.
    pub fn unanswered() -> Self {
        let mut host = Greeter::new(SERVER, SECRET, PUBLIC);
        host.greeting = Greeting::SILENT;
        let mut greeted = Self::by(host);
        greeted.world.for_ms(5);
        assert_eq!(greeted.host().came.len(), 1);
        greeted
    }

    /// The client plays, and knows that it is heard.
    pub fn playing() -> Self {
        let mut greeted = Self::by(Greeter::new(SERVER, SECRET, PUBLIC));
        greeted.until(100, |player| player.client.rtt_ms().is_some());
        greeted
    }

    /// The client plays, and nothing that it says is answered.
    pub fn unheard() -> Self {
        let mut host = Greeter::new(SERVER, SECRET, PUBLIC);
        host.greeting.play = false;
        let mut greeted = Self::by(host);
        greeted.until(100, |player| player.count("Joined") == 1);
        greeted.world.for_ms(5);
        assert_eq!(greeted.newest().kind, kind::PING);
        greeted
    }

    /// Lets time pass until the condition holds.
    #[track_caller]
    pub fn until(&mut self, ms: u64, condition: impl Fn(&Player) -> bool) {
        let player = self.player.clone();
        self.world.until(ms, |_| condition(&player.get()));
    }

    pub fn host(&mut self) -> &mut Greeter {
        &mut self.world[self.host]
    }

    pub fn state(&self) -> State {
        self.player.get().client.state()
    }

    pub fn stat(&self, name: &str) -> u64 {
        self.world.stat(CLIENT, name)
    }

    /// What the client may do only with an environment.
    pub fn act<T>(&mut self, act: impl FnOnce(&mut Client, &mut Env<'_>) -> T) -> T {
        let player = self.player.clone();
        self.world
            .call(CLIENT, |env| act(&mut player.get().client, env))
    }

    /// The newest that the client said.
    pub fn newest(&mut self) -> Said {
        self.host().came.last().expect("it has spoken").1.clone()
    }

    /// The session is over for this reason, and so many farewells say so.
    #[track_caller]
    pub fn assert_ended(&mut self, end: End, byes: usize) {
        assert_eq!(self.state(), State::Ended(end));
        assert_eq!(self.player.get().count("Ended"), 1);
        let last = format!("Ended({end:?})");
        assert_eq!(self.player.get().notices().last(), Some(&&last[..]));
        self.world.for_ms(205);
        assert_eq!(self.host().of(kind::CLIENT_BYE).len(), byes);
        assert_eq!(self.world.deadline(CLIENT), None);
        let said = self.host().came.len();
        self.world.for_ms(60_000);
        assert_eq!(self.host().came.len(), said, "it still speaks");
    }
}
