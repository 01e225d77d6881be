//! One program on several ranks: messages between them, and errors of ranks that run different
//! programs.

use std::sync::Arc;

use horus_core::comm::Communicator;
use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::device::Device;
use horus_core::error::Result;
use horus_core::image::Image;
use horus_core::image::samples;
use horus_core::io::AnyImage;
use horus_core::ops::geometric::Interpolation;
use horus_core::plan::movement::{Link, Load};
use horus_core::session::Session;
use horus_core::shape::Axis;
use horus_testing::simulated::SimulatedDevice;

fn session() -> Session {
    let device = CpuDevice::new(Some(2)).expect("a CPU");
    Session::on(Box::new(device)).build().expect("a session on the CPU")
}

fn ramp(s: &Session, height: usize, width: usize) -> Image<f32> {
    Image::from_fn(s, height, width, |y, x| (y * width + x) as f32)
}

#[test]
fn a_forecast_tells_what_is_then_sent() {
    let file = tempfile::tempdir().unwrap();
    let path = file.path().join("picture.png");
    let alone = session();
    samples::worms(&alone, 61, 47).save(&path).unwrap();
    let program = |session: &Session| -> Image<f32> {
        let image = Image::<f32>::open(session, &path).unwrap();
        let mut result = Image::zeros(image.session(), image.shape());
        for degrees in [0.0, 30.0, 60.0] {
            let filtered = image.rotate(degrees, Interpolation::Bilinear).gauss_xy(2.0, 1.0, 0, 2);
            result = result.max(filtered.rotate(-degrees, Interpolation::Bilinear));
        }
        result
    };
    let link = Link::default();
    for ranks in [1, 2, 3, 5] {
        let told = alone.forecast(&program(&alone), (ranks, link)).unwrap();
        let sent = ThreadComm::run(ranks, |comm| {
            let cpu = Box::new(CpuDevice::new(Some(1)).unwrap());
            let session = Session::on(cpu).communicator(Arc::new(comm)).build().unwrap();
            let result = program(&session);
            assert_eq!(
                result.session().forecast(&result, (ranks, link)).unwrap().total,
                told.total,
                "asked on {ranks} ranks"
            );
            result.save(file.path().join(format!("{ranks}.npy"))).unwrap();
            session.stats().sent
        });
        let all = Load { messages: sent.iter().map(|l| l.messages).sum(), bytes: sent.iter().map(|l| l.bytes).sum() };
        assert_eq!(told.total.total, all, "{told}");
        assert_eq!(ranks > 1, all.messages > 0);
    }
}

/// The errors of ranks that each run `program`.
fn errors(ranks: usize, program: impl Fn(usize, &Session) -> Result<()> + Sync) -> Vec<String> {
    let run = |comm: ThreadComm| {
        let rank = comm.rank();
        let cpu = Box::new(CpuDevice::new(Some(1)).unwrap());
        let session = Session::on(cpu).communicator(Arc::new(comm)).build().unwrap();
        program(rank, &session).map_or_else(|e| e.to_string(), |()| String::new())
    };
    ThreadComm::run(ranks, run)
}

#[test]
fn ranks_that_record_different_operations_are_told_which() {
    let told = errors(3, |rank, session| {
        let image = ramp(session, 8, 8).gauss_xy(1.0, 1.0, 0, 0);
        let turned = if rank == 1 {
            image.flip([Axis::Rows, Axis::Columns])
        } else {
            image.rotate(180.0, Interpolation::Bilinear)
        };
        turned.to_vec().map(drop)
    });
    for message in told {
        assert!(message.contains("rank 0 reached `%2 = warp bilinear (%1) : 8x8 f32, a result,"), "{message}");
        assert!(
            message.contains("rank 1 reached `%2 = flip both") && message.contains("tests/it/ranks.rs:"),
            "{message}"
        );
    }
}

#[test]
fn ranks_that_ask_for_different_things_are_told_which() {
    // Rank 2 ends where the others go on, rank 0 opens a file where the others evaluate, and
    // weights differ.
    let ends = errors(3, |rank, s| if rank == 2 { Ok(()) } else { ramp(s, 4, 4).to_vec().map(drop) });
    assert!(ends[0].contains("rank 2 ended") && ends[1].contains("rank 2 ended"), "{ends:?}");
    let opens = errors(2, |rank, s| match rank {
        0 => AnyImage::open(s, "nothing.png").map(drop),
        _ => ramp(s, 4, 4).to_vec().map(drop),
    });
    assert!(opens[1].contains("rank 0 reached `opening a picture`, rank 1 reached `an evaluation`"), "{opens:?}");
    let weights = ThreadComm::run(2, |comm| {
        let weights = vec![1.0, 1.0 + comm.rank() as f64];
        let cpu = Box::new(CpuDevice::new(Some(1)).unwrap());
        let s = Session::on(cpu).communicator(Arc::new(comm)).weights(weights).build().unwrap();
        ramp(&s, 4, 4).to_vec().unwrap_err().to_string()
    });
    assert!(weights[1].contains("rows divided as 50.0%, 50.0%"), "{weights:?}");
}

