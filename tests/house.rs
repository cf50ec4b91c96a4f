//! Holds the sources to the house rules of the design: which module may import which, who may name
//! git2, processes, the environment and the clock, how files open and how long they get.
//!
//! The checkers work on tokens, with comments, the insides of strings and `#[cfg(test)]` items taken out. They
//! read what is written, not what the compiler resolves: a macro that builds a path would get past.

use std::fs;
use std::path::Path;

/// The order of imports, highest first; the modules of one rank don't know each other.
const RANKS: [&[&str]; 10] = [
    &["cli"],
    &["batch", "mcp"],
    &["output"],
    &["integrate"],
    &["layout"],
    &["workspace"],
    &["mirror", "events"],
    &["git"],
    &["disk"],
    &["model"],
];

/// The only folder that names git2.
const GIT_FOLDER: &str = "src/git/";
/// Besides [`GIT_FOLDER`]: start the user's command, or this program itself, never git.
const MAY_START_PROCESSES: &[&str] = &[
    "src/layout/exec.rs",
    // Becomes the user's command, inside the namespace.
    "src/layout/overlay/namespace.rs",
    // Tries a mount out, in a process of its own.
    "src/layout/overlay/probe.rs",
];
/// The binary's own files: they print, and read the environment, the arguments and the clock.
const FACE: &[&str] = &["src/main.rs", "src/cli/"];
/// Outside the face: nobody; the environment is handed down as a value.
const MAY_READ_ENV: &[&str] = &[];
/// Outside the face: nobody, yet. A file that waits for a lock with a limit may be named here.
const MAY_READ_CLOCK: &[&str] = &[];
const MAY_BE_UNSAFE: &[&str] = &["src/disk/out.rs", "src/git/library.rs", "src/layout/sys.rs"];

const MAX_LINES: usize = 400;
const OVER_MAX_REASON: &str = "//! Over 400 lines because ";

/// One source file, `path` relative to the package and with `/`.
struct Source {
    path: String,
    text: String,
}

/// A word, a `::`, any other single character, or `""` for a string or character literal.
#[derive(Clone, Debug, PartialEq)]
struct Token {
    text: String,
    line: usize,
}

// ---- reading sources ----

/// Splits Rust source into tokens, without comments and the insides of literals.
fn tokens(source: &str) -> Vec<Token> {
    let chars: Vec<char> = source.chars().collect();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < chars.len() {
        let c = chars[at];
        let next = chars.get(at + 1).copied().unwrap_or(' ');
        let end = if c == '/' && next == '/' {
            end_of_line(&chars, at)
        } else if c == '/' && next == '*' {
            end_of_block_comment(&chars, at)
        } else if is_word(c) {
            let end = (at..chars.len())
                .find(|&i| !is_word(chars[i]))
                .unwrap_or(chars.len());
            let word: String = chars[at..end].iter().collect();
            let raw = raw_string_end(&chars, end).filter(|_| matches!(&*word, "r" | "br" | "cr"));
            if let Some(raw_end) = raw {
                push(&mut found, "\"\"", line);
                raw_end
            } else if matches!(&*word, "b" | "c") && matches!(chars.get(end), Some('"' | '\'')) {
                end
            } else {
                push(&mut found, &word, line);
                end
            }
        } else if c == '"' {
            push(&mut found, "\"\"", line);
            end_of_literal(&chars, at, '"')
        } else if c == '\'' && (next == '\\' || chars.get(at + 2) == Some(&'\'')) {
            push(&mut found, "\"\"", line);
            end_of_literal(&chars, at, '\'')
        } else if c == ':' && next == ':' {
            push(&mut found, "::", line);
            at + 2
        } else {
            if !c.is_whitespace() {
                push(&mut found, &c.to_string(), line);
            }
            at + 1
        };
        line += chars[at..end].iter().filter(|&&c| c == '\n').count();
        at = end;
    }
    found
}

