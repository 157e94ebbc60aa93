//! The command line as plain structs, parsed without touching the world.

use std::convert::Infallible;
use std::ffi::OsString;
use std::fmt::{self, Write as _};
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use anteroom::guard::escape::escaped_bytes;
use anteroom::guard::limits::{LimitError, Limits, TABLE};
use pico_args::Arguments;

const RTYP_PORT: u16 = 4242;
/// The port of rooms, unless another is given.
const ROOMS_PORT: u16 = 4243;
const SERVER: &str = "127.0.0.1:4242";
const ROOMS_SERVER: &str = "127.0.0.1:4243";
const GAMES: RangeInclusive<u32> = 1..=65_536;
const COUNT: RangeInclusive<u32> = 1..=10_000;
const SECONDS: RangeInclusive<u32> = 1..=u32::MAX;
const RATE_HZ: RangeInclusive<u32> = 1..=1000;
const NAME_BYTES: RangeInclusive<usize> = 1..=16;
const ROOM_BYTES: RangeInclusive<usize> = 1..=32;
const PASSWORD_BYTES: RangeInclusive<usize> = 1..=64;

/// What the program is asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Invocation {
    /// Print the usage.
    Help,
    /// Print the version.
    Version,
    /// Run a server.
    Serve(Serve),
    /// Run some players.
    Bots(Bots),
    /// Be a player who talks.
    Chat(Chat),
}

/// `anteroom serve`, and `anteroom` alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Serve {
    /// The addresses to listen on; none means the default ones.
    pub bind: Vec<IpAddr>,
    /// The port of rtyp, if it is served; 0 means any.
    pub rtyp: Option<u16>,
    /// The port of rooms, if it is served; 0 means any.
    pub rooms: Option<u16>,
    /// The file that rooms keeps its accounts in; none means memory.
    pub accounts: Option<PathBuf>,
    /// How many games rtyp hosts.
    pub games: u32,
    /// The UDP port that rtyp's clients are told, if it is not the one listened on.
    pub advertise_udp: Option<u16>,
    /// The limits in force.
    pub limits: Limits,
    /// Whether limits per IP hold for loopback too.
    pub limit_loopback: bool,
}

/// `anteroom bots`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bots {
    /// HOST:PORT of the server.
    pub server: String,
    /// How many players.
    pub count: u32,
    /// For how long, in seconds; none means until stopped.
    pub seconds: Option<u32>,
    /// How many Data datagrams each of them sends a second.
    pub rate_hz: u32,
    /// Whether they speak version 2 of the protocol.
    pub v2: bool,
    /// Whether they speak rooms instead of rtyp.
    pub rooms: bool,
}

/// `anteroom chat`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chat {
    /// HOST:PORT of the server.
    pub server: String,
    /// The player's name.
    pub name: String,
    /// Whether it speaks version 2 of the protocol.
    pub v2: bool,
    /// What it needs to speak rooms instead of rtyp.
    pub rooms: Option<ChatRooms>,
}

/// `anteroom chat --rooms`.
#[derive(Clone, PartialEq, Eq)]
pub struct ChatRooms {
    /// The user's password; none means that it is asked for.
    pub password: Option<String>,
    /// Whether the account is to be made first.
    pub register: bool,
    /// The room to be in, made if there is none of the name.
    pub room: Option<String>,
    /// The room's password; empty means none.
    pub room_password: String,
}

impl fmt::Debug for ChatRooms {
    /// Without the passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatRooms")
            .field("register", &self.register)
            .field("room", &self.room)
            .finish_non_exhaustive()
    }
}

