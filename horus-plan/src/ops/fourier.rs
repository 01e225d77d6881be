//! Correlation by Fourier transforms of overlapping tiles (overlap-save).
//!
//! Tiles lie at multiples of [`Fourier::step`] from the first pixel of the whole image, so a result is the same in any
//! region, strip and launch. Two adjacent tiles of a row are the real and the imaginary part of one transform.
//! Transforms are computed in `f64`, for pixels of `f32` too. Tiles with a pixel that is not finite or exceeds
//! [`Fourier::largest`] are computed directly, in the canonical order.
//!
//! The parts of a filter of a volume, one for each of several levels, are added before the transform back.
//!
//! Bound of the error and its proof: `docs/design/tolerance.md`.

use std::sync::Arc;

use super::Whole;
use super::footprint::{Access, InputRead, Rect};
use super::neighbourhood::{Filter, Reach};
use super::operation::{
    Family, ImageExtent, ImageOperation, Instance, LaunchEffort, SampleImages, SampleOperations, ensure, images, stays,
};
use horus_base::dtype::{Arithmetic, DType, Float};
use horus_base::position_map::PositionMap;
use horus_base::shape::{Border, Shape, Window};

/// A complex number: real and imaginary part.
pub type Complex = [f64; 2];

/// Responses of linear filters, computed by Fourier transforms. The response of plane `p` (of the `n` planes of a
/// level) to filter `f` is plane `f * n + p`; if filters are added across levels, there is one response.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fourier {
    /// The filters, of one reach unless they are added.
    pub filters: Arc<[Filter]>,
    /// If they are added across levels, how.
    pub across: Option<Across>,
    /// Border mode.
    pub border: Border,
    /// Rows and columns of a tile, powers of two.
    pub tile: [usize; 2],
    /// Row and column of the image's first pixel within its pair of tiles.
    pub origin: [usize; 2],
}

/// The sum of the responses of several levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Across {
    /// Filter `f` reads level `z + f - before` for level `z`.
    pub before: usize,
    /// The type to which numbers are rounded after columns, after rows, after the sum of products, and after rows back:
    /// `f32` takes half of the memory.
    pub stored: DType,
}

/// Most bytes of transforms of levels that a thread of a CPU holds, in `f64`.
pub const HELD: usize = 64 << 20;

/// Most bytes of transforms of levels and of their products that a GPU holds. With fewer, levels that several sums read
/// are transformed more often.
pub const ACROSS: usize = 512 << 20;

/// Minimum and maximum height and width of a tile.
pub const EXTENTS: [usize; 2] = [16, 512];

impl Fourier {
    /// Separate responses to filters, with the first tile at the first pixel.
    pub fn of(filters: impl Into<Arc<[Filter]>>, border: Border, tile: [usize; 2]) -> Fourier {
        Fourier { filters: filters.into(), across: None, border, tile, origin: [0, 0] }
    }

    /// The reach of the filters.
    pub fn reach(&self) -> Reach {
        self.filters.iter().fold(Reach::NONE, |reach, f| reach.max(f.reach()))
    }

    /// Rows and columns of the result that a tile yields.
    pub fn step(&self) -> [usize; 2] {
        step(self.tile, self.reach())
    }

    /// Number of filters whose responses are added.
    pub fn added(&self) -> usize {
        if self.across.is_some() { self.filters.len() } else { 1 }
    }

    /// Channels of the result for each channel of the image.
    pub fn responses(&self) -> usize {
        if self.across.is_some() { 1 } else { self.filters.len() }
    }

    /// The level of an image of `depth` levels that added filter `f` reads for level `z`; `None` beyond a border with a
    /// constant.
    pub fn level(&self, z: usize, f: usize, depth: usize) -> Option<usize> {
        let Some(Across { before, .. }) = self.across else { return Some(z) };
        self.border.map((z + f).cast_signed() - before.cast_signed(), depth)
    }

