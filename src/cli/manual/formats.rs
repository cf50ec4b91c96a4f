//! The page of formats: what programs may rely on.

use super::page::{print, sections};
use super::roff::Roff;

const TEXT: &str = include_str!("text/formats.txt");
/// The grammar of the stream is written where it is read.
const BATCH: &str = include_str!("../../batch/mod.rs");

pub(super) fn page() -> String {
    let mut roff = Roff::new("git-vws-formats", 7);
    roff.section("NAME");
    roff.line("git-vws-formats - what git vws reads, prints and keeps");
    for (heading, blocks) in sections(TEXT) {
        roff.section(heading);
        print(&mut roff, &blocks);
        if heading == "BATCH" {
            batch(&mut roff);
        }
    }
    roff.section("SEE ALSO");
    roff.line("`git-vws`(1), `git-vws-batch`(1)");
    roff.finish()
}

/// What the module's documentation says from its first heading on.
fn batch(roff: &mut Roff) {
    let doc = BATCH.lines().map_while(|line| line.strip_prefix("//!"));
    let doc = doc.map(|line| line.strip_prefix(' ').unwrap_or(line));
    let (mut literal, mut inside) = (Vec::new(), false);
    let mut paragraph = String::new();
    for line in doc.skip_while(|line| !line.starts_with("# ")).chain([""]) {
        if line.starts_with("```") {
            inside = !inside;
            if !inside {
                roff.literal(&std::mem::take(&mut literal));
            }
        } else if inside {
            literal.push(line);
        } else if let Some(heading) = line.strip_prefix("# ") {
            roff.subsection(heading);
        } else if line.is_empty() {
            if !paragraph.is_empty() {
                roff.paragraph(&std::mem::take(&mut paragraph));
            }
        } else {
            if !paragraph.is_empty() {
                paragraph.push(' ');
            }
            paragraph.push_str(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use git_vws::model::Refusal;

    use super::*;

    #[test]
    fn the_page_has_every_kind_of_refusal_and_the_whole_grammar() {
        for kind in Refusal::ALL {
            assert!(TEXT.contains(&format!("= {kind}\n")), "{kind}");
        }
        let page = page();
        assert!(page.contains("stream    = { command } ;"));
        assert!(page.contains("The end of the input aborts."));
    }
}
