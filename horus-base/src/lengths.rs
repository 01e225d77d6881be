//! Sizes of pixels, and lengths with a unit.

use serde::{Deserialize, Serialize};

use crate::position_map::PositionMap;

/// The size of a pixel in micrometres: the distances between neighbouring levels, rows and columns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PixelSize {
    /// From a level to the next, if known.
    pub levels: Option<f64>,
    /// From a row to the next.
    pub rows: f64,
    /// From a column to the next.
    pub columns: f64,
}

impl PixelSize {
    /// The pixel size with these distances between levels, rows and columns; `None` unless the
    /// distances between rows and columns are positive and finite.
    ///
    /// ```
    /// # use horus_base::lengths::PixelSize;
    /// let thin = PixelSize::of([Some(2.0), Some(0.25), Some(0.25)]).expect("a size");
    /// assert_eq!((thin.levels, thin.rows), (Some(2.0), 0.25));
    /// assert_eq!(PixelSize::of([None, Some(0.25), Some(0.0)]), None);
    /// ```
    pub fn of(sides: [Option<f64>; 3]) -> Option<PixelSize> {
        let [levels, rows, columns] = sides.map(|side| side.filter(|n| *n > 0.0 && n.is_finite()));
        Some(PixelSize { levels, rows: rows?, columns: columns? })
    }

    /// The distances between levels, rows and columns; 1 for an unknown distance between levels.
    pub fn sides(&self) -> [f64; 3] {
        [self.levels.unwrap_or(1.0), self.rows, self.columns]
    }

    /// The size of an image's pixels that `placed` maps into an image with this pixel size; `None` if rows
    /// and columns are not perpendicular.
    #[must_use]
    pub fn mapped_by(&self, placed: &PositionMap) -> Option<PixelSize> {
        let [[xx, xy, _], [yx, yy, _]] = placed.rows();
        let size = self.across([[1.0, 0.0, 0.0], [0.0, yy, yx], [0.0, xy, xx]])?;
        Some(PixelSize { levels: self.levels, ..size })
    }

    /// The size of pixels whose level, row and column directions are given in levels, rows and columns of
    /// this pixel size; `None` if these directions are not perpendicular.
    #[must_use]
    pub fn across(&self, [z, y, x]: [[f64; 3]; 3]) -> Option<PixelSize> {
        let step = |k: usize| [z[k] * self.sides()[0], y[k] * self.rows, x[k] * self.columns];
        let along = |a: [f64; 3], b: [f64; 3]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let steps = [step(0), step(1), step(2)];
        let sides = steps.map(|step| along(step, step).sqrt());
        let skewed = |(a, b): (usize, usize)| along(steps[a], steps[b]).abs() > 1e-6 * sides[a] * sides[b];
        let size = PixelSize::of(sides.map(Some));
        size.filter(|_| ![(0, 1), (0, 2), (1, 2)].into_iter().any(skewed))
    }
}

/// Micrometres in a unit, given by its name in OME-Zarr or its symbol in OME-XML.
pub fn micrometres(unit: &str) -> Option<f64> {
    Some(match unit {
        "micrometer" | "micron" | "µm" | "μm" | "um" => 1.0,
        "picometer" | "pm" => 1e-6,
        "angstrom" | "Å" => 1e-4,
        "nanometer" | "nm" => 1e-3,
        "millimeter" | "mm" => 1e3,
        "centimeter" | "cm" => 1e4,
        "inch" | "in" => 25_400.0,
        "meter" | "m" => 1e6,
        "kilometer" | "km" => 1e9,
        _ => return None,
    })
}

/// Parses a length with a unit, in micrometres; `None` if the text is not a length.
///
/// ```
/// # use horus_base::lengths::length;
/// assert_eq!((length("2.5um"), length("0.5 mm"), length("80nm")), (Some(2.5), Some(500.0), Some(0.08)));
/// assert_eq!((length("2.5"), length("fast"), length("1e-3m")), (None, None, Some(1000.0)));
/// assert_eq!(length("1e+5nm"), Some(100.0));
/// ```
pub fn length(text: &str) -> Option<f64> {
    let begins = |(at, c): (usize, char)| {
        let exponent = matches!(c, 'e' | 'E')
            && text[at + 1..].starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+'));
        !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+') || exponent)
    };
    let (at, _) = text.char_indices().find(|found| begins(*found))?;
    let (number, unit) = text.split_at(at);
    let number: f64 = number.parse().ok().filter(|n: &f64| n.is_finite())?;
    // Nanometres are divided by 1000: a quotient of two exact numbers is rounded once.
    let scale = micrometres(unit.trim())?;
    Some(if scale < 1.0 { number / (1.0 / scale).round() } else { number * scale })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_keep_their_size_when_they_move_and_grow_when_they_are_fewer() {
        let size = PixelSize { levels: Some(3.0), rows: 2.0, columns: 0.5 };
        assert_eq!(size.mapped_by(&PositionMap::shifted(3.0, 4.0)), Some(size));
        let halved = size.mapped_by(&PositionMap::resized((10, 40), (5, 10)));
        assert_eq!(halved, Some(PixelSize { levels: Some(3.0), rows: 4.0, columns: 2.0 }));
        let transposed = size.mapped_by(&PositionMap::of([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]));
        assert_eq!(transposed, Some(PixelSize { rows: 0.5, columns: 2.0, ..size }));
        let turned = PositionMap::of([[0.8, -0.6, 0.0], [0.6, 0.8, 0.0]]);
        assert_eq!(size.mapped_by(&turned), None, "pixels that are not square become skewed");
        let square = PixelSize { rows: 0.5, ..size };
        let turned = square.mapped_by(&turned).expect("squares stay squares");
        assert!((turned.rows - 0.5).abs() + (turned.columns - 0.5).abs() < 1e-12);
        // Levels become rows, and every other row a level.
        let upright = size.across([[0.0, 1.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 1.0]]);
        assert_eq!(upright, Some(PixelSize { levels: Some(4.0), rows: 3.0, columns: 0.5 }));
        assert_eq!(size.across([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]), None);
    }
}
