//! Compares measured times with predictions: of strategies of copying between host and device (chapter 5 of the
//! thesis), or of shares of the rows between two devices. With random programs, compares the chosen strategy with the
//! work of the busiest queue.
//!
//! Pixels come from page-locked memory and go to page-locked memory.

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Write as _;
use std::num::NonZeroU8;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use horus::prelude::*;
use horus_apps::detectors::{Params, conv2d, convrot, convuv};
use horus_core::session::Session as CoreSession;
use horus_models::ocean::{Basin, Equation, OceanField, SeaWater};
use horus_tools::bench_lines::clock;
use horus_tools::queues::RunQueues;
use horus_tools::random_programs::{RandomProgram, correlate};

/// Times strategies of copying pixels to a GPU and back.
#[derive(Parser)]
struct StrategiesOptions {
    /// Programs, comma separated, or `all`.
    #[arg(long, default_value = "all")]
    op: String,
    /// Rows and columns of the image; several, comma separated, are measured in turn.
    #[arg(long, default_value = "1024,2048,4096,8192,16384", value_delimiter = ',')]
    size: Vec<usize>,
    /// Device: auto, cpu, cuda, cuda:N; for shares two, as cuda:0+cpu.
    #[arg(long, default_value = "cuda")]
    device: String,
    /// Shares of the second device in per cent, comma separated, in place of strategies.
    #[arg(long, value_delimiter = ',')]
    shares: Vec<f64>,
    /// In place of strategies: this many programs drawn at random after those of `--op`, beside the
    /// work of their busiest queue.
    #[arg(long, conflicts_with = "shares")]
    random: Option<u64>,
    /// Number of the first program drawn at random.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Timed runs of each strategy or program, after two that are not counted.
    #[arg(long, default_value_t = 31)]
    runs: usize,
    /// Seconds per strategy of a row, or per program, after which no further run begins.
    #[arg(long, default_value_t = 1.0)]
    budget: f64,
    /// Write a table to this file.
    #[arg(long)]
    markdown: Option<PathBuf>,
    /// Write the numbers, separated by tabs, to this file: `benches/plot.py strategies` draws them.
    #[arg(long)]
    tsv: Option<PathBuf>,
}

/// The results of a program.
type StrategyResults = Vec<Image<f32>>;
/// Records a program over images.
type ProgramRecorder<T> = dyn Fn(&[Image<T>]) -> Result<StrategyResults>;

/// A program over images of real numbers of one size, or over volumes of as many pixels.
struct StrategyProgram {
    name: &'static str,
    /// Number of images that it reads.
    inputs: usize,
    record: StrategyFunction,
}

#[derive(Clone, Copy)]
enum StrategyFunction {
    Image(fn(&[Image<f32>]) -> Image<f32>),
    /// A program over temperatures and salinities.
    Ocean(fn(&SeaWater, [&OceanField; 2]) -> Vec<OceanField>),
}

const PROGRAMS: &[StrategyProgram] = &[
    StrategyProgram { name: "correlate 3", inputs: 1, record: StrategyFunction::Image(|i| correlate(&i[0], 3)) },
    StrategyProgram { name: "correlate 7", inputs: 1, record: StrategyFunction::Image(|i| correlate(&i[0], 7)) },
    StrategyProgram { name: "correlate 17", inputs: 1, record: StrategyFunction::Image(|i| correlate(&i[0], 17)) },
    StrategyProgram { name: "correlate 43", inputs: 1, record: StrategyFunction::Image(|i| correlate(&i[0], 43)) },
    StrategyProgram {
        name: "pixel chain",
        inputs: 1,
        record: StrategyFunction::Image(|i| ((&i[0] * 2.5 + 0.25).abs() / (&i[0] + 1.5)).max(&i[0] * 0.5)),
    },
    StrategyProgram { name: "separable 19", inputs: 1, record: StrategyFunction::Image(|i| i[0].gauss(3.0)) },
    StrategyProgram {
        name: "ConvRot",
        inputs: 1,
        record: StrategyFunction::Image(|i| convrot(&i[0], &Params::default())),
    },
    StrategyProgram {
        name: "ConvUV",
        inputs: 1,
        record: StrategyFunction::Image(|i| convuv(&i[0], &Params::default())),
    },
    StrategyProgram {
        name: "Conv2D",
        inputs: 1,
        record: StrategyFunction::Image(|i| conv2d(&i[0], &Params::default())),
    },
    StrategyProgram { name: "matmul", inputs: 2, record: StrategyFunction::Image(|i| i[0].matmul(&i[1])) },
    StrategyProgram {
        name: "state",
        inputs: 2,
        record: StrategyFunction::Ocean(|water, [t, s]| {
            let state = water.state(t, s);
            vec![state.density, state.by_temperature, state.by_salinity]
        }),
    },
    StrategyProgram {
        name: "buoydiff",
        inputs: 2,
        record: StrategyFunction::Ocean(|water, [t, s]| {
            let buoyancy = water.buoyancy(t, s);
            vec![buoyancy.from_surface, buoyancy.from_below]
        }),
    },
    StrategyProgram {
        name: "ddmix",
        inputs: 2,
        record: StrategyFunction::Ocean(|water, [t, s]| {
            let none = Image::constant(t.session(), t.shape(), 0.0);
            water.double_diffusion(t, s, [&none, &none]).into()
        }),
    },
];

