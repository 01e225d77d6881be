use super::*;
use crate::cpu::plane::whole;
use horus_base::dtype::{Arithmetic, Float};
use horus_base::shape::Shape;
use horus_plan::ops::edge::Inside;
use horus_plan::ops::geometric::{cubic_weights, rotation};
use horus_testing::for_each_type;
use horus_testing::pixels::{SIZES, assert_same, borders, noise, rows_of};

/// One sample, from the definition.
fn oracle<T: Pixel>(p: &Plane<'_, T>, map: &Affine, how: Interpolation, edge: &Edge, y: usize, x: usize) -> T {
    if let Edge::Inside(inside) = edge
        && !inside.holds(y.cast_signed(), x.cast_signed())
    {
        return T::from_f64(inside.value);
    }
    let border = edge.border();
    let (py, px) = map.at(y as i64, x as i64);
    let (iy, ix) = ((py >> 32) as isize, (px >> 32) as isize);
    let at = |dy: isize, dx: isize| p.pixel(iy + dy, ix + dx, border).to_interp();
    let (fy, fx) = (T::Interp::from_fraction(py as u32), T::Interp::from_fraction(px as u32));
    let lerp = |a: T::Interp, b: T::Interp, t: T::Interp| t.fma(b.sub(a), a);
    match how {
        Interpolation::Nearest => {
            let round = |p: i64| ((p + (1 << 31)) >> 32) as isize;
            p.pixel(round(py), round(px), border)
        }
        Interpolation::Bilinear => {
            let (top, bottom) = (lerp(at(0, 0), at(0, 1), fx), lerp(at(1, 0), at(1, 1), fx));
            T::from_interp(lerp(top, bottom, fy))
        }
        Interpolation::Bicubic => {
            let (wy, wx) = (cubic_weights(fy), cubic_weights(fx));
            let mut sum = T::Interp::ZERO;
            for (j, dy) in (-1..3).enumerate() {
                let mut row = T::Interp::ZERO;
                for (i, dx) in (-1..3).enumerate() {
                    row = wx[i].fma(at(dy, dx), row);
                }
                sum = wy[j].fma(row, sum);
            }
            T::from_interp(sum)
        }
    }
}

fn maps(shape: Shape) -> Vec<([[f64; 3]; 2], Affine)> {
    let turned = [0.0, 30.0, 45.0, 90.0, 180.0, 211.7].map(|a| rotation(a, shape));
    let others = [
        [[0.31, 0.0, -2.5], [0.0, 0.17, 1.25]],
        [[-2.7, 0.4, 20.0], [1.1, 3.9, -31.0]],
        [[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]],
        [[1.0, 0.0, -1000.25], [0.0, 1.0, 0.0]],
        [[0.0, 0.0, 0.25], [0.0, 0.0, 0.75]],
        [[1.7, 0.0, -3.5], [0.0, 0.6, 1.25]],
        [[-0.6, 0.0, 20.5], [0.0, -1.0, 30.0]],
    ];
    turned.into_iter().chain(others).map(|m| (m, Affine::new(m, shape).unwrap())).collect()
}

fn render<T: Pixel>(
    p: &Plane<'_, T>,
    map: &Affine,
    how: Interpolation,
    edge: &Edge,
    rows: Window,
    cols: Range<usize>,
    isa: Isa,
) -> Vec<T> {
    let mut out = vec![T::ONE; rows.len() * cols.len()];
    let stride = cols.len();
    warp(p, map, how, edge, &mut Tile { out: &mut out, stride, rows, cols }, isa);
    out
}