    /// Levels of the result that are computed together, about as many each time, if so many transforms of tiles may be
    /// held: each level reads those of [`added`](Self::added) levels. Products take the place of transforms, or have
    /// their own.
    pub fn together(&self, depth: usize, tiles: usize, have_own: bool) -> usize {
        if self.across.is_some() { together(depth, self.added(), tiles, have_own) } else { 1 }
    }

    /// The results of whole pairs of tiles that contain `need`, in pixels of the image.
    pub fn pairs(&self, need: Rect) -> Rect {
        let [down, across] = self.step();
        let [top, left] = self.origin;
        Rect { rows: aligned(need.rows, top, down), columns: aligned(need.columns, left, 2 * across) }
    }

    /// Number of pairs of tiles whose results contain `need`.
    pub fn pairs_of(&self, need: Rect) -> usize {
        let ([down, across], all) = (self.step(), self.pairs(need));
        (all.rows.len() / down) * (all.columns.len() / (2 * across))
    }

    /// The type of the numbers of transforms in memory.
    pub fn stored(&self) -> DType {
        self.across.map_or(DType::F64, |across| across.stored)
    }

    /// A number as it is stored.
    pub fn rounded(&self, v: f64) -> f64 {
        if self.stored() == DType::F32 { f64::from(v as f32) } else { v }
    }

    /// Bytes of a stored transform of a tile.
    pub fn tile_bytes(&self) -> usize {
        2 * self.stored().size() * self.tile[0] * self.tile[1]
    }

    /// The largest pixel of a type that a transform accepts, if transforms are stored in this type.
    pub fn largest(dtype: DType, stored: DType) -> f64 {
        // Sums of taps are below 2^30, so no sum over a tile overflows, nor do 2^18 pixels that are stored.
        let exponent = match (dtype, stored) {
            (DType::F64, _) => 960.0_f64,
            (_, DType::F32) => 76.0,
            _ => 96.0,
        };
        exponent.exp2()
    }

    /// A filter as a tile whose transform multiplies the transforms of images: reflected about its anchor, and divided
    /// by the number of points, by which transforms forth and back multiply.
    pub fn reflected(&self, filter: &Filter) -> Vec<Complex> {
        let [height, width] = self.tile;
        let Reach { up, left, .. } = self.reach();
        let mut tile = vec![[0.0; 2]; height * width];
        let scale = 1.0 / (height * width) as f64;
        for (tap, (dy, dx)) in filter.taps().iter().zip(filter.offsets()) {
            let back = |d: isize, before: usize, n: usize| (n - d.saturating_add_unsigned(before).cast_unsigned()) % n;
            tile[back(dy, up, height) * width + back(dx, left, width)][0] += tap * scale;
        }
        tile
    }

    /// The definition: the sum of the responses of [transformed](Self::forth) pairs of tiles, each to the filter of its
    /// [`spectrum`](Self::spectrum). Pixel 0 of a tile is the first that its first result reads; values from
    /// [`step`](Self::step) on are no responses.
    pub fn respond(&self, pairs: &[(&[Complex], &[Complex])]) -> Vec<Complex> {
        let [height, width] = self.tile;
        let at = |i: usize| {
            let products = pairs.iter().map(|(pixels, spectrum)| (pixels[i], spectrum[i]));
            products.fold(None, |sum, (a, b)| Some(sum.map_or_else(|| product(a, b), |sum| add_product(sum, a, b))))
        };
        let mut pixels: Vec<Complex> = (0..height * width).map(|i| at(i).unwrap_or_default()).collect();
        self.round(&mut pixels);
        let (rows, columns) = (Roots::of(width), Roots::of(height));
        pixels.chunks_mut(width).for_each(|row| rows.back(row));
        self.round(&mut pixels);
        each_column(&mut pixels, [height, width], &|column| columns.back(column));
        pixels
    }

    /// The transform of a filter, in the order of [`Roots::forth`].
    pub fn spectrum(&self, filter: &Filter) -> Vec<Complex> {
        let mut tile = self.reflected(filter);
        let exact = Fourier { across: None, ..self.clone() };
        exact.forth(&mut tile);
        tile
    }