/// Understands `arguments`, the program's own name not among them.
///
/// # Errors
/// [`UsageError`] for the first argument that is wrong.
pub fn parse(mut arguments: Vec<OsString>) -> Result<Invocation, UsageError> {
    let command = match arguments.first() {
        Some(first) if !first.as_encoded_bytes().starts_with(b"-") => arguments.remove(0),
        _ => OsString::from("serve"),
    };
    let mut arguments = Arguments::from_vec(arguments);
    if arguments.contains("--help") {
        return Ok(Invocation::Help);
    }
    if arguments.contains("--version") {
        return Ok(Invocation::Version);
    }
    let invocation = match command.to_str() {
        Some("serve") => Invocation::Serve(serve(&mut arguments)?),
        Some("bots") => Invocation::Bots(bots(&mut arguments)?),
        Some("chat") => Invocation::Chat(chat(&mut arguments)?),
        _ => return Err(UsageError::Unknown(command)),
    };
    match arguments.finish().into_iter().next() {
        Some(left_over) => Err(UsageError::Unknown(left_over)),
        None => Ok(invocation),
    }
}

fn serve(arguments: &mut Arguments) -> Result<Serve, UsageError> {
    let rtyp = service(arguments, "--rtyp", RTYP_PORT)?;
    let rooms = service(arguments, "--rooms", ROOMS_PORT)?;
    if rtyp.is_none() && rooms.is_none() {
        return Err(UsageError::NothingToServe);
    }
    Ok(Serve {
        bind: bind(arguments)?,
        rtyp,
        rooms,
        accounts: value(arguments, "--accounts")?.map(PathBuf::from),
        games: number(arguments, "--games", GAMES)?.unwrap_or(1),
        advertise_udp: port(arguments, "--advertise-udp")?,
        limits: limits(arguments)?,
        limit_loopback: flag(arguments, "--limit-loopback"),
    })
}

fn bots(arguments: &mut Arguments) -> Result<Bots, UsageError> {
    let rooms = flag(arguments, "--rooms");
    Ok(Bots {
        server: server(arguments, rooms)?,
        count: number(arguments, "--count", COUNT)?.unwrap_or(4),
        seconds: number(arguments, "--seconds", SECONDS)?,
        rate_hz: number(arguments, "--rate", RATE_HZ)?.unwrap_or(30),
        v2: !rooms && flag(arguments, "--v2"),
        rooms,
    })
}

fn chat(arguments: &mut Arguments) -> Result<Chat, UsageError> {
    let is_rooms = flag(arguments, "--rooms");
    Ok(Chat {
        server: server(arguments, is_rooms)?,
        name: name(arguments)?,
        v2: !is_rooms && flag(arguments, "--v2"),
        rooms: match is_rooms {
            true => Some(chat_rooms(arguments)?),
            false => None,
        },
    })
}

fn chat_rooms(arguments: &mut Arguments) -> Result<ChatRooms, UsageError> {
    Ok(ChatRooms {
        password: text(arguments, "--password", &PASSWORD_BYTES)?,
        register: flag(arguments, "--register"),
        room: text(arguments, "--room", &ROOM_BYTES)?,
        room_password: text(arguments, "--room-password", &PASSWORD_BYTES)?.unwrap_or_default(),
    })
}

fn bind(arguments: &mut Arguments) -> Result<Vec<IpAddr>, UsageError> {
    let mut addresses = Vec::new();
    while let Some(value) = next_value(arguments, "--bind")? {
        let address = value.to_str().and_then(ip_address);
        match address.filter(|address| !addresses.contains(address)) {
            Some(address) => addresses.push(address),
            None => {
                let allowed = "an IPv4 or IPv6 address, each once";
                return Err(UsageError::value("--bind", value, allowed));
            }
        }
    }
    Ok(addresses)
}

/// An IPv6 address may stand in the brackets in which the program prints it. An IPv4-mapped one
/// is the IPv4 address as which it is bound.
fn ip_address(text: &str) -> Option<IpAddr> {
    let unbracketed = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
    let address = match unbracketed {
        Some(inner) => inner.parse().ok().map(IpAddr::V6),
        None => text.parse().ok(),
    };
    address.map(|address: IpAddr| address.to_canonical())
}

