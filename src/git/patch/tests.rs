//! git itself is asked for the patch and the counts of the same changes.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use super::*;
use crate::git::scratch::Scratch;
use crate::git::{Environment, Repository};

/// What a path holds in one of two commits.
type State = Option<(&'static str, Vec<u8>)>;
type Corpus = BTreeMap<Vec<u8>, (State, State)>;

const FILE: &str = "100644";
const PROGRAM: &str = "100755";
const LINK: &str = "120000";
const SUBMODULE: &str = "160000";

/// Commits the two sides of a corpus as branches `a` and `b`, in one go.
fn import(scratch: &Scratch, corpus: &Corpus) {
    let mut stream = Vec::new();
    for (branch, pick) in [("a", 0), ("b", 1)] {
        let head = format!("commit refs/heads/{branch}\ncommitter A <a@b> 1 +0000\ndata 0\n");
        stream.extend(head.into_bytes());
        for (path, sides) in corpus {
            let state = if pick == 0 { &sides.0 } else { &sides.1 };
            let Some((mode, bytes)) = state else { continue };
            let name = quote_c(path.as_bstr(), true);
            if *mode == SUBMODULE {
                let line = format!("M {mode} {} {name}\n", bytes.as_bstr());
                stream.extend(line.into_bytes());
                continue;
            }
            let line = format!("M {mode} inline {name}\ndata {}\n", bytes.len());
            stream.extend(line.into_bytes());
            stream.extend_from_slice(bytes);
            stream.push(b'\n');
        }
    }
    scratch.git_with(&["fast-import", "--quiet"], &stream);
}

/// Our patches and counts of all changes, in git's order.
fn ours(scratch: &Scratch, options: &PatchOptions) -> (Vec<u8>, Vec<u8>) {
    let environment = Environment::default();
    let repository = Repository::open_at(scratch.top(), environment).unwrap();
    let objects = repository.objects().unwrap();
    let tree = |branch: &str| {
        let id = repository.resolve_commit(branch).unwrap();
        Some(objects.commit(id).unwrap().tree)
    };
    let bytes = |entry: Option<Entry>| match entry {
        Some(entry) if entry.mode != tree::GITLINK => objects.blob(entry.id).unwrap(),
        _ => Vec::new(),
    };
    let (mut text, mut counts) = (Vec::new(), Vec::new());
    for change in tree::diff(&objects, tree("a"), tree("b")).unwrap() {
        let (old, new) = (bytes(change.old), bytes(change.new));
        let old = change.old.map(|entry| (entry, &old[..]));
        let new = change.new.map(|entry| (entry, &new[..]));
        text.extend(patch(old, new, change.path.as_bstr(), options).unwrap());
        counts.extend(match count_lines(&content(old), &content(new)) {
            Some((added, deleted)) => format!("{added}\t{deleted}\t").into_bytes(),
            None => b"-\t-\t".to_vec(),
        });
        counts.extend_from_slice(&change.path);
        counts.push(0);
    }
    (text, counts)
}

fn check(scratch: &Scratch) {
    let diff = ["diff-tree", "-r", "--full-index", "--no-renames"];
    let git = |more: &[&str]| scratch.git(&[&diff[..], more, &["a", "b"]].concat());
    let (text, counts) = ours(scratch, &PatchOptions::default());
    same(&text, &git(&["-p"]));
    // Files of one content and two modes have no line of their own in git's counts either way.
    same(&counts, &git(&["--numstat", "-z"]));
    let narrow = PatchOptions {
        context: 0,
        quote_path: false,
    };
    let (text, _) = ours(scratch, &narrow);
    let quiet = ["-c", "core.quotePath=false"];
    same(
        &text,
        &scratch.git(&[&quiet[..], &diff, &["-p", "-U0", "a", "b"]].concat()),
    );
}

/// Compares line by line, so that a failure shows where.
fn same(ours: &[u8], git: &[u8]) {
    assert!(!git.is_empty());
    let mut heading = b"".as_bstr();
    for (at, (ours, git)) in ours.lines().zip(git.lines()).enumerate() {
        if git.starts_with(b"diff --git") {
            heading = git.as_bstr();
        }
        assert_eq!(ours.as_bstr(), git.as_bstr(), "line {at}, {heading}");
    }
    assert_eq!(ours.len(), git.len());
    assert!(ours == git);
}

fn file(text: impl AsRef<[u8]>) -> State {
    Some((FILE, text.as_ref().to_vec()))
}

#[test]
fn every_shape_of_change_reads_as_git_prints_it() {
    let commit = |digit: &str| Some((SUBMODULE, digit.repeat(40).into_bytes()));
    let link = |text: &str| Some((LINK, text.as_bytes().to_vec()));
    let program = |text: &str| Some((PROGRAM, text.as_bytes().to_vec()));
    let numbers = |skip: usize| -> Vec<u8> {
        (0..60)
            .filter(|n| n % 17 != skip)
            .flat_map(|n| format!("{n}\n").into_bytes())
            .collect()
    };
    let table: Vec<(&[u8], State, State)> = vec![
        (b"added", None, file("a\nb\n")),
        (b"added-empty", None, file("")),
        (b"added-open", None, file("a")),
        (b"added-program", None, program("x\n")),
        (b"deleted", file("a\n"), None),
        (b"deleted-empty", file(""), None),
        (b"emptied", file("a\nb\n"), file("")),
        (b"filled", file(""), file("a\nb")),
        (b"modified", file(numbers(3)), file(numbers(5))),
        // How far the new line slides down depends on where git stops comparing.
        (b"alike", file("x\n".repeat(900)), file("x\n".repeat(901))),
        (b"mode", file("x\n"), program("x\n")),
        (b"mode-and-text", program("x\n"), file("y\n")),
        (b"open-to-closed", file("a\nb"), file("a\nb\n")),
        (b"closed-to-open", file("a\nb\n"), file("a\nb")),
        (b"open-both", file("a\nb"), file("A\nb")),
        (b"open-both-end", file("a\nb"), file("a\nc")),
        (b"binary", file("a\0b"), file("a\0c")),
        (b"to-binary", file("a"), file("a\0c")),
        (b"from-binary", file("\0a"), file("a")),
        (b"added-binary", None, file("\0")),
        (b"deleted-binary", file("\0"), None),
        (b"binary-mode", file("\0"), program("\0x")),
        (
            b"late-nul",
            file([b'x'; 8000]),
            file([&[b'x'; 8000][..], b"\n\0y"].concat()),
        ),
        (
            b"early-nul",
            file([b'x'; 7999]),
            file([&[b'x'; 7999][..], b"\0y"].concat()),
        ),
        (b"to-link", file("a\nb\n"), link("a")),
        (b"from-link", link("a"), file("a")),
        (b"link", link("a"), link("b/c")),
        (b"added-link", None, link("x")),
        (b"submodule", commit("1"), commit("2")),
        (b"added-submodule", None, commit("3")),
        (b"deleted-submodule", commit("4"), None),
        (b"to-submodule", file("x\n"), commit("5")),
        (b"binary-to-link", file("\0"), link("x")),
        (b"crlf", file("a\r\nb\r\n"), file("a\nb\r\n")),
        (b"name with blank", file("x\n"), file("y\n")),
        (b"added with blank", None, file("y\n")),
        (b"tab\tand\"quote", file("x\n"), file("y\n")),
        (b"tab\tand blank", file("x\n"), file("y\n")),
        ("\u{fc}\u{4f60}".as_bytes(), file("x\n"), file("y\n")),
        (b"bytes\xff\n", file("x\n"), file("\0")),
        (b"dir/deep/f", file("x\n"), file("x\ny\n")),
        (b"dash", file("-- x\n++ y\n@@ z\n"), file("-- x\n@@ z\n")),
    ];
    let scratch = Scratch::new(ObjectFormat::Sha1);
    let corpus = table
        .into_iter()
        .map(|(path, a, b)| (path.to_vec(), (a, b)));
    import(&scratch, &corpus.collect());
    check(&scratch);
}

#[test]
fn sha256_ids_have_their_length() {
    let scratch = Scratch::new(ObjectFormat::Sha256);
    let one = (b"f".to_vec(), (None, file("a\n")));
    let two = (b"g".to_vec(), (file("a\n"), file("b\n")));
    import(&scratch, &[one, two].into_iter().collect());
    check(&scratch);
}

/// A small generator of numbers, the same on every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % bound as u64) as usize
    }

    /// Replaces, removes, repeats and moves lines here and there.
    fn edit(&mut self, text: &[u8]) -> Vec<u8> {
        let mut lines: Vec<Vec<u8>> = text.lines_with_terminator().map(<[u8]>::to_vec).collect();
        for _ in 0..=self.below(6) {
            if lines.is_empty() {
                lines.push(b"new\n".to_vec());
            }
            let at = self.below(lines.len());
            match self.below(6) {
                0 => drop(lines.remove(at)),
                1 => lines.insert(at, lines[self.below(lines.len())].clone()),
                2 => lines.insert(at, b"\n".to_vec()),
                3 => lines[at].insert(0, b' '),
                4 => {
                    let moved = lines.remove(at);
                    lines.insert(self.below(lines.len() + 1), moved);
                }
                _ => {
                    let end = (at + 1 + self.below(8)).min(lines.len());
                    let block = lines[at..end].to_vec();
                    let to = self.below(lines.len() + 1);
                    lines.splice(to..to, block);
                }
            }
        }
        let mut text = lines.concat();
        if self.below(5) == 0 {
            text.pop();
        }
        text
    }

    /// Lines of few kinds, so that many look alike; some would be taken for the head of a function.
    fn text(&mut self) -> Vec<u8> {
        const LINES: [&[u8]; 16] = [
            b"}\n",
            b"\n",
            b"    a();\n",
            b"    b();\n",
            b"\tc\n",
            b"fn long_name_of_a_function(with: Many, parameters: That, make: It, much_too: Long) -> Result<()> {\n",
            b"fn f() {   \r\n",
            b"_x\n",
            b"$y\n",
            b"caf\xc3\xa9 {\n",
            b"bad \xff bytes {\n",
            b"x \xef\xbf\xbe nonchar\n",
            b"z \xed\xa0\x80 surrogate\n",
            b"# comment\n",
            b"  if x {\n",
            b"  }\n",
        ];
        let count = self.below(60);
        (0..count)
            .flat_map(|_| LINES[self.below(16)].to_vec())
            .collect()
    }
}

