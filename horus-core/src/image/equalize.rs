//! Equalized histograms, of the whole image and of tiles.

use super::{Image, one_plane};
use crate::dtype::Pixel;
use crate::error::{Call, Error, Result, Site};
use crate::ops::labels::MOST_PIXELS;
use crate::ops::reduce::RowReduce;
use crate::ops::sampling::Sampling;
use crate::position_map::Relation;
use crate::shape::{Axis, Border, Shape};

/// The largest number of bins.
const MOST_BINS: usize = 1 << 24;

/// Histogram equalization: each pixel becomes the share of pixels that are not brighter, from 0 to 1,
/// of all levels and channels together (scikit-image's `exposure.equalize_hist`). Images of `f64`
/// yield `f64`, all others `f32`.
///
/// Each value of 8- and 16-bit integers is counted, and `bins` is ignored. Floats are counted in
/// `bins` equal bins from the smallest to the largest pixel, and shares are interpolated between the
/// centres of bins. A NaN is not counted and stays NaN. Infinite pixels make the range infinite, and
/// all pixels NaN. It is an error if `bins` is 0 or more than 2^24, or if the pixels are 32-bit
/// integers: convert them.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let image = Image::from_slice(&session, (1, 4), &[7u8, 200, 7, 9]);
/// assert_eq!(equalize_hist(&image, 256).to_vec()?, [0.5, 1.0, 0.5, 0.75]);
/// let floats = Image::from_slice(&session, (1, 4), &[0.0, 0.25, 0.5, 1.0]);
/// assert_eq!(equalize_hist(&floats, 2).to_vec()?, [0.5, 0.5, 0.75, 1.0]);
/// # Ok::<(), horus_core::error::Error>(())
/// ```
#[doc(alias("equalizeHist"))]
#[track_caller]
pub fn equalize_hist<T: Pixel>(image: &Image<T>, bins: usize) -> Image<T::Linear> {
    let call @ Call { site, .. } = Call::of("equalize_hist");
    let refused = |message| image.attempt(image.shape(), || Err(Error::parameter(call, message)));
    if T::DTYPE.is_float() {
        return match (1..=MOST_BINS).contains(&bins) {
            true => {
                let shares = of_floats(image, bins, site).converted::<T::Linear>(site);
                shares.related(call.op, &[(image.handle(), Relation::identity())])
            }
            false => refused(format!("requested {bins} bins; the range is 1 to {MOST_BINS}")),
        };
    }
    if T::DTYPE.size() > 2 {
        return refused(format!("the pixels are {}; convert them to 16 bits or to floats", T::DTYPE));
    }
    let share = image.counts_of_levels(site).running(site) / image.shape().len() as f64;
    image.looked_up(&share.converted::<T::Linear>(site), 1 << (8 * T::DTYPE.size()), site)
}

#[track_caller]
fn of_floats<T: Pixel>(image: &Image<T>, bins: usize, site: Site) -> Image<f64> {
    let low = image.reduced::<T>(RowReduce::Min, site).converted::<f64>(site);
    let high = image.reduced::<T>(RowReduce::Max, site).converted::<f64>(site);
    // A single value is in the middle of a range of 1.
    let alike = low.ge(&high);
    let from = alike.select(&low - 0.5, &low);
    let range = alike.select(1.0, high - &low);
    let parts = (image.converted::<f64>(site) - from) / range;
    let counts = parts.counts(bins, (0.0, 1.0), site).running(site);
    let share = &counts / counts.reduced::<f64>(RowReduce::Max, site);
    let share = share.with_border(Border::Replicate);
    // Positions count from the centre of the first bin.
    let mut channels = (parts * bins as f64 - 0.5).unstack(Axis::Channels);
    for channel in &mut channels {
        let first = Image::zeros(channel.session(), channel.shape());
        // A volume has positions along three axes.
        *channel = match channel.depth() {
            1 => share.remap([&first, channel], Sampling::Linear),
            _ => share.remap([&first, &first, channel], Sampling::Linear),
        };
    }
    Image::stack(image.session(), channels, Axis::Channels)
}

