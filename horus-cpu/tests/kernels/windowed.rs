//! Means and ranks under windows of any size, against the oracle of images.

use horus_base::dispatch;
use horus_base::dtype::DType;
use horus_base::shape::{Border, Shape, Window};
use horus_cpu::device::CpuDevice;
use horus_cpu::simd::Isa;
use horus_host::buffer::HostBuffer;
use horus_host::device::{Device, Geometry, Launch, LaunchInput, Memory};
use horus_plan::ir::kernel::Kernel;
use horus_plan::ops::neighbourhood::Reach;
use horus_plan::ops::windowed::{BoxMean, Ranked, Windowed};
use horus_plan::ops::{ImageOperation as _, Sliding};
use horus_testing::cases::covering;
use horus_testing::pixels::{SIZES, assert_same, borders, noise, rows_of};
use horus_testing::reference::windowed::windowed;
use horus_testing::reference::{ReferenceImage, interleaved};

const REACHES: [Reach; 6] = [
    Reach { up: 1, down: 1, left: 1, right: 1 },
    Reach { up: 0, down: 0, left: 3, right: 2 },
    Reach { up: 6, down: 0, left: 0, right: 0 },
    Reach { up: 9, down: 13, left: 18, right: 4 },
    Reach { up: 0, down: 0, left: 0, right: 0 },
    Reach { up: 2, down: 70, left: 41, right: 0 },
];

/// Runs an operation over rows `rows`; the output holds `to` and begins as ones.
fn run(
    device: &CpuDevice,
    operation: &Sliding,
    (memory, geometry): (&Memory, Geometry),
    (dtype, to): (DType, Window),
    rows: Window,
) -> Memory {
    let output = Geometry { dtype, window: to, ..geometry };
    let mut out = Memory::Host(HostBuffer::from_slice(&vec![1u8; output.bytes()]));
    let launch = Launch {
        kernel: &Kernel::from(operation.clone()),
        inputs: &[LaunchInput { memory, geometry }],
        output: &mut out,
        additional_outputs: &mut [],
        geometry: output,
        rows,
    };
    device.launch(launch).unwrap();
    out
}

/// Checks windows of every type at every border on images of every size, for every instruction set.
fn follow_the_definition(windows: &[Windowed], result: fn(DType) -> DType) {
    let borders = borders();
    for [dtype, size, how, border] in covering([DType::ALL.len(), SIZES.len(), windows.len(), borders.len()]) {
        let (dtype, (h, w), how, border) = (DType::ALL[dtype], SIZES[size], &windows[how], borders[border]);
        // Those that know samples also of several: what they are of planes.
        let operation = Sliding { how: how.clone(), border };
        let channels = if operation.supports_samples() { 1 + (h * w + size) % 4 } else { 1 };
        let (planes, result) = (Shape::new(h, w, channels), result(dtype));
        let image =
            dispatch!(dtype, T => ReferenceImage::new(planes, noise::<T>(planes.len(), size as u64, size % 2 == 0)));
        let want = interleaved(&windowed(&image, &operation, result));
        let (shape, image) = (planes.interleaved(), interleaved(&image));
        let memory = Memory::Host(HostBuffer::from_slice(image.bytes()));
        let geometry = Geometry { shape, dtype, window: Window::whole(h) };
        for isa in Isa::available() {
            let device = CpuDevice::new(Some(1)).unwrap().with_isa(isa);
            let got = run(&device, &operation, (&memory, geometry), (result, geometry.window), geometry.window);
            let what = format!("{dtype} {h}x{w} {how:?} {border} {isa:?}");
            dispatch!(result, T => {
                assert_same(got.host().unwrap().as_slice::<T>(), want.as_slice::<T>(), &what);
            });
        }
    }
}

#[test]
fn means_follow_the_definition_for_every_type() {
    let means = REACHES.map(|reach| Windowed::Mean(BoxMean::over(reach)));
    follow_the_definition(&means, |dtype| if dtype == DType::F64 { DType::F64 } else { DType::F32 });
}

#[test]
fn variances_follow_the_definition_for_every_type() {
    follow_the_definition(&REACHES.map(|reach| Windowed::Variance(BoxMean::over(reach))), |_| DType::F64);
}

fn rectangle(up: i32, down: i32, left: i32, right: i32, place: usize) -> Ranked {
    let all: Vec<_> = (-up..=down).flat_map(|y| (-left..=right).map(move |x| (y, x))).collect();
    Ranked::new(&all, place)
}

fn disc(radius: i32, place: usize) -> Ranked {
    let square = (-radius..=radius).flat_map(|y| (-radius..=radius).map(move |x| (y, x)));
    Ranked::new(&square.filter(|(y, x)| y * y + x * x <= radius * radius).collect::<Vec<_>>(), place)
}

