//! The page of the correctness matrix: what is promised, row by row, and the tests that hold it.

use super::roff::Roff;

/// The matrix is written once, as a table; a test holds its rows to tests that exist and run.
const MATRIX: &str = include_str!("../../../docs/correctness.md");

pub(super) fn page() -> String {
    let mut roff = Roff::new("git-vws-correctness", 7);
    roff.section("NAME");
    roff.line("git-vws-correctness - what git vws promises, and which tests hold it");
    roff.section("DESCRIPTION");
    roff.line(
        "The correctness matrix of virtual workspaces: each row is a promise, with the names of the tests \
         in the source (`tests/`, `src/`) that pin it. A test of its own fails where one of these does \
         not exist or is switched off.",
    );
    roff.section("MATRIX");
    for (number, row, tests) in rows() {
        roff.tagged(&format!("{number}. {row}"), tests);
    }
    roff.section("SEE ALSO");
    roff.line("`git-vws`(1)");
    roff.finish()
}

/// The rows of the table: number, promise, tests.
fn rows() -> impl Iterator<Item = (u32, &'static str, &'static str)> {
    MATRIX.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        let number = cells.next()?.parse().ok()?;
        Some((
            number,
            cells.next()?,
            cells.next()?.trim_end_matches([' ', '|']),
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_rows_are_on_the_page() {
        assert!(rows().map(|(number, _, _)| number).eq(1..=15));
        let page = page();
        for (_, row, tests) in rows() {
            assert!(tests.starts_with('`') && tests.ends_with('`'), "{tests}");
            assert!(page.contains(&row.replace('-', "\\-")), "{row}");
        }
    }
}
