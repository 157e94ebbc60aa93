//! `anteroom chat`: a player who talks. What is typed is said; who comes, talks and goes is
//! printed.

use std::fmt;
use std::io::{self, Write};
use std::sync::mpsc::TryRecvError;
use std::time::{Duration, Instant};

use anteroom::driver::{Driver, End, Reason, SendError, State};
use mio::{Events, Token};

use super::args;
use super::endpoint::Endpoint;
use input::Input;
use lines::Line;
use screen::Screen;

mod input;
mod lines;
mod rooms;
mod screen;

const STREAM: Token = Token(0);
const DATAGRAMS: Token = Token(1);

/// Who quits waits so long until what was said has arrived …
const QUIT: Duration = Duration::from_secs(2);
/// … and who reaches the end of the input, which may be a long file, so long.
const END_OF_INPUT: Duration = Duration::from_secs(60);

/// Talks until somebody ends it.
///
/// # Errors
/// [`Failure`] if there was no session, or it was ended by anything but leaving and the server's
/// shutdown.
pub fn run(arguments: args::Chat) -> Result<(), Failure> {
    if let Some(rooms) = arguments.rooms {
        return rooms::run(&arguments.server, &arguments.name, rooms);
    }
    let endpoint = Endpoint::resolve(&arguments.server, arguments.v2);
    let mut endpoint = endpoint.map_err(Failure::System)?;
    let mut chat = Chat::new(&mut endpoint, &arguments.name).map_err(Failure::System)?;
    loop {
        match chat.run().map_err(Failure::System)? {
            End::Left | End::Logout(Reason::Shutdown) => return Ok(()),
            end if endpoint.has_another(endpoint.attempt(), end) => {
                chat.connect(&mut endpoint).map_err(Failure::System)?;
            }
            end => return Err(Failure::Ended(end)),
        }
    }
}

/// Why it ends with a failure.
#[derive(Debug)]
pub enum Failure {
    /// The host is unknown, or there are no sockets or threads.
    System(io::Error),
    /// The session was ended, or never was.
    Ended(End),
    /// As much of a session of rooms.
    RoomsEnded(anteroom::driver::rooms::End),
    /// The account was not made, or nobody was logged in, for this reason.
    NotIn(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(error) => error.fmt(f),
            Self::Ended(end) => end.fmt(f),
            Self::RoomsEnded(end) => end.fmt(f),
            Self::NotIn(why) => f.write_str(why),
        }
    }
}

/// The conversation.
struct Chat {
    name: String,
    driver: Driver,
    input: Input,
    screen: Screen,
    /// A line that has found no room yet.
    unsaid: Option<String>,
    /// When it leaves at the latest, once it is to leave.
    leaves_at: Option<Instant>,
}

impl Chat {
    fn new(endpoint: &mut Endpoint, name: &str) -> io::Result<Self> {
        let mut chat = Self {
            name: name.to_owned(),
            driver: endpoint.connect(name)?,
            input: Input::new()?,
            screen: Screen::new(name),
            unsaid: None,
            leaves_at: None,
        };
        chat.register()?;
        Ok(chat)
    }

    /// Connects again, to another address.
    fn connect(&mut self, endpoint: &mut Endpoint) -> io::Result<()> {
        self.driver = endpoint.connect(&self.name)?;
        self.register()
    }

    fn register(&mut self) -> io::Result<()> {
        let registry = self.input.poll.registry();
        self.driver.register(registry, STREAM, DATAGRAMS)
    }

    /// Talks until the session is over and its connection closed; returns why.
    fn run(&mut self) -> io::Result<End> {
        let mut events = Events::with_capacity(16);
        loop {
            let screen = &mut self.screen;
            let state = self.driver.poll(&mut |notice| screen.notice(notice));
            self.listen(state);
            let has_screen = self.screen.flush();
            match self.driver.state() {
                State::Ended(end) if self.driver.is_closed() => return Ok(end),
                State::Ended(_) => {}
                _ if self.is_to_leave(has_screen) => self.driver.logout(),
                _ => {}
            }
            let wait = self.wait();
            match self.input.poll.poll(&mut events, wait) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
        }
    }

    /// How long nothing is to be done if nothing comes.
    fn wait(&mut self) -> Option<Duration> {
        let leaving = self
            .leaves_at
            .map(|at| at.saturating_duration_since(Instant::now()));
        self.driver.deadline().into_iter().chain(leaving).min()
    }

    /// Says what was typed, as far as there is room. Before there is a session it waits.
    fn listen(&mut self, state: State) {
        while state == State::Playing && self.leaves_at.is_none() {
            let line = match self.unsaid.take() {
                Some(text) => Ok(Line::Text(text)),
                None => self.input.line(),
            };
            match line {
                Ok(Line::Text(text)) => {
                    if !self.say(text) {
                        return;
                    }
                }
                Ok(Line::Unusable) => self.screen.tell("not sent: too long, or no text"),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => self.leave_within(END_OF_INPUT),
            }
        }
    }

    /// Does what a line says; returns false if it has to be said later.
    fn say(&mut self, text: String) -> bool {
        let said = match text.as_str() {
            "" => Ok(()),
            "/start" => self.driver.start(),
            "/quit" => {
                self.leave_within(QUIT);
                Ok(())
            }
            command if command.starts_with('/') => {
                self.screen.tell("there are /start and /quit");
                Ok(())
            }
            line => self.driver.chat(line),
        };
        match said {
            Ok(()) => {}
            Err(SendError::Full) => {
                self.unsaid = Some(text);
                return false;
            }
            Err(error) => self.screen.tell(&format!("not sent: {error}")),
        }
        true
    }

    fn leave_within(&mut self, patience: Duration) {
        self.leaves_at = Some(Instant::now() + patience);
    }

    /// Whether now is the time to leave: what was said has arrived, or nobody waits for it.
    fn is_to_leave(&self, has_screen: bool) -> bool {
        let is_done = self.leaves_at.is_some_and(|latest| {
            self.driver.client().is_all_acknowledged() || latest <= Instant::now()
        });
        is_done || !has_screen || self.input.is_stopped()
    }
}

/// Writes to standard output and flushes; false if nobody reads it any more.
fn write(text: &str) -> bool {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .is_ok()
}