    /// Transforms a pair of tiles.
    pub fn forth(&self, tile: &mut [Complex]) {
        let [height, width] = self.tile;
        let (rows, columns) = (Roots::of(width), Roots::of(height));
        each_column(tile, [height, width], &|column| columns.forth(column));
        self.round(tile);
        tile.chunks_mut(width).for_each(|row| rows.forth(row));
        self.round(tile);
    }

    fn round(&self, tile: &mut [Complex]) {
        tile.as_flattened_mut().iter_mut().for_each(|v| *v = self.rounded(*v));
    }
}

/// Transforms of tiles that a thread of a CPU holds.
pub fn held([height, width]: [usize; 2]) -> usize {
    HELD / (height * width * size_of::<Complex>())
}

/// See [`Fourier::together`].
fn together(depth: usize, added: usize, tiles: usize, have_own: bool) -> usize {
    let most = tiles.saturating_sub(added - 1) / if have_own { 2 } else { 1 };
    depth.div_ceil(depth.div_ceil(most.max(1)).max(1)).max(1)
}

/// Transforms of a tile for each level of the result, of which each adds the responses of so many levels.
pub fn transforms(tile: [usize; 2], depth: usize, added: usize) -> f64 {
    let together = together(depth, added, held(tile), false);
    (together + added - 1) as f64 / together as f64
}

/// Rows and columns of the result that a tile yields.
pub fn step([height, width]: [usize; 2], reach: Reach) -> [usize; 2] {
    [height.saturating_sub(reach.up + reach.down), width.saturating_sub(reach.left + reach.right)]
}

/// A bound on the error of a result before rounding, for `max|pixel| = 1` and `sum|taps| = 1`, if the responses to so
/// many filters are added, and transforms stored in this type.
pub fn error([height, width]: [usize; 2], added: usize, stored: DType) -> f64 {
    let points = (height * width) as f64;
    let roundings = if stored == DType::F32 { 4.0 * f64::from(f32::EPSILON / 2.0) } else { 0.0 };
    (2.0 * points).sqrt()
        * (roundings * (1.0 + 1e-6) + (24.0 * points.log2() + 4.0 * added as f64) * (f64::EPSILON / 2.0))
}

/// Cost per point of both transforms, in multiply-adds of a direct filter of `f32`. It is between the costs measured on
/// two cores for one filter and for eight filters of one image, which share one of the two transforms
/// (`docs/performance/cpu.md`). Across levels, a result needs so many transforms forth, and a product that is added to
/// others has its own cost.
pub fn cost(tile: [usize; 2], added: usize, transforms: f64) -> f64 {
    const LEVEL: f64 = 10.0;
    const POINT: f64 = 80.0;
    const PRODUCT: f64 = 5.0;
    // Eight lines of more points exceed a first-level cache.
    let levels = |n: usize| f64::from(n.ilog2()) * if n > 256 { 1.6 } else { 1.0 };
    let both = POINT + LEVEL * tile.into_iter().map(levels).sum::<f64>();
    both * (1.0 + transforms) / 2.0 + PRODUCT * (added - 1) as f64
}

fn each_column(tile: &mut [Complex], [height, width]: [usize; 2], change: &dyn Fn(&mut [Complex])) {
    let mut column = vec![[0.0; 2]; height];
    for x in 0..width {
        column.iter_mut().enumerate().for_each(|(y, v)| *v = tile[y * width + x]);
        change(&mut column);
        column.iter().enumerate().for_each(|(y, v)| tile[y * width + x] = *v);
    }
}

/// The window from one multiple of `step` (relative to `origin`) to another that contains `need`.
fn aligned(need: Window, origin: usize, step: usize) -> Window {
    if need.is_empty() {
        return need;
    }
    let (origin, step) = (origin.cast_signed(), step.max(1).cast_signed());
    let start = (need.start + origin).div_euclid(step) * step;
    let end = (need.end + origin - 1).div_euclid(step) * step + step;
    Window::new(start - origin, end - origin)
}

/// `a * b`.
#[inline(always)]
pub fn product([re, im]: Complex, [c, s]: Complex) -> Complex {
    [Float::fma(re, c, -(im * s)), Float::fma(re, s, im * c)]
}

