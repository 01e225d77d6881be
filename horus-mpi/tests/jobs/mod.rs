//! The programs of each job's ranks.

pub(crate) mod started;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use horus_core::comm::{Communicator, Parcel, SingleRankComm};
use horus_core::cpu::device::CpuDevice;
use horus_core::host::buffer::HostBuffer;
use horus_core::image::Image;
use horus_core::image::samples;
use horus_core::io::AnyImage;
use horus_core::ops::geometric::Interpolation;
use horus_core::ops::neighbourhood::Filter;
use horus_core::plan::{Mode, PlanCounts};
use horus_core::session::{BlockMap, Session};
use horus_core::shape::{Axis, Border, Shape};
use horus_mpi::MpiComm;
use horus_testing::faulty::FaultyDevice;
use horus_testing::reference;
use horus_testing::simulated::SimulatedDevice;

use crate::harness::{RunConfiguration, on_rank};
use crate::random::{RandomStep, program};

type JobResult = Result<(), String>;

fn text(e: impl std::fmt::Display) -> String {
    e.to_string()
}

fn session(comm: MpiComm) -> Session {
    Session::on(Box::new(CpuDevice::new(Some(1)).unwrap())).communicator(Arc::new(comm)).build().unwrap()
}

/// Reproducible numbers.
struct JobRandom(u64);

impl JobRandom {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 ^ (self.0 >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 16
    }

    fn below(&mut self, n: u64) -> usize {
        (self.next() % n) as usize
    }
}

/// Every call, whole and in pieces.
pub(crate) fn messages(comm: MpiComm) -> JobResult {
    let (me, size) = (comm.rank(), comm.size());
    assert!(comm.local_rank() < comm.local_size() && comm.sharers() <= comm.local_size());
    assert_eq!((comm.local_size(), comm.node()), (size, 0), "one machine");
    let bytes =
        |from: usize, to: usize, n: usize| -> Vec<u8> { (0..n).map(|i| (i * 7 + from * 3 + to) as u8).collect() };
    for piece in [usize::MAX, 64, 1] {
        let comm = horus_mpi::join().map_err(text)?.with_pieces_of(piece);
        for n in [1, 63, 64, 65, 1000] {
            let others = || (0..size).filter(|r| *r != me);
            let out: Vec<_> = others().map(|to| (to, bytes(me, to, n))).collect();
            let mut into: Vec<_> = others().map(|from| (from, vec![0; n])).collect();
            let sends: Vec<_> = out.iter().map(|(to, b)| (*to, &b[..])).collect();
            let mut receives: Vec<_> = into.iter_mut().map(|(from, b)| (*from, &mut b[..])).collect();
            comm.exchange(&sends, &mut receives).map_err(text)?;
            into.iter().for_each(|(from, b)| assert_eq!(*b, bytes(*from, me, n)));
            // Two exchanges overlap, finish in reverse order, and surround a collective call.
            let given = |n| others().map(|to| (to, HostBuffer::from_slice(&bytes(me, to, n)))).collect::<Vec<_>>();
            let empty = |n: usize| others().map(|from| (from, HostBuffer::zeroed(n))).collect::<Vec<_>>();
            let check = |got: Vec<Parcel>, n: usize| {
                assert_eq!(got.iter().map(|p| p.0).collect::<Vec<_>>(), others().collect::<Vec<_>>());
                got.iter().for_each(|(from, b)| assert_eq!(b.bytes(), bytes(*from, me, n)));
            };
            let first = comm.begin(given(n), empty(n)).map_err(text)?;
            let second = comm.begin(given(2 * n), empty(2 * n)).map_err(text)?;
            assert_eq!(comm.gather(me as u64).map_err(text)?.len(), size);
            check(second.finish().map_err(text)?, 2 * n);
            check(first.finish().map_err(text)?, n);
            for root in 0..size {
                let mut word = if me == root { bytes(root, 0, n) } else { vec![1, 2, 3] };
                comm.broadcast(root, &mut word).map_err(text)?;
                assert_eq!(word, bytes(root, 0, n));
            }
        }
    }
    let mut nothing = if me == 0 { Vec::new() } else { vec![1] };
    comm.broadcast(0, &mut nothing).map_err(text)?;
    assert!(nothing.is_empty());
    // 1e16 absorbs every 1 that is added to it one at a time: only the order of ranks gives this
    // sum.
    let mut sums = vec![if me == 0 { 1e16 } else { 1.0 }, me as f64];
    comm.sum(&mut sums).map_err(text)?;
    assert_eq!(sums, [1e16, (size * (size - 1) / 2) as f64]);
    assert_eq!(comm.gather(7 + me as u64).map_err(text)?, (7..7 + size as u64).collect::<Vec<_>>());
    Ok(())
}

