//! An HTML page about a session: its programs and what they became, steps named by the calls of the program, predicted
//! and measured times, memory over time, and transfers with their reasons. Two pages are shown side by side.

mod pair;
mod timeline;

use std::fmt::Write;
use std::time::Duration;

use self::pair::RunRecord;
use self::timeline::Timeline;
use crate::error::{Error, Result};
use crate::execute::trace::ShownPlan;
use crate::plan::drawing::{Escaped, stack};
use crate::plan::{BusyTimes, NamedStep};
use crate::session::{MemoryInUse, Session};

impl Session {
    /// Returns a self-contained HTML page on rank 0, and `None` on other ranks. It draws each of the first 64 plans:
    /// the program as recorded, beside the launches and transfers that it became. It names steps by the calls of the
    /// program, and shows the predicted and measured time of each part of the machine, a timeline, the memory over
    /// time, and the transfers of each plan with their reasons. `plans` are the texts that
    /// [`SessionBuilder::explain`](crate::session::SessionBuilder::explain) passed to its callback.
    /// [`with_images`] adds pictures, and [`beside`] shows two pages. Requires [`SessionBuilder::trace`](crate::session::SessionBuilder::trace). Collective.
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
    /// assert!(page.contains(&format!("gauss, {}:{}", file!().rsplit('/').next().unwrap(), line!() - 3)));
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Session::trace_json`].
    pub fn report(&self, title: &str, plans: &[String]) -> Result<Option<String>> {
        let measured = self.measured()?;
        let Some(trace) = self.trace_json()? else { return Ok(None) };
        let shown = self.lock("writing a report")?.trace.shown_plans().to_vec();
        let (stats, memory, timeline) = (self.stats(), self.memory(), Timeline::of(&trace));
        let record = RunRecord::of(title, (&stats.parts, &measured), &memory, timeline.as_ref().map(Timeline::length));
        let mut page = String::new();
        let _ = write!(page, "{HEAD}<title>{0}</title>\n<h1>{0}</h1>\n", Escaped(title));
        let ranks = if self.ranks() == 1 { String::new() } else { format!(", {} ranks", self.ranks()) };
        let _ = writeln!(
            page,
            "<p>On {}{ranks}: {} evaluations, {} of them with a new plan.</p>",
            Escaped(&self.device_name()),
            stats.evaluations,
            stats.planned
        );
        page += IMAGES;
        page += &times(&stats.parts, &measured);
        page += &timeline.map_or_else(
            || "<h2>Timeline</h2>\n<p>No step was recorded.</p>\n".into(),
            |timeline| timeline.to_string(),
        );
        page += "<h2>Memory</h2>\n<table><tr><th><th>now, MB<th>peak, MB<th>kept for later images, MB\n";
        page += &in_use("host", &memory.host);
        for (i, device) in memory.devices.iter().enumerate() {
            page += &in_use(&format!("device {i}"), device);
        }
        page += "</table>\n";
        page += &programs(&shown, stats.planned);
        page += &moves(&shown);
        page += "<h2>Plans</h2>\n";
        for plan in plans {
            let name = plan.split(':').next().unwrap_or_default();
            let open = if name == "profile" { " open" } else { "" };
            let text = Escaped(name);
            let _ =
                writeln!(page, "<details{open}><summary>{text}</summary><pre>{}</pre></details>", EscapedLines(plan));
        }
        page += &record.comment();
        Ok(Some(page))
    }

    /// The drawings of [`Session::report`] as one SVG file; `None` before the first plan. Requires
    /// [`SessionBuilder::trace`](crate::session::SessionBuilder::trace), and is `None` on ranks other than 0.
    ///
    /// # Errors
    /// [`Error::Reentry`] during an evaluation on this thread.
    pub fn drawing(&self) -> Result<Option<String>> {
        let state = self.lock("drawing plans")?;
        let drawings: Vec<String> = state.trace.shown_plans().iter().map(|plan| plan.drawing.clone()).collect();
        Ok((!drawings.is_empty()).then(|| stack(&drawings)))
    }
}

/// The place of pictures in a page.
const IMAGES: &str = "<!-- horus images -->\n";

/// Adds pictures to a page of [`Session::report`]: names, and the bytes of PNG files. They are made after the page,
/// which shows no evaluations of theirs.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, io::Format, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).trace(true).build()?;
/// let edges = samples::worms(&session, 64, 64).sobel(Axis::Columns).abs().clamp(0.0, 1.0);
/// let page = session.report("worms", &[])?.expect("the only rank");
/// let png = edges.encode(Format::Png, &SaveOptions::default())?;
/// let page = horus::report::with_images(&page, &[("edges".into(), png)])?;
/// assert!(page.contains("data:image/png;base64,iVBORw0KGgo"));
/// # Ok::<(), horus_core::error::Error>(())
/// ```
///
/// # Errors
/// [`Error::Config`] if it is no such page.
pub fn with_images(page: &str, images: &[(String, Vec<u8>)]) -> Result<String> {
    let none = || Error::Config("pictures can be added only to a page about a run of Horus".into());
    let (before, after) = page.split_once(IMAGES).ok_or_else(none)?;
    Ok(format!("{before}{}{IMAGES}{after}", thumbnails(images)))
}

/// A page with two pages of [`Session::report`] side by side, below a table of the times and memory of both. It can
/// take the place of `second` in another comparison.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).trace(true).build()?;
/// let first = session.report("before", &[])?.expect("the only rank");
/// let second = session.report("after", &[])?.expect("the only rank");
/// assert!(horus::report::beside(&first, &second)?.contains("<th>before<th>after"));
/// # Ok::<(), horus_core::error::Error>(())
/// ```
///
/// # Errors
/// [`Error::Config`] if one of them is no such page.
pub fn beside(first: &str, second: &str) -> Result<String> {
    pair::page(first, second).map_err(Error::Config)
}

const HEAD: &str = "\
<!DOCTYPE html>
<html lang=\"en\">
<meta charset=\"utf-8\">
<style>
body { font: 14px sans-serif; margin: 2em; color: #222; background: #fff; }
table { border-collapse: collapse; }
th, td { text-align: left; vertical-align: top; padding: .15em .8em; border-bottom: 1px solid #ddd; }
td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.w { white-space: nowrap; }
pre { font: 12px monospace; overflow-x: auto; }
summary { cursor: pointer; }
.wide { overflow-x: auto; }
.images { display: flex; flex-wrap: wrap; gap: 1em; }
figure { margin: 0; }
svg text { font: 11px sans-serif; }
.kernel { fill: #4878a8; } .copy { fill: #e0913a; } .communication { fill: #5a9e5a; } .memory { fill: #aaa; }
.planning, .start { fill: #9a6fb0; } .predicted { fill: #86a9cc; }
.used { fill: #c9d8e8; stroke: #4878a8; }
</style>
";

/// Text of several lines, escaped for HTML.
struct EscapedLines<'a>(&'a str);

impl std::fmt::Display for EscapedLines<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.split_inclusive('\n').try_for_each(|line| match line.strip_suffix('\n') {
            Some(line) => writeln!(f, "{}", Escaped(line)),
            None => Escaped(line).fmt(f),
        })
    }
}

/// Pictures, side by side.
fn thumbnails(images: &[(String, Vec<u8>)]) -> String {
    let mut text = String::new();
    for (name, png) in images {
        let (name, data) = (Escaped(name), base64(png));
        let _ = writeln!(
            text,
            "<figure><img alt=\"{name}\" src=\"data:image/png;base64,{data}\"><figcaption>{name}</figcaption></figure>"
        );
    }
    if text.is_empty() { text } else { format!("<h2>Images</h2>\n<div class=images>\n{text}</div>\n") }
}

/// Bytes in the 64 characters of data in HTML.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = [0, 1, 2].iter().fold(0_u32, |bits, i| bits << 8 | u32::from(group.get(*i).copied().unwrap_or(0)));
        for digit in 0..4 {
            let is_there = digit <= group.len();
            text.push(if is_there { DIGITS[(bits >> (18 - 6 * digit) & 63) as usize] as char } else { '=' });
        }
    }
    text
}

/// The parts of the machine, with their predicted and measured times.
fn parts(predicted: &BusyTimes, measured: &BusyTimes) -> [(&'static str, Duration, Duration); 4] {
    [
        ("upload", predicted.upload, measured.upload),
        ("kernels", predicted.kernels, measured.kernels),
        ("download", predicted.download, measured.download),
        ("between ranks", predicted.communication, measured.communication),
    ]
}

fn times(predicted: &BusyTimes, measured: &BusyTimes) -> String {
    let ms = |time: Duration| format!("{:.3}", time.as_secs_f64() * 1e3);
    let mut text = "<h2>Times of rank 0</h2>\n<table><tr><th><th>predicted, ms<th>measured, ms\n".to_owned();
    for (name, predicted, measured) in parts(predicted, measured) {
        let _ = writeln!(text, "<tr><td>{name}<td class=n>{}<td class=n>{}", ms(predicted), ms(measured));
    }
    text + "</table>\n"
}

fn in_use(name: &str, memory: &MemoryInUse) -> String {
    let mb = |bytes: usize| format!("{:.1}", bytes as f64 / 1e6);
    let [now, peak, kept] = [memory.current, memory.peak, memory.kept].map(mb);
    format!("<tr><td>{name}<td class=n>{now}<td class=n>{peak}<td class=n>{kept}\n")
}

/// The drawing and the steps of each plan.
fn programs(plans: &[ShownPlan], planned: usize) -> String {
    let mut text = "<h2>Programs</h2>\n<p>The program as recorded, and what it became. Boxes have the colour of the \
                    launch that computes them. Transfers have their bytes and their reasons.</p>\n"
        .to_owned();
    if planned > plans.len() {
        let _ = writeln!(text, "<p>The first {} of {planned} plans.</p>", plans.len());
    }
    for (i, ShownPlan { steps, drawing }) in plans.iter().enumerate() {
        let launches = steps.iter().filter(|step| step.action.starts_with("launch")).count();
        let moves = steps.iter().filter(|step| step.is_transfer).count();
        let open = if i == 0 { " open" } else { "" };
        let _ = writeln!(
            text,
            "<details{open}><summary>Plan {i}: {launches} launches, {moves} transfers</summary>\n<div class=wide>\n\
             {drawing}</div>\n<details><summary>Steps of plan {i}</summary>\n<table><tr><th>step<th><th>calls<th>image\
             <th>size<th>reason\n{}</table></details></details>",
            steps.iter().map(|step| row(None, step)).collect::<String>()
        );
    }
    text
}

/// The transfers of all plans, with their reasons.
fn moves(plans: &[ShownPlan]) -> String {
    let steps = plans.iter().enumerate().flat_map(|(i, plan)| plan.steps.iter().map(move |step| (i, step)));
    let rows: String = steps.filter(|(_, step)| step.is_transfer).map(|(i, step)| row(Some(i), step)).collect();
    if rows.is_empty() {
        return "<h2>Transfers</h2>\n<p>None.</p>\n".into();
    }
    let head = "<tr><th>plan<th>step<th><th>image of<th>shape<th>size<th>reason\n";
    format!("<h2>Transfers and their reasons</h2>\n<table>{head}{rows}</table>\n")
}

/// A row of a table of steps.
fn row(plan: Option<usize>, step: &NamedStep) -> String {
    let NamedStep { step, action, calls, image, size, why, .. } = step;
    let plan = plan.map(|plan| format!("<td class=n>{plan}")).unwrap_or_default();
    let calls: Vec<String> = calls.iter().map(|call| Escaped(call).to_string()).collect();
    format!(
        "<tr>{plan}<td class=n>{step}<td class=w>{action}<td>{}<td class=w>{image}<td class=n>{size}<td>{}\n",
        calls.join("<br>"),
        Escaped(why)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_part_of_the_page() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("\u{3ff}\u{3ff}", "z7/Pvw==")]
        {
            assert_eq!(base64(bytes.as_bytes()), text, "as RFC 4648");
        }
        let text = thumbnails(&[("a < b".into(), b"foo".to_vec())]);
        assert!(text.contains("src=\"data:image/png;base64,Zm9v\"><figcaption>a &lt; b<"), "{text}");
        assert_eq!(thumbnails(&[]), "");
        assert!(with_images("<html>", &[]).is_err());
    }

    #[test]
    fn transfers_have_their_calls_sizes_and_reasons() {
        let step = |step, action: &str, why: &str, is_transfer| NamedStep {
            step,
            action: action.into(),
            calls: vec!["neg, a<b>.rs:3".into(), "2x mul, a.rs:4".into()],
            image: "4x4 f32".into(),
            size: "64 bytes".into(),
            why: why.into(),
            is_transfer,
        };
        let steps = vec![step(0, "upload", "a < b", true), step(1, "launch", "", false)];
        let plans = [ShownPlan { steps, drawing: "<svg/>".into() }];
        let text = moves(&plans);
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("<tr><td")).collect();
        assert_eq!(
            rows,
            [
                "<tr><td class=n>0<td class=n>0<td class=w>upload<td>neg, a&lt;b&gt;.rs:3<br>2x mul, a.rs:4<td class=w>4x4 \
                 f32<td class=n>64 bytes<td>a &lt; b"
            ]
        );
        assert!(moves(&[]).contains("None"));
        let text = programs(&plans, 3);
        assert!(text.contains("The first 1 of 3 plans") && text.contains("Plan 0: 1 launches, 1 transfers"), "{text}");
        assert!(text.contains("<td class=w>launch<td>neg"), "{text}");
    }
}
