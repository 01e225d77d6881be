//! The hierarchy of parts.

use std::fmt;
use std::str::FromStr;

use crate::Invalid;

/// The hierarchy from clusters down to devices: the number of parts into which each level divides a
/// part of the level above. `2:16:8` is two clusters of 16 nodes of 8 devices, 256 parts in all.
/// The devices of a node, and the nodes of a cluster, have consecutive numbers.
///
/// ```
/// # use horus_partition::Levels;
/// let levels: Levels = "2:16:8".parse()?;
/// assert_eq!((levels.parts(), levels.parts_at(1), levels.group(1)), (256, 32, 8));
/// assert!("2::8".parse::<Levels>().is_err());
/// # Ok::<(), horus_partition::Invalid>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Levels(Vec<usize>);

impl Levels {
    /// Number of levels, at least one.
    pub fn depth(&self) -> usize {
        self.0.len()
    }

    /// Number of parts of each level, the highest level first.
    pub fn counts(&self) -> &[usize] {
        &self.0
    }

    /// Number of parts of the last level.
    pub fn parts(&self) -> usize {
        self.0.iter().product()
    }

    /// Number of parts of level `level`; 0 is the highest level.
    ///
    /// # Panics
    /// If there is no such level.
    pub fn parts_at(&self, level: usize) -> usize {
        self.0[..=level].iter().product()
    }

    /// Number of parts of the last level in one part of level `level`. Part `p` of the last level
    /// is in part `p / group(level)` of that level.
    ///
    /// # Panics
    /// If there is no such level.
    pub fn group(&self, level: usize) -> usize {
        self.0[level + 1..].iter().product()
    }

    /// The name of level `level`: clusters, nodes or devices; hierarchies with fewer than three
    /// levels use the last names.
    pub fn name(&self, level: usize) -> String {
        let names = ["clusters", "nodes", "devices"];
        match (names.len() + level).checked_sub(self.depth()) {
            Some(i) if self.depth() <= names.len() => names[i].to_owned(),
            _ => format!("level {}", level + 1),
        }
    }
}

impl FromStr for Levels {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Levels, Invalid> {
        let wrong = |cause: String| Invalid::Levels { text: text.to_owned(), cause };
        let mut counts = Vec::new();
        for word in text.split(':') {
            match word.trim().parse::<usize>() {
                Ok(0) => return Err(wrong("a level of 0 parts".into())),
                Ok(count) => counts.push(count),
                Err(_) => return Err(wrong(format!("`{word}` is not a whole number"))),
            }
        }
        let parts = counts.iter().try_fold(1usize, |all, count| all.checked_mul(*count));
        match parts {
            Some(_) => Ok(Levels(counts)),
            None => Err(wrong("more parts than can be counted".into())),
        }
    }
}

impl fmt::Display for Levels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.0.iter().map(usize::to_string).collect();
        f.write_str(&words.join(":"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_read_and_named() {
        let levels: Levels = "2:16:8".parse().unwrap();
        assert_eq!(levels.to_string(), "2:16:8");
        assert_eq!([0, 1, 2].map(|l| levels.name(l)), ["clusters", "nodes", "devices"]);
        assert_eq!([0, 1, 2].map(|l| (levels.parts_at(l), levels.group(l))), [(2, 128), (32, 8), (256, 1)]);
        let name = |text: &str, level| text.parse::<Levels>().unwrap().name(level);
        assert_eq!(
            (name("4", 0), name("4:2", 0), name("4:2", 1)),
            ("devices".into(), "nodes".into(), "devices".into())
        );
        assert_eq!(name("1:2:3:4", 3), "level 4");
    }

    #[test]
    fn what_is_no_level_is_named() {
        for (text, cause) in [
            ("", "`` is not a whole number"),
            ("2:", "`` is not a whole number"),
            ("2x16", "`2x16` is not"),
            ("-2", "`-2` is not"),
            ("2:0:8", "a level of 0 parts"),
            ("9999999999:9999999999:9999999999", "more parts than can be counted"),
        ] {
            let error = text.parse::<Levels>().unwrap_err().to_string();
            assert!(error.contains(cause) && error.contains("2:16:8"), "{text}: {error}");
        }
    }
}
