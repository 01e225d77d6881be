//! Kernels of whole images against their definitions.

use horus_base::dispatch;
use horus_base::dtype::DType;
use horus_base::dtype::Pixel;
use horus_base::shape::{Shape, Window};
use horus_cpu::device::CpuDevice;
use horus_cpu::simd::Isa;
use horus_host::buffer::HostBuffer;
use horus_host::device::{Device, Geometry, Launch, LaunchInput, Memory};
use horus_plan::ir::kernel::Kernel;
use horus_plan::ops::Whole;
use horus_plan::ops::reduce::{Fold, RowReduce, bin_of, fold, fold_planes};
use horus_plan::ops::{Histogram, Merge, Running, Transpose};
use horus_testing::for_each_type;
use horus_testing::pixels::{SIZES, assert_same, noise, rows_of};
use horus_testing::reference;

const CHANNELS: usize = 3;

fn geometry(h: usize, w: usize, channels: usize, dtype: DType, window: Window) -> Geometry {
    Geometry { shape: Shape::new(h, w, channels), dtype, window }
}

/// Runs a kernel over rows `rows`; the output holds `window` and is initialised to all ones.
fn run<T: Pixel, R: Pixel>(
    operation: impl Into<Whole>,
    inputs: &[(Vec<T>, Geometry)],
    mean: Option<f64>,
    output: Geometry,
    rows: Window,
    isa: Isa,
) -> Vec<R> {
    let mut memory: Vec<(Memory, Geometry)> =
        inputs.iter().map(|(v, g)| (Memory::Host(HostBuffer::from_slice(v)), *g)).collect();
    if let Some(m) = mean {
        let g = geometry(1, 1, 1, DType::F64, Window::whole(1));
        memory.push((Memory::Host(HostBuffer::from_slice(&[m])), g));
    }
    let inputs: Vec<LaunchInput<'_>> =
        memory.iter().map(|(memory, geometry)| LaunchInput { memory, geometry: *geometry }).collect();
    let ones = vec![R::ONE; output.bytes() / R::DTYPE.size()];
    let mut out = Memory::Host(HostBuffer::from_slice(&ones));
    let kernel = &Kernel::Whole(operation.into());
    let launch =
        Launch { kernel, inputs: &inputs, output: &mut out, additional_outputs: &mut [], geometry: output, rows };
    CpuDevice::new(Some(1)).unwrap().with_isa(isa).launch(launch).unwrap();
    out.host().unwrap().as_slice::<R>().to_vec()
}

/// An image of three planes, and its rows `window`.
fn image<T: Pixel>(h: usize, w: usize, window: Window) -> (Vec<T>, Vec<T>) {
    let all = noise::<T>(h * w * CHANNELS, (h * 7 + w) as u64, true);
    let held = all.chunks(h * w).flat_map(|p| rows_of(p, h, w, window)).collect();
    (all, held)
}

/// All rows, and the middle ones held with a row or two to spare.
fn windows(h: usize) -> [(Window, Window); 2] {
    let part = Window::new(h as isize / 3, (h as isize / 3 + 2).min(h as isize));
    [(Window::whole(h), Window::whole(h)), (part.grown(1, 2).clipped(h), part)]
}

