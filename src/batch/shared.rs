//! Commands about what agents have of each other: stacks, references, and what an agent knows.

use bstr::{BString, ByteSlice};

use super::Status;
use super::answer::{Answer, Body, Failure};
use super::args::{Args, text};
use super::request::{Fault, Result, wanted};
use super::session::{Outcome, Session, Trouble};
use crate::git::{self, ObjectId};
use crate::integrate::{self, RebaseRequest, StackRequest};
use crate::layout;
use crate::model::{AgentId, Refusal, RepoPath};
use crate::output::{PathStyle, Record, report};
use crate::workspace::{From, Mode, Terms, Wanted};

/// A well-formed one.
#[derive(Debug)]
pub(super) enum Shared {
    Stack(AgentId, Option<Wanted>, StackRequest),
    Status(Option<AgentId>),
    Rebase(AgentId, RebaseRequest, Terms),
    Reference(AgentId, Vec<RepoPath>),
    Import(AgentId, BString, Vec<RepoPath>, Terms),
    /// Blob ids and paths, in the order in which they are answered.
    Check(AgentId, Vec<(BString, BString)>),
    Log(AgentId, usize),
}

pub(super) fn parse(name: &str, args: &mut Args<'_>) -> Result<Shared> {
    Ok(match name {
        "context" => {
            let agent = args.agent()?;
            let mut records = Vec::new();
            while !args.is_done() {
                let blob = args.word("a blob")?.to_owned();
                records.push((blob, args.word("a path")?.to_owned()));
            }
            Shared::Check(agent, records)
        }
        "log" => {
            let limit = match args.value("-n")? {
                None => usize::MAX,
                Some(number) => text(number)?
                    .parse()
                    .map_err(|_| Fault::Usage("expected a number after '-n'".to_owned()))?,
            };
            Shared::Log(args.agent()?, limit)
        }
        "stack" => stack(args)?,
        "reference" => Shared::Reference(args.agent()?, some_paths(args)?),
        "import" => {
            let terms = args.terms()?;
            let agent = args.agent()?;
            let reference = args.word("a reference")?.to_owned();
            Shared::Import(agent, reference, some_paths(args)?, terms)
        }
        // `recut` and `rebase-onto`
        _ => {
            let with_parents = name == "rebase-onto";
            let without = match with_parents {
                true => args.agents("--without=")?,
                false => Vec::new(),
            };
            let keep_conflicts = args.flag("--keep-conflicts");
            let terms = args.terms()?;
            let agent = args.agent()?;
            let request = RebaseRequest {
                onto: From::named(&text(args.word("a base")?)?),
                with_parents,
                without,
                keep_conflicts,
            };
            Shared::Rebase(agent, request, terms)
        }
    })
}

fn stack(args: &mut Args<'_>) -> Result<Shared> {
    if args.flag("--status") {
        let agent = match args.is_done() {
            true => None,
            false => Some(args.agent()?),
        };
        return Ok(Shared::Status(agent));
    }
    let on = args.agents("--on=")?;
    if on.is_empty() {
        return Err(Fault::Usage("expected --on=<agent>".to_owned()));
    }
    let base = args.value("--base=")?.map(text).transpose()?;
    let wanted = wanted(args)?;
    let request = StackRequest {
        on,
        onto: base.as_deref().map(From::named),
        strict: args.flag("--strict"),
        // The settings and the repository have a say in it.
        mode: Mode::default(),
        read_only: args.flag("--read-only"),
        session: args.value("--session=")?.map(text).transpose()?,
    };
    Ok(Shared::Stack(args.agent()?, wanted, request))
}

fn some_paths(args: &mut Args<'_>) -> Result<Vec<RepoPath>> {
    let mut paths = args.paths()?;
    if paths.is_empty() {
        return Err(Fault::Usage("expected a path".to_owned()));
    }
    paths.sort();
    paths.dedup();
    Ok(paths)
}

impl Session<'_, '_> {
    pub(super) fn shared(&mut self, command: &'static str, shared: Shared) -> Outcome {
        let store = self.store();
        match shared {
            Shared::Stack(agent, wanted, request) => {
                let mode = store.form(wanted)?.mode;
                let request = StackRequest { mode, ..request };
                let stacked = integrate::stack(&store, &agent, &request)?;
                let done = stacked.workspace.is_some();
                self.done_or_not(command, done, report::stacked(&agent, &stacked))
            }
            Shared::Status(agent) => {
                let nodes = integrate::graph(&store, agent.as_ref())?;
                let records = nodes.iter().flat_map(|node| {
                    let below = node.below.iter();
                    below.map(|below| report::standing(&node.agent, below))
                });
                self.record(command, &records.collect::<Vec<_>>())
            }
            Shared::Rebase(agent, request, terms) => {
                let rebased = integrate::rebase(&store, &agent, &request, terms)?;
                let clean = rebased.conflicts.is_empty() || request.keep_conflicts;
                let done = clean && rebased.left_out.is_empty();
                self.done_or_not(command, done, report::rebased(&rebased))
            }
            Shared::Reference(agent, paths) => {
                layout::import(&store, &agent)?;
                let reference = store.reference(&agent, &paths)?.to_json();
                let line = format!("{reference}\n").into_bytes();
                Ok(Answer::done(command, Body::Printed(line)))
            }
            Shared::Import(agent, reference, paths, terms) => {
                let reference = store.parse_reference(&reference)?;
                let done = layout::import_reference(&store, &agent, &reference, &paths, terms)?;
                self.published(command, &done)
            }
            Shared::Check(agent, records) => self.check(command, &agent, &records),
            Shared::Log(agent, limit) => {
                let log = integrate::history(&store, &agent, limit)?;
                let records: Vec<_> = log.iter().map(report::logged).collect();
                self.record(command, &records)
            }
        }
    }

    /// The record of what was done, or of the conflicts for which it was not.
    fn done_or_not(&self, command: &'static str, done: bool, record: Record) -> Outcome {
        let mut answer = self.record(command, &[record])?;
        if !done {
            answer.status = Status::Refused;
            answer = answer.with("kind", Refusal::Conflict.as_str());
        }
        Ok(answer)
    }

    fn check(
        &mut self,
        command: &'static str,
        agent: &AgentId,
        records: &[(BString, BString)],
    ) -> Outcome {
        let store = self.store();
        let workspace = layout::import(&store, agent)?;
        let mut check = store.context_check(&workspace)?;
        let format = self.repository.format();
        let mut found = Vec::with_capacity(records.len());
        for (id, path) in records {
            let whole = id.len() == git::hex_len(format);
            let id = id.to_str().ok().filter(|_| whole);
            let blob = id.and_then(|id| ObjectId::from_str_ext(id, format).ok());
            let blob = blob
                .ok_or_else(|| Trouble(Failure::usage(format!("no object id before '{path}'"))))?;
            found.push((check.check(blob, path.as_bstr()), blob, path));
        }
        self.print(command, |out| {
            for (state, blob, path) in found {
                let fields = format!("{} {blob}", state.as_str());
                let json = || report::freshness(state, blob, path.as_bstr());
                out.path_line(PathStyle::Tree, &fields, &[path.as_bstr()], json)?;
            }
            Ok(())
        })
    }
}
