//! The repositories that are worked in: made once for each size and tool, and how they start over.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;

use super::Try;
use super::options::Options;
use super::rig::Rig;

/// The file that all agents edit where they meet: so many lines.
pub const SHARED: &str = "lines.txt";
pub const SHARED_LINES: usize = 2000;

pub struct World<'a> {
    pub rig: &'a Rig,
    pub options: &'a Options,
    /// When the table that is measured should be done.
    pub deadline: Cell<Option<Instant>>,
    pub remarks: RefCell<Vec<String>>,
    repos: RefCell<BTreeMap<(usize, Tool), Rc<Repo>>>,
}

/// Whose copy a repository is: no tool's leftovers cost another anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    Worktree,
    Vws,
    Cow,
    Jj,
}

pub struct Repo {
    pub top: PathBuf,
    /// Where worktrees go: beside the repository.
    pub trees: PathBuf,
    pub head: String,
    pub tree: String,
    /// All but the shared file.
    pub paths: Vec<String>,
    tool: Tool,
    jj_start: String,
}

impl<'a> World<'a> {
    pub fn new(rig: &'a Rig, options: &'a Options) -> Try<World<'a>> {
        Ok(World {
            rig,
            options,
            deadline: Cell::new(None),
            remarks: RefCell::default(),
            repos: RefCell::default(),
        })
    }

    pub fn remark(&self, text: impl Into<String>) {
        let text = text.into();
        let mut remarks = self.remarks.borrow_mut();
        if !remarks.contains(&text) {
            remarks.push(text);
        }
    }

    /// The repository of so many files that a tool works in, started over.
    pub fn repo(&self, files: usize, tool: Tool) -> Try<Rc<Repo>> {
        let known = self.repos.borrow().get(&(files, tool)).cloned();
        let repo = match known {
            Some(repo) => repo,
            None => {
                let repo = Rc::new(self.make(files, tool)?);
                self.repos.borrow_mut().insert((files, tool), repo.clone());
                repo
            }
        };
        repo.start_over(self.rig)?;
        Ok(repo)
    }

    /// The same, as the work left it.
    pub fn repo_as_it_is(&self, files: usize, tool: Tool) -> Try<Rc<Repo>> {
        let known = self.repos.borrow().get(&(files, tool)).cloned();
        known.ok_or_else(|| format!("no repository of {files} files was made"))
    }

    fn make(&self, files: usize, tool: Tool) -> Try<Repo> {
        let name = format!("{files}-{}", format!("{tool:?}").to_lowercase());
        let top = self.rig.root.join(&name);
        let rig = self.rig;
        rig.run(&rig.root, &["git", "init", "-q", &name])?;
        let (stream, paths) = stream(files);
        rig.feed(
            &top,
            &["git", "fast-import", "--quiet", "--depth=0"],
            &stream,
        )?;
        rig.run(&top, &["git", "reset", "-q", "--hard"])?;
        let tell = |what: &str| rig.run(&top, &["git", "rev-parse", what]);
        let mut repo = Repo {
            head: tell("HEAD")?.trim().to_owned(),
            tree: tell("HEAD^{tree}")?.trim().to_owned(),
            trees: rig.root.join(format!("{name}-trees")),
            top,
            paths,
            tool,
            jj_start: String::new(),
        };
        fs::create_dir_all(&repo.trees).map_err(|e| format!("can't make {:?}: {e}", repo.trees))?;
        if tool == Tool::Jj {
            rig.run(&repo.top, &["jj", "git", "init", "--colocate", "--quiet"])?;
            let start = ["jj", "op", "log", "-n1", "--no-graph", "-T", "id"];
            repo.jj_start = rig.run(&repo.top, &start)?.trim().to_owned();
        }
        Ok(repo)
    }
}

impl Repo {
    /// Where an agent's worktree goes.
    pub fn tree_of(&self, agent: &str) -> PathBuf {
        self.trees.join(agent)
    }

    /// The places that hold all of it.
    pub fn places(&self) -> [&Path; 2] {
        [&self.top, &self.trees]
    }

