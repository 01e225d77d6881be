//! The solver for the surface of an ocean.

use std::sync::Arc;

use horus::prelude::*;
use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::session::Session as CoreSession;
use horus_models::surface::SeaSurface;
use horus_testing::simulated::SimulatedDevice;

/// A sea of islands, and what drives it.
fn sea(height: usize, width: usize) -> (Vec<f64>, Vec<f64>) {
    let depth = |i: usize| {
        let (y, x) = (i / width, i % width);
        if (y * 7 + x * 3) % 11 == 0 || (y + 2 * x) % 13 == 5 {
            0.0
        } else {
            1.0 + ((y * 5 + x * 9) % 17) as f64 * 0.25
        }
    };
    let driven = |i: usize| ((i * 37 + 11) % 101) as f64 * 0.01 - 0.4;
    ((0..height * width).map(depth).collect(), (0..height * width).map(driven).collect())
}

/// The matrix of the sea's cells, solved by elimination.
fn eliminated(depth: &[f64], b: &[f64], (height, width): (usize, usize), own: f64) -> Vec<f64> {
    let n = depth.len();
    let mut a = vec![vec![0.0; n + 1]; n];
    for i in 0..n {
        let (y, x) = ((i / width) as isize, (i % width) as isize);
        a[i][i] = if depth[i] > 0.0 { own } else { 1.0 };
        a[i][n] = if depth[i] > 0.0 { b[i] } else { 0.0 };
        for (v, u) in [(y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)] {
            if (0..height as isize).contains(&v) && (0..width as isize).contains(&u) {
                let j = v as usize * width + u as usize;
                let rate = depth[i].min(depth[j]);
                a[i][i] += rate;
                a[i][j] -= rate;
            }
        }
    }
    for k in 0..n {
        let pivot = a[k].clone();
        for row in a.iter_mut().skip(k + 1).filter(|row| row[k] != 0.0) {
            let factor = row[k] / pivot[k];
            row.iter_mut().zip(&pivot).for_each(|(v, p)| *v -= factor * p);
        }
    }
    let mut x = vec![0.0; n];
    for k in (0..n).rev() {
        let rest: f64 = (k + 1..n).map(|j| a[k][j] * x[j]).sum();
        x[k] = (a[k][n] - rest) / a[k][k];
    }
    x
}

fn solve(s: &CoreSession, (height, width): (usize, usize), tolerance: f64, steps: usize) -> (Vec<f64>, usize, f64) {
    let (depth, b) = sea(height, width);
    let image = |pixels: &[f64]| Image::from_slice(s, (height, width), pixels);
    let surface = SeaSurface::new(&image(&depth), 0.125);
    let solved = surface.solve(&image(&b), tolerance, steps).unwrap();
    (solved.solution.to_vec().unwrap(), solved.steps, solved.residual)
}

fn session(comm: ThreadComm, separate: bool) -> CoreSession {
    let cpu = CpuDevice::new(Some(1)).unwrap();
    let builder = if separate {
        CoreSession::on(Box::new(SimulatedDevice::new(cpu, 1 << 24).with_fabric()))
    } else {
        CoreSession::on(Box::new(cpu))
    };
    builder.communicator(Arc::new(comm)).build().unwrap()
}

#[test]
fn the_solution_is_that_of_elimination() {
    let s = CoreSession::on(Box::new(CpuDevice::new(Some(1)).unwrap())).build().unwrap();
    for extent in [(9, 12), (1, 17), (16, 1), (1, 1)] {
        let (depth, b) = sea(extent.0, extent.1);
        let want = eliminated(&depth, &b, extent, 0.125);
        let (got, steps, residual) = solve(&s, extent, 1e-13, 400);
        assert!(residual < 1e-13 && steps < 400, "{extent:?}: {residual:e} after {steps}");
        let largest = want.iter().fold(0.0, |most: f64, v| most.max(v.abs()));
        for (i, (got, want)) in got.iter().zip(&want).enumerate() {
            assert!((got - want).abs() <= 1e-11 * largest, "{extent:?}, cell {i}: {got:e}, {want:e}");
            assert!(depth[i] > 0.0 || *got == 0.0, "land");
        }
    }
    let (short, long) = (solve(&s, (9, 12), 1e-13, 4), solve(&s, (9, 12), 1e-13, 15));
    assert_eq!((short.1, long.1), (4, 15));
    assert!(long.2 < short.2 && short.2 < 1.0, "the residual is that of the last step: {:e}, {:e}", short.2, long.2);
    let nothing = Image::<f64>::zeros(&s, (5, 6));
    let solved = SeaSurface::new(&(&nothing + 1.0), 0.5).solve(&nothing, 1e-9, 50).unwrap();
    assert_eq!((solved.steps, solved.residual), (0, 0.0));
    assert!(solved.solution.to_vec().unwrap().iter().all(|v| *v == 0.0));
    let unknown = SeaSurface::new(&(&nothing + 1.0), 0.5).solve(&(&nothing + f64::NAN), 1e-9, 50).unwrap();
    assert!(unknown.steps == 0 && unknown.residual.is_nan());
}

#[test]
fn ranks_take_the_same_steps_to_the_same_bits() {
    let extent = (61, 47);
    let bits = |(x, steps, residual): (Vec<f64>, usize, f64)| {
        (x.into_iter().map(f64::to_bits).collect::<Vec<_>>(), steps, residual.to_bits())
    };
    let run = |ranks: usize, separate: bool, in_blocks: bool| {
        ThreadComm::run(ranks, |comm| {
            let s = session(comm, separate);
            if in_blocks {
                let of_block = |block: usize| Some(block % ranks);
                s.place(BlockMap::new(extent, (16, 16), (0..4 * 3).map(of_block)).unwrap()).unwrap();
            }
            bits(solve(&s, extent, 1e-10, 300))
        })
    };
    let want = run(1, false, false).remove(0);
    assert!(want.1 > 20 && want.1 < 300, "{} steps", want.1);
    for ranks in [2, 3, 4, 5] {
        for (separate, in_blocks) in [(false, false), (true, false), (false, true)] {
            for got in run(ranks, separate, in_blocks) {
                assert!(got == want, "{ranks} ranks, separate {separate}, blocks {in_blocks}: {} steps", got.1);
            }
        }
    }
}
