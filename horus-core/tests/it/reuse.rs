//! Reuse of plans for repeated programs, and merging of equal images.

use std::panic::Location;
use std::sync::Arc;

use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::error::Result;
use horus_core::image::{Image, LoopState};
use horus_core::ops::geometric::Interpolation;
use horus_core::ops::neighbourhood::Filter;
use horus_core::session::{DeviceInput, Handle, Replay, Session, StandIns};
use horus_core::shape::Border;
use horus_testing::faulty::FaultyDevice;
use horus_testing::simulated::SimulatedDevice;

fn session() -> Session {
    let device = CpuDevice::new(Some(2)).expect("a CPU");
    Session::on(Box::new(device)).build().expect("a session on the CPU")
}

fn ramp(s: &Session, height: usize, width: usize) -> Image<f32> {
    Image::from_fn(s, height, width, |y, x| (y * width + x) as f32)
}

/// A program of filters, rotations and a reduction.
fn lines(image: &Image<f32>, degrees: f64) -> Result<(Image<f32>, f64)> {
    let turned = image.rotate(degrees, Interpolation::Bilinear);
    let contrast = turned.gauss_xy(1.0, 2.0, 0, 2).absdiv(turned.gauss_xy(1.0, 2.0, 0, 0), 1e-3);
    let back = contrast.rotate(-degrees, Interpolation::Bilinear);
    let mean = (&back * &back).mean().get()?;
    Ok((back.max(image), mean))
}

#[test]
fn a_program_that_runs_again_is_not_planned_again() {
    let frame = |s: &Session, n: usize| {
        Image::<f32>::from_fn(s, 29, 23, move |y, x| ((y * 31 + x * 17 + n * 13) % 97) as f32 / 97.0)
    };
    let fresh = |n: usize, degrees: f64| {
        let s = session();
        let (image, mean) = lines(&frame(&s, n), degrees).unwrap();
        (image.to_vec().unwrap(), mean)
    };
    for (ranks, room) in [(1, 1 << 20), (1, 14_000), (3, 1 << 20)] {
        ThreadComm::run(ranks, |comm| {
            let device = SimulatedDevice::new(CpuDevice::new(Some(1)).unwrap(), room).with_fabric();
            let s = Session::on(Box::new(device)).communicator(Arc::new(comm)).build().unwrap();
            let mut kept = Vec::new();
            let mut planned = Vec::new();
            for n in 0..6 {
                // Two alternating programs that differ in a number.
                for degrees in [30.0, 45.0] {
                    let (image, mean) = lines(&frame(&s, n), degrees).unwrap();
                    let (want, sum) = fresh(n, degrees);
                    assert_eq!(mean.to_bits(), sum.to_bits(), "frame {n}, {degrees} degrees");
                    let same = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits());
                    assert!(same(&image.to_vec().unwrap(), &want), "frame {n}, {degrees} degrees");
                    if n == 3 {
                        kept.push(image); // from here on, other images are on the device
                    }
                }
                planned.push(s.stats().planned);
            }
            assert_eq!(s.stats().evaluations, 24);
            assert_eq!(planned[0], 3, "two programs of two evaluations, of which the second is the same");
            assert_eq!((planned[1], planned[2]), (planned[0], planned[0]), "{planned:?}");
            assert_eq!(planned[5], planned[4], "{planned:?}");
            if room == 1 << 20 {
                assert_eq!(
                    planned[5], planned[0],
                    "other images are on the device, which has room for all: {planned:?}"
                );
            }
        });
    }
}

#[test]
fn a_plan_is_for_the_same_images_in_the_same_places() {
    let s = session();
    let (a, b, c) = (ramp(&s, 4, 4), ramp(&s, 4, 4), ramp(&s, 4, 4));
    let planned = |f: &dyn Fn() -> Result<Image<f32>>| {
        let before = s.stats().planned;
        let values = f().unwrap().to_vec().unwrap();
        (s.stats().planned - before, values)
    };
    let add = |x: &Image<f32>, y: &Image<f32>, k: f32| Ok((x + y) * k);
    assert_eq!(planned(&|| add(&a, &b, 2.0)).0, 1);
    assert_eq!(planned(&|| add(&b, &c, 2.0)).0, 0, "other images");
    let (new, values) = planned(&|| add(&a, &a, 2.0));
    assert_eq!((new, values[3]), (1, 12.0), "one image twice is another program");
    assert_eq!(planned(&|| add(&a, &b, 3.0)), (1, (0..16).map(|v| (6 * v) as f32).collect()), "another number");
}