/// `sum + a * b`.
#[inline(always)]
pub fn add_product(sum: Complex, [re, im]: Complex, [c, s]: Complex) -> Complex {
    [Float::fma(re, c, -Float::fma(im, s, -sum[0])), Float::fma(re, s, Float::fma(im, c, sum[1]))]
}

/// Roots of unity, and the transform of one line. All backends compute sums and products in this order.
#[derive(Clone, Debug)]
pub struct Roots {
    roots: Vec<Complex>,
}

impl Roots {
    /// The roots for lines of `n` points, a power of two.
    pub fn of(n: usize) -> Roots {
        Roots { roots: (0..n).map(|k| root(k, n)).collect() }
    }

    /// `exp(-2 pi i k / n)`.
    pub fn at(&self, k: usize) -> Complex {
        self.roots[k]
    }

    /// The roots `j`, `2j` and `3j` of `m`, for point `j` of `1..m/4` in butterflies over lines of `m` points.
    pub fn of_butterfly(&self, m: usize, j: usize) -> [Complex; 3] {
        let by = self.roots.len() / m;
        [1, 2, 3].map(|k| self.roots[k * j * by])
    }

    /// Transforms a line, decimated in frequency. If the number of levels is odd, pairs of points half a line apart
    /// come first. Then, for each half or for the line, follow butterflies of four points a quarter apart, and then
    /// the butterflies of each quarter. The result stays in the order of these operations.
    pub fn forth(&self, line: &mut [Complex]) {
        let mut m = line.len();
        if m.ilog2() % 2 == 1 {
            m /= 2;
            for j in 0..m {
                let (a, b) = (line[j], line[j + m]);
                let rest = difference(a, b);
                line[j] = sum(a, b);
                line[j + m] = if j > 0 { product(rest, self.roots[j]) } else { rest };
            }
        }
        while m >= 4 {
            let q = m / 4;
            for base in (0..line.len()).step_by(m) {
                for j in 0..q {
                    let at = [0, 1, 2, 3].map(|k| base + j + k * q);
                    let mut y = butterfly(at.map(|i| line[i]));
                    if j > 0 {
                        let roots = self.of_butterfly(m, j);
                        (0..3).for_each(|k| y[k + 1] = product(y[k + 1], roots[k]));
                    }
                    (0..4).for_each(|k| line[at[k]] = y[k]);
                }
            }
            m = q;
        }
    }

    /// The inverse of [`forth`](Self::forth), except for the factor `1 / n`.
    pub fn back(&self, line: &mut [Complex]) {
        let mut q = 1;
        while 4 * q <= line.len() {
            let m = 4 * q;
            for base in (0..line.len()).step_by(m) {
                for j in 0..q {
                    let at = [0, 1, 2, 3].map(|k| base + j + k * q);
                    let mut x = at.map(|i| line[i]);
                    if j > 0 {
                        let roots = self.of_butterfly(m, j);
                        (0..3).for_each(|k| x[k + 1] = product(x[k + 1], conjugate(roots[k])));
                    }
                    let y = butterfly_back(x);
                    (0..4).for_each(|k| line[at[k]] = y[k]);
                }
            }
            q = m;
        }
        if 2 * q == line.len() {
            for j in 0..q {
                let b = line[j + q];
                let rest = if j > 0 { product(b, conjugate(self.roots[j])) } else { b };
                (line[j], line[j + q]) = (sum(line[j], rest), difference(line[j], rest));
            }
        }
    }
}

/// The conjugate.
#[inline(always)]
pub fn conjugate([re, im]: Complex) -> Complex {
    [re, -im]
}

fn sum(a: Complex, b: Complex) -> Complex {
    [a[0] + b[0], a[1] + b[1]]
}

fn difference(a: Complex, b: Complex) -> Complex {
    [a[0] - b[0], a[1] - b[1]]
}

/// The transform of four points.
fn butterfly([a, b, c, d]: [Complex; 4]) -> [Complex; 4] {
    let (even, odd) = (sum(a, c), sum(b, d));
    let (left, right) = (difference(a, c), difference(b, d));
    // right times -i.
    let turned = [right[1], -right[0]];
    [sum(even, odd), sum(left, turned), difference(even, odd), difference(left, turned)]
}

