//! Samples at positions given by the pixels of other images, and resizing by kernels.

use super::{Image, Pixel};
use horus_base::dtype::{Arithmetic, Float};
use horus_base::shape::{Border, Shape, Window};
use horus_plan::ops::Resize;
use horus_plan::ops::resize::{Runs, WeightedRun};
use horus_plan::ops::sampling::Sampling;

/// `image` sampled at the positions in `coordinates`: rows and columns, or levels, rows and
/// columns, each an image of one channel. The result has the extent of the positions, and with two
/// coordinates also the levels of the image.
pub fn remap(image: &Image, coordinates: &[&Image], how: Sampling, border: Border) -> Image {
    let at = coordinates[0].shape;
    let depth = if coordinates.len() == 3 { at.depth } else { image.shape.depth };
    let shape = Shape { depth, channels: image.shape.channels, ..at };
    horus_base::dispatch!(image.dtype(), T => Image::from_fn(shape, |plane, y, x| {
        let (level, channel) = (plane / shape.channels, plane % shape.channels);
        let of = if coordinates.len() == 3 { level } else { 0 };
        let position: Vec<f64> = coordinates
            .iter()
            .map(|c| horus_base::dispatch!(c.dtype(), C => c.at::<C>(of, y, x).to_f64()))
            .collect();
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
pub fn resize(image: &Image, how: &Resize, shape: Shape) -> Image {
    let rows = how.rows.runs(how.how, Window::whole(shape.height));
    let columns = how.columns.runs(how.how, Window::whole(shape.width));
    horus_base::dispatch!(image.dtype(), T => Image::from_fn(shape, |c, y, x| {
        resized::<T>((&rows, &rows.runs[y]), (&columns, &columns.runs[x]), &|y, x| image.at(c, y, x))
    }))
}

/// The weighted sum of the pixels given by `read` in a run of rows and columns: down the columns
/// first.
pub(super) fn resized<T: Pixel>(
    rows: (&Runs, &WeightedRun),
    columns: (&Runs, &WeightedRun),
    read: &dyn Fn(usize, usize) -> T,
) -> T {
    let sum = |(all, run): (&Runs, &WeightedRun), value: &dyn Fn(usize) -> T::Interp| {
        let weights = &all.weights[run.weights.clone()];
        (run.start..).zip(weights).fold(T::Interp::ZERO, |sum, (k, w)| T::Interp::from_f64(*w).fma(value(k), sum))
    };
    T::from_interp(sum(columns, &|x| sum(rows, &|y| read(y, x).to_interp())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(v: &[f32]) -> Image {
        Image::new(Shape::new(1, v.len(), 1), v.to_vec())
    }

    #[test]
    fn samples_lie_between_pixels_and_what_is_nowhere_is_no_number() {
        let at = row(&[0.0, 0.5, 1.75, -0.5, 2.5, f32::NAN, f32::INFINITY]);
        let rows = row(&[0.0; 7]);
        let of = |image: &Image, how, border| remap(image, &[&rows, &at], how, border);
        let image = row(&[10.0, 20.0, 40.0]);
        let found = of(&image, Sampling::Linear, Border::Constant(0.0));
        assert_eq!(found, row(&[10.0, 15.0, 35.0, 5.0, 20.0, f32::NAN, f32::NAN]));
        let found = of(&image, Sampling::Nearest, Border::Replicate);
        assert_eq!(found, row(&[10.0, 20.0, 40.0, 10.0, 40.0, f32::NAN, f32::NAN]));
        let bytes = super::super::convert(&image, horus_base::dtype::DType::U8);
        let found = of(&bytes, Sampling::Linear, Border::Replicate);
        assert_eq!(found, Image::new(Shape::new(1, 7, 1), vec![10u8, 15, 35, 10, 40, 0, 0]));
    }

    #[test]
    fn volumes_are_sampled_between_levels() {
        let image = Image::from_fn(Shape::volume(2, 2, 2, 1), |z, y, x| (4 * z + 2 * y + x) as f64);
        let one = |v: f64| Image::new(Shape::new(1, 1, 1), vec![v]);
        let (z, y, x) = (one(0.5), one(0.25), one(1.0));
        let found = remap(&image, &[&z, &y, &x], Sampling::Linear, Border::Replicate);
        assert_eq!(found.at::<f64>(0, 0, 0), 2.0 + 0.5 + 1.0);
        let beyond = remap(&image, &[&one(9.0), &y, &x], Sampling::Nearest, Border::Constant(-3.0));
        assert_eq!(beyond.at::<f64>(0, 0, 0), -3.0);
    }
}
