//! Reads of paths: the commands that an orchestrator sends by the thousand.

use bstr::ByteSlice;

use super::answer::{Answer, Body};
use super::session::{Outcome, Session, Trouble, missing};
use super::view::View;
use crate::git::tree;
use crate::layout;
use crate::model::{AgentId, RepoPath};
use crate::output::{PathStyle, report};
use crate::workspace::{self, Found, Side};

impl Session<'_, '_> {
    pub(super) fn read(
        &mut self,
        command: &'static str,
        agent: &AgentId,
        side: Side,
        path: &RepoPath,
    ) -> Outcome {
        if let Some(answer) = self.read_live(command, agent, side, path)? {
            return Ok(answer);
        }
        let root = self.root(agent, side)?;
        let view = self.view(agent, side);
        let plain = match view {
            View::Published(_) => self.hot.lookup(root, path.as_bstr())?,
            View::Pending(_) => None,
        };
        let entry = match plain {
            Some(entry) if entry.mode != tree::LINK => entry,
            _ => {
                let text = |id| view.blob(id);
                let found = workspace::resolve(&view, &text, root, path)?;
                found.ok_or_else(|| missing(path, side))?
            }
        };
        workspace::check_file(path, entry)?;
        let bytes = view.blob_at(path.as_bstr(), entry.id)?;
        Ok(Answer::done(command, Body::Content(bytes))
            .with("mode", format!("{:06o}", entry.mode))
            .with("oid", entry.id.to_string()))
    }

    /// The read of one tracked file of an open directory, without a scan; where only an import
    /// can tell, it is made, and the read goes on as if there were no directory.
    fn read_live(
        &mut self,
        command: &'static str,
        agent: &AgentId,
        side: Side,
        path: &RepoPath,
    ) -> std::result::Result<Option<Answer>, Trouble> {
        if side == Side::Base {
            return Ok(None);
        }
        let Some(cut) = self.hot.open_directory(agent)? else {
            return Ok(None);
        };
        let store = self.store();
        if let Some(live) = self.hot.live(&store, agent, cut)
            && let Some(file) = live.read(&store, path)?
        {
            let id = self.repository.hash_blob(&file.bytes)?;
            let answer = Answer::done(command, Body::Content(file.bytes));
            let answer = answer.with("mode", format!("{:06o}", file.mode));
            return Ok(Some(answer.with("oid", id.to_string())));
        }
        layout::import(&store, agent)?;
        Ok(None)
    }

    pub(super) fn stat(
        &mut self,
        command: &'static str,
        agent: &AgentId,
        side: Side,
        path: RepoPath,
    ) -> Outcome {
        let root = self.root(agent, side)?;
        let view = self.view(agent, side);
        let entry = tree::lookup(&view, root, path.as_bstr())?;
        let entry = entry.ok_or_else(|| missing(&path, side))?;
        let size = view.size(entry)?;
        let path = path.into_bstring();
        self.record(command, &[report::found(&Found { path, entry, size })])
    }

    pub(super) fn ls(
        &mut self,
        command: &'static str,
        agent: &AgentId,
        side: Side,
        under: Option<&RepoPath>,
        recursive: bool,
    ) -> Outcome {
        let root = self.root(agent, side)?;
        let view = self.view(agent, side);
        let found = workspace::list_tree(&view, root, side, under, recursive)?;
        self.print(command, |out| {
            for (path, entry) in &found {
                let fields = report::entry_fields(entry);
                let json = || report::entry(path, entry);
                out.path_line(PathStyle::Tree, &fields, &[path.as_bstr()], json)?;
            }
            Ok(())
        })
    }
}