/// The port of a service; `None` if it is off.
fn service(
    arguments: &mut Arguments,
    option: &'static str,
    default: u16,
) -> Result<Option<u16>, UsageError> {
    let Some(value) = value(arguments, option)? else {
        return Ok(Some(default));
    };
    if value == "off" {
        return Ok(None);
    }
    let port = value.to_str().and_then(|text| text.parse().ok());
    let port =
        port.ok_or_else(|| UsageError::value(option, value, "a port from 0 to 65535, or off"))?;
    Ok(Some(port))
}

fn limits(arguments: &mut Arguments) -> Result<Limits, UsageError> {
    let mut limits = Limits::default();
    while let Some(value) = next_value(arguments, "--limit")? {
        let Some((name, number)) = value.to_str().and_then(|text| text.split_once('=')) else {
            let names = TABLE.map(|line| line.name).join(", ");
            let allowed = format!("NAME=VALUE, with a NAME of {names}");
            return Err(UsageError::value("--limit", value, allowed));
        };
        // What is no number is outside every range, and the refusal names the range.
        let number = number.parse().unwrap_or(u64::MAX);
        limits.set(name, number).map_err(UsageError::Limit)?;
    }
    Ok(limits)
}

fn server(arguments: &mut Arguments, rooms: bool) -> Result<String, UsageError> {
    let Some(value) = value(arguments, "--server")? else {
        let default = if rooms { ROOMS_SERVER } else { SERVER };
        return Ok(default.to_owned());
    };
    match value.to_str().filter(|text| is_endpoint(text)) {
        Some(endpoint) => Ok(endpoint.to_owned()),
        None => {
            let allowed = "HOST:PORT, with a PORT from 1 to 65535";
            Err(UsageError::value("--server", value, allowed))
        }
    }
}

fn is_endpoint(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port != 0)
    })
}

fn name(arguments: &mut Arguments) -> Result<String, UsageError> {
    text(arguments, "--name", &NAME_BYTES)?.ok_or(UsageError::Missing("--name"))
}

/// A text of so many bytes without control characters.
fn text(
    arguments: &mut Arguments,
    option: &'static str,
    bytes: &RangeInclusive<usize>,
) -> Result<Option<String>, UsageError> {
    let Some(value) = value(arguments, option)? else {
        return Ok(None);
    };
    let is_right = |text: &&str| {
        bytes.contains(&text.len()) && !text.bytes().any(|byte| byte.is_ascii_control())
    };
    match value.to_str().filter(is_right) {
        Some(text) => Ok(Some(text.to_owned())),
        None => {
            let span = span(bytes);
            let allowed = format!("{span} bytes of UTF-8 without control characters");
            Err(UsageError::value(option, value, allowed))
        }
    }
}

fn number(
    arguments: &mut Arguments,
    option: &'static str,
    range: RangeInclusive<u32>,
) -> Result<Option<u32>, UsageError> {
    let Some(value) = value(arguments, option)? else {
        return Ok(None);
    };
    let number = value.to_str().and_then(|text| text.parse().ok());
    match number.filter(|number| range.contains(number)) {
        Some(number) => Ok(Some(number)),
        None => {
            let allowed = format!("a number from {} to {}", range.start(), range.end());
            Err(UsageError::value(option, value, allowed))
        }
    }
}

fn port(arguments: &mut Arguments, option: &'static str) -> Result<Option<u16>, UsageError> {
    let port = number(arguments, option, 1..=u32::from(u16::MAX))?;
    Ok(port.and_then(|port| u16::try_from(port).ok()))
}

fn flag(arguments: &mut Arguments, option: &'static str) -> bool {
    let mut given = false;
    while arguments.contains(option) {
        given = true;
    }
    given
}

/// The value of an option that may be given once.
fn value(arguments: &mut Arguments, option: &'static str) -> Result<Option<OsString>, UsageError> {
    let value = next_value(arguments, option)?;
    match arguments.contains(option) {
        true => Err(UsageError::Twice(option)),
        false => Ok(value),
    }
}

