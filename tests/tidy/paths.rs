//! All paths that a file names: in its imports, written out one by one, and elsewhere.

use super::source::{Kind, Source, Token};

/// A path, resolved as far as it can be: inside the crate it begins with `crate`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedPath {
    pub parts: Vec<String>,
    /// Index of its first token in the product.
    pub token: usize,
}

/// The paths in the product of `source`.
pub fn paths(source: &Source) -> Vec<NamedPath> {
    let code = &source.product;
    let module = source.module();
    let mut paths = Vec::new();
    let mut at = 0;
    while at < code.len() {
        let first = at;
        let mut found = Vec::new();
        if is_import(code, at) {
            at = tree(code, at + 1, &[], &mut found);
        } else if starts_path(code, at) {
            at = plain(code, at, &mut found);
        } else {
            at += 1;
        }
        let resolved = found.into_iter().map(|parts| NamedPath {
            parts: resolve(parts, &module),
            token: first,
        });
        paths.extend(resolved);
    }
    paths
}

/// `use` also stands in the bounds of types, with a `<` behind it.
fn is_import(code: &[Token], at: usize) -> bool {
    code[at].text == "use" && code.get(at + 1).is_some_and(|next| next.text != "<")
}

fn starts_path(code: &[Token], at: usize) -> bool {
    code[at].kind == Kind::Word && code.get(at + 1).is_some_and(|next| next.text == "::")
}

/// Reads `a::b::c`; returns where it ends.
fn plain(code: &[Token], mut at: usize, found: &mut Vec<Vec<String>>) -> usize {
    let mut parts = Vec::new();
    while let Some(word) = code.get(at).filter(|word| word.kind == Kind::Word) {
        parts.push(word.text.clone());
        at += 1;
        match code.get(at) {
            Some(next) if next.text == "::" => at += 1,
            _ => break,
        }
    }
    found.push(parts);
    at
}

/// Reads `a::{b, c::*, d as e}` behind `prefix`; returns where it ends.
fn tree(code: &[Token], mut at: usize, prefix: &[String], found: &mut Vec<Vec<String>>) -> usize {
    let mut parts = prefix.to_vec();
    while let Some(token) = code.get(at) {
        match token.text.as_str() {
            "::" => at += 1,
            "{" => return group(code, at + 1, &parts, found),
            "*" => {
                found.push(parts);
                return at + 1;
            }
            "as" => at += 2,
            _ if token.kind == Kind::Word => {
                parts.push(token.text.clone());
                at += 1;
            }
            _ => break,
        }
    }
    found.push(parts);
    at
}

/// Reads the trees up to the closing brace; returns what is behind it.
fn group(code: &[Token], mut at: usize, prefix: &[String], found: &mut Vec<Vec<String>>) -> usize {
    while let Some(token) = code.get(at) {
        match token.text.as_str() {
            "}" => return at + 1,
            "," => at += 1,
            _ => at = tree(code, at, prefix, found),
        }
    }
    at
}

/// Replaces `self` and `super` at the beginning by where they lead from `module`, and drops the
/// `self` that ends an import.
fn resolve(mut parts: Vec<String>, module: &[String]) -> Vec<String> {
    if parts.len() > 1 && parts.last().is_some_and(|last| last == "self") {
        parts.pop();
    }
    let ups = parts.iter().take_while(|part| *part == "super").count();
    let itself = usize::from(ups == 0 && parts.first().is_some_and(|first| first == "self"));
    if ups + itself == 0 {
        return parts;
    }
    let above = module.len().saturating_sub(ups);
    let root = ["crate".to_owned()].into_iter();
    let outer = root.chain(module[..above].iter().cloned());
    outer.chain(parts.drain(ups + itself..)).collect()
}

#[test]
fn imports_are_written_out_and_resolved() {
    let text = "
        use std::{fmt::{self, Display as Show}, net::IpAddr};
        pub(crate) use super::super::wheel::*;
        use crate::bytes;
        fn f() -> impl Show + use<> { self::g::<u8>(); super::h::Y::z(Self::A, std::mem::take(b)) }
        #[cfg(test)] mod tests { use super::hidden; }
    ";
    let found = paths(&Source::new("src/engine/lane/carried.rs", text));
    let found: Vec<String> = found.iter().map(|path| path.parts.join("::")).collect();
    let expected = [
        "std::fmt",
        "std::fmt::Display",
        "std::net::IpAddr",
        "crate::engine::wheel",
        "crate::bytes",
        "crate::engine::lane::carried::g",
        "crate::engine::lane::h::Y::z",
        "Self::A",
        "std::mem::take",
    ];
    assert_eq!(found, expected);
}
