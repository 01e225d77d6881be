//! The summary printed after a run.

use std::fmt;
use std::time::Duration;

use horus::prelude::*;

use crate::detectors::Params;

/// What happened, in a few lines.
pub(crate) struct Summary<'a> {
    pub(crate) name: &'a str,
    pub(crate) shape: Shape,
    pub(crate) params: &'a Params,
    pub(crate) device: String,
    pub(crate) ranks: usize,
    pub(crate) time: Duration,
    pub(crate) stats: Stats,
    pub(crate) output: String,
    pub(crate) scale: Option<Scale>,
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shape { height, width, .. } = self.shape;
        let (orientations, scales) = (self.params.orientations().count(), self.params.scales().count());
        writeln!(
            f,
            "{}: {width} x {height} pixels, {orientations} orientations, {scales} scales ({} along x {} across)",
            self.name,
            list(&self.params.sigma_u),
            list(&self.params.sigma_v)
        )?;
        let ranks = if self.ranks == 1 { "1 rank".to_owned() } else { format!("{} ranks", self.ranks) };
        writeln!(f, "ran on {}, {ranks}, in {:.3} s", self.device, self.time.as_secs_f64())?;
        let Stats { made, naive, .. } = &self.stats;
        writeln!(
            f,
            "made {} copies and {} exchanges; a naive run makes {} and {}",
            made.copies(),
            made.exchanges_between_ranks(),
            naive.copies(),
            naive.exchanges_between_ranks()
        )?;
        write!(f, "wrote {}", self.output)?;
        match self.scale {
            Some(scale) => write!(f, ", scaled {scale}"),
            None => write!(f, ", unscaled"),
        }
    }
}

fn list(values: &[f64]) -> String {
    values.iter().map(f64::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats() -> Stats {
        let mut stats = Stats::default();
        (stats.made.uploads, stats.made.downloads) = (1, 1);
        (stats.naive.uploads, stats.naive.downloads, stats.naive.gathers) = (1000, 500, 12);
        stats
    }

    #[test]
    fn a_summary_says_what_was_done_and_what_was_saved() {
        let summary = Summary {
            name: "convrot",
            shape: Shape::new(480, 640, 1),
            params: &Params::default(),
            device: "cpu".into(),
            ranks: 1,
            time: Duration::from_millis(1500),
            stats: stats(),
            output: "lines.png".into(),
            scale: Some(Scale { low: 0.0, high: 2.5, full: 255 }),
        };
        let lines: Vec<String> = summary.to_string().lines().map(str::to_owned).collect();
        assert_eq!(lines[0], "convrot: 640 x 480 pixels, 12 orientations, 9 scales (3,5,7 along x 1,2,3 across)");
        assert_eq!(lines[1], "ran on cpu, 1 rank, in 1.500 s");
        assert_eq!(lines[2], "made 2 copies and 0 exchanges; a naive run makes 1500 and 12");
        assert_eq!(lines[3], "wrote lines.png, scaled 0..2.5 -> 0..255");
    }
}
