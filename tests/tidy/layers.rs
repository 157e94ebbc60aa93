//! Who may import whom: `server` → `engine` and `guard` → `bytes`, a protocol between them.

use super::paths::paths;
use super::source::{Kind, Source};
use super::{assert_tidy, read, root, sources};

const SOCKETS: [&str; 5] = [
    "UdpSocket",
    "TcpStream",
    "TcpListener",
    "UnixStream",
    "UnixDatagram",
];
/// The files of `src` that may hold sockets.
const SOCKET_FILES: [&str; 4] = [
    "src/driver/datagrams.rs",
    "src/driver/stream.rs",
    "src/server/tcp.rs",
    "src/server/udp.rs",
];

const CLOCKS: &[&str] = &["Instant", "SystemTime"];
const THREADS: &[&str] = &["thread", "Mutex", "RwLock", "Condvar", "mpsc"];
const MAPS: &[&str] = &["HashMap", "HashSet", "BTreeMap", "BTreeSet"];

/// What a part of the source may name.
struct Layer {
    /// What is in it: a file, or a folder with its slash. The first layer that fits counts.
    is: fn(&str) -> bool,
    /// Modules of the crate it may name, besides itself; `Protocol` stands for a protocol's own,
    /// `Codec` for those of its codec's folder, `protocol::` for the names in `protocol/mod.rs`, and
    /// `::` for those in `lib.rs`.
    modules: &'static [&'static str],
    /// Packages it may name.
    packages: &'static [&'static str],
    /// Words it may not use, whatever their path.
    never: &'static [&'static [&'static str]],
}

const LAYERS: &[Layer] = &[
    Layer {
        is: |path| path == "src/bytes.rs",
        modules: &[],
        packages: &[],
        never: &[CLOCKS, THREADS, MAPS],
    },
    Layer {
        is: is_codec,
        modules: &["bytes", "Codec"],
        packages: &[],
        never: &[CLOCKS, THREADS, MAPS],
    },
    Layer {
        is: |path| path.starts_with("src/engine/") || path.starts_with("src/guard/"),
        modules: &["bytes", "engine", "guard"],
        packages: &["log", "siphasher", "slab"],
        never: &[CLOCKS],
    },
    Layer {
        is: |path| path == "src/protocol/mod.rs",
        modules: &["bytes", "engine", "guard", "protocol"],
        packages: &["log"],
        never: &[CLOCKS, THREADS],
    },
    Layer {
        is: |path| path.starts_with("src/protocol/"),
        modules: &["bytes", "engine", "guard", "protocol::", "Protocol"],
        packages: &["log"],
        never: &[CLOCKS, THREADS, MAPS, &["wheel", "Wheel"]],
    },
    Layer {
        is: |path| path.starts_with("src/game/"),
        modules: &["engine", "game", "::"],
        packages: &["log"],
        never: &[CLOCKS, THREADS],
    },
    // Joins the accounts with a game and its server.
    Layer {
        is: |path| path == "src/accounts/gate.rs",
        modules: &["engine", "guard", "accounts", "server"],
        packages: &[],
        never: &[CLOCKS],
    },
    Layer {
        is: |path| path.starts_with("src/accounts/"),
        modules: &["engine", "guard", "accounts"],
        packages: &["argon2", "log", "redb", "zeroize"],
        never: &[CLOCKS],
    },
    Layer {
        is: |path| path.starts_with("src/server/"),
        modules: &[
            "bytes",
            "engine",
            "guard",
            "game",
            "server",
            "protocol::",
            "::",
        ],
        packages: &["getrandom", "log", "mio", "quinn_udp", "slab", "socket2"],
        never: &[],
    },
    Layer {
        is: |path| path.starts_with("src/driver/"),
        modules: &["engine", "driver", "protocol", "server"],
        packages: &["mio"],
        never: &[CLOCKS, THREADS, MAPS],
    },
    Layer {
        is: |path| path == "src/lib.rs",
        modules: &[
            "accounts", "bytes", "driver", "engine", "guard", "game", "protocol", "server", "::",
        ],
        packages: &[],
        never: &[],
    },
    Layer {
        is: is_program,
        modules: &["cli"],
        packages: &[
            "anteroom",
            "env_filter",
            "env_logger",
            "log",
            "mio",
            "pico_args",
            "rlimit",
            "signal_hook",
        ],
        never: &[],
    },
];