fn row_reductions_follow_the_fixed_order<T: Pixel>() {
    for (h, w) in SIZES.into_iter().chain([(2, 1023), (2, 1024), (2, 1025), (3, 2049)]) {
        for (window, rows) in windows(h) {
            let (all, held) = image::<T>(h, w, window);
            let input = [(held, geometry(h, w, CHANNELS, T::DTYPE, window))];
            for isa in Isa::available() {
                let row = |c: usize, y: isize| &all[(c * h + y as usize) * w..][..w];
                let mean = 1.0 / 3.0;
                let check = |how: RowReduce| {
                    let result = how.result(T::DTYPE);
                    let out = geometry(h, 1, CHANNELS, result, window);
                    let each = (0..CHANNELS).flat_map(|c| (rows.start..rows.end).map(move |y| (c, y)));
                    let what = |y: isize| format!("{how:?} {h}x{w} {} {isa:?} row {y}", T::DTYPE);
                    if result == DType::F64 && how.fold() == Fold::Sum {
                        let read = (how == RowReduce::SquaredDeviation).then_some(mean);
                        let got = run::<T, f64>(how, &input, read, out, rows, isa);
                        let term = |v: &T| match how {
                            RowReduce::Sum => v.to_f64(),
                            _ => (v.to_f64() - mean) * (v.to_f64() - mean),
                        };
                        for (c, y) in each {
                            let want = fold(Fold::Sum, row(c, y).iter().map(term));
                            assert_same(&got[out.row(c, y)..][..1], &[want], &what(y));
                        }
                    } else {
                        let got = run::<T, T>(how, &input, None, out, rows, isa);
                        for (c, y) in each {
                            let want = fold(how.fold(), row(c, y).iter().copied());
                            assert_same(&got[out.row(c, y)..][..1], &[want], &what(y));
                        }
                    }
                };
                [RowReduce::Sum, RowReduce::SquaredDeviation, RowReduce::Min, RowReduce::Max]
                    .into_iter()
                    .for_each(check);
            }
        }
    }
}

/// Rows of interleaved pixels are reduced sample by sample, as those of planes; their samples are counted together.
fn samples_are_reduced_as_planes<T: Pixel>() {
    for (samples, (h, w)) in [2, 3, 4, 7].into_iter().zip([(5, 37), (3, 2049), (40, 1025), (2, 9)]) {
        let planes = Shape::volume(2, h, w, samples);
        let image = reference::ReferenceImage::new(planes, noise::<T>(planes.len(), (h + w) as u64, true));
        let woven = reference::interleaved(&image);
        for (window, rows) in windows(h) {
            let input = |of: &reference::ReferenceImage| {
                let g = Geometry { shape: of.shape, dtype: T::DTYPE, window };
                let (all, height) = (of.as_slice::<T>(), of.shape.height);
                let held = all.chunks(h * g.shape.line()).flat_map(|p| rows_of(p, height, g.shape.line(), window));
                [(held.collect::<Vec<T>>(), g)]
            };
            let (planar, woven) = (input(&image), input(&woven));
            for isa in Isa::available() {
                for how in RowReduce::ALL {
                    let shape = Shape { width: how.columns(), ..planes };
                    let out = Geometry { shape, dtype: how.result(T::DTYPE), window };
                    let operand = how.has_operand().then_some(1.0);
                    let what = format!("{how:?} of {} {} {isa:?}", woven[0].1.shape, T::DTYPE);
                    dispatch!(out.dtype, R => {
                        let want = run::<T, R>(how, &planar, operand, out, rows, isa);
                        assert_same(&run::<T, R>(how, &woven, operand, out, rows, isa), &want, &what);
                    });
                }
                let how = Histogram::new(19, -1.0, 200.0);
                let out = geometry(1, 19, 1, DType::F64, Window::whole(1));
                let want = run::<T, f64>(how, &planar, None, out, rows, isa);
                assert_eq!(run::<T, f64>(how, &woven, None, out, rows, isa), want, "{isa:?} {}", T::DTYPE);
            }
        }
    }
}

#[test]
fn samples_are_reduced_as_planes_for_every_type() {
    for_each_type!(samples_are_reduced_as_planes);
}

#[test]
fn row_reductions_follow_the_fixed_order_for_every_type() {
    for_each_type!(row_reductions_follow_the_fixed_order);
}

