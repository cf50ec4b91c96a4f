//! Merges whose edits plainly lie apart: told from the edits alone, without a look at every line.
//!
//! What git's merge makes of three texts follows from its two diffs, base to ours and base to theirs.
//! Where no hunk of one touches a hunk of the other, nothing conflicts, and the result is the one side
//! with the other side's edits in it, however each diff cuts them into hunks. Here it is shown that this
//! is so, or nothing is said. `D` is the number of lines that a side takes out and puts in.
//!
//! *Hulls.* git's diff trims the lines that both texts begin and end with; all its hunks lie in what is
//! left, the hull. Afterwards it may slide a hunk of n lines down over a line that equals the one n lines
//! above (up likewise), so never over a line that is neither in the hull nor between: a *barrier*. Two
//! hulls with a barrier of each between them are apart.
//!
//! *Gaps.* Where the one hull lies within the other, in a long run M of lines that a script of ours leaves
//! as they are, it has to be shown that git's diff leaves them too. Before it looks for the shortest script
//! it drops lines that the other text has not, and such as are frequent there and stand within a hundred
//! lines among those, on both sides: none of an M of 202 lines or more, and in all no more than the former.
//! So it looks for a shortest script of at most D edits, and for such a short one it does find one. Take
//! D + 1 lines of M, each unlike all lines within 5 D of it in both texts. The script cannot take all of
//! them out, and cannot match one with any line but its own. If this holds above and below a part of M,
//! then between two lines that are matched so there is nothing shorter than to match all. And one more
//! such line is a barrier, for no hunk has more than 3 D lines.

use std::collections::HashMap;
use std::ops::Range;

use bstr::ByteSlice;

/// So many lines taken out and put in are looked through by themselves.
const MOST: usize = 60;
/// A run of lines of which git's diff drops none is at least so long.
const LONG: usize = 202;
/// How far away a barrier is looked for, in lines.
const NEAR: usize = 20;
/// How far the texts are looked through for where they are the same again, in lines.
const AHEAD: usize = 40;
/// So many lines in a row must be.
const AGAIN: usize = 3;

/// A part of the base, and what a side has instead.
#[derive(Clone, Debug)]
struct Edit {
    base: Range<usize>,
    side: Range<usize>,
}

/// The clean result, where the edits of the two sides plainly lie apart. Neither side is the base.
pub(super) fn merge(base: &[u8], ours: &[u8], theirs: &[u8]) -> Option<Vec<u8>> {
    let (our, their) = (hull(base, ours), hull(base, theirs));
    let size = |edit: &Edit| edit.base.len() + edit.side.len();
    // The wider one is gone through where it has to be.
    let (wide, narrow) = match size(&our) >= size(&their) {
        true => ((ours, our), (theirs, their)),
        false => ((theirs, their), (ours, our)),
    };
    let free = free_of(base, narrow.0, &narrow.1)?;
    // A line at least is between them.
    let shift = if wide.1.base.end < free.start {
        let other = free_of(base, wide.0, &wide.1)?;
        (other.end < free.start).then_some(Shift::after(&wide.1))
    } else if free.end < wide.1.base.start {
        let other = free_of(base, wide.0, &wide.1)?;
        (free.end < other.start).then_some(Shift(0))
    } else {
        in_gap(base, &wide, &free)
    }?;
    let (text, edit) = (wide.0, &narrow.1);
    let (head, tail) = (shift.of(edit.base.start), shift.of(edit.base.end));
    Some([&text[..head], &narrow.0[edit.side.clone()], &text[tail..]].concat())
}

/// How far a place of the base has moved in a side.
#[derive(Clone, Copy, Debug)]
struct Shift(isize);

impl Shift {
    /// Behind an edit.
    fn after(edit: &Edit) -> Self {
        Shift(edit.side.end as isize - edit.base.end as isize)
    }

    fn of(self, place: usize) -> usize {
        place.saturating_add_signed(self.0)
    }
}

