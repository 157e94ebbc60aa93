//! A Rust file as tokens: enough of the language to tell code from comments, strings and tests.

use std::collections::BTreeSet;
use std::ops::Range;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A word: identifier or keyword.
    Word,
    /// A string, character, number or lifetime.
    Literal,
    /// A comment, documentation too.
    Comment,
    /// A `::`, or any other single character.
    Mark,
}

/// A token and the lines on which it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub kind: Kind,
    pub text: String,
    pub line: usize,
    pub last_line: usize,
}

/// A function: its name, and which tokens of the code it is.
pub struct Function {
    pub name: String,
    pub tokens: Range<usize>,
}

/// A file of the project.
pub struct Source {
    /// From the project's root on, with slashes.
    pub path: String,
    /// Everything, comments too.
    pub tokens: Vec<Token>,
    /// Without comments.
    pub code: Vec<Token>,
    /// Without comments and without what is compiled for tests only.
    pub product: Vec<Token>,
}

impl Source {
    pub fn new(path: &str, text: &str) -> Self {
        let tokens = tokenize(text);
        let is_code = |token: &&Token| token.kind != Kind::Comment;
        let code: Vec<Token> = tokens.iter().filter(is_code).cloned().collect();
        let product = match path.starts_with("src/") {
            true => without_tests(&code),
            false => Vec::new(),
        };
        Self {
            path: path.to_owned(),
            tokens,
            code,
            product,
        }
    }

    /// `path:line`, as editors take it.
    pub fn at(&self, token: &Token) -> String {
        format!("{}:{}", self.path, token.line)
    }

    /// The module that the file is, from the crate's root on.
    pub fn module(&self) -> Vec<String> {
        let inner = self.path.trim_start_matches("src/").trim_end_matches(".rs");
        let mut parts: Vec<String> = inner.split('/').map(str::to_owned).collect();
        if matches!(
            parts.last().map(String::as_str),
            Some("mod" | "lib" | "main")
        ) {
            parts.pop();
        }
        parts
    }
}

/// Empties the product of files that are modules of tests: `#[cfg(test)] mod name;`.
pub fn mark_test_files(sources: &mut [Source]) {
    let test_modules: Vec<String> = sources.iter().flat_map(test_modules).collect();
    for source in sources {
        let is_below = |module: &String| {
            let rest = source.path.strip_prefix(module.as_str());
            rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        };
        if test_modules.iter().any(is_below) {
            source.product.clear();
        }
    }
}

/// The paths, without extension, of the modules that `source` declares for tests only.
fn test_modules(source: &Source) -> Vec<String> {
    let names = |tokens: &[Token]| -> Vec<String> {
        let declared = tokens.windows(3).filter(|window| {
            window[0].text == "mod" && window[1].kind == Kind::Word && window[2].text == ";"
        });
        declared.map(|window| window[1].text.clone()).collect()
    };
    let in_product = names(&source.product);
    let folder: Vec<String> = ["src".to_owned()]
        .into_iter()
        .chain(source.module())
        .collect();
    let of_tests = names(&source.code)
        .into_iter()
        .filter(|name| source.path.starts_with("src/") && !in_product.contains(name));
    of_tests
        .map(|name| format!("{}/{name}", folder.join("/")))
        .collect()
}

/// On how many lines `tokens` stand; none of them is a comment.
pub fn lines(tokens: &[Token]) -> usize {
    let lines = tokens.iter().flat_map(|token| token.line..=token.last_line);
    lines.collect::<BTreeSet<usize>>().len()
}

/// All functions with a body, those inside others too.
pub fn functions(code: &[Token]) -> Vec<Function> {
    let mut functions = Vec::new();
    for start in 0..code.len() {
        let is_function = code[start].text == "fn";
        let name = code.get(start + 1).filter(|name| name.kind == Kind::Word);
        if let Some(name) = name.filter(|_| is_function) {
            let tokens = start..end_of_item(code, start);
            if code[tokens.end - 1].text == "}" {
                let name = name.text.clone();
                functions.push(Function { name, tokens });
            }
        }
    }
    functions
}

