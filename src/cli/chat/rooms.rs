//! `anteroom chat --rooms`: a user who talks in a room.

use std::fmt::{Display, Write as _};
use std::io::{self, IsTerminal};
use std::sync::mpsc::TryRecvError;
use std::time::{Duration, Instant};

use anteroom::driver::rooms::{
    Ask, Driver, End, NotJoined, Notice, Reason, Rooms, SendError, State,
};
use anteroom::guard::escape::escaped;
use mio::Events;

use super::input::Input;
use super::lines::{self, Line};
use super::{DATAGRAMS, END_OF_INPUT, Failure, QUIT, STREAM, write};
use crate::cli::args::ChatRooms;
use crate::cli::endpoint::Endpoint;

/// A room that is made here is for so many.
const PLAYERS: u8 = 16;
const COMMANDS: &str = "there are /rooms, /join NAME [PASSWORD], /create NAME [PASSWORD], /leave \
                        and /quit";

/// Talks until somebody ends it.
///
/// # Errors
/// [`Failure`] if nobody was logged in, or the session was ended by anything but leaving and the
/// server's shutdown.
pub fn run(server: &str, name: &str, mut arguments: ChatRooms) -> Result<(), Failure> {
    let mut endpoint = Endpoint::resolve(server, false).map_err(Failure::System)?;
    let password = match arguments.password.take() {
        Some(password) => password,
        None => ask_password().map_err(Failure::System)?,
    };
    let chat = Chat::new(&mut endpoint, name, password, arguments);
    let mut chat = chat.map_err(Failure::System)?;
    loop {
        let end = chat.run().map_err(Failure::System)?;
        match (chat.failure.take(), end) {
            (Some(why), _) => return Err(Failure::NotIn(why)),
            (None, End::Left | End::Logout(Reason::Shutdown)) => return Ok(()),
            (None, end) if endpoint.has_another_for_rooms(endpoint.attempt(), end) => {
                chat.connect(&mut endpoint).map_err(Failure::System)?;
            }
            (None, end) => return Err(Failure::RoomsEnded(end)),
        }
    }
}

/// Asks for the password. The standard library cannot keep a terminal from showing it, and who
/// types it is told so.
fn ask_password() -> io::Result<String> {
    if io::stdin().is_terminal() {
        write("password (it will be shown): ");
    }
    Ok(lines::read_one()?.unwrap_or_default())
}

/// The conversation.
struct Chat {
    name: String,
    password: String,
    driver: Driver,
    input: Input,
    registers: bool,
    /// The room to be in at once, and its password.
    first_room: Option<(String, String)>,
    /// The room to be made if it cannot be joined.
    to_make: Option<(String, String)>,
    text: String,
    /// A line whose turn has not come.
    unsaid: Option<String>,
    /// Why nobody is logged in.
    failure: Option<String>,
    /// When it leaves at the latest, once it is to leave.
    leaves_at: Option<Instant>,
}

impl Chat {
    fn new(
        endpoint: &mut Endpoint,
        name: &str,
        password: String,
        arguments: ChatRooms,
    ) -> io::Result<Self> {
        let ChatRooms {
            register,
            room,
            room_password,
            ..
        } = arguments;
        let mut chat = Self {
            name: name.to_owned(),
            password,
            driver: endpoint.connect_to_rooms()?,
            input: Input::new()?,
            registers: register,
            first_room: room.map(|room| (room, room_password)),
            to_make: None,
            text: String::new(),
            unsaid: None,
            failure: None,
            leaves_at: None,
        };
        chat.register()?;
        Ok(chat)
    }

