//! Filters that order pixels put NaN last and -0 before +0, and those of extremes ignore NaN, wherever it lies.

use horus_core::cpu::device::CpuDevice;
use horus_core::dtype::Float;
use horus_core::filters::Footprint;
use horus_core::image::{Image, Rank};
use horus_core::session::Session;
use horus_core::shape::{Axis, Border, Shape};
use horus_testing::cases::covering;
use horus_testing::pixels::{assert_same, with_nan};

/// An offset by levels, rows and columns.
type LevelOffset = [isize; 3];
/// A filter, its window, and its result of the pixels in this.
type OrderFilterCase<T> = (String, Box<dyn Fn(&Image<T>) -> Image<T>>, Vec<LevelOffset>, Box<dyn Fn(Vec<T>) -> T>);

/// The value in a place of the order: -0 before +0, NaN last.
fn in_place<T: Float>(values: Vec<T>, place: usize) -> T {
    let mut numbers: Vec<T> = values.into_iter().filter(|v| !v.is_nan()).collect();
    numbers.sort_by(|a, b| a.to_f64().total_cmp(&b.to_f64()));
    numbers.get(place).copied().unwrap_or(T::from_f64(f64::NAN))
}

fn box_of(levels: isize, rows: isize, columns: isize) -> Vec<LevelOffset> {
    let along = |n: isize| -n / 2..=n / 2;
    let plane = move |z| along(rows).flat_map(move |y| along(columns).map(move |x| [z, y, x]));
    along(levels).flat_map(plane).collect()
}

fn filters<T: Float>(border: Border) -> Vec<OrderFilterCase<T>> {
    fn filter<T: Float>(
        name: impl Into<String>,
        f: impl Fn(&Image<T>) -> Image<T> + 'static,
        offsets: Vec<LevelOffset>,
        of: impl Fn(Vec<T>) -> T + 'static,
    ) -> OrderFilterCase<T> {
        (name.into(), Box::new(f), offsets, Box::new(of))
    }
    let smallest =
        |v: Vec<T>| T::from_f64(v.into_iter().map(T::to_f64).filter(|v| !v.is_nan()).fold(f64::INFINITY, f64::min));
    let largest =
        |v: Vec<T>| T::from_f64(v.into_iter().map(T::to_f64).filter(|v| !v.is_nan()).fold(f64::NEG_INFINITY, f64::max));
    let cross = || vec![[0, -1, 0], [0, 0, -1], [0, 0, 0], [0, 0, 1], [0, 1, 0]];
    let of_levels = || [Footprint::rectangle(1, 1), Footprint::cross(1), Footprint::rectangle(1, 1)];
    let across = move || [cross(), vec![[-1, 0, 0], [1, 0, 0]]].concat();
    let at = move |i: &Image<T>| i.with_border(border);
    let mut all = vec![
        filter("median 3x3", move |i| at(i).median((3, 3)), box_of(1, 3, 3), |v| in_place(v, 4)),
        filter("median 5x5", move |i| at(i).median((5, 5)), box_of(1, 5, 5), |v| in_place(v, 12)),
        filter("median 3x3x3", move |i| at(i).median((3, 3, 3)), box_of(3, 3, 3), |v| in_place(v, 13)),
        filter("median 7x9", move |i| at(i).median((7, 9)), box_of(1, 7, 9), |v| in_place(v, 31)),
        filter("median of a cross", move |i| at(i).median(&Footprint::cross(1)), cross(), |v| in_place(v, 2)),
        filter("erode 3x3x3", move |i| at(i).erode((3, 3, 3)), box_of(3, 3, 3), smallest),
        filter("dilate 1x1", move |i| at(i).dilate((1, 1)), box_of(1, 1, 1), largest),
        filter("erode 3x1x1", move |i| at(i).erode((3, 1, 1)), box_of(3, 1, 1), smallest),
        filter("dilate a cross", move |i| at(i).dilate(&Footprint::cross(1)), cross(), largest),
        filter("dilate a cross of levels", move |i| at(i).dilate(&of_levels()), across(), largest),
        filter("erode 1x9", move |i| at(i).erode((1, 9)), box_of(1, 1, 9), smallest),
    ];
    for place in [0, 3, 4, 8] {
        let f = move |i: &Image<T>| at(i).rank((3, 3), Rank::Place(place));
        all.push(filter(format!("rank {place} of 3x3"), f, box_of(1, 3, 3), move |v| in_place(v, place)));
    }
    all
}