/// Behind the item that starts at `start`: its closing brace or its semicolon.
pub fn end_of_item(code: &[Token], start: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in code.iter().enumerate().skip(start) {
        match token.text.as_str() {
            _ if token.kind != Kind::Mark => {}
            "(" | "[" | "{" => depth += 1,
            ")" | "]" => depth = depth.saturating_sub(1),
            "}" => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return index + 1;
                }
            }
            ";" if depth == 0 => return index + 1,
            _ => {}
        }
    }
    code.len()
}

/// The words with which an item begins.
const ITEMS: [&str; 13] = [
    "pub", "fn", "mod", "use", "struct", "enum", "impl", "trait", "const", "static", "type",
    "unsafe", "async",
];

fn without_tests(code: &[Token]) -> Vec<Token> {
    let texts = |range: Range<usize>| -> Vec<&str> {
        let tokens = code.get(range).unwrap_or_default();
        tokens.iter().map(|token| token.text.as_str()).collect()
    };
    let mut product = Vec::new();
    let mut at = 0;
    while at < code.len() {
        if texts(at..at + 7) == ["#", "[", "cfg", "(", "test", ")", "]"] {
            at += 7;
            while texts(at..at + 2) == ["#", "["] {
                at = end_of_brackets(code, at + 1);
            }
            // A field, a variant or a statement stays: only items are looked for.
            if texts(at..at + 1).iter().any(|first| ITEMS.contains(first)) {
                at = end_of_item(code, at);
            }
        } else {
            product.push(code[at].clone());
            at += 1;
        }
    }
    product
}

/// Behind the bracket that closes the one at `open`.
fn end_of_brackets(code: &[Token], open: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in code.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "[" if token.kind == Kind::Mark => depth += 1,
            "]" if token.kind == Kind::Mark => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return index + 1;
        }
    }
    code.len()
}

/// Cuts `text` into tokens; white space is not among them.
pub fn tokenize(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text;
    let mut line = 1;
    while let Some(first) = rest.chars().next() {
        let (kind, length) = next_token(rest, first);
        let (piece, behind) = rest.split_at(length);
        let last_line = line + piece.matches('\n').count();
        if let Some(kind) = kind {
            let text = piece.to_owned();
            tokens.push(Token {
                kind,
                text,
                line,
                last_line,
            });
        }
        (rest, line) = (behind, last_line);
    }
    tokens
}

