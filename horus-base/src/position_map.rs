//! The place of a picture's pixels in the picture that it was made from.

/// An affine map of positions, rows and columns counted from the centre of the first pixel: the place
/// in the first picture of each pixel of the last. The default is the same place.
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

    /// Pixels whose first is at this row and column.
    pub fn shifted(top: f64, left: f64) -> PositionMap {
        PositionMap([[1.0, 0.0, left], [0.0, 1.0, top]])
    }

    /// Pixels that cover the same area, from so many rows and columns to so many others.
    pub fn resized(from: (usize, usize), to: (usize, usize)) -> PositionMap {
        let step = |from: usize, to: usize| from as f64 / to as f64;
        let (y, x) = (step(from.0, to.0), step(from.1, to.1));
        PositionMap([[x, 0.0, (x - 1.0) / 2.0], [0.0, y, (y - 1.0) / 2.0]])
    }

    /// The matrix.
    pub fn rows(&self) -> [[f64; 3]; 2] {
        self.0
    }

    /// The place of a row and a column.
    pub fn at(&self, y: f64, x: f64) -> (f64, f64) {
        let [[xx, xy, x0], [yx, yy, y0]] = self.0;
        (yx * x + yy * y + y0, xx * x + xy * y + x0)
    }

    /// The place of pixels that lie at `next` in a picture that lies here.
    #[must_use]
    pub fn then(&self, next: &PositionMap) -> PositionMap {
        let [[a, b, c], [d, e, f]] = self.0;
        let [[xx, xy, x0], [yx, yy, y0]] = next.0;
        PositionMap([
            [a * xx + b * yx, a * xy + b * yy, a * x0 + b * y0 + c],
            [d * xx + e * yx, d * xy + e * yy, d * x0 + e * y0 + f],
        ])
    }

    /// Returns `true` for the same place, up to a thousandth of a pixel in pictures of 100,000 rows:
    /// positions of rotations are rounded.
    pub fn is_same_as(&self, other: &PositionMap) -> bool {
        self.0.as_flattened().iter().zip(other.0.as_flattened()).enumerate().all(|(i, (a, b))| {
            let bound = if i % 3 == 2 { 1e-3 } else { 1e-8 };
            (a - b).abs() < bound
        })
    }

    /// Returns `true` if every pixel is where it was.
    pub fn is_identity(&self) -> bool {
        self.is_same_as(&PositionMap::default())
    }
}

/// How the pixels of a result are related to those of an image that it is computed from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Relation {
    /// They lie there in its planes, and neighbouring levels are so many of its levels apart: 0 if one level is
    /// repeated, `None` if the distance cannot be told.
    Mapped(PositionMap, Option<f64>),
    /// They lie among its levels: per level, row and column of theirs, so many of its levels, rows and columns.
    Across([[f64; 3]; 3]),
    /// They are other pixels, such as those of a reduction.
    Elsewhere,
    /// It is a number, a row, a column or a table, which has a part in every pixel.
    Broadcast,
}

impl Relation {
    /// Every pixel is where it was.
    pub fn identity() -> Relation {
        Relation::Mapped(PositionMap::default(), Some(1.0))
    }

    /// By an affine map from levels, rows and columns of the result to those of the image: its matrix and its offset.
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
