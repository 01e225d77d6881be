//! Several results of one launch: the bits of separate launches, on every device and number of
//! ranks, and the conditions for joining.

use std::sync::{Arc, Mutex};

use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::dtype::Pixel;
use horus_core::image::Image;
use horus_core::ops::geometric::Interpolation;
use horus_core::ops::neighbourhood::Filter;
use horus_core::plan::Mode;
use horus_core::session::{Session, SessionBuilder};
use horus_core::shape::Border;
use horus_testing::simulated::SimulatedDevice;

const BORDERS: [Border; 5] = Border::all(0.5);

fn builder(separate: bool, threads: usize) -> SessionBuilder {
    let cpu = CpuDevice::new(Some(threads)).expect("a CPU");
    match separate {
        false => Session::on(Box::new(cpu)),
        true => Session::on(Box::new(SimulatedDevice::new(cpu, 1 << 26))),
    }
}

fn given(s: &Session, (height, width): (usize, usize), seed: usize) -> Image<f32> {
    let pixel = |i: usize| ((i / width * 31 + i % width * 17 + seed * 7) % 101) as f32 * 0.125 - 4.0;
    Image::from_slice(s, (height, width), &(0..height * width).map(pixel).collect::<Vec<f32>>())
}

fn sobel() -> [Filter; 2] {
    let taps = [-1.0, 0.0, 1.0, -2.0, 0.0, 2.0, -1.0, 0.0, 1.0];
    let turned = [0, 3, 6, 1, 4, 7, 2, 5, 8].map(|i| taps[i]);
    [Filter::dense(3, 3, taps.to_vec()), Filter::dense(3, 3, turned.to_vec())]
}

/// A quotient and two more of the same denominator that read it.
fn quotients(a: &Image<f32>, b: &Image<f32>) -> [Image<f32>; 3] {
    let root = a.abs().sqrt();
    let denominator = &root * b + 20.0;
    let density = a / &denominator;
    let by_a = (b - &density * &root) / &denominator;
    let by_b = (a * 3.0 - &density) / denominator;
    [density, by_a, by_b]
}

type ResultBits = Vec<Vec<u64>>;

fn bits<T: Pixel>(image: &Image<T>) -> Vec<u64> {
    image.to_vec().expect("pixels").into_iter().map(|v| v.to_f64().to_bits()).collect()
}

/// The results of a program: all of them are wanted when the first is read.
fn program(s: &Session, shape: (usize, usize), which: usize) -> ResultBits {
    let (a, b) = (given(s, shape, 1), given(s, shape, 2));
    let [x, y] = sobel();
    match which {
        0 => {
            let (sum, difference) = (&a + &b, &a - &b);
            vec![bits(&sum), bits(&difference)]
        }
        1..=5 => {
            let border = BORDERS[which - 1];
            let (dx, dy) = (a.with_border(border).correlate(&x), a.with_border(border).correlate(&y));
            vec![bits(&dx), bits(&dy)]
        }
        // Of several types, some of them read by others.
        6 => {
            let wide = (&a * &b).convert::<f64>();
            let (narrow, mask) = ((&a.abs() * 9.0).convert::<u8>(), a.gt(&b));
            let sum = wide.sqrt() + a.convert::<f64>();
            let chosen = mask.select(&a, &b);
            vec![bits(&wide), bits(&narrow), bits(&mask.select(1.0f32, 0.0)), bits(&sum), bits(&chosen)]
        }
        // Filters of filters: one reads the other's result.
        7 => {
            let once = a.with_border(Border::Reflect).correlate(&x);
            let (twice, other) =
                (once.with_border(Border::Reflect).correlate(&y), a.with_border(Border::Reflect).correlate(&y));
            vec![bits(&once), bits(&twice), bits(&other)]
        }
        // Row passes and columns, with a reader between them.
        8 => {
            let xx = a.gauss_xy(2.0, 1.0, 2, 0);
            let sum = xx.sum();
            let (yy, xy) = (a.gauss_xy(2.0, 1.0, 0, 2), a.gauss_xy(2.0, 1.0, 1, 1));
            vec![bits(&xx), bits(&yy), bits(&xy), vec![sum.get().expect("a sum").to_bits()]]
        }
        9 => {
            let (up, down) = (a.median(3), a.median(5) - &b);
            vec![bits(&up), bits(&down)]
        }
        10 => {
            let turned = |degrees| a.rotate(degrees, Interpolation::Bilinear);
            let (left, right) = (turned(20.0), turned(-35.0));
            vec![bits(&left), bits(&right)]
        }
        // A result that is an input, and one of pixel coordinates.
        11 => {
            let (copy, scaled) = (a.max(-1e9f32), a.max(-1e9f32) * 2.0);
            let smooth = (&a * &b).with_border(Border::Replicate).correlate(&x);
            let product = &a * &b;
            vec![bits(&copy), bits(&scaled), bits(&smooth), bits(&product)]
        }
        // Results with other readers, and a common input that is not wanted itself.
        12 => {
            let [density, by_a, by_b] = quotients(&a, &b);
            vec![bits(&density), bits(&by_a), bits(&by_b)]
        }
        // Shifts of a value that is not stored.
        13 => {
            let product = &a * &b;
            let [right, down] = [[0, 1], [1, 0]].map(|[y, x]| product.with_border(Border::Wrap).shift(0, y, x));
            let (sum, difference) = (&right + &down, &down - &right * 2.0);
            drop((product, right, down));
            vec![bits(&sum), bits(&difference)]
        }
        // Groups that would wait for each other: the second of each reads the first of the other,
        // except for its neighbours.
        _ => {
            let (p, q) = (&a + &b, (&a * 2.0).with_border(Border::Wrap).correlate(&x));
            let (u, v) = (q.with_border(Border::Wrap).correlate(&y) + &b, p.with_border(Border::Wrap).correlate(&y));
            vec![bits(&p), bits(&q), bits(&u), bits(&v)]
        }
    }
}

