//! Masked loops on several ranks in strips and in blocks: what is computed and sent for a step, and its time. `cargo run
//! --release -p horus-models --example blocks -- RANKS DEVICE TIMES`, by default 4 ranks, which are threads, on `cpu`, and heat
//! on 720 x 480 points; TIMES as many in each direction. Ranks that `mpirun` started are those of MPI, and numbers those of rank 0.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use horus::comm::{Communicator, SingleRankComm, ThreadComm};
use horus::prelude::*;
use horus_partition::{Blocks, Mask, Scheme, Seams};

// It has a `main`, which is not called here.
#[allow(dead_code)]
#[path = "ocean.rs"]
mod ocean;

/// Heat in seas, after so many steps.
fn heat(session: &Session, mask: &Mask, steps: usize) -> Result<Vec<f64>> {
    let sea = Image::from_fn(session, mask.height(), mask.width(), |y, x| u8::from(mask.is_sea(x, y))).gt(0);
    let begin = sea.select(Image::from_fn(session, mask.height(), mask.width(), |y, x| ((x ^ y) % 64) as f64), 0.0);
    let mean = Filter::dense(5, 5, vec![0.04; 25]);
    session.iterate(begin, steps, |u| sea.select(u.correlate(&mean), 0.0))?.state.to_vec()
}

/// The ocean between continents, after so many steps.
fn ocean(session: &Session, mask: &Mask, steps: usize) -> Result<Vec<f64>> {
    let [temperature, _] = ocean::ExampleOcean::new(session, mask.height(), mask.width())?.after(steps, None)?;
    temperature.to_vec()
}

type BlockProgram = fn(&Session, &Mask, usize) -> Result<Vec<f64>>;

/// Processor time of this process so far in seconds, where `/proc` has it.
fn processor() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks = stat.rsplit(") ").next().into_iter().flat_map(|text| text.split(' ').skip(11).take(2));
    ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// The measurements of a rank.
struct RankMeasurements {
    result: Vec<f64>,
    /// Messages, bytes, seconds, and seconds of processors of a step.
    step: [f64; 4],
    /// The explanation of blocks.
    told: String,
}

/// Runs a program on the ranks of a communicator, in blocks if there is a map.
fn measured(
    comm: Arc<dyn Communicator>,
    device: &str,
    program: BlockProgram,
    mask: &Mask,
    map: Option<&BlockMap>,
) -> Result<RankMeasurements> {
    const STEPS: [usize; 2] = [4, 24];
    let told = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&told);
    let explained = move |text: &str| {
        if let (Some(text), Ok(mut told)) = (text.strip_prefix("blocks:\n"), sink.lock()) {
            text.clone_into(&mut told);
        }
    };
    let session = Session::builder().device(device).communicator(comm).explain(explained).build()?;
    session.place(map.cloned())?;
    program(&session, mask, STEPS[0])?;
    let mut result = Vec::new();
    let mut differences: Vec<[f64; 4]> = Vec::new();
    for _ in 0..3 {
        let each = STEPS.map(|steps| -> Result<[f64; 4]> {
            let (before, start, used) = (session.stats().sent, Instant::now(), processor());
            result = program(&session, mask, steps)?;
            let (after, seconds) = (session.stats().sent, start.elapsed().as_secs_f64());
            let sent = [after.messages - before.messages, after.bytes - before.bytes].map(|n| n as f64);
            Ok([sent[0], sent[1], seconds, processor() - used])
        });
        let [few, many] = each;
        let (few, many) = (few?, many?);
        differences.push([0, 1, 2, 3].map(|i| (many[i] - few[i]) / (STEPS[1] - STEPS[0]) as f64));
    }
    let step = [0, 1, 2, 3].map(|i| {
        differences.sort_by(|a, b| a[i].total_cmp(&b[i]));
        differences[1][i]
    });
    let told = told.lock().map(|told| told.clone()).unwrap_or_default();
    Ok(RankMeasurements { result, step, told })
}

