//! The timeline of a trace: a row for every queue of each rank or device, measured and predicted, and below the memory
//! in use at each time.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use serde_json::Value;

use crate::plan::drawing::Escaped;

/// Maximum number of spans that are drawn, the longest first, and of points of a curve of memory.
const MOST: usize = 4000;
/// Width of the timeline without the row names, in pixels.
const WIDTH: f64 = 1000.0;
/// Width of the row names.
const NAMES: f64 = 230.0;
/// Height of a row, and of a curve.
const ROW: f64 = 18.0;
const CURVE: f64 = 46.0;

/// A span of a trace.
struct TimelineSpan {
    name: String,
    class: String,
    start: f64,
    length: f64,
    row: (u64, u64),
}

/// The bytes in use of one kind of memory of one rank, at times.
struct MemoryCurve {
    name: String,
    points: Vec<(f64, f64)>,
}

/// The spans and the memory of a trace.
pub(super) struct Timeline {
    /// Names of processes, and of their rows.
    names: BTreeMap<(u64, Option<u64>), String>,
    spans: Vec<TimelineSpan>,
    /// Number of all spans.
    all: usize,
    memory: Vec<MemoryCurve>,
    /// Times of the first and the last moment, in microseconds.
    ends: [f64; 2],
}

impl Timeline {
    /// The timeline of a trace in JSON; `None` without steps.
    pub(super) fn of(trace: &str) -> Option<Timeline> {
        let parsed: Value = serde_json::from_str(trace).unwrap_or_default();
        let events = parsed["traceEvents"].as_array().map_or(&[][..], Vec::as_slice);
        let mut names: BTreeMap<(u64, Option<u64>), String> = BTreeMap::new();
        let mut spans = Vec::new();
        let mut memory: BTreeMap<(u64, String), Vec<(f64, f64)>> = BTreeMap::new();
        for event in events {
            let (pid, tid) = (event["pid"].as_u64().unwrap_or(0), event["tid"].as_u64().unwrap_or(0));
            let named = event["args"]["name"].as_str().unwrap_or_default();
            let start = event["ts"].as_f64().unwrap_or(0.0);
            match event["name"].as_str() {
                Some("process_name") => {
                    names.insert((pid, None), named.into());
                }
                Some("thread_name") => {
                    names.insert((pid, Some(tid)), named.into());
                }
                Some(name) if event["ph"] == "C" => {
                    let bytes = event["args"]["bytes"].as_f64().unwrap_or(0.0);
                    memory.entry((pid, name.into())).or_default().push((start, bytes));
                }
                Some(name) if event["ph"] == "X" => spans.push(TimelineSpan {
                    name: name.into(),
                    class: event["cat"].as_str().unwrap_or_default().into(),
                    start,
                    length: event["dur"].as_f64().unwrap_or(0.0),
                    row: (pid, tid),
                }),
                _ => {}
            }
        }
        let all = spans.len();
        spans.sort_by(|a, b| b.length.total_cmp(&a.length));
        spans.truncate(MOST);
        let first = spans.iter().map(|span| span.start).fold(f64::INFINITY, f64::min);
        let last = spans.iter().map(|span| span.start + span.length).fold(f64::NEG_INFINITY, f64::max);
        let curve = |((pid, name), mut points): ((u64, String), Vec<(f64, f64)>)| {
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            let of = names.get(&(pid, None)).map_or("", String::as_str);
            MemoryCurve { name: format!("{of}: {name}"), points }
        };
        let memory = memory.into_iter().map(curve).filter(|curve| curve.peak() > 0.0).collect();
        (!spans.is_empty()).then_some(Timeline { names, spans, all, memory, ends: [first, last] })
    }

    /// Milliseconds from the first to the last moment.
    pub(super) fn length(&self) -> f64 {
        (self.ends[1] - self.ends[0]) / 1e3
    }

    fn name(&self, row: (u64, Option<u64>)) -> &str {
        self.names.get(&row).map_or("", String::as_str)
    }

    /// Pixels from the left at a time.
    fn x(&self, time: f64) -> f64 {
        let [first, last] = self.ends;
        NAMES + ((time - first) * WIDTH / (last - first).max(1e-3)).clamp(0.0, WIDTH)
    }
}

impl MemoryCurve {
    fn peak(&self) -> f64 {
        self.points.iter().map(|(_, bytes)| *bytes).fold(0.0, f64::max)
    }

    /// Points that show every peak: the largest of each of as many parts as may be drawn.
    fn drawn(&self) -> Vec<(f64, f64)> {
        let largest = |part: &[(f64, f64)]| part.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
        self.points.chunks(self.points.len().div_ceil(MOST)).filter_map(largest).collect()
    }
}

impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows: Vec<(u64, u64)> = self.spans.iter().map(|span| span.row).collect();
        rows.sort_unstable();
        rows.dedup();
        // Predictions follow what they predict.
        let rank = |row: &(u64, u64)| (self.name((row.0, None)).trim_end_matches(", predicted").to_owned(), *row);
        rows.sort_by_key(|row| (row.0 % 1_000_000, rank(row)));
        write!(f, "<h2>Timeline</h2>\n<p>{:.3} ms; hover over a step for its name and time.", self.length())?;
        if self.all > MOST {
            write!(f, " The longest {MOST} of {} steps.", self.all)?;
        }
        let (width, steps) = (NAMES + WIDTH, ROW * rows.len() as f64);
        let height = steps + CURVE * self.memory.len() as f64 + ROW;
        writeln!(
            f,
            "</p>\n<div class=wide><svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\">"
        )?;
        let mut process = None;
        for (i, row) in rows.iter().enumerate() {
            let y = ROW * i as f64;
            let (of, queue) = (self.name((row.0, None)), self.name((row.0, Some(row.1))));
            let told = format!("{of}: {queue}");
            writeln!(f, "<text x=\"0\" y=\"{}\">{}</text>", y + ROW - 5.0, Escaped(&told))?;
            if process.replace(row.0).is_some_and(|before| before != row.0) {
                writeln!(f, "<line x1=\"0\" x2=\"{width}\" y1=\"{y}\" y2=\"{y}\" stroke=\"#bbb\"/>")?;
            }
            for span in self.spans.iter().filter(|span| span.row == *row) {
                let predicted = of.ends_with("predicted");
                let class = if predicted { "predicted" } else { &span.class };
                let (x, end) = (self.x(span.start), self.x(span.start + span.length));
                writeln!(
                    f,
                    "<rect class=\"{}\" x=\"{x:.2}\" y=\"{:.0}\" width=\"{:.2}\" height=\"{:.0}\"><title>{}: {:.3} ms{}</title></rect>",
                    Escaped(class),
                    y + 2.0,
                    (end - x).max(0.5),
                    ROW - 4.0,
                    Escaped(&span.name),
                    span.length / 1e3,
                    if predicted { format!(", bound by {}", Escaped(&span.class)) } else { String::new() }
                )?;
            }
        }
        for (i, curve) in self.memory.iter().enumerate() {
            let (top, base) = (steps + CURVE * i as f64, steps + CURVE * (i + 1) as f64 - 4.0);
            writeln!(f, "<line x1=\"0\" x2=\"{width}\" y1=\"{top}\" y2=\"{top}\" stroke=\"#bbb\"/>")?;
            writeln!(f, "<text x=\"0\" y=\"{}\">{}</text>", top + ROW - 5.0, Escaped(&curve.name))?;
            let peak = curve.peak();
            writeln!(f, "<text x=\"0\" y=\"{}\">peak {:.1} MB</text>", top + 2.0 * ROW - 5.0, peak / 1e6)?;
            let mut path = format!("M{:.2} {base:.1}", self.x(curve.points[0].0));
            for (time, bytes) in curve.drawn() {
                let _ = write!(path, "H{:.2}V{:.2}", self.x(time), base - (CURVE - 10.0) * bytes / peak);
            }
            writeln!(f, "<path class=\"used\" d=\"{path}H{:.2}V{base:.1}z\"/>", NAMES + WIDTH)?;
        }
        f.write_str("</svg></div>\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeline_has_a_row_for_each_queue_in_use_and_a_curve_for_each_memory() {
        let trace = r#"{"traceEvents":[
            {"name":"process_name","ph":"M","pid":0,"tid":0,"args":{"name":"rank 0"}},
            {"name":"process_name","ph":"M","pid":1,"tid":0,"args":{"name":"rank 1"}},
            {"name":"thread_name","ph":"M","pid":0,"tid":2,"args":{"name":"compute"}},
            {"name":"thread_name","ph":"M","pid":1,"tid":2,"args":{"name":"compute"}},
            {"name":"process_name","ph":"M","pid":1000000,"tid":0,"args":{"name":"rank 0, predicted"}},
            {"name":"thread_name","ph":"M","pid":1000000,"tid":2,"args":{"name":"compute"}},
            {"name":"launch <a>","cat":"kernel","ph":"X","ts":1000.0,"dur":3000.0,"pid":0,"tid":2},
            {"name":"launch <a>","cat":"kernel","ph":"X","ts":1000.0,"dur":3000.0,"pid":1,"tid":2},
            {"name":"launch <a>","cat":"memory","ph":"X","ts":1000.0,"dur":1000.0,"pid":1000000,"tid":2},
            {"name":"host memory","ph":"C","ts":1000.0,"pid":0,"tid":0,"args":{"bytes":1000000}},
            {"name":"host memory","ph":"C","ts":2500.0,"pid":0,"tid":0,"args":{"bytes":4000000}},
            {"name":"device memory","ph":"C","ts":2500.0,"pid":0,"tid":0,"args":{"bytes":0}}]}"#;
        let timeline = Timeline::of(trace).unwrap();
        let text = timeline.to_string();
        assert!(text.contains("<p>3.000 ms;"), "{text}");
        let place = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what} in {text}"));
        assert!(place(">rank 0: compute<") < place(">rank 0, predicted: compute<"));
        assert!(place(">rank 0, predicted: compute<") < place(">rank 1: compute<"));
        assert!(text.contains("<rect class=\"kernel\" x=\"230.00\" y=\"2\" width=\"1000.00\""), "{text}");
        assert!(
            text.contains("width=\"333.33\" height=\"14\"><title>launch &lt;a&gt;: 1.000 ms, bound by memory<"),
            "{text}"
        );
        // A quarter of the height until half of the time, then all of it; memory that nothing uses has no curve.
        assert!(text.contains("peak 4.0 MB") && !text.contains("device memory"), "{text}");
        assert!(text.contains("d=\"M230.00 96.0H230.00V87.00H730.00V60.00H1230.00V96.0z\""), "{text}");
        assert!(Timeline::of("{}").is_none());
    }

    #[test]
    fn curves_of_many_points_keep_their_peaks() {
        let points: Vec<(f64, f64)> = (0..3 * MOST).map(|i| (i as f64, if i == 7 { 9.0 } else { 1.0 })).collect();
        let drawn = MemoryCurve { name: String::new(), points }.drawn();
        assert_eq!((drawn.len(), drawn[2]), (MOST, (7.0, 9.0)));
    }
}
