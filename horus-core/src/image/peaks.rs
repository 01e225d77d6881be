//! Local maxima.

use std::cmp::Ordering;

use super::{Image, Value};
use crate::dtype::Pixel;
use crate::error::{Call, Error};
use crate::filters::{Footprint, MAX_RADIUS};
use crate::host::elements::elements;
use crate::ops::components::{Connectivity, MOST_PIXELS};
use crate::shape::{Border, Shape};

/// A mask that is true on local maxima: connected pixels of one value, all of whose other
/// neighbours are lower (scikit-image's `morphology.local_maxima`). Pixels beyond the border do not
/// count. An image of one value has no maxima, and NaN are none.
///
/// `neighbours` also applies across the levels of a volume. Every rank computes the whole image. It is
/// an error if the image has several channels or more than 2^31 - 1 pixels.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let image = Image::from_slice(&session, (1, 8), &[3u8, 1, 4, 4, 1, 5, 5, 6]);
/// let maxima = local_maxima(&image, Connectivity::CORNERS);
/// assert_eq!(maxima.convert::<u8>().to_vec()?, [1, 0, 1, 1, 0, 0, 0, 1]);
/// # Ok::<(), horus_core::error::Error>(())
/// ```
#[track_caller]
pub fn local_maxima<T: Pixel>(image: &Image<T>, neighbours: Connectivity) -> Image<bool> {
    let image = checked(Call::of("local_maxima"), image);
    let around = footprints(neighbours, image.depth());
    let replicated = image.with_border(Border::Replicate);
    let highest = match &around[..] {
        [plane] => replicated.dilate(plane),
        levels => replicated.dilate(levels),
    };
    // Pixels with a higher neighbour grow over pixels of their own value, and do not climb.
    let slope = image.lt(highest).select(&image, T::LOWEST);
    let climbed = slope.reconstruct(&image, neighbours);
    climbed.lt(&image) & image.gt(image.min_value())
}

/// The neighbours and the pixel, a footprint for each level.
fn footprints(neighbours: Connectivity, depth: usize) -> Vec<Footprint> {
    let mut masks = [[false; 9]; 3];
    masks[1][4] = true;
    for [z, y, x] in neighbours.neighbours() {
        masks[(z + 1).cast_unsigned()][(3 * (y + 1) + x + 1).cast_unsigned()] = true;
    }
    let across = depth > 1 && masks[0].contains(&true);
    let levels = if across { &masks[..] } else { &masks[1..2] };
    levels.iter().map(|mask| Footprint::from_mask(3, 3, mask)).collect()
}

/// The places of local maxima, `[level, row, column]`, the highest first, of equal ones in raster
/// order (scikit-image's `feature.peak_local_max`). A peak is not lower than any pixel up to
/// `min_distance` pixels from it along each axis, is higher than `threshold` (by default the lowest
/// pixel), and is at least `border` pixels from the border of the image. Of peaks closer than
/// `min_distance` along each axis, only the first stays. scikit-image excludes a border of
/// `min_distance` by default.
///
/// An image of one value has no peaks, unless it has one pixel, and NaN are none. At a `min_distance`
/// of 0 every pixel above the threshold is a peak. Candidates are copied to the host of every rank,
/// which sorts them. It is an error if the image has several channels, or if `min_distance` is too
/// large for a footprint.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let image = Image::from_slice(&session, (3, 5), &[0u8, 0, 0, 0, 0, 0, 5, 0, 9, 0, 0, 0, 0, 0, 0]);
/// assert_eq!(peak_local_max(&image, 1, None, 1).get()?, [[0, 1, 3], [0, 1, 1]]);
/// assert_eq!(peak_local_max(&image, 2, None, 0).get()?, [[0, 1, 3]]);
/// assert_eq!(peak_local_max(&image, 1, Some(5), 0).get()?, [[0, 1, 3]]);
/// # Ok::<(), horus_core::error::Error>(())
/// ```
#[track_caller]
pub fn peak_local_max<T: Pixel>(
    image: &Image<T>,
    min_distance: usize,
    threshold: Option<T>,
    border: usize,
) -> Value<Vec<[usize; 3]>> {
    let (call, shape) = (Call::of("peak_local_max"), image.shape());
    let checked = checked(call, image);
    let image = checked.attempt(shape, || match min_distance > MAX_RADIUS {
        true => Err(Error::parameter(call, format!("the distance is {min_distance}; the limit is {MAX_RADIUS}"))),
        false => Ok(checked.plain()),
    });
    let low = image.min_value();
    let mut peaks = match threshold {
        Some(threshold) => image.gt(threshold),
        None => image.gt(&low),
    };
    if min_distance > 0 && shape.len() > 1 {
        let varied = low.to_image().lt(image.max_value());
        peaks = peaks & image.eq(image.with_border(Border::Replicate).dilate(2 * min_distance + 1)) & varied;
    }
    // No peak is the lowest number of its type, because peaks are above a threshold.
    let heights = peaks.select(&image, T::LOWEST);
    Value::of(&heights, move |b| highest_first(elements::<T>(b.bytes()), shape, min_distance, border))
}

/// The image, or the error of an image of several channels or too many pixels.
fn checked<T: Pixel>(call: Call, image: &Image<T>) -> Image<T> {
    let shape = image.shape();
    image.attempt(shape, || {
        let message = if shape.channels != 1 {
            format!("the image has {} channels; take one (`channel`)", shape.channels)
        } else if shape.len() > MOST_PIXELS {
            format!("an image of {shape} has {} pixels; the limit is {MOST_PIXELS}", shape.len())
        } else {
            return Ok(image.plain());
        };
        Err(Error::parameter(call, message))
    })
}

/// The places of candidates away from the border, sorted and apart from each other.
fn highest_first<T: Pixel>(heights: &[T], shape: Shape, distance: usize, border: usize) -> Vec<[usize; 3]> {
    let sizes = [shape.depth, shape.height, shape.width];
    // An image has no border along its levels.
    let borders = [if shape.depth > 1 { border } else { 0 }, border, border];
    let place = |at: usize| [at / (sizes[1] * sizes[2]), at / sizes[2] % sizes[1], at % sizes[2]];
    let within = |at: [usize; 3]| (0..3).all(|k| at[k] >= borders[k] && sizes[k] - at[k] > borders[k]);
    let candidates = heights.iter().enumerate().filter(|(_, height)| **height > T::LOWEST);
    let mut peaks: Vec<(f64, [usize; 3])> =
        candidates.map(|(at, height)| (height.to_f64(), place(at))).filter(|(_, at)| within(*at)).collect();
    peaks.sort_by(|a, b| b.0.partial_cmp(&a.0).unwrap_or(Ordering::Equal));
    let peaks = peaks.into_iter().map(|(_, at)| at);
    if distance <= 1 { peaks.collect() } else { apart(peaks, sizes, distance) }
}

/// Places that are at least `distance` pixels, along some axis, from each place before them.
fn apart(places: impl Iterator<Item = [usize; 3]>, sizes: [usize; 3], distance: usize) -> Vec<[usize; 3]> {
    let mut taken = vec![false; sizes.iter().product()];
    let row = |z: usize, y: usize| (z * sizes[1] + y) * sizes[2];
    let mut kept = Vec::new();
    for at @ [z, y, x] in places {
        if taken[row(z, y) + x] {
            continue;
        }
        kept.push(at);
        let near = |k: usize| at[k].saturating_sub(distance - 1)..at[k].saturating_add(distance).min(sizes[k]);
        for z in near(0) {
            near(1).for_each(|y| taken[row(z, y)..][near(2)].fill(true));
        }
    }
    kept
}
