//! Samples at positions given by the pixels of other images.

use super::describe::{OperationGroup, Pattern, describe, description};
use super::footprint::{Access, InputRead, Rect};
use super::geometric::{Interpolation, cubic_weights};
use super::operation::{
    Family, ImageExtent, ImageOperation, Instance, LaunchEffort, SampleImages, SampleOperations, ensure, stays,
};
use horus_base::dtype::{Float, Scalar};
use horus_base::position_map::PositionMap;
use horus_base::shape::{Border, Shape};

describe! {
    REMAP = description("remap", OperationGroup::Geometry, Pattern::Geometric, "Samples at positions that images give; also by B-splines")
        .elsewhere(&["ndi.map_coordinates", "cv.remap", "imageproc::geometric_transformations::warp_with"])
        .differs("rows and columns are two images; border modes as everywhere; `prefilter=False`");
    SPLINE_COEFFICIENTS = description("spline_coefficients", OperationGroup::Geometry, Pattern::Neighbourhood, "What `remap` by B-splines reads")
        .elsewhere(&["ndi.spline_filter", "ndi.spline_filter1d"])
        .differs("along axes; a filter of finite length");
}

/// Sampling at a position given for each pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sampling {
    /// Same as [`Interpolation::Nearest`]: the nearest pixel, halves round up.
    Nearest,
    /// Same as [`Interpolation::Bilinear`]; in volumes also linear along the levels.
    Linear,
    /// Same as [`Interpolation::Bicubic`].
    Cubic,
    /// A B-spline of order 2 over an image of coefficients (`Image::spline_coefficients`); smooths pixels.
    Spline2,
    /// A B-spline of order 3.
    Spline3,
    /// A B-spline of order 4.
    Spline4,
    /// A B-spline of order 5.
    Spline5,
}

/// Maximum number of pixels per axis under a sample.
pub const MOST_TAPS: usize = 6;
/// Positions are limited to this distance, so that they fit in 32 bits. Images have at most 2^30 rows and columns.
pub const FARTHEST: f64 = (1u32 << 30) as f64;

impl From<Interpolation> for Sampling {
    fn from(interpolation: Interpolation) -> Sampling {
        match interpolation {
            Interpolation::Nearest => Sampling::Nearest,
            Interpolation::Bilinear => Sampling::Linear,
            Interpolation::Bicubic => Sampling::Cubic,
        }
    }
}

/// The weights of the pixels under a B-spline: polynomials of the fraction (highest power first) and their common
/// divisor.
pub type Pieces = (&'static [&'static [f64]], f64);
const SPLINE2: Pieces = (&[&[4.0, -4.0, 1.0], &[-8.0, 0.0, 6.0], &[4.0, 4.0, 1.0]], 8.0);
const SPLINE3: Pieces =
    (&[&[-1.0, 3.0, -3.0, 1.0], &[3.0, -6.0, 0.0, 4.0], &[-3.0, 3.0, 3.0, 1.0], &[1.0, 0.0, 0.0, 0.0]], 6.0);
