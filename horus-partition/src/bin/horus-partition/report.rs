//! The printed report.

use std::fmt;

use horus_partition::{Blocks, LevelVolume, Levels, Mask, Scheme};
use serde_json::{Value, json};

/// All partitions of a mask.
pub(crate) struct Report<'a> {
    pub(crate) mask: &'a Mask,
    pub(crate) blocks: &'a Blocks,
    pub(crate) levels: &'a Levels,
    pub(crate) found: &'a [(Scheme, Vec<LevelVolume>)],
}

impl Report<'_> {
    /// Reduction of the volume at the highest level by the hierarchical partition, relative to
    /// another, in percent; `None` if there is no volume to reduce.
    fn saved(&self, against: Scheme) -> Option<f64> {
        let volume = |scheme| self.found.iter().find(|(s, _)| *s == scheme).map(|(_, levels)| levels[0].volume as f64);
        let (ours, theirs) = (volume(Scheme::Hierarchical)?, volume(against)?);
        (theirs > 0.0).then(|| 100.0 * (1.0 - ours / theirs))
    }

    /// The report as JSON. Volumes are points received per step.
    pub(crate) fn json(&self) -> Value {
        let partition = |(scheme, levels): &(Scheme, Vec<LevelVolume>)| {
            let levels: Vec<Value> = levels
                .iter()
                .enumerate()
                .map(|(level, of)| {
                    json!({
                        "level": self.levels.name(level), "parts": of.parts, "volume": of.volume, "mean": of.mean(),
                        "least": of.least, "most": of.most, "blocks": [of.fewest_blocks, of.most_blocks],
                    })
                })
                .collect();
            json!({ "name": scheme.name(), "levels": levels })
        };
        let (wide, high) = self.blocks.block();
        json!({
            "points": [self.mask.width(), self.mask.height()],
            "sea": self.mask.sea(),
            "block": [wide, high],
            "grid": [self.blocks.columns(), self.blocks.rows()],
            "blocks": self.blocks.len(),
            "left_out": self.blocks.in_all() - self.blocks.len(),
            "halo": self.blocks.halo(),
            "periodic": self.blocks.seams().periodic,
            "tripole": self.blocks.seams().tripole,
            "levels": self.levels.counts(),
            "partitions": self.found.iter().map(partition).collect::<Vec<Value>>(),
        })
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mask, blocks) = (self.mask, self.blocks);
        let points = mask.width() * mask.height();
        let (wide, high) = blocks.block();
        let seams = match (blocks.seams().periodic, blocks.seams().tripole) {
            (false, false) => "",
            (true, false) => ", periodic",
            (false, true) => ", tripole",
            (true, true) => ", periodic, tripole",
        };
        writeln!(
            f,
            "{} x {} points, {:.1} % sea; {} x {} blocks of {wide} x {high}, {} of {} left out (land); halo {}{seams}",
            mask.width(),
            mask.height(),
            100.0 * mask.sea() as f64 / points as f64,
            blocks.columns(),
            blocks.rows(),
            blocks.in_all() - blocks.len(),
            blocks.in_all(),
            blocks.halo(),
        )?;
        writeln!(f, "Points received per step, of all parts of a level and of the one that receives most:\n")?;
        write!(f, "{:<14}{:>12}", "", "blocks per")?;
        for level in 0..self.levels.depth() {
            write!(f, "{:>24}", format!("{} {}", self.levels.parts_at(level), self.levels.name(level)))?;
        }
        let last = self.levels.depth() - 1;
        let one = self.levels.name(last);
        write!(f, "\n{:<14}{:>12}", "", one.strip_suffix('s').unwrap_or("part"))?;
        for _ in 0..=last {
            write!(f, "{:>14}{:>10}", "all", "most")?;
        }
        for (scheme, levels) in self.found {
            let held = &levels[last];
            write!(f, "\n{:<14}{:>12}", scheme.name(), format!("{}-{}", held.fewest_blocks, held.most_blocks))?;
            for of in levels {
                write!(f, "{:>14}{:>10}", of.volume, of.most)?;
            }
        }
        writeln!(f)?;
        let curves = [(Scheme::Curve, "Hilbert's curve"), (Scheme::PopCurve, "POP's curve")];
        for (scheme, name) in curves {
            if let Some(saved) = self.saved(scheme) {
                let parts = self.levels.name(0);
                let word = if saved < 0.0 { "more" } else { "less" };
                write!(f, "\nhierarchical: {:.1} % {word} between {parts} than {name}", saved.abs())?;
            }
        }
        writeln!(f)
    }
}
