//! Loops: the same bits as calling the step each time, on every device and number of ranks; and how
//! they end.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;

use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::error::{Error, Result};
use horus_core::image::{Ending, Image, LoopState, Norm, Until};
use horus_core::ops::geometric::Interpolation;
use horus_core::ops::neighbourhood::Filter;
use horus_core::session::{Session, SessionBuilder};
use horus_core::shape::{Axis, Border};
use horus_testing::cases::covering;
use horus_testing::faulty::FaultyDevice;
use horus_testing::simulated::SimulatedDevice;

fn cpu() -> CpuDevice {
    CpuDevice::new(Some(1)).expect("a CPU")
}

fn builder(separate: bool) -> SessionBuilder {
    match separate {
        false => Session::on(Box::new(cpu())),
        true => Session::on(Box::new(SimulatedDevice::new(cpu(), 1 << 22))),
    }
}

fn session() -> Session {
    builder(false).build().unwrap()
}

/// The mean of the four neighbours.
fn cross() -> Filter {
    Filter::dense(3, 3, vec![0.0, 0.25, 0.0, 0.25, 0.0, 0.25, 0.0, 0.25, 0.0])
}

fn given(s: &Session, height: usize, width: usize) -> Image<f32> {
    Image::from_fn(s, height, width, |y, x| ((y * 31 + x * 17) % 101) as f32 * 0.125)
}

fn bits(image: &Image<f32>) -> Result<Vec<u32>> {
    Ok(image.to_vec()?.iter().map(|v| v.to_bits()).collect())
}

/// A loop that calls its step each time.
fn each<S: LoopState>(mut state: S, steps: usize, step: impl Fn(&S) -> S) -> S {
    for _ in 0..steps {
        state = step(&state);
    }
    state
}

/// Programs of many kinds, as loops and as unrolled references.
fn programs(s: &Session, steps: usize, height: usize) -> Result<()> {
    let u = given(s, height, 13);
    let row = Image::from_fn(s, 1, 13, |_, x| x as f32);
    let column = Image::from_fn(s, height, 1, |y, _| 1.0 / (1 + y) as f32);
    let stored = &u * 0.5 + 1.0; // recorded before, and not evaluated
    let check = |name: &str, step: &dyn Fn(&Image<f32>) -> Image<f32>| -> Result<()> {
        let looped = s.iterate(u.clone(), steps, step)?;
        assert_eq!((looped.steps, looped.ending, looped.change), (steps, Ending::Steps, None));
        assert_eq!(bits(&looped.state)?, bits(&each(u.clone(), steps, step))?, "{name}, {steps} steps, {height} rows");
        Ok(())
    };
    for border in Border::all(0.5) {
        check("cross", &|u| u.with_border(border).correlate(&cross()))?;
    }
    check("pixels", &|u| u * u * 0.01 + 0.5)?;
    check("sources", &|u| {
        (u.with_border(Border::Constant(0.0)).correlate(&cross()) + &row * &column + &stored) * 0.25
    })?;
    check("invariants", &|v| v * 0.5 + u.gauss(1.0) * (1.0 - u.gauss(1.0).mean()))?;
    check("itself", &|v| v + &u)?;
    check("reduced", &|u| u / u.max_value() + u.mean() * 0.1)?;
    check("rotated", &|u| u.rotate(10.0, Interpolation::Bilinear).max(u * 0.5))?;
    check("transposed", &|u| u.flip(Axis::Rows) * 0.75)?;
    check("separable", &|u| u.gauss_xy(1.0, 2.0, 0, 0))?;
    check("nothing", &Image::clone)?;
    check("constant", &|_| stored.clone())?;
    check("fill", &|u| Image::zeros(u.session(), u.shape()))?;

    // Several images, which swap places.
    type Two = (Image<f32>, Image<f32>);
    let two = || (u.clone(), stored.clone());
    let swap = |(a, b): &Two| (b * 0.5, a.clone());
    let same = |(a, b): &Two| (a + b, a + b);
    let exchanged = |(a, b): &Two| (b.clone(), a.clone());
    let step = |(a, b): &Two| (b.gauss(1.0), a * 0.25 + b);
    for (name, step) in
        [("swap", &swap as &dyn Fn(&Two) -> Two), ("same", &same), ("exchanged", &exchanged), ("both", &step)]
    {
        let got = s.iterate(two(), steps, step)?.state;
        let want = each(two(), steps, step);
        assert_eq!((bits(&got.0)?, bits(&got.1)?), (bits(&want.0)?, bits(&want.1)?), "{name}, {steps} steps");
        // Equal initial images.
        let got = s.iterate((u.clone(), u.clone()), steps, step)?.state;
        let want = each((u.clone(), u.clone()), steps, step);
        assert_eq!(
            (bits(&got.0)?, bits(&got.1)?),
            (bits(&want.0)?, bits(&want.1)?),
            "{name} of the same, {steps} steps"
        );
    }

    // Other types: a mask that grows within another, with a counter.
    let seed = u.gt(12.0);
    let within = u.gt(3.0);
    let dilated =
        |m: &Image<bool>| m.convert::<f32>().with_border(Border::Constant(0.0)).correlate(&cross()).gt(0.2) & &within;
    let count = Image::<i32>::zeros(s, (1, 1));
    let step = |(m, n): &(Image<bool>, Image<i32>)| (dilated(m), n + 1);
    let (mask, n) = s.iterate((seed.clone(), count.clone()), steps, step)?.state;
    let want = each((seed, count), steps, step);
    assert_eq!((mask.to_vec()?, n.to_vec()?), (want.0.to_vec()?, vec![steps as i32]));
    Ok(())
}