    /// Back to how it was made: no worktrees, no workspaces, no edits. Objects stay, and templates.
    pub fn start_over(&self, rig: &Rig) -> Try<()> {
        if self.tool == Tool::Jj {
            fs::remove_dir_all(&self.trees).map_err(|e| e.to_string())?;
            fs::create_dir_all(&self.trees).map_err(|e| e.to_string())?;
            rig.run(
                &self.top,
                &["jj", "op", "restore", "--quiet", &self.jj_start],
            )?;
            return Ok(());
        }
        let listed = rig.run(&self.top, &["git", "for-each-ref", "--format=%(refname)"])?;
        let refs: Vec<&str> = listed
            .lines()
            .filter(|name| *name != "refs/heads/main")
            .collect();
        let of_agent = |name: &&str, last: &str| {
            let rest = name.strip_prefix("refs/relo/vws/")?;
            rest.strip_suffix(last).map(str::to_owned)
        };
        for agent in refs.iter().filter_map(|name| of_agent(name, "/exec")) {
            rig.run(&self.top, &["vws", "settle", "--force", &agent])?;
        }
        // Let go as its user would, so that what it had in caches goes too.
        for agent in refs.iter().filter_map(|name| of_agent(name, "/overlay")) {
            rig.run(&self.top, &["vws", "overlay", "dispose", "--force", &agent])?;
        }
        let listed = rig.run(&self.top, &["git", "for-each-ref", "--format=%(refname)"])?;
        let refs: Vec<&str> = listed
            .lines()
            .filter(|name| *name != "refs/heads/main")
            .collect();
        let worktrees = rig.run(&self.top, &["git", "worktree", "list", "--porcelain"])?;
        let worktrees = worktrees
            .lines()
            .filter_map(|line| line.strip_prefix("worktree "));
        for path in worktrees.skip(1) {
            if Path::new(path).starts_with(&self.trees) {
                rig.run(&self.top, &["git", "worktree", "remove", "--force", path])?;
            }
        }
        let mut deleted = String::new();
        refs.iter()
            .for_each(|name| deleted.push_str(&format!("delete {name}\n")));
        rig.feed(
            &self.top,
            &["git", "update-ref", "--stdin"],
            deleted.as_bytes(),
        )?;
        rig.run(&self.top, &["git", "reset", "-q", "--hard", &self.head])?;
        rig.run(&self.top, &["git", "clean", "-qfd"])?;
        Ok(())
    }

    /// The tree of the working tree as it is, by git.
    pub fn as_it_is(&self, rig: &Rig, at: &Path) -> Try<String> {
        let index = rig.root.join("index");
        let own = rig.run(
            at,
            &[
                "git",
                "rev-parse",
                "--path-format=absolute",
                "--git-path",
                "index",
            ],
        )?;
        fs::copy(own.trim(), &index).map_err(|e| format!("can't copy the index: {e}"))?;
        let variable = format!("GIT_INDEX_FILE={}", index.display());
        rig.run(at, &["env", &variable, "git", "add", "-A"])?;
        Ok(rig
            .run(at, &["env", &variable, "git", "write-tree"])?
            .trim()
            .to_owned())
    }

    /// The five files that an agent edits: no two agents the same, if there are enough.
    pub fn files_of(&self, agent: usize) -> Vec<String> {
        let step = (self.paths.len() / 5).max(1);
        let apart = if step > 200 { 7 } else { 1 };
        let at = |i: usize| (i * step + agent * apart % step) % self.paths.len();
        let mut files: Vec<String> = (0..5).map(|i| self.paths[at(i)].clone()).collect();
        files.sort();
        files.dedup();
        files
    }
}

/// A small, good enough generator; the same numbers in each run.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Text of about so many bytes, in lines of words that no other text has.
pub fn prose(numbers: &mut Numbers, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 80);
    while text.len() < bytes {
        for _ in 0..7 {
            text.push_str(&format!("{:x} ", numbers.next() >> 36));
        }
        text.push('\n');
    }
    text
}

/// What an agent works on has 4 KB a file; what is only to be many has less.
fn bytes_of(files: usize) -> usize {
    if files > 50_000 { 400 } else { 3900 }
}

/// The import of a repository: files four folders deep, eight in each, and the shared one.
fn stream(files: usize) -> (Vec<u8>, Vec<String>) {
    let mut numbers = Numbers(files as u64);
    let mut out = Vec::new();
    let mut paths = Vec::new();
    let head = "commit refs/heads/main\ncommitter A U Thor <author@example.com> 1112911993 +0000\n\
                data 6\nstart\n\n";
    out.extend_from_slice(head.as_bytes());
    let mut put = |path: &str, text: &str| {
        let line = format!("M 100644 inline {path}\ndata {}\n{text}\n", text.len());
        out.extend_from_slice(line.as_bytes());
    };
    for i in 1..files {
        let d = i / 8;
        let path = format!("m{:02}/p{:02}/d{d}/f{i}.txt", d % 16, d / 16 % 16);
        let size = bytes_of(files) / 2 + (numbers.next() as usize) % bytes_of(files);
        put(&path, &prose(&mut numbers, size));
        paths.push(path);
    }
    let lines: String = (1..=SHARED_LINES)
        .map(|n| format!("line {n:04}\n"))
        .collect();
    put(SHARED, &lines);
    (out, paths)
}
