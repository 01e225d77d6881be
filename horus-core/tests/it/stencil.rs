//! Filters of filters in one kernel: the bits of separate operations, for every border, choice and
//! number of ranks; and the number of launches.

use std::sync::Arc;

use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::error::Result;
use horus_core::image::Image;
use horus_core::ops::neighbourhood::Filter;
use horus_core::plan::Mode;
use horus_core::session::{Session, SessionBuilder};
use horus_core::settings::Stencil;
use horus_core::shape::{Border, Shape};
use horus_testing::cases::{covering, part};
use horus_testing::simulated::SimulatedDevice;

const BORDERS: [Border; 5] = Border::all(0.5);

fn builder(separate: bool, stencil: Stencil) -> SessionBuilder {
    let cpu = CpuDevice::new(Some(2)).expect("a CPU");
    let builder = match separate {
        false => Session::on(Box::new(cpu)),
        true => Session::on(Box::new(SimulatedDevice::new(cpu, 1 << 22))),
    };
    builder.stencil(stencil)
}

/// Repeatable numbers.
struct RepeatableNumbers(u64);

impl RepeatableNumbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    fn border(&mut self) -> Border {
        BORDERS[self.below(BORDERS.len())]
    }

    fn taps(&mut self, n: usize) -> Vec<f64> {
        (0..n).map(|_| self.below(17) as f64 * 0.125 - 1.0).collect()
    }

    fn offset(&mut self) -> i32 {
        self.below(5) as i32 - 2
    }
}

/// A filter, a shift, a derivative, or pixel operations on two of them.
fn step(r: &mut RepeatableNumbers, u: &Image<f32>, other: &Image<f32>) -> Image<f32> {
    let column =
        Image::from_volume_fn(u.session(), u.shape().depth, u.shape().height, 1, |_, y, _| 1.0 / (1 + y) as f32);
    match r.below(10) {
        0 => {
            u.with_border(r.border()).correlate(&Filter::sparse([(-1, 0), (0, -1), (0, 0), (0, 1), (1, 0)], r.taps(5)))
        }
        1 => {
            let (h, w) = (1 + r.below(3), 1 + r.below(4));
            u.with_border(r.border()).correlate(&Filter::dense(h, w, r.taps(h * w)))
        }
        2 => u.with_border(r.border()).shift(0, r.below(3) as isize - 1, r.below(5) as isize - 2) * 0.5,
        3 => {
            let border = r.border();
            (u - u.with_border(border).shift(0, 0, 1)) + (u - u.with_border(border).shift(0, 1, 0)) * other
        }
        4 => u.with_border(r.border()).separable(&Filter::row(r.taps(3)), &Filter::column(r.taps(3))).abs(),
        5 => {
            let at = [(r.offset(), r.offset()), (r.offset(), r.offset())];
            u.with_border(r.border()).correlate(&Filter::sparse(at, r.taps(2))) * u
        }
        7 => (u - u.with_border(r.border()).shift(0, 1, 1)) * column,
        8 => {
            // Read by what is read around the pixels, and beside it.
            let slope = u - u.with_border(r.border()).shift(0, 1, 0);
            (&slope * u).with_border(r.border()).correlate(&Filter::row(r.taps(2))) + slope
        }
        6 => (u * other).with_border(r.border()).correlate(&Filter::row(r.taps(3))) + other,
        _ => {
            let border = r.border();
            u.with_border(border)
                .correlate(&Filter::row([-1.0, 0.0, 1.0]))
                .hypot(u.with_border(border).correlate(&Filter::column([-1.0, 0.0, 1.0])))
        }
    }
}

/// The bits of many programs over images of this extent.
fn results(s: &Session, shape: Shape, seeds: std::ops::Range<u64>) -> Result<Vec<Vec<u32>>> {
    let value = |z: usize, y: usize, x: usize| ((z * 53 + y * 31 + x * 17) % 101) as f32 * 0.125 - 3.0;
    let u = Image::from_volume_fn(s, shape.depth, shape.height, shape.width, value);
    let other = Image::from_volume_fn(s, shape.depth, shape.height, shape.width, |z, y, x| -value(z, x, y));
    let all = seeds.map(|seed| {
        let r = &mut RepeatableNumbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut v = u.clone();
        for _ in 0..2 + r.below(2) {
            v = step(r, &v, &other);
        }
        Ok(v.to_vec()?.into_iter().map(f32::to_bits).collect())
    });
    all.collect()
}

fn naive(shape: Shape, seeds: std::ops::Range<u64>) -> Vec<Vec<u32>> {
    let s = builder(false, Stencil::Auto).mode(Mode::Naive).build().unwrap();
    results(&s, shape, seeds).unwrap()
}

/// Extents: odd, of one pixel, one row, one column, wider than the pieces of a row, several planes.
fn extents() -> Vec<Shape> {
    let plane = [(37, 23), (1, 1), (1, 29), (19, 1), (2, 3), (5, 1400), (64, 33)];
    let mut all: Vec<Shape> = plane.into_iter().map(|(h, w)| Shape::new(h, w, 1)).collect();
    all.push(Shape::volume(3, 13, 17, 1));
    all
}

