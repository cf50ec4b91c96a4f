//! From words to a request: the commands, their options and arguments.
//!
//! Options stand right after the command's name and nowhere else (for `write` after the size as well), so
//! that a path may start with a dash. An agent id never does.

use bstr::{BStr, BString, ByteSlice};

use super::args::{Args, agent, revision, text};
use super::input;
use super::shared::{self, Shared};
use crate::model::{AgentId, RepoPath, Revision};
use crate::workspace::{self, Edit, From, Mode, NewWorkspace, Side, Terms, Wanted};

/// The commands, and how each is written.
pub(super) const COMMANDS: &[(&str, &str)] = &[
    (
        "create",
        "create [--base=<rev> | --from=<agent>[@<n>]] [--mode=<mode>] [--read-only] [--session=<s>] <agent>",
    ),
    ("list", "list"),
    ("show", "show <agent>"),
    ("read", "read [--base] <agent> <path>"),
    (
        "write",
        "write [+x | -x] [--expect=<n>] <agent> <path> <size> [+x | -x] [--expect=<n>]",
    ),
    ("delete", "delete [-r] [--expect=<n>] <agent> <path>..."),
    ("rename", "rename [-f] [--expect=<n>] <agent> <from> <to>"),
    ("chmod", "chmod [--expect=<n>] <agent> (+x | -x) <path>"),
    ("symlink", "symlink [--expect=<n>] <agent> <path> <target>"),
    ("ls", "ls [--base] [-r] <agent> [<path>]"),
    ("stat", "stat [--base] <agent> <path>"),
    (
        "diff",
        "diff [--raw | --name-status | --numstat | -p] <agent>",
    ),
    ("discard", "discard [--expect=<n>] <agent> [<path>...]"),
    ("dispose", "dispose [--force] <agent>"),
    ("restore", "restore [--expect=<n>] <agent> <n>"),
    ("snap", "snap [--list | --drop=<n>] <agent>"),
    (
        "context",
        "context <agent> | context --check <agent> (<blob> <path>)...",
    ),
    ("log", "log [-n<number>] <agent>"),
    (
        "stack",
        "stack --on=<agent>[,<agent>...] [--strict] [--mode=<mode>] [--base=<base>] [--read-only] [--session=<s>] <agent> | stack --status [<agent>]",
    ),
    (
        "recut",
        "recut [--keep-conflicts] [--expect=<n>] <agent> <base>",
    ),
    (
        "rebase-onto",
        "rebase-onto [--without=<agent>[,<agent>...]] [--keep-conflicts] [--expect=<n>] <agent> <base>",
    ),
    ("reference", "reference <agent> <path>..."),
    (
        "import",
        "import [--expect=<n>] <agent> <reference> <path>...",
    ),
    ("base", "base"),
    ("begin", "begin [--expect=<n>] <agent>"),
    ("commit", "commit"),
    ("abort", "abort"),
    ("flush", "flush"),
];

/// What a `diff` prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum DiffForm {
    #[default]
    Raw,
    NameStatus,
    Numstat,
    Patch,
}

/// What a `snap` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SnapWhat {
    Pin,
    List,
    Drop(Revision),
}

/// A well-formed command.
#[derive(Debug)]
pub(super) enum Request {
    Create(AgentId, Option<Wanted>, NewWorkspace),
    List,
    Show(AgentId),
    Read(AgentId, Side, RepoPath),
    Edit(AgentId, Terms, Vec<Edit>),
    Ls(AgentId, Side, Option<RepoPath>, bool),
    Stat(AgentId, Side, RepoPath),
    Diff(AgentId, DiffForm),
    Discard(AgentId, Terms, Vec<RepoPath>),
    Dispose(AgentId, bool),
    Restore(AgentId, Terms, Revision),
    Snap(AgentId, SnapWhat),
    Context(AgentId),
    Shared(Shared),
    Base,
    Begin(AgentId, Terms),
    Commit,
    Abort,
    Flush,
}

