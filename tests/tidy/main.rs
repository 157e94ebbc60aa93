//! The source checks itself: who may import whom, how long a function or file may be, what must
//! not be left behind, and that each numbered rule of a protocol has its test.
//!
//! Every check is a plain function over [`Source`]s that lists what it found. So each is tested
//! on small made-up sources, which it must refuse, before the project's own is held against it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use source::Source;

mod layers;
mod leftovers;
mod lengths;
mod paths;
mod rules;
mod source;

/// Fails with all that a check found.
fn assert_tidy(found: &[String]) {
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

/// All Rust files of the project, read once.
fn sources() -> &'static [Source] {
    static SOURCES: OnceLock<Vec<Source>> = OnceLock::new();
    SOURCES.get_or_init(read_sources)
}

fn read_sources() -> Vec<Source> {
    let mut sources: Vec<Source> = ["src", "tests", "benches"]
        .iter()
        .flat_map(|folder| files(&root().join(folder)))
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| Source::new(&relative(&path), &read(&path)))
        .collect();
    source::mark_test_files(&mut sources);
    let is_there = |path: &str| sources.iter().any(|source| source.path == path);
    assert!(is_there("src/lib.rs") && is_there("tests/tidy/main.rs"));
    sources
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All files below `folder`, in order; none if it does not exist.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a readable folder").path())
        .collect();
    paths.sort();
    let below = paths.into_iter().flat_map(|path| match path.is_dir() {
        true => files(&path),
        false => vec![path],
    });
    below.collect()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The path below the project's root, with slashes.
fn relative(path: &Path) -> String {
    let path = path.strip_prefix(root()).expect("a file of the project");
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("/")
}