/// Reductions with several results, and with positions, on every instruction set.
fn columns_of_rows_follow_their_definitions<T: Pixel>() {
    for (h, w) in SIZES.into_iter().chain([(2, 1023), (2, 1024), (3, 2049), (1, 20_000)]) {
        for (window, rows) in windows(h) {
            let (all, held) = image::<T>(h, w, window);
            let input = [(held, geometry(h, w, CHANNELS, T::DTYPE, window))];
            let row = |c: usize, y: isize| &all[(c * h + y as usize) * w..][..w];
            // The last pixel of the middle row.
            let wanted = row(1, rows.start)[w - 1].to_f64();
            for isa in Isa::available() {
                let out = |how: RowReduce| geometry(h, how.columns(), CHANNELS, how.result(T::DTYPE), window);
                let (pairs, of) = (out(RowReduce::Extremes), out(RowReduce::Moments));
                let extremes = run::<T, T>(RowReduce::Extremes, &input, None, pairs, rows, isa);
                let found = run::<T, f64>(RowReduce::Moments, &input, None, of, rows, isa);
                let column = out(RowReduce::First);
                let first = RowReduce::First;
                let first = run::<T, f64>(first, &input, Some(wanted), column, rows, isa);
                for (c, y) in (0..CHANNELS).flat_map(|c| (rows.start..rows.end).map(move |y| (c, y))) {
                    let what = format!("{h}x{w} {} {isa:?} row {y}", T::DTYPE);
                    let values = || row(c, y).iter().copied();
                    let both = [fold(Fold::Min, values()), fold(Fold::Max, values())];
                    assert_same(&extremes[pairs.row(c, y)..][..2], &both, &what);
                    let m = horus_plan::ops::reduce::moments(values().map(T::to_f64));
                    assert_same(&found[of.row(c, y)..][..3], &[m.sum, m.squares, m.count], &what);
                    let at = values().position(|v| v.to_f64() == wanted).map_or(f64::INFINITY, |x| x as f64);
                    assert_eq!(first[column.row(c, y)], at, "{what}");
                }
            }
        }
    }
}

fn running_sums_follow_their_definition<T: Pixel>() {
    for (h, w) in SIZES.into_iter().chain([(2, 31), (2, 32), (2, 1023), (3, 2049), (1, 5000)]) {
        for (window, rows) in windows(h) {
            let (all, held) = image::<T>(h, w, window);
            let input = [(held, geometry(h, w, CHANNELS, T::DTYPE, window))];
            let out = geometry(h, w, CHANNELS, DType::F64, window);
            for isa in Isa::available() {
                let got = run::<T, f64>(Running, &input, None, out, rows, isa);
                for (c, y) in (0..CHANNELS).flat_map(|c| (rows.start..rows.end).map(move |y| (c, y))) {
                    let row: Vec<f64> = all[(c * h + y as usize) * w..][..w].iter().map(|v| v.to_f64()).collect();
                    let want = horus_plan::ops::reduce::running(&row);
                    assert_same(&got[out.row(c, y)..][..w], &want, &format!("{h}x{w} {isa:?} row {y}"));
                }
            }
        }
    }
}

#[test]
fn running_sums_follow_their_definition_for_every_type() {
    for_each_type!(running_sums_follow_their_definition);
}

#[test]
fn columns_of_rows_follow_their_definitions_for_every_type() {
    for_each_type!(columns_of_rows_follow_their_definitions);
}

#[test]
fn folds_run_over_all_planes() {
    for (h, w) in SIZES.into_iter().chain([(1023, 1), (1024, 1), (1025, 1), (2049, 1)]) {
        let values = noise::<f64>(h * w * CHANNELS, 3, false);
        let g = geometry(h, w, CHANNELS, DType::F64, Window::whole(h));
        for how in [Fold::Sum, Fold::Min, Fold::Max] {
            for isa in Isa::available() {
                let out = geometry(1, 1, 1, DType::F64, Window::whole(1));
                let got = run::<f64, f64>(how, &[(values.clone(), g)], None, out, Window::whole(1), isa);
                let planes = values.chunks(h * w).map(|p| p.iter().copied());
                assert_same(&got, &[fold_planes(how, planes)], &format!("{how:?} {h}x{w} {isa:?}"));
            }
        }
    }
}

