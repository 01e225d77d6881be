//! Times programs over volumes, on the device and from arrays to arrays.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use horus::prelude::*;
use horus_models::ocean::{Basin, Equation, OceanField, SeaWater};
use horus_tools::bench_lines::Arrays;
use serde_json::json;

/// Times programs over volumes.
///
/// Bytes are those of all fields that a program reads and writes.
#[derive(Parser)]
struct FieldBenchOptions {
    /// Programs, comma separated: state, density, mixing, copy; or `all`
    #[arg(long, default_value = "all", value_delimiter = ',')]
    op: Vec<String>,
    /// Levels, rows and columns
    #[arg(long, default_value = "42x1024x1024", value_parser = extent)]
    size: [usize; 3],
    /// Optimisation: naive, lazy, fused; several are measured in turn
    #[arg(long, default_value = "fused", value_delimiter = ',')]
    mode: Vec<Mode>,
    /// Also measure from pixels on the host to pixels on the host; several kinds are measured in
    /// turn
    #[arg(long, value_delimiter = ',')]
    from_host: Vec<Arrays>,
    /// Device: auto, cpu, cuda, cuda:N
    #[arg(long, default_value = "cuda")]
    device: String,
    /// Threads (by default as many as a session takes)
    #[arg(long)]
    threads: Option<usize>,
    /// Timed runs, after one that is not counted
    #[arg(long, default_value_t = 7)]
    runs: usize,
    /// Write the results to this file
    #[arg(long)]
    json: Option<PathBuf>,
}

fn extent(text: &str) -> std::result::Result<[usize; 3], String> {
    let numbers: std::result::Result<Vec<usize>, _> = text.split('x').map(str::parse).collect();
    let three = numbers.ok().and_then(|n| <[usize; 3]>::try_from(n).ok());
    three.filter(|n| !n.contains(&0)).ok_or_else(|| "three numbers like 42x1024x1024".into())
}

/// A program: from tracers to fields.
struct FieldProgram {
    name: &'static str,
    /// Number of fields read.
    read: usize,
    made: usize,
    record: fn(&SeaWater, &[OceanField; 2]) -> Vec<OceanField>,
}

const ROWS: [FieldProgram; 4] = [
    // The cost of streaming: one field read, one written.
    FieldProgram { name: "copy", read: 1, made: 1, record: |_, [t, _]| vec![t + 0.5] },
    FieldProgram { name: "density", read: 2, made: 1, record: |water, [t, s]| vec![water.density(t, s)] },
    FieldProgram {
        name: "state",
        read: 2,
        made: 3,
        record: |water, [t, s]| {
            let d = water.state(t, s);
            vec![d.density, d.by_temperature, d.by_salinity]
        },
    },
    FieldProgram {
        name: "mixing",
        read: 2,
        made: 4,
        record: |water, [t, s]| {
            let (none, buoyancy) = (Image::constant(t.session(), (1, 1), 0.0), water.buoyancy(t, s));
            let [of_heat, of_salt] = water.double_diffusion(t, s, [&none, &none]);
            vec![buoyancy.from_surface, buoyancy.from_below, of_heat, of_salt]
        },
    },
];

struct FieldBench<'a> {
    options: &'a FieldBenchOptions,
    session: Session,
    water: SeaWater,
    shape: Shape,
    /// Temperatures that fall with depth, and salinities.
    tracers: [Vec<f64>; 2],
}

