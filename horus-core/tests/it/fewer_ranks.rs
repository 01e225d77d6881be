//! Programs on as many ranks as are predicted to take the least time: the same bits, and never predicted to take longer on
//! more.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use horus_core::comm::Communicator;
use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::device::Device;
use horus_core::error::Result;
use horus_core::image::Image;
use horus_core::ops::geometric::Interpolation;
use horus_core::plan::forecast::Cluster;
use horus_core::prelude::Filter;
use horus_core::session::{Session, SessionBuilder};
use horus_core::settings::Ranks;
use horus_core::shape::Axis;
use horus_testing::simulated::{CallCountsHandle, SimulatedDevice};

/// A session on the host's memory, on memory of its own, or on connected devices.
pub(crate) fn builder(kind: usize) -> SessionBuilder {
    let cpu = CpuDevice::new(Some(1)).unwrap();
    let device: Box<dyn Device> = match kind {
        0 => Box::new(cpu),
        1 => Box::new(SimulatedDevice::new(cpu, 1 << 26).requiring_preparation()),
        _ => Box::new(SimulatedDevice::new(cpu, 1 << 26).requiring_preparation().with_fabric()),
    };
    Session::on(device)
}

fn given(s: &Session, height: usize, width: usize) -> Image<f32> {
    let pixels: Vec<f32> = (0..height * width).map(|i| ((i * 31 + i / width * 17) % 101) as f32 * 0.37 - 9.0).collect();
    Image::from_slice(s, (height, width), &pixels)
}

/// Small and large programs in turns, over images that the others leave.
fn program(s: &Session) -> Result<Vec<Vec<f32>>> {
    let mut all = Vec::new();
    let (small, large) = (given(s, 9, 8), given(s, 400, 300));
    let little = &small * 2.0;
    s.evaluate()?;
    let mut much = large.clone();
    for sigma in [3.0, 4.0, 5.0] {
        much = much.gauss(sigma) - large.gauss_2d(20.0, sigma, 3.0, 0, 2);
    }
    s.evaluate()?;
    all.push((&little + much.resize(9, 8, Interpolation::Bilinear)).to_vec()?);
    let row = much.crop(1, 0, 1, 300);
    s.evaluate()?;
    all.push((&row * 3.0).over(Axis::Columns).sum().convert::<f32>().to_vec()?);
    all.push(vec![much.sum().get()? as f32, little.mean().get()? as f32]);
    all.push(much.median(3).gather()?.map_or_else(Vec::new, |pixels| pixels.to_vec()));
    let blurred = small.gauss(1.0);
    all.push(blurred.gather()?.map_or_else(Vec::new, |pixels| pixels.to_vec()));
    all.push((&blurred - &small).to_vec()?);
    let turned = s.iterate(little, 3, |u: &Image<f32>| u.gauss(0.7))?.state;
    all.push((turned + &small).to_vec()?);
    all.push((much.rotate(10.0, Interpolation::Bilinear) - &large).to_vec()?);
    all.push(small.to_vec()?);
    Ok(all)
}

#[test]
fn images_of_some_ranks_and_of_all_meet() {
    let want = program(&builder(0).build().unwrap()).unwrap();
    for kind in 0..3 {
        for ranks in [2, 3, 5] {
            let numbers = (1..=ranks).filter_map(NonZeroUsize::new).map(Ranks::First);
            for choice in [Ranks::Auto, Ranks::All].into_iter().chain(numbers) {
                let told: Arc<Mutex<Vec<String>>> = Arc::default();
                let got = ThreadComm::run(ranks, |comm| {
                    let told = Arc::clone(&told);
                    let sink = move |text: &str| told.lock().unwrap().push(text.to_owned());
                    let s = builder(kind).communicator(Arc::new(comm)).ranks(choice).explain(sink).build().unwrap();
                    (program(&s).unwrap(), s.stats())
                });
                for (rank, (got, stats)) in got.iter().enumerate() {
                    for (i, (got, want)) in got.iter().zip(&want).enumerate() {
                        let is_elsewhere = rank > 0 && (i == 3 || i == 4);
                        assert!(
                            got == want || is_elsewhere,
                            "{choice:?}, rank {rank} of {ranks}, kind {kind}: result {i}"
                        );
                    }
                    if let Ranks::First(first) = choice {
                        assert_eq!(stats.made.launches > 0, rank < first.get(), "{choice:?}, rank {rank} of {ranks}");
                    }
                }
                let told = told.lock().unwrap();
                if choice == Ranks::Auto && kind == 0 {
                    let has = |among: usize| {
                        let choice = format!("on {among} of {ranks} ranks, the least");
                        told.iter().any(|text| text.starts_with("predicted to take:") && text.contains(&choice))
                    };
                    assert!(has(1) && (2..=ranks).any(has), "one rank and several, each for some program");
                }
            }
        }
    }
}

