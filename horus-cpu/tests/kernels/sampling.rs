//! Sampling at computed positions, and resizing, against their definitions.

use horus_base::dtype::{DType, Pixel, Scalar};
use horus_base::shape::{Border, Shape, Window};
use horus_cpu::device::CpuDevice;
use horus_cpu::simd::Isa;
use horus_host::buffer::HostBuffer;
use horus_host::device::{Device, Geometry, Launch, LaunchInput, Memory};
use horus_plan::ir::kernel::Kernel;
use horus_plan::ops::resize::{Resampling, ResizedLines};
use horus_plan::ops::sampling::Sampling;
use horus_plan::ops::{Remap, Resize};
use horus_testing::cases::part;
use horus_testing::for_each_type;
use horus_testing::pixels::{assert_same, noise};
use horus_testing::reference::{ReferenceImage, interleaved, sampling as definition};

/// Wider than two of the blocks that are sampled together.
const AT: Shape = Shape::new(4, 137, 1);

/// Positions in an image of `n` pixels and up to 5 beyond it; some are integers, halves or NaN.
fn positions(seed: u64, n: usize) -> Vec<f64> {
    let special = |i: usize, v: f64| match i % 19 {
        3 => v.round(),
        7 => v.floor() + 0.5,
        11 => f64::NAN,
        _ => v,
    };
    let unit = noise::<f64>(AT.len(), seed, false).into_iter().map(|v| (v + 8.0) / 16.0);
    unit.enumerate().map(|(i, u)| special(i, u * (n as f64 + 10.0) - 5.0)).collect()
}

/// Positions of a shape as those of a map: `(origin, step per level, row and column)`, now and then elsewhere.
fn mapped(at: Shape, [origin, level, row, column]: [f64; 4]) -> Vec<f64> {
    let place = |i: usize| [i / at.area(), i / at.width % at.height, i % at.width];
    let of = |[z, y, x]: [usize; 3]| origin + level * z as f64 + row * y as f64 + column * x as f64;
    (0..at.len()).map(|i| of(place(i))).collect()
}

/// Samples of a volume, and of each level of it, at positions along its axes, on every instruction set and by several threads.
fn samples_are_those_of_the_oracle<T: Pixel>(at: Shape, places: &[Vec<f64>; 3], which: &str) {
    let of = Shape::volume(9, 23, 31, 2);
    let pixels = noise::<T>(of.len(), 7, true);
    let image = ReferenceImage::new(of, pixels.clone());
    let oracle = places.each_ref().map(|place| ReferenceImage::new(at, place.clone()));
    let kinds = [(2, Border::Wrap), (3, Border::Reflect), (2, Border::Constant(3.25)), (3, Border::Constant(2.5))];
    for (number, how) in Sampling::ALL.into_iter().enumerate() {
        // Half of all, another half for each type.
        let half = |mut all: Vec<usize>| {
            all.retain(|kind| (number + kind / 2 + T::DTYPE as usize).is_multiple_of(2));
            all
        };
        for (axes, border) in part((0..kinds.len()).collect(), half).into_iter().map(|kind| kinds[kind]) {
            if axes == 2 && at.depth > 1 {
                continue;
            }
            let shape = Shape { depth: if axes == 3 { at.depth } else { of.depth }, channels: of.channels, ..at };
            let outside = (border != Border::Wrap).then_some(Scalar::from_f64(T::DTYPE, 5.0));
            let want = definition::remap(&image, &oracle.each_ref()[3 - axes..], how, border, outside);
            let memory = |data: &[f64]| Memory::Host(HostBuffer::from_slice(data));
            let whole = |shape: Shape, dtype| Geometry { shape, dtype, window: Window::whole(shape.height) };
            let mut held = vec![(Memory::Host(HostBuffer::from_slice(&pixels)), whole(of, T::DTYPE))];
            held.extend(places[3 - axes..].iter().map(|place| (memory(place), whole(at, DType::F64))));
            let inputs: Vec<LaunchInput<'_>> =
                held.iter().map(|(memory, geometry)| LaunchInput { memory, geometry: *geometry }).collect();
            for (isa, threads) in Isa::available().into_iter().flat_map(|isa| [(isa, 1), (isa, 3)]) {
                let mut out = Memory::Host(HostBuffer::from_slice(&vec![T::ONE; shape.len()]));
                let geometry = whole(shape, T::DTYPE);
                let launch = Launch {
                    kernel: &Kernel::Whole(Remap { sampling: how, border, outside }.into()),
                    inputs: &inputs,
                    output: &mut out,
                    additional_outputs: &mut [],
                    geometry,
                    rows: geometry.window,
                };
                CpuDevice::new(Some(threads)).unwrap().with_isa(isa).launch(launch).unwrap();
                let what = format!("{which} {} {border} {axes} axes {isa:?} {threads} {}", how.name(), T::DTYPE);
                assert_same(out.host().unwrap().as_slice::<T>(), want.as_slice::<T>(), &what);
            }
        }
    }
}

