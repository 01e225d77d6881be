//! The algorithm of a linear filter within a tolerance.
//!
//! A result within `t` differs from the exact one, the sum of products of taps and pixels in real
//! numbers, by at most `t * max|pixel| * sum|taps|`. An algorithm is chosen if its bound, rounding
//! included, is at most `t`, and if it takes fewest operations by a count that is the same on every
//! machine: so a result depends on taps, type, size and `t` only. Where nothing is both, the filter
//! is computed directly, as without a tolerance: then its own rounding, of at most `u` for each of
//! its taps, may exceed `t`.
//!
//! - *Low rank*: a dense filter is a sum of `K` separable ones. What is cut off is summed up tap by
//!   tap, taps as rounded to the type. A pass of `n` fused multiply-adds from +0 has the relative
//!   error `n u / (1 - n u)` of the sum of absolute products, and the sum of the terms adds `K`
//!   roundings: together at most `1.01 u sum over terms of (rows + columns + K) sum|row| sum|column|`,
//!   with `u` half the distance from 1 to the next number.
//! - *Transforms of tiles*: the bound of [`fourier`], and the rounding of the result.
//!
//! Below the smallest normal numbers products are rounded to multiples of the smallest number
//! instead: each adds at most half of it to these bounds.

use std::num::NonZeroUsize;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use lru::LruCache;

use super::low_rank::{OuterProduct, decompose, seems_low};
use crate::ops::fourier::{self, EXTENTS, Fourier};
use crate::ops::neighbourhood::{Filter, FilterLayout};
use horus_base::dtype::DType;
use horus_base::shape::{Border, Shape};

/// An algorithm of a linear filter.
#[derive(Clone, Debug, PartialEq)]
pub enum Algorithm {
    /// Tap by tap, in the canonical order.
    Direct(Filter),
    /// The sum of correlations with a row, then with a column, each with its border mode.
    Sum(Vec<[(Filter, Border); 2]>),
    /// Transforms of tiles.
    Tiles(Fourier),
}

/// The smallest tolerance of a float type: half the distance from 1 to the next number, which
/// rounding a result alone can take.
pub const fn smallest(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => f64::EPSILON / 2.0,
        _ => (f32::EPSILON / 2.0) as f64,
    }
}

/// Cost of a term beside its taps: the passes that it adds, and the sum.
const TERM: f64 = 12.0;

/// Products of bytes that a processor adds in the time of one multiply-add of `f32`, where sums are
/// exact (`docs/performance/cpu.md`).
const OF_BYTES: f64 = 3.0;

/// Sums of taps for which no intermediate value leaves the range of numbers unless pixels nearly do.
const SUMS: std::ops::RangeInclusive<f64> = 1e-9..=1e9;

/// The largest dense filter whose terms are sought.
const DECOMPOSED: usize = 1 << 14;

/// Most algorithms that are remembered.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(1024).unwrap();

/// Everything that an algorithm depends on.
type AlgorithmKey = (Filter, Border, DType, Shape, u64);

/// The algorithm for a filter of pixels of a type, computed in its [linear](DType::linear) type, in
/// images of a shape, within `t`. It is remembered: to decompose a large filter takes longer than to
/// apply it.
pub fn algorithm(filter: &Filter, border: Border, dtype: DType, shape: Shape, t: f64) -> Algorithm {
    static KNOWN: LazyLock<Mutex<LruCache<AlgorithmKey, Algorithm>>> =
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

fn chosen(filter: &Filter, border: Border, pixels: DType, shape: Shape, t: f64) -> Algorithm {
    let dtype = pixels.linear();
    let direct = || Algorithm::Direct(exact(filter, t));
    let sum: f64 = filter.taps().iter().map(|tap| tap.abs()).sum();
    let outside = border.constant().unwrap_or(0.0);
    if !SUMS.contains(&sum) || !outside.is_finite() || outside.abs() > Fourier::largest(dtype) {
        return direct();
    }
    let steps = if filter.is_exact_for(pixels, border) { filter.cost() / OF_BYTES } else { filter.cost() };
    let tiles = tiles(filter, border, dtype, shape, t).filter(|(_, cost)| *cost < steps);
    let most = tiles.as_ref().map_or(steps, |(_, cost)| *cost);
    if let Some(terms) = terms(filter, border, dtype, t, most) {
        return Algorithm::Sum(terms);
    }
    tiles.map_or_else(direct, |(tiles, _)| Algorithm::Tiles(tiles))
}

/// The filter, to be computed directly; plans say why.
pub fn exact(filter: &Filter, t: f64) -> Filter {
    filter.noted(&format!("direct: nothing faster is within {t}").into())
}

/// Tiles of the extent that costs least, and the cost per pixel.
fn tiles(filter: &Filter, border: Border, dtype: DType, shape: Shape, t: f64) -> Option<(Fourier, f64)> {
    let reach = filter.reach();
    if reach.up.max(reach.down).max(reach.left).max(reach.right) >= EXTENTS[1] {
        return None;
    }
    let extents = || (EXTENTS[0].ilog2()..=EXTENTS[1].ilog2()).map(|k| 1 << k);
    let rounding = if dtype == DType::F64 { 0.0 } else { smallest(dtype) };
    // The result is rounded to its type, in `f64` too.
    let bound = |tile| (fourier::error(tile) + rounding) * (1.0 + 1e-6) + f64::EPSILON;
    let mut best: Option<([usize; 2], f64)> = None;
    for tile in extents().flat_map(|height| extents().map(move |width| [height, width])) {
        let [down, across] = fourier::step(tile, reach);
        if down == 0 || across == 0 || bound(tile) > t {
            continue;
        }
        let count = shape.height.div_ceil(down) * shape.width.div_ceil(2 * across) * 2;
        let points = (count * tile[0] * tile[1]) as f64 / (shape.height * shape.width) as f64;
        let cost = points * fourier::cost(tile);
        if best.is_none_or(|(_, least)| cost < least) {
            best = Some((tile, cost));
        }
    }
    let (tile, cost) = best?;
    let filter = filter.noted(&format!("within {:.1e}", bound(tile)).into());
    Some((Fourier { filters: [filter].into(), border, tile, origin: [0, 0] }, cost))
}

/// The terms of a dense filter within `t`, if they cost less than `most`.
fn terms(filter: &Filter, border: Border, dtype: DType, t: f64, most: f64) -> Option<Vec<[(Filter, Border); 2]>> {
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
        // The sums here are rounded, too.
        let bound = (size(&rest) * (1.0 + 1e-9) + sizes * (1.01 * unit * roundings + 1e-12)) / sum;
        if bound <= t {
            let note: Arc<str> = format!("rank {} of {filter}, within {bound:.1e}", kept.len()).into();
            let term = |(row, column): (Vec<f64>, Vec<f64>)| {
                // Rows outside hold the constant throughout, which the first pass multiplies.
                let beyond = border.constant().map_or(border, |v| Border::Constant(v * row.iter().sum::<f64>()));
                let anchored = |height, width, taps| Filter::anchored((height, width), (anchor_y, anchor_x), taps);
                let (row, column) = (anchored(1, width, row), anchored(height, 1, column));
                [(row.noted(&note), border), (column.noted(&note), beyond)]
            };
            return Some(kept.into_iter().map(term).collect());
        }
    }
    None
}
