//! What must not be left behind in the source.

use super::source::{Kind, Source, Token};
use super::{assert_tidy, sources};

/// Macros that stand for work not done, or that fail when nobody reads the output.
const UNFINISHED: [&str; 3] = ["todo", "unimplemented", "dbg"];
const PRINTING: [&str; 4] = ["print", "println", "eprint", "eprintln"];
/// Words by which a comment says that something is not done.
const REMINDERS: [&str; 2] = ["FIXME", "XXX"];

/// Files that may sleep, and why. An entry that is no longer needed must go.
const SLEEPERS: &[(&str, &str)] = &[];

fn unfinished(source: &Source) -> Vec<String> {
    let macros = source.code.windows(2).filter(|pair| {
        pair[0].kind == Kind::Word
            && UNFINISHED.contains(&pair[0].text.as_str())
            && pair[1].text == "!"
    });
    let comments = source.tokens.iter().filter(|token| {
        let reminds = |reminder: &&str| token.text.contains(*reminder);
        token.kind == Kind::Comment && REMINDERS.iter().any(reminds)
    });
    let macros = macros.map(|pair| &pair[0]);
    let all = macros.chain(comments);
    all.map(|token| format!("{}: `{}` is work left undone", source.at(token), token.text))
        .collect()
}

/// Printing panics when nobody reads; so does unwrapping, and does not say why it cannot.
fn panics(source: &Source) -> Vec<String> {
    let printing = source.product.windows(2).filter(|pair| {
        pair[0].kind == Kind::Word
            && PRINTING.contains(&pair[0].text.as_str())
            && pair[1].text == "!"
    });
    let unwrapping = source
        .product
        .windows(3)
        .filter(|three| three[0].text == "." && three[1].text == "unwrap" && three[2].text == "(");
    let printing = printing.map(|pair| &pair[0]);
    let unwrapping = unwrapping.map(|three| &three[1]);
    let all = printing.chain(unwrapping);
    all.map(|token| format!("{}: `{}` can panic", source.at(token), token.text))
        .collect()
}

/// Sleeping as synchronisation is wrong on some machine.
fn sleeps(sources: &[Source], allowed: &[(&str, &str)]) -> Vec<String> {
    let is_sleep = |token: &&Token| token.kind == Kind::Word && token.text == "sleep";
    let is_allowed = |path: &str| allowed.iter().any(|(allowed, _)| *allowed == path);
    let sleeping = sources.iter().filter(|source| !is_allowed(&source.path));
    let found = sleeping.flat_map(|source| {
        let tokens = source.code.iter().filter(is_sleep);
        tokens.map(|token| format!("{}: sleeps; wait for what is to happen", source.at(token)))
    });
    let needed = |path: &str| {
        let sleeps =
            |source: &Source| source.path == path && source.code.iter().any(|t| is_sleep(&t));
        sources.iter().any(sleeps)
    };
    let unneeded = allowed
        .iter()
        .filter(|(path, reason)| !needed(path) || reason.is_empty());
    let unneeded = unneeded.map(|(path, _)| format!("{path} need not be allowed to sleep"));
    found.chain(unneeded).collect()
}

#[test]
fn nothing_is_left_undone() {
    let found: Vec<String> = sources().iter().flat_map(unfinished).collect();
    assert_tidy(&found);
}

#[test]
fn nothing_prints_or_unwraps_outside_tests() {
    let found: Vec<String> = sources().iter().flat_map(panics).collect();
    assert_tidy(&found);
}

#[test]
fn nobody_sleeps() {
    assert_tidy(&sleeps(sources(), SLEEPERS));
}

#[test]
fn what_is_left_undone_is_found() {
    let check = |text: &str| unfinished(&Source::new("tests/x.rs", text)).len();
    for word in UNFINISHED {
        assert_eq!(check(&format!("fn f() {{ {word}!() }}")), 1, "{word}");
        assert_eq!(
            check(&format!("fn {word}() {{ \"{word}!\" }}")),
            0,
            "{word}"
        );
    }
    for word in REMINDERS {
        assert_eq!(
            check(&format!("/// Soon: {word}\nfn f() {{}}")),
            1,
            "{word}"
        );
        assert_eq!(check(&format!("fn f() {{ \"{word}\" }}")), 0, "{word}");
    }
}

#[test]
fn printing_and_unwrapping_is_found_outside_tests() {
    let check = |path, text: &str| panics(&Source::new(path, text)).len();
    for word in PRINTING {
        let text = format!("fn f() {{ {word}!(\"x\") }}");
        assert_eq!(check("src/x.rs", &text), 1, "{word}");
        assert_eq!(check("tests/x.rs", &text), 0, "{word}");
    }
    assert_eq!(check("src/x.rs", "fn f() { x.unwrap() }"), 1);
    assert_eq!(check("src/x.rs", "fn f() { x.unwrap_or(y).expect(z) }"), 0);
    assert_eq!(
        check(
            "src/x.rs",
            "#[cfg(test)] mod tests { fn f() { x.unwrap() } }"
        ),
        0
    );
}

#[test]
fn sleeping_is_found_and_so_is_a_needless_permission() {
    let check = |text: &str, allowed| sleeps(&[Source::new("tests/x.rs", text)], allowed).len();
    for text in [
        "use std::thread::sleep;",
        "fn f() { thread::sleep(d) }",
        "use std::thread::{sleep as s};",
    ] {
        assert_eq!(check(text, &[]), 1, "{text}");
        assert_eq!(check(text, &[("tests/x.rs", "a reason")]), 0, "{text}");
        assert_eq!(check(text, &[("tests/x.rs", "")]), 1, "{text}");
    }
    assert_eq!(check("// thread::sleep", &[]), 0);
    assert_eq!(check("fn f() {}", &[("tests/x.rs", "a reason")]), 1);
    assert_eq!(check("fn f() {}", &[("tests/y.rs", "a reason")]), 1);
}