#[test]
fn a_loop_gives_the_bits_of_calling_its_step_each_time() {
    for separate in [false, true] {
        let s = builder(separate).build().unwrap();
        for steps in [0, 1, 2, 3, 16, 37] {
            programs(&s, steps, 11).unwrap();
        }
        programs(&s, 5, 1).unwrap();
    }
}

#[test]
fn on_any_number_of_ranks() {
    for [separate, ranks, size] in covering([2, 5, 4]) {
        // The last are strips thinner than the reach of a step.
        let (steps, height) = [(1, 12), (3, 12), (19, 12), (3, 3)][size];
        ThreadComm::run(1 + ranks, |comm| {
            let s = builder(separate == 1).communicator(Arc::new(comm)).build().unwrap();
            programs(&s, steps, height).unwrap();
        });
    }
}

/// The bits of the state after each of so many steps, and by how much the last of them changed it in each norm.
fn states(s: &Session, u: &Image<f32>, most: usize) -> Vec<(Vec<u32>, [f64; 3])> {
    let mut u = u.clone();
    let step = |_| {
        let next = u.with_border(Border::Constant(0.0)).correlate(&cross());
        let (a, b) = (u.to_vec().unwrap(), next.to_vec().unwrap());
        let d: Vec<f64> = a.iter().zip(&b).map(|(a, b)| (f64::from(*b) - f64::from(*a)).abs()).collect();
        let squares = d.iter().map(|d| d * d).sum::<f64>();
        u = next;
        let changes = [d.iter().copied().fold(0.0, f64::max), (squares / d.len() as f64).sqrt(), squares.sqrt()];
        (b.into_iter().map(f32::to_bits).collect(), changes)
    };
    let all = (0..most).map(step).collect();
    s.evaluate().unwrap();
    all
}

#[test]
fn a_loop_ends_when_its_state_changes_little() {
    for separate in [false, true] {
        for ranks in [1, 3] {
            ThreadComm::run(ranks, |comm| {
                let s = builder(separate).communicator(Arc::new(comm)).build().unwrap();
                let u = given(&s, 9, 8);
                let states = states(&s, &u, 120);
                for (norm, k, eps) in
                    [(Norm::Max, 0, 1e-2), (Norm::Rms, 1, 1e-2), (Norm::L2, 2, 1e-1), (Norm::Max, 0, 0.0)]
                {
                    for every in [1, 4, 10, 50] {
                        let until = Until::below(eps, 120).norm(norm).every(every);
                        let done = s
                            .iterate(u.clone(), until, |u| u.with_border(Border::Constant(0.0)).correlate(&cross()))
                            .unwrap();
                        let ends = |n: &usize| n.is_multiple_of(every) && states[n - 1].1[k] < eps;
                        let steps = (1..120).find(ends).unwrap_or(120);
                        let (want, changes) = &states[steps - 1];
                        assert_eq!(done.steps, steps, "{norm:?} below {eps} every {every}, {ranks} ranks");
                        let told = done.change.unwrap();
                        assert!((told - changes[k]).abs() <= 1e-12 * changes[k], "{told} for {}", changes[k]);
                        let ending = if changes[k] < eps { Ending::Converged } else { Ending::Steps };
                        assert_eq!(done.ending, ending);
                        assert_eq!(bits(&done.state).unwrap(), *want);
                    }
                }
            });
        }
    }
}

#[test]
fn a_loop_that_diverges_says_so() {
    for separate in [false, true] {
        let s = builder(separate).build().unwrap();
        for norm in [Norm::Max, Norm::Rms, Norm::L2] {
            let until = Until::below(1e-3, 10_000).norm(norm).every(7);
            let done = s.iterate(given(&s, 5, 5), until, |u| (u * u).log() * -3.0).unwrap();
            assert_eq!((done.ending, done.steps % 7), (Ending::Diverged, 0), "{norm:?}");
            assert!(!done.change.unwrap().is_finite() && done.steps < 1000);
            assert!(done.state.to_vec().unwrap().iter().any(|v| !v.is_finite()));
        }
    }
}

