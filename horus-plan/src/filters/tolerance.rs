//! The algorithm of a linear filter within a tolerance.
//!
//! A result within `t` differs from the exact sum of products of taps and pixels by at most `t * max|pixel| *
//! sum|taps|`. An algorithm is admitted if its bound, rounding included, is at most `t`. Of the admitted, the
//! one with the fewest operations is chosen, by a count that is the same on every machine: a result depends
//! on taps, type, size and `t` only. If none is admitted, the filter is computed directly, as without a
//! tolerance.
//!
//! Bounds and proofs: `docs/design/tolerance.md`.

use std::num::NonZeroUsize;
use std::slice;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use lru::LruCache;

use super::low_rank::{OuterProduct, decompose, seems_low};
use crate::ops::fourier::{self, Across, EXTENTS, Fourier};
use crate::ops::neighbourhood::{Filter, FilterLayout, Reach};
use horus_base::dtype::DType;
use horus_base::shape::{Border, Shape};

/// An algorithm of a linear filter.
#[derive(Clone, Debug, PartialEq)]
pub enum Algorithm {
    /// Tap by tap, in the canonical order.
    Direct(Filter),
    /// The sum of correlations with a row and then with a column, each with its border mode.
    Sum(Vec<Term>),
    /// Transforms of tiles.
    Tiles(Fourier),
}

/// The smallest tolerance of a float type: half the distance from 1 to the next number, the possible error of
/// rounding a result.
pub const fn smallest(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => f64::EPSILON / 2.0,
        _ => (f32::EPSILON / 2.0) as f64,
    }
}

/// Additional cost of a term: the filters that it adds, and the sum.
const TERM: f64 = 12.0;

/// Products of bytes that a processor adds in the time of one multiply-add of `f32`, where sums are exact
/// (`docs/performance/cpu.md`).
const OF_BYTES: f64 = 3.0;

/// Cost of transforms across levels that are stored in single precision, compared with double: between 1 of a CPU and .72
/// of a GPU (`docs/performance/gpu.md`).
const SINGLE: f64 = 0.8;

/// Sums of taps for which no intermediate value leaves the range of numbers unless the pixels nearly do.
const SUMS: std::ops::RangeInclusive<f64> = 1e-9..=1e9;

/// Number of taps of the largest dense filter that is decomposed.
const DECOMPOSED: usize = 1 << 14;

/// Maximum number of cached algorithms.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(1024).unwrap();

/// The parameters that determine an algorithm.
type AlgorithmKey = (Filter, Border, DType, Shape, u64);

/// An algorithm, and its cost per pixel.
type Choice = (Algorithm, f64);

/// Chooses the algorithm for a filter of images of this type and shape, within `t`, and tells its cost; it is computed in
/// the [linear](DType::linear) type. Choices are cached, because decomposing a large filter takes longer than
/// applying it.
pub fn algorithm(filter: &Filter, border: Border, dtype: DType, shape: Shape, t: f64) -> Choice {
    static KNOWN: LazyLock<Mutex<LruCache<AlgorithmKey, Choice>>> =
        LazyLock::new(|| Mutex::new(LruCache::new(REMEMBERED)));
    let asked = (filter.clone(), border, dtype, shape, t.to_bits());
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known().get(&asked) {
        return known.clone();
    }
    let found = chosen(filter, border, dtype, shape, t);
    known().put(asked, found.clone());
    found
}

/// The transforms of tiles for a filter of a volume within `t`, if they cost less than the filters of the levels one by
/// one. A filter without taps stands for a level that is not read; `before` filters read levels before the pixel's.
pub fn across(
    filters: &[Filter],
    before: usize,
    border: Border,
    pixels: DType,
    shape: Shape,
    t: f64,
) -> Option<Fourier> {
    let taps = || filters.iter().flat_map(|filter| filter.taps());
    if filters.len() < 2 || filters.len() > EXTENTS[1] || !is_transformable(taps(), border, pixels.linear()) {
        return None;
    }
    let read = filters.iter().filter(|filter| !filter.taps().is_empty());
    let most: f64 = read.map(|filter| algorithm(filter, border, pixels, shape, t).1).sum();
    let dtype = pixels.linear();
    let of = |stored| tiles(filters, Some(Across { before, stored }), border, dtype, shape, t);
    let all = [of(dtype), of(DType::F64)].into_iter().flatten();
    let cheaper = all.min_by(|a, b| weighed(a).total_cmp(&weighed(b)));
    cheaper.filter(|(_, cost)| *cost < most).map(|(tiles, _)| tiles)
}