/// What is left of both texts without the lines that they begin and end with alike.
fn hull(base: &[u8], side: &[u8]) -> Edit {
    let start = line_start(base, same_start(base, side));
    let (rest, other) = (&base[start..], &side[start..]);
    let mut same = same_end(rest, other);
    let begins = |text: &[u8], end: usize| end == 0 || text[end - 1] == b'\n';
    if !(begins(rest, rest.len() - same) && begins(other, other.len() - same)) {
        // It begins within a line.
        let tail = &rest[rest.len() - same..];
        same -= tail.find_byte(b'\n').map_or(same, |at| at + 1);
    }
    Edit {
        base: start..base.len() - same,
        side: start..side.len() - same,
    }
}

/// The part of the base in which all hunks of a hull stay: what ends it are barriers, or the ends of the
/// text.
fn free_of(base: &[u8], side: &[u8], hull: &Edit) -> Option<Range<usize>> {
    let (mut start, mut end) = (hull.base.start, hull.base.end);
    let changed = &side[hull.side.clone()];
    let is_barrier = |line: &[u8], within: &[u8]| !holds(within, line) && !holds(changed, line);
    let mut below = lines(&base[end..]).take(NEAR);
    while end < base.len() {
        let line = below.next()?;
        if is_barrier(line, &base[start..end]) {
            break;
        }
        end += line.len();
    }
    let mut above = lines_up(&base[..start]).take(NEAR);
    while start > 0 {
        let line = above.next()?;
        if is_barrier(line, &base[start..hull.base.end]) {
            break;
        }
        start -= line.len();
    }
    Some(start..end)
}

/// Whether a part of the base lies in a gap of a side's edits, barriers between it and them; how far the
/// gap has moved.
fn in_gap(base: &[u8], (side, hull): &(&[u8], Edit), part: &Range<usize>) -> Option<Shift> {
    let edits = script(base, side, hull)?;
    let changed = |edit: &Edit| {
        lines(&base[edit.base.clone()]).count() + lines(&side[edit.side.clone()]).count()
    };
    let most: usize = edits.iter().map(changed).sum();
    let after = edits.iter().position(|edit| edit.base.start >= part.end)?;
    let above = &edits[after.checked_sub(1)?];
    let gap = above.base.end..edits[after].base.start;
    if most > MOST || part.start < gap.start || lines(&base[gap.clone()]).count() < LONG {
        return None;
    }
    let shift = Shift::after(above);
    let (room, around) = (4 * (most + 2), 5 * most + 8);
    let up: Vec<&[u8]> = lines_up(&base[gap.start..part.start]).take(room).collect();
    let down: Vec<&[u8]> = lines(&base[part.end..gap.end]).take(room).collect();
    let length = |lines: &[&[u8]]| lines.iter().map(|line| line.len()).sum::<usize>();
    let (first, last) = (part.start - length(&up), part.end + length(&down));
    let within = lines_up(&base[..first]).take(around);
    let within = within.chain(lines(&base[first..last]));
    let within = within.chain(lines(&base[last..]).take(around));
    // In the gap the side has the same lines.
    let further = |part: Range<usize>| around.saturating_sub(lines(&base[part]).count());
    let (start, end) = (shift.of(gap.start), shift.of(gap.end));
    let outside = lines_up(&side[..start]).take(further(gap.start..first));
    let outside = outside.chain(lines(&side[end..]).take(further(last..gap.end)));
    let mut seen: HashMap<&[u8], usize> = HashMap::new();
    for line in within.chain(outside) {
        *seen.entry(line).or_default() += 1;
    }
    // One is the barrier, and one of the others is matched with itself.
    let enough = |lines: &[&[u8]]| lines.iter().filter(|line| seen[*line] == 1).count() >= most + 2;
    (enough(&up) && enough(&down)).then_some(shift)
}

/// A script of a side's edits, not always the shortest; `None` where it would be long.
fn script(base: &[u8], side: &[u8], hull: &Edit) -> Option<Vec<Edit>> {
    let (mut at, mut there) = (hull.base.start, hull.side.start);
    let mut edits = Vec::new();
    while at < hull.base.end || there < hull.side.end {
        let (left, other) = (&base[at..hull.base.end], &side[there..hull.side.end]);
        let (gone, come) = until_same(left, other)?;
        edits.push(Edit {
            base: at..at + gone,
            side: there..there + come,
        });
        let (left, other) = (&left[gone..], &other[come..]);
        let same = same_start(left, other);
        let same = match same == left.len() && same == other.len() {
            true => same,
            false => line_start(left, same),
        };
        (at, there) = (at + gone + same, there + come + same);
        if edits.len() > MOST {
            return None;
        }
    }
    Some(edits)
}

