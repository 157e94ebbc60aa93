//! Each numbered rule of a PROTOCOL.md has a test of its name, and each such test a rule.
//!
//! A rule reads `**R12 Title.**`; its tests are called `r12_…` and belong to the protocol that is
//! named by a part of their path or of their module's.

use super::source::{Kind, Source, Token, end_of_item};
use super::{assert_tidy, files, read, relative, root, sources};

/// A protocol's rules, as its text numbers them.
struct Document {
    protocol: String,
    path: String,
    text: String,
}

/// A function whose name begins like a test of a rule.
struct RuleTest {
    number: u32,
    name: String,
    at: String,
    /// Whether it is run at all.
    is_test: bool,
    /// All words of its path and modules.
    belongs_to: Vec<String>,
}

fn unmatched(documents: &[Document], sources: &[Source]) -> Vec<String> {
    let tests: Vec<RuleTest> = sources.iter().flat_map(rule_tests).collect();
    let mut found: Vec<String> = tests
        .iter()
        .filter_map(|test| homeless(documents, test))
        .collect();
    for document in documents {
        let mine = |test: &&RuleTest| test.belongs_to.contains(&document.protocol);
        let numbers = match rule_numbers(document) {
            Ok(numbers) => numbers,
            Err(why) => {
                found.push(why);
                continue;
            }
        };
        for number in &numbers {
            let is_tested = tests
                .iter()
                .filter(mine)
                .any(|test| test.number == *number && test.is_test);
            if !is_tested {
                found.push(format!(
                    "{}: rule R{number} has no test `r{number}_…`",
                    document.path
                ));
            }
        }
        let strays = tests
            .iter()
            .filter(mine)
            .filter(|test| !numbers.contains(&test.number));
        found.extend(strays.map(|test| {
            format!(
                "{}: `{}` names a rule that {} has not",
                test.at, test.name, document.path
            )
        }));
    }
    found
}

/// Why a test of a rule tests no rule at all, if so.
fn homeless(documents: &[Document], test: &RuleTest) -> Option<String> {
    let protocols = documents
        .iter()
        .filter(|document| test.belongs_to.contains(&document.protocol));
    let why = match protocols.count() {
        _ if !test.is_test => "is named like the test of a rule and is no test",
        0 => "belongs to no protocol that has rules",
        1 => return None,
        _ => "belongs to several protocols",
    };
    Some(format!("{}: `{}` {why}", test.at, test.name))
}

/// The numbers of the rules in `document`, in its order.
fn rule_numbers(document: &Document) -> Result<Vec<u32>, String> {
    let mut numbers = Vec::new();
    for (index, line) in document.text.lines().enumerate() {
        for candidate in line.split("**R").skip(1) {
            let is_rule = candidate.starts_with(|c: char| c.is_ascii_digit());
            if !is_rule {
                continue;
            }
            let number = rule_number(candidate).filter(|number| !numbers.contains(number));
            let Some(number) = number else {
                let at = format!("{}:{}", document.path, index + 1);
                return Err(format!(
                    "{at}: not `**R12 Title.**`, or a number for the second time"
                ));
            };
            numbers.push(number);
        }
    }
    match numbers.is_empty() {
        true => Err(format!("{} has no rules: `**R1 Title.**`", document.path)),
        false => Ok(numbers),
    }
}

/// 12, if `candidate` goes on like `12 Title.**`.
fn rule_number(candidate: &str) -> Option<u32> {
    let (title, _) = candidate.split_once("**")?;
    let (number, words) = title.split_once(' ')?;
    let is_title = words.ends_with('.') && words.len() > 1;
    number.parse().ok().filter(|_| is_title)
}

fn rule_tests(source: &Source) -> Vec<RuleTest> {
    let mut tests = Vec::new();
    for (index, pair) in source.code.windows(2).enumerate() {
        let number = rule_of(&pair[1]).filter(|_| pair[0].text == "fn");
        if let Some(number) = number {
            tests.push(RuleTest {
                number,
                name: pair[1].text.clone(),
                at: source.at(&pair[1]),
                is_test: has_test_attribute(&source.code[..index]),
                belongs_to: words_of(&source.path)
                    .chain(
                        modules_around(&source.code, index)
                            .iter()
                            .flat_map(|m| words_of(m)),
                    )
                    .map(str::to_owned)
                    .collect(),
            });
        }
    }
    tests
}

/// 12 for `r12_drops_what_is_short`.
fn rule_of(name: &Token) -> Option<u32> {
    let (number, _) = name.text.strip_prefix('r')?.split_once('_')?;
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    number
        .parse()
        .ok()
        .filter(|_| name.kind == Kind::Word && is_number)
}

/// Whether the attributes that end `code` make a test of what follows, and one that is not ignored.
fn has_test_attribute(code: &[Token]) -> bool {
    let item = code
        .iter()
        .rposition(|token| matches!(token.text.as_str(), ";" | "{" | "}"));
    let attributes = &code[item.map_or(0, |at| at + 1)..];
    let is_ignored = attributes.iter().any(|token| token.text == "ignore");
    let is_test = attributes
        .windows(3)
        .any(|three| three[0].text == "[" && three[1].text == "test" && three[2].text == "]");
    is_test && !is_ignored
}