fn merging_and_transposing_move_pixels<T: Pixel>() {
    for (h, w) in SIZES.into_iter().chain([(64, 48), (70, 65)]) {
        for (window, rows) in windows(h) {
            let (all, held) = image::<T>(h, w, window);
            let plane = window.len() * w;
            let inputs: Vec<_> =
                held.chunks(plane).map(|p| (p.to_vec(), geometry(h, w, 1, T::DTYPE, window))).collect();
            let out = geometry(h, w, CHANNELS, T::DTYPE, rows);
            let got = run::<T, T>(Merge, &inputs, None, out, rows, Isa::detect().unwrap());
            let want: Vec<T> = all.chunks(h * w).flat_map(|p| rows_of(p, h, w, rows)).collect();
            assert_same(&got, &want, "merge");
        }
        for (window, rows) in windows(w) {
            let (all, _) = image::<T>(h, w, Window::whole(h));
            let out = geometry(w, h, CHANNELS, T::DTYPE, window);
            let input = [(all.clone(), geometry(h, w, CHANNELS, T::DTYPE, Window::whole(h)))];
            let got = run::<T, T>(Transpose, &input, None, out, rows, Isa::detect().unwrap());
            for c in 0..CHANNELS {
                for y in rows.start..rows.end {
                    let want: Vec<T> = (0..h).map(|x| all[(c * h + x) * w + y as usize]).collect();
                    assert_same(&got[out.row(c, y)..][..h], &want, &format!("transpose {h}x{w} row {y}"));
                }
            }
        }
    }
}

#[test]
fn merging_and_transposing_move_pixels_of_every_type() {
    for_each_type!(merging_and_transposing_move_pixels);
}

fn histograms_count_what_bin_of_says<T: Pixel>() {
    for (h, w) in SIZES.into_iter().chain([(90, 1100)]) {
        for (window, rows) in windows(h) {
            let (all, held) = image::<T>(h, w, window);
            for (bins, lo, hi) in
                [(1, 0.0, 255.0), (7, -3.5, 3.0), (256, 0.0, 256.0), (1000, -1e5, 70000.0), (3, 0.0, 0.0)]
            {
                let mut want = vec![0.0; bins];
                for p in all.chunks(h * w) {
                    let part = &p[rows.start as usize * w..rows.end as usize * w];
                    for bin in part.iter().filter_map(|v| bin_of(v.to_f64(), lo, hi, bins)) {
                        want[bin] += 1.0;
                    }
                }
                let input = [(held.clone(), geometry(h, w, CHANNELS, T::DTYPE, window))];
                let out = geometry(1, bins, 1, DType::F64, Window::whole(1));
                for isa in Isa::available() {
                    let got = run::<T, f64>(Histogram::new(bins, lo, hi), &input, None, out, rows, isa);
                    assert_same(&got, &want, &format!("{} {bins} {lo}..{hi} {isa:?}", T::DTYPE));
                }
            }
        }
    }
}

#[test]
fn histograms_count_what_bin_of_says_for_every_type() {
    for_each_type!(histograms_count_what_bin_of_says);
}

/// Bins of every width, with pixels on their edges, of images for which a table of bins is made and of smaller ones.
fn counts_on_edges_follow_the_definition<T: Pixel>() {
    let ranges = [
        (0.0, 256.0, 256),
        (-3.3, 7.1, 1000),
        (12.0, 12.0, 4),
        (-70000.5, 70000.25, 300),
        (5e8, 5e8 + 1.0, 77),
        (f64::NEG_INFINITY, 3.0, 5),
        (-8.0, 8.0, 1),
        (-8.0, 8.0, 1 << 16),
        (1e-300, 2e-300, 8),
    ];
    for (h, w) in [(257, 300), (200, 300)] {
        let mut pixels = noise::<T>(h * w, 5, true);
        pixels[5000..40000].iter_mut().zip(0..).for_each(|(v, i)| *v = T::from_f64(f64::from(i % 900) / 4.0));
        let input = [(pixels, geometry(h, w, 1, T::DTYPE, Window::whole(h)))];
        for (lo, hi, bins) in ranges {
            let mut want = vec![0.0; bins];
            input[0].0.iter().filter_map(|v| bin_of(v.to_f64(), lo, hi, bins)).for_each(|bin| want[bin] += 1.0);
            let out = geometry(1, bins, 1, DType::F64, Window::whole(1));
            for isa in Isa::available() {
                let got = run::<T, f64>(Histogram::new(bins, lo, hi), &input, None, out, Window::whole(h), isa);
                assert_same(&got, &want, &format!("{} {lo} {hi} {bins} {isa:?}", T::DTYPE));
            }
        }
    }
}

#[test]
fn counts_on_edges_follow_the_definition_for_every_type() {
    for_each_type!(counts_on_edges_follow_the_definition);
}
