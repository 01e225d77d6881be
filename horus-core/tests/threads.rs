//! Which threads a session computes on, and that callers of any thread pool can share one.

use std::sync::mpsc;
use std::time::Duration;

use horus_core::cpu::device::CpuDevice;
use horus_core::error::Result;
use horus_core::image::Image;
use horus_core::ops::geometric::{Flip, Interpolation};
use horus_core::ops::reduce::{Fold, RowReduce};
use horus_core::reference;
use horus_core::session::Session;
use horus_core::shape::{Border, Shape};
use rayon::prelude::*;

fn session(threads: usize) -> Session {
    let device = CpuDevice::new(Some(threads)).expect("a CPU");
    Session::on(Box::new(device)).build().expect("a session on the CPU")
}

/// A program with kernels of every kind; a number that depends on all of them.
fn program(s: &Session, seed: usize) -> Result<f64> {
    let image = Image::from_fn(s, 300, 200, |y, x| ((y * 31 + x * 17 + seed) % 101) as f32);
    let smooth = image.gauss(1.5).transpose().flip(Flip::Vertical);
    let turned = image.rotate_with(30.0, Interpolation::Bilinear, Border::Reflect).median3();
    let merged = Image::stack(s, [&image, &turned]);
    let range = merged.max_value().get()? - merged.min_value().get()?;
    let counts = merged.histogram(10, 0.0, 101.0).get()?;
    let large: Vec<f32> = (0..1 << 18).map(|i| ((i * 7 + seed) % 103) as f32).collect();
    let copied = Image::from_slice(s, 512, 512, &large).to_vec()?;
    assert!(copied == large, "pixels given and read back");
    let rows: f64 = merged.row_sums().to_array3()?.iter().sum();
    let columns: f64 = merged.column_sums().to_array3()?.iter().sum();
    Ok(smooth.sum().get()? + merged.variance().get()? + f64::from(range) + counts[3] as f64 + rows + columns)
}

/// Runs `work` on a thread of its own, for at most a minute.
fn in_time<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, finished) = mpsc::channel();
    std::thread::spawn(move || done.send(work()));
    finished.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|e| panic!("{what}: {e}"))
}

#[test]
fn workers_of_another_pool_can_share_a_session() {
    for threads in [1, 2] {
        in_time(&format!("a session of {threads} threads"), move || {
            let s = session(threads);
            let want: Vec<f64> = (0..40).map(|i| program(&s, i).expect("a result")).collect();
            let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().expect("a pool");
            for _ in 0..5 {
                let got: Vec<f64> =
                    pool.install(|| (0..40).into_par_iter().map(|i| program(&s, i).expect("a result")).collect());
                assert_eq!(got, want);
            }
        });
    }
}

/// The global pool can be built once: by whoever uses it first.
#[test]
fn the_global_pool_is_left_alone() {
    for threads in [1, 2] {
        program(&session(threads), 0).expect("a result");
    }
    assert!(rayon::ThreadPoolBuilder::new().num_threads(1).build_global().is_ok(), "the global pool was in use");
}

/// Floats of magnitudes so different that every order of adding them gives another sum.
fn uneven(y: usize, x: usize) -> f32 {
    let h = (y * 4099 + x).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    (h % 4096) as f32 / 3.0 * 2.0f32.powi((h >> 12) as i32 % 48 - 24) - 100.0
}

#[test]
fn sums_of_many_segments_are_the_same_on_any_number_of_threads() {
    const SHAPE: Shape = Shape::new(1030, 2050, 1);
    let picture = reference::Image::from_fn(SHAPE, |_, y, x| uneven(y, x));
    let squares = reference::Image::from_fn(SHAPE, |_, y, x| uneven(y, x) * uneven(y, x));
    let total = |image: &reference::Image| {
        let rows = reference::reduce::rows(image, RowReduce::Sum, None);
        reference::reduce::fold(&rows, Fold::Sum).at::<f64>(0, 0, 0).to_bits()
    };
    let want = [total(&picture), total(&squares)];
    for threads in [1, 2, 3, 5, 16] {
        let s = session(threads);
        let image = Image::from_fn(&s, SHAPE.height, SHAPE.width, uneven);
        let got = [image.sum(), (&image * &image).sum()].map(|v| v.get().expect("a sum").to_bits());
        assert_eq!(got, want, "{threads} threads");
    }
}
