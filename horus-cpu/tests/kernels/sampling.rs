//! Sampling at computed positions, and resizing, against their definitions.

use horus_base::dtype::{DType, Pixel, Scalar};
use horus_base::shape::{Border, Shape, Window};
use horus_cpu::cpu::device::CpuDevice;
use horus_cpu::cpu::simd::Isa;
use horus_host::device::{Device, Geometry, Launch, LaunchInput, Memory};
use horus_host::host::buffer::HostBuffer;
use horus_plan::ir::kernel::Kernel;
use horus_plan::ops::resize::{Lines, Resampling};
use horus_plan::ops::sampling::Sampling;
use horus_plan::ops::{Remap, Resize};
use horus_testing::for_each_type;
use horus_testing::pixels::{assert_same, noise};
use horus_testing::reference::{Image, interleaved, sampling as definition};

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

fn follows_the_definition<T: Pixel>() {
    let of = Shape::volume(9, 23, 31, 2);
    let pixels = noise::<T>(of.len(), 7, true);
    let places = [(1, of.depth), (2, of.height), (3, of.width)].map(|(seed, n)| positions(seed, n));
    let image = Image::new(of, pixels.clone());
    let oracle = places.each_ref().map(|place| Image::new(AT, place.clone()));
    for how in Sampling::ALL {
        for (axes, border) in [(2, Border::Wrap), (3, Border::Reflect), (2, Border::Constant(3.25))] {
            let shape = Shape { depth: if axes == 3 { 1 } else { of.depth }, channels: of.channels, ..AT };
            let outside = (border != Border::Wrap).then_some(Scalar::from_f64(T::DTYPE, 5.0));
            let want = definition::remap(&image, &oracle.each_ref()[3 - axes..], how, border, outside);
            let memory = |data: &[f64]| Memory::Host(HostBuffer::from_slice(data));
            let whole = |shape: Shape, dtype| Geometry { shape, dtype, window: Window::whole(shape.height) };
            let mut held = vec![(Memory::Host(HostBuffer::from_slice(&pixels)), whole(of, T::DTYPE))];
            held.extend(places[3 - axes..].iter().map(|place| (memory(place), whole(AT, DType::F64))));
            let inputs: Vec<LaunchInput<'_>> =
                held.iter().map(|(memory, geometry)| LaunchInput { memory, geometry: *geometry }).collect();
            for isa in Isa::available() {
                let mut out = Memory::Host(HostBuffer::from_slice(&vec![T::ONE; shape.len()]));
                let geometry = whole(shape, T::DTYPE);
                let launch = Launch {
                    kernel: &Kernel::Whole(Remap { sampling: how, border, outside }.into()),
                    inputs: &inputs,
                    output: &mut out,
                    more: &mut [],
                    geometry,
                    rows: geometry.window,
                };
                CpuDevice::new(Some(1)).unwrap().with_isa(isa).launch(launch).unwrap();
                let what = format!("{} {border} {} axes {isa:?} {}", how.name(), axes, T::DTYPE);
                assert_same(out.host().unwrap().as_slice::<T>(), want.as_slice::<T>(), &what);
            }
        }
    }
}

#[test]
fn samples_follow_the_definition_for_every_type() {
    for_each_type!(follows_the_definition);
}

fn resizes_follow_the_definition<T: Pixel>() {
    let of = Shape::volume(2, 37, 150, 3);
    let image = Image::new(of, noise::<T>(of.len(), 9, true));
    for how in Resampling::ALL {
        // Parts of groups of rows and of blocks of columns remain.
        for (height, width) in [(21, 61), (95, 301), (16, 3)] {
            let shape = Shape { height, width, ..of };
            let how = Resize { how, rows: Lines::new(of.height, height), columns: Lines::new(of.width, width) };
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
                        more: &mut [],
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
