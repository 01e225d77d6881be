//! Linear filters of all sizes, by each algorithm: measured and predicted times, and the chosen algorithm (thesis,
//! chapter 3).

use std::fmt;
use std::time::Instant;

use horus::prelude::*;
use horus_core::device::{Device, Geometry, Launch, LaunchInput, Memory, PreparedLaunch};
use horus_core::dispatch;
use horus_core::dtype::{Conversion, DType};
use horus_core::error::DeviceError;
use horus_core::filters::tolerance::{Algorithm, algorithm};
use horus_core::host::buffer::HostBuffer;
use horus_core::ir::kernel::{FilterSource, ImageExtent, Instr, InstrOp, Kernel, Leaf, LeafOp, MapKernel, Val};
use horus_core::machine::{MachineProfile, here};
use horus_core::ops::fourier::{EXTENTS, Fourier, step};
use horus_core::shape::{Shape, Window};
use serde_json::{Value, json};

/// The filters, images and runs of a sweep.
pub struct Sweep {
    /// Rows and columns of the image.
    pub size: usize,
    /// Type of its pixels. Integers are filtered by whole taps.
    pub dtype: DType,
    /// Tolerance of algorithms other than the direct one.
    pub within: f64,
    /// Rows of the filters, and columns; 1 for filters along one axis.
    pub sides: Vec<usize>,
    /// Timed runs of each algorithm.
    pub runs: usize,
}

/// An algorithm of a filter.
struct FilterAlgorithm {
    /// Its name: `direct`, or rows and columns of tiles that are transformed.
    name: String,
    /// The shortest measured time, in seconds.
    measured: f64,
    /// Predicted seconds.
    predicted: f64,
}

/// A filter.
struct SweepRow {
    /// Rows and columns of taps.
    taps: [usize; 2],
    /// All algorithms, the direct one first.
    ways: Vec<FilterAlgorithm>,
    /// The chosen algorithm.
    chosen: usize,
}

impl SweepRow {
    fn fastest(&self) -> usize {
        let least = self.ways.iter().enumerate().min_by(|(_, a), (_, b)| a.measured.total_cmp(&b.measured));
        least.map_or(0, |(i, _)| i)
    }

    /// Time of the chosen algorithm divided by the time of the fastest.
    fn lost(&self) -> f64 {
        self.ways[self.chosen].measured / self.ways[self.fastest()].measured
    }

    /// Factor between predicted and measured time of an algorithm.
    fn error(way: &FilterAlgorithm) -> f64 {
        (way.measured / way.predicted).max(way.predicted / way.measured)
    }
}

/// The results of a sweep.
pub struct SweepResults {
    /// The filters.
    rows: Vec<SweepRow>,
    /// The device.
    device: String,
    size: usize,
    dtype: DType,
    within: f64,
}

/// A launch that is timed.
struct SweepLaunch {
    name: String,
    kernel: Kernel,
    inputs: Vec<Geometry>,
    /// Index of its input image: pixels as they are, or as floats.
    image: usize,
    measured: f64,
    predicted: f64,
}

/// Fewest seconds of launches that are timed together, so that waiting for them is negligible.
const TOGETHER: f64 = 2e-3;

impl Sweep {
    /// Times all filters on the session's device.
    ///
    /// # Errors
    /// Errors of the device; [`Error::Config`] without one.
    pub fn run(&self, session: &Session) -> Result<SweepResults> {
        let Some(device) = session.device() else { return Err(Error::Config("the session has no device".into())) };
        let about = device.names().name;
        let profile = here::profile(device)?;
        let failed = |source| Error::Device { op: "a sweep of filters".into(), device: about.clone(), source };
        let rows = self.rows(device, &profile).map_err(failed)?;
        Ok(SweepResults { rows, device: about.clone(), size: self.size, dtype: self.dtype, within: self.within })
    }