#[test]
fn a_program_of_other_lines_has_the_plan_of_the_first_and_errors_name_its_own() {
    let (device, fault) = FaultyDevice::new(CpuDevice::new(Some(1)).unwrap());
    let s = Session::on(Box::new(device)).build().unwrap();
    let image = ramp(&s, 9, 7);
    let once = image.median(3);
    let twice = once.median(5);
    drop(once);
    let want = twice.to_vec().unwrap();
    let again = image.median(3);
    let line = line!() - 1;
    let twice = again.median(5);
    drop(again);
    fault.fail_after(0);
    let message = twice.to_vec().unwrap_err().to_string();
    fault.disarm();
    assert!(message.contains(&format!("reuse.rs:{line}:")), "{message}");
    assert_eq!(s.stats().planned, 1, "what failed had a plan");
    assert_eq!(twice.to_vec().unwrap(), want);
    let planned = s.stats().planned;
    let in_a_loop = || [3, 5].into_iter().fold(image.clone(), |image, size| image.median(size));
    assert_eq!((in_a_loop().to_vec().unwrap(), s.stats().planned), (want.clone(), planned), "one line for two");
    let once = image.median(3);
    let twice = once.median(5);
    drop(once);
    assert_eq!(twice.to_vec().unwrap(), want);
    assert_eq!(s.stats().planned, planned + 1, "a plan of one line does not tell two apart");
}

#[test]
fn more_programs_than_plans_are_kept_and_the_last_used_stay() {
    let s = session();
    let image = ramp(&s, 4, 4);
    let run = |k: usize| (&image + k as f32).to_vec().unwrap()[0];
    for k in 0..300 {
        assert_eq!((run(k), run(0)), (k as f32, 0.0));
    }
    assert_eq!(s.stats().planned, 300, "the first was always among the last");
    assert_eq!((run(1), s.stats().planned), (1.0, 301), "another was not");
}

#[test]
fn numbers_that_are_equal_but_not_the_same_bits_have_plans_of_their_own() {
    type Program = fn(&Image<f32>, f32) -> Image<f32>;
    let tap = |zero: f32| Filter::dense(1, 1, [f64::from(zero)]);
    assert!(tap(0.0) != tap(-0.0));
    let programs: [(&str, Program); 3] = [
        ("an operand", |image, zero| image / zero),
        ("a filled image", |image, zero| image / Image::constant(image.session(), (4, 4), zero)),
        ("what is beyond the edge", |image, zero| {
            image / image.with_border(Border::Constant(zero.into())).shift(0, 0, 4)
        }),
    ];
    for (what, program) in programs {
        let s = session();
        for (zero, planned) in [(0.0f32, 1), (-0.0, 2), (0.0, 2), (-0.0, 2)] {
            let image = Image::constant(&s, (4, 4), 1.0f32).max(ramp(&s, 4, 4));
            let found = program(&image, zero).to_vec().unwrap();
            assert!(found.iter().all(|v| *v == 1.0 / zero), "{what} {zero:?}: {found:?}");
            assert_eq!(s.stats().planned, planned, "{what} {zero:?}");
        }
    }
}

#[test]
fn images_that_became_one_stay_while_either_is_held() {
    let s = session();
    let image = ramp(&s, 9, 7);
    let blurred = || image.gauss_xy(1.0, 1.0, 0, 0);
    let want = blurred().to_vec().unwrap();
    let (a, b, c) = (blurred(), blurred(), blurred());
    let sum = (&a + &b) + &c;
    let twice: Vec<f32> = want.iter().map(|v| v + v + v).collect();
    assert_eq!(sum.to_vec().unwrap(), twice);
    drop(a);
    assert_eq!(b.to_vec().unwrap(), want);
    let turned = c.transpose();
    drop(c);
    let back = turned.transpose();
    assert_eq!(back.to_vec().unwrap(), want);
    drop((turned, back));
    assert_eq!(b.to_vec().unwrap(), want);
}

fn handle(image: &Image<f32>) -> &Handle {
    let mut all = Vec::new();
    image.handles(&mut all);
    all[0]
}