/// The cost by which tiles are compared: a GPU moves half as many bytes of single precision.
fn weighed((tiles, cost): &(Fourier, f64)) -> f64 {
    if tiles.stored() == DType::F32 { SINGLE * cost } else { *cost }
}

/// Returns `true` if transforms of pixels of this type, border and taps stay in the range of numbers.
fn is_transformable<'a>(taps: impl Iterator<Item = &'a f64>, border: Border, dtype: DType) -> bool {
    let outside = border.constant().unwrap_or(0.0);
    let sum = taps.map(|tap| tap.abs()).sum();
    SUMS.contains(&sum) && outside.is_finite() && outside.abs() <= Fourier::largest(dtype, DType::F64)
}

fn chosen(filter: &Filter, border: Border, pixels: DType, shape: Shape, t: f64) -> Choice {
    let dtype = pixels.linear();
    let steps = if filter.is_exact_for(pixels, border) { filter.cost() / OF_BYTES } else { filter.cost() };
    let direct = || (Algorithm::Direct(exact(filter, t)), steps);
    if !is_transformable(filter.taps().iter(), border, dtype) {
        return direct();
    }
    let tiles = tiles(slice::from_ref(filter), None, border, dtype, shape, t).filter(|(_, cost)| *cost < steps);
    let most = tiles.as_ref().map_or(steps, |(_, cost)| *cost);
    if let Some((terms, cost)) = terms(filter, border, dtype, t, most) {
        return (Algorithm::Sum(terms), cost);
    }
    tiles.map_or_else(direct, |(tiles, cost)| (Algorithm::Tiles(tiles), cost))
}

/// The filter with a note for plans, to be computed directly.
pub fn exact(filter: &Filter, t: f64) -> Filter {
    filter.noted(&format!("direct: nothing faster is within {t}").into())
}

/// The tiles that cost least, and their cost per pixel. With `across`, the responses to the filters are added.
fn tiles(
    filters: &[Filter],
    across: Option<Across>,
    border: Border,
    dtype: DType,
    shape: Shape,
    t: f64,
) -> Option<(Fourier, f64)> {
    let reach = filters.iter().fold(Reach::NONE, |reach, filter| reach.max(filter.reach()));
    if reach.up.max(reach.down).max(reach.left).max(reach.right) >= EXTENTS[1] {
        return None;
    }
    let extents = || (EXTENTS[0].ilog2()..=EXTENTS[1].ilog2()).map(|k| 1 << k);
    let rounding = if dtype == DType::F64 { 0.0 } else { smallest(dtype) };
    // The result is rounded to its type, in `f64` too.
    let stored = across.map_or(DType::F64, |across| across.stored);
    let added = filters.len();
    let bound = |tile| (fourier::error(tile, added, stored) + rounding) * (1.0 + 1e-6) + f64::EPSILON;
    let mut best: Option<([usize; 2], f64)> = None;
    for tile in extents().flat_map(|height| extents().map(move |width| [height, width])) {
        let [down, across] = fourier::step(tile, reach);
        // With less memory, levels would be transformed many times.
        let too_large = added > 1 && fourier::held(tile) < 2 * added;
        if down == 0 || across == 0 || bound(tile) > t || too_large {
            continue;
        }
        let count = shape.height.div_ceil(down) * shape.width.div_ceil(2 * across) * 2;
        let points = (count * tile[0] * tile[1]) as f64 / (shape.height * shape.width) as f64;
        let cost = points * fourier::cost(tile, added, fourier::transforms(tile, shape.depth, added));
        if best.is_none_or(|(_, least)| cost < least) {
            best = Some((tile, cost));
        }
    }
    let (tile, cost) = best?;
    let note: Arc<str> = format!("within {:.1e}", bound(tile)).into();
    let filters = filters.iter().map(|filter| filter.noted(&note)).collect();
    Some((Fourier { filters, across, border, tile, origin: [0, 0] }, cost))
}