#[test]
fn connected_devices_copy_to_and_from_the_host_once() {
    let filtered = |s: &Session| -> Result<Vec<u32>> {
        let mut image = Image::<f32>::open(s, concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/small.png"))?;
        for round in 0..3 {
            image = image.gauss_xy(2.0, 1.0, 0, 1) * 3.0;
            if round == 1 {
                image = image.rotate(40.0, Interpolation::Bilinear);
            }
        }
        Ok(image.to_vec()?.into_iter().map(f32::to_bits).collect())
    };
    let want = filtered(&session()).unwrap();
    // Devices of different capacity, in the last case too small to hold every image.
    for room in [[1 << 20; 3], [1 << 20, 700_000, 1 << 21], [230_000, 240_000, 250_000]] {
        ThreadComm::run(3, |comm| {
            let device = SimulatedDevice::new(CpuDevice::new(Some(1)).unwrap(), room[comm.rank()]).with_fabric();
            let log = device.call_counts();
            let s = Session::on(Box::new(device)).communicator(Arc::new(comm)).build().unwrap();
            assert!(s.peer_to_peer());
            assert!(filtered(&s).unwrap() == want, "on rank {} with {room:?}", s.rank());
            let (log, made) = (log.get(), s.stats().made);
            assert!(log.exchanges >= 2, "{log:?} {made:?}");
            if room[0] > 500_000 {
                assert_eq!((made.downloads, log.reads), (1, 1), "{log:?} {made:?}");
                assert_eq!(made.uploads, log.writes, "{log:?} {made:?}");
            }
            assert!(log.peak <= room[s.rank()]);
        });
    }
}

#[test]
fn one_rank_that_cannot_reach_the_others_makes_all_go_through_the_host() {
    ThreadComm::run(3, |comm| {
        let device = SimulatedDevice::new(CpuDevice::new(Some(1)).unwrap(), 1 << 20);
        let device = if comm.rank() == 1 { device } else { device.with_fabric() };
        let s = Session::on(Box::new(device)).communicator(Arc::new(comm)).build().unwrap();
        assert!(!s.peer_to_peer());
        samples::worms(&s, 20, 20).gauss_xy(1.0, 1.0, 0, 0).to_vec().unwrap();
    });
}

/// The effect of programs of each kind on a session: filters and rotations, reductions, a loop,
/// labels, a file.
fn all_kinds(s: &Session, file: &std::path::Path) -> Result<Vec<u64>> {
    let image = AnyImage::open(s, concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/small.png"))?.luminance();
    let mut result = Image::zeros(image.session(), image.shape());
    for degrees in [0.0, 35.0, 70.0] {
        result = result.max(
            image
                .rotate(degrees, Interpolation::Bilinear)
                .gauss_xy(2.0, 1.0, 0, 2)
                .rotate(-degrees, Interpolation::Bilinear),
        );
    }
    let range = result.max_value() - result.min_value();
    let scaled = (&result - result.min_value()) / range;
    let labels = (&scaled * 3.0).convert::<u8>();
    let (sums, mean) = s.get_all((result.by_label(&labels, 4).sum(), scaled.median(3).mean()))?;
    let looped = s.iterate(scaled.gauss(1.0), 5, |u| u.laplace() * 0.1 + u)?.state;
    scaled.save(file)?;
    let again = Image::<f32>::open(s, file)?.transpose();
    let pixels = [result, looped, again].iter().map(Image::to_vec).collect::<Result<Vec<_>>>()?.concat();
    let numbers = sums.into_iter().chain([mean]).map(f64::to_bits);
    Ok(pixels.into_iter().map(|p| u64::from(p.to_bits())).chain(numbers).collect())
}

#[test]
fn ranks_with_a_gpu_and_ranks_without_give_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let want = all_kinds(&session(), &folder.path().join("alone.npy")).unwrap();
    for ranks in 2..=5 {
        // The ranks whose devices have their own memory: some, others, all but one.
        for gpu in
            [|rank: usize| rank.is_multiple_of(2), |rank: usize| !rank.is_multiple_of(2), |rank: usize| rank != 1]
        {
            let file = folder.path().join(format!("{ranks}.npy"));
            let got = ThreadComm::run(ranks, |comm| {
                let cpu = CpuDevice::new(Some(1)).unwrap();
                let device: Box<dyn Device> =
                    if gpu(comm.rank()) { Box::new(SimulatedDevice::new(cpu, 1 << 22)) } else { Box::new(cpu) };
                let s = Session::on(device).communicator(Arc::new(comm)).build().unwrap();
                all_kinds(&s, &file).unwrap()
            });
            assert!(got.iter().all(|got| *got == want), "on {ranks} ranks, of which 0 has a GPU: {}", gpu(0));
        }
    }
}

#[test]
fn ranks_that_give_other_pixels_are_told_of_which_image() {
    let pixels = |rank: usize| (0..64).map(|i| if i == 63 { rank as f32 } else { 0.5 }).collect::<Vec<_>>();
    let line = line!() + 2;
    let program = |rank: usize, session: &Session| {
        let given = Image::from_slice(session, (8, 8), &pixels(rank / 2));
        given.gauss(1.0).to_vec().map(drop)
    };
    for told in errors(4, program) {
        let image = format!("recorded at horus-core/tests/it/ranks.rs:{line}:");
        assert!(told.contains("rank 0 reached") && told.contains("rank 2 reached"), "{told}");
        assert_eq!(told.matches(&image).count(), 2, "{told}");
        assert!(told.contains("8x8 f32, pixels of the sum"), "{told}");
    }
    // Without the comparison, ranks go on with what each was given.
    let trusting = ThreadComm::run(2, |comm| {
        let rank = comm.rank();
        let cpu = Box::new(CpuDevice::new(Some(1)).unwrap());
        let session = Session::on(cpu).communicator(Arc::new(comm)).compare_given(false).build().unwrap();
        program(2 * rank, &session).is_ok()
    });
    assert_eq!(trusting, [true; 2]);
    assert!(errors(4, |_, session| ramp(session, 8, 8).to_vec().map(drop)).iter().all(String::is_empty));
}