const PROGRAMS: usize = 15;

#[test]
fn joined_results_have_the_bits_of_separate_ones() {
    for shape in [(37, 61), (64, 256), (1, 9), (9, 1), (1, 1)] {
        for which in 0..PROGRAMS {
            let expected = program(&builder(false, 1).mode(Mode::Naive).build().unwrap(), shape, which);
            for (separate, threads, mode) in [
                (false, 1, Mode::Lazy),
                (false, 1, Mode::Fused),
                (false, 3, Mode::Fused),
                (true, 1, Mode::Naive),
                (true, 2, Mode::Fused),
            ] {
                let s = builder(separate, threads).mode(mode).build().unwrap();
                assert_eq!(program(&s, shape, which), expected, "program {which}, {shape:?}, {mode:?}, {separate}");
            }
        }
    }
}

#[test]
fn on_any_number_of_ranks() {
    // The last are strips thinner than what a filter reads around them, and ranks without rows.
    for shape in [(41, 12), (9, 7), (2, 4)] {
        for which in 0..PROGRAMS {
            let expected = program(&builder(false, 1).mode(Mode::Naive).build().unwrap(), shape, which);
            for ranks in 1..=3 {
                for (separate, mode) in [(false, Mode::Fused), (true, Mode::Fused), (false, Mode::Lazy)] {
                    ThreadComm::run(ranks, |comm| {
                        let s = builder(separate, 1).mode(mode).communicator(Arc::new(comm)).build().unwrap();
                        let got = program(&s, shape, which);
                        assert_eq!(got, expected, "program {which}, {shape:?}, {ranks} ranks, {separate}");
                    });
                }
            }
        }
    }
}

/// Launches of an evaluation of all that `make` returns.
fn launches<R>(mode: Mode, make: impl FnOnce(&Image<f32>, &Image<f32>) -> R) -> usize {
    let s = builder(false, 1).mode(mode).build().unwrap();
    let (a, b) = (given(&s, (300, 400), 1), given(&s, (300, 400), 2));
    let before = s.stats().made.launches;
    let results = make(&a, &b);
    s.evaluate().unwrap();
    drop(results);
    s.stats().made.launches - before
}

#[test]
fn what_shares_inputs_is_one_launch() {
    let [x, y] = sobel();
    assert_eq!(launches(Mode::Fused, |a, b| (a + b, a - b)), 1);
    assert_eq!(launches(Mode::Lazy, |a, b| (a + b, a - b)), 2);
    assert_eq!(launches(Mode::Fused, |a, _| [&x, &y].map(|f| a.with_border(Border::Reflect).correlate(f))), 1);
    assert_eq!(launches(Mode::Fused, quotients), 1, "what all of them read is not stored");
    let turned =
        |a: &Image<f32>, _: &Image<f32>| [10.0, 20.0].map(|degrees| a.rotate(degrees, Interpolation::Bilinear));
    assert_eq!(launches(Mode::Fused, turned), 2, "what maps read lies apart");
    let passing = |a: &Image<f32>, b: &Image<f32>| [(a + b).median(3), (a - b).median(5)];
    assert_eq!(launches(Mode::Fused, passing), 4, "one would wait for the reader of the other");
    assert_eq!(launches(Mode::Fused, |a, b| (a * 2.0, b * 2.0)), 2, "nothing is shared");
    assert_eq!(launches(Mode::Fused, |a, _| (a * 2.0, a.crop(0, 0, 200, 400) * 2.0)), 2, "not of one extent");
}

#[test]
fn a_plan_names_what_one_launch_computes() {
    let told = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&told);
    let s = builder(false, 1).explain(move |text| sink.lock().unwrap().push_str(text)).build().unwrap();
    let (a, b) = (given(&s, (300, 400), 1), given(&s, (300, 400), 2));
    let (sum, difference) = (&a + &b, &a - &b);
    s.evaluate().unwrap();
    let text = told.lock().unwrap().clone();
    drop(sum);
    assert!(text.contains("2 results: add + sub (%0, %1)"), "{text}");
    assert!(text.contains(", by the launch of %2"), "{text}");
    assert!(text.contains(" 1 launches"), "{text}");
    drop(difference);
}