/// Levels of an ocean, of a quarter as many rows and columns as an image has.
const LEVELS: usize = 16;

fn image(size: usize) -> Shape {
    Shape::new(size, size, 1)
}

impl StrategyProgram {
    /// The shape of the inputs, for images of `size` rows and columns.
    fn shape(&self) -> fn(size: usize) -> Shape {
        match self.record {
            StrategyFunction::Image(_) => image,
            StrategyFunction::Ocean(_) => |size| Shape::volume(LEVELS, size / 4, size / 4, 1),
        }
    }

    /// The function that records the program. An ocean's other data are made once in a session.
    fn recorder(&self) -> Box<ProgramRecorder<f32>> {
        match self.record {
            StrategyFunction::Image(record) => Box::new(move |given| Ok(vec![record(given)])),
            StrategyFunction::Ocean(record) => {
                let known: RefCell<Vec<(OceanField, SeaWater)>> = RefCell::default();
                Box::new(move |given| {
                    let (session, shape) = (given[0].session(), given[0].shape());
                    let mut known = known.borrow_mut();
                    let at = match known.iter().position(|(floor, _)| floor.session().same(session)) {
                        Some(at) => at,
                        None => {
                            let depths: Vec<f64> = (0..LEVELS).map(|z| 10.0 + 300.0 * z as f64).collect();
                            let floor = Image::constant(session, Shape { depth: 1, ..shape }, LEVELS as f64);
                            let water = SeaWater::new(&Basin::new(session, &depths, &floor)?, Equation::Mwjf)?;
                            known.push((floor, water));
                            known.len() - 1
                        }
                    };
                    let [t, s] = [0, 1].map(|i| given[i].convert::<f64>());
                    Ok(record(&known[at].1, [&t, &s]).iter().map(Image::convert).collect())
                })
            }
        }
    }
}

/// The programs of `--op`.
fn programs(options: &StrategiesOptions) -> Result<Vec<&'static StrategyProgram>> {
    let wanted: Vec<&str> = options.op.split(',').collect();
    if let Some(unknown) = wanted.iter().find(|w| **w != "all" && !PROGRAMS.iter().any(|p| p.name == **w)) {
        return Err(Error::Config(format!("program {unknown:?} is not known")));
    }
    Ok(PROGRAMS.iter().filter(|p| wanted.contains(&"all") || wanted.contains(&p.name)).collect())
}

/// A setting of a session that is measured.
#[derive(Clone, Copy)]
enum Strategy {
    Copies(Transfer),
    /// Share of the second device, in per cent of the rows.
    Share(f64),
}

impl Strategy {
    fn open(self, device: &str) -> Result<Session> {
        let builder = Session::builder().device(device).eager(true);
        match self {
            Strategy::Copies(transfer) => builder.transfer(transfer),
            Strategy::Share(percent) => builder.weights(vec![100.0 - percent, percent]),
        }
        .build()
    }
}