fn next_value(
    arguments: &mut Arguments,
    option: &'static str,
) -> Result<Option<OsString>, UsageError> {
    arguments
        .opt_value_from_os_str(option, |text| Ok::<_, Infallible>(text.to_owned()))
        .map_err(|_| UsageError::NoValue(option))
}

/// Which argument is wrong, and what it may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UsageError {
    /// There is no such sub-command or option.
    Unknown(OsString),
    /// The option may be given once.
    Twice(&'static str),
    /// The option stands last and without its value.
    NoValue(&'static str),
    /// The option must be given.
    Missing(&'static str),
    /// The value is not one of those allowed.
    Value {
        /// Of which option.
        option: &'static str,
        /// As it was given.
        value: OsString,
        /// What may be given.
        allowed: String,
    },
    /// `--limit` names no limit, or a value outside its range.
    Limit(LimitError),
    /// Every protocol is off.
    NothingToServe,
}

impl UsageError {
    fn value(option: &'static str, value: OsString, allowed: impl Into<String>) -> Self {
        let allowed = allowed.into();
        Self::Value {
            option,
            value,
            allowed,
        }
    }
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(argument) => {
                let argument = escaped_bytes(argument.as_encoded_bytes());
                write!(f, "unknown argument `{argument}`")
            }
            Self::Twice(option) => write!(f, "`{option}` is given twice"),
            Self::NoValue(option) => write!(f, "`{option}` needs a value"),
            Self::Missing(option) => write!(f, "`{option}` is needed"),
            Self::Value {
                option,
                value,
                allowed,
            } => {
                let value = escaped_bytes(value.as_encoded_bytes());
                write!(f, "`{option} {value}`: allowed is {allowed}")
            }
            Self::Limit(error) => write!(f, "`--limit`: {error}"),
            Self::NothingToServe => f.write_str("`--rtyp off --rooms off` leaves nothing to serve"),
        }
    }
}

impl std::error::Error for UsageError {}

/// What `--help` prints: the usage, the defaults and the limits.
pub fn help() -> String {
    let mut text = format!(
        "\
anteroom {version}: the session server of small multiplayer games

anteroom [serve] [OPTION]...     run a server
  --bind IP             listen here, may be repeated; default 0.0.0.0, and [::] if there is IPv6
  --rtyp PORT|off       TCP and UDP port of rtyp, 0 for any; default {RTYP_PORT}
  --rooms PORT|off      TCP and UDP port of rooms, 0 for any; default {ROOMS_PORT}
  --accounts FILE       keep the accounts of rooms in this file; default in memory
  --games N             how many games rtyp hosts, {games}; default 1
  --advertise-udp PORT  the UDP port that clients are told, if it is not the one listened on
  --limit NAME=VALUE    set a limit, may be repeated; see below
  --limit-loopback      limits per IP address hold for loopback too

anteroom bots [OPTION]...        load and demonstration
  --server HOST:PORT    default {SERVER}
  --count N             how many players, {count}; default 4
  --seconds S           for how long, {seconds}; default until stopped
  --rate HZ             datagrams a second from each, {rate}; default 30
  --v2                  speak version 2 of rtyp: over UDP alone
  --rooms               speak rooms, as ships of the arena; default server {ROOMS_SERVER}

anteroom chat --name NAME [OPTION]...
  --name NAME           {name} bytes without control characters
  --server HOST:PORT    default {SERVER}
  --v2                  speak version 2 of rtyp: over UDP alone
  --rooms               speak rooms, as the user NAME; default server {ROOMS_SERVER}
    --password P        the user's password; default asked for
    --register          make the account first
    --room NAME         be in this room, which is made if there is none; {room} bytes
    --room-password P   the room's password; default none

anteroom --help | --version

The server prints a line for each service and then `ready`; it logs to standard error, as much as
RUST_LOG says (default info). SIGTERM or SIGINT: it says farewell to everyone and exits.

Limits           default  range
",
        version = env!("CARGO_PKG_VERSION"),
        games = span(&GAMES),
        count = span(&COUNT),
        seconds = span(&SECONDS),
        rate = span(&RATE_HZ),
        name = span(&NAME_BYTES),
        room = span(&ROOM_BYTES),
    );
    for line in &TABLE {
        let range = format!("{} to {}", line.min, line.max);
        let (name, default, meaning) = (line.name, line.default, line.meaning);
        writeln!(text, "  {name:14} {default:>9}  {range:14}  {meaning}")
            .expect("writing to a string cannot fail");
    }
    text
}