/// What one file of the library may write, or none, and why.
const PLACES: &[(&[&str], Option<&str>, &str)] = &[
    (
        &["::", "now"],
        Some("src/server/clock.rs"),
        "the only clock is server/clock.rs",
    ),
    (
        &[".", "elapsed", "("],
        Some("src/server/clock.rs"),
        "the only clock is server/clock.rs",
    ),
    (&["SystemTime"], None, "all clocks are monotonic"),
    (
        &["getrandom"],
        Some("src/server/dice.rs"),
        "the only dice are server/dice.rs",
    ),
    (&["#", "[", "path"], None, "a module is where its name says"),
    (&["include", "!"], None, "a file is a module"),
    (
        &["extern", "crate"],
        None,
        "a package is known by its own name",
    ),
];

fn is_codec(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or_default();
    let in_folder = path.split('/').any(|folder| folder == "wire");
    path.starts_with("src/protocol/") && (file.ends_with("wire.rs") || in_folder)
}

fn is_program(path: &str) -> bool {
    path == "src/main.rs" || path.starts_with("src/cli/")
}

/// Everything in `source` that its layer may not name; `packages` are those the crate depends on.
fn trespasses(source: &Source, packages: &[String]) -> Vec<String> {
    let Some(layer) = LAYERS.iter().find(|layer| (layer.is)(&source.path)) else {
        return vec![format!("{} belongs to no layer: give it one", source.path)];
    };
    let mut found = Vec::new();
    for path in paths(source) {
        let name = path.parts.join("::");
        let is_allowed = match path.parts[0].as_str() {
            "crate" => may_enter(source, layer, &path.parts[1..]),
            package if packages.iter().any(|known| known == package) => {
                layer.packages.contains(&package)
            }
            _ => true,
        };
        if !is_allowed {
            let at = source.at(&source.product[path.token]);
            found.push(format!("{at}: this layer may not name `{name}`"));
        }
    }
    let words = source
        .product
        .iter()
        .filter(|token| token.kind == Kind::Word);
    for word in words {
        if layer
            .never
            .iter()
            .any(|never| never.contains(&word.text.as_str()))
        {
            found.push(format!(
                "{}: this layer may not use `{}`",
                source.at(word),
                word.text
            ));
        }
    }
    found
}

/// Whether `layer` lets `source` name the crate's `path`.
fn may_enter(source: &Source, layer: &Layer, path: &[String]) -> bool {
    let own = source.module();
    if !own.is_empty() && path.starts_with(&own) {
        return true;
    }
    let is_type =
        |part: Option<&String>| part.is_some_and(|part| part.starts_with(char::is_uppercase));
    let up_to = |depth: Option<usize>| own.get(..depth?);
    let own_protocol = up_to(Some(2)).filter(|own| own[0] == "protocol");
    let own_codec = up_to(own.iter().position(|part| part == "wire").map(|at| at + 1));
    layer.modules.iter().any(|module| match *module {
        "::" => is_type(path.first()),
        "protocol::" => {
            path.first().is_some_and(|first| first == "protocol") && is_type(path.get(1))
        }
        "Protocol" => own_protocol.is_some_and(|own| path.starts_with(own)),
        "Codec" => own_codec.is_some_and(|own| path.starts_with(own)),
        name => path.first().is_some_and(|first| first == name),
    })
}

/// Everything in `source` that belongs to another place, or to none.
fn misplaced(source: &Source) -> Vec<String> {
    let code = &source.product;
    let mut found = Vec::new();
    for (index, token) in code.iter().enumerate() {
        let starts = |words: &[&str]| {
            let tokens = code.get(index..index + words.len()).unwrap_or_default();
            tokens
                .iter()
                .map(|token| token.text.as_str())
                .eq(words.iter().copied())
        };
        let elsewhere = PLACES.iter().find(|(words, place, _)| {
            let is_bound = !is_program(&source.path) || place.is_none();
            is_bound && *place != Some(source.path.as_str()) && starts(words)
        });
        if let Some((words, _, why)) = elsewhere {
            found.push(format!("{}: `{}`: {why}", source.at(token), words.concat()));
        }
        let is_socket = SOCKETS.contains(&token.text.as_str());
        if is_socket && !SOCKET_FILES.contains(&source.path.as_str()) {
            found.push(format!(
                "{}: no place for a `{}`",
                source.at(token),
                token.text
            ));
        }
    }
    found
}