/// The forced strategies, then the automatic choice.
fn strategies(shares: &[f64]) -> Vec<(String, Strategy)> {
    let auto = ("auto".to_owned(), Strategy::Copies(Transfer::Auto));
    if !shares.is_empty() {
        let forced = shares.iter().map(|percent| (format!("{percent} %"), Strategy::Share(*percent)));
        return forced.chain([auto]).collect();
    }
    let streams = |n| (format!("{n} streams"), Transfer::Streams(NonZeroU8::new(n)));
    let forced = [("explicit".to_owned(), Transfer::Explicit)].into_iter().chain([2, 4, 8, 16].map(streams));
    let mapped = [("implicit", Transfer::Implicit), ("hybrid", Transfer::Hybrid(None))];
    let forced = forced.chain(mapped.map(|(name, transfer)| (name.to_owned(), transfer)));
    forced.map(|(name, transfer)| (name, Strategy::Copies(transfer))).chain([auto]).collect()
}

/// Milliseconds of one strategy.
#[derive(Clone)]
struct StrategyTimes {
    /// Sorted times of all runs.
    runs: Vec<f64>,
    predicted: f64,
}

impl StrategyTimes {
    /// The time that this share of runs does not exceed.
    fn quantile(&self, share: f64) -> f64 {
        self.runs[((self.runs.len() - 1) as f64 * share).round() as usize]
    }

    fn median(&self) -> f64 {
        self.quantile(0.5)
    }
}

/// The type of the given pixels.
#[derive(Clone, Copy)]
enum InputPixelType {
    Bytes,
    Reals,
}

impl InputPixelType {
    const fn name(self) -> &'static str {
        match self {
            InputPixelType::Bytes => "u8",
            InputPixelType::Reals => "f32",
        }
    }

    /// Times a program from pixels of this type to real numbers, by each strategy.
    fn timed(
        self,
        options: &StrategiesOptions,
        size: usize,
        program: &StrategyProgram,
        how: &[Strategy],
    ) -> Result<Vec<StrategyTimes>> {
        let (record, extent) = (program.recorder(), (program.inputs, program.shape()(size)));
        let of_bytes = |bytes: &[Image<u8>]| record(&bytes.iter().map(Image::to_unit).collect::<Vec<_>>());
        match self {
            InputPixelType::Bytes => by_strategy::<u8>(options, how, extent, &of_bytes),
            InputPixelType::Reals => by_strategy::<f32>(options, how, extent, &record),
        }
    }
}

/// Page-locked memory of images of one extent, and of the results of programs that read them.
struct LockedImages<T: Pixel> {
    from: Vec<Pixels<T>>,
    to: Vec<Pixels<f32>>,
}

impl<T: Pixel> LockedImages<T> {
    fn new(session: &CoreSession, inputs: usize, shape: Shape) -> Result<LockedImages<T>> {
        let Shape { depth, height, width, .. } = shape;
        let mut from = Vec::new();
        for i in 0..inputs {
            let mut pixels = session.pixels_of::<T>(shape)?;
            let at = |z, y, x| ((z * 31 + y * 7 + x * (13 + 4 * i)) % 251) as f32;
            Image::<f32>::from_volume_fn(session, depth, height, width, at).convert::<T>().read_into(&mut pixels)?;
            from.push(pixels);
        }
        Ok(LockedImages { from, to: Vec::new() })
    }

    /// Runs a program over the first `inputs` images.
    fn run(
        &mut self,
        session: &CoreSession,
        inputs: usize,
        record: &dyn Fn(&[Image<T>]) -> Result<StrategyResults>,
    ) -> Result<()> {
        let from = &self.from[..inputs];
        let given: Vec<_> = from.iter().map(|pixels| Image::from_pixels(session, pixels.clone())).collect();
        let results = record(&given)?;
        for (i, result) in results.iter().enumerate() {
            // Reuses memory of the same extent.
            match self.to.iter().skip(i).position(|to| to.shape() == result.shape()) {
                Some(at) => self.to.swap(i, i + at),
                None => self.to.insert(i, session.pixels_of(result.shape())?),
            }
        }
        match (&results[..], &mut self.to[..]) {
            ([a], [at, ..]) => a.read_into(at),
            ([a, b], [at, bt, ..]) => session.read_into(((a, at), (b, bt))),
            ([a, b, c], [at, bt, ct, ..]) => session.read_into(((a, at), (b, bt), (c, ct))),
            _ => Err(Error::Config(format!("a program has one to three results, not {}", results.len()))),
        }
    }
}