/// Random programs over odd sizes, from one pixel to strips thinner than the halos. They match the
/// reference's bits, and so those of one rank and of ranks as threads, which other tests compare
/// with it.
pub(crate) fn random_programs(comm: MpiComm) -> JobResult {
    let sizes = [(1, 1), (1, 9), (2, 5), (3, 17), (5, 4), (7, 33), (13, 8), (23, 31)];
    for seed in 0..u64::from(horus_testing::cases::cases(200)) {
        let mut random = JobRandom(seed);
        let (height, width) = sizes[random.below(sizes.len() as u64)];
        let steps = 1 + random.below(12);
        let choices: Vec<RandomStep> = (0..steps)
            .map(|_| {
                let mut byte = || random.next() as u8;
                RandomStep { kind: byte(), param: byte(), reads: [byte(), byte(), byte()] }
            })
            .collect();
        let p = program(Shape::new(height, width, 1), &choices, seed);
        let want = reference::evaluate(&p.graph, &|v| p.sources[v.0 as usize].clone());
        let mode = [Mode::Naive, Mode::Lazy, Mode::Fused][seed as usize % 3];
        let place = RunConfiguration {
            ranks: comm.size(),
            mode,
            separate: seed % 2 == 0,
            direct: seed % 4 == 0 && comm.size() > 1,
            overlap: seed % 3 > 0,
            from_root: seed % 4 < 2,
            bands: (seed % 5 == 0).then_some(3),
        };
        let got = on_rank(&p, place, &comm);
        assert!(got == want, "seed {seed} differs from the reference on rank {} at {place:?}", comm.rank());
        let alone = on_rank(&p, RunConfiguration { ranks: 1, direct: false, ..place }, &SingleRankComm);
        assert!(got == alone, "seed {seed} differs from one rank alone");
    }
    Ok(())
}

/// Steps and bytes of a filter bank over a picture: one scatter of strips with halos of the widest
/// radius, one gather, and no byte beyond strips and halos. Pixels and halos have one byte each, as the
/// filters convert their input.
pub(crate) fn traffic(comm: MpiComm) -> JobResult {
    const PICTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/small.png");
    const HEIGHT: usize = 80;
    const WIDTH: usize = 96;
    const CHANNELS: usize = 3;
    const RADIUS: usize = 6;
    let size = comm.size();
    let comm = Arc::new(comm);
    let cpu = Box::new(CpuDevice::new(Some(1)).unwrap());
    let session = Session::on(cpu).communicator(comm.clone()).build().map_err(text)?;
    let image = Image::<f32>::open(&session, PICTURE).map_err(text)?;
    assert_eq!((image.height(), image.width()), (HEIGHT, WIDTH));
    let narrow = image.gauss_xy(1.0, 1.0, 0, 0);
    let wide = image.gauss_xy(2.0, 2.0, 0, 1);
    let sum = &narrow + &wide;
    drop((image, narrow, wide));
    let file = std::env::temp_dir().join(format!("horus-mpi-{}.npy", std::process::id()));
    sum.save(&file).map_err(text)?;
    if comm.rank() == 0 {
        std::fs::remove_file(&file).map_err(text)?;
    }
    let stats = session.stats();
    let once = usize::from(size > 1);
    let counts = PlanCounts { scatters: once, gathers: once, ..PlanCounts::default() };
    assert_eq!(between(stats.made), counts);
    let mut sent = [stats.sent.messages as f64, stats.sent.bytes as f64];
    comm.sum(&mut sent).map_err(text)?;
    let away = CHANNELS * (HEIGHT - HEIGHT / size) * WIDTH;
    // Above each strip that is sent, and below all but the last.
    let borders = CHANNELS * (2 * size).saturating_sub(3) * RADIUS * WIDTH;
    assert_eq!(sent, [2.0 * (size - 1) as f64, (away + borders + 4 * away) as f64]);
    Ok(())
}