#[test]
fn filters_of_filters_have_the_bits_of_operations_one_by_one() {
    for shape in extents() {
        let seeds = if shape.width > 1000 { 0..20 } else { 0..60 };
        let want = naive(shape, seeds.clone());
        for (k, stencil) in Stencil::ALL.into_iter().enumerate() {
            for separate in part(vec![false, true], |_| vec![(k + shape.height) % 2 == 0]) {
                let s = builder(separate, stencil).build().unwrap();
                for (seed, (got, want)) in results(&s, shape, seeds.clone()).unwrap().iter().zip(&want).enumerate() {
                    let at = got.iter().zip(want).position(|(a, b)| a != b);
                    assert_eq!(at, None, "{shape}, program {seed}, {stencil:?}, own memory: {separate}");
                }
            }
        }
    }
}

#[test]
fn ranks_exchange_as_many_rows_as_all_filters_together_read() {
    for [size, more, stencil] in covering([4, 4, 2]) {
        let (height, width) = [(37, 23), (7, 5), (2, 9), (1, 1)][size];
        let (ranks, stencil) = (2 + more, [Stencil::Auto, Stencil::Tile][stencil]);
        let shape = Shape::new(height, width, 1);
        let want = naive(shape, 0..60);
        let all = ThreadComm::run(ranks, |comm| {
            let s = builder(ranks % 2 == 0, stencil).communicator(Arc::new(comm)).build().unwrap();
            results(&s, shape, 0..60).unwrap()
        });
        for got in all {
            let differs = (0..want.len()).find(|&p| got[p] != want[p]);
            assert_eq!(differs, None, "program of {shape} on {ranks} ranks, {stencil:?}");
        }
    }
}

/// Launches for one program, on a device with or without its own memory.
fn launches(separate: bool, stencil: Stencil, program: impl Fn(&Image<f32>) -> Image<f32>) -> usize {
    let s = builder(separate, stencil).build().unwrap();
    let u = Image::from_fn(&s, 40, 30, |y, x| (y * x % 7) as f32);
    s.evaluate().unwrap();
    let before = s.stats().made.launches;
    program(&u).to_vec().unwrap();
    s.stats().made.launches - before
}

#[test]
fn what_filters_read_is_stored_or_not_as_requested() {
    let laplace = |u: &Image<f32>| {
        u.with_border(Border::Replicate)
            .correlate(&Filter::sparse([(-1, 0), (0, -1), (0, 1), (1, 0), (0, 0)], [1.0, 1.0, 1.0, 1.0, -4.0]))
    };
    type Program<'a> = &'a dyn Fn(&Image<f32>) -> Image<f32>;
    let hyper = |u: &Image<f32>| u - laplace(&laplace(u)) * 0.01;
    let divergence = |u: &Image<f32>| {
        let flux = |dy: isize, dx: isize| {
            let d = u.with_border(Border::Replicate).shift(0, -dy, -dx) - u;
            (-d.square()).exp() * d
        };
        let (down, right) = (flux(1, 0), flux(0, 1));
        let back = |f: &Image<f32>, dy: isize, dx: isize| f - f.shift(0, dy, dx);
        u + (back(&down, 1, 0) + back(&right, 0, 1)) * 0.2
    };
    let magnitude = |u: &Image<f32>| {
        let slope = |dy: i32, dx: i32| {
            u.with_border(Border::Reflect).correlate(&Filter::sparse([(-dy, -dx), (dy, dx)], [-1.0, 1.0]))
        };
        slope(0, 1).hypot(slope(1, 0)).with_border(Border::Reflect).correlate(&Filter::dense(3, 3, [1.0 / 9.0; 9]))
    };
    let diamond = |u: &Image<f32>| {
        let slope = u - u.with_border(Border::Wrap).shift(0, 1, 0);
        let mean =
            |v: &Image<f32>, to| v.with_border(Border::Wrap).correlate(&Filter::sparse([(0, 0), to], [0.5, 0.5]));
        mean(&(&slope * u), (0, 1)) + mean(&slope, (1, 0))
    };
    // With all images stored, and on a device with its own memory, which does not compute filters again.
    let programs: [(&str, Program<'_>, [usize; 2]); 4] = [
        ("hyper-diffusion", &hyper, [2, 2]),
        ("divergence of fluxes", &divergence, [3, 1]),
        ("smoothed gradient", &magnitude, [2, 2]),
        ("diamond", &diamond, [3, 1]),
    ];
    for (name, program, [stored, separate]) in programs {
        assert_eq!(launches(false, Stencil::Stored, program), stored, "{name}");
        assert_eq!(launches(false, Stencil::Tile, program), 1, "{name}");
        assert_eq!(launches(true, Stencil::Tile, program), separate, "{name}");
    }
    // An image with other readers, or read by something other than a filter of few taps, is always
    // stored.
    let read_twice = |u: &Image<f32>| {
        let v = laplace(u);
        laplace(&v).with_border(Border::Wrap).median(3) + laplace(&v).transpose().transpose()
    };
    assert!(launches(false, Stencil::Tile, read_twice) >= 3);
    let far = |u: &Image<f32>| laplace(&u.with_border(Border::Wrap).correlate(&Filter::dense(11, 11, vec![0.01; 121])));
    assert_eq!(launches(false, Stencil::Tile, far), 2);
    let deep = |u: &Image<f32>| (1..6).fold(u.clone(), |v, by| v.with_border(Border::Wrap).shift(0, 0, by).max(&v));
    assert_eq!(launches(false, Stencil::Tile, deep), 2, "chains within chains are bounded");
}