/// The names of the modules in the file that enclose token `index`.
fn modules_around(code: &[Token], index: usize) -> Vec<String> {
    let starts = (0..index).filter(|start| code[*start].text == "mod");
    let around = starts.filter(|start| end_of_item(code, *start) > index);
    around.map(|start| code[start + 1].text.clone()).collect()
}

fn words_of(path: &str) -> impl Iterator<Item = &str> {
    path.split(['/', '.', '_'])
}

fn documents() -> Vec<Document> {
    let folder = root().join("src/protocol");
    let files = files(&folder)
        .into_iter()
        .filter(|path| path.ends_with("PROTOCOL.md"));
    let documents = files.map(|file| {
        let path = relative(&file);
        let protocol = path.split('/').rev().nth(1).unwrap_or_default().to_owned();
        let text = read(&file);
        Document {
            protocol,
            path,
            text,
        }
    });
    documents.collect()
}

/// Protocols without a document.
fn unwritten(sources: &[Source], documents: &[Document]) -> Vec<String> {
    let folders = sources.iter().filter_map(|source| {
        let (protocol, _) = source.path.strip_prefix("src/protocol/")?.split_once('/')?;
        Some(protocol)
    });
    let is_written = |name: &str| documents.iter().any(|document| document.protocol == name);
    let mut missing: Vec<String> = folders
        .filter(|name| !is_written(name))
        .map(|name| format!("src/protocol/{name} has no PROTOCOL.md"))
        .collect();
    missing.dedup();
    missing
}

#[test]
fn every_rule_has_its_test_and_every_such_test_its_rule() {
    assert_tidy(&unmatched(&documents(), sources()));
}

#[test]
fn every_protocol_has_its_rules() {
    let (sources, documents) = (sources(), documents());
    assert!(!documents.is_empty());
    assert_tidy(&unwritten(sources, &documents));
}

fn document(protocol: &str, text: &str) -> Document {
    Document {
        protocol: protocol.into(),
        path: format!("src/protocol/{protocol}/PROTOCOL.md"),
        text: text.into(),
    }
}

#[test]
fn a_rule_without_its_test_is_found() {
    let document = || document("abc", "**R1 One.** Text.\n- **R12 Two words.** More.\n");
    let check = |text: &str| unmatched(&[document()], &[Source::new("tests/it/abc.rs", text)]);
    assert!(check("#[test] fn r1_x() {} #[test]\n#[should_panic]\nfn r12_y() {}").is_empty());
    let one = "#[test] fn r1_x() {} ";
    for none in [
        "",
        "#[test] fn r12() {}",
        "#[test] fn r123_y() {} ",
        "// fn r12_y() {}",
    ] {
        let found = check(&format!("{one}{none}"));
        assert!(
            found
                .iter()
                .any(|line| line.contains("rule R12 has no test")),
            "{none}: {found:?}"
        );
    }
    for attribute in ["", "#[test] #[ignore]", "#[test] fn f() {}"] {
        let found = check(&format!("{one} {attribute} fn r12_y() {{}}"));
        assert!(
            found.iter().any(|line| line.contains("is no test")),
            "{attribute}: {found:?}"
        );
        assert!(
            found.iter().any(|line| line.contains("R12 has no test")),
            "{attribute}: {found:?}"
        );
    }
}

#[test]
fn a_test_without_its_rule_is_found() {
    let documents = || {
        [
            document("abc", "**R1 One.**"),
            document("xyz", "**R2 Two.**"),
        ]
    };
    let check = |path: &str, text: &str| unmatched(&documents(), &[Source::new(path, text)]);
    let found = check(
        "src/protocol/abc/mod.rs",
        "#[test] fn r1_x() {} #[test] fn r2_x() {}",
    );
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("`r2_x` names a rule that src/protocol/abc/PROTOCOL.md has not"));
    assert!(found[1].contains("xyz/PROTOCOL.md: rule R2 has no test"));

    let modules = "mod abc { #[test] fn r1_x() {} } mod for_xyz { #[test] fn r2_x() {} }";
    assert!(check("tests/it/rules.rs", modules).is_empty());
    let homeless = check("tests/it/rules.rs", "mod abc {} #[test] fn r1_x() {}");
    assert!(
        homeless[0].contains("belongs to no protocol"),
        "{homeless:?}"
    );
    let several = check("tests/abc_xyz.rs", "#[test] fn r1_x() {}");
    assert!(
        several[0].contains("belongs to several protocols"),
        "{several:?}"
    );
    let early = unmatched(&[], &[Source::new("tests/abc.rs", "#[test] fn r1_x() {}")]);
    assert_eq!(early.len(), 1, "{early:?}");
}

#[test]
fn a_document_that_numbers_badly_is_found() {
    for text in [
        "",
        "R1 One.",
        "**R1.** One",
        "**R1 One** two",
        "**R1x One.**",
        "**R1 A.**\n**R1 B.**",
    ] {
        let found = unmatched(&[document("abc", text)], &[]);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert!(!found[0].contains("has no test"), "{text}: {found:?}");
    }
}

#[test]
fn a_protocol_without_a_document_is_found() {
    let paths = [
        "protocol/mod.rs",
        "protocol/abc/mod.rs",
        "protocol/xyz/mod.rs",
        "protocol/xyz/w.rs",
    ];
    let sources = paths.map(|path| Source::new(&format!("src/{path}"), ""));
    let found = unwritten(&sources, &[document("abc", "")]);
    assert_eq!(found, ["src/protocol/xyz has no PROTOCOL.md"]);
}
