//! Carries out requests, one after the other, over the library's calls.

use super::answer::{Answer, Body, Failure};
use super::hot::Hot;
use super::pending::Pending;
use super::request::{DiffForm, Request, SnapWhat};
use super::view::View;
use super::{Options, Result};
use crate::git::{ObjectId, Repository, Staging, tree};
use crate::integrate::{self, upkeep};
use crate::layout;
use crate::model::{AgentId, RepoPath};
use crate::output::{self, Form, Printer, report};
use crate::workspace::{self, Edit, Error, NewWorkspace, Side, Store, Terms};

/// Why a request was not carried out, on its way to an answer.
#[derive(Debug)]
pub(super) struct Trouble(pub(super) Failure);

impl<E: Into<Error>> From<E> for Trouble {
    fn from(error: E) -> Self {
        Trouble(Failure::from(&error.into()))
    }
}

impl From<layout::Error> for Trouble {
    fn from(error: layout::Error) -> Self {
        Trouble(Failure::from(&error))
    }
}

impl From<integrate::Error> for Trouble {
    fn from(error: integrate::Error) -> Self {
        Trouble(Failure::from(&error))
    }
}

impl From<output::Error> for Trouble {
    fn from(error: output::Error) -> Self {
        // Records are printed into memory, which takes any number of bytes.
        Trouble(Failure {
            status: super::Status::Failed,
            kind: None,
            message: error.to_string(),
        })
    }
}

/// The commands that change nothing.
const READS: [&str; 8] = [
    "read", "stat", "ls", "diff", "list", "show", "context", "flush",
];

pub(super) type Outcome = std::result::Result<Answer, Trouble>;

/// Everything that a stream of commands shares.
pub(super) struct Session<'r, 'c> {
    pub(super) repository: &'r Repository,
    clock: &'c dyn Fn() -> i64,
    form: Form,
    quote_path: bool,
    limit: u64,
    pub(super) hot: Hot<'r>,
    pending: Option<Pending<'r>>,
}

impl<'r, 'c> Session<'r, 'c> {
    pub(super) fn new(
        repository: &'r Repository,
        clock: &'c dyn Fn() -> i64,
        options: &Options,
    ) -> Result<Self> {
        let quote_path = repository.config()?.bool("core.quotepath")?;
        Ok(Session {
            repository,
            clock,
            form: match (options.json, options.nul) {
                (true, _) => Form::Json,
                (_, true) => Form::Nul,
                _ => Form::Lines,
            },
            quote_path: quote_path.unwrap_or(true),
            limit: workspace::max_file_size(repository)?,
            hot: Hot::new(repository)?,
            pending: None,
        })
    }

    /// The largest payload that is taken, in bytes.
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// Ends the stream; returns the agent whose edits were begun and not committed.
    pub(super) fn end(self) -> Option<AgentId> {
        self.pending.map(|pending| pending.agent().clone())
    }

    /// The answer to a command that was not carried out; no revision is made without it, unless
    /// it would have changed nothing.
    pub(super) fn fail(&mut self, command: &'static str, failure: &Failure) -> Answer {
        if let Some(pending) = &mut self.pending
            && !READS.contains(&command)
        {
            pending.spoil(failure);
        }
        Answer::failed(command, failure)
    }

    /// Carries out a request.
    pub(super) fn answer(&mut self, command: &'static str, request: Request) -> Answer {
        match self.carry_out(command, request) {
            Ok(answer) => answer,
            Err(Trouble(failure)) => self.fail(command, &failure),
        }
    }