fn between(c: PlanCounts) -> PlanCounts {
    PlanCounts { launches: 0, uploads: 0, downloads: 0, ..c }
}

/// Ranks with few rows and with none compute the same bits.
pub(crate) fn weights(comm: MpiComm) -> JobResult {
    let comm = Arc::new(comm);
    let mut results = Vec::new();
    for weights in [vec![1.0; 3], vec![1.0, 2.0, 1.0], vec![0.0, 1.0, 0.0], vec![0.0, 0.0, 5.0], vec![9.0, 0.0, 0.1]] {
        let cpu = Box::new(CpuDevice::new(Some(1)).unwrap());
        let session = Session::on(cpu).communicator(comm.clone()).weights(weights).build().map_err(text)?;
        let image = samples::worms(&session, 37, 29);
        let turned = image.gauss_xy(2.0, 1.0, 0, 2).rotate(30.0, Interpolation::Bilinear);
        let (sum, pixels) = (turned.sum().get().map_err(text)?, turned.to_vec().map_err(text)?);
        results.push((sum.to_bits(), pixels.iter().map(|p| p.to_bits()).collect::<Vec<_>>()));
    }
    assert!(results.iter().all(|r| *r == results[0]));
    Ok(())
}

/// Launches in parts while halos are exchanged: the bits and messages of whole launches, also if
/// rank 0 alone has no rows. Nothing is computed in parts if one rank does not request it.
pub(crate) fn parts(comm: MpiComm) -> JobResult {
    let (size, comm) = (comm.size(), Arc::new(comm));
    let run = |overlap: bool, weights: Vec<f64>| -> Result<_, String> {
        let begun = Arc::new(AtomicUsize::new(0));
        let counter = begun.clone();
        let session = Session::on(Box::new(CpuDevice::new(Some(1)).unwrap()))
            .communicator(comm.clone())
            .overlap(overlap)
            .weights(weights)
            .explain(move |plan| {
                counter.fetch_add(plan.matches("begin ").count(), Ordering::Relaxed);
            })
            .build()
            .map_err(text)?;
        let worms = samples::worms(&session, 400, 3000);
        // Messages of 60 kB and more: some wait for the other rank, some do not.
        let smooth = (0..6).fold(worms, |i, _| i.gauss_xy(2.0, 1.0, 0, 1));
        let pixels: Vec<u32> = smooth.to_vec().map_err(text)?.iter().map(|p| p.to_bits()).collect();
        Ok((pixels, session.stats().sent, begun.load(Ordering::Relaxed)))
    };
    for weights in [vec![1.0; size], (0..size).map(|r| r as f64).collect()] {
        let (whole, parts) = (run(false, weights.clone())?, run(true, weights.clone())?);
        assert!(whole.0 == parts.0, "the bits differ");
        assert_eq!(whole.1, parts.1, "what is sent differs");
        assert!(whole.2 == 0 && parts.2 > 1, "{} exchanges were begun", parts.2);
        assert_eq!(run(comm.rank() > 0, weights)?.2, 0, "rank 0 did not ask for it");
    }
    Ok(())
}