impl Request {
    /// The workspace that is looked at, with what tools did in its directory: for a read, which
    /// has a shorter way, see `Session::read`.
    pub(super) fn looks_at(&self) -> Option<&AgentId> {
        match self {
            Request::Show(agent)
            | Request::Ls(agent, Side::Overlay, ..)
            | Request::Stat(agent, Side::Overlay, _)
            | Request::Diff(agent, _)
            | Request::Snap(agent, SnapWhat::Pin)
            | Request::Context(agent) => Some(agent),
            _ => None,
        }
    }
}

/// Why words are no request.
#[derive(Debug)]
pub(super) enum Fault {
    /// They do not follow the grammar.
    Usage(String),
    /// They do, and are refused: a path that leads outside, say.
    Refused(workspace::Error),
}

impl<E: Into<workspace::Error>> std::convert::From<E> for Fault {
    fn from(error: E) -> Self {
        Fault::Refused(error.into())
    }
}

pub(super) type Result<T> = std::result::Result<T, Fault>;

/// The command's name as the answer shows it; `?` for one that is unknown.
pub(super) fn name(words: &[BString]) -> &'static str {
    let known = |word: &BString| COMMANDS.iter().find(|(name, _)| word == name);
    words.first().and_then(known).map_or("?", |(name, _)| name)
}

/// Reads a request; `payload` are the bytes that came with a `write`.
pub(super) fn parse(words: &[BString], payload: Vec<u8>) -> Result<Request> {
    let name = name(words);
    parse_known(name, words.get(1..).unwrap_or_default(), payload).map_err(|fault| match fault {
        Fault::Usage(what) => {
            let usage = COMMANDS.iter().find(|(known, _)| *known == name);
            Fault::Usage(match usage {
                Some((_, usage)) => format!("{what}; usage: {usage}"),
                None => what,
            })
        }
        refused => refused,
    })
}

fn parse_known(name: &str, words: &[BString], payload: Vec<u8>) -> Result<Request> {
    let mut args = Args::new(words);
    let request = match name {
        "create" => create(&mut args)?,
        "list" => Request::List,
        "show" => Request::Show(args.agent()?),
        "read" => {
            let side = args.side();
            Request::Read(args.agent()?, side, args.path()?)
        }
        "write" => write(&mut args, payload)?,
        "delete" => delete(&mut args)?,
        "rename" => {
            let force = args.flag("-f");
            let terms = args.terms()?;
            let agent = args.agent()?;
            let (from, to) = (args.folder()?, args.folder()?);
            Request::Edit(agent, terms, vec![Edit::Rename { from, to, force }])
        }
        "chmod" => {
            let terms = args.terms()?;
            let agent = args.agent()?;
            let executable = bit(args.word("+x or -x")?)
                .ok_or_else(|| Fault::Usage("expected +x or -x".to_owned()))?;
            let path = args.path()?;
            Request::Edit(agent, terms, vec![Edit::Chmod { path, executable }])
        }
        "symlink" => {
            let terms = args.terms()?;
            let agent = args.agent()?;
            let path = args.path()?;
            let target = args.word("the target")?.to_owned();
            Request::Edit(agent, terms, vec![Edit::Symlink { path, target }])
        }
        "ls" => {
            let recursive = args.flag("-r");
            let side = args.side();
            let agent = args.agent()?;
            let under = args.folders()?.pop();
            Request::Ls(agent, side, under, recursive)
        }
        "stat" => {
            let side = args.side();
            Request::Stat(args.agent()?, side, args.folder()?)
        }
        "diff" => {
            let form = diff_form(&mut args)?;
            Request::Diff(args.agent()?, form)
        }
        "discard" => {
            let terms = args.terms()?;
            Request::Discard(args.agent()?, terms, args.folders()?)
        }
        "dispose" => {
            let force = args.flag("--force");
            Request::Dispose(args.agent()?, force)
        }
        "restore" => {
            let terms = args.terms()?;
            let agent = args.agent()?;
            Request::Restore(agent, terms, revision(args.word("a revision")?)?)
        }
        "snap" => snap(&mut args)?,
        "context" if !args.flag("--check") => Request::Context(args.agent()?),
        "context" | "log" | "stack" | "recut" | "rebase-onto" | "reference" | "import" => {
            Request::Shared(shared::parse(name, &mut args)?)
        }
        "base" => Request::Base,
        "begin" => {
            let terms = args.terms()?;
            Request::Begin(args.agent()?, terms)
        }
        "commit" => Request::Commit,
        "abort" => Request::Abort,
        "flush" => Request::Flush,
        _ => return Err(Fault::Usage("unknown command".to_owned())),
    };
    args.end()?;
    Ok(request)
}

