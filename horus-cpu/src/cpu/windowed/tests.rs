use super::*;
use crate::cpu::plane::whole;
use horus_base::dtype::Float;
use horus_host::device::LaunchInput;
use horus_plan::ops::neighbourhood::Reach;
use horus_plan::ops::windowed::{Ranked, line_sum};
use horus_testing::for_each_type;
use horus_testing::pixels::{SIZES, assert_same, borders, noise, rows_of};

const REACHES: [Reach; 6] = [
    Reach { up: 1, down: 1, left: 1, right: 1 },
    Reach { up: 0, down: 0, left: 3, right: 2 },
    Reach { up: 6, down: 0, left: 0, right: 0 },
    Reach { up: 9, down: 13, left: 18, right: 4 },
    Reach { up: 0, down: 0, left: 0, right: 0 },
    Reach { up: 2, down: 70, left: 41, right: 0 },
];

/// The mean of one pixel, from the definition.
fn mean<S: Pixel, A: Float>(plane: &Plane<'_, S>, of: &BoxMean, border: Border, y: usize, x: usize) -> f64 {
    let Reach { up, left, .. } = of.reach;
    let at = |y: usize, up: usize, i: usize| (y + i).cast_signed() - up.cast_signed();
    let pixel = |i: usize, j: usize| A::from_f64(plane.pixel(at(y, up, i), at(x, left, j), border).to_f64());
    let sum = line_sum(of.height(), &|i| line_sum(of.width(), &|j| pixel(i, j)));
    if of.count == 0 { sum.to_f64() } else { sum.div(A::from_f64(of.count as f64)).to_f64() }
}

fn means_follow_the_definition<T: Pixel>() {
    for (k, (h, w)) in SIZES.into_iter().enumerate() {
        let image = noise::<T>(h * w, k as u64, k % 2 == 0);
        let plane = whole(&image, h, w);
        for reach in REACHES {
            for border in borders() {
                let of = BoxMean::over(reach);
                let cell = |i: usize| match T::DTYPE {
                    DType::F32 => mean::<T, f32>(&plane, &of, border, i / w, i % w),
                    _ => mean::<T, f64>(&plane, &of, border, i / w, i % w),
                };
                let want: Vec<f64> = (0..h * w).map(cell).collect();
                for isa in Isa::available() {
                    let what = format!("{} {h}x{w} {reach:?} {border} {isa:?}", T::DTYPE);
                    if T::DTYPE == DType::F64 {
                        let mut out = vec![1.0f64; h * w];
                        means(isa, &plane, (&of, border), Window::whole(h), &mut out);
                        assert_same(&out, &want, &what);
                    } else {
                        let mut out = vec![1.0f32; h * w];
                        means(isa, &plane, (&of, border), Window::whole(h), &mut out);
                        let want: Vec<f32> = want.iter().map(|v| *v as f32).collect();
                        assert_same(&out, &want, &what);
                    }
                }
            }
        }
    }
}

#[test]
fn means_follow_the_definition_for_every_type() {
    for_each_type!(means_follow_the_definition);
}

fn rectangle(up: i32, down: i32, left: i32, right: i32, place: usize) -> Ranked {
    let all: Vec<_> = (-up..=down).flat_map(|y| (-left..=right).map(move |x| (y, x))).collect();
    Ranked::new(&all, place)
}

fn disc(radius: i32, place: usize) -> Ranked {
    let square = (-radius..=radius).flat_map(|y| (-radius..=radius).map(move |x| (y, x)));
    Ranked::new(&square.filter(|(y, x)| y * y + x * x <= radius * radius).collect::<Vec<_>>(), place)
}