/// MPI stays usable between sessions, and is finalised properly if one of them is never dropped.
pub(crate) fn two_sessions(comm: MpiComm) -> JobResult {
    let first = session(comm);
    evaluate(&first)?;
    drop(first);
    let second = session(horus_mpi::join().map_err(text)?);
    evaluate(&second)?;
    std::mem::forget(second);
    Ok(())
}

fn evaluate(session: &Session) -> JobResult {
    let image = samples::worms(session, 16, 16);
    image.gauss_xy(1.0, 1.0, 0, 0).to_vec().map(drop).map_err(text)
}

/// A loop over a masked sea in blocks that are dealt to all ranks has the bits of one rank alone.
pub(crate) fn loop_in_blocks(comm: MpiComm) -> JobResult {
    const PLANE: (usize, usize) = (46, 61);
    const BLOCK: usize = 8;
    let is_sea = |y: usize, x: usize| !((12..33).contains(&y) && (15..44).contains(&x));
    let ranks = comm.size();
    let across = PLANE.1.div_ceil(BLOCK);
    let dealt = (0..PLANE.0.div_ceil(BLOCK) * across).map(|i| {
        let (top, left) = (i / across * BLOCK, i % across * BLOCK);
        let sea = (top..(top + BLOCK).min(PLANE.0)).any(|y| (left..(left + BLOCK).min(PLANE.1)).any(|x| is_sea(y, x)));
        sea.then_some(i % ranks)
    });
    let map = BlockMap::new(PLANE, (BLOCK, BLOCK), dealt).map_err(text)?;
    let mean = Filter::dense(5, 5, vec![0.04; 25]);
    let heat = |session: &Session| -> Result<Vec<u32>, String> {
        let sea = Image::from_fn(session, PLANE.0, PLANE.1, |y, x| u8::from(is_sea(y, x))).gt(0);
        let begin = sea.select(Image::from_fn(session, PLANE.0, PLANE.1, |y, x| ((x ^ y) % 64) as f32), 0.0);
        let looped = session.iterate(begin, 9, |u| sea.select(u.with_border(Border::Wrap).correlate(&mean), 0.0));
        let state = looped.map_err(text)?.state.to_vec().map_err(text)?;
        Ok(state.into_iter().map(f32::to_bits).collect())
    };
    let session = session(comm);
    let want = heat(&session.alone().map_err(text)?)?;
    session.place(map).map_err(text)?;
    let got = heat(&session)?;
    if got != want { Err("blocks have other bits than one rank alone".into()) } else { Ok(()) }
}

/// Rank 0 sends more than rank 1 expects.
pub(crate) fn wrong_length(comm: MpiComm) -> JobResult {
    let sent = [0u8; 100];
    let mut expected = [0u8; 10];
    let done = match comm.rank() {
        0 => comm.exchange(&[(1, &sent)], &mut []),
        1 => comm.exchange(&[], &mut [(0, &mut expected)]),
        _ => Ok(()),
    };
    if let Err(e) = done {
        comm.abort(&e.to_string());
    }
    Ok(())
}

/// Rank 2 records another operation.
pub(crate) fn branching(comm: MpiComm) -> JobResult {
    let branch = comm.rank() == 2;
    let session = session(comm);
    let image = samples::worms(&session, 16, 16);
    let turned = if branch { image.flip(Axis::Rows) } else { image.transpose() };
    turned.to_vec().map(drop).map_err(text)
}

/// Rank 2 uses other taps.
pub(crate) fn other_taps(comm: MpiComm) -> JobResult {
    let tap = if comm.rank() == 2 { 2.0 } else { 1.0 };
    let session = session(comm);
    let image = samples::worms(&session, 16, 16);
    let filtered = image.with_border(Border::Reflect).correlate(&Filter::row([1.0, tap, 1.0]));
    filtered.to_vec().map(drop).map_err(text)
}

