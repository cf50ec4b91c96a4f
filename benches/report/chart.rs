//! The chart: one bar for each headline, from `git worktree` at 1 to the left where less was needed, on a
//! scale of powers of ten. One file that needs nothing else, and readable on light and dark pages.

use super::Report;
use super::markdown::figures;
use super::measure::Line;

const WIDTH: f64 = 860.0;
const LABELS: f64 = 350.0;
const RIGHT: f64 = 70.0;
const TOP: f64 = 58.0;
const ROW: f64 = 26.0;

struct Bar {
    label: String,
    /// The unit at which the bar ends, and what is said beside it.
    ratio: f64,
    range: (f64, f64),
}

/// Draws the report's headlines.
pub fn svg(report: &Report) -> String {
    let groups = report.tables.iter().flat_map(|table| &table.groups);
    let bars: Vec<Bar> = groups
        .filter_map(|group| group.lines.split_first())
        .flat_map(|(first, lines)| lines.iter().filter_map(|line| bar(first, line)))
        .collect();
    let least = bars.iter().map(|bar| bar.range.0).fold(0.1, f64::min);
    let most = bars.iter().map(|bar| bar.range.1).fold(1.0, f64::max);
    let (low, high) = (least.log10().floor(), most.log10().ceil().max(0.0));
    let room = WIDTH - LABELS - RIGHT;
    let x = |ratio: f64| LABELS + (ratio.log10() - low) / (high - low).max(1.0) * room;
    let bottom = TOP + ROW * bars.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {:.0}\" width=\"{WIDTH}\" \
         height=\"{:.0}\" role=\"img\" aria-labelledby=\"title\">\n\
         <title id=\"title\">Time of git vws beside git worktree, by kind of work</title>\n{STYLE}\n",
        bottom + 34.0,
        bottom + 34.0
    );
    let mut put = |line: String| svg.push_str(&format!("{line}\n"));
    put("<text class=\"head\" x=\"12\" y=\"22\">Time, beside git worktree = 1</text>".to_owned());
    let machine = report
        .about
        .iter()
        .filter(|(name, _)| ["machine", "file system"].contains(name));
    let machine: Vec<_> = machine.map(|(_, value)| value.as_str()).collect();
    put(format!(
        "<text class=\"note\" x=\"12\" y=\"40\">{}</text>",
        escaped(&machine.join("; "))
    ));
    for power in low as i32..=high as i32 {
        let at = x(10f64.powi(power));
        let class = if power == 0 { "one" } else { "grid" };
        put(format!(
            "<line class=\"{class}\" x1=\"{at:.1}\" y1=\"{:.1}\" x2=\"{at:.1}\" y2=\"{bottom:.1}\"/>",
            TOP - 4.0
        ));
        let text = match u32::try_from(power) {
            Ok(power) => format!("{}×", 10u64.pow(power)),
            Err(_) => format!("{:.*}×", power.unsigned_abs() as usize, 10f64.powi(power)),
        };
        put(format!(
            "<text class=\"note\" text-anchor=\"middle\" x=\"{at:.1}\" y=\"{:.1}\">{text}</text>",
            bottom + 18.0
        ));
    }
    for (row, bar) in bars.iter().enumerate() {
        let top = TOP + ROW * row as f64;
        let (from, to) = (x(bar.ratio.min(1.0)), x(bar.ratio.max(1.0)));
        let class = if bar.ratio <= 1.0 { "less" } else { "more" };
        put(format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LABELS - 46.0,
            top + 15.0,
            escaped(&bar.label)
        ));
        put(format!(
            "<rect class=\"{class}\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"15\" rx=\"2\"/>",
            top + 3.0,
            (to - from).max(1.0)
        ));
        let (least, most) = (x(bar.range.0), x(bar.range.1));
        put(format!(
            "<line class=\"range\" x1=\"{least:.1}\" y1=\"{y:.1}\" x2=\"{most:.1}\" y2=\"{y:.1}\"/>",
            y = top + 10.5
        ));
        let (anchor, at) = match bar.ratio <= 1.0 {
            true => ("end", from.min(least) - 5.0),
            false => ("start", to.max(most) + 5.0),
        };
        put(format!(
            "<text class=\"value\" text-anchor=\"{anchor}\" x=\"{at:.1}\" y=\"{:.1}\">{}</text>",
            top + 15.0,
            figures(bar.ratio)
        ));
    }
    svg.push_str("</svg>\n");
    svg
}

const STYLE: &str = "<style>\n\
    text { font: 13px system-ui, -apple-system, 'Segoe UI', sans-serif; fill: #1f2328 }\n\
    .head { font-weight: 600; font-size: 15px }\n.value { font-weight: 600 }\n\
    .note { font-size: 11px; fill: #59636e }\n.grid { stroke: #8c959f; stroke-opacity: .35 }\n\
    .one { stroke: #59636e; stroke-width: 1.5 }\n.range { stroke: #1f2328; stroke-opacity: .55 }\n\
    .less { fill: #2da44e }\n.more { fill: #d4632a }\n\
    @media (prefers-color-scheme: dark) {\n\
    text { fill: #e6edf3 } .note { fill: #9198a1 } .one { stroke: #9198a1 } .range { stroke: #e6edf3 }\n\
    .less { fill: #3fb950 } .more { fill: #f0883e }\n}\n</style>";

fn bar(first: &Line, line: &Line) -> Option<Bar> {
    if line.void.is_some() || first.void.is_some() {
        return None;
    }
    let ratio = line.ratio(first)?;
    Some(Bar {
        label: line.headline.clone()?,
        ratio: ratio.median,
        range: (ratio.least, ratio.most),
    })
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