const SPLINE4: Pieces = (
    &[
        &[16.0, -32.0, 24.0, -8.0, 1.0],
        &[-64.0, 64.0, 96.0, -176.0, 76.0],
        &[96.0, 0.0, -240.0, 0.0, 230.0],
        &[-64.0, -64.0, 96.0, 176.0, 76.0],
        &[16.0, 32.0, 24.0, 8.0, 1.0],
    ],
    384.0,
);
const SPLINE5: Pieces = (
    &[
        &[-1.0, 5.0, -10.0, 10.0, -5.0, 1.0],
        &[5.0, -20.0, 20.0, 20.0, -50.0, 26.0],
        &[-10.0, 30.0, 0.0, -60.0, 0.0, 66.0],
        &[10.0, -20.0, -20.0, 20.0, 50.0, 26.0],
        &[-5.0, 5.0, 10.0, 10.0, 5.0, 1.0],
        &[1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    ],
    120.0,
);

impl Sampling {
    /// All samplings, for tests of each.
    pub const ALL: [Sampling; 7] = [
        Sampling::Nearest,
        Sampling::Linear,
        Sampling::Cubic,
        Sampling::Spline2,
        Sampling::Spline3,
        Sampling::Spline4,
        Sampling::Spline5,
    ];

    /// The B-spline of order 2 to 5; orders 0 and 1 are [`Sampling::Nearest`] and
    /// [`Sampling::Linear`].
    ///
    /// ```
    /// # use horus_core::{self as horus, prelude::*};
    /// assert_eq!(Sampling::spline(3), Some(Sampling::Spline3));
    /// assert_eq!(Sampling::spline(6), None);
    /// ```
    pub const fn spline(order: usize) -> Option<Sampling> {
        match order {
            0 => Some(Sampling::Nearest),
            1 => Some(Sampling::Linear),
            2 => Some(Sampling::Spline2),
            3 => Some(Sampling::Spline3),
            4 => Some(Sampling::Spline4),
            5 => Some(Sampling::Spline5),
            _ => None,
        }
    }

    /// The name in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Sampling::Nearest => "nearest",
            Sampling::Linear => "linear",
            Sampling::Cubic => "cubic",
            Sampling::Spline2 => "spline2",
            Sampling::Spline3 => "spline3",
            Sampling::Spline4 => "spline4",
            Sampling::Spline5 => "spline5",
        }
    }

    /// Pixels per axis under a sample.
    pub const fn taps(self) -> usize {
        match self {
            Sampling::Nearest => 1,
            Sampling::Linear => 2,
            Sampling::Spline2 => 3,
            Sampling::Cubic | Sampling::Spline3 => 4,
            Sampling::Spline4 => 5,
            Sampling::Spline5 => 6,
        }
    }

    /// The polynomials of [`weights`](Sampling::weights) and their divisor, for a B-spline of order 2 or more.
    #[inline(always)]
    pub const fn pieces(self) -> Option<Pieces> {
        match self {
            Sampling::Nearest | Sampling::Linear | Sampling::Cubic => None,
            Sampling::Spline2 => Some(SPLINE2),
            Sampling::Spline3 => Some(SPLINE3),
            Sampling::Spline4 => Some(SPLINE4),
            Sampling::Spline5 => Some(SPLINE5),
        }
    }

    /// The poles of the filter that yields the B-spline coefficients of an image (Unser 1999); none if an image equals
    /// its coefficients.
    const fn poles(self) -> &'static [f64] {
        match self {
            Sampling::Nearest | Sampling::Linear | Sampling::Cubic => &[],
            Sampling::Spline2 => &[-0.171_572_875_253_809_9],
            Sampling::Spline3 => &[-0.267_949_192_431_122_7],
            Sampling::Spline4 => &[-0.361_341_225_900_220_16, -0.013_725_429_297_339_121],
            Sampling::Spline5 => &[-0.430_575_347_099_973_8, -0.043_096_288_203_264_65],
        }
    }

    /// The filter that yields the B-spline coefficients of an image: taps at `-r..=r`, beyond which all would be
    /// smaller than `2^-bits` of the largest. A single tap if an image equals its coefficients.
    pub fn prefilter(self, bits: u16) -> Vec<f64> {
        let most = f64::from(bits);
        let of_pole = |pole: f64| {
            let gain = (1.0 - pole) / (1.0 + pole);
            // Longer than needed, because the product of two filters is truncated once.
            let reach = (-(most + 8.0) / pole.abs().log2()).ceil() as i32;
            (-reach..=reach).map(|k| gain * pole.powi(k.abs())).collect::<Vec<_>>()
        };
        let mut taps = vec![1.0];
        for &pole in self.poles() {
            let (one, other) = (taps, of_pole(pole));
            taps = vec![0.0; one.len() + other.len() - 1];
            for (i, a) in one.iter().enumerate() {
                // The terms of a tap have one sign: nothing cancels.
                other.iter().zip(&mut taps[i..]).for_each(|(b, sum)| *sum += a * b);
            }
        }
        let middle = taps.len() / 2;
        let least = taps[middle] * (-most).exp2();
        let outside = taps.iter().take_while(|tap| tap.abs() < least).count();
        // Both halves are identical to the last bit.
        let half = &taps[outside..middle];
        half.iter().chain(&taps[middle..=middle]).chain(half.iter().rev()).copied().collect()
    }

    /// Returns `true` if fractions are relative to the nearest pixel, otherwise to the pixel at or before the position.
    pub(crate) const fn is_centred_on_nearest(self) -> bool {
        matches!(self, Sampling::Nearest | Sampling::Spline2 | Sampling::Spline4)
    }

    /// The first pixel under a sample at `position`, and the fraction for its [weights](Sampling::weights); `None` for
    /// an infinite or NaN position.
    ///
    /// Computed in `f64` from a position limited to [`FARTHEST`]; the fraction is rounded to `F` once.
    #[inline(always)]
    pub fn split<F: Float>(self, position: f64) -> Option<(isize, F)> {
        let (first, t) = self.split_finite(position);
        position.is_finite().then_some((first as isize, t))
    }

    /// [`Sampling::split`] of a finite position; arbitrary numbers for any other.
    #[inline(always)]
    pub fn split_finite<F: Float>(self, position: f64) -> (i32, F) {
        let clamped = position.clamp(-FARTHEST, FARTHEST);
        let whole = if self.is_centred_on_nearest() { (clamped + 0.5).floor() } else { clamped.floor() };
        let before = ((self.taps() - 1) / 2) as i32;
        // After adding 1.5 * 2^52, a limited number is in the low 32 bits. A cast would check its range and an early
        // return would branch; vectors support neither.
        let first = (whole + 6_755_399_441_055_744.0).to_bits() as i32;
        (first.wrapping_sub(before), F::from_f64(clamped - whole))
    }

    /// The weights of the pixels under a sample at fraction `t`, each a polynomial in Horner form by `fma`. Backends
    /// must follow these expressions exactly. [`Sampling::Linear`] does not use them: see [`Interpolation::Bilinear`].
    #[inline(always)]
    pub fn weights<F: Float>(self, t: F) -> [F; MOST_TAPS] {
        let mut out = [F::ZERO; MOST_TAPS];
        let Some((pieces, divisor)) = self.pieces() else {
            match self {
                Sampling::Cubic => out[..4].copy_from_slice(&cubic_weights(t)),
                Sampling::Linear => (out[0], out[1]) = (F::ONE.sub(t), t),
                _ => out[0] = F::ONE,
            }
            return out;
        };
        for (out, piece) in out.iter_mut().zip(pieces) {
            let mut sum = F::from_f64(piece[0] / divisor);
            for c in &piece[1..] {
                sum = sum.fma(t, F::from_f64(c / divisor));
            }
            *out = sum;
        }
        out
    }
}