    fn rows(&self, device: &dyn Device, profile: &MachineProfile) -> std::result::Result<Vec<SweepRow>, DeviceError> {
        let shape = Shape::new(self.size, self.size, 1);
        let (linear, whole) = (self.dtype.linear(), Window::whole(self.size));
        let geometry = |dtype| Geometry { shape, dtype, window: whole };
        let images = [image(device, geometry(self.dtype))?, image(device, geometry(linear))?];
        let mut output = device.allocate(geometry(linear).bytes())?;
        let pairs = self.sides.iter().flat_map(|h| self.sides.iter().map(move |w| [*h, *w])).filter(|t| *t != [1, 1]);
        let mut rows = Vec::new();
        for taps in pairs {
            let (mut jobs, chosen) = self.jobs(taps, shape);
            for job in &mut jobs {
                let extents: Vec<ImageExtent> = job.inputs.iter().map(|g| (g.shape, g.dtype)).collect();
                job.predicted = profile.launch(&job.kernel.work(&extents, (shape, linear), whole)).seconds;
                let SweepLaunch { kernel, inputs, .. } = job;
                let ahead = PreparedLaunch { kernel, inputs: inputs.clone(), output: geometry(linear), rows: whole };
                device.prepare(&[ahead])?;
            }
            let mut several = |job: &SweepLaunch, n: usize| -> std::result::Result<f64, DeviceError> {
                let inputs = [LaunchInput { memory: &images[job.image], geometry: job.inputs[0] }];
                let start = Instant::now();
                for _ in 0..n {
                    let (output, geometry) = (&mut output, geometry(linear));
                    let (kernel, inputs) = (&job.kernel, &inputs);
                    device.launch(Launch {
                        kernel,
                        inputs,
                        output,
                        additional_outputs: &mut [],
                        geometry,
                        rows: whole,
                    })?;
                }
                device.synchronize()?;
                Ok(start.elapsed().as_secs_f64() / n as f64)
            };
            let mut counts = Vec::new();
            for job in &jobs {
                several(job, 1)?;
                counts.push((TOGETHER / several(job, 1)?.max(1e-9)).ceil().clamp(1.0, 256.0) as usize);
            }
            // Alternating, so that a busy machine disturbs all in the same way.
            for _ in 0..self.runs.max(1) {
                for (job, n) in jobs.iter_mut().zip(&counts) {
                    job.measured = job.measured.min(several(job, *n)?);
                }
            }
            let way =
                |job: SweepLaunch| FilterAlgorithm { name: job.name, measured: job.measured, predicted: job.predicted };
            rows.push(SweepRow { taps, ways: jobs.into_iter().map(way).collect(), chosen });
        }
        Ok(rows)
    }

    /// The algorithms of a filter of random taps, which has no low rank, and the index of the chosen one.
    fn jobs(&self, [height, width]: [usize; 2], shape: Shape) -> (Vec<SweepLaunch>, usize) {
        let mut state = (height * 1009 + width) as u64;
        let mut tap = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let unit = (state >> 40) as f64 / 16_777_216.0 - 0.4;
            if self.dtype.is_float() { unit } else { (unit * 20.0).round() }
        };
        let filter = Filter::dense(height, width, (0..height * width).map(|_| tap()).collect::<Vec<_>>());
        let (border, linear) = (Border::default(), self.dtype.linear());
        let geometry = |dtype| Geometry { shape, dtype, window: Window::whole(shape.height) };
        let job = |name: String, kernel: Kernel, image: usize, dtype: DType| {
            let inputs = vec![geometry(dtype)];
            SweepLaunch { name, kernel, inputs, image, measured: f64::INFINITY, predicted: 0.0 }
        };
        let mut jobs = vec![job("direct".into(), direct(&filter, border, self.dtype), 0, self.dtype)];
        let chosen = match algorithm(&filter, border, self.dtype, shape, self.within).0 {
            Algorithm::Tiles(tiles) => Some(tiles.tile),
            Algorithm::Direct(_) | Algorithm::Sum(_) => None,
        };
        let largest = |tile: [usize; 2]| step(tile, filter.reach()).into_iter().all(|n| n > 0);
        let square = (EXTENTS[0].ilog2()..=EXTENTS[1].ilog2()).map(|k| [1 << k; 2]).filter(|t| t[0] >= 64);
        for tile in chosen.into_iter().chain(square.filter(|t| Some(*t) != chosen)).filter(|t| largest(*t)) {
            let how = Fourier::of([filter.clone()], border, tile);
            jobs.push(job(format!("{}x{}", tile[0], tile[1]), Kernel::from(how), 1, linear));
        }
        (jobs, usize::from(chosen.is_some()))
    }
}

/// A direct filter of an image, which is converted while it is read.
fn direct(filter: &Filter, border: Border, dtype: DType) -> Kernel {
    let linear = dtype.linear();
    let (chains, source) = match dtype == linear {
        true => (Vec::new(), FilterSource::Input(0)),
        false => {
            let op = InstrOp::Convert(Conversion::Nearest);
            let code = vec![Instr { op, operand: dtype, result: linear, args: vec![Val::Leaf(0)] }];
            let leaves = vec![Leaf { op: LeafOp::Load(0), dtype }];
            let chain = MapKernel { inputs: 1, leaves, code, result: Some(Val::Instr(0)), ..MapKernel::default() };
            (vec![chain], FilterSource::Chain(0))
        }
    };
    let leaves = vec![Leaf { op: LeafOp::Correlate(source, filter.clone(), border), dtype: linear }];
    Kernel::Map(MapKernel { inputs: 1, chains, leaves, result: Some(Val::Leaf(0)), ..MapKernel::default() })
}