/// Grey levels of the adaptive equalization.
const LEVELS: usize = 1 << 14;

/// Adaptive histogram equalization with limited contrast: Zuiderveld, "Contrast limited adaptive
/// histogram equalization" (Graphics Gems IV, 1994), as scikit-image's
/// `exposure.equalize_adapthist`. Pixels become 0 to 1, in `f64` for images of `f64`, else in `f32`.
///
/// The image is divided into tiles of `tile` rows and columns, by default an eighth of the image, each
/// with a histogram of `bins` bins over the range of the whole image. Tiles that extend beyond the
/// lower and the right border contain mirrored pixels. If a bin has more than the share `limit` of a
/// tile's pixels, the rest is distributed over all bins; 0 sets no limit. Each pixel is equalized by
/// the histograms of the four tiles around it, interpolated linearly. The result is stretched to the
/// range 0 to 1.
///
/// The image has unsigned 8- or 16-bit integers, or floats from -1 to 1, of which those below 0 count
/// as 0. The range of its pixels and the histograms are read at the call, on every rank, so all ranks
/// call it. Equalization itself is recorded.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// // A faint pattern, beside a bright half.
/// let image = Image::from_fn(&session, 64, 64, |y, x| ((y + x) % 8 * 2 + x / 32 * 200) as u8);
/// assert_eq!(image.pixel((8, 7))? - image.pixel((8, 0))?, 14);
/// let clear = equalize_adapthist(&image, Some((16, 16)), 0.1, 256)?;
/// assert!(clear.pixel((8, 7))? - clear.pixel((8, 0))? > 0.7);
/// # Ok::<(), horus_core::error::Error>(())
/// ```
///
/// # Errors
/// If the image has several channels or levels, another type, or floats outside of the range; if a
/// tile has no pixels, `limit` is negative or not finite, or `bins` is not 1 to 2^14; if all
/// histograms have more than 2^24 bins; also if the evaluation fails.
#[doc(alias("createCLAHE"))]
#[track_caller]
pub fn equalize_adapthist<T: Pixel>(
    image: &Image<T>,
    tile: Option<(usize, usize)>,
    limit: f64,
    bins: usize,
) -> Result<Image<T::Linear>> {
    Ok(adapted(image, tile, limit, bins)?.convert())
}

/// [`equalize_adapthist`] in `f64`.
#[track_caller]
pub(super) fn adapted<T: Pixel>(
    image: &Image<T>,
    tile: Option<(usize, usize)>,
    limit: f64,
    bins: usize,
) -> Result<Image<f64>> {
    let call @ Call { site, .. } = Call::of("equalize_adapthist");
    image.look()?;
    let Shape { height, width, .. } = image.shape();
    let size = tile.unwrap_or(((height / 8).max(1), (width / 8).max(1)));
    let tiles = Tiling { size: [size.0, size.1], extent: [height, width], bins };
    tiles.check::<T>(call, image.shape(), limit).or_else(|error| image.session().refused(error))?;
    let binned = match T::DTYPE.is_float() {
        true => {
            let (low, high) = image.session().get_all((image.min_value(), image.max_value()))?;
            if !(low >= T::from_f64(-1.0) && high <= T::ONE) {
                let message = format!("pixels from {low} to {high}; floats must be between -1 and 1");
                return image.session().refused(Error::parameter(call, message));
            }
            let most = T::from_f64(f64::from(u16::MAX));
            tiles.binned(&(image.plain() * most).clamp(T::ZERO, most).convert::<u16>(), site)?
        }
        false => tiles.binned(image, site)?,
    };
    let levels = tiles.levels(&binned, limit)?;
    let result = tiles.between(&binned, &levels);
    let (low, high) = (result.min_value(), result.max_value());
    let range = (high - &low).to_image();
    let varied = range.gt(0.0);
    // As in scikit-image, an image of one level is white unless it is black.
    let stretched = varied.select((&result - low) / varied.select(range, 1.0), result.clamp(0.0, 1.0));
    Ok(stretched.related(call.op, &[(image.handle(), Relation::identity())]))
}