/// What `rest` begins with, and how many bytes of it that is; no kind for white space.
fn next_token(rest: &str, first: char) -> (Option<Kind>, usize) {
    let while_true = |is_part: fn(char) -> bool| rest.find(|c| !is_part(c)).unwrap_or(rest.len());
    if first.is_whitespace() {
        (None, while_true(char::is_whitespace))
    } else if rest.starts_with("//") {
        (Some(Kind::Comment), rest.find('\n').unwrap_or(rest.len()))
    } else if rest.starts_with("/*") {
        (Some(Kind::Comment), block_comment(rest))
    } else if let Some(length) = string(rest).or_else(|| quoted(rest)) {
        (Some(Kind::Literal), length)
    } else if first.is_ascii_digit() {
        (Some(Kind::Literal), while_true(is_word))
    } else if is_word(first) {
        (Some(Kind::Word), while_true(is_word))
    } else if rest.starts_with("::") {
        (Some(Kind::Mark), 2)
    } else {
        (Some(Kind::Mark), first.len_utf8())
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Block comments nest.
fn block_comment(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest[at..].starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// The length of the string of any kind that `rest` begins with.
fn string(rest: &str) -> Option<usize> {
    let prefix = ["br", "cr", "b", "c", "r"].into_iter().find(|prefix| {
        let behind = rest.strip_prefix(prefix).unwrap_or_default();
        let unhashed = behind.trim_start_matches('#');
        unhashed.starts_with('"') && (prefix.ends_with('r') || unhashed == behind)
    });
    let prefix = prefix.unwrap_or_default();
    let behind = &rest[prefix.len()..];
    if prefix.ends_with('r') {
        let hashes = behind.len() - behind.trim_start_matches('#').len();
        let close = format!("\"{}", "#".repeat(hashes));
        let open = prefix.len() + hashes + 1;
        let inner = rest[open..].find(&close).unwrap_or(rest.len() - open);
        return Some((open + inner + close.len()).min(rest.len()));
    }
    let inner = behind.strip_prefix('"')?;
    let end = unescaped(inner, '"').unwrap_or(inner.len());
    Some((prefix.len() + 1 + end + 1).min(rest.len()))
}

/// The length of the character or lifetime that `rest` begins with.
fn quoted(rest: &str) -> Option<usize> {
    let prefix = usize::from(rest.starts_with("b'"));
    let inner = rest[prefix..].strip_prefix('\'')?;
    let first = inner.chars().next()?;
    let is_character = first == '\\' || inner[first.len_utf8()..].starts_with('\'');
    let length = match is_character {
        true => unescaped(inner, '\'').map_or(inner.len(), |end| end + 1),
        false => inner.find(|c| !is_word(c)).unwrap_or(inner.len()),
    };
    Some(prefix + 1 + length)
}

/// Where `close` stands in `inner` without a backslash in front.
fn unescaped(inner: &str, close: char) -> Option<usize> {
    let mut escaped = false;
    inner.char_indices().find_map(|(at, c)| {
        let found = c == close && !escaped;
        escaped = c == '\\' && !escaped;
        found.then_some(at)
    })
}

#[test]
fn comments_strings_and_lifetimes_are_told_from_code() {
    let text = r###"
        /* a /* nested */ comment */ fn f<'a>(x: &'a str) -> char { // fn g() {
            let s = "fn \" {"; let r = r#"} " fn"#; let b = b"\\"; let c = '\''; let d = '{';
            'é'
        }
    "###;
    let source = Source::new("src/x.rs", text);
    let words = source.code.iter().filter(|token| token.kind == Kind::Word);
    let words: Vec<&str> = words.map(|token| token.text.as_str()).collect();
    let expected = [
        "fn", "f", "x", "str", "char", "let", "s", "let", "r", "let", "b", "let", "c",
    ];
    assert_eq!(words, [&expected[..], &["let", "d"]].concat());
    let literals = source
        .code
        .iter()
        .filter(|token| token.kind == Kind::Literal);
    let literals: Vec<&str> = literals.map(|token| token.text.as_str()).collect();
    let strings = [r#""fn \" {""#, r###"r#"} " fn"#"###, r#"b"\\""#];
    let expected = [
        "'a", "'a", strings[0], strings[1], strings[2], r"'\''", "'{'", "'é'",
    ];
    assert_eq!(literals, expected);
    assert_eq!(lines(&source.code), 4);
    let functions = functions(&source.code);
    assert_eq!(functions.len(), 1);
    assert_eq!(functions[0].tokens, 0..source.code.len());
}

#[test]
fn what_is_compiled_for_tests_only_is_not_the_product() {
    let text = "
        fn kept() {}
        #[cfg(test)]
        #[allow(dead_code)]
        fn dropped(x: [u8; 2]) { if true { } }
        #[cfg(test)] use dropped::too;
        #[cfg(not(test))] fn kept_too() {}
        #[cfg(test)] mod tests { fn dropped() {} }
        fn last() {}
    ";
    let source = Source::new("src/x.rs", text);
    let names = |code: &[Token]| -> Vec<String> {
        functions(code)
            .into_iter()
            .map(|function| function.name)
            .collect()
    };
    assert_eq!(names(&source.product), ["kept", "kept_too", "last"]);
    assert!(source.product.iter().all(|token| token.text != "dropped"));
    assert_eq!(names(&source.code).len(), 5);
    assert!(Source::new("tests/x.rs", text).product.is_empty());
}

#[test]
fn a_file_that_is_a_module_of_tests_has_no_product() {
    let mut sources = [
        Source::new("src/a/mod.rs", "#[cfg(test)] mod tests; mod b; fn f() {}"),
        Source::new("src/a/tests.rs", "fn f() {}"),
        Source::new("src/a/tests/deep.rs", "fn f() {}"),
        Source::new("src/a/b.rs", "fn f() {} #[cfg(test)] mod model;"),
        Source::new("src/a/b/model.rs", "fn f() {}"),
        Source::new("src/a/model.rs", "fn f() {}"),
    ];
    mark_test_files(&mut sources);
    let product = sources.iter().filter(|source| !source.product.is_empty());
    let product: Vec<&str> = product.map(|source| source.path.as_str()).collect();
    assert_eq!(product, ["src/a/mod.rs", "src/a/b.rs", "src/a/model.rs"]);
}