/// Samples of the first input at the positions in the others. Each of these has one channel and the shape of the
/// result: rows and columns for every plane, or levels, rows and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Remap {
    /// The weighting of pixels.
    pub sampling: Sampling,
    /// Border mode.
    pub border: Border,
    /// The value (of the image's type) at positions beyond the centres of the first and last pixels along an axis, and
    /// at NaN ([`is_outside`]); sampled by the border mode if `None`.
    pub outside: Option<Scalar>,
}

/// Returns `true` if a position, given along the last axes of an image of this shape, is not between its pixels.
pub fn is_outside(position: &[f64], of: Shape) -> bool {
    let inside = |(at, n): (&f64, usize)| *at >= 0.0 && *at <= n as f64 - 1.0;
    !position.iter().rev().zip([of.width, of.height, of.depth]).all(inside)
}

/// Input index of the sampled image.
const IMAGE: usize = 0;

impl ImageOperation for Remap {
    fn kind(&self) -> &'static str {
        "remap"
    }

    fn name(&self) -> String {
        format!("remap {}", self.sampling.name())
    }

    fn check(&self, inputs: &[ImageExtent], output: ImageExtent) -> Result<(), String> {
        let ([image, first, _] | [image, first, _, _]) = inputs else {
            return Err(format!("it reads 3 or 4 images, got {}", inputs.len()));
        };
        let volume = inputs.len() == 4;
        let depth = if volume { output.0.depth } else { image.0.depth };
        let made = (Shape { depth, channels: image.0.channels, ..output.0 }, image.1);
        let value = self.outside.map_or(image.1, Scalar::dtype);
        ensure(value == image.1, || format!("a value of {value} for samples of {}", image.1))?;
        let there = !image.0.is_empty() || output.0.is_empty();
        ensure(made == output && there, || format!("samples of {} {} in {} {}", image.0, image.1, output.0, output.1))?;
        let at = (Shape { depth: if volume { output.0.depth } else { 1 }, channels: 1, ..output.0 }, first.1);
        inputs[1..].iter().try_for_each(|positions| {
            ensure(*positions == at && at.1.is_float(), || {
                format!("positions of {} {} for {} {}", positions.0, positions.1, output.0, at.1)
            })
        })
    }

    fn reads(&self, input: usize, need: Rect, of: Shape) -> InputRead {
        if input == IMAGE { InputRead::whole(of) } else { InputRead::inside(need) }
    }

    fn access(&self, input: usize) -> Access {
        if input == IMAGE { Access::Whole } else { Access::IN_PLACE }
    }

    fn position_map(&self, input: usize, from: Shape, to: Shape) -> Option<PositionMap> {
        stays(from, to).filter(|_| self.in_place(input))
    }

    fn in_place(&self, input: usize) -> bool {
        input != IMAGE
    }

    fn effort(&self, inputs: &[ImageExtent], output: ImageExtent, rows: usize) -> LaunchEffort {
        let taps = self.sampling.taps();
        let levels = if inputs.len() > 3 { taps } else { 1 };
        LaunchEffort::of_rows(Family::Warp, output.0, rows, (taps * taps * levels) as f64)
    }
}