fn ranks_follow_the_definition<T: Pixel>() {
    let apart = Ranked::new(&[(-5, 2), (0, -7), (0, 3), (1, 3), (6, -1)], 3);
    let all = [rectangle(1, 1, 1, 1, 4), rectangle(4, 0, 0, 9, 0), rectangle(7, 9, 8, 3, 203), disc(5, 40), apart];
    for (k, (h, w)) in SIZES.into_iter().enumerate() {
        let image = noise::<T>(h * w, k as u64, k % 2 == 0);
        let plane = whole(&image, h, w);
        for rank in &all {
            for border in borders() {
                let cell = |i: usize| {
                    let at = |i: usize, d: i32| i.cast_signed() + d as isize;
                    let under = rank.spans.iter().flat_map(|s| (s.from..s.to).map(|x| (s.y, x)));
                    let mut pixels: Vec<T> =
                        under.map(|(y, x)| plane.pixel(at(i / w, y), at(i % w, x), border)).collect();
                    pixels.sort_by_key(|v| horus_plan::ops::windowed::ordered(v.scalar()));
                    pixels[rank.place]
                };
                let want: Vec<T> = (0..h * w).map(cell).collect();
                let what = format!("{} {h}x{w} {} {border}", T::DTYPE, Windowed::Rank(rank.clone()).name());
                let mut out = vec![T::ONE; h * w];
                ranks::ranks(&plane, rank, border, Window::whole(h), &mut out);
                assert_same(&out, &want, &what);
                for isa in Isa::available().into_iter().filter(|_| size_of::<T>() == 1 && rank.is_rectangle()) {
                    let mut out = vec![T::ONE; h * w];
                    by_histograms(isa, &plane, (rank, border), Window::whole(h), &mut out);
                    assert_same(&out, &want, &format!("{what} {isa:?} by columns"));
                }
            }
        }
    }
}

#[test]
fn ranks_follow_the_definition_for_every_type() {
    for_each_type!(ranks_follow_the_definition);
}

/// A launch over rows `rows`, holding only the rows that it reads, on a number of threads.
fn part(
    how: &Windowed,
    border: Border,
    image: &[f32],
    (h, w): (usize, usize),
    rows: Window,
    threads: usize,
) -> Vec<f32> {
    use horus_host::device::Memory;
    use horus_host::host::buffer::HostBuffer;
    let shape = horus_base::shape::Shape::new(h, w, 1);
    let operation = Sliding { how: how.clone(), border };
    let kernel = horus_plan::ir::kernel::Kernel::from(operation.clone());
    let reach = how.reach();
    let window =
        if border == Border::Wrap { rows.grown(reach.up, reach.down) } else { kernel.footprint(0, rows, shape, shape) };
    let held = rows_of(image, h, w, window);
    let geometry = Geometry { shape, dtype: DType::F32, window };
    let mut memory = HostBuffer::zeroed(geometry.bytes());
    memory.as_mut_slice::<f32>().copy_from_slice(&held);
    let memory = Memory::Host(memory);
    let to = Geometry { window: rows.grown(2, 1), ..geometry };
    let mut output = Memory::Host(HostBuffer::zeroed(to.bytes()));
    let launch = Launch {
        kernel: &kernel,
        inputs: &[LaunchInput { memory: &memory, geometry }],
        output: &mut output,
        more: &mut [],
        geometry: to,
        rows,
    };
    super::launch(launch, &operation, Isa::detect().unwrap(), threads).unwrap();
    output.host().unwrap().as_slice::<f32>()[2 * w..][..rows.len() * w].to_vec()
}

#[test]
fn rows_from_what_they_need_are_those_of_the_whole() {
    let (h, w) = (700, 90);
    let image = noise::<f32>(h * w, 3, false);
    let means = [REACHES[3], REACHES[5]].map(|reach| Windowed::Mean(BoxMean::over(reach)));
    for how in means.into_iter().chain([Windowed::Rank(disc(9, 100))]) {
        for border in [Border::Reflect101, Border::Wrap, Border::Constant(2.0)] {
            let all = part(&how, border, &image, (h, w), Window::whole(h), 1);
            for (rows, threads) in [(Window::whole(h), 3), (Window::new(0, 5), 2), (Window::new(61, 690), 4)] {
                let got = part(&how, border, &image, (h, w), rows, threads);
                let want = &all[rows.start.cast_unsigned() * w..][..got.len()];
                assert_same(&got, want, &format!("{} {border} {rows}", how.name()));
            }
        }
    }
}