/// How much of each text comes before they are the same for some lines, or end.
fn until_same(left: &[u8], right: &[u8]) -> Option<(usize, usize)> {
    let (lines_left, lines_right): (Vec<&[u8]>, Vec<&[u8]>) = (
        lines(left).take(AHEAD).collect(),
        lines(right).take(AHEAD).collect(),
    );
    let length = |lines: &[&[u8]]| lines.iter().map(|line| line.len()).sum::<usize>();
    for both in 1..=lines_left.len() + lines_right.len() {
        for gone in both.saturating_sub(lines_right.len())..=both.min(lines_left.len()) {
            let come = both - gone;
            let (one, two) = (&lines_left[gone..], &lines_right[come..]);
            let lengths = (length(&lines_left[..gone]), length(&lines_right[..come]));
            let same = one.len() >= AGAIN && two.len() >= AGAIN && one[..AGAIN] == two[..AGAIN];
            if same || lengths == (left.len(), right.len()) {
                return Some(lengths);
            }
        }
    }
    None
}

/// Whether a line is one of a text, or (without an end) the beginning of one.
fn holds(text: &[u8], line: &[u8]) -> bool {
    let begins = |at: usize| at == 0 || text[at - 1] == b'\n';
    text.find_iter(line).any(begins)
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.lines_with_terminator()
}

/// The lines from the last one up. The text ends with a line's end.
fn lines_up(mut text: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (last, above) = (text.len().checked_sub(1)?, text);
        let start = line_start(above, last);
        text = &above[..start];
        Some(&above[start..])
    })
}

/// Where the line at a place begins; the end of a line before it is not looked at.
fn line_start(text: &[u8], place: usize) -> usize {
    text[..place].rfind_byte(b'\n').map_or(0, |at| at + 1)
}

/// How many bytes two texts begin with alike.
fn same_start(one: &[u8], two: &[u8]) -> usize {
    const STEP: usize = 256;
    let steps = one.chunks_exact(STEP).zip(two.chunks_exact(STEP));
    let whole = STEP * steps.take_while(|(one, two)| one == two).count();
    let rest = one[whole..].iter().zip(&two[whole..]);
    whole + rest.take_while(|(one, two)| one == two).count()
}