/// The inverse of [`butterfly`], times 4.
fn butterfly_back([a, b, c, d]: [Complex; 4]) -> [Complex; 4] {
    let (even, odd) = (sum(a, c), sum(b, d));
    let (left, right) = (difference(a, c), difference(b, d));
    // right times i.
    let turned = [-right[1], right[0]];
    [sum(even, odd), sum(left, turned), difference(even, odd), difference(left, turned)]
}

/// `exp(-2 pi i k / n)` for a power of two `n`, from sines and cosines of at most an eighth of a turn.
fn root(k: usize, n: usize) -> Complex {
    let (quarter, rest) = (4 * k / n, 4 * k % n);
    let angle = |r: usize| std::f64::consts::FRAC_PI_2 * (r as f64 / n as f64);
    let (sin, cos) = match 2 * rest > n {
        true => (Arithmetic::cos(angle(n - rest)), Arithmetic::sin(angle(n - rest))),
        false => (Arithmetic::sin(angle(rest)), Arithmetic::cos(angle(rest))),
    };
    match quarter {
        0 => [cos, -sin],
        1 => [-sin, -cos],
        2 => [-cos, sin],
        _ => [sin, cos],
    }
}

impl ImageOperation for Fourier {
    fn kind(&self) -> &'static str {
        "fourier"
    }

    fn name(&self) -> String {
        let [height, width] = self.tile;
        let largest = self.filters.iter().max_by_key(|filter| filter.taps().len());
        let largest = largest.map_or_else(String::new, Filter::to_string);
        let of = if self.filters.len() == 1 { largest } else { format!("{} filters of {largest}", self.filters.len()) };
        let across = self.across.map_or("", |across| match across.stored {
            DType::F32 => " across levels, stored in f32,",
            _ => " across levels",
        });
        format!("correlate {of}{across} by transforms of {height}x{width}")
    }

    fn check(&self, inputs: &[ImageExtent], output: ImageExtent) -> Result<(), String> {
        let [(shape, dtype)] = images(inputs)?;
        ensure(!self.filters.is_empty(), || "no filter".into())?;
        let reaches = self.filters.iter().map(Filter::reach);
        let near = |r: &Reach| [r.up, r.down, r.left, r.right].into_iter().all(|r| r < EXTENTS[1]);
        ensure(reaches.clone().all(|r| near(&r)), || format!("filters that reach {} pixels", EXTENTS[1]))?;
        let alike = self.across.is_some() || reaches.into_iter().all(|r| r == self.reach());
        ensure(alike, || "filters of different reach".into())?;
        let level = self.across.is_none_or(|across| across.before < self.filters.len());
        ensure(level, || format!("{} filters, {:?}", self.filters.len(), self.across))?;
        let stored = [dtype, DType::F64].contains(&self.stored());
        ensure(stored, || format!("transforms of {dtype} stored in {}", self.stored()))?;
        let extent = |n: usize| n.is_power_of_two() && (EXTENTS[0]..=EXTENTS[1]).contains(&n);
        let [down, across] = self.step();
        let fits = self.tile.into_iter().all(extent) && down > 0 && across > 0;
        ensure(fits, || format!("tiles of {:?} for filters of {:?}", self.tile, self.reach()))?;
        let placed = self.origin[0] < down && self.origin[1] < 2 * across;
        ensure(placed, || format!("the first pixel at {:?} of a pair of tiles", self.origin))?;
        ensure(dtype.is_float() && output.1 == dtype, || format!("a linear filter of {dtype} to {}", output.1))?;
        let wanted = Shape { channels: shape.channels.saturating_mul(self.responses()), ..shape };
        ensure(output.0 == wanted, || format!("it makes an image of {wanted}, wanted is {}", output.0))
    }

    fn reads(&self, _: usize, need: Rect, _: Shape) -> InputRead {
        InputRead::around(self.pairs(need), self.reach(), self.border)
    }

    fn access(&self, _: usize) -> Access {
        let (reach, [down, _]) = (self.reach(), self.step());
        // A strip may begin and end anywhere in a tile.
        let tiles = Reach { up: reach.up + down - 1, down: reach.down + down - 1, ..reach };
        Access::around(tiles, self.border)
    }

    fn position_map(&self, _: usize, from: Shape, to: Shape) -> Option<PositionMap> {
        stays(from, to)
    }

    fn in_place(&self, _: usize) -> bool {
        true
    }

    fn computed(&self, need: Rect, of: Shape) -> Rect {
        self.reads(0, need, of).sufficient_part(of).hull(need)
    }

    fn for_region(&self, region: Rect) -> Option<Whole> {
        let [down, across] = self.step();
        let moved = |origin: usize, by: isize, step: usize| (origin + by.cast_unsigned()) % step;
        let [top, left] = region.corner();
        let origin = [moved(self.origin[0], top, down), moved(self.origin[1], left, 2 * across)];
        Some(Fourier { origin, ..self.clone() }.into())
    }

    fn by_levels(&self, _: usize) -> bool {
        self.across.is_none()
    }

    fn scratch(&self, shape: Shape) -> usize {
        if self.across.is_none() {
            return 0;
        }
        let pairs = self.pairs_of(Rect::whole(shape)).saturating_mul(shape.channels);
        let levels = shape.depth.saturating_mul(2).saturating_add(self.added() - 1);
        let tiles = ACROSS.min(pairs.saturating_mul(levels).saturating_mul(self.tile_bytes()));
        let spectra = self.filters.len() * self.tile[0] * self.tile[1] * size_of::<Complex>();
        // A mark for each tile of each level that is read.
        let marks = pairs.saturating_mul(shape.depth.saturating_mul(self.added())).saturating_mul(2 * size_of::<i32>());
        tiles.saturating_add(spectra).saturating_add(marks)
    }

    fn effort(&self, inputs: &[ImageExtent], output: ImageExtent, rows: usize) -> LaunchEffort {
        let image = inputs.first().unwrap_or(&output).0;
        let ([down, across], [height, width]) = (self.step(), self.tile);
        // Points of tiles per pixel.
        let along = |n: usize, step: usize, points: usize| (n.div_ceil(step) * points) as f64 / n.max(1) as f64;
        let points = along(image.height, down, height) * along(image.width, 2 * across, 2 * width);
        // One of the two transforms serves all filters.
        let (n, added) = (self.responses() as f64, self.added());
        let steps = points * cost(self.tile, added, transforms(self.tile, image.depth, added)) * (n + 1.0) / (2.0 * n);
        let reach = self.reach();
        let reach = reach.up + reach.down + down;
        LaunchEffort { reach, ..LaunchEffort::of_rows(Family::Transforms, output.0, rows, steps) }
    }

    fn shared_bytes(&self) -> usize {
        self.filters.iter().map(|f| size_of_val(f.taps())).sum()
    }
}