/// Filters, each with its border mode, along rows and along columns.
type Term = [(Filter, Border); 2];

/// The terms of a dense filter within `t`, if they cost less than `most`, and their cost.
fn terms(filter: &Filter, border: Border, dtype: DType, t: f64, most: f64) -> Option<(Vec<Term>, f64)> {
    let &FilterLayout::Dense { height, width, anchor_y, anchor_x } = filter.layout() else { return None };
    let taps = filter.taps();
    let each = (height + width) as f64 + TERM;
    let count = (most / each).ceil() as usize - 1;
    let sum: f64 = taps.iter().map(|tap| tap.abs()).sum();
    if height == 1 || width == 1 || count == 0 || taps.len() > DECOMPOSED || !seems_low(taps, width, count + 2, t * sum)
    {
        return None;
    }
    let unit = smallest(dtype);
    let rounded = |tap: f64| if dtype == DType::F64 { tap } else { f64::from(tap as f32) };
    let size = |taps: &[f64]| taps.iter().map(|tap| tap.abs()).sum::<f64>();
    let mut rest = taps.to_vec();
    let (mut kept, mut sizes) = (Vec::new(), 0.0);
    for OuterProduct { mut row, mut column } in decompose(taps, height, width).into_iter().take(count) {
        row.iter_mut().chain(&mut column).for_each(|tap| *tap = rounded(*tap));
        for (rest, column) in rest.chunks_mut(width).zip(&column) {
            rest.iter_mut().zip(&row).for_each(|(rest, row)| *rest -= column * row);
        }
        sizes += size(&row) * size(&column);
        kept.push((row, column));
        let roundings = (height + width + kept.len()) as f64;
        // The sums here are also rounded.
        let bound = (size(&rest) * (1.0 + 1e-9) + sizes * (1.01 * unit * roundings + 1e-12)) / sum;
        if bound <= t {
            let note: Arc<str> = format!("rank {} of {filter}, within {bound:.1e}", kept.len()).into();
            let term = |(row, column): (Vec<f64>, Vec<f64>)| {
                // Rows outside consist of the constant, which the first filter multiplies.
                let beyond = border.constant().map_or(border, |v| Border::Constant(v * row.iter().sum::<f64>()));
                let anchored = |height, width, taps| Filter::anchored((height, width), (anchor_y, anchor_x), taps);
                let (row, column) = (anchored(1, width, row), anchored(height, 1, column));
                [(row.noted(&note), border), (column.noted(&note), beyond)]
            };
            let cost = kept.len() as f64 * each;
            return Some((kept.into_iter().map(term).collect(), cost));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_are_transformed_where_that_costs_less() {
        let of = |levels: usize, n: usize, depth: usize, t: f64| {
            let taps = |k: usize| (0..n * n).map(|i| ((i * i + 7 * k) % 11) as f64 - 4.5).collect::<Vec<_>>();
            let filters: Vec<Filter> = (0..levels).map(|k| Filter::dense(n, n, taps(k))).collect();
            across(&filters, levels / 2, Border::Reflect, DType::F32, Shape::volume(depth, 256, 256, 1), t)
        };
        // A larger tolerance admits single precision, which smaller tiles alone would not be worth.
        for t in [1e-6, 1e-5, 1.5e-5, 1e-4, 1e-3] {
            let tiles = of(5, 25, 32, t).expect("transforms");
            assert!(tiles.tile[0] * tiles.tile[1] >= 64 * 64, "{t}: {:?}", tiles.tile);
            assert_eq!(tiles.stored() == DType::F32, t >= 1e-4, "{t}");
        }
        assert_eq!(of(5, 25, 32, 5.9e-8), None, "nothing but the exact sum is so near");
        // Levels that are read by few results are transformed for few.
        assert_eq!(of(31, 7, 1, 1e-4), None);
        assert_eq!(of(2, 3, 32, 1e-3), None);
        // A thread holds twice as many tiles as levels are read.
        let large = of(61, 61, 64, 1e-6).expect("transforms");
        assert!(fourier::held(large.tile) >= 122, "{:?}", large.tile);
    }
}