/// How many bytes two texts end with alike.
fn same_end(one: &[u8], two: &[u8]) -> usize {
    const STEP: usize = 256;
    let steps = one.rchunks_exact(STEP).zip(two.rchunks_exact(STEP));
    let whole = STEP * steps.take_while(|(one, two)| one == two).count();
    let (one, two) = (&one[..one.len() - whole], &two[..two.len() - whole]);
    let rest = one.iter().rev().zip(two.iter().rev());
    whole + rest.take_while(|(one, two)| one == two).count()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::{MergeOptions, merge_by_library};
    use super::*;
    use crate::git::tree::testing::Random;

    /// A text of lines out of so many, some of which come more often than others.
    fn text(random: &mut Random, length: usize, kinds: usize) -> Vec<Vec<u8>> {
        let line = |random: &mut Random| match random.below(8) {
            0 => b"\n".to_vec(),
            1 => b"}\n".to_vec(),
            _ => format!("line {}\n", random.below(kinds)).into_bytes(),
        };
        (0..length).map(|_| line(random)).collect()
    }

    /// Some edits in a part of a text: lines go, or come, or are moved or repeated.
    fn edited(
        random: &mut Random,
        base: &[Vec<u8>],
        part: Range<usize>,
        most: usize,
        kinds: usize,
    ) -> Vec<u8> {
        let mut lines = base.to_vec();
        for _ in 0..=random.below(most) {
            let at = (part.start + random.below(part.len())).min(lines.len());
            let end = (at + random.below(4)).min(lines.len());
            let count = random.below(4);
            let new = match random.below(4) {
                // As they are elsewhere: what git's diff may slide over, and match in another way.
                0 => {
                    let from = at.saturating_sub(random.below(6));
                    lines[from..(from + count).min(lines.len())].to_vec()
                }
                1 => text(random, count, kinds),
                _ => text(random, count, 1_000_000),
            };
            lines.splice(at..end, new);
        }
        let mut joined = lines.concat();
        if random.chance(10) {
            joined.pop();
        }
        joined
    }

    /// What libgit2 (and so git: the tests beside) makes of the same.
    fn by_library(texts: [&[u8]; 3]) -> Option<Vec<u8>> {
        let merged = merge_by_library(texts, &MergeOptions::default(), 7).unwrap();
        merged.is_automergeable().then(|| merged.content().to_vec())
    }

    fn compare(rounds: usize, seed: u64, wide: usize) -> usize {
        // The library is not initialised by a merge alone.
        let _ = git2::Oid::from_bytes(&[0; 20]);
        let mut random = Random::new(seed);
        let mut told = 0;
        for round in 0..rounds {
            let kinds = [4, 40, 2_000, 1_000_000][random.below(4)];
            let length = [8, 60, 700, 1_500][random.below(4)];
            let base = text(&mut random, length, kinds);
            let at = random.below(length);
            let near = at..(at + 1 + random.below(6)).min(length);
            let narrow = edited(&mut random, &base, near, 2, kinds);
            let wide = edited(&mut random, &base, 0..length, wide, kinds);
            let mut base = base.concat();
            if random.chance(10) {
                base.pop();
            }
            let mut sides = [narrow.as_slice(), wide.as_slice()];
            if random.chance(50) {
                sides.reverse();
            }
            let [ours, theirs] = sides;
            if base == ours || base == theirs || ours == theirs {
                continue;
            }
            if let Some(merged) = merge(&base, ours, theirs) {
                told += 1;
                let expected = by_library([&base, ours, theirs]);
                assert!(
                    expected.as_ref() == Some(&merged),
                    "round {round} of {seed}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}",
                    base.as_bstr(),
                    ours.as_bstr(),
                    theirs.as_bstr(),
                    merged.as_bstr(),
                    expected.map(bstr::BString::from)
                );
            }
        }
        told
    }

    #[test]
    fn what_is_told_is_what_git_merges() {
        for (seed, wide, least) in [(1, 1, 200), (2, 3, 60), (3, 12, 20)] {
            let told = compare(1000, seed, wide);
            assert!(told >= least, "{wide} edits: {told}");
        }
    }

    #[test]
    fn many_edits_of_one_text_are_told_one_by_one() {
        let base: Vec<String> = (0..2000).map(|n| format!("line number {n}\n")).collect();
        let with = |agents: &[usize]| {
            let mut lines = base.clone();
            for agent in agents {
                lines[agent * 120 + 5] = format!("agent {agent}\n");
            }
            lines.concat().into_bytes()
        };
        let order = [0, 1, 10, 11, 12, 13, 14, 15, 2, 3, 4, 5, 6, 7, 8, 9];
        for done in 1..order.len() {
            let (ours, theirs) = (with(&order[..done]), with(&order[done..=done]));
            let merged = merge(&with(&[]), &ours, &theirs);
            assert!(merged == Some(with(&order[..=done])), "{done}");
        }
    }

    #[test]
    fn edits_that_touch_or_may_are_not_told() {
        let base = "a\nb\nc\nd\ne\n";
        for (ours, theirs) in [
            // The same line, the next one, and one line between that may be either's.
            ("a\nB\nc\nd\ne\n", "a\nX\nc\nd\ne\n"),
            ("a\nB\nc\nd\ne\n", "a\nb\nX\nd\ne\n"),
            ("a\nb\nb\nc\nd\ne\n", "a\nb\nX\nd\ne\n"),
            ("a\nb\nc\nd\ne\nf\n", "a\nb\nc\nd\ne\ng\n"),
            ("a\nb\nc\nd\nE", "a\nb\nc\nd\nF"),
        ] {
            let merged = merge(base.as_bytes(), ours.as_bytes(), theirs.as_bytes());
            assert_eq!(merged, None, "{ours:?} {theirs:?}");
        }
        let merged = merge(base.as_bytes(), b"A\nb\nc\nd\ne\n", b"a\nb\nc\nd\nE\n");
        assert_eq!(merged.unwrap().as_bstr(), "A\nb\nc\nd\nE\n");
    }
}