/// Reproducible noise; integers over their whole range.
fn image(device: &dyn Device, geometry: Geometry) -> std::result::Result<Memory, DeviceError> {
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut unit = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (state >> 40) as f64 / 16_777_216.0
    };
    let pixels = dispatch!(geometry.dtype, T => {
        let most = if geometry.dtype.is_float() { 1.0 } else { T::HIGHEST.to_f64() };
        HostBuffer::from_slice(&(0..geometry.shape.len()).map(|_| T::from_f64(unit() * most)).collect::<Vec<T>>())
    });
    let mut memory = device.allocate(pixels.len())?;
    device.write(pixels.bytes(), &mut memory, 0)?;
    Ok(memory)
}

impl SweepResults {
    /// Number of filters whose chosen algorithm takes at most 1.05 times as long as the fastest.
    fn within_5_percent(&self) -> usize {
        self.rows.iter().filter(|row| row.lost() <= 1.05).count()
    }

    /// All measurements.
    pub fn json(&self) -> Value {
        let way =
            |way: &FilterAlgorithm| json!({ "name": way.name, "measured": way.measured, "predicted": way.predicted });
        let row = |row: &SweepRow| {
            let ways: Vec<Value> = row.ways.iter().map(way).collect();
            json!({ "rows": row.taps[0], "columns": row.taps[1], "chosen": row.ways[row.chosen].name, "ways": ways })
        };
        let rows: Vec<Value> = self.rows.iter().map(row).collect();
        json!({
            "device": self.device,
            "size": self.size,
            "type": self.dtype.to_string(),
            "within": self.within,
            "filters": rows,
        })
    }
}

impl fmt::Display for SweepResults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}, {n} x {n} pixels of {}, within {:e}", self.device, self.dtype, self.within, n = self.size)?;
        writeln!(
            f,
            "{:>9} {:>9} {:>9} {:>9} {:>9} {:>8} {:>8} {:>6}",
            "taps", "direct ms", "predicted", "tiles ms", "predicted", "chosen", "fastest", "lost"
        )?;
        for row in &self.rows {
            let tiles = row.ways.iter().skip(1).min_by(|a, b| a.measured.total_cmp(&b.measured));
            let ms = |seconds: f64| format!("{:9.4}", 1e3 * seconds);
            let [measured, predicted] =
                tiles.map_or([const { String::new() }; 2], |way| [ms(way.measured), ms(way.predicted)]);
            let (direct, chosen, fastest) = (&row.ways[0], &row.ways[row.chosen].name, &row.ways[row.fastest()].name);
            writeln!(
                f,
                "{:>9} {} {} {measured:>9} {predicted:>9} {chosen:>8} {fastest:>8} {:6.2}",
                format!("{}x{}", row.taps[0], row.taps[1]),
                ms(direct.measured),
                ms(direct.predicted),
                row.lost()
            )?;
        }
        let all = self.rows.len();
        let share = |n: usize, of: usize| 100.0 * n as f64 / of.max(1) as f64;
        let near = self.within_5_percent();
        let worst = self.rows.iter().map(SweepRow::lost).fold(1.0, f64::max);
        writeln!(
            f,
            "chosen within 5 % of the fastest: {near} of {all} filters, {:.0} %; at worst {worst:.2}",
            share(near, all)
        )?;
        for (name, range) in [("direct", 0..1), ("tiles", 1..usize::MAX)] {
            let of = |row: &SweepRow| {
                row.ways
                    .iter()
                    .enumerate()
                    .filter(|(i, _)| range.contains(i))
                    .map(|(_, w)| SweepRow::error(w))
                    .collect::<Vec<_>>()
            };
            let mut errors: Vec<f64> = self.rows.iter().flat_map(of).collect();
            errors.sort_by(f64::total_cmp);
            if let (Some(median), Some(most)) = (errors.get(errors.len() / 2), errors.last()) {
                let good = errors.iter().filter(|e| **e <= 1.25).count();
                let share = share(good, errors.len());
                writeln!(
                    f,
                    "predicted, {name}: {share:.0} % within a factor of 1.25, median {median:.2}, at worst {most:.2}"
                )?;
            }
        }
        Ok(())
    }
}