fn by_strategy<T: Pixel>(
    options: &StrategiesOptions,
    how: &[Strategy],
    (inputs, shape): (usize, Shape),
    record: &dyn Fn(&[Image<T>]) -> Result<StrategyResults>,
) -> Result<Vec<StrategyTimes>> {
    let opened = how.iter().map(|strategy| strategy.open(&options.device)).collect::<Result<Vec<Session>>>()?;
    let sessions: Vec<&CoreSession> = opened.iter().map(|session| &**session).collect();
    let Some(&first) = sessions.first() else { return Ok(Vec::new()) };
    let mut places = LockedImages::new(first, inputs, shape)?;
    timed(options, &sessions, |session| places.run(session, inputs, record))
}

/// Sessions alternate, so that a change in the machine's speed affects all of them.
fn timed(
    options: &StrategiesOptions,
    sessions: &[&CoreSession],
    mut run: impl FnMut(&CoreSession) -> Result<()>,
) -> Result<Vec<StrategyTimes>> {
    for &session in sessions {
        run(session)?;
        run(session)?;
    }
    let predicted = |session: &CoreSession| session.stats().predicted + session.stats().recording;
    let before: Vec<Duration> = sessions.iter().map(|&session| predicted(session)).collect();
    let until = Instant::now() + Duration::from_secs_f64(options.budget * sessions.len() as f64);
    let mut runs: Vec<Vec<f64>> = vec![Vec::new(); sessions.len()];
    while runs[0].is_empty() || (runs[0].len() < options.runs && Instant::now() < until) {
        for (&session, runs) in sessions.iter().zip(&mut runs) {
            let start = Instant::now();
            run(session)?;
            runs.push(start.elapsed().as_secs_f64() * 1e3);
        }
    }
    let told = |((mut runs, &session), before): ((Vec<f64>, &&CoreSession), Duration)| {
        runs.sort_by(f64::total_cmp);
        let predicted = (predicted(session) - before).as_secs_f64() * 1e3 / runs.len() as f64;
        StrategyTimes { runs, predicted }
    };
    Ok(runs.into_iter().zip(sessions).zip(before).map(told).collect())
}

/// The forced strategy with the same prediction as the automatic choice, which makes the same plan, and the median of
/// the runs of both.
fn chosen(times: &[StrategyTimes]) -> (Option<usize>, f64) {
    let Some((auto, forced)) = times.split_last() else { return (None, 0.0) };
    let same = forced.iter().position(|t| (t.predicted / auto.predicted - 1.0).abs() < 1e-6);
    let mut runs = auto.runs.clone();
    runs.extend(same.iter().flat_map(|i| &forced[*i].runs));
    runs.sort_by(f64::total_cmp);
    (same, StrategyTimes { runs, ..auto.clone() }.median())
}

/// Median relative error of predictions.
fn median(mut errors: Vec<f64>) -> f64 {
    errors.sort_by(f64::total_cmp);
    errors.get(errors.len() / 2).copied().unwrap_or(0.0)
}