/// Rank 0 finishes before the others.
pub(crate) fn ends_early(comm: MpiComm) -> JobResult {
    let leaves = comm.rank() == 0;
    let session = session(comm);
    if leaves { Ok(()) } else { evaluate(&session) }
}

/// Rank 1 returns an error from `main` before anything is evaluated.
pub(crate) fn fails_early(comm: MpiComm) -> JobResult {
    let fails = comm.rank() == 1;
    let session = session(comm);
    if fails { Err("no licence".into()) } else { evaluate(&session) }
}

/// Rank 1 reads a file where the others evaluate.
pub(crate) fn opens_a_file(comm: MpiComm) -> JobResult {
    let opens = comm.rank() == 1;
    let session = session(comm);
    if opens { AnyImage::open(&session, "a.png").map(drop).map_err(text) } else { evaluate(&session) }
}

/// Rank 1 panics before anything is evaluated.
pub(crate) fn panics(comm: MpiComm) -> JobResult {
    let panics = comm.rank() == 1;
    let session = session(comm);
    assert!(!panics, "on purpose");
    evaluate(&session)
}

/// Rank 2 panics while the others wait for its rows.
pub(crate) fn panics_in_a_step(comm: MpiComm) -> JobResult {
    let panics = comm.rank() == 2;
    let session = Session::on(Box::new(CpuDevice::new(Some(1)).unwrap()))
        .communicator(Arc::new(comm))
        .observer(move |p| assert!(!panics || p.step < 1, "on purpose"))
        .build()
        .map_err(text)?;
    evaluate(&session)
}

/// Rank 1's device has less memory than it reported.
pub(crate) fn device_fails(comm: MpiComm) -> JobResult {
    let (device, fault) = FaultyDevice::new(SimulatedDevice::new(CpuDevice::new(Some(1)).unwrap(), 1 << 30));
    if comm.rank() == 1 {
        fault.fail_after(0);
    }
    let session = Session::on(Box::new(device)).communicator(Arc::new(comm)).build().map_err(text)?;
    evaluate(&session)
}

/// Rank 1 is killed while all evaluate.
pub(crate) fn killed(comm: MpiComm) -> JobResult {
    signalled(comm, "-KILL")
}

/// Rank 1 is stopped while all evaluate.
pub(crate) fn stopped(comm: MpiComm) -> JobResult {
    signalled(comm, "-STOP")
}

fn signalled(comm: MpiComm, signal: &str) -> JobResult {
    let target = comm.rank() == 1;
    let session = session(comm);
    for round in 0.. {
        if target && round == 3 {
            let me = std::process::id().to_string();
            std::process::Command::new("kill").args([signal, &me]).status().map_err(text)?;
        }
        evaluate(&session)?;
    }
    Ok(())
}

/// Rank 1 aborts in one thread while another of its threads is inside MPI, running `call`, and all
/// others wait for it.
fn gives_up_beside(comm: MpiComm, call: fn(&MpiComm)) -> JobResult {
    let mut never = [0u8; 8];
    if comm.rank() != 1 {
        return comm.exchange(&[], &mut [(1, &mut never)]).map_err(text);
    }
    let other = horus_mpi::join().map_err(text)?;
    std::thread::spawn(move || call(&other));
    std::thread::sleep(std::time::Duration::from_millis(200));
    comm.abort("enough");
    Ok(())
}

/// The other thread waits for a message, and releases the lock.
pub(crate) fn gives_up_beside_a_message(comm: MpiComm) -> JobResult {
    gives_up_beside(comm, |comm| {
        let mut never = [0u8; 8];
        comm.exchange(&[], &mut [(0, &mut never)]).expect("the job ends before");
    })
}

/// The other thread is inside a collective call, which returns when all ranks have joined.
pub(crate) fn gives_up_beside_a_collective_call(comm: MpiComm) -> JobResult {
    gives_up_beside(comm, |comm| {
        comm.gather(1).expect("the job ends before");
    })
}