#[test]
fn hundreds_of_random_edits_read_as_git_prints_them() {
    let mut dice = Dice(11);
    let mut corpus = Corpus::new();
    for n in 0..400 {
        let old = dice.text();
        let new = if n % 7 == 0 {
            dice.text()
        } else {
            dice.edit(&old)
        };
        corpus.insert(format!("random{n}").into_bytes(), (file(&old), file(&new)));
    }
    // Multi-byte letters at the place where git cuts the name of a function.
    for n in 70..90 {
        let old = [
            "f".repeat(n),
            "\u{fc}\u{20ac}\u{1f600}".repeat(9),
            "\n".to_owned(),
        ]
        .concat();
        let old = [old.as_bytes(), &b" x\n".repeat(20)].concat();
        let new = [&old[..], b"y\n"].concat();
        corpus.insert(format!("cut{n}").into_bytes(), (file(old), file(new)));
    }
    let scratch = Scratch::new(ObjectFormat::Sha1);
    import(&scratch, &corpus);
    check(&scratch);
}

#[test]
fn edits_of_real_sources_read_as_git_prints_them() {
    let mut corpus = Corpus::new();
    let mut folders = vec![std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let old = std::fs::read(&path).unwrap();
            // Each file by itself: another one, or the order of a listing, changes no edit.
            let mut dice = Dice(5);
            for n in 0..4 {
                let name = format!("{}{n}", path.display())
                    .trim_start_matches('/')
                    .to_owned();
                let new = dice.edit(&old);
                corpus.insert(name.into_bytes(), (file(&old), file(new)));
            }
        }
    }
    assert!(corpus.len() > 100);
    let scratch = Scratch::new(ObjectFormat::Sha1);
    import(&scratch, &corpus);
    check(&scratch);
}