fn warps_follow_the_definition<T: Pixel>() {
    for (n, &(h, w)) in SIZES.iter().enumerate() {
        let image = noise::<T>(h * w, n as u64, n % 2 == 0);
        let plane = whole(&image, h, w);
        for (matrix, map) in maps(Shape::new(h, w, 1)) {
            let inside = Edge::Inside(Inside::of(matrix, Shape::new(h, w, 1), 5.0));
            for edge in borders().into_iter().map(Edge::from).chain([inside]) {
                for how in Interpolation::ALL {
                    let cell = |i: usize| oracle(&plane, &map, how, &edge, i / w, i % w);
                    let want: Vec<T> = (0..h * w).map(cell).collect();
                    for isa in Isa::available() {
                        let got = render(&plane, &map, how, &edge, Window::whole(h), 0..w, isa);
                        assert_same(&got, &want, &format!("{} {h}x{w} {map:?} {how:?} {edge:?} {isa:?}", T::DTYPE));
                    }
                }
            }
        }
    }
}

#[test]
fn warps_follow_the_definition_for_every_type() {
    for_each_type!(warps_follow_the_definition);
}

/// Samples of integers converted to floats are those of the converted image.
fn samples_of_narrow_integers<P: Pixel, T: Pixel>() {
    for (n, &(h, w)) in SIZES.iter().enumerate() {
        let narrow = noise::<P>(h * w, n as u64, false);
        let wide: Vec<T> = narrow.iter().map(|v| widened(*v)).collect();
        let shape = Shape::new(h, w, 1);
        for (matrix, map) in maps(shape) {
            let inside = Edge::Inside(Inside::of(matrix, shape, 5.5));
            for edge in borders().into_iter().map(Edge::from).chain([inside]) {
                for isa in Isa::available() {
                    let want =
                        render(&whole(&wide, h, w), &map, Interpolation::Bilinear, &edge, Window::whole(h), 0..w, isa);
                    let mut got = vec![T::ONE; h * w];
                    let mut tile = Tile { out: &mut got, stride: w, rows: Window::whole(h), cols: 0..w };
                    linear(&whole(&narrow, h, w), &map, &edge, &mut tile, isa);
                    let name = format!("{} in {} {h}x{w} {map:?} {edge:?} {isa:?}", P::DTYPE, T::DTYPE);
                    assert_same(&got, &want, &name);
                }
            }
        }
    }
}

#[test]
fn integers_are_sampled_as_floats() {
    samples_of_narrow_integers::<u8, f32>();
    samples_of_narrow_integers::<u8, f64>();
    samples_of_narrow_integers::<u16, f32>();
    samples_of_narrow_integers::<u16, f64>();
    samples_of_narrow_integers::<i16, f32>();
    samples_of_narrow_integers::<i16, f64>();
}

#[test]
fn a_tile_over_the_rows_it_needs_equals_the_whole() {
    let (h, w) = (67, 90);
    let shape = Shape::new(h, w, 1);
    let image = noise::<f32>(h * w, 5, false);
    for (matrix, map) in maps(shape) {
        let inside = Edge::Inside(Inside::of(matrix, shape, 5.0));
        for how in Interpolation::ALL {
            for edge in [Border::Constant(0.0).into(), Border::Wrap.into(), inside] {
                for isa in Isa::available() {
                    let all = render(&whole(&image, h, w), &map, how, &edge, Window::whole(h), 0..w, isa);
                    for (rows, cols) in [(Window::new(3, 21), 7..60), (Window::new(50, 51), 89..90)] {
                        let need = map.footprint(rows, w, how);
                        // Wrapped rows are held as such, the image's own rows alone otherwise.
                        let window = match edge {
                            Edge::Border(Border::Wrap) => need,
                            Edge::Border(_) => need.clipped(h),
                            // Neighbours of the last row are mirrored.
                            Edge::Inside(_) => need.grown(1, 1).clipped(h),
                        };
                        let held = rows_of(&image, h, w, window);
                        let plane = Plane::new(&held, h, w, window);
                        let got = render(&plane, &map, how, &edge, rows, cols.clone(), isa);
                        let want: Vec<f32> = (rows.start as usize..rows.end as usize)
                            .flat_map(|y| all[y * w + cols.start..y * w + cols.end].to_vec())
                            .collect();
                        assert_same(&got, &want, &format!("{map:?} {how:?} {edge:?} {isa:?}"));
                    }
                }
            }
        }
    }
}
