//! Which threads a session computes on, and that callers of any thread pool can share one.

use std::sync::mpsc;
use std::time::Duration;

use horus_core::cpu::device::CpuDevice;
use horus_core::error::Result;
use horus_core::image::Image;
use horus_core::ops::geometric::{Flip, Interpolation};
use horus_core::session::Session;
use horus_core::shape::Border;
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