#[test]
fn more_ranks_are_never_predicted_to_take_longer() {
    let s = builder(1).ranks(Ranks::Auto).build().unwrap();
    for (height, width) in [(30, 40), (400, 300), (1500, 1000)] {
        let image = given(&s, height, width);
        let lines = (0..4).map(|i| {
            let turned = image.rotate(f64::from(i) * 45.0, Interpolation::Bilinear).gauss_xy(3.0, 1.0, 0, 2);
            turned.absdiv(image.gauss(2.0), 1e-3).rotate(f64::from(i) * -45.0, Interpolation::Bilinear)
        });
        let lines = lines.reduce(|a, b| a.max(b)).unwrap();
        let centred = &image - image.mean();
        for value in [lines, image.gauss(2.0), image.median(5), centred] {
            let mut least = f64::INFINITY;
            for ranks in 1..=8 {
                let cluster = Cluster { ranks, on_each_host: 2, network: None, machine: None };
                let told = s.forecast(&value, cluster).unwrap();
                let seconds = told.makespan - told.meeting;
                assert!(
                    seconds <= least * (1.0 + 1e-9),
                    "{height}x{width} on {ranks} ranks: {seconds}, on fewer {least}"
                );
                assert!(told.ranks <= told.of && told.of == ranks);
                least = seconds;
            }
        }
    }
}

/// Devices of two ranks, whose connection takes seconds and bytes of their memory, and the number of connections.
fn connected_sometime<R: Send>(
    (seconds, bytes): (f64, usize),
    ranks: Ranks,
    work: impl Fn(&Session, &CallCountsHandle) -> R + Sync,
) -> Vec<R> {
    ThreadComm::run(2, |comm| {
        let cpu = CpuDevice::new(Some(1)).unwrap();
        let device = SimulatedDevice::new(cpu, ROOM).with_fabric().connecting_in(seconds, bytes);
        let counts = device.call_counts();
        let s = Session::on(Box::new(device)).communicator(Arc::new(comm)).ranks(ranks).build().unwrap();
        work(&s, &counts)
    })
}

const ROOM: usize = 1 << 22;

fn blurred(image: &Image<f32>) -> Vec<f32> {
    let taps: Vec<f64> = (0..31 * 31).map(|i| f64::from(i % 7) - 2.0).collect();
    let filter = Filter::dense(31, 31, taps);
    image.correlate(&filter).correlate(&filter).to_vec().unwrap()
}

#[test]
fn devices_are_connected_once_that_has_paid() {
    let want = blurred(&given(&builder(0).build().unwrap(), 600, 600));
    let ran = connected_sometime((5e-4, 0), Ranks::Auto, |s, counts| {
        let image = given(s, 600, 600);
        let mut before = 0;
        while counts.get().connections == 0 {
            assert_eq!(blurred(&image), want, "without a connection");
            before += 1;
            assert!(before < 200, "the devices are never connected");
        }
        assert_eq!(blurred(&image), want, "with a connection");
        (before, counts.get())
    });
    for (before, counts) in ran {
        assert!(before > 2, "connected at evaluation {before}");
        assert!(counts.connections == 1 && counts.exchanges > 0, "{counts:?}");
    }
}

#[test]
fn only_plans_that_exchange_connect_devices() {
    let ran = connected_sometime((1.0, 0), Ranks::All, |s, counts| {
        let image = given(s, 90, 70);
        let doubled = &image * 2.0;
        s.evaluate().unwrap();
        let before = counts.get().connections;
        s.iterate(doubled, 3, |u: &Image<f32>| u.gauss(0.7)).unwrap();
        (before, counts.get().connections)
    });
    assert_eq!(ran, [(0, 1); 2]);
}

#[test]
fn plans_are_remade_if_a_connection_takes_memory() {
    let want = blurred(&given(&builder(0).build().unwrap(), 300, 200));
    let ran = connected_sometime((0.0, ROOM / 4 * 3), Ranks::All, |s, counts| {
        let image = given(s, 300, 200);
        assert_eq!(blurred(&image), want);
        assert_eq!(blurred(&image), want);
        counts.get()
    });
    for counts in ran {
        assert!(counts.connections == 1 && counts.peak <= ROOM / 4, "{counts:?}");
    }
}

#[test]
fn mixed_ranks_agree_on_how_many_compute() {
    let want = blurred(&given(&builder(0).build().unwrap(), 300, 200));
    for first in [0, 2] {
        let ran = ThreadComm::run(2, |comm| {
            let kind = if comm.rank() == 0 { first } else { 2 - first };
            let s = builder(kind).communicator(Arc::new(comm)).ranks(Ranks::Auto).build().unwrap();
            let image = given(&s, 300, 200);
            [blurred(&image), blurred(&image), blurred(&image)]
        });
        assert!(ran.into_iter().flatten().all(|got| got == want), "first {first}");
    }
}

#[test]
fn a_rank_without_a_plan_ends_the_evaluation_of_all() {
    let ran = ThreadComm::run(2, |comm| {
        let cpu = CpuDevice::new(Some(1)).unwrap();
        let device: Box<dyn Device> =
            if comm.rank() == 0 { Box::new(cpu) } else { Box::new(SimulatedDevice::new(cpu, 1 << 12)) };
        let s = Session::on(device).communicator(Arc::new(comm)).ranks(Ranks::Auto).build().unwrap();
        let blurred = given(&s, 300, 200).gauss(1.0);
        blurred.to_vec().unwrap_err().to_string()
    });
    assert!(ran[0].contains("rank 1 has no plan") && ran[1].contains("memory"), "{ran:?}");
}