impl<'a> FieldBench<'a> {
    fn new(options: &'a FieldBenchOptions, session: Session) -> Result<FieldBench<'a>> {
        let [depth, height, width] = options.size;
        let depths: Vec<f64> = (0..depth).map(|z| 5.0 + 100.0 * z as f64).collect();
        let basin = Basin::new(&session, &depths, &Image::constant(&session, (1, 1), depth as f64))?;
        let water = SeaWater::new(&basin, Equation::Mwjf)?;
        let wave: Vec<f64> = (0..height.max(width)).map(|i| (i as f64 / 37.0).sin()).collect();
        let field = |level: fn(f64) -> f64, change: f64| {
            let levels = (0..depth).map(|z| level(z as f64 / depth as f64));
            let rows = levels.flat_map(|level| wave[..height].iter().map(move |w| (level, w * change)));
            rows.flat_map(|(level, change)| wave[..width].iter().map(move |w| level + change * w)).collect()
        };
        let tracers = [field(|z| 2.0 + 20.0 * (-4.0 * z).exp(), 1.0), field(|z| 34.5 + 0.5 * z, 0.4)];
        let shape = Shape { depth, ..Shape::new(height, width, 1) };
        Ok(FieldBench { options, session, water, shape, tracers })
    }

    fn given(&self) -> [OceanField; 2] {
        let Shape { depth, height, width, .. } = self.shape;
        self.tracers.each_ref().map(|f| Image::from_slice(&self.session, (depth, height, width), f))
    }

    /// Median seconds of the runs after the first, and the launches of each.
    fn median(&self, mut run: impl FnMut() -> Result<()>) -> Result<(f64, usize)> {
        run()?;
        let before = self.session.stats().made.launches;
        let mut times = Vec::new();
        for _ in 0..self.options.runs.max(1) {
            let start = Instant::now();
            run()?;
            times.push(start.elapsed().as_secs_f64());
        }
        times.sort_by(f64::total_cmp);
        Ok((times[times.len() / 2], (self.session.stats().made.launches - before) / times.len()))
    }

    fn on_device(&self, row: &FieldProgram) -> Result<(f64, usize)> {
        // Computed, so that the fields are on the device.
        let tracers = self.given().map(|f| f + 0.0);
        self.session.evaluate()?;
        self.median(|| {
            let _kept = (row.record)(&self.water, &tracers);
            self.session.evaluate()
        })
    }

    fn between_arrays(&self, row: &FieldProgram, arrays: Arrays) -> Result<(f64, usize)> {
        let (session, shape) = (&self.session, self.shape);
        let pixels = |_| session.pixels_of::<f64>(shape);
        if arrays == Arrays::Pixels {
            let mut from = [pixels(0)?, pixels(1)?];
            from.iter_mut().zip(&self.tracers).for_each(|(pixels, tracer)| pixels.copy_from_slice(tracer));
            let mut to = (0..row.made).map(pixels).collect::<Result<Vec<_>>>()?;
            return self.median(|| {
                let fields = from.each_ref().map(|pixels| Image::from_pixels(session, pixels.clone()));
                let results = (row.record)(&self.water, &fields);
                drop(fields);
                session.read_into(results.iter().zip(&mut to).collect::<Vec<_>>())
            });
        }
        let mut kept = vec![vec![0.0; shape.len()]; if arrays == Arrays::Kept { row.made } else { 0 }];
        self.median(|| {
            let results = (row.record)(&self.water, &self.given());
            if arrays == Arrays::Kept {
                return session.read_into(results.iter().zip(&mut kept).collect::<Vec<_>>());
            }
            session.evaluate()?;
            results.iter().try_for_each(|result| result.to_vec().map(|pixels| drop(std::hint::black_box(pixels))))
        })
    }
}

fn run(options: &FieldBenchOptions) -> Result<()> {
    if let Some(op) = options.op.iter().find(|op| *op != "all" && ROWS.iter().all(|row| row.name != **op)) {
        return Err(Error::Config(format!("program {op:?} is not known")));
    }
    let [depth, height, width] = options.size;
    let mut lines = Vec::new();
    for mode in &options.mode {
        let mut builder = Session::builder().device(&options.device).eager(true).mode(*mode);
        if let Some(threads) = options.threads {
            builder = builder.threads(threads);
        }
        let session = builder.build()?;
        let first = session.rank() == 0;
        if first {
            println!("{}, {} ranks, {depth}x{height}x{width} f64, {mode:?}", session.device_name(), session.ranks());
        }
        let bench = FieldBench::new(options, session)?;
        for row in ROWS.iter().filter(|row| options.op.iter().any(|op| op == "all" || op == row.name)) {
            for arrays in std::iter::once(None).chain(options.from_host.iter().copied().map(Some)) {
                let (seconds, launches) = match arrays {
                    None => bench.on_device(row)?,
                    Some(arrays) => bench.between_arrays(row, arrays)?,
                };
                let rate = ((row.read + row.made) * bench.shape.len() * 8) as f64 / seconds / 1e9;
                let place = arrays.map_or("device", Arrays::name);
                if first {
                    println!(
                        "{:<8} {place:<7} {:>10.3} ms {rate:>8.1} GB/s  {launches} kernels",
                        row.name,
                        seconds * 1e3
                    );
                }
                lines.push(json!({
                    "op": row.name, "arrays": place, "mode": format!("{mode:?}").to_lowercase(), "ms": seconds * 1e3,
                    "size": options.size, "launches": launches, "fields": { "read": row.read, "made": row.made },
                }));
            }
        }
    }
    if let Some(path) = options.json.as_ref().filter(|_| horus::ranks().is_ok_and(|ranks| ranks.rank() == 0)) {
        std::fs::write(path, json!({ "results": lines }).to_string()).map_err(|e| Error::write(path, e))?;
    }
    Ok(())
}

fn main() -> ExitCode {
    horus_apps::exit_code(run(&FieldBenchOptions::parse()))
}