fn follows_the_definition<T: Pixel>() {
    let places = [(1, 9), (2, 23), (3, 31)].map(|(seed, n)| positions(seed, n));
    samples_are_those_of_the_oracle::<T>(AT, &places, "noise");
}

#[test]
fn samples_follow_the_definition_for_every_type() {
    for_each_type!(follows_the_definition);
}

/// Whole groups of samples inside, which cross all edges elsewhere.
fn maps_follow_the_definition<T: Pixel>() {
    let at = Shape::volume(3, 11, 150, 1);
    let turned = [[1.6, 1.5, -0.1, 0.03], [2.1, 0.4, 1.3, 0.05], [-4.6, 0.8, 0.5, 0.25]];
    samples_are_those_of_the_oracle::<T>(at, &turned.map(|map| mapped(at, map)), "turned");
}

#[test]
fn samples_of_oblique_maps_follow_the_definition() {
    for_each_type!(maps_follow_the_definition);
}

/// Rows of the result in one row and level, beyond the edges too; in between others, and with other columns.
fn scales_follow_the_definition<T: Pixel>() {
    for (at, depth) in [(Shape::new(31, 150, 1), 1.25), (Shape::volume(6, 13, 67, 1), 2.0)] {
        let scaled = [[-1.5, depth, 0.0, 0.0], [-2.25, 0.0, 0.9, 0.0], [-3.5, 0.0, 0.0, 0.27]];
        let mut places = scaled.map(|map| mapped(at, map));
        samples_are_those_of_the_oracle::<T>(at, &places, "scaled");
        for row in [3, 7, 8] {
            for (i, place) in places[2][row * at.width..(row + 1) * at.width].iter_mut().enumerate() {
                *place = if row == 7 && i % 11 == 3 { f64::NAN } else { *place + 0.125 };
            }
        }
        places[1][5 * at.width + 40] += 1.0;
        places[0][10 * at.width..11 * at.width].fill(f64::NAN);
        places[1][12 * at.width..13 * at.width].fill(f64::INFINITY);
        samples_are_those_of_the_oracle::<T>(at, &places, "disturbed");
    }
}

#[test]
fn samples_of_scales_follow_the_definition() {
    for_each_type!(scales_follow_the_definition);
}

fn resizes_follow_the_definition<T: Pixel>() {
    let of = Shape::volume(2, 37, 150, 3);
    let image = ReferenceImage::new(of, noise::<T>(of.len(), 9, true));
    for how in Resampling::ALL {
        // Parts of groups of rows and of blocks of columns remain.
        for (height, width) in [(21, 61), (95, 301), (16, 3)] {
            let shape = Shape { height, width, ..of };
            let how =
                Resize { how, rows: ResizedLines::new(of.height, height), columns: ResizedLines::new(of.width, width) };
            let want = definition::resize(&image, &how, shape);
            let whole = |shape: Shape| Geometry { shape, dtype: T::DTYPE, window: Window::whole(shape.height) };
            for (image, want) in [(image.clone(), want.clone()), (interleaved(&image), interleaved(&want))] {
                let memory = Memory::Host(HostBuffer::from_slice(image.as_slice::<T>()));
                let inputs = [LaunchInput { memory: &memory, geometry: whole(image.shape) }];
                for isa in Isa::available() {
                    let mut out = Memory::Host(HostBuffer::from_slice(&vec![T::ONE; shape.len()]));
                    let launch = Launch {
                        kernel: &Kernel::Whole(how.into()),
                        inputs: &inputs,
                        output: &mut out,
                        additional_outputs: &mut [],
                        geometry: whole(want.shape),
                        rows: Window::whole(height),
                    };
                    CpuDevice::new(Some(1)).unwrap().with_isa(isa).launch(launch).unwrap();
                    let what = format!("{} to {} {isa:?} {}", how.how.name(), want.shape, T::DTYPE);
                    assert_same(out.host().unwrap().as_slice::<T>(), want.as_slice::<T>(), &what);
                }
            }
        }
    }
}

#[test]
fn resizes_follow_the_definition_for_every_type() {
    for_each_type!(resizes_follow_the_definition);
}
