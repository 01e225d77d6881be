//! An HTML report of a session: plans, predicted and measured times, memory, and transfers with
//! their reasons.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::time::Duration;

use serde_json::Value;

use crate::error::Result;
use crate::plan::BusyTimes;
use crate::session::{MemoryInUse, Session};

/// Maximum number of spans that are drawn, the longest first.
const MOST: usize = 4000;
/// Width of the timeline without the row names, in pixels.
const WIDTH: f64 = 1000.0;
/// Width of the row names.
const NAMES: f64 = 190.0;
/// Height of a row.
const ROW: f64 = 18.0;

/// Plan steps that transfer pixels, as named by `--explain`.
const MOVES: [&str; 14] = [
    "upload",
    "map",
    "unmap",
    "download",
    "scatter",
    "replicate",
    "exchange",
    "begin",
    "fetch",
    "evict",
    "sum",
    "gather",
    "send",
    "deliver",
];

impl Session {
    /// Returns a self-contained HTML page on rank 0, and `None` on other ranks. It shows the
    /// predicted and measured time of each part of the machine, a timeline, the memory, and the
    /// transfers of each plan with their reasons. `plans` are the texts that
    /// [`SessionBuilder::explain`](crate::session::SessionBuilder::explain) passed to its callback.
    /// Requires [`SessionBuilder::trace`](crate::session::SessionBuilder::trace). Collective.
    ///
    /// ```
    /// # use std::sync::{Arc, Mutex};
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// let plans = Arc::new(Mutex::new(Vec::new()));
    /// let told = Arc::clone(&plans);
    /// let builder = Session::on(Box::new(CpuDevice::new(None)?)).trace(true);
    /// let session = builder.explain(move |text| told.lock().unwrap().push(text.to_owned())).build()?;
    /// samples::worms(&session, 64, 64).gauss(1.0).to_vec()?;
    /// let page = session.report("worms", &plans.lock().unwrap())?.expect("the only rank");
    /// assert!(page.starts_with("<!DOCTYPE html>") && page.contains("row 1x7 + correlate 7x1"));
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Session::trace_json`].
    pub fn report(&self, title: &str, plans: &[String]) -> Result<Option<String>> {
        let measured = self.measured()?;
        let Some(trace) = self.trace_json()? else { return Ok(None) };
        let stats = self.stats();
        let mut page = String::new();
        let _ = write!(page, "{HEAD}<title>{0}</title>\n<h1>{0}</h1>\n", Text(title));
        let ranks = if self.ranks() == 1 { String::new() } else { format!(", {} ranks", self.ranks()) };
        let _ = writeln!(
            page,
            "<p>On {}{ranks}: {} evaluations, {} of them with a new plan.</p>",
            Text(&self.device_name()),
            stats.evaluations,
            stats.planned
        );
        page += &times(&stats.parts, &measured);
        page += &timeline(&trace);
        let memory = self.memory();
        page += "<h2>Memory</h2>\n<table><tr><th><th>now, MB<th>peak, MB<th>kept for later images, MB\n";
        page += &in_use("host", &memory.host);
        for (i, device) in memory.devices.iter().enumerate() {
            page += &in_use(&format!("device {i}"), device);
        }
        page += "</table>\n";
        page += &moves(plans);
        page += "<h2>Plans</h2>\n";
        for plan in plans {
            let name = plan.split(':').next().unwrap_or_default();
            let open = if matches!(name, "plan" | "profile") { " open" } else { "" };
            let _ =
                writeln!(page, "<details{open}><summary>{}</summary><pre>{}</pre></details>", Text(name), Text(plan));
        }
        Ok(Some(page))
    }
}

const HEAD: &str = "\
<!DOCTYPE html>
<html lang=\"en\">
<meta charset=\"utf-8\">
<style>
body { font: 14px sans-serif; margin: 2em; color: #222; }
table { border-collapse: collapse; }
th, td { text-align: left; padding: .15em .8em; border-bottom: 1px solid #ddd; }
td.n { text-align: right; font-variant-numeric: tabular-nums; }
pre { font: 12px monospace; overflow-x: auto; }
svg text { font: 11px sans-serif; }
.kernel { fill: #4878a8; } .copy { fill: #e0913a; } .communication { fill: #5a9e5a; } .memory { fill: #aaa; }
.planning, .start { fill: #9a6fb0; } .predicted { fill: #86a9cc; }
</style>
";

/// Text escaped for HTML.
struct Text<'a>(&'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '&' => f.write_str("&amp;"),
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '"' => f.write_str("&quot;"),
            c => f.write_char(c),
        })
    }
}

fn times(predicted: &BusyTimes, measured: &BusyTimes) -> String {
    let rows = [
        ("upload", predicted.upload, measured.upload),
        ("kernels", predicted.kernels, measured.kernels),
        ("download", predicted.download, measured.download),
        ("between ranks", predicted.communication, measured.communication),
    ];
    let ms = |time: Duration| format!("{:.3}", time.as_secs_f64() * 1e3);
    let mut text = "<h2>Times of rank 0</h2>\n<table><tr><th><th>predicted, ms<th>measured, ms\n".to_owned();
    for (name, predicted, measured) in rows {
        let _ = writeln!(text, "<tr><td>{name}<td class=n>{}<td class=n>{}", ms(predicted), ms(measured));
    }
    text + "</table>\n"
}

fn in_use(name: &str, memory: &MemoryInUse) -> String {
    let mb = |bytes: usize| format!("{:.1}", bytes as f64 / 1e6);
    let [now, peak, kept] = [memory.current, memory.peak, memory.kept].map(mb);
    format!("<tr><td>{name}<td class=n>{now}<td class=n>{peak}<td class=n>{kept}\n")
}

/// The transfers in `plans`, with their reasons.
fn moves(plans: &[String]) -> String {
    let mut text =
        "<h2>Transfers and their reasons</h2>\n<table><tr><th>plan<th>step<th><th>image<th>size<th>reason\n".to_owned();
    let before = text.len();
    for (i, plan) in plans.iter().filter(|plan| plan.starts_with("plan:")).enumerate() {
        for line in plan.lines() {
            let line = line.trim_start();
            let Some((step, rest)) = line.split_once(' ').filter(|(step, _)| step.parse::<usize>().is_ok()) else {
                continue;
            };
            let (rest, why) = rest.split_once("    [").unwrap_or((rest, ""));
            let Some((word, image)) = rest.trim_start().split_once(' ').filter(|(word, _)| MOVES.contains(word)) else {
                continue;
            };
            let sized = |(_, size): &(&str, &str)| size.ends_with(" MB") || size.ends_with(" bytes");
            let (image, size) = image.rsplit_once(", ").filter(sized).unwrap_or((image, ""));
            let why = why.strip_suffix(']').unwrap_or(why);
            let _ = writeln!(
                text,
                "<tr><td class=n>{i}<td class=n>{step}<td>{word}<td>{}<td class=n>{}<td>{}",
                Text(image.trim()),
                Text(size),
                Text(why)
            );
        }
    }
    if text.len() == before { "<h2>Transfers</h2>\n<p>None.</p>\n".into() } else { text + "</table>\n" }
}

/// A span of a trace.
struct TimelineSpan<'a> {
    name: &'a str,
    class: &'a str,
    start: f64,
    length: f64,
    row: (u64, u64),
}

/// Draws the spans of a trace, one row per queue of each rank, above the predicted spans.
fn timeline(trace: &str) -> String {
    let parsed: Value = serde_json::from_str(trace).unwrap_or_default();
    let events = parsed["traceEvents"].as_array().map_or(&[][..], Vec::as_slice);
    let mut names: BTreeMap<(u64, Option<u64>), &str> = BTreeMap::new();
    let mut spans = Vec::new();
    for event in events {
        let (pid, tid) = (event["pid"].as_u64().unwrap_or(0), event["tid"].as_u64().unwrap_or(0));
        let named = event["args"]["name"].as_str().unwrap_or_default();
        match event["name"].as_str() {
            Some("process_name") => {
                names.insert((pid, None), named);
            }
            Some("thread_name") => {
                names.insert((pid, Some(tid)), named);
            }
            Some(name) if event["ph"] == "X" => spans.push(TimelineSpan {
                name,
                class: event["cat"].as_str().unwrap_or_default(),
                start: event["ts"].as_f64().unwrap_or(0.0),
                length: event["dur"].as_f64().unwrap_or(0.0),
                row: (pid, tid),
            }),
            _ => {}
        }
    }
    if spans.is_empty() {
        return "<h2>Timeline</h2>\n<p>No step was recorded.</p>\n".into();
    }
    let all = spans.len();
    spans.sort_by(|a, b| b.length.total_cmp(&a.length));
    spans.truncate(MOST);
    let first = spans.iter().map(|span| span.start).fold(f64::INFINITY, f64::min);
    let last = spans.iter().map(|span| span.start + span.length).fold(f64::NEG_INFINITY, f64::max);
    let scale = WIDTH / (last - first).max(1e-3);
    let mut rows: Vec<(u64, u64)> = spans.iter().map(|span| span.row).collect();
    rows.sort_unstable();
    rows.dedup();
    let mut text =
        format!("<h2>Timeline</h2>\n<p>{:.3} ms; hover over a step for its name and time.", (last - first) / 1e3);
    if all > MOST {
        let _ = write!(text, " The longest {MOST} of {all} steps.");
    }
    let (width, height) = (NAMES + WIDTH, ROW * (rows.len() + 1) as f64);
    let _ = writeln!(text, "</p>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\">");
    let mut process = None;
    for (i, row) in rows.iter().enumerate() {
        let y = ROW * i as f64;
        let name = |key| names.get(&key).copied().unwrap_or_default();
        let told = format!("{}: {}", name((row.0, None)), name((row.0, Some(row.1))));
        let _ = writeln!(text, "<text x=\"0\" y=\"{}\">{}</text>", y + ROW - 5.0, Text(&told));
        if process.replace(row.0).is_some_and(|before| before != row.0) {
            let _ = writeln!(text, "<line x1=\"0\" x2=\"{width}\" y1=\"{y}\" y2=\"{y}\" stroke=\"#bbb\"/>");
        }
        for span in spans.iter().filter(|span| span.row == *row) {
            let x = NAMES + (span.start - first) * scale;
            let predicted = name((row.0, None)).ends_with("predicted");
            let class = if predicted { "predicted" } else { span.class };
            let _ = writeln!(
                text,
                "<rect class=\"{}\" x=\"{x:.2}\" y=\"{:.0}\" width=\"{:.2}\" height=\"{:.0}\"><title>{}: {:.3} ms{}</title></rect>",
                Text(class),
                y + 2.0,
                (span.length * scale).max(0.5),
                ROW - 4.0,
                Text(span.name),
                span.length / 1e3,
                if predicted { format!(", bound by {}", Text(span.class)) } else { String::new() }
            );
        }
    }
    text + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_have_their_sizes_and_reasons() {
        let plan = "plan:\n   0  upload     %0 4x4 f32, 64 bytes    [launches read it]\n   1  launch     %1 4x4 f32 = neg (%0), 64 bytes\n  \
                    2  gather     rows 0..2 of %1 4x4 f32, 3.2 MB    [a < b]\n      1 launches, 1 uploads\n";
        let text = moves(&[plan.to_owned(), "predicted:\nstep\n".to_owned()]);
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("<tr><td")).collect();
        assert_eq!(
            rows,
            [
                "<tr><td class=n>0<td class=n>0<td>upload<td>%0 4x4 f32<td class=n>64 bytes<td>launches read it",
                "<tr><td class=n>0<td class=n>2<td>gather<td>rows 0..2 of %1 4x4 f32<td class=n>3.2 MB<td>a &lt; b",
            ]
        );
        assert!(moves(&[]).contains("None"));
    }

    #[test]
    fn a_timeline_has_a_row_for_each_queue_in_use() {
        let trace = r#"{"traceEvents":[
            {"name":"process_name","ph":"M","pid":0,"tid":0,"args":{"name":"rank 0"}},
            {"name":"thread_name","ph":"M","pid":0,"tid":2,"args":{"name":"compute"}},
            {"name":"process_name","ph":"M","pid":1000000,"tid":0,"args":{"name":"rank 0, predicted"}},
            {"name":"thread_name","ph":"M","pid":1000000,"tid":2,"args":{"name":"compute"}},
            {"name":"launch <a>","cat":"kernel","ph":"X","ts":1000.0,"dur":3000.0,"pid":0,"tid":2},
            {"name":"launch <a>","cat":"memory","ph":"X","ts":1000.0,"dur":1000.0,"pid":1000000,"tid":2}]}"#;
        let text = timeline(trace);
        assert!(
            text.contains("<p>3.000 ms;")
                && text.contains(">rank 0: compute<")
                && text.contains(">rank 0, predicted: compute<")
        );
        assert!(text.contains("<rect class=\"kernel\" x=\"190.00\" y=\"2\" width=\"1000.00\""), "{text}");
        assert!(
            text.contains("width=\"333.33\" height=\"14\"><title>launch &lt;a&gt;: 1.000 ms, bound by memory<"),
            "{text}"
        );
        assert!(timeline("{}").contains("No step"));
    }
}