/// An image computed in place.
fn computed(s: &Session, factor: f32) -> Image<f32> {
    let image = ramp(s, 9, 7) * factor;
    s.evaluate().unwrap();
    image
}

fn both(a: &Image<f32>, b: &Image<f32>) -> [Image<f32>; 2] {
    [a.gauss_xy(1.0, 1.0, 0, 0) - b, a.max(b)]
}

fn given(image: &Image<f32>) -> DeviceInput<'_> {
    DeviceInput::Image(handle(image))
}

/// Two images computed from two others, and the program for other inputs.
fn repeatable(
    (a, b): (&Image<f32>, &Image<f32>),
    program: impl Fn(&Image<f32>, &Image<f32>) -> [Image<f32>; 2],
) -> Option<Replay> {
    let s = a.session();
    let stand_ins = StandIns::new(s, &[handle(a), handle(b)], Location::caller());
    let mut given = stand_ins.handles().iter().cloned().map(Image::from);
    let results = program(&given.next().unwrap(), &given.next().unwrap());
    assert!(!stand_ins.looked() && !stand_ins.looked_into());
    s.keep_repeatable(&[handle(&results[0]), handle(&results[1])], &stand_ins).unwrap()
}

#[test]
fn a_program_is_replayed_on_images_of_the_device() {
    for room in [1 << 20, 3 << 10] {
        let s = Session::on(Box::new(SimulatedDevice::new(CpuDevice::new(Some(1)).unwrap(), room))).build().unwrap();
        let images: Vec<Image<f32>> = (1..5).map(|i| computed(&s, i as f32)).collect();
        let Some(mut replay) = repeatable((&images[0], &images[1]), both) else {
            assert_eq!(room, 3 << 10, "with room for all it can be repeated");
            continue;
        };
        let mut kept = Vec::new();
        let before = s.stats();
        // Both orders, one after the other, with earlier results among the inputs.
        for (i, j) in [(1, 2), (2, 1), (0, 3), (3, 3), (1, 2)] {
            let found = s.repeat_on(&mut replay, &[given(&images[i]), given(&images[j])]).unwrap();
            if i == j {
                assert!(found.is_none(), "one image in two places is another program");
                continue;
            }
            let Some(found) = found else {
                assert_eq!(room, 3 << 10, "there is room for images {i} and {j}");
                continue; // earlier results are in the way
            };
            kept.push((i, j, found.into_iter().map(Image::from).collect::<Vec<Image<f32>>>()));
        }
        let ran = s.stats();
        assert_eq!((ran.planned - before.planned, ran.evaluations - before.evaluations), (0, kept.len()));
        if room == 3 << 10 {
            continue;
        }
        let again = s.repeat_on(&mut replay, &[given(&kept[0].2[0]), given(&kept[1].2[1])]).unwrap();
        let again: Vec<Image<f32>> = again.expect("a result").into_iter().map(Image::from).collect();
        let bits = |image: &Image<f32>| image.to_vec().unwrap().into_iter().map(f32::to_bits).collect::<Vec<_>>();
        for (found, want) in again.iter().zip(both(&kept[0].2[0], &kept[1].2[1])) {
            assert_eq!(bits(found), bits(&want));
        }
        for (i, j, found) in &kept {
            for (found, want) in found.iter().zip(both(&images[*i], &images[*j])) {
                assert_eq!(bits(found), bits(&want), "of images {i} and {j}");
            }
        }
    }
}

#[test]
fn a_program_is_recorded_again_for_images_that_are_elsewhere() {
    let s = Session::on(Box::new(SimulatedDevice::new(CpuDevice::new(Some(1)).unwrap(), 1 << 20))).build().unwrap();
    let (a, b) = (computed(&s, 1.0), computed(&s, 2.0));
    let mut replay = repeatable((&a, &b), both).expect("a program");
    let mut refused = |image: &Image<f32>| s.repeat_on(&mut replay, &[given(&a), given(image)]).unwrap().is_none();
    assert!(refused(&ramp(&s, 9, 7)), "on the host");
    assert!(refused(&(&a + 1.0)), "not computed");
    let other = ramp(&s, 9, 8) * 2.0;
    s.evaluate().unwrap();
    assert!(refused(&other), "of another shape");
    assert!(!refused(&computed(&s, 3.0)));
    assert!(repeatable((&a, &b), |a, b| [a * 2.0 - b, a * 2.0 - b]).is_none(), "one image twice");
    assert!(repeatable((&a, &b), |a, b| [a * 2.0 - b, b.clone()]).is_none(), "an input is the result");
    assert_eq!(a.to_vec().unwrap()[3], 3.0);
}

