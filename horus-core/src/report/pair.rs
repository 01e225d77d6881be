//! Two pages about runs side by side. Each page ends in a comment with the numbers that are compared.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::{HEAD, parts};
use crate::plan::BusyTimes;
use crate::plan::drawing::Escaped;
use crate::session::MemoryUse;

/// The beginning of the comment.
const MARK: &str = "<!-- horus run ";

/// The numbers of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RunRecord {
    title: String,
    /// Name, value and unit of each.
    numbers: Vec<(String, f64, String)>,
}

impl RunRecord {
    /// The numbers of a run whose timeline has this length in milliseconds.
    pub(super) fn of(
        title: &str,
        (predicted, measured): (&BusyTimes, &BusyTimes),
        memory: &MemoryUse,
        length: Option<f64>,
    ) -> RunRecord {
        let mut numbers = Vec::new();
        numbers.extend(length.map(|length| ("whole timeline".to_owned(), length, "ms".to_owned())));
        for (name, predicted, measured) in parts(predicted, measured) {
            numbers.push((format!("{name}, measured"), measured.as_secs_f64() * 1e3, "ms".into()));
            numbers.push((format!("{name}, predicted"), predicted.as_secs_f64() * 1e3, "ms".into()));
        }
        numbers.push(("peak of host memory".into(), memory.host.peak as f64 / 1e6, "MB".into()));
        for (i, device) in memory.devices.iter().enumerate() {
            numbers.push((format!("peak of the memory of device {i}"), device.peak as f64 / 1e6, "MB".into()));
        }
        RunRecord { title: title.into(), numbers }
    }

    /// The comment, in which no text ends it.
    pub(super) fn comment(&self) -> String {
        let text = serde_json::to_string(self).unwrap_or_default();
        format!("{MARK}{} -->\n", text.replace("--", "-\\u002d"))
    }

    /// The record of a page.
    fn in_page(page: &str) -> Option<RunRecord> {
        let (_, text) = page.rsplit_once(MARK)?;
        serde_json::from_str(text.split_once(" -->")?.0).ok()
    }
}

/// A page with both.
pub(super) fn page(first: &str, second: &str) -> Result<String, String> {
    let record = |page| RunRecord::in_page(page).ok_or("a report to compare is no page about a run of Horus");
    let records = [record(first)?, record(second)?];
    let mut page = format!(
        "{HEAD}<title>{0} | {1}</title>\n<h1>Two runs</h1>\n<table><tr><th><th>{0}<th>{1}<th>second / first\n",
        Escaped(&records[0].title),
        Escaped(&records[1].title)
    );
    let mut names: Vec<(&str, &str)> = Vec::new();
    for (name, _, unit) in records.iter().flat_map(|record| &record.numbers) {
        if !names.contains(&(name, unit)) {
            names.push((name, unit));
        }
    }
    for (name, unit) in names {
        let values = records.each_ref().map(|record| {
            let found = record.numbers.iter().find(|(of, _, in_unit)| of == name && in_unit == unit);
            found.map(|(_, value, _)| *value)
        });
        if values.iter().flatten().all(|value| *value == 0.0) {
            continue;
        }
        let [a, b] = values.map(|value| value.map(|value| format!("{value:.3}")).unwrap_or_default());
        let ratio = match values {
            [Some(a), Some(b)] if a > 0.0 => format!("{:.2}", b / a),
            _ => String::new(),
        };
        let _ = writeln!(
            page,
            "<tr><td>{}, {}<td class=n>{a}<td class=n>{b}<td class=n>{ratio}",
            Escaped(name),
            Escaped(unit)
        );
    }
    page += "</table>\n<div style=\"display:flex;gap:1em;margin-top:1em\">\n";
    for (one, RunRecord { title, .. }) in [first, second].iter().zip(&records) {
        let quoted = one.replace('&', "&amp;").replace('"', "&quot;");
        let _ = writeln!(
            page,
            "<iframe title=\"{}\" style=\"flex:1;min-width:0;height:92vh;border:1px solid #ddd\" srcdoc=\"{quoted}\"></iframe>",
            Escaped(title)
        );
    }
    page += "</div>\n";
    page += &records[1].comment();
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn two_pages_are_compared_and_kept_whole() {
        let made = |title: &str, kernels: u64, peak: usize| {
            let busy = BusyTimes { kernels: Duration::from_millis(kernels), ..BusyTimes::default() };
            let mut memory = MemoryUse::default();
            memory.host.peak = peak;
            let record = RunRecord::of(title, (&BusyTimes::default(), &busy), &memory, Some(10.0));
            format!("{HEAD}<p class=\"a\">{title} &amp;</p>\n{}", record.comment())
        };
        let (first, second) = (made("horus --> <a>", 4, 2_000_000), made("horus \"b\" --report x", 6, 0));
        let both = page(&first, &second).unwrap();
        assert!(
            both.contains("<tr><td>kernels, measured, ms<td class=n>4.000<td class=n>6.000<td class=n>1.50"),
            "{both}"
        );
        assert!(
            both.contains("<td>peak of host memory, MB<td class=n>2.000<td class=n>0.000<td class=n>0.00"),
            "{both}"
        );
        assert!(!both.contains("<td>upload") && both.contains("horus --&gt; &lt;a&gt;"), "{both}");
        // A browser decodes the attributes to both pages.
        let inner: Vec<String> = both
            .split("srcdoc=\"")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap().replace("&quot;", "\"").replace("&amp;", "&"))
            .collect();
        assert_eq!(inner, [first.clone(), second.clone()]);
        // The result stands for its second run.
        let again = page(&first, &both).unwrap();
        assert!(again.contains("<td class=n>4.000<td class=n>6.000"), "{again}");
        assert!(page("<html>", &second).unwrap_err().contains("no page about a run"));
        assert!(page(&first, &first[..first.len() / 2]).is_err());
    }
}