    /// Connects again, to another address.
    fn connect(&mut self, endpoint: &mut Endpoint) -> io::Result<()> {
        self.driver = endpoint.connect_to_rooms()?;
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
            let mut steps = Vec::new();
            let text = &mut self.text;
            self.driver
                .poll(&mut |notice| steps.extend(tell(text, &notice)));
            steps.into_iter().for_each(|step| self.step(step));
            self.listen();
            let has_screen = self.text.is_empty() || write(&self.text);
            self.text.clear();
            match self.driver.state() {
                State::Ended(end) if self.driver.is_closed() => return Ok(end),
                State::Open | State::Connecting | State::Greeting
                    if self.is_to_leave(has_screen) =>
                {
                    self.driver.logout();
                }
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

    /// Whether now is the time to leave: what was said is answered, or nobody waits for it.
    fn is_to_leave(&self, has_screen: bool) -> bool {
        let is_done = self.leaves_at.is_some_and(|latest| {
            !self.driver.client().is_asking(Ask::Chat) || latest <= Instant::now()
        });
        is_done || !has_screen || self.failure.is_some() || self.input.is_stopped()
    }

    fn leave_within(&mut self, patience: Duration) {
        self.leaves_at = Some(Instant::now() + patience);
    }
}

/// What follows from a notice.
enum Step {
    /// Register or log in.
    Enter,
    LogIn,
    FirstRoom,
    /// The room cannot be joined: perhaps there is none yet.
    MakeRoom,
    /// It is in a room.
    In,
    Fail(String),
}

/// The way in.
impl Chat {
    fn step(&mut self, step: Step) {
        let done = match step {
            Step::Enter if self.registers => {
                self.driver.register_account(&self.name, &self.password)
            }
            Step::Enter | Step::LogIn => self.driver.login(&self.name, &self.password),
            Step::FirstRoom => {
                self.to_make = self.first_room.take();
                match &self.to_make {
                    Some((room, password)) => self.driver.join_room(room, password),
                    None => {
                        line(&mut self.text, COMMANDS);
                        Ok(())
                    }
                }
            }
            Step::MakeRoom => match self.to_make.take() {
                Some((room, password)) => self.driver.create_room(&room, &password, PLAYERS),
                None => {
                    line(&mut self.text, NotJoined::Refused);
                    Ok(())
                }
            },
            Step::In => {
                self.to_make = None;
                Ok(())
            }
            Step::Fail(why) => {
                self.failure = Some(why);
                Ok(())
            }
        };
        if let Err(error) = done {
            self.failure = Some(error.to_string());
        }
    }
}

/// What is typed.
impl Chat {
    /// Says what was typed, one line after the other is answered. Before there is a room to be in,
    /// if one was asked for, it waits.
    fn listen(&mut self) {
        while self.leaves_at.is_none() && self.is_ready() {
            let typed = match self.unsaid.take() {
                Some(text) => Ok(Line::Text(text)),
                None => self.input.line(),
            };
            match typed {
                Ok(Line::Text(text)) => match self.say(&text) {
                    Ok(()) => {}
                    Err(SendError::Waiting) => {
                        self.unsaid = Some(text);
                        return;
                    }
                    Err(error) => line(&mut self.text, format_args!("not sent: {error}")),
                },
                Ok(Line::Unusable) => line(&mut self.text, "not sent: too long, or no text"),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => self.leave_within(END_OF_INPUT),
            }
        }
    }

    fn is_ready(&self) -> bool {
        let client = self.driver.client();
        let is_moving = [Ask::JoinRoom, Ask::CreateRoom, Ask::LeaveRoom]
            .into_iter()
            .any(|ask| client.is_asking(ask));
        client.user().is_some() && !is_moving
    }

    /// Does what a line says.
    fn say(&mut self, text: &str) -> Result<(), SendError> {
        let mut words = text.split_whitespace();
        let driver = &mut self.driver;
        match (words.next().unwrap_or_default(), words.next(), words.next()) {
            ("/rooms", None, _) => driver.rooms(0),
            ("/join", Some(room), password) => driver.join_room(room, password.unwrap_or_default()),
            ("/create", Some(room), password) => {
                driver.create_room(room, password.unwrap_or_default(), PLAYERS)
            }
            ("/leave", None, _) => driver.leave_room(),
            ("/quit", None, _) => {
                self.leave_within(QUIT);
                Ok(())
            }
            (command, _, _) if command.starts_with('/') => {
                line(&mut self.text, COMMANDS);
                Ok(())
            }
            ("", _, _) => Ok(()),
            _ => driver.chat(text),
        }
    }
}

/// Prints what a notice says; returns what follows from it.
fn tell(text: &mut String, notice: &Notice<'_>) -> Option<Step> {
    match notice {
        Notice::Opened => return Some(Step::Enter),
        Notice::Registered => {
            line(text, "there is an account now");
            return Some(Step::LogIn);
        }
        Notice::NotRegistered(why) => return Some(Step::Fail(format!("no account: {why}"))),
        Notice::LoggedIn => {
            line(text, "logged in");
            return Some(Step::FirstRoom);
        }
        Notice::NotLoggedIn => {
            return Some(Step::Fail("not logged in: wrong name or password".into()));
        }
        Notice::NoAnswer(ask @ (Ask::Login | Ask::Register)) => {
            return Some(Step::Fail(no_answer(*ask)));
        }
        Notice::NoAnswer(ask) => line(text, no_answer(*ask)),
        Notice::InRoom { name, seat } => {
            let room = escaped(name);
            line(
                text,
                format_args!("you are in the room {room}, seat {seat}"),
            );
            return Some(Step::In);
        }
        Notice::NotJoined(NotJoined::Refused) => return Some(Step::MakeRoom),
        Notice::NotJoined(why) => line(text, why),
        Notice::NotCreated(why) => line(text, format_args!("no room: {why}")),
        Notice::OutOfRoom { is_over: true } => line(text, "the room is over"),
        Notice::OutOfRoom { is_over: false } => line(text, "you are in no room"),
        Notice::Rooms(page) => list(text, page),
        Notice::Chat { user, text: said } => {
            let (user, said) = (escaped(user), escaped(said));
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{user}: {said}");
        }
        // Every other end is this side's own, or a failure, which the program tells.
        Notice::Ended(end @ End::Logout(Reason::Shutdown)) => line(text, end),
        _ => {}
    }
    None
}

fn list(text: &mut String, page: &Rooms<'_>) {
    line(text, format_args!("{} rooms", page.total));
    for room in page.clone() {
        let name = escaped(room.name);
        let (players, max) = (room.players, room.max_players);
        let private = if room.private {
            ", with a password"
        } else {
            ""
        };
        line(text, format_args!("  {name}: {players} of {max}{private}"));
    }
}

fn no_answer(ask: Ask) -> String {
    let what = match ask {
        Ask::Login => "the login",
        Ask::Register => "the question for an account",
        Ask::Chat => "a line",
        Ask::CreateRoom => "the question for a room",
        Ask::DeleteRoom | Ask::LeaveRoom | Ask::JoinRoom => "the question about the room",
        Ask::Rooms => "the question for the rooms",
    };
    format!("the server does not answer {what}")
}

/// A line that nobody said.
fn line(text: &mut String, what: impl Display) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "* {what}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_foreign_is_printed_raw() {
        let mut text = String::new();
        tell(
            &mut text,
            &Notice::Chat {
                user: "Lu\u{202E}ke",
                text: "\u{9B}2J hi",
            },
        );
        tell(
            &mut text,
            &Notice::InRoom {
                name: "\u{202E}den",
                seat: 3,
            },
        );
        let printed = "Lu\\u{202e}ke: \\u{9b}2J hi\n* you are in the room \\u{202e}den, seat 3\n";
        assert_eq!(text, printed);
    }
}