/// The tiles of an image, and their histograms.
struct Tiling {
    /// Rows and columns of a tile.
    size: [usize; 2],
    /// Rows and columns of the image.
    extent: [usize; 2],
    bins: usize,
}

impl Tiling {
    fn check<T: Pixel>(&self, call: Call, shape: Shape, limit: f64) -> Result<()> {
        let Tiling { size: [height, width], bins, .. } = *self;
        let wrong = |message| Err(Error::parameter(call, message));
        one_plane(call, shape)?;
        if !T::DTYPE.is_float() && (T::DTYPE.is_signed() || T::DTYPE.size() > 2) {
            return wrong(format!("the pixels are {}; convert them to u8, u16 or floats", T::DTYPE));
        }
        if height == 0 || width == 0 {
            return wrong(format!("tiles of {height}x{width} pixels are empty"));
        }
        if !(limit >= 0.0 && limit.is_finite()) {
            return wrong(format!("the limit is {limit}; it must be finite and not negative"));
        }
        if !(1..=LEVELS).contains(&bins) {
            return wrong(format!("requested {bins} bins; the range is 1 to {LEVELS}"));
        }
        let [down, across] = self.counts();
        let all = down.saturating_mul(across);
        if all.saturating_mul(bins) > MOST_BINS {
            return wrong(format!("{all} tiles of {bins} bins; the limit is {MOST_BINS} bins in all"));
        }
        if all.saturating_mul(height.saturating_mul(width)) > MOST_PIXELS {
            return wrong(format!("{all} tiles of {height}x{width} pixels; the limit is 2^28 pixels in all"));
        }
        Ok(())
    }

    /// Numbers of tiles.
    fn counts(&self) -> [usize; 2] {
        [0, 1].map(|k| self.extent[k].div_ceil(self.size[k]))
    }

    /// The bin of each pixel, after the image is stretched over all levels.
    fn binned<T: Pixel>(&self, image: &Image<T>, site: Site) -> Result<Image<u16>> {
        let (low, high) = image.session().get_all((image.min_value(), image.max_value()))?;
        let (low, high, last) = (low.to_f64(), high.to_f64(), (LEVELS - 1) as f64);
        let most = T::HIGHEST.to_f64();
        let level = |value: f64| match high > low {
            true => ((value.clamp(low, high) - low) / (high - low) * last).round_ties_even(),
            // An image of one value is clipped to the levels, as 16-bit pixels.
            false => (value * (f64::from(u16::MAX) / most)).min(last),
        };
        let width = 1 + LEVELS / self.bins;
        let bins: Vec<u16> = (0..=most as usize).map(|value| (level(value as f64) as usize / width) as u16).collect();
        Ok(image.entries(&bins, bins.len(), site))
    }

    /// The equalized level of each bin, tile by tile.
    #[track_caller]
    fn levels(&self, binned: &Image<u16>, limit: f64) -> Result<Vec<Vec<f32>>> {
        let ([down, across], [height, width]) = (self.counts(), self.size);
        let beyond = [down * height - self.extent[0], across * width - self.extent[1]];
        // Pixels are mirrored.
        let padded = match beyond {
            [0, 0] => binned.plain(),
            [below, right] => binned.plain().pad(0, below, 0, right),
        };
        let row = (place(&padded, Axis::Rows) / height as f64).floor();
        let column = (place(&padded, Axis::Columns) / width as f64).floor();
        let labels = (row * across as f64 + column).convert::<i32>();
        let range = (-0.5, self.bins as f64 - 0.5);
        let counts = padded.by_label(&labels, down * across).histogram(self.bins, range.0, range.1).get()?;
        let pixels = height * width;
        let most = if limit > 0.0 { ((limit * pixels as f64) as u64).max(1) } else { pixels as u64 };
        let (last, factor) = ((LEVELS - 1) as f64, (LEVELS - 1) as f64 / pixels as f64);
        let equalized = |mut counts: Vec<u64>| {
            clip(&mut counts, most);
            let mut sum = 0;
            let mut level = |count| {
                sum += count;
                (sum as f64 * factor).floor().min(last) as f32
            };
            counts.into_iter().map(&mut level).collect()
        };
        Ok(counts.into_iter().map(equalized).collect())
    }