fn push(found: &mut Vec<Token>, text: &str, line: usize) {
    found.push(Token {
        text: text.to_owned(),
        line,
    });
}

fn end_of_line(chars: &[char], from: usize) -> usize {
    (from..chars.len())
        .find(|&i| chars[i] == '\n')
        .unwrap_or(chars.len())
}

fn end_of_block_comment(chars: &[char], from: usize) -> usize {
    let (mut depth, mut at) = (0, from);
    while at + 1 < chars.len() {
        match (chars[at], chars[at + 1]) {
            ('/', '*') => depth += 1,
            ('*', '/') => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    chars.len()
}

fn end_of_literal(chars: &[char], from: usize, quote: char) -> usize {
    let mut at = from + 1;
    while at < chars.len() && chars[at] != quote {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

/// Where a raw string ends whose `#`s or quote start at `from`; `None` if none starts there.
fn raw_string_end(chars: &[char], from: usize) -> Option<usize> {
    let hashes = chars[from..].iter().take_while(|&&c| c == '#').count();
    let open = from + hashes;
    if chars.get(open) != Some(&'"') {
        return None;
    }
    let closes = |&i: &usize| {
        chars[i] == '"'
            && chars[i + 1..]
                .iter()
                .take(hashes)
                .filter(|&&c| c == '#')
                .count()
                == hashes
    };
    let close = (open + 1..chars.len()).find(closes)?;
    Some(close + 1 + hashes)
}

/// Where the item ends that starts at `from`: after its `;`, or after its braces.
fn item_end(tokens: &[Token], from: usize) -> usize {
    let is_use = tokens[from..].iter().take(5).any(|t| t.text == "use");
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(from) {
        match &*token.text {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => {
                depth -= 1;
                if depth == 0 && token.text == "}" && !is_use {
                    return at + 1;
                }
            }
            ";" if depth == 0 => return at + 1,
            _ => {}
        }
    }
    tokens.len()
}

fn starts_with(tokens: &[Token], words: &[&str]) -> bool {
    tokens.len() >= words.len()
        && words
            .iter()
            .zip(tokens)
            .all(|(word, token)| token.text == *word)
}

const CFG_TEST: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];

/// Takes out the items marked `#[cfg(test)]`, with the attributes that follow the mark.
fn without_tests(tokens: Vec<Token>) -> Vec<Token> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if !starts_with(&tokens[at..], &CFG_TEST) {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        }
        while starts_with(&tokens[at..], &["#", "["]) {
            let close = bracket_end(&tokens, at + 1);
            at = close;
        }
        at = item_end(&tokens, at);
    }
    kept
}

/// Where the bracket ends that opens at `from`.
fn bracket_end(tokens: &[Token], from: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(from) {
        match &*token.text {
            "[" => depth += 1,
            "]" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// A path that is named somewhere, in a `use` (its braces spread out) or in code.
#[derive(Debug, PartialEq)]
struct Named {
    segments: Vec<String>,
    line: usize,
    /// How many inline modules it stands in, for counting `super`.
    depth: usize,
}

fn named_paths(tokens: &[Token]) -> Vec<Named> {
    let mut found = Vec::new();
    // For each open brace, whether an inline module opened it.
    let mut braces = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let depth = braces.iter().filter(|&&module| module).count();
        match &*tokens[at].text {
            "{" => {
                braces.push(at >= 2 && tokens[at - 2].text == "mod");
                at += 1;
            }
            "}" => {
                braces.pop();
                at += 1;
            }
            "use" => at = use_tree(tokens, at + 1, &[], depth, &mut found),
            text if is_word(text) => {
                let line = tokens[at].line;
                let mut segments = vec![text.to_owned()];
                while at + 2 < tokens.len()
                    && tokens[at + 1].text == "::"
                    && is_word(&tokens[at + 2].text)
                {
                    segments.push(tokens[at + 2].text.clone());
                    at += 2;
                }
                at += 1;
                found.push(Named {
                    segments,
                    line,
                    depth,
                });
            }
            _ => at += 1,
        }
    }
    found
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Reads one tree of a `use`, `a::{b, c::*} as d`, and returns where it ends.
fn use_tree(
    tokens: &[Token],
    mut at: usize,
    prefix: &[String],
    depth: usize,
    found: &mut Vec<Named>,
) -> usize {
    let mut segments = prefix.to_vec();
    while at < tokens.len() {
        let token = &tokens[at];
        match &*token.text {
            "::" => at += 1,
            "{" => {
                at += 1;
                while at < tokens.len() && tokens[at].text != "}" {
                    let end = use_tree(tokens, at, &segments, depth, found);
                    // Steps over the comma, and over whatever else is no part of a tree.
                    at = if end > at { end } else { at + 1 };
                }
                return at + 1;
            }
            "as" => at += 2,
            text if is_word(text) || text == "*" => {
                segments.push(text.to_owned());
                at += 1;
            }
            _ => break,
        }
    }
    // Empty for `use<'a>`, which is no import.
    if segments.len() > prefix.len() {
        found.push(Named {
            segments,
            line: tokens[at - 1].line,
            depth,
        });
    }
    at
}

// ---- the rules ----

/// One breach: `<path>:<line>: <what>`.
type Breaches = Vec<String>;

fn is_among(path: &str, places: &[&str]) -> bool {
    places
        .iter()
        .any(|place| path == *place || (place.ends_with('/') && path.starts_with(place)))
}

fn code_of(source: &Source) -> Vec<Token> {
    without_tests(tokens(&source.text))
}

/// The modules above the items of a file: `src/git/objects.rs` is `git`, `objects`.
fn module_of(path: &str) -> Vec<String> {
    let inner = path.trim_start_matches("src/").trim_end_matches(".rs");
    let mut modules: Vec<String> = inner.split('/').map(str::to_owned).collect();
    if matches!(modules.last().map(String::as_str), Some("mod" | "lib")) {
        modules.pop();
    }
    if modules == ["main"] {
        modules = vec!["cli".to_owned()];
    }
    modules
}

fn rank(module: &str) -> Option<usize> {
    RANKS.iter().position(|modules| modules.contains(&module))
}

/// (a) Imports run down. `lib.rs` only lists the modules, and is free to name them all.
fn imports_up(source: &Source) -> Breaches {
    let home = module_of(&source.path);
    let Some(here) = home.first() else {
        return Vec::new();
    };
    let own_crate_is_binary = here == "cli";
    let mut breaches = Vec::new();
    let Some(own_rank) = rank(here) else {
        return vec![format!(
            "{}:1: '{here}' has no place in the order of modules",
            source.path
        )];
    };
    for named in named_paths(&code_of(source)) {
        let supers = named.segments.iter().take_while(|s| *s == "super").count();
        let target = match named.segments[0].as_str() {
            "crate" if own_crate_is_binary => continue,
            "crate" | "git_vws" => named.segments.get(1),
            // As many `super`s as there are modules above reach the root.
            "super" if supers >= home.len() + named.depth && !own_crate_is_binary => {
                named.segments.get(supers)
            }
            _ => continue,
        };
        let Some(target) = target else {
            // `pub(crate)`, `pub(super)`
            continue;
        };
        if target == here {
            continue;
        }
        let complaint = match rank(target) {
            None => format!("'{target}' is no module of the order; name the module it lives in"),
            Some(rank) if rank < own_rank => format!("'{here}' imports up from '{target}'"),
            Some(rank) if rank == own_rank => {
                format!("'{here}' imports from '{target}' beside it")
            }
            Some(_) => continue,
        };
        breaches.push(format!("{}:{}: {complaint}", source.path, named.line));
    }
    breaches
}

fn names_in_a_row(named: &Named, words: &[&str]) -> bool {
    named
        .segments
        .windows(words.len())
        .any(|window| window.iter().zip(words).all(|(have, word)| have == word))
}

/// (b) git2 and processes only behind the door.
fn git_outside_the_door(source: &Source) -> Breaches {
    if source.path.starts_with(GIT_FOLDER) {
        return Vec::new();
    }
    let named = named_paths(&code_of(source));
    let clap_command = named.iter().any(|n| n.segments == ["clap", "Command"]);
    let mut breaches = Vec::new();
    for named in named {
        let breach = |what: &str| format!("{}:{}: names {what}", source.path, named.line);
        if let Some(library) = named
            .segments
            .iter()
            .find(|s| *s == "git2" || *s == "libgit2_sys")
        {
            breaches.push(breach(library));
        }
        let starts = names_in_a_row(&named, &["process", "Command"])
            || names_in_a_row(&named, &["std", "process", "*"])
            || (names_in_a_row(&named, &["Command", "new"])
                && !clap_command
                && named.segments[0] != "clap");
        if starts && !is_among(&source.path, MAY_START_PROCESSES) {
            breaches.push(breach("std::process::Command"));
        }
    }
    breaches
}

/// (c) Only the face prints, and reads the environment and the clock.
fn face_outside_the_face(source: &Source) -> Breaches {
    if is_among(&source.path, FACE) {
        return Vec::new();
    }
    let code = code_of(source);
    let mut breaches = Vec::new();
    for named in named_paths(&code) {
        let env = names_in_a_row(&named, &["std", "env"])
            || names_in_a_row(&named, &["env", "var"])
            || names_in_a_row(&named, &["env", "var_os"]);
        let clock = names_in_a_row(&named, &["SystemTime", "now"])
            || names_in_a_row(&named, &["Instant", "now"]);
        let stream = names_in_a_row(&named, &["io", "stdout"])
            || names_in_a_row(&named, &["io", "stderr"])
            || names_in_a_row(&named, &["io", "stdin"]);
        if (env && !is_among(&source.path, MAY_READ_ENV))
            || (clock && !is_among(&source.path, MAY_READ_CLOCK))
            || stream
        {
            let path = named.segments.join("::");
            breaches.push(format!("{}:{}: uses {path}", source.path, named.line));
        }
    }
    for pair in code.windows(2) {
        let prints = matches!(
            &*pair[0].text,
            "println" | "eprintln" | "print" | "eprint" | "dbg"
        );
        if prints && pair[1].text == "!" {
            let (line, what) = (pair[0].line, &pair[0].text);
            breaches.push(format!("{}:{line}: uses {what}!", source.path));
        }
    }
    breaches
}

/// (d) A file says what it is for, and why if it is long.
fn header_and_length(source: &Source) -> Breaches {
    let mut breaches = Vec::new();
    let header = || {
        source
            .text
            .lines()
            .take_while(|line| line.starts_with("//!"))
    };
    let says_something = header().any(|line| line.trim_start_matches("//!").trim().len() > 3);
    if !says_something {
        breaches.push(format!(
            "{}:1: does not open with a `//!` header",
            source.path
        ));
    }
    let lines = source.text.lines().count();
    let has_reason = header().any(|line| line.starts_with(OVER_MAX_REASON));
    if lines > MAX_LINES && !has_reason {
        breaches.push(format!(
            "{}:{lines}: more than {MAX_LINES} lines, and no '{OVER_MAX_REASON}...' in its header",
            source.path
        ));
    }
    breaches
}

/// (e) `unsafe` in three files.
fn stray_unsafe(source: &Source) -> Breaches {
    if is_among(&source.path, MAY_BE_UNSAFE) {
        return Vec::new();
    }
    code_of(source)
        .iter()
        .filter(|token| token.text == "unsafe")
        .map(|token| format!("{}:{}: unsafe", source.path, token.line))
        .collect()
}

// ---- the tests ----

fn read_sources(folder: &Path, prefix: &str, found: &mut Vec<Source>) {
    for entry in fs::read_dir(folder).expect("can't read a source folder") {
        let entry = entry.expect("can't read a source folder");
        let name = entry
            .file_name()
            .into_string()
            .expect("source names are UTF-8");
        let path = format!("{prefix}/{name}");
        if entry.path().is_dir() {
            read_sources(&entry.path(), &path, found);
        } else if path.ends_with(".rs") {
            let text = fs::read_to_string(entry.path()).expect("can't read a source file");
            found.push(Source { path, text });
        }
    }
}

/// Where the files of `#[cfg(test)] mod x;` may lie, for all such declarations of one file.
fn test_files(source: &Source) -> Vec<String> {
    let tokens = tokens(&source.text);
    let folder = match source.path.rsplit_once('/') {
        Some((folder, "mod.rs" | "lib.rs" | "main.rs")) => folder.to_owned(),
        _ => source.path.trim_end_matches(".rs").to_owned(),
    };
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        if !starts_with(&tokens[at..], &CFG_TEST) {
            continue;
        }
        let end = item_end(&tokens, bracket_end(&tokens, at + 1));
        if let [.., word, name, semicolon] = &tokens[at..end]
            && word.text == "mod"
            && semicolon.text == ";"
        {
            found.push(format!("{folder}/{}.rs", name.text));
            found.push(format!("{folder}/{}/mod.rs", name.text));
        }
    }
    found
}

/// Whether a file is one of the declared test modules, or lies in the folder of one.
fn is_test(path: &str, test_files: &[String]) -> bool {
    test_files.iter().any(|file| {
        let folder = file.strip_suffix("mod.rs");
        path == file || folder.is_some_and(|folder| path.starts_with(folder))
    })
}

fn hold(rule: fn(&Source) -> Breaches, tests_too: bool) {
    let mut sources = Vec::new();
    read_sources(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        "src",
        &mut sources,
    );
    assert!(
        sources.iter().any(|s| s.path == "src/lib.rs"),
        "src/ was not read"
    );
    let test_files: Vec<String> = sources.iter().flat_map(test_files).collect();
    let breaches: Vec<String> = sources
        .iter()
        .filter(|source| tests_too || !is_test(&source.path, &test_files))
        .flat_map(rule)
        .collect();
    assert!(breaches.is_empty(), "\n{}\n", breaches.join("\n"));
}

#[test]
fn imports_run_down() {
    hold(imports_up, false);
}

#[test]
fn git_is_named_only_behind_its_door() {
    hold(git_outside_the_door, false);
}

#[test]
fn only_the_face_prints_and_reads_the_world() {
    hold(face_outside_the_face, false);
}

#[test]
fn files_say_what_they_are_for_and_stay_short() {
    hold(header_and_length, true);
}

#[test]
fn unsafe_stays_in_its_files() {
    hold(stray_unsafe, false);
}

/// The checkers themselves: what they must refuse, and what they must leave alone.
mod checkers {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    #[track_caller]
    fn refused(rule: fn(&Source) -> Breaches, path: &str, text: &str) {
        let breaches = rule(&source(path, text));
        assert_eq!(breaches.len(), 1, "{path}: {text}\n{breaches:?}");
    }

    #[track_caller]
    fn allowed(rule: fn(&Source) -> Breaches, path: &str, text: &str) {
        let breaches = rule(&source(path, text));
        assert!(breaches.is_empty(), "{path}: {text}\n{breaches:?}");
    }

    #[test]
    fn tokens_leave_out_comments_and_literals() {
        let text = r####"a /* b /* c */ d */ :: e // f
            "g\"h" 'i' '\'' 'life b"j" r#"k"l"# br"m" b'n' x::<'y>() "####;
        let words: Vec<String> = tokens(text).into_iter().map(|t| t.text).collect();
        assert_eq!(
            words.join(" "),
            r#"a :: e "" "" "" ' life "" "" "" "" x :: < ' y > ( )"#
        );
        assert_eq!(tokens("a\n/*\n*/\"\n\" b")[2].line, 4);
    }

    #[test]
    fn test_items_are_taken_out() {
        let text = "a #[cfg(test)] #[allow(x)] mod tests { b { c } } d #[cfg(test)] use e::{f}; g \
                    #[cfg(test)] fn h() -> [u8; 2] { i } j #[cfg(test)] mod k; l #[cfg(unix)] m";
        let words: Vec<String> = without_tests(tokens(text))
            .into_iter()
            .map(|t| t.text)
            .collect();
        assert_eq!(words.join(" "), "a d g j l # [ cfg ( unix ) ] m");
    }

    #[test]
    fn use_trees_are_spread() {
        let found = named_paths(&tokens(
            "use a::{self, b::{c, d as e}, f::*}; g::h::<i>(); mod m { j }",
        ));
        let paths: Vec<String> = found.iter().map(|n| n.segments.join("::")).collect();
        assert_eq!(
            paths,
            [
                "a::self", "a::b::c", "a::b::d", "a::f::*", "g::h", "i", "mod", "m", "j"
            ]
        );
        assert_eq!(found.last().map(|n| n.depth), Some(1));
    }

    #[test]
    fn odd_uses_are_survived() {
        let found = named_paths(&tokens(
            "fn f() -> impl A + use<'_> {} use {b::r#type, ::c};",
        ));
        assert!(found.iter().all(|named| !named.segments.is_empty()));
        assert!(
            found.iter().any(|named| named.segments == ["c"]),
            "{found:?}"
        );
    }

    #[test]
    fn test_files_are_found() {
        let declared = test_files(&source(
            "src/git/pack.rs",
            "#[cfg(test)] mod tests; mod other;",
        ));
        assert_eq!(
            declared,
            ["src/git/pack/tests.rs", "src/git/pack/tests/mod.rs"]
        );
        let declared = test_files(&source("src/git/mod.rs", "#[cfg(test)] #[path] mod tests;"));
        assert_eq!(declared[0], "src/git/tests.rs");
        assert!(is_test("src/git/tests/deep/er.rs", &declared));
        assert!(!is_test("src/git/refs.rs", &declared));
        assert!(test_files(&source("src/a.rs", "#[cfg(test)] mod tests { mod x; }")).is_empty());
    }

    #[test]
    fn imports() {
        let bad = [
            ("src/git/objects.rs", "use crate::workspace::Id;"),
            ("src/git/mod.rs", "fn f() { crate::layout::go() }"),
            ("src/git/objects.rs", "use super::super::workspace;"),
            ("src/git/mod.rs", "use super::workspace::Id;"),
            (
                "src/git/objects.rs",
                "mod inner { use super::super::super::workspace; }",
            ),
            ("src/model/id.rs", "pub use crate::{git::Oid};"),
            ("src/mirror.rs", "use crate::events::Event;"),
            ("src/workspace/snap.rs", "use git_vws::batch;"),
            ("src/output/mod.rs", "use crate::Workspace;"),
            ("src/output/mod.rs", "use crate::*;"),
            ("src/batch/mod.rs", "use crate::cli::Args;"),
            ("src/unheard.rs", ""),
        ];
        for (path, text) in bad {
            refused(imports_up, path, text);
        }
        let good = [
            (
                "src/workspace/snap.rs",
                "use crate::git::{Oid, Repository};",
            ),
            (
                "src/workspace/snap.rs",
                "use crate::workspace::revision; use super::base; pub(crate) fn f() {}",
            ),
            ("src/git/a/b.rs", "use super::super::objects;"),
            (
                "src/git/objects.rs",
                "mod inner { use super::super::refs; }",
            ),
            (
                "src/main.rs",
                "mod cli; use crate::cli::run; use git_vws::batch;",
            ),
            (
                "src/cli/accept.rs",
                "use super::Failure; use git_vws::integrate::accept;",
            ),
            (
                "src/git/objects.rs",
                "// use crate::workspace\n const A: &str = \"crate::workspace::x\";",
            ),
            (
                "src/git/objects.rs",
                "#[cfg(test)] mod tests { use crate::workspace::Id; }",
            ),
            ("src/lib.rs", "pub mod git; pub use crate::git::Oid;"),
        ];
        for (path, text) in good {
            allowed(imports_up, path, text);
        }
    }

    #[test]
    fn git_and_processes() {
        let bad = [
            "use git2::Oid;",
            "fn f() -> git2::Oid {}",
            "use libgit2_sys as raw;",
            "use std::process::Command;",
            "use std::process::{self, Command as C, Stdio};",
            "use std::process::*;",
            "fn f() { process::Command::new(1); }",
            "fn f() { Command::new(1); }",
        ];
        for text in bad {
            refused(git_outside_the_door, "src/layout/capture.rs", text);
            allowed(git_outside_the_door, "src/git/oracle.rs", text);
        }
        refused(git_outside_the_door, "src/layout/exec.rs", "use git2::Oid;");
        allowed(
            git_outside_the_door,
            "src/layout/exec.rs",
            "use std::process::Command;",
        );
        allowed(
            git_outside_the_door,
            "src/cli/mod.rs",
            "clap::Command::new(1);",
        );
        allowed(
            git_outside_the_door,
            "src/cli/mod.rs",
            "use clap::Command; fn f() { Command::new(1) }",
        );
        allowed(
            git_outside_the_door,
            "src/cli/mod.rs",
            "use std::process::ExitCode;",
        );
    }

    #[test]
    fn the_face() {
        let bad = [
            "use std::env;",
            "use std::{env, fs};",
            "fn f() { std::env::var(1) }",
            "fn f() { println!() }",
            "fn f() { eprint!() }",
            "fn f() { dbg!() }",
            "fn f() { std::time::SystemTime::now() }",
            "fn f() { Instant::now() }",
            "fn f() { std::io::stdout() }",
        ];
        for text in bad {
            refused(face_outside_the_face, "src/git/refs.rs", text);
            allowed(face_outside_the_face, "src/cli/accept.rs", text);
            allowed(face_outside_the_face, "src/main.rs", text);
        }
        refused(
            face_outside_the_face,
            "src/git/oracle.rs",
            "fn f() { Instant::now() }",
        );
        allowed(
            face_outside_the_face,
            "src/git/refs.rs",
            "fn f() { env!(\"X\"); writeln!(out) }",
        );
    }

    #[test]
    fn headers_and_lengths() {
        let long = "\n".repeat(MAX_LINES);
        refused(header_and_length, "src/a.rs", "use x;");
        refused(header_and_length, "src/a.rs", "//!\nuse x;");
        refused(
            header_and_length,
            "src/a.rs",
            &format!("//! What it is.\n{long}"),
        );
        allowed(header_and_length, "src/a.rs", "//! What it is.\nuse x;");
        allowed(
            header_and_length,
            "src/a.rs",
            &format!("//! What it is.\n//!\n//! Over 400 lines because it is a table.\n{long}"),
        );
    }

    #[test]
    fn unsafe_code() {
        refused(stray_unsafe, "src/git/refs.rs", "fn f() { unsafe { g() } }");
        allowed(
            stray_unsafe,
            "src/git/library.rs",
            "fn f() { unsafe { g() } }",
        );
        allowed(stray_unsafe, "src/layout/sys.rs", "unsafe fn f() {}");
        allowed(
            stray_unsafe,
            "src/git/refs.rs",
            "#![deny(unsafe_code)] // unsafe",
        );
    }
}