#[test]
fn a_state_can_be_watched_and_kept() {
    for separate in [false, true] {
        for ranks in [1, 2] {
            ThreadComm::run(ranks, |comm| {
                let s = builder(separate).communicator(Arc::new(comm)).build().unwrap();
                let u = given(&s, 8, 9);
                let step = |u: &Image<f32>| u.with_border(Border::Reflect).correlate(&cross());
                let mut seen = Vec::new();
                let watched = s.iterate_watched(u.clone(), 25, step, 10, |n, u| {
                    seen.push((n, u.clone()));
                    Ok(ControlFlow::Continue(()))
                });
                let done = watched.unwrap();
                assert_eq!((done.steps, seen.len()), (25, 2));
                for (n, state) in &seen {
                    assert_eq!(bits(state).unwrap(), bits(&each(u.clone(), *n, step)).unwrap());
                }
                assert_eq!(bits(&done.state).unwrap(), bits(&each(u.clone(), 25, step)).unwrap());

                // Observed with other operations, dropped, and with measurements in flight.
                let mut means = Vec::new();
                let until = Until::below(1e-9, 30).every(4);
                let watched = s.iterate_watched(u.clone(), until, step, 6, |n, u| {
                    means.push(u.mean().get()?);
                    Ok(if n == 18 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
                });
                let done = watched.unwrap();
                assert_eq!((done.steps, done.ending), (18, Ending::Stopped));
                let want: Vec<f64> = [6, 12, 18].map(|n| each(u.clone(), n, step).mean().get().unwrap()).into();
                assert_eq!(means, want);

                let error = s.iterate_watched(u.clone(), 30, step, 5, |_, _| Err(Error::Config("enough".into())));
                assert_eq!(error.unwrap_err().to_string(), Error::Config("enough".into()).to_string());
                assert_eq!(bits(&u).unwrap(), bits(&given(&s, 8, 9)).unwrap(), "what was given is still there");
            });
        }
    }
}

#[test]
fn a_step_that_looks_is_called_each_time() {
    for ranks in [1, 3] {
        ThreadComm::run(ranks, |comm| {
            let s = builder(true).communicator(Arc::new(comm)).build().unwrap();
            let u = given(&s, 8, 9);
            let calls = Cell::new(0);
            let outer = |u: &Image<f32>| {
                calls.set(calls.get() + 1);
                let inner = s.iterate(u.clone(), Until::below(0.5, 9).every(2), |v| {
                    v.with_border(Border::Reflect).correlate(&cross())
                });
                inner.unwrap().state + 1.0
            };
            let done = s.iterate(u.clone(), 4, outer).unwrap();
            assert_eq!(calls.get(), 5, "once to find out");
            assert_eq!(bits(&done.state).unwrap(), bits(&each(u.clone(), 4, outer)).unwrap());

            let scaled = |u: &Image<f32>| u * (1.0 / u.max_value().get().unwrap());
            let done = s.iterate(u.clone(), Until::below(1e-6, 9).every(1), scaled).unwrap();
            assert_eq!((done.steps, done.ending), (2, Ending::Converged));
        });
    }
}

#[test]
fn bad_loops_are_refused_with_the_line_of_the_program() {
    for ranks in [1, 2] {
        ThreadComm::run(ranks, |comm| {
            let s = builder(false).communicator(Arc::new(comm)).build().unwrap();
            let u = given(&s, 4, 4);
            let text = |r: Result<()>| r.unwrap_err().to_string();
            let e = text(s.iterate(u.clone(), 3, |u| u.crop(0, 0, 2, 2)).map(drop));
            assert!(
                e.starts_with(
                    "iterate: a step makes 2x2 f32 of 4x4 f32; number, shapes and types must stay the same (at "
                ),
                "{e}"
            );
            assert!(e.contains("iterate.rs"), "{e}");
            let e = text(s.iterate(vec![u.clone()], 3, |v| vec![v[0].clone(), v[0].clone()]).map(drop));
            assert!(e.contains("4x4 f32, 4x4 f32 of 4x4 f32"), "{e}");
            let e = text(s.iterate(u.clone(), Until::below(-1.0, 3), Image::clone).map(drop));
            assert!(e.contains("the bound on the change is -1; it must not be negative"), "{e}");
            let e = text(s.iterate(u.clone(), Until::below(f64::NAN, 3), Image::clone).map(drop));
            assert!(e.contains("the bound on the change is NaN"), "{e}");
            let e = text(s.iterate(u.clone(), Until::below(1.0, 3).every(0), Image::clone).map(drop));
            assert!(e.contains("every 0 steps"), "{e}");
            let e =
                text(s.iterate_watched(u.clone(), 3, Image::clone, 0, |_, _| Ok(ControlFlow::Continue(()))).map(drop));
            assert!(e.contains("every 0 steps"), "{e}");
            let e = text(s.iterate(u.clone(), 3, |u| u.gauss(-1.0)).map(drop));
            assert!(e.contains("sigma is -1"), "{e}");
            let e = text(s.iterate(u.gauss(-1.0), 3, Image::clone).map(drop));
            assert!(e.contains("sigma is -1"), "{e}");
            assert_eq!(u.to_vec().unwrap().len(), 16, "others are not harmed");
        });
    }
    let (a, b) = (session(), session());
    let e = a.iterate(given(&b, 4, 4), 3, Image::clone).map(drop).unwrap_err().to_string();
    assert!(e.contains("iterate") && e.contains("session"), "{e}");
}

#[test]
fn nothing_is_planned_and_no_memory_taken_per_step() {
    for separate in [false, true] {
        let s = builder(separate).build().unwrap();
        let u = given(&s, 64, 64);
        let step = |u: &Image<f32>| u.with_border(Border::Reflect).correlate(&cross());
        let planned = |steps: usize| {
            let before = s.stats().planned;
            drop(s.iterate(u.clone(), steps, step).unwrap());
            s.stats().planned - before
        };
        assert!(planned(1000) < 12 && planned(1024) < 3);
        assert_eq!(planned(10240), 0, "known by now");
    }
    // A device in which four images fit: the given one, and those of two steps.
    let device = SimulatedDevice::new(cpu(), 4 * 64 * 64 * 4);
    let s = Session::on(Box::new(device)).build().unwrap();
    let u = given(&s, 64, 64);
    let done =
        s.iterate(u, Until::below(0.0, 500).every(9), |u| u.with_border(Border::Reflect).correlate(&cross())).unwrap();
    assert_eq!(done.steps, 500);
}

#[test]
fn a_device_that_fails_in_a_loop_leaves_what_was_given() {
    for after in [3, 11, 41] {
        let (device, fault) = FaultyDevice::new(SimulatedDevice::new(cpu(), 1 << 20));
        let s = Session::on(Box::new(device)).build().unwrap();
        let u = given(&s, 16, 16);
        let loop_from =
            |u: Image<f32>| s.iterate(u, 500, |u| u.with_border(Border::Reflect).correlate(&cross())).map(|l| l.state);
        fault.fail_after(after);
        let e = loop_from(u.clone()).expect_err(&format!("call {after} fails")).to_string();
        assert!(e.contains("iterate.rs"), "{e}");
        assert!(fault.disarm());
        let want = each(u.clone(), 500, |u| u.with_border(Border::Reflect).correlate(&cross()));
        assert_eq!(bits(&loop_from(u).unwrap()).unwrap(), bits(&want).unwrap(), "what was given is still there");
    }
}

/// A step, the end of the loop, and its final state.
fn ended(s: &Session, meanwhile: &dyn Fn(&Image<f32>)) -> (usize, Option<u64>, [Vec<u32>; 2]) {
    let u = given(s, 9, 13);
    let step = |(a, b): &(Image<f32>, Image<f32>)| {
        let next = a.with_border(Border::Wrap).correlate(&cross()) * 0.5 + b * 0.25;
        meanwhile(&next);
        let other = next.max(b);
        (next, other)
    };
    let done = s.iterate((u.clone(), u * 0.5), Until::below(1e-9, 5).every(2), step).unwrap();
    (done.steps, done.change.map(f64::to_bits), [done.state.0, done.state.1].map(|image| bits(&image).unwrap()))
}

#[test]
fn what_is_evaluated_while_a_step_is_recorded_changes_nothing() {
    let want = ended(&session(), &|_| ());
    for limit in 0..16 {
        let s = builder(false).flush_limits(limit, usize::MAX).build().unwrap();
        assert_eq!(ended(&s, &|_| ()), want, "an evaluation is forced after {limit} operations");
    }
    type Meanwhile = fn(&Image<f32>);
    let all: [(&str, Meanwhile); 4] = [
        ("evaluated", |u| u.session().evaluate().unwrap()),
        ("started", |u| u.session().start()),
        ("started alone", Image::start),
        ("looked at", |u| assert_eq!(u.to_vec().unwrap().len(), 9 * 13)),
    ];
    for (name, meanwhile) in all {
        let s = session();
        assert_eq!(ended(&s, &meanwhile), want, "{name}");
        let elsewhere = |u: &Image<f32>| {
            std::thread::scope(|scope| drop(scope.spawn(|| meanwhile(u))));
        };
        assert_eq!(ended(&s, &elsewhere), want, "{name} by another thread");
    }
}