    pub(super) fn store(&self) -> Store<'r> {
        layout::store(self.repository, (self.clock)())
    }

    fn carry_out(&mut self, command: &'static str, request: Request) -> Outcome {
        if self.pending.is_some() && !allowed_inside(&request) {
            let what = "not inside 'begin': 'commit' or 'abort' first";
            return Err(Trouble(Failure::usage(what)));
        }
        let store = self.store();
        // What tools did in an open directory counts for every reader.
        if let Some(agent) = request.looks_at()
            && self.hot.open_directory(agent)?.is_some()
        {
            layout::import(&store, agent)?;
        }
        match request {
            Request::Read(agent, side, path) => self.read(command, &agent, side, &path),
            Request::Stat(agent, side, path) => self.stat(command, &agent, side, path),
            Request::Ls(agent, side, under, recursive) => {
                self.ls(command, &agent, side, under.as_ref(), recursive)
            }
            Request::Diff(agent, form) => self.diff(command, &agent, form),
            Request::Edit(agent, terms, edits) => self.edit(command, &agent, terms, edits),
            Request::Begin(agent, terms) => self.begin(command, agent, terms),
            Request::Commit => self.commit(command),
            Request::Abort => match self.pending.take() {
                Some(_) => Ok(Answer::done(command, Body::Nothing)),
                None => Err(Trouble(Failure::usage("nothing was begun"))),
            },
            Request::Flush => Ok(Answer::done(command, Body::Nothing)),
            Request::Create(agent, wanted, new) => {
                let mode = store.form(wanted)?.mode;
                let new = NewWorkspace { mode, ..new };
                let created = store.create(&agent, &new)?;
                self.record(command, &[report::created(&created)])
            }
            Request::List => {
                let record = |listed: &workspace::Listed| {
                    let open = listed.directory.and_then(|_| place(&store, &listed.agent));
                    report::listed(listed, open.as_deref())
                };
                let all: Vec<_> = store.list()?.iter().map(record).collect();
                self.record(command, &all)
            }
            Request::Show(agent) => self.show(command, &agent),
            Request::Discard(agent, terms, paths) => {
                let published = store.discard(&agent, terms, &paths)?;
                self.published(command, &published)
            }
            Request::Restore(agent, terms, revision) => {
                let published = store.restore(&agent, terms, revision)?;
                self.published(command, &published)
            }
            Request::Dispose(agent, force) => {
                let disposed = upkeep::dispose(&store, &agent, force)?;
                let _ = layout::forget(&store, &agent);
                self.record(command, &[report::disposed(&disposed)])
            }
            Request::Snap(agent, what) => self.snap(command, &agent, what),
            Request::Context(agent) => {
                let context = report::context(self.hot.load(&store, &agent)?);
                self.record(command, &[context])
            }
            Request::Shared(shared) => self.shared(command, shared),
            Request::Base => {
                let mut staging = Staging::new(self.repository)?;
                let base = store.record_base(&mut staging)?;
                store.put(staging, &[])?;
                self.record(command, &[report::base(&base)])
            }
        }
    }

    pub(super) fn print(
        &self,
        command: &'static str,
        print: impl FnOnce(&mut Printer<&mut Vec<u8>>) -> std::result::Result<(), Trouble>,
    ) -> Outcome {
        let mut bytes = Vec::new();
        let mut printer = Printer::new(&mut bytes, self.form, self.quote_path);
        print(&mut printer)?;
        printer.finish()?;
        Ok(Answer::done(command, Body::Printed(bytes)))
    }

    pub(super) fn record(&self, command: &'static str, records: &[output::Record]) -> Outcome {
        self.print(command, |out| {
            for record in records {
                out.record(record)?;
            }
            Ok(())
        })
    }

    pub(super) fn published(
        &self,
        command: &'static str,
        published: &workspace::Published,
    ) -> Outcome {
        let revision = published.workspace.revision().get();
        let answer = self.record(command, &[report::published(published)])?;
        Ok(answer.with("revision", revision))
    }

    /// The tree that a read of an agent is about.
    pub(super) fn root(
        &mut self,
        agent: &AgentId,
        side: Side,
    ) -> std::result::Result<ObjectId, Trouble> {
        let store = self.store();
        match &mut self.pending {
            Some(pending) if side == Side::Overlay && pending.agent() == agent => {
                Ok(pending.tree()?)
            }
            Some(pending) if pending.agent() == agent => Ok(store.base_tree(pending.from())?),
            _ => Ok(self.hot.root(&store, agent, side)?),
        }
    }

    /// Where its objects are.
    pub(super) fn view(&self, agent: &AgentId, side: Side) -> View<'_, 'r> {
        match &self.pending {
            Some(pending) if side == Side::Overlay && pending.agent() == agent => {
                View::Pending(pending.staging())
            }
            _ => View::Published(self.hot.objects()),
        }
    }

    fn diff(&mut self, command: &'static str, agent: &AgentId, form: DiffForm) -> Outcome {
        let quote_path = self.quote_path;
        let mut bytes = Vec::new();
        let mut printer = Printer::new(&mut bytes, self.form, quote_path);
        let base = self.root(agent, Side::Base)?;
        let root = self.root(agent, Side::Overlay)?;
        let view = self.view(agent, Side::Overlay);
        let changes = tree::diff(&view, Some(base), Some(root))?;
        if form == DiffForm::Patch {
            let text = view.patch(&changes, quote_path)?;
            return Ok(Answer::done(command, Body::Content(text)));
        }
        view.print(&changes, form, &mut printer)?;
        printer.finish()?;
        Ok(Answer::done(command, Body::Printed(bytes)))
    }

    fn edit(
        &mut self,
        command: &'static str,
        agent: &AgentId,
        terms: Terms,
        edits: Vec<Edit>,
    ) -> Outcome {
        let Some(pending) = &mut self.pending else {
            let published = self.store().edit(agent, terms, &edits)?;
            return self.published(command, &published);
        };
        if pending.agent() != agent {
            let what = format!("what was begun is for '{}'", pending.agent());
            return Err(Trouble(Failure::usage(what)));
        }
        if terms.expect.is_some() {
            let what = "inside 'begin', --expect is said with 'begin'";
            return Err(Trouble(Failure::usage(what)));
        }
        pending.apply(edits)?;
        Ok(Answer::done(command, Body::Nothing).with("revision", "pending"))
    }

    fn begin(&mut self, command: &'static str, agent: AgentId, terms: Terms) -> Outcome {
        let store = self.store();
        let pending = Pending::begin(&store, agent, terms, self.limit)?;
        let revision = pending.from().revision().get();
        self.pending = Some(pending);
        Ok(Answer::done(command, Body::Nothing).with("revision", revision))
    }

    fn commit(&mut self, command: &'static str) -> Outcome {
        let Some(pending) = self.pending.take() else {
            return Err(Trouble(Failure::usage("nothing was begun")));
        };
        let published = pending.commit(&self.store())?;
        self.published(command, &published)
    }

    fn show(&mut self, command: &'static str, agent: &AgentId) -> Outcome {
        let store = self.store();
        let base = self.hot.root(&store, agent, Side::Base)?;
        let snaps: Vec<_> = store.snaps(agent)?.into_iter().map(|(n, _)| n).collect();
        let exec = store.open_directory(agent)?;
        let open = exec.and_then(|_| place(&store, agent));
        let workspace = self.hot.load(&store, agent)?;
        let edited = base != workspace.tree;
        let record = report::shown(workspace, edited, exec, open.as_deref(), &snaps);
        self.record(command, &[record])
    }

    fn snap(&mut self, command: &'static str, agent: &AgentId, what: SnapWhat) -> Outcome {
        let store = self.store();
        let records = match what {
            SnapWhat::Pin => {
                let pinned = store.snap(agent, None)?;
                vec![report::snap(agent, pinned.revision(), pinned.commit)]
            }
            SnapWhat::List => {
                let snaps = store.snaps(agent)?.into_iter();
                let record = |(revision, commit)| report::snap(agent, revision, commit);
                snaps.map(record).collect()
            }
            SnapWhat::Drop(revision) => {
                store.drop_snap(agent, revision)?;
                Vec::new()
            }
        };
        self.record(command, &records)
    }
}

/// Whether a request may stand between `begin` and `commit`.
fn allowed_inside(request: &Request) -> bool {
    !matches!(
        request,
        Request::Create(..)
            | Request::Discard(..)
            | Request::Dispose(..)
            | Request::Restore(..)
            | Request::Snap(_, SnapWhat::Pin | SnapWhat::Drop(_))
            | Request::Shared(_)
            | Request::Base
            | Request::Begin(..)
    )
}

/// Where the open directory of an agent is, if it is what we made.
fn place(store: &Store<'_>, agent: &AgentId) -> Option<std::path::PathBuf> {
    let open = layout::open(store, agent).unwrap_or_default();
    open.map(|directory| directory.path)
}

pub(super) fn missing(path: &RepoPath, side: Side) -> Error {
    Error::NoPath {
        path: path.as_bstr().to_owned(),
        place: side.as_str().to_owned(),
    }
}