/// Launches of which some results are only read by others, some by all, and some are kept.
fn several(a: &Image<f32>, b: &Image<f32>) -> [Image<f32>; 2] {
    let turned = a.rotate(30.0, Interpolation::Bilinear);
    let smooth = turned.gauss(1.5).transpose();
    [smooth.rotate(-30.0, Interpolation::Bilinear).median(3), (turned.median(3) - b).transpose()]
}

#[test]
fn launches_of_a_repeated_program_are_submitted_together() {
    let bits = |image: &Image<f32>| image.to_vec().unwrap().into_iter().map(f32::to_bits).collect::<Vec<_>>();
    let want = {
        let s = session();
        let [a, b] = [2.0, 3.0].map(|factor| ramp(&s, 40, 40) * factor);
        several(&a, &b).map(|image| bits(&image))
    };
    // With little room its images do not fit beside one another, and launches are made one by one.
    for (room, batches) in [(1 << 20, 5), (48 << 10, 0)] {
        let device = SimulatedDevice::new(CpuDevice::new(Some(1)).unwrap(), room);
        let log = device.call_counts();
        let s = Session::on(Box::new(device)).build().unwrap();
        let [a, b] = [2.0, 3.0].map(|factor| ramp(&s, 40, 40) * factor);
        s.evaluate().unwrap();
        let mut each = Vec::new();
        for n in 0..6 {
            let before = log.get().launches;
            let found = several(&a, &b);
            s.evaluate().unwrap();
            assert_eq!(found.map(|image| bits(&image)), want, "run {n} with {room} bytes");
            each.push(log.get().launches - before);
        }
        assert!(each[0] > 1 && each.iter().all(|n| *n == each[0]), "{each:?}");
        assert_eq!(log.get().batches, batches, "with {room} bytes");
    }
}

#[test]
fn a_batch_that_fails_leaves_its_images() {
    let bits = |image: &Image<f32>| image.to_vec().unwrap().into_iter().map(f32::to_bits).collect::<Vec<_>>();
    let (device, fault) = FaultyDevice::new(SimulatedDevice::new(CpuDevice::new(Some(1)).unwrap(), 1 << 20));
    let s = Session::on(Box::new(device)).build().unwrap();
    let [a, b] = [2.0, 3.0].map(|factor| ramp(&s, 24, 24) * factor);
    s.evaluate().unwrap();
    let mut want = None;
    for n in 0..3 {
        let found = several(&a, &b);
        s.evaluate().unwrap();
        let found = found.map(|image| bits(&image));
        assert_eq!(want.get_or_insert_with(|| found.clone()), &found, "run {n}");
    }
    let (mut failed, mut n) = (0, 0);
    loop {
        fault.fail_after(n);
        let results = several(&a, &b);
        let evaluated = s.evaluate();
        if !fault.disarm() {
            break;
        }
        failed += usize::from(evaluated.is_err());
        assert_eq!(Some(results.map(|image| bits(&image))), want, "after failure {n}");
        n += 1;
    }
    assert!(failed > 0 && n > 2, "{failed} of {n} calls failed");
}

/// One launch of several results waits for the images of each of them, also when it is submitted with others.
#[test]
fn several_results_of_a_repeated_program_wait_for_all_that_they_read() {
    let run = |s: &Session, n: usize| {
        let given =
            |k: usize| Image::<f32>::from_fn(s, 47, 96, move |y, x| ((y * 31 + x * 17 + n * 13 + k) % 97) as f32);
        let factor = given(9);
        let all: Vec<Image<f32>> = (0..4).map(|k| (given(k) * &factor).gauss_xy(1.0, 1.0, 0, 0)).collect();
        s.evaluate().unwrap();
        all.iter().flat_map(|image| image.to_vec().unwrap()).map(f32::to_bits).collect::<Vec<_>>()
    };
    let s = Session::on(Box::new(SimulatedDevice::new(CpuDevice::new(Some(1)).unwrap(), 1 << 22))).build().unwrap();
    for n in 0..4 {
        assert!(run(&s, n) == run(&session(), n), "run {n}");
    }
    assert!(s.stats().planned < s.stats().evaluations);
}
