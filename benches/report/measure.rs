//! Interleaved repetitions, medians with spread, bars, and the voiding of wrong results.

use std::time::{Duration, Instant};

use super::Try;
use super::fixture::World;
use super::rig::{Counts, Trace};

/// What one repetition of a way gave, beside the parts that the rig's clock holds.
#[derive(Default)]
pub struct Sample {
    /// What identifies the result; equal in all ways of a group.
    pub witness: String,
    /// Bytes that the work took at its most, and while its result waited for a decision.
    pub peak: Option<u64>,
    pub held: Option<u64>,
}

impl Sample {
    pub fn of(witness: impl Into<String>) -> Sample {
        Sample {
            witness: witness.into(),
            ..Sample::default()
        }
    }
}

/// What a bar limits, as a ratio to the group's first way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// The sum of all parts.
    Total,
    /// One part, beside the same part.
    Part(&'static str),
    Peak,
    Calls,
}

/// A bar: at most so much of what the first way takes.
#[derive(Clone, Copy, Debug)]
pub struct Bar {
    pub limit: Limit,
    pub at_most: f64,
}

/// One way of doing a group's work.
pub struct Way<'a> {
    pub name: String,
    /// One repetition: starts over, does the work (its timed parts by the rig's clock), and says what
    /// came of it.
    pub run: Box<dyn Fn() -> Try<Sample> + 'a>,
    /// Measures the peak where the repetition itself cannot see it.
    pub peak: Option<Box<dyn Fn() -> Try<u64> + 'a>>,
    pub bars: Vec<Bar>,
    /// What the chart calls it, if it is drawn there.
    pub headline: Option<String>,
}

impl<'a> Way<'a> {
    pub fn new(name: impl Into<String>, run: impl Fn() -> Try<Sample> + 'a) -> Way<'a> {
        Way {
            name: name.into(),
            run: Box::new(run),
            peak: None,
            bars: Vec::new(),
            headline: None,
        }
    }

    pub fn headline(mut self, label: impl Into<String>) -> Self {
        self.headline = Some(label.into());
        self
    }

    pub fn bar(mut self, limit: Limit, at_most: f64) -> Self {
        self.bars.push(Bar { limit, at_most });
        self
    }

    pub fn bars(mut self, bars: &[Bar]) -> Self {
        self.bars.extend_from_slice(bars);
        self
    }

    pub fn peak(mut self, peak: impl Fn() -> Try<u64> + 'a) -> Self {
        self.peak = Some(Box::new(peak));
        self
    }
}

/// How a group is measured.
#[derive(Clone, Copy)]
pub struct How {
    /// Repetitions are this many times the wanted ones: for work that takes no time.
    pub times: usize,
    pub trace: Trace,
    /// The time of a repetition is that of so many operations.
    pub per: usize,
}

impl Default for How {
    fn default() -> Self {
        How {
            times: 1,
            trace: Trace::ProcessesAndFlushes,
            per: 1,
        }
    }
}

/// Rows about the same work: the first line is what the others are held against.
pub struct Group {
    pub title: String,
    pub per: usize,
    pub lines: Vec<Line>,
}

/// One row.
#[derive(Clone)]
pub struct Line {
    pub name: String,
    /// One entry for each repetition.
    pub runs: Vec<Vec<(&'static str, Duration)>>,
    pub peak: Option<u64>,
    pub held: Option<u64>,
    pub counts: Option<Counts>,
    pub bars: Vec<Bar>,
    /// What the chart calls it.
    pub headline: Option<String>,
    /// Why it must not be believed.
    pub void: Option<String>,
}

/// Middle, least and most.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

impl Spread {
    pub fn of(mut values: Vec<f64>) -> Option<Spread> {
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let half = values.len() / 2;
        let median = match values.len() % 2 {
            1 => values[half],
            _ => (values[half - 1] + values[half]) / 2.0,
        };
        Some(Spread {
            median,
            least,
            most,
        })
    }
}

impl Line {
    fn seconds(&self, part: Option<&str>) -> Vec<f64> {
        let sum = |run: &Vec<(&'static str, Duration)>| {
            let wanted = run
                .iter()
                .filter(|(name, _)| part.is_none_or(|part| part == *name));
            wanted.map(|(_, spent)| spent.as_secs_f64()).sum()
        };
        self.runs.iter().map(sum).collect()
    }