/// Runs a program on the ranks that a launcher started: the measurements of this one; or on threads: messages and bytes of
/// all, and the times of the slowest.
fn run(
    launched: &Arc<dyn Communicator>,
    (ranks, device): (usize, &str),
    program: BlockProgram,
    mask: &Mask,
    map: Option<&BlockMap>,
) -> (Vec<f64>, [f64; 4], String) {
    let made = if launched.size() > 1 {
        vec![measured(Arc::clone(launched), device, program, mask, map)]
    } else {
        ThreadComm::run(ranks, |comm| measured(Arc::new(comm), device, program, mask, map))
    };
    let made: Result<Vec<RankMeasurements>> = made.into_iter().collect();
    let mut made = made.unwrap_or_else(|e| panic!("{e}"));
    let of = |i: usize| {
        let each = made.iter().map(|rank| rank.step[i]);
        if i < 2 { each.sum() } else { each.fold(0.0, f64::max) }
    };
    let step = [0, 1, 2, 3].map(of);
    let RankMeasurements { result, told, .. } = made.swap_remove(0);
    (result, step, told)
}

fn main() {
    let launched = horus::ranks().expect("ranks");
    let threads = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(4);
    let ranks: usize = if launched.size() > 1 { launched.size() } else { threads };
    macro_rules! say {
        ($($what:tt)*) => { if launched.rank() == 0 { println!($($what)*) } };
    }
    let device = std::env::args().nth(2).unwrap_or("cpu".into());
    let times: usize = std::env::args().nth(3).and_then(|text| text.parse().ok()).unwrap_or(1);
    let planet = Mask::synthetic(720 * times, 480 * times, 1).expect("a planet");
    let alone = Session::builder().device("cpu").communicator(Arc::new(SingleRankComm)).build().expect("a session");
    let small = Mask::new(128, 64, vec![true; 128 * 64]).expect("a mask");
    let salt = ocean(&alone, &small, 0).expect("an ocean");
    let basin = Mask::new(128, 64, salt[..128 * 64].iter().map(|t| *t != 0.0).collect()).expect("a mask");
    let programs: [(&str, BlockProgram, &Mask, usize, usize); 2] =
        [("heat", heat, &planet, 20 * times, 2), ("ocean", ocean, &basin, 8, 3)];
    for (name, program, mask, size, halo) in programs {
        let sea = 100.0 * mask.sea() as f64 / (mask.width() * mask.height()) as f64;
        say!("{name}: {} x {} points, {sea:.1} % sea, {ranks} ranks", mask.width(), mask.height());
        let shown = |name: &str, [messages, bytes, seconds, processors]: [f64; 4]| {
            say!(
                "{name:14} {messages:6.1} messages, {bytes:9.0} bytes, {seconds:.4} s, {processors:.4} s of processors a step"
            );
        };
        let (want, strips, _) = run(&launched, (ranks, &device), program, mask, None);
        shown("strips", strips);
        let blocks = Blocks::new(mask, (size, size), halo, Seams::default()).expect("blocks");
        let levels = if ranks.is_multiple_of(2) { format!("2:{}", ranks / 2) } else { ranks.to_string() };
        let every = |n: usize| (n, Scheme::Hierarchical);
        for (steps, scheme) in Scheme::ALL.map(|scheme| (1, scheme)).into_iter().chain([2, 4].map(every)) {
            let parts = scheme.partition(&blocks, &levels.parse().expect("levels")).expect("parts");
            let map = BlockMap::new((mask.height(), mask.width()), (size, size), blocks.placed(&parts));
            let map = map.and_then(|map| map.exchanging_every(steps)).expect("a map");
            let (got, each, told) = run(&launched, (ranks, &device), program, mask, Some(&map));
            assert!(got.iter().zip(&want).all(|(a, b)| a.to_bits() == b.to_bits()), "{name}, {}", scheme.name());
            shown(scheme.name(), each);
            say!("{}", told.trim_end());
        }
    }
}
