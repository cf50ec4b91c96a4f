//! `git vws conflicts`: which workspaces collide with each other and with the working tree.

use std::io::IsTerminal;

use git_vws::integrate::{self, Radar};
use git_vws::model::AgentId;
use git_vws::output::{Form, PathStyle, report};

use super::args::FormArgs;
use super::report::Failure;
use super::session::{Session, count_of, print_error, say};

/// How much of a name the matrix shows.
const WIDTH: usize = 12;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    form: FormArgs,
    /// Only the collisions of these workspaces; those of all if left out
    #[arg(value_name = "agent")]
    agents: Vec<AgentId>,
}

pub(crate) fn run(args: &Args, session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(args.form.form())?;
    let radar = integrate::conflicts(&session.store(), &args.agents)?;
    for collision in &radar.collisions {
        let fields = report::collision_fields(collision);
        let paths = [collision.path.as_ref()];
        out.path_line(PathStyle::Tree, &fields, &paths, || {
            report::collision(collision)
        })?;
    }
    out.finish()?;
    super::upkeep::remark_interrupted(session);
    for (agent, why) in &radar.unreadable {
        say(
            "warning",
            &format!("cannot tell about workspace '{agent}': {why}"),
        );
    }
    if radar.collisions.is_empty() && radar.unreadable.is_empty() {
        return Ok(());
    }
    if args.form.form() == Form::Lines && std::io::stderr().is_terminal() {
        print_error(&matrix(&radar));
    }
    let count = radar.collisions.len();
    Err(Failure::Partial {
        what: match count {
            0 => "not every workspace could be read".to_owned(),
            _ => format!(
                "{} among {}",
                count_of(count, "collision"),
                count_of(radar.agents.len(), "workspace")
            ),
        },
        hint: None,
    })
}

/// For a person: at how many paths each of those that collide does so with each other and, in the
/// first column, with the working tree.
fn matrix(radar: &Radar) -> String {
    let involved = |agent: &&AgentId| {
        let mut all = radar.collisions.iter();
        all.any(|one| one.agent == **agent || one.with.as_ref() == Some(agent))
    };
    let agents: Vec<&AgentId> = radar.agents.iter().filter(involved).collect();
    let name = |agent: &AgentId| agent.as_str().chars().take(WIDTH).collect::<String>();
    let mut text = format!("{:WIDTH$} {:>WIDTH$}", "", "(yours)");
    for agent in &agents {
        text.push_str(&format!(" {:>WIDTH$}", name(agent)));
    }
    text.push('\n');
    for row in &agents {
        text.push_str(&format!("{:WIDTH$}", name(row)));
        for column in std::iter::once(None).chain(agents.iter().map(Some)) {
            let count = radar.collisions.iter().filter(|one| match column {
                None => one.agent == **row && one.with.is_none(),
                Some(other) => {
                    let pair = (&one.agent, one.with.as_ref());
                    pair == (row, Some(other)) || pair == (other, Some(row))
                }
            });
            let cell = match (count.count(), column) {
                (_, Some(other)) if other == row => String::new(),
                (0, _) => ".".to_owned(),
                (count, _) => count.to_string(),
            };
            text.push_str(&format!(" {cell:>WIDTH$}"));
        }
        // The last cell of a row may be its own.
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use git_vws::integrate::Collision;
    use git_vws::model::Refusal;

    use super::*;

    #[test]
    fn the_matrix_counts_paths_both_ways() {
        let id = |name: &str| AgentId::new(name).unwrap();
        let one = |agent: &str, with: Option<&str>, path: &str| Collision {
            agent: id(agent),
            with: with.map(id),
            path: path.into(),
            kind: Refusal::Conflict,
        };
        let radar = Radar {
            agents: vec![id("alone"), id("bob"), id("carol-with-a-long-name")],
            collisions: vec![
                one("bob", None, "f"),
                one("bob", Some("carol-with-a-long-name"), "f"),
                one("bob", Some("carol-with-a-long-name"), "g"),
            ],
            unreadable: Vec::new(),
        };
        let expected = [
            "                  (yours)          bob carol-with-a",
            "bob                     1                         2",
            "carol-with-a            .            2",
            "",
        ];
        assert_eq!(matrix(&radar), expected.join("\n"));
    }
}