/// The packages that `manifest` names, as code writes them.
fn packages(manifest: &str) -> Vec<String> {
    let mut packages = vec!["anteroom".to_owned()];
    let mut is_list = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_list = line.trim_end_matches(']').ends_with("dependencies");
        } else if let Some((name, _)) = line.split_once('=').filter(|_| is_list) {
            packages.push(name.trim().replace('-', "_"));
        }
    }
    packages
}

fn in_src(sources: &[Source]) -> impl Iterator<Item = &Source> {
    sources
        .iter()
        .filter(|source| source.path.starts_with("src/"))
}

#[test]
fn every_layer_names_only_what_it_may() {
    let packages = packages(&read(&root().join("Cargo.toml")));
    assert!(packages.len() > 8, "{packages:?}");
    let sources = sources();
    let found: Vec<String> = in_src(sources)
        .flat_map(|source| trespasses(source, &packages))
        .collect();
    assert_tidy(&found);
}

#[test]
fn sockets_clock_and_dice_have_one_place_each() {
    let sources = sources();
    let found: Vec<String> = in_src(sources).flat_map(misplaced).collect();
    assert_tidy(&found);
}

#[test]
fn every_place_is_needed() {
    let sources = sources();
    let uses = |path: &str, words: &[&str]| {
        let mut files = sources.iter().filter(|source| source.path == path);
        let mut tokens = files.by_ref().flat_map(|source| &source.product);
        tokens.any(|token| words.contains(&token.text.as_str()))
    };
    for path in SOCKET_FILES {
        assert!(uses(path, &SOCKETS), "{path} holds no socket");
    }
    for (words, path, _) in PLACES {
        let longest = words.iter().copied().max_by_key(|word| word.len());
        let is_needed = |path: &str| uses(path, longest.as_slice());
        assert!(path.is_none_or(is_needed), "{path:?} needs no {words:?}");
    }
}

/// What `trespasses` says of a file with one line.
fn trespasses_of(path: &str, line: &str) -> Vec<String> {
    let packages = packages(
        "[dependencies]\nmio = 1\nslab = 1\nlog = 1\ngetrandom = 1\nquinn-udp = 1\nredb = 1",
    );
    trespasses(&Source::new(path, line), &packages)
}

#[test]
fn what_a_layer_may_name_passes() {
    let allowed = [
        ("src/bytes.rs", "use std::fmt; use self::inner::X;"),
        (
            "src/protocol/abc/wire.rs",
            "use crate::bytes::Reader; use std::fmt;",
        ),
        (
            "src/protocol/abc/wire/events.rs",
            "use super::header::Header; use crate::bytes::Reader;",
        ),
        (
            "src/engine/table.rs",
            "use crate::{bytes, guard::limits}; use super::Time; use slab::Slab;",
        ),
        (
            "src/guard/limits.rs",
            "use crate::engine::Time; fn f() { log::warn!() }",
        ),
        (
            "src/protocol/mod.rs",
            "use crate::protocol::abc::Abc; use crate::engine::Env;",
        ),
        (
            "src/protocol/abc/mod.rs",
            "use super::{Kind, abc::wire}; use crate::protocol::Context;",
        ),
        (
            "src/game/relay.rs",
            "use crate::{Event, Game}; use crate::engine::Time;",
        ),
        (
            "src/accounts/mod.rs",
            "use crate::guard::network::network; use redb::Database; use std::sync::Mutex;",
        ),
        (
            "src/server/mod.rs",
            "use crate::protocol::{Context, Kind}; use mio::Poll; use crate::Limits;",
        ),
        (
            "src/cli/serve.rs",
            "use anteroom::Server; use super::args::Serve; use crate::cli::log::Log;",
        ),
        (
            "src/protocol/abc/mod.rs",
            "#[cfg(test)] mod tests { use std::collections::HashMap; }",
        ),
        (
            "src/engine/x.rs",
            "/// Like `std::time::Instant`.\nfn f() { \"Instant\" }",
        ),
    ];
    for (path, line) in allowed {
        assert_eq!(trespasses_of(path, line), [""; 0], "{path}: {line}");
    }
}

