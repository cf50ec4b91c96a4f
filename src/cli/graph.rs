//! The drawing of `git vws stack --graph`: each workspace below the first one that it was stacked on.

use std::collections::HashSet;
use std::fmt::Write as _;

use git_vws::integrate::{Node, Standing};
use git_vws::model::AgentId;

use super::session::count_of;

/// Draws all nodes, each once.
pub(super) fn draw(nodes: &[Node]) -> String {
    let names: HashSet<&AgentId> = nodes.iter().map(|node| &node.agent).collect();
    let root = |node: &&Node| first(node).is_none_or(|parent| !names.contains(parent));
    let mut text = String::new();
    let mut drawn = HashSet::new();
    for node in nodes.iter().filter(root) {
        branch(&mut text, nodes, &mut drawn, (node, "", ""));
    }
    // A ring cannot be made, but if somebody did, nobody is left out.
    for node in nodes {
        if !drawn.contains(&node.agent) {
            branch(&mut text, nodes, &mut drawn, (node, "", ""));
        }
    }
    text
}

fn first(node: &Node) -> Option<&AgentId> {
    node.below.first().map(|below| &below.parent.agent)
}

fn branch<'n>(
    text: &mut String,
    nodes: &'n [Node],
    drawn: &mut HashSet<&'n AgentId>,
    (node, lead, indent): (&'n Node, &str, &str),
) {
    if !drawn.insert(&node.agent) {
        return;
    }
    let _ = writeln!(text, "{lead}{}", line(node));
    let above: Vec<&Node> = nodes
        .iter()
        .filter(|other| first(other) == Some(&node.agent))
        .collect();
    for (at, other) in above.iter().enumerate() {
        let (mark, rest) = match at + 1 == above.len() {
            true => ("`-- ", "    "),
            false => ("|-- ", "|   "),
        };
        let (lead, indent) = (format!("{indent}{mark}"), format!("{indent}{rest}"));
        branch(text, nodes, drawn, (other, &lead, &indent));
    }
}

fn line(node: &Node) -> String {
    let Some(workspace) = &node.workspace else {
        return format!("{}  damaged", node.agent);
    };
    let mut parts = vec![count_of(node.changes, "change")];
    for (state, count) in &node.states {
        if matches!(*state, "proposed" | "accepted" | "rejected" | "blocked") {
            parts.push(format!("{count} {state}"));
        }
    }
    let conflicts = workspace.meta.conflicts().len();
    if conflicts > 0 {
        parts.push(count_of(conflicts, "conflict"));
    }
    if node.open {
        parts.push("directory open".to_owned());
    }
    for (at, below) in node.below.iter().enumerate() {
        let name = &below.parent.agent;
        match below.standing {
            Standing::Current if at == 0 => {}
            Standing::Current => parts.push(format!("also on {name}")),
            Standing::Behind => parts.push(format!("behind {name}")),
            Standing::Decided => parts.push(format!("{name} is decided")),
            Standing::Gone => parts.push(format!("{name} is gone")),
        }
    }
    format!(
        "{} r{}  {}",
        node.agent,
        workspace.revision(),
        parts.join(", ")
    )
}