#[test]
fn ranks_follow_the_definition_for_every_type() {
    let apart = Ranked::new(&[(-5, 2), (0, -7), (0, 3), (1, 3), (6, -1)], 3);
    let all = [rectangle(1, 1, 1, 1, 4), rectangle(4, 0, 0, 9, 0), rectangle(7, 9, 8, 3, 203), disc(5, 40), apart];
    follow_the_definition(&all.map(Windowed::Rank), |dtype| dtype);
}

/// Footprints of several levels: of more pixels than a byte counts, apart, beyond the volume, and of one level that is not
/// the pixel's.
#[test]
fn ranks_across_levels_follow_the_definition_for_every_type() {
    let block = |z: i32, y: i32, x: i32| {
        (-z..=z).flat_map(move |dz| (-y..=y).flat_map(move |dy| (-x..=x).map(move |dx| (dz, dy, dx))))
    };
    let footprints = [
        Ranked::across(block(1, 1, 1), 13),
        Ranked::across(block(3, 3, 3), 300),
        Ranked::across(block(1, 2, 4), 0),
        Ranked::across([(-4, 2, 0), (-1, -1, -9), (-1, -1, -8), (0, 0, 7), (2, 0, 0)], 4),
        Ranked::across([(1, 0, 0)], 0),
    ];
    let shapes = [
        Shape::volume(1, 3, 5, 1),
        Shape::volume(5, 23, 70, 2),
        Shape::volume(2, 4, 300, 1),
        Shape::volume(3, 1, 1, 1),
    ];
    let borders = borders();
    for [dtype, shape, how, border] in covering([DType::ALL.len(), shapes.len(), footprints.len(), borders.len()]) {
        let (dtype, shape, border) = (DType::ALL[dtype], shapes[shape], borders[border]);
        let how = Windowed::Rank(footprints[how].clone());
        let image = dispatch!(dtype, T => ReferenceImage::new(shape, noise::<T>(shape.len(), 5, shape.depth % 2 == 0)));
        let memory = Memory::Host(HostBuffer::from_slice(image.bytes()));
        let geometry = Geometry { shape, dtype, window: Window::whole(shape.height) };
        let operation = Sliding { how: how.clone(), border };
        let want = windowed(&image, &operation, dtype);
        for isa in Isa::available() {
            let device = CpuDevice::new(Some(2)).unwrap().with_isa(isa);
            let got = run(&device, &operation, (&memory, geometry), (dtype, geometry.window), geometry.window);
            let what = format!("{dtype} {shape} {how:?} {border} {isa:?}");
            dispatch!(dtype, T => {
                assert_same(got.host().unwrap().as_slice::<T>(), want.as_slice::<T>(), &what);
            });
        }
    }
}

#[test]
fn rows_from_what_they_need_are_those_of_the_whole() {
    let (h, w) = (700, 190);
    let shape = Shape::new(h, w, 1);
    let image = noise::<f32>(h * w, 3, false);
    // Rows of an operation, holding only the rows that it reads, on a number of threads.
    let part = |operation: &Sliding, rows: Window, threads: usize| {
        let (kernel, reach) = (Kernel::from(operation.clone()), operation.how.reach());
        let window = match operation.border {
            Border::Wrap => rows.grown(reach.up, reach.down),
            _ => kernel.footprint(0, rows, shape, shape),
        };
        let held = Memory::Host(HostBuffer::from_slice(&rows_of(&image, h, w, window)));
        let geometry = Geometry { shape, dtype: DType::F32, window };
        let device = CpuDevice::new(Some(threads)).unwrap();
        let out = run(&device, operation, (&held, geometry), (DType::F32, rows.grown(2, 1)), rows);
        out.host().unwrap().as_slice::<f32>()[2 * w..][..rows.len() * w].to_vec()
    };
    let means = [REACHES[3], REACHES[5]].map(|reach| Windowed::Mean(BoxMean::over(reach)));
    for how in means.into_iter().chain([Windowed::Rank(disc(9, 100))]) {
        for border in [Border::Reflect101, Border::Wrap, Border::Constant(2.0)] {
            let operation = Sliding { how: how.clone(), border };
            let all = part(&operation, Window::whole(h), 1);
            for (rows, threads) in [(Window::whole(h), 3), (Window::new(0, 5), 2), (Window::new(61, 690), 4)] {
                let got = part(&operation, rows, threads);
                let want = &all[rows.start.cast_unsigned() * w..][..got.len()];
                assert_same(&got, want, &format!("{} {border} {rows}", how.name()));
            }
        }
    }
}
