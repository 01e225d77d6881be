//! Samples at positions given by the pixels of other images, and resizing by kernels.

use super::kernel::HostImage;
use super::{OperationDefinition, ReferenceImage};
use horus_base::dispatch;
use horus_base::dtype::{Arithmetic, DType, Float, Pixel, Scalar};
use horus_base::shape::{Border, Shape, Window};
use horus_host::device::Geometry;
use horus_plan::ops::resize::{WeightedRun, WeightedRuns};
use horus_plan::ops::sampling::{Sampling, is_outside};
use horus_plan::ops::{Remap, Resize};

impl OperationDefinition for Remap {
    fn of_images(&self, inputs: &[&ReferenceImage], (_shape, _dtype): (Shape, DType)) -> ReferenceImage {
        let Remap { sampling: how, border, outside } = self;
        remap(inputs[0], &inputs[1..], *how, *border, *outside)
    }

    fn of_launch(&self, inputs: &[HostImage], output: &mut HostImage, out: Geometry, rows: Window) {
        let Remap { sampling: how, border, outside } = self;
        dispatch!(out.dtype, T => {
            let (of, volume) = (inputs[0].geometry.shape, inputs.len() == 4);
            for p in 0..out.shape.planes() {
                let (level, channel) = (p / out.shape.channels, p % out.shape.channels);
                for y in rows.start..rows.end {
                    for x in 0..out.shape.width {
                        let at = |c: &HostImage| c.number(if volume { level } else { 0 }, y, x);
                        let position: Vec<f64> = inputs[1..].iter().map(at).collect();
                        let read = |place: &[isize]| {
                            let (z, place) = if volume { (place[0], &place[1..]) } else { (level.cast_signed(), place) };
                            match border.map(z, of.depth) {
                                Some(z) => inputs[0].sample(z * of.channels + channel, place[0], place[1], *border),
                                None => border.constant().map_or(T::ZERO, T::from_f64),
                            }
                        };
                        let sample = match outside {
                            Some(value) if is_outside(&position, of) => T::from_scalar(*value),
                            _ => sample(*how, &position, &read),
                        };
                        output.put::<T>(p, y, x, sample);
                    }
                }
            }
        });
    }
}

impl OperationDefinition for Resize {
    fn of_images(&self, inputs: &[&ReferenceImage], (shape, _dtype): (Shape, DType)) -> ReferenceImage {
        let how = self;
        resize(inputs[0], how, shape)
    }

    fn of_launch(&self, inputs: &[HostImage], output: &mut HostImage, out: Geometry, rows: Window) {
        let how = self;
        dispatch!(out.dtype, T => {
            let columns = how.columns.runs(how.how, Window::whole(out.shape.width));
            let lines = how.rows.runs(how.how, rows);
            for c in 0..out.shape.planes() {
                for (y, line) in (rows.start..).zip(&lines.runs) {
                    for (x, column) in columns.runs.iter().enumerate() {
                        let read = |y: usize, x| inputs[0].get::<T>(c, y.cast_signed(), x);
                        output.put::<T>(c, y, x, resized((&lines, line), (&columns, column), &read));
                    }
                }
            }
        });
    }
}

/// `image` sampled at the positions in `coordinates`: rows and columns, or levels, rows and columns, each an image of
/// one channel. The result has the shape of the positions, and with two coordinates also the levels of the image.
pub fn remap(
    image: &ReferenceImage,
    coordinates: &[&ReferenceImage],
    how: Sampling,
    border: Border,
    outside: Option<Scalar>,
) -> ReferenceImage {
    let at = coordinates[0].shape;
    let depth = if coordinates.len() == 3 { at.depth } else { image.shape.depth };
    let shape = Shape { depth, channels: image.shape.channels, ..at };
    horus_base::dispatch!(image.dtype(), T => ReferenceImage::from_fn(shape, |plane, y, x| {
        let (level, channel) = (plane / shape.channels, plane % shape.channels);
        let of = if coordinates.len() == 3 { level } else { 0 };
        let position: Vec<f64> = coordinates.iter().map(|c| c.number(of, y, x)).collect();
        if let Some(value) = outside.filter(|_| is_outside(&position, image.shape)) {
            return T::from_scalar(value);
        }
        sample::<T>(how, &position, &|place| {
            let (z, place) = if place.len() == 3 { (place[0], &place[1..]) } else { (level.cast_signed(), place) };
            match border.map(z, image.shape.depth) {
                Some(z) => image.read(z * image.shape.channels + channel, place[0], place[1], border),
                None => border.constant().map_or(T::ZERO, T::from_f64),
            }
        })
    }))
}

/// Interpolation of the pixels given by `read` at a position, along the last axis first. A NaN
/// position yields NaN, or 0 for integers.
pub(super) fn sample<T: Pixel>(how: Sampling, position: &[f64], read: &dyn Fn(&[isize]) -> T) -> T {
    let split: Option<Vec<(isize, T::Interp)>> = position.iter().map(|p| how.split(*p)).collect();
    match split {
        Some(split) if how == Sampling::Nearest => read(&split.iter().map(|s| s.0).collect::<Vec<_>>()),
        Some(split) => T::from_interp(along(how, &split, &mut Vec::new(), read)),
        None => T::from_f64(f64::NAN),
    }
}

fn along<T: Pixel>(
    how: Sampling,
    rest: &[(isize, T::Interp)],
    place: &mut Vec<isize>,
    read: &dyn Fn(&[isize]) -> T,
) -> T::Interp {
    let [(first, t), rest @ ..] = rest else { return read(place).to_interp() };
    let mut value = |k: usize| {
        place.push(first + k.cast_signed());
        let value = along(how, rest, place, read);
        place.pop();
        value
    };
    if how == Sampling::Linear {
        let (a, b) = (value(0), value(1));
        return t.fma(b.sub(a), a);
    }
    let weights = how.weights(*t);
    (0..how.taps()).fold(T::Interp::ZERO, |sum, k| weights[k].fma(value(k), sum))
}

/// `image` resized to `shape`.
pub fn resize(image: &ReferenceImage, how: &Resize, shape: Shape) -> ReferenceImage {
    let rows = how.rows.runs(how.how, Window::whole(shape.height));
    let columns = how.columns.runs(how.how, Window::whole(shape.width));
    horus_base::dispatch!(image.dtype(), T => ReferenceImage::from_fn(shape, |c, y, x| {
        resized::<T>((&rows, &rows.runs[y]), (&columns, &columns.runs[x]), &|y, x| image.at(c, y, x))
    }))
}

/// The weighted sum of the pixels given by `read` in a run of rows and columns, down the columns first.
pub(super) fn resized<T: Pixel>(
    rows: (&WeightedRuns, &WeightedRun),
    columns: (&WeightedRuns, &WeightedRun),
    read: &dyn Fn(usize, usize) -> T,
) -> T {
    let sum = |(all, run): (&WeightedRuns, &WeightedRun), value: &dyn Fn(usize) -> T::Interp| {
        let weights = &all.weights[run.weights.clone()];
        (run.start..).zip(weights).fold(T::Interp::ZERO, |sum, (k, w)| T::Interp::from_f64(*w).fma(value(k), sum))
    };
    T::from_interp(sum(columns, &|x| sum(rows, &|y| read(y, x).to_interp())))
}
