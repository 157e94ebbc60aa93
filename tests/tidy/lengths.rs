//! A function fits on a screen, and a file can be read in one go.

use super::source::{Source, functions, lines};
use super::{assert_tidy, sources};

const FUNCTION_LINES_MAX: usize = 70;
const FILE_LINES_MAX: usize = 500;

/// What may be longer, and how long it is: `path`, or `path::function`. The list only shrinks: who
/// makes one of these shorter writes the new number here, or removes it.
const EXCEPTIONS: &[(&str, usize)] = &[];

/// Files and functions that are too long, and exceptions that do not say how it is. Only lines
/// with code count, and in `src` only what is not compiled for tests alone.
fn too_long(sources: &[Source], exceptions: &[(&str, usize)]) -> Vec<String> {
    let long: Vec<(String, usize)> = sources.iter().flat_map(long_ones).collect();
    let unlisted = long.iter().filter(|(name, _)| {
        let is_listed = exceptions.iter().any(|(listed, _)| listed == name);
        !is_listed
    });
    let unlisted = unlisted.map(|(name, lines)| {
        format!("{name} has {lines} lines of code; at most {FUNCTION_LINES_MAX} for a function, {FILE_LINES_MAX} for a file")
    });
    let wrong = exceptions.iter().filter_map(|(listed, lines)| {
        let found = long.iter().find(|(name, _)| name == listed);
        match found {
            Some((_, now)) if now == lines => None,
            Some((_, now)) if now > lines => {
                Some(format!("{listed} grew from {lines} to {now} lines"))
            }
            Some((_, now)) => Some(format!("{listed} has {now} lines now: say so in the list")),
            None => Some(format!("{listed} is short enough: remove it from the list")),
        }
    });
    unlisted.chain(wrong).collect()
}

fn long_ones(source: &Source) -> Vec<(String, usize)> {
    let counted = match source.path.starts_with("src/") {
        true => &source.product,
        false => &source.code,
    };
    let file = (source.path.clone(), lines(counted));
    let functions = functions(counted).into_iter().map(|function| {
        let name = format!("{}::{}", source.path, function.name);
        (name, lines(&counted[function.tokens]))
    });
    let mut long: Vec<(String, usize)> = functions
        .filter(|(_, lines)| *lines > FUNCTION_LINES_MAX)
        .collect();
    long.extend(Some(file).filter(|(_, lines)| *lines > FILE_LINES_MAX));
    long
}

#[test]
fn functions_and_files_are_short() {
    assert_tidy(&too_long(sources(), EXCEPTIONS));
}

#[test]
fn one_line_too_many_is_found() {
    let function = |lines: usize| format!("fn f() {{\n{}}}\n", "g();\n\n// h\n".repeat(lines - 2));
    let check = |text: &str| too_long(&[Source::new("src/x.rs", text)], &[]);
    assert!(check(&function(70)).is_empty());
    assert_eq!(check(&function(71)).len(), 1);
    assert!(check(&function(71))[0].starts_with("src/x.rs::f has 71 lines"));
    let file = |lines: usize| "fn f() {\n}\n".repeat(lines / 2) + &"use x;\n".repeat(lines % 2);
    assert!(check(&file(500)).is_empty());
    assert!(check(&file(501))[0].starts_with("src/x.rs has 501 lines"));
}

#[test]
fn only_the_product_counts_in_src_and_everything_elsewhere() {
    let long = format!("fn f() {{\n{}}}\n", "g();\n".repeat(69));
    let tests = format!("#[cfg(test)]\nmod tests {{\n{long}\n}}\n");
    let check = |path: &str, text: &str| too_long(&[Source::new(path, text)], &[]).len();
    assert_eq!(check("src/x.rs", &long), 1);
    assert_eq!(check("src/x.rs", &tests), 0);
    assert_eq!(check("tests/x.rs", &long), 1);
    assert_eq!(check("benches/x.rs", &long), 1);
}

#[test]
fn an_exception_holds_for_exactly_its_number() {
    let long = format!("fn f() {{\n{}}}\n", "g();\n".repeat(98));
    let check = |exceptions| too_long(&[Source::new("src/x.rs", &long)], exceptions);
    assert!(check(&[("src/x.rs::f", 100)]).is_empty());
    assert_eq!(
        check(&[("src/x.rs::f", 99)]),
        ["src/x.rs::f grew from 99 to 100 lines"]
    );
    assert!(check(&[("src/x.rs::f", 101)])[0].contains("has 100 lines now"));
    let unneeded = check(&[("src/x.rs::f", 100), ("src/y.rs", 501)]);
    assert_eq!(
        unneeded,
        ["src/y.rs is short enough: remove it from the list"]
    );
}