impl SampleOperations for Remap {
    fn samples(of: SampleImages) -> Vec<Instance> {
        let bilinear = Remap { sampling: Sampling::Linear, border: of.border, outside: None };
        let spline = Remap { sampling: Sampling::Spline3, ..bilinear };
        let cubic = Remap { sampling: Sampling::Cubic, ..bilinear };
        let (plane, volume) = (of.plane, (Shape { channels: 1, ..of.image.0 }, of.image.1));
        let inside = Remap { outside: Some(Scalar::from_f64(of.image.1, 2.5)), ..bilinear };
        vec![
            Instance::of(cubic, &[of.image, plane, plane], of.image).loose(),
            Instance::of(inside, &[of.image, plane, plane], of.image).loose(),
            Instance::of(spline, &[of.image, volume, volume, volume], of.image).loose(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The centred B-spline of an order as a sum of truncated powers.
    fn spline(order: i32, x: f64) -> f64 {
        let half = f64::from(order + 1) / 2.0;
        let (mut sum, mut binomial, mut factorial) = (0.0, 1.0, 1.0);
        for k in 0..order + 2 {
            sum += binomial * (x + half - f64::from(k)).max(0.0).powi(order) * if k % 2 == 0 { 1.0 } else { -1.0 };
            binomial *= f64::from(order + 1 - k) / f64::from(k + 1);
        }
        (1..=order).for_each(|k| factorial *= f64::from(k));
        sum / factorial
    }

    #[test]
    fn weights_are_those_of_b_splines() {
        for order in 2..=5 {
            let how = Sampling::spline(order).unwrap();
            for position in [-7.5, -1.25, 0.0, 0.49, 0.5, 2.999, 3.0, 11.7] {
                let (first, t) = how.split::<f64>(position).unwrap();
                let weights = how.weights(t);
                for (k, w) in weights[..how.taps()].iter().enumerate() {
                    let want = spline(order as i32, position - (first + k.cast_signed()) as f64);
                    // Powers cancel in the sum, to about 10^-13.
                    assert!((w - want).abs() < 1e-12, "order {order} at {position}, tap {k}: {w} for {want}");
                }
                let sum: f64 = weights.iter().sum();
                assert!((sum - 1.0).abs() < 1e-15, "order {order} at {position}: {sum}");
            }
        }
    }

    #[test]
    fn prefilters_undo_splines_up_to_their_bound() {
        for order in 2..=5 {
            let how = Sampling::spline(order).unwrap();
            let (first, t) = how.split::<f64>(0.0).unwrap();
            let spline = &how.weights(t)[..how.taps()];
            for (bits, most) in [(60u16, 1e-15), (30, (-27f64).exp2())] {
                let taps = how.prefilter(bits);
                let peak = taps[taps.len() / 2];
                assert!(taps.iter().eq(taps.iter().rev()), "order {order}: symmetric");
                assert!(taps[0].abs() >= peak * (-f64::from(bits)).exp2(), "order {order}: none that is too small");
                // The spline of the coefficients of a dot is the dot.
                let reach = (taps.len() / 2).cast_signed();
                for at in -reach..=reach {
                    let tap = |k: isize| taps.get((k + reach).cast_unsigned()).copied().unwrap_or(0.0);
                    let sum: f64 = (first..).zip(spline).map(|(k, w)| w * tap(at + k)).sum();
                    let want = if at == 0 { 1.0 } else { 0.0 };
                    assert!((sum - want).abs() < most, "order {order}, {bits} bits, at {at}: {sum:e}");
                }
                // The truncation error for pixels of magnitude 1.
                let long = how.prefilter(200);
                let left_out = 2.0 * long[..(long.len() - taps.len()) / 2].iter().map(|tap| tap.abs()).sum::<f64>();
                assert!(left_out < (4.0 - f64::from(bits)).exp2(), "order {order}, {bits} bits: {left_out:e}");
            }
        }
        assert_eq!(Sampling::Cubic.prefilter(60), [1.0]);
        assert_eq!([Sampling::Spline3.prefilter(60).len(), Sampling::Spline5.prefilter(30).len()], [63, 49]);
    }

    #[test]
    fn positions_are_split_where_they_should_be() {
        assert_eq!(Sampling::Nearest.split::<f32>(-0.5), Some((0, -0.5)));
        assert_eq!(Sampling::Nearest.split::<f32>(2.5), Some((3, -0.5)));
        assert_eq!(Sampling::Linear.split::<f64>(-0.25), Some((-1, 0.75)));
        assert_eq!(Sampling::Cubic.split::<f64>(3.25), Some((2, 0.25)));
        assert_eq!(Sampling::Spline5.split::<f64>(3.25), Some((1, 0.25)));
        for how in Sampling::ALL {
            for none in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                assert_eq!(how.split::<f64>(none), None, "{how:?}");
            }
            let (first, _) = how.split::<f32>(-1e300).unwrap();
            assert!(first >= -(1 << 30) - 2 && how.split::<f32>(1e300).unwrap().0 <= 1 << 30, "{how:?}");
        }
    }
}