    /// Seconds of all parts together, or of one.
    pub fn time(&self, part: Option<&str>) -> Option<Spread> {
        Spread::of(self.seconds(part))
    }

    /// The names of the parts, in their order.
    pub fn parts(&self) -> Vec<&'static str> {
        let first = self.runs.first();
        first.map_or(Vec::new(), |run| {
            run.iter().map(|(name, _)| *name).collect()
        })
    }

    /// Times of this line to those of another, by pairs; the median is that of the medians.
    pub fn ratio(&self, to: &Line) -> Option<Spread> {
        self.ratio_of(None, to)
    }

    fn ratio_of(&self, part: Option<&str>, to: &Line) -> Option<Spread> {
        let (own, theirs) = (self.seconds(part), to.seconds(part));
        let pairs = own
            .iter()
            .zip(&theirs)
            .map(|(own, their)| own / their)
            .collect();
        let spread = Spread::of(pairs)?;
        let median = Spread::of(own)?.median / Spread::of(theirs)?.median;
        Some(Spread { median, ..spread })
    }

    /// How a bar stands: the ratio that it limits.
    pub fn held_to(&self, bar: Bar, to: &Line) -> Option<f64> {
        let of = |own: Option<u64>, their: Option<u64>| match (own, their) {
            (Some(own), Some(their)) if their > 0 => Some(own as f64 / their as f64),
            _ => None,
        };
        let calls = |line: &Line| line.counts.and_then(|counts| counts.calls);
        match bar.limit {
            Limit::Total => self.ratio(to).map(|ratio| ratio.median),
            Limit::Part(part) => self.ratio_of(Some(part), to).map(|ratio| ratio.median),
            Limit::Peak => of(self.peak, to.peak),
            Limit::Calls => of(calls(self), calls(to)),
        }
    }
}

/// Measures a group: a repetition of each way in turn, the order changing, until there are enough or
/// the table's time is used up; then once more under `strace`.
pub fn measure(world: &World, title: impl Into<String>, how: How, ways: Vec<Way>) -> Group {
    let mut lines: Vec<Line> = ways.iter().map(Line::empty).collect();
    let mut witness: Option<(String, usize)> = None;
    // One repetition is asked for to see that all of it works.
    let reps = match world.options.reps {
        1 => 1,
        reps => reps * how.times,
    };
    for rep in 0..reps {
        if rep > 0 && world.deadline.get().is_some_and(|end| Instant::now() > end) {
            break;
        }
        let order: Vec<usize> = match rep % 2 {
            0 => (0..ways.len()).collect(),
            _ => (0..ways.len()).rev().collect(),
        };
        for at in order {
            if lines[at].void.is_some() {
                continue;
            }
            world.rig.take_parts();
            match (ways[at].run)() {
                Err(why) => lines[at].void = Some(why),
                Ok(sample) => {
                    let first = witness.get_or_insert_with(|| (sample.witness.clone(), at));
                    if first.0 != sample.witness {
                        let other = &ways[first.1].name;
                        lines[at].void = Some(format!(
                            "another result than '{other}': '{}', not '{}'",
                            sample.witness, first.0
                        ));
                    }
                    let parts = world.rig.take_parts();
                    let line = &mut lines[at];
                    let scale =
                        |(name, spent): (&'static str, Duration)| (name, spent / how.per as u32);
                    line.runs.push(parts.into_iter().map(scale).collect());
                    line.peak = line.peak.max(sample.peak);
                    line.held = line.held.max(sample.held);
                }
            }
        }
    }
    for (line, way) in lines.iter_mut().zip(&ways) {
        if line.void.is_some() {
            continue;
        }
        if let Some(peak) = &way.peak {
            match peak() {
                Ok(bytes) => line.peak = Some(bytes),
                Err(why) => line.void = Some(why),
            }
            world.rig.take_parts();
        }
        if how.trace != Trace::Nothing && world.rig.can_trace() && line.void.is_none() {
            match world.rig.counted(how.trace, &way.run) {
                Ok(counts) => line.counts = Some(counts),
                Err(why) => line.void = Some(format!("under strace: {why}")),
            }
        }
    }
    Group {
        title: title.into(),
        per: how.per,
        lines,
    }
}

impl Line {
    fn empty(way: &Way) -> Line {
        Line {
            name: way.name.clone(),
            runs: Vec::new(),
            peak: None,
            held: None,
            counts: None,
            bars: way.bars.clone(),
            headline: way.headline.clone(),
            void: None,
        }
    }
}
