//! Affine maps from the pixels of a picture to the picture that it was made from.

/// An affine map from positions in the last picture to positions in the first, in rows and columns from the
/// centre of the first pixel. The default is the identity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PositionMap([[f64; 3]; 2]);

impl Default for PositionMap {
    fn default() -> PositionMap {
        PositionMap([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    }
}

impl PositionMap {
    /// From a matrix `[[xx, xy, x0], [yx, yy, y0]]`: the column `xx * x + xy * y + x0` and the row
    /// `yx * x + yy * y + y0` for column x and row y.
    pub fn of(rows: [[f64; 3]; 2]) -> PositionMap {
        PositionMap(rows)
    }

    /// The map of pixels that begin at this row and column.
    pub fn shifted(top: f64, left: f64) -> PositionMap {
        PositionMap([[1.0, 0.0, left], [0.0, 1.0, top]])
    }

    /// The map between two grids of pixels (rows, columns) that cover the same area.
    pub fn resized(from: (usize, usize), to: (usize, usize)) -> PositionMap {
        let step = |from: usize, to: usize| from as f64 / to as f64;
        let (y, x) = (step(from.0, to.0), step(from.1, to.1));
        PositionMap([[x, 0.0, (x - 1.0) / 2.0], [0.0, y, (y - 1.0) / 2.0]])
    }

    /// The matrix.
    pub fn rows(&self) -> [[f64; 3]; 2] {
        self.0
    }

    /// The position of a row and a column.
    pub fn at(&self, y: f64, x: f64) -> (f64, f64) {
        let [[xx, xy, x0], [yx, yy, y0]] = self.0;
        (yx * x + yy * y + y0, xx * x + xy * y + x0)
    }

    /// The composition: `next` maps into a picture that this map maps further.
    #[must_use]
    pub fn then(&self, next: &PositionMap) -> PositionMap {
        let [[a, b, c], [d, e, f]] = self.0;
        let [[xx, xy, x0], [yx, yy, y0]] = next.0;
        PositionMap([
            [a * xx + b * yx, a * xy + b * yy, a * x0 + b * y0 + c],
            [d * xx + e * yx, d * xy + e * yy, d * x0 + e * y0 + f],
        ])
    }

    /// Returns `true` if both maps agree within a thousandth of a pixel in pictures of 100,000 rows:
    /// positions of rotations are rounded.
    pub fn is_same_as(&self, other: &PositionMap) -> bool {
        self.0.as_flattened().iter().zip(other.0.as_flattened()).enumerate().all(|(i, (a, b))| {
            let bound = if i % 3 == 2 { 1e-3 } else { 1e-8 };
            (a - b).abs() < bound
        })
    }

    /// Returns `true` if every pixel stays in place.
    pub fn is_identity(&self) -> bool {
        self.is_same_as(&PositionMap::default())
    }
}

/// The relation between the pixels of a result and those of an image that it is computed from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Relation {
    /// A map within planes, and the distance of neighbouring levels in levels of the image: 0 if one level is
    /// repeated, `None` if the distance is unknown.
    Mapped(PositionMap, Option<f64>),
    /// A map across levels: for each level, row and column of the result, the step in levels, rows and
    /// columns of the image.
    Across([[f64; 3]; 3]),
    /// Unrelated pixels, such as the result of a reduction.
    Elsewhere,
    /// A number, a row, a column or a table, which affects every pixel.
    Broadcast,
}

impl Relation {
    /// The relation of pixels that stay in place.
    pub fn identity() -> Relation {
        Relation::Mapped(PositionMap::default(), Some(1.0))
    }

    /// The relation of an affine map (matrix and offset) from levels, rows and columns of the result to those
    /// of the image.
    pub fn from_affine(matrix: [[f64; 3]; 3], offset: [f64; 3]) -> Relation {
        let [[zz, zy, zx], [yz, yy, yx], [xz, xy, xx]] = matrix;
        if [zy, zx, yz, xz] != [0.0; 4] {
            return Relation::Across(matrix);
        }
        Relation::Mapped(PositionMap::of([[xx, xy, offset[2]], [yx, yy, offset[1]]]), Some(zz.abs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_composed() {
        // Half as large, then without the first row and the first two columns.
        let both = PositionMap::resized((40, 60), (20, 30)).then(&PositionMap::shifted(1.0, 2.0));
        assert_eq!(both.at(0.0, 0.0), (2.5, 4.5));
        assert_eq!(both.at(1.0, 1.0), (4.5, 6.5));
        let (turn, back) = (
            PositionMap::of([[0.0, 1.0, 0.0], [-1.0, 0.0, 9.0]]),
            PositionMap::of([[0.0, -1.0, 9.0], [1.0, 0.0, 0.0]]),
        );
        assert!(turn.then(&back).is_identity() && !turn.is_identity());
    }
}