/// Compares strategies with predictions.
fn strategies_of(options: &StrategiesOptions) -> Result<()> {
    let names = strategies(&options.shares);
    let mut table = String::from(
        "Measured / predicted ms, from page-locked memory to page-locked memory.\n\n| program | pixels | size |",
    );
    names.iter().for_each(|(name, _)| table.push_str(&format!(" {name} |")));
    table.push_str(" chosen | chosen / best |\n| --- | --- | --- |");
    table.push_str(&" --- |".repeat(names.len() + 2));
    table.push('\n');
    let mut values =
        String::from("program\tpixels\tsize\tstrategy\tmeasured_ms\tlow_ms\thigh_ms\tpredicted_ms\truns\n");
    let (mut errors, mut beside) = (Vec::new(), Vec::new());
    let how: Vec<Strategy> = names.iter().map(|(_, strategy)| *strategy).collect();
    for program in programs(options)? {
        let name = program.name;
        for &size in &options.size {
            for given in [InputPixelType::Reals, InputPixelType::Bytes] {
                let times = given.timed(options, size, program, &how)?;
                let mut row = format!("| {name} | {} | {size} |", given.name());
                for (time, (strategy, _)) in times.iter().zip(&names) {
                    let (measured, predicted) = (time.median(), time.predicted);
                    let _ = write!(row, " {measured:.3} / {predicted:.3} |");
                    errors.push((predicted / measured - 1.0).abs());
                    let (low, high, n) = (time.quantile(0.25), time.quantile(0.75), time.runs.len());
                    let _ = writeln!(
                        values,
                        "{name}\t{}\t{size}\t{strategy}\t{measured:.6}\t{low:.6}\t{high:.6}\t{predicted:.6}\t{n}",
                        given.name()
                    );
                }
                let (same, measured) = chosen(&times);
                let best = times.iter().map(StrategyTimes::median).fold(measured, f64::min);
                beside.push(measured / best);
                let what = same.map_or("other", |i| &names[i].0);
                let _ = write!(row, " {what} | {:.3} |", measured / best);
                println!("{row}");
                table.push_str(&row);
                table.push('\n');
            }
        }
    }
    let within = beside.iter().filter(|ratio| **ratio <= 1.03).count();
    let summary = format!(
        "\nMedian error of predictions {:.1} %; the automatic choice is within 3 % of the fastest in {within} of {} rows.\n",
        100.0 * median(errors),
        beside.len()
    );
    println!("{summary}");
    table.push_str(&summary);
    write(options, table, values)
}

/// Writes the files.
fn write(options: &StrategiesOptions, table: String, values: String) -> Result<()> {
    for (path, text) in [(&options.markdown, table), (&options.tsv, values)] {
        if let Some(path) = path {
            std::fs::write(path, text).map_err(|e| Error::write(path, e))?;
        }
    }
    Ok(())
}

/// Times of a program and of its queues.
struct QueueRow {
    name: String,
    /// Its operations, if it was drawn at random.
    steps: String,
    inputs: usize,
    shape: fn(usize) -> Shape,
    record: Box<ProgramRecorder<f32>>,
}

impl QueueRow {
    fn named(program: &StrategyProgram) -> QueueRow {
        let &StrategyProgram { name, inputs, .. } = program;
        QueueRow {
            name: name.to_owned(),
            steps: String::new(),
            inputs,
            shape: program.shape(),
            record: program.recorder(),
        }
    }

    fn drawn(number: u64) -> QueueRow {
        let drawn = RandomProgram::new(number);
        QueueRow {
            name: format!("random {number}"),
            steps: drawn.to_string(),
            inputs: drawn.inputs(),
            shape: image,
            record: Box::new(move |given| Ok(vec![drawn.record(given)])),
        }
    }
}

/// The share of ratios that are close to 1, and the largest ratio.
fn distribution(ratios: &[f64]) -> String {
    let mut sorted = ratios.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(worst) = sorted.last() else { return "none".to_owned() };
    let within = |most: f64| 100.0 * sorted.iter().filter(|ratio| **ratio <= most).count() as f64 / sorted.len() as f64;
    let [close, near, far] = [1.05, 1.1, 1.25].map(within);
    format!(
        "{close:.1} % within 1.05, {near:.1} % within 1.10, {far:.1} % within 1.25; median {:.3}, worst {worst:.3}",
        sorted[sorted.len() / 2]
    )
}