/// Checks filters, of a name that begins so, of `pixels(n, every)`.
fn follow_the_order<T: Float>(begins: &str, pixels: impl Fn(usize, u8) -> Vec<T>) {
    let session = Session::on(Box::new(CpuDevice::new(Some(1)).unwrap())).build().unwrap();
    let shapes = [Shape::volume(4, 7, 9, 1), Shape::volume(3, 3, 3, 1), Shape::volume(3, 2, 150, 1)];
    let borders = [Border::all(f64::NAN).as_slice(), &[Border::Constant(-1.0)]].concat();
    for [shape, border, every] in covering([shapes.len(), borders.len(), 3]) {
        let (shape, border, every) = (shapes[shape], borders[border], [1, 2, 5][every]);
        let pixels = pixels(shape.len(), every);
        let image = Image::from_slice(&session, shape, &pixels);
        let extents = [shape.depth, shape.height, shape.width];
        let filters = filters::<T>(border).into_iter().filter(|(name, ..)| name.starts_with(begins));
        for (name, f, offsets, of) in filters {
            let read = |from: [usize; 3]| {
                let pixel = |offset: &LevelOffset| {
                    let mut at = [0; 3];
                    for axis in 0..3 {
                        let Some(inside) = border.map(from[axis].cast_signed() + offset[axis], extents[axis]) else {
                            return T::from_f64(border.constant().unwrap());
                        };
                        at[axis] = inside;
                    }
                    pixels[(at[0] * shape.height + at[1]) * shape.width + at[2]]
                };
                offsets.iter().map(pixel).collect::<Vec<T>>()
            };
            let (read, of) = (&read, &of);
            let rows = (0..shape.depth).flat_map(|z| (0..shape.height).map(move |y| (z, y)));
            let places = rows.flat_map(|(z, y)| (0..shape.width).map(move |x| [z, y, x]));
            let want: Vec<T> = places.map(|place| of(read(place))).collect();
            let got = f(&image).to_vec().unwrap();
            let what = format!("{name} of {} {shape}, one in {every}, {border}", T::DTYPE);
            assert_same(&got, &want, &what);
            for axis in [Axis::Depth, Axis::Rows, Axis::Columns] {
                let turned = f(&image.flip(axis)).flip(axis).to_vec().unwrap();
                assert_same(&turned, &got, &format!("{what}, mirrored"));
            }
        }
    }
}

#[test]
fn filters_put_nan_last_and_extremes_ignore_it() {
    follow_the_order("", |n, every| with_nan::<f32>(n, 3, every));
    follow_the_order("", |n, every| with_nan::<f64>(n, 3, every));
}

/// Whichever algorithm orders them, by its size: zeros of both signs, some numbers, and NaN.
#[test]
fn ranks_and_medians_order_zeros_by_sign() {
    fn zeros<T: Float>(n: usize, every: u8) -> Vec<T> {
        let numbers = [1.0, -2.0, f64::NAN];
        let pixel = |i: usize| match i * i * 7919 % 31 {
            k if k % 5 < 2 => -0.0,
            k if every > 1 && k > 20 && k % (usize::from(every) + 1) == 0 => numbers[k % 3],
            _ => 0.0,
        };
        (0..n).map(|i| T::from_f64(pixel(i))).collect()
    }
    for kind in ["median", "rank"] {
        follow_the_order(kind, zeros::<f32>);
        follow_the_order(kind, zeros::<f64>);
    }
    let session = Session::on(Box::new(CpuDevice::new(Some(1)).unwrap())).build().unwrap();
    for signs in 0..8u32 {
        let zeros = [0, 1, 2].map(|i| if signs >> i & 1 == 1 { -0.0f32 } else { 0.0 });
        let images = zeros.map(|zero| Image::from_slice(&session, (1, 1), &[zero]));
        let found = Image::of_all(&session, images).median().to_vec().unwrap()[0];
        assert_eq!(found.is_sign_negative(), signs.count_ones() > 1, "{zeros:?}");
    }
}

#[test]
fn medians_of_several_images_put_nan_last() {
    let session = Session::on(Box::new(CpuDevice::new(Some(1)).unwrap())).build().unwrap();
    for n in 1..9 {
        let pixels: Vec<Vec<f32>> = (0..n).map(|i| with_nan(40, i, 3)).collect();
        let images = pixels.iter().map(|p| Image::from_slice(&session, (5, 8), p));
        let found = Image::of_all(&session, images.collect::<Vec<_>>()).median().to_vec().unwrap();
        let n = n as usize;
        let want: Vec<f32> = (0..40)
            .map(|i| {
                let at = |place| f64::from(in_place(pixels.iter().map(|p| p[i]).collect(), place));
                ((at((n - 1) / 2) + at(n / 2)) / 2.0) as f32
            })
            .collect();
        assert_same(&found, &want, &format!("{n} images"));
    }
}