fn create(args: &mut Args<'_>) -> Result<Request> {
    let base = args.value("--base=")?;
    let from = args.value("--from=")?;
    let from = match (base, from) {
        (Some(_), Some(_)) => {
            let what = "--base and --from exclude each other";
            return Err(Fault::Usage(what.to_owned()));
        }
        (Some(base), None) => From::Commit(text(base)?),
        (None, Some(spec)) => {
            // An agent id holds no '@'.
            let (name, number) = match spec.split_once_str("@") {
                Some((name, number)) => (name.as_bstr(), Some(revision(number.as_bstr())?)),
                None => (spec, None),
            };
            From::Workspace(agent(name)?, number)
        }
        (None, None) => From::WorkTree,
    };
    let wanted = wanted(args)?;
    let new = NewWorkspace {
        from,
        // The settings and the repository have a say in it.
        mode: Mode::default(),
        read_only: args.flag("--read-only"),
        session: args.value("--session=")?.map(text).transpose()?,
    };
    Ok(Request::Create(args.agent()?, wanted, new))
}

/// How a new workspace shall be held, where the command says.
pub(super) fn wanted(args: &mut Args<'_>) -> Result<Option<Wanted>> {
    let Some(word) = args.value("--mode=")? else {
        return Ok(None);
    };
    let known = word.to_str_lossy().parse();
    known
        .map(Some)
        .map_err(|error: workspace::Error| Fault::Usage(error.to_string()))
}

fn write(args: &mut Args<'_>, bytes: Vec<u8>) -> Result<Request> {
    let agent = args.agent()?;
    let path = args.word("a path")?;
    if input::size(args.word("a size")?).is_none() {
        return Err(Fault::Usage("a size is a decimal number".to_owned()));
    }
    args.more_options();
    let mut executable = None;
    for (word, set) in [("+x", true), ("-x", false)] {
        if args.flag(word) {
            executable = Some(set);
        }
    }
    let terms = args.terms()?;
    args.end()?;
    let path = RepoPath::new(path)?;
    let edit = Edit::Write {
        path,
        bytes,
        executable,
    };
    Ok(Request::Edit(agent, terms, vec![edit]))
}

fn delete(args: &mut Args<'_>) -> Result<Request> {
    let recursive = args.flag("-r");
    let terms = args.terms()?;
    let agent = args.agent()?;
    let paths = match recursive {
        true => args.folders()?,
        false => args.paths()?,
    };
    if paths.is_empty() {
        return Err(Fault::Usage("expected a path".to_owned()));
    }
    let edit = |path| Edit::Delete { path, recursive };
    Ok(Request::Edit(
        agent,
        terms,
        paths.into_iter().map(edit).collect(),
    ))
}

fn diff_form(args: &mut Args<'_>) -> Result<DiffForm> {
    let mut form = None;
    for (word, wanted) in [
        ("--raw", DiffForm::Raw),
        ("--name-status", DiffForm::NameStatus),
        ("--numstat", DiffForm::Numstat),
        ("-p", DiffForm::Patch),
    ] {
        if args.flag(word) && form.replace(wanted).is_some() {
            return Err(Fault::Usage("only one form can be had".to_owned()));
        }
    }
    Ok(form.unwrap_or_default())
}

fn snap(args: &mut Args<'_>) -> Result<Request> {
    let list = args.flag("--list");
    let what = match (args.value("--drop=")?, list) {
        (Some(number), false) => SnapWhat::Drop(revision(number)?),
        (None, true) => SnapWhat::List,
        (None, false) => SnapWhat::Pin,
        (Some(_), true) => {
            let what = "--list and --drop exclude each other";
            return Err(Fault::Usage(what.to_owned()));
        }
    };
    Ok(Request::Snap(args.agent()?, what))
}

fn bit(word: &BStr) -> Option<bool> {
    match word.as_bytes() {
        b"+x" => Some(true),
        b"-x" => Some(false),
        _ => None,
    }
}
