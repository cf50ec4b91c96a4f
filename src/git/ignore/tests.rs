//! What is told without git is held against git, over generated rules and paths.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::git::ObjectFormat;
use crate::git::scratch::Scratch;

/// Numbers that look random, the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % n
    }

    fn one_of<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    fn times(&mut self, most: usize, of: &[&str]) -> String {
        let count = self.below(most + 1);
        (0..count).map(|_| self.one_of(of)).collect()
    }
}

const NAMES: [&str; 12] = [
    "a", "b", "ab", "A", "x.o", "x.py", "X.PYC", "a b", "é", "b ", "!a", "#a",
];
const PIECES: [&str; 28] = [
    "a",
    "b",
    "ab",
    "A",
    "x",
    ".",
    "o",
    "py",
    "*",
    "?",
    "**",
    "/",
    "/",
    "/**/",
    "**/",
    "/**",
    "[ab]",
    "[!a]",
    "[a-c]",
    "[",
    "]",
    "[[:alpha:]]",
    "[]a]",
    "\\",
    "\\*",
    " ",
    "é",
    "#",
];
const ENDS: [&str; 12] = [
    "", "", "", "", "/", " ", "\\ ", "\r", "\t", "  \r", "\\", " /",
];

fn rules(dice: &mut Dice, most: usize) -> Vec<u8> {
    let start = dice.one_of(&["", "", "", "\u{feff}"]).to_owned();
    let mut text = start.into_bytes();
    for _ in 0..=dice.below(most) {
        text.extend_from_slice(
            dice.one_of(&["", "", "", "", "!", "/", "#", "\\#"])
                .as_bytes(),
        );
        let name = dice.one_of(&NAMES).to_owned();
        text.extend_from_slice(dice.one_of(&["", "", &name]).as_bytes());
        text.extend_from_slice(dice.times(4, &PIECES).as_bytes());
        text.extend_from_slice(dice.one_of(&ENDS).as_bytes());
        text.push(b'\n');
    }
    if dice.below(4) == 0 {
        text.pop();
    }
    text
}

fn paths(dice: &mut Dice) -> Vec<BString> {
    let path = |dice: &mut Dice| {
        let names: Vec<&str> = (0..=dice.below(3)).map(|_| dice.one_of(&NAMES)).collect();
        BString::from(names.join("/"))
    };
    (0..40).map(|_| path(dice)).collect()
}

#[test]
fn no_rule_matches_where_none_may() {
    let scratch = Scratch::new(ObjectFormat::Sha1);
    let top = scratch.top();
    for folder in ["a", "a/b", "ab"] {
        std::fs::create_dir_all(top.join(folder)).unwrap();
    }
    std::fs::create_dir_all(top.join(".config/git")).unwrap();
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let (mut told, mut ignored) = (0, 0);
    for round in 0..300 {
        scratch.git(&["config", "core.ignorecase", ["false", "true"][round % 2]]);
        let rare = usize::from(round % 3 == 0);
        for (file, most) in [
            (".gitignore", 2),
            ("a/.gitignore", rare),
            ("a/b/.gitignore", rare),
            (".git/info/exclude", rare),
            (".config/git/ignore", rare),
        ] {
            let _ = std::fs::remove_file(top.join(file));
            if most > 0 {
                std::fs::write(top.join(file), rules(&mut dice, most)).unwrap();
            }
        }
        let paths = paths(&mut dice);
        let repository = scratch.open();
        let mut asked = repository.ignore_rules(top, repository.git_dir());
        let git = asked.ask_git(&paths).unwrap();
        asked.finish().unwrap();
        let may = Quick::new(&repository).may_match(top, &paths);
        for ((path, may), is_ignored) in paths.iter().zip(&may).zip(&git) {
            let text = std::fs::read(top.join(".gitignore")).unwrap();
            assert!(
                *may || !is_ignored,
                "round {round}: '{path}' by {:?}",
                text.as_bstr()
            );
        }
        told += may.iter().filter(|may| !**may).count();
        ignored += git.iter().filter(|ignored| **ignored).count();
        // And as both together say it.
        let mut both = repository.ignore_rules(top, repository.git_dir());
        assert_eq!(both.ask(&paths).unwrap(), git, "round {round}");
        both.finish().unwrap();
    }
    // Else nothing was tried here.
    assert!(
        told > 3000 && ignored > 500,
        "{told} told, {ignored} ignored"
    );
}

/// Whether one new file is left to git.
fn is_asked(scratch: &Scratch) -> bool {
    let repository = scratch.open();
    let path = BString::from("folder/new.txt");
    Quick::new(&repository).may_match(scratch.top(), &[path]) == [true]
}

#[test]
fn every_source_of_rules_is_read() {
    let scratch = Scratch::new(ObjectFormat::Sha1);
    let put = |file: &str, text: &str| {
        let file = scratch.top().join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    };
    let excludes = |file: &str| format!("[core]\n\texcludesFile = ~/{file}\n");
    put(".gitignore", "*.o\n!*.txt\n");
    assert!(!is_asked(&scratch));
    for file in [
        ".gitignore",
        "folder/.gitignore",
        ".git/info/exclude",
        ".config/git/ignore",
    ] {
        let before = std::fs::read(scratch.top().join(file)).unwrap_or_default();
        put(file, "*.TXT\n");
        assert!(is_asked(&scratch), "{file}");
        std::fs::write(scratch.top().join(file), before).unwrap();
    }
    put("mine", "new.*\n");
    for file in [".gitconfig", ".config/git/config"] {
        put(file, &excludes("mine"));
        assert!(is_asked(&scratch), "{file}");
        put(file, &excludes("missing"));
        assert!(!is_asked(&scratch), "{file}");
    }
    put("more", &excludes("mine"));
    put(".gitconfig", "[include]\n\tpath = more\n");
    assert!(is_asked(&scratch));
    put(".gitconfig", "");
    scratch.git(&["config", "core.excludesFile", "~/mine"]);
    assert!(is_asked(&scratch));
}

#[test]
fn what_cannot_be_made_out_is_asked_of_git() {
    let ask = |spoil: &dyn Fn(&Scratch)| {
        let scratch = Scratch::new(ObjectFormat::Sha1);
        std::fs::create_dir(scratch.top().join("folder")).unwrap();
        assert!(!is_asked(&scratch));
        spoil(&scratch);
        assert!(is_asked(&scratch));
    };
    let set = |key: &'static str, value: &'static str| {
        move |scratch: &Scratch| drop(scratch.git(&["config", key, value]))
    };
    ask(&set("core.excludesFile", "relative"));
    ask(&set("core.excludesFile", "~somebody/else"));
    ask(&set("includeIf.onbranch:main.path", "more"));
    ask(&set("include.path", "~somebody/else"));
    ask(&set("extensions.worktreeConfig", "true"));
    ask(&|scratch| std::fs::write(scratch.top().join(".gitconfig"), "[nonsense\n").unwrap());
    let rules = |name: &'static str| move |scratch: &Scratch| scratch.top().join(name);
    let file = rules("folder/.gitignore");
    ask(&|scratch| std::os::unix::fs::symlink("other", file(scratch)).unwrap());
    ask(&|scratch| std::fs::create_dir(file(scratch)).unwrap());
    ask(&|scratch| std::fs::write(file(scratch), "a\0b\n").unwrap());
    ask(&|scratch| std::fs::write(file(scratch), vec![b'\n'; 2 << 20]).unwrap());
}