    /// The level of each pixel's bin, interpolated between the four tiles around the pixel. As in
    /// scikit-image, products of `f64` are added in `f32`, and fractions are cut off.
    ///
    /// The levels are an image with a row for each row of tiles. Its columns are bins, and within a
    /// bin the tiles of a row. The outermost tiles occur twice.
    #[track_caller]
    fn between(&self, binned: &Image<u16>, levels: &[Vec<f32>]) -> Image<f64> {
        let [down, across] = self.counts();
        let row = across + 2;
        let nearest = |k: usize, count: usize| k.clamp(1, count) - 1;
        let table = Image::from_fn(binned.session(), down + 2, self.bins * row, |y, x| {
            levels[nearest(y, down) * across + nearest(x % row, across)][x / row]
        });
        let (y, down) = tile_and_share(binned, Axis::Rows, self.size[0]);
        let (x, along) = tile_and_share(binned, Axis::Columns, self.size[1]);
        let first = binned.convert::<f64>() * row as f64 + x;
        let mut sum = None;
        for (k, down) in down.iter().enumerate() {
            for (l, along) in along.iter().enumerate() {
                let level = table.remap([&(&y + k as f64), &(&first + l as f64)], Sampling::Nearest);
                let part = (level.convert::<f64>() * (down * along)).convert::<f32>();
                sum = Some(match sum {
                    None => part,
                    Some(sum) => sum + part,
                });
            }
        }
        sum.unwrap_or_else(|| binned.convert()).floor().convert()
    }
}

/// The row or column of each pixel.
#[track_caller]
fn place<T: Pixel>(image: &Image<T>, axis: Axis) -> Image<f64> {
    Image::index(image.session(), image.shape(), axis)
}

/// The last tile, counted from 1, whose middle the pixel has reached, and the shares of this tile and
/// the next.
#[track_caller]
fn tile_and_share<T: Pixel>(image: &Image<T>, axis: Axis, size: usize) -> (Image<f64>, [Image<f64>; 2]) {
    let places = place(image, axis) + (size / 2) as f64;
    let tile = (&places / size as f64).floor();
    let part = (places - &tile * size as f64) / size as f64;
    (tile, [1.0 - &part, part])
}

/// Limits the counts of a histogram: the rest is distributed to all bins equally, then by ones to bins
/// at equal distances.
fn clip(counts: &mut [u64], limit: u64) {
    let mut rest: u64 = counts.iter().map(|count| count.saturating_sub(limit)).sum();
    counts.iter_mut().for_each(|count| *count = (*count).min(limit));
    let each = rest / counts.len() as u64;
    let upper = limit.saturating_sub(each);
    for count in counts.iter_mut().filter(|count| **count < upper) {
        *count += each;
        rest -= each;
    }
    // As in scikit-image, also bins that have just been raised, even by more than the rest.
    let mut rest = rest.cast_signed();
    for count in counts.iter_mut().filter(|count| (upper..limit).contains(*count)) {
        rest -= (limit - *count).cast_signed();
        *count = limit;
    }
    while rest > 0 {
        let before = rest;
        for first in 0..counts.len() {
            let under = counts.iter().filter(|count| **count < limit).count();
            let step = (under / rest as usize).max(1);
            for count in counts[first..].iter_mut().step_by(step).filter(|count| **count < limit) {
                *count += 1;
                rest -= 1;
            }
            if rest <= 0 {
                break;
            }
        }
        if rest == before {
            break;
        }
    }
}