fn span<T: fmt::Display>(range: &RangeInclusive<T>) -> String {
    format!("{} to {}", range.start(), range.end())
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use anteroom::guard::limits::Limit;

    use super::*;

    fn parsed(line: &str) -> Result<Invocation, UsageError> {
        parse(line.split_whitespace().map(OsString::from).collect())
    }

    fn served(line: &str) -> Serve {
        match parsed(line) {
            Ok(Invocation::Serve(serve)) => serve,
            other => panic!("`{line}`: {other:?}"),
        }
    }

    fn refused(line: &str) -> String {
        parsed(line).expect_err(line).to_string()
    }

    #[test]
    fn without_arguments_it_serves_everything_on_its_default_port() {
        let defaults = Serve {
            bind: vec![],
            rtyp: Some(4242),
            rooms: Some(4243),
            accounts: None,
            games: 1,
            advertise_udp: None,
            limits: Limits::default(),
            limit_loopback: false,
        };
        assert_eq!(served(""), defaults);
        assert_eq!(served("serve"), defaults);
    }

    #[test]
    fn serve_takes_every_option_with_and_without_its_name() {
        let options = "--bind 127.0.0.1 --rtyp 0 --rooms off --accounts a.db --games 65536 --advertise-udp 65535 \
                       --limit pending=5 --limit session-rate=0 --limit-loopback --bind [::1]";
        let serve = served(options);
        assert_eq!(serve, served(&format!("serve {options}")));
        let addresses = ["127.0.0.1", "::1"].map(|ip| ip.parse::<IpAddr>().expect("an address"));
        assert_eq!(serve.bind, addresses);
        assert_eq!((serve.rtyp, serve.rooms), (Some(0), None));
        assert_eq!(serve.games, 65_536);
        assert_eq!(serve.accounts, Some(PathBuf::from("a.db")));
        assert_eq!(serve.advertise_udp, Some(65_535));
        assert_eq!(serve.limits.get(Limit::Pending), 5);
        assert_eq!(serve.limits.get(Limit::SessionRate), 0);
        assert_eq!(serve.limits.get(Limit::EventsRate), 20);
        assert!(serve.limit_loopback);
    }

    #[test]
    fn bots_and_chat_have_the_documented_defaults() {
        let bots = Bots {
            server: "127.0.0.1:4242".into(),
            count: 4,
            seconds: None,
            rate_hz: 30,
            v2: false,
            rooms: false,
        };
        assert_eq!(parsed("bots"), Ok(Invocation::Bots(bots)));
        let chat = Chat {
            server: "127.0.0.1:4242".into(),
            name: "R9".into(),
            v2: false,
            rooms: None,
        };
        assert_eq!(parsed("chat --name R9"), Ok(Invocation::Chat(chat)));
    }

    #[test]
    fn bots_and_chat_take_every_option() {
        let bots = Bots {
            server: "localhost:1".into(),
            count: 10_000,
            seconds: Some(1),
            rate_hz: 1000,
            v2: true,
            rooms: false,
        };
        let line = "bots --rate 1000 --v2 --server localhost:1 --seconds 1 --count 10000";
        assert_eq!(parsed(line), Ok(Invocation::Bots(bots)));
        let chat = Chat {
            server: "[::1]:65535".into(),
            name: "sixteen-bytes-é".into(),
            v2: true,
            rooms: None,
        };
        assert_eq!(chat.name.len(), 16);
        let line = "chat --server [::1]:65535 --name sixteen-bytes-é --v2";
        assert_eq!(parsed(line), Ok(Invocation::Chat(chat)));
    }

    #[test]
    fn bots_and_chat_speak_rooms_at_its_own_port() {
        let Ok(Invocation::Bots(bots)) = parsed("bots --rooms --count 2") else {
            panic!("no bots");
        };
        assert!(bots.rooms && !bots.v2);
        assert_eq!(bots.server, "127.0.0.1:4243");
        let Ok(Invocation::Chat(chat)) = parsed("chat --rooms --name R9") else {
            panic!("no chat");
        };
        assert_eq!(chat.server, "127.0.0.1:4243");
        let bare = ChatRooms {
            password: None,
            register: false,
            room: None,
            room_password: String::new(),
        };
        assert_eq!(chat.rooms, Some(bare));
        let line = "chat --name R9 --rooms --password secret99 --register --room den \
                    --room-password hush1234 --server h:1";
        let Ok(Invocation::Chat(chat)) = parsed(line) else {
            panic!("no chat");
        };
        let printed = format!("{chat:?}");
        let full = ChatRooms {
            password: Some("secret99".into()),
            register: true,
            room: Some("den".into()),
            room_password: "hush1234".into(),
        };
        assert_eq!((chat.rooms, &*chat.server), (Some(full), "h:1"));
        for secret in ["secret99", "hush1234"] {
            assert!(!printed.contains(secret), "{printed}");
        }
        for (line, unknown) in [
            ("bots --rooms --v2", "--v2"),
            ("chat --name R9 --rooms --v2", "--v2"),
            ("chat --name R9 --password x", "--password"),
            ("bots --rooms --room den", "--room"),
        ] {
            assert_eq!(refused(line), format!("unknown argument `{unknown}`"));
        }
        let long = "x".repeat(33);
        let error = refused(&format!("chat --name R9 --rooms --room {long}"));
        assert!(error.contains("1 to 32 bytes"), "{error}");
    }

    #[test]
    fn help_and_version_win_over_everything_else() {
        for line in [
            "--help",
            "serve --help",
            "bots --bogus --help",
            "--games 0 --help",
        ] {
            assert_eq!(parsed(line), Ok(Invocation::Help), "{line}");
        }
        assert_eq!(parsed("--version"), Ok(Invocation::Version));
        assert_eq!(parsed("chat --version"), Ok(Invocation::Version));
    }

    #[test]
    fn a_wrong_value_names_its_option_and_what_is_allowed() {
        let range = |line: &str, allowed: &str| {
            assert_eq!(refused(line), format!("`{line}`: allowed is {allowed}"));
        };
        for wrong in ["0", "65537", "-1", "x", "1.5", "99999999999999999999"] {
            range(&format!("--games {wrong}"), "a number from 1 to 65536");
        }
        for wrong in ["65536", "on", "-1"] {
            let allowed = "a port from 0 to 65535, or off";
            range(&format!("--rtyp {wrong}"), allowed);
        }
        for wrong in ["0", "65536", "off"] {
            let allowed = "a number from 1 to 65535";
            range(&format!("--advertise-udp {wrong}"), allowed);
        }
        for wrong in ["localhost", "127.0.0.1:1", "[127.0.0.1]", "[::1", "1.2.3"] {
            let allowed = "an IPv4 or IPv6 address, each once";
            range(&format!("--bind {wrong}"), allowed);
        }
        assert!(refused("--bind ::1 --bind [::1]").contains("each once"));
        let mapped = refused("--bind 127.0.0.1 --bind ::ffff:127.0.0.1");
        assert!(mapped.contains("each once"), "bound twice: {mapped}");
        assert!(refused("bots --count 0").contains("`--count 0`: allowed is a number from 1"));
        assert!(refused("bots --count 10001").contains("to 10000"));
        assert!(refused("bots --rate 1001").contains("a number from 1 to 1000"));
        assert!(refused("bots --seconds 0").contains("from 1 to 4294967295"));
        for wrong in ["host", ":4242", "host:0", "host:65536", "host:"] {
            let line = format!("chat --name R9 --server {wrong}");
            assert!(refused(&line).contains("HOST:PORT"), "{line}");
        }
    }

    #[test]
    fn a_wrong_name_is_refused_before_anybody_is_asked() {
        assert_eq!(refused("chat"), "`--name` is needed");
        for wrong in [
            "",
            "seventeen-bytes-x",
            "seventeen-bytes-é",
            "a\nb",
            "a\u{7F}b",
        ] {
            let arguments = ["chat", "--name", wrong].map(OsString::from);
            let error = parse(arguments.to_vec()).expect_err(wrong).to_string();
            assert!(error.contains("1 to 16 bytes of UTF-8"), "{error}");
            assert!(!error.contains(['\n', '\u{7F}']), "{error:?}");
        }
    }

    #[test]
    fn a_wrong_limit_names_the_limit_and_its_range_or_all_names() {
        for wrong in ["0", "102401", "x", "-1", ""] {
            assert_eq!(
                refused(&format!("--limit pending={wrong}")),
                "`--limit`: `pending` is from 1 to 102400"
            );
        }
        for line in ["--limit sessions=1", "--limit pending"] {
            let error = refused(line);
            for limit in &TABLE {
                assert!(error.contains(limit.name), "{error}");
            }
        }
    }

    #[test]
    fn what_is_unknown_unfinished_or_given_twice_is_named() {
        let unfinished = ["--party", "--party-private", "--party-loopback"];
        for option in unfinished {
            assert_eq!(refused(option), format!("unknown argument `{option}`"));
        }
        assert_eq!(refused("--v2"), "unknown argument `--v2`");
        assert_eq!(refused("party host"), "unknown argument `party`");
        assert_eq!(refused("bots --name R9"), "unknown argument `--name`");
        assert_eq!(refused("--games 1 serve"), "unknown argument `serve`");
        assert_eq!(refused("--games 1 --games 2"), "`--games` is given twice");
        assert_eq!(refused("--games"), "`--games` needs a value");
        assert_eq!(refused("--bind"), "`--bind` needs a value");
        assert_eq!(
            refused("--rtyp off --rooms off"),
            "`--rtyp off --rooms off` leaves nothing to serve"
        );
        let hostile = vec![OsString::from_vec(b"\x1b[2J\xff".to_vec())];
        let error = parse(hostile).expect_err("no such command").to_string();
        assert_eq!(error, r"unknown argument `\u{1b}[2J\xff`");
    }

    #[test]
    fn the_help_names_every_option_and_every_limit() {
        let help = help();
        let options = [
            "--bind",
            "--rtyp",
            "--rooms",
            "--accounts",
            "--games",
            "--advertise-udp",
            "--limit",
            "--limit-loopback",
            "--server",
            "--count",
            "--seconds",
            "--rate",
            "--name",
            "--v2",
            "--rooms",
            "--password",
            "--register",
            "--room",
            "--room-password",
            "--help",
            "--version",
        ];
        for option in options {
            assert!(help.contains(option), "{option}");
        }
        for limit in &TABLE {
            let about = |line: &&str| line.split_whitespace().next() == Some(limit.name);
            let line = help.lines().find(about).expect(limit.name);
            assert!(line.contains(&limit.default.to_string()), "{line}");
            assert!(line.contains(limit.meaning), "{line}");
        }
        let unfinished = ["--party", "stun", "--broker"];
        assert!(unfinished.iter().all(|option| !help.contains(option)));
        assert!(
            help.lines().all(|line| line.chars().count() <= 110),
            "{help}"
        );
    }
}
