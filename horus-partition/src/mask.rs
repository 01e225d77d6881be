//! Sea points of a grid.

use crate::Invalid;

/// A grid of points that are sea (to be computed) or land. Row 0 is the north.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask {
    width: usize,
    height: usize,
    sea: Vec<bool>,
}

/// The share of land of [`Mask::synthetic`].
const LAND: f64 = 0.34;

/// Number of waves in the heights of [`Mask::synthetic`].
const WAVES: usize = 24;

impl Mask {
    /// A mask from its points in row-major order, the northern row first; `true` is sea.
    ///
    /// # Errors
    /// [`Invalid::Size`] if there are not `width * height` points, or none.
    pub fn new(width: usize, height: usize, sea: Vec<bool>) -> Result<Mask, Invalid> {
        if width.checked_mul(height) != Some(sea.len()) || sea.is_empty() {
            return Err(Invalid::Size { width, height, points: sea.len() });
        }
        Ok(Mask { width, height, sea })
    }

    /// A mask drawn in characters, a string for each row: `#` is land, any other character sea.
    ///
    /// ```
    /// # use horus_partition::Mask;
    /// let bay = Mask::drawn(&["#..", "##."])?;
    /// assert!(bay.is_sea(1, 0) && !bay.is_sea(1, 1));
    /// # Ok::<(), horus_partition::Invalid>(())
    /// ```
    ///
    /// # Errors
    /// [`Invalid::Size`] if rows differ in length, or there is no point.
    pub fn drawn(rows: &[&str]) -> Result<Mask, Invalid> {
        let width = rows.first().map_or(0, |row| row.chars().count());
        let sea: Vec<bool> = rows.iter().flat_map(|row| row.chars().map(|c| c != '#')).collect();
        if rows.iter().any(|row| row.chars().count() != width) {
            return Err(Invalid::Size { width, height: rows.len(), points: sea.len() });
        }
        Mask::new(width, rows.len(), sea)
    }

    /// A planet with continents, the same for the same size and seed on every machine. The highest
    /// 34 % of its points are land. About 26 % of blocks of 60 x 60 are then without sea, as in the
    /// thesis.
    ///
    /// The height of a point is a sum of 24 products of a sine along the row, with 0 to 5 whole
    /// waves (so that east and west fit), and a sine along the column, with 0.5 to 3.5 waves.
    /// Amplitudes are 1 / (1 + number of waves, squared); numbers of waves and phases come from
    /// SplitMix64 started at `seed`.
    ///
    /// # Errors
    /// [`Invalid::Size`] if `width` or `height` is 0.
    pub fn synthetic(width: usize, height: usize, seed: u64) -> Result<Mask, Invalid> {
        if width == 0 || height == 0 {
            return Err(Invalid::Size { width, height, points: 0 });
        }
        let mut random = SplitMix(seed);
        // Sines along rows and columns, wave by wave. The sines along columns include the
        // amplitude.
        let mut along = Vec::with_capacity(WAVES);
        let mut down = Vec::with_capacity(WAVES);
        for _ in 0..WAVES {
            let across = (random.unit() * 6.0).floor();
            let (phase, waves, shift) = (random.unit(), 0.5 + 3.0 * random.unit(), random.unit());
            let amplitude = 1.0 / (1.0 + across * across + waves * waves);
            let place = |i: usize, n: usize| (i as f64 + 0.5) / n as f64;
            along.push((0..width).map(|x| sine(across * place(x, width) + phase)).collect::<Vec<f64>>());
            down.push((0..height).map(|y| amplitude * sine(waves * place(y, height) + shift)).collect::<Vec<f64>>());
        }
        let height_at = |x: usize, y: usize| (0..WAVES).map(|i| along[i][x] * down[i][y]).sum::<f64>();
        let heights: Vec<f64> = (0..width * height).map(|i| height_at(i % width, i / width)).collect();
        let mut sorted = heights.clone();
        let index = (((1.0 - LAND) * sorted.len() as f64) as usize).min(sorted.len() - 1);
        let (_, shore, _) = sorted.select_nth_unstable_by(index, f64::total_cmp);
        let shore = *shore;
        Mask::new(width, height, heights.into_iter().map(|h| h <= shore).collect())
    }

    /// Points in a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Returns `true` if the point in column `x` and row `y` is sea.
    ///
    /// # Panics
    /// If there is no such point.
    pub fn is_sea(&self, x: usize, y: usize) -> bool {
        assert!(x < self.width, "column {x} of {}", self.width);
        self.sea[y * self.width + x]
    }

    /// Number of sea points.
    pub fn sea(&self) -> usize {
        self.sea.iter().filter(|sea| **sea).count()
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014).
struct SplitMix(u64);

impl SplitMix {
    /// A number in `0..1`.
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// sin(2 pi `turns`) to about 1e-3, by Bhaskara's parabola. It uses sums and products only, because
/// the last bits of the platform's sine could move a shore.
fn sine(turns: f64) -> f64 {
    let half = 2.0 * (turns - turns.floor());
    let (sign, t) = if half < 1.0 { (1.0, half) } else { (-1.0, half - 1.0) };
    let p = t * (1.0 - t);
    sign * 16.0 * p / (5.0 - 4.0 * p)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sine_is_one() {
        for i in -100..200 {
            let turns = f64::from(i) * 0.0137;
            assert!((sine(turns) - (std::f64::consts::TAU * turns).sin()).abs() < 2e-3, "{turns}");
        }
    }

    #[test]
    fn a_planet_has_its_share_of_land_and_closes_on_itself() {
        let mask = Mask::synthetic(360, 240, 7).unwrap();
        let land = 1.0 - mask.sea() as f64 / (360.0 * 240.0);
        assert!((land - LAND).abs() < 1e-3, "{land}");
        let differ = (0..240).filter(|y| mask.is_sea(0, *y) != mask.is_sea(359, *y)).count();
        assert!(differ < 10, "{differ} rows do not fit from east to west");
        assert_eq!(mask, Mask::synthetic(360, 240, 7).unwrap());
        assert_ne!(mask, Mask::synthetic(360, 240, 8).unwrap());
    }

    #[test]
    fn what_has_no_points_or_too_few_is_refused() {
        assert_eq!(Mask::new(2, 2, vec![true; 3]), Err(Invalid::Size { width: 2, height: 2, points: 3 }));
        assert!(Mask::new(0, 2, vec![]).is_err() && Mask::synthetic(0, 5, 1).is_err());
        assert!(Mask::drawn(&["..", "."]).is_err() && Mask::drawn(&[]).is_err());
    }
}