impl SampleOperations for Fourier {
    fn samples(of: SampleImages) -> Vec<Instance> {
        let filters = [Filter::sparse([(-2, 0), (1, 3)], [1.0; 2])];
        let how = Fourier { origin: [5, 9], ..Fourier::of(filters, of.border, [16; 2]) };
        let parts = [Filter::row([1.0, 2.0, 0.5]), Filter::column([1.0, -1.0])].into();
        let across = Some(Across { before: 0, stored: of.image.1 });
        let across = Fourier { filters: parts, across, ..how.clone() };
        [how, across].map(|how| Instance::of(how, &[of.image], of.image)).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repeatable picture.
    fn pixels(n: usize) -> Vec<Complex> {
        let at = |i: usize| ((i * 2_654_435_761) % 1009) as f64 / 504.5 - 1.0;
        (0..n).map(|i| [at(i), at(i + 7777)]).collect()
    }

    #[test]
    fn roots_are_on_the_circle_to_the_last_place() {
        for n in [16, 64, 512] {
            let roots = Roots::of(n);
            for k in 0..n {
                let [re, im] = roots.at(k);
                let angle = -2.0 * std::f64::consts::PI * k as f64 / n as f64;
                assert!((re - angle.cos()).abs() < 1e-15 && (im - angle.sin()).abs() < 1e-15, "{k} of {n}");
                assert_eq!(roots.at((k + n / 4) % n), [im, -re], "{k} of {n}: quarter turns are exact");
            }
        }
    }

    #[test]
    fn transforms_are_those_of_the_definition_and_invert_each_other() {
        for n in [2, 4, 8, 16, 32, 128, 512] {
            let roots = Roots::of(n);
            let line = pixels(n);
            let mut got = line.clone();
            roots.forth(&mut got);
            // The frequency at each position: quarters of quarters, of each half if there is one.
            let mut order = vec![0];
            let mut m = n;
            let mut by = 1;
            while m > 1 {
                let radix = if m.ilog2() % 2 == 1 { 2 } else { 4 };
                order = order.iter().flat_map(|k| (0..radix).map(move |r| k + r * by)).collect();
                (m, by) = (m / radix, by * radix);
            }
            for (place, k) in order.into_iter().enumerate() {
                let want = (0..n).fold([0.0; 2], |all, i| sum(all, product(line[i], roots.at(i * k % n))));
                let off = (got[place][0] - want[0]).abs().max((got[place][1] - want[1]).abs());
                assert!(off < 1e-12, "{place} of {n}: {:?}, {want:?}", got[place]);
            }
            roots.back(&mut got);
            let n = n as f64;
            let off = got.iter().zip(&line).map(|(a, b)| (a[0] / n - b[0]).abs().max((a[1] / n - b[1]).abs()));
            assert!(off.fold(0.0, f64::max) < 1e-14);
        }
    }

    #[test]
    fn a_pair_of_tiles_responds_like_two_filtered_images() {
        let taps: Vec<f64> = pixels(35).iter().map(|t| t[0]).collect();
        let sparse = Filter::sparse([(-2, 0), (3, -4), (3, -4), (0, 1)], [1.0, 2.0, -0.5, 3.0]);
        for filter in [Filter::dense(5, 7, taps), sparse, Filter::column([1.0, -2.0])] {
            let op = Fourier::of([filter.clone()], Border::Wrap, [16, 32]);
            let (tile, [down, across], reach) = (pixels(16 * 32), op.step(), op.reach());
            let mut transform = tile.clone();
            op.forth(&mut transform);
            let got = op.respond(&[(&transform, &op.spectrum(&filter))]);
            let magnitude: f64 = filter.taps().iter().map(|t| t.abs()).sum();
            for (y, x) in (0..down).flat_map(|y| (0..across).map(move |x| (y, x))) {
                let mut want = [0.0; 2];
                for (tap, (dy, dx)) in filter.taps().iter().zip(filter.offsets()) {
                    let at = (y + reach.up).saturating_add_signed(dy) * 32 + (x + reach.left).saturating_add_signed(dx);
                    want = [want[0] + tap * tile[at][0], want[1] + tap * tile[at][1]];
                }
                let off = (got[y * 32 + x][0] - want[0]).abs().max((got[y * 32 + x][1] - want[1]).abs());
                assert!(off <= error(op.tile, 1, DType::F64) * magnitude, "{filter} at {y}, {x}: {off}");
            }
        }
    }

    #[test]
    fn regions_keep_the_places_of_tiles() {
        let filter = Filter::dense(3, 5, vec![1.0; 15]);
        let op = Fourier::of([filter], Border::Wrap, [16, 16]);
        assert_eq!(op.step(), [14, 12]);
        let need = Rect::at(30, 50, 3, 4);
        assert_eq!(op.pairs(need), Rect::at(28, 48, 14, 24));
        let Some(Whole::Fourier(part)) = op.for_region(Rect::at(20, 40, 30, 30)) else { panic!("an origin") };
        assert_eq!(part.origin, [6, 16]);
        assert_eq!(part.pairs(need.seen_from(Rect::at(20, 40, 30, 30))), Rect::at(8, 8, 14, 24));
    }
}