/// Compares programs with the work of their queues. Sessions that measure times do not trace, other sessions measure
/// queues: timing a launch takes some microseconds, and timed launches are not submitted together. Each program has its
/// own sessions, and their plans end with them.
fn compare_with_queues(options: &StrategiesOptions, random: u64) -> Result<()> {
    let open = |trace| Session::builder().device(&options.device).eager(true).trace(trace).build();
    let (plain, tracing) = (open(false)?, open(true)?);
    let on_gpu = tracing.device().is_some_and(|device| !device.memory().is_unified());
    let clock = if on_gpu { 1e3 * clock(&tracing)? } else { 0.0 };
    let named = programs(options)?.into_iter().map(QueueRow::named);
    let rows: Vec<QueueRow> = named.chain((0..random).map(|i| QueueRow::drawn(options.seed.wrapping_add(i)))).collect();
    let most = rows.iter().map(|row| row.inputs).max().unwrap_or_default();
    let mut table = format!(
        "Medians from page-locked memory to page-locked memory, and ms of each queue in a run; of kernels without the \
         {:.1} us that the clock adds to each. The last column compares with the busiest queue, the first upload and \
         the last download.\n\n\
         | program | size | ms | predicted | upload | kernels | download | busiest | ms / busiest | ms / with ends |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
        1e3 * clock
    );
    print!("{table}");
    let mut values = String::from(
        "program\tsize\tinputs\tmeasured_ms\tlow_ms\thigh_ms\truns\tpredicted_ms\tupload_ms\tuploads\t\
         kernels_ms\tkernels\tdownload_ms\tdownloads\tfirst_upload_ms\tlast_download_ms\tbusiest\tratio\tratio_with_ends\tsteps\n",
    );
    let mut summary = String::new();
    for &size in &options.size {
        let mut places: HashMap<Shape, LockedImages<f32>> = HashMap::new();
        let (mut ratios, mut ends) = (Vec::new(), Vec::new());
        for QueueRow { name, steps, inputs, shape, record } in &rows {
            let places = match places.entry(shape(size)) {
                Entry::Occupied(places) => places.into_mut(),
                Entry::Vacant(place) => {
                    let new = LockedImages::new(&plain, most, *place.key())?;
                    place.insert(new)
                }
            };
            let mut run = |session: &CoreSession| places.run(session, *inputs, record);
            let session = plain.alone()?;
            let times = timed(options, &[&session], &mut run)?;
            drop(session);
            let session = tracing.alone()?;
            let queues = RunQueues::of(&session, clock, || run(&session))?;
            let ([upload, kernels, download], busiest) = (queues.0, queues.busiest());
            let (measured, predicted, n) = (times[0].median(), times[0].predicted, times[0].runs.len());
            let (low, high) = (times[0].quantile(0.25), times[0].quantile(0.75));
            let (ratio, with_ends) = (measured / queues.most(), measured / queues.least());
            let row = format!(
                "| {name} | {size} | {measured:.3} | {predicted:.3} | {:.3} | {:.3} | {:.3} | {busiest} | {ratio:.3} | {with_ends:.3} |",
                upload.busy, kernels.busy, download.busy
            );
            println!("{row}");
            table.push_str(&row);
            table.push('\n');
            let _ = write!(values, "{name}\t{size}\t{inputs}\t{measured:.6}\t{low:.6}\t{high:.6}\t{n}\t{predicted:.6}");
            queues.0.iter().for_each(|work| values.push_str(&format!("\t{:.6}\t{}", work.busy, work.count)));
            let _ = write!(values, "\t{:.6}\t{:.6}", upload.first, download.last);
            let _ = writeln!(values, "\t{busiest}\t{ratio:.6}\t{with_ends:.6}\t{steps}");
            ratios.push(ratio);
            ends.push(with_ends);
        }
        let worst = ratios.iter().zip(&rows).max_by(|(a, _), (b, _)| a.total_cmp(b));
        let worst = worst.map_or(String::new(), |(ratio, row)| format!("{ratio:.3}, {}: {}", row.name, row.steps));
        let _ = write!(
            summary,
            "\n{} programs at {size}. Of the busiest queue: {}. With the ends: {}.\nWorst: {worst}\n",
            ratios.len(),
            distribution(&ratios),
            distribution(&ends)
        );
    }
    println!("{summary}");
    table.push_str(&summary);
    write(options, table, values)
}

fn run(options: &StrategiesOptions) -> Result<()> {
    match options.random {
        Some(random) => compare_with_queues(options, random),
        None => strategies_of(options),
    }
}

fn main() -> ExitCode {
    horus_apps::exit_code(run(&StrategiesOptions::parse()))
}
