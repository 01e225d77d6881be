//! Samples at positions that are pixels of other images.

use super::{View, each_chunk, grain, view};
use crate::device::{Geometry, LaunchInput};
use crate::dtype::{DType, Float, Pixel};
use crate::error::DeviceError;
use crate::ops::sampling::{MOST_TAPS, Sampling};
use crate::shape::{Border, Window};

/// Where results go, and how many threads compute them.
#[derive(Clone, Copy, Debug)]
pub(super) struct To {
    pub(super) geometry: Geometry,
    pub(super) rows: Window,
    pub(super) threads: usize,
}

/// Positions of either type, read row by row: else every kernel here would be compiled for each pair of types.
pub(super) struct Positions<'a> {
    axes: Vec<Box<Line<'a>>>,
}

/// Fills in a row of a plane.
type Line<'a> = dyn Fn(usize, isize, &mut Vec<f64>) + Sync + 'a;

impl<'a> Positions<'a> {
    /// Those of the inputs after the first.
    pub(super) fn of(inputs: &[LaunchInput<'a>]) -> Result<Positions<'a>, DeviceError> {
        let axis = |i: usize| -> Result<Box<Line<'a>>, DeviceError> {
            if inputs[i].geometry.dtype == DType::F32 {
                let view = view::<f32>(inputs, i)?;
                return Ok(Box::new(move |plane, y, to| {
                    to.clear();
                    to.extend(view.plane(plane).row(y).iter().map(|v| f64::from(*v)));
                }));
            }
            let view = view::<f64>(inputs, i)?;
            Ok(Box::new(move |plane, y, to| {
                to.clear();
                to.extend_from_slice(view.plane(plane).row(y));
            }))
        };
        Ok(Positions { axes: (1..inputs.len()).map(axis).collect::<Result<_, _>>()? })
    }
}

/// The pixels under a sample along an axis, `None` where the constant is read, and their weights.
#[derive(Clone, Copy)]
struct Taps<F, const N: usize> {
    at: [Option<usize>; N],
    t: F,
    weights: [F; MOST_TAPS],
}

impl<F: Float, const N: usize> Taps<F, N> {
    #[inline(always)]
    fn of(how: Sampling, position: f64, border: Border, n: usize) -> Option<Taps<F, N>> {
        let (first, t) = how.split::<F>(position)?;
        let at = std::array::from_fn(|k| border.map(first + k.cast_signed(), n));
        Some(Taps { at, t, weights: if N == 2 { [F::ZERO; MOST_TAPS] } else { how.weights(t) } })
    }

    /// What is between the values of the pixels.
    #[inline(always)]
    fn between(&self, value: impl Fn(Option<usize>) -> F) -> F {
        if N == 2 {
            let (a, b) = (value(self.at[0]), value(self.at[1]));
            return self.t.fma(b.sub(a), a);
        }
        let mut sum = F::ZERO;
        for k in 0..N {
            sum = self.weights[k].fma(value(self.at[k]), sum);
        }
        sum
    }
}

/// Samples of `image` at positions.
pub(super) fn remap<T: Pixel>(
    image: View<'_, T>,
    positions: &Positions<'_>,
    (how, border): (Sampling, Border),
    out: &mut [T],
    to: &To,
) {
    match how.taps() {
        1 => remap_by::<T, 1>(image, positions, (how, border), out, to),
        2 => remap_by::<T, 2>(image, positions, (how, border), out, to),
        3 => remap_by::<T, 3>(image, positions, (how, border), out, to),
        4 => remap_by::<T, 4>(image, positions, (how, border), out, to),
        5 => remap_by::<T, 5>(image, positions, (how, border), out, to),
        _ => remap_by::<T, 6>(image, positions, (how, border), out, to),
    }
}

fn remap_by<T: Pixel, const N: usize>(
    image: View<'_, T>,
    positions: &Positions<'_>,
    (how, border): (Sampling, Border),
    out: &mut [T],
    to: &To,
) {
    let To { geometry, rows, threads } = *to;
    let (shape, of) = (geometry.shape, image.geometry.shape);
    if rows.is_empty() || shape.width == 0 {
        return;
    }
    let constant = border.constant().map_or(T::ZERO, T::from_f64);
    let nowhere = T::from_f64(f64::NAN);
    let axes = &positions.axes;
    for p in 0..shape.planes() {
        let (level, channel) = (p / shape.channels, p % shape.channels);
        let pixel = |plane: Option<usize>, y: Option<usize>, x: Option<usize>| match (plane, y, x) {
            (Some(plane), Some(y), Some(x)) => image.data[image.geometry.row(plane, y.cast_signed()) + x],
            _ => constant,
        };
        // At a level, or between levels, that each sample chooses.
        let in_plane = |plane: Option<usize>, y: &Taps<T::Interp, N>, x: &Taps<T::Interp, N>| {
            y.between(|y| x.between(|x| pixel(plane, y, x).to_interp()))
        };
        let at = geometry.row(p, rows.start);
        let lines = grain(shape.width);
        each_chunk(threads, &mut out[at..at + rows.len() * shape.width], lines * shape.width, |k, out| {
            let mut place = [const { Vec::new() }; 3];
            for (j, out) in out.chunks_mut(shape.width).enumerate() {
                let row = rows.start + (k * lines + j).cast_signed();
                for (line, place) in axes.iter().rev().zip(&mut place) {
                    line(if axes.len() == 3 { level } else { 0 }, row, place);
                }
                let [xs, ys, zs] = &place;
                for (i, out) in out.iter_mut().enumerate() {
                    let taps = |position: f64, n: usize| Taps::<T::Interp, N>::of(how, position, border, n);
                    let both = taps(ys[i], of.height).zip(taps(xs[i], of.width));
                    let plane = |z: Option<usize>| z.map(|z| z * of.channels + channel);
                    *out = match (both, zs.get(i)) {
                        (None, _) => nowhere,
                        (Some((y, x)), None) if N == 1 => pixel(Some(p), y.at[0], x.at[0]),
                        (Some((y, x)), None) => T::from_interp(in_plane(Some(p), &y, &x)),
                        (Some((y, x)), Some(z)) => match taps(*z, of.depth) {
                            None => nowhere,
                            Some(z) if N == 1 => pixel(plane(z.at[0]), y.at[0], x.at[0]),
                            Some(z) => T::from_interp(z.between(|z| in_plane(plane(z), &y, &x))),
                        },
                    };
                }
            }
        });
    }
}