#[test]
fn what_a_layer_may_not_name_is_found() {
    let forbidden = [
        ("src/bytes.rs", "use crate::engine::Time;"),
        ("src/bytes.rs", "use log::warn;"),
        ("src/protocol/abc/wire.rs", "use crate::engine::Time;"),
        ("src/protocol/abc/wire.rs", "use super::Policy;"),
        (
            "src/protocol/abc/broker_wire.rs",
            "use std::collections::{BTreeMap};",
        ),
        (
            "src/protocol/abc/wire/events.rs",
            "use super::super::Policy;",
        ),
        ("src/engine/table.rs", "use crate::protocol::Kind;"),
        ("src/engine/table.rs", "use super::super::server::Server;"),
        (
            "src/engine/table.rs",
            "use crate::{bytes, server::Server as S};",
        ),
        (
            "src/engine/table.rs",
            "fn f() { crate::protocol::abc::f() }",
        ),
        ("src/engine/table.rs", "use crate::Limits;"),
        ("src/engine/time.rs", "use std::time::{Duration, Instant};"),
        (
            "src/guard/limits.rs",
            "fn f() { std::time::SystemTime::now() }",
        ),
        ("src/guard/cookie.rs", "use mio::Token;"),
        ("src/guard/cookie.rs", "fn f() { ::getrandom::fill(b) }"),
        ("src/protocol/abc/mod.rs", "use std::collections::HashMap;"),
        ("src/protocol/abc/mod.rs", "use std::{thread, fmt};"),
        (
            "src/protocol/abc/mod.rs",
            "use crate::engine::wheel::Wheel;",
        ),
        (
            "src/protocol/abc/mod.rs",
            "use crate::protocol::xyz::Hello;",
        ),
        ("src/protocol/abc/mod.rs", "use super::xyz;"),
        ("src/protocol/abc/mod.rs", "use crate::server::Remote;"),
        ("src/protocol/abc/mod.rs", "use std::time::Instant;"),
        ("src/protocol/mod.rs", "use crate::server::Remote;"),
        ("src/game/relay.rs", "use crate::protocol::Kind;"),
        ("src/accounts/mod.rs", "use crate::protocol::Kind;"),
        ("src/accounts/mod.rs", "use crate::server::Remote;"),
        ("src/accounts/mod.rs", "use std::time::Instant;"),
        ("src/accounts/mod.rs", "use getrandom::fill;"),
        ("src/engine/table.rs", "use redb::Database;"),
        ("src/server/udp.rs", "use crate::protocol::abc::wire;"),
        ("src/server/udp.rs", "use env_logger::Env;"),
        ("src/server/udp.rs", "use anteroom::Env;"),
        ("src/cli/serve.rs", "use quinn_udp::X;"),
        ("src/cli/serve.rs", "use crate::engine::Time;"),
        ("src/new/mod.rs", ""),
    ];
    for (path, line) in forbidden {
        let found = match line.contains("env_logger") {
            true => trespasses(&Source::new(path, line), &["env_logger".to_owned()]),
            false => trespasses_of(path, line),
        };
        assert!(!found.is_empty(), "{path}: {line}");
    }
}

#[test]
fn what_is_out_of_place_is_found() {
    let check = |path: &str, line: &str| misplaced(&Source::new(path, line)).len();
    let lines = [
        ("use std::net::{UdpSocket as U};", "src/server/udp.rs"),
        (
            "fn f() { mio::net::TcpStream::connect(a) }",
            "src/server/tcp.rs",
        ),
        (
            "fn f() { std::time::Instant::now() }",
            "src/server/clock.rs",
        ),
        (
            "use std::time::Instant as I; fn f() { I::now() }",
            "src/server/clock.rs",
        ),
        ("fn f() { start.elapsed() }", "src/server/clock.rs"),
        ("use getrandom::fill;", "src/server/dice.rs"),
    ];
    for (line, place) in lines {
        assert_eq!(check(place, line), 0, "{line}");
        for path in ["src/engine/x.rs", "src/server/config.rs", "src/lib.rs"] {
            assert_eq!(check(path, line), 1, "{path}: {line}");
        }
    }
    assert_eq!(
        check("src/cli/log.rs", "fn f() { Instant::now(); at.elapsed() }"),
        0
    );
    assert_eq!(check("src/cli/chat.rs", "use std::net::TcpStream;"), 1);
    for line in [
        "#[path = \"x.rs\"] mod x;",
        "include!(\"x.rs\");",
        "extern crate mio as m;",
    ] {
        assert_eq!(check("src/cli/mod.rs", line), 1, "{line}");
    }
    assert_eq!(
        check("src/server/clock.rs", "use std::time::SystemTime;"),
        1
    );
    assert_eq!(
        check(
            "src/engine/x.rs",
            "fn f(env: Env) { env.now; self.elapsed.ms() }"
        ),
        0
    );
}
