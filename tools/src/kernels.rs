//! The kernels that runs of these programs launch on a GPU, found without a GPU: each program runs on a device that
//! records its launches and computes nothing.
//!
//! `horus-kernels` compiles them for the package that ships with a release; the example `cold` prints their cost.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use horus::prelude::*;
use horus_core::device::Geometry;
use horus_core::session::Session;
use horus_cuda::codegen::{Generated, KernelLimits};
use horus_cuda::pieces;
use horus_cuda::recorder::{RecordedLaunch, RecordingDevice};

use horus_apps::batch::BatchJob;
use horus_apps::caller::Caller;
use horus_apps::command;
use horus_apps::detectors::{Detector, conv2d, convrot, convuv};
use horus_apps::job;

/// The reason for a failure.
pub type BoxedError = Box<dyn std::error::Error + Send + Sync>;

/// The detectors, by the names of their programs.
pub const DETECTORS: [(&str, Detector); 3] = [("convrot", convrot), ("conv2d", conv2d), ("convuv", convuv)];

/// Pixel formats of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PixelFormat {
    /// One channel of 8 bits.
    Grey8,
    /// One channel of 16 bits.
    Grey16,
    /// Three channels of 8 bits.
    Colour8,
    /// Three channels of 16 bits.
    Colour16,
    /// One channel of 32-bit floats.
    Float,
}

impl PixelFormat {
    /// All formats.
    pub const ALL: [PixelFormat; 5] =
        [PixelFormat::Grey8, PixelFormat::Grey16, PixelFormat::Colour8, PixelFormat::Colour16, PixelFormat::Float];

    /// Writes a picture of zeros to a file of this name, with the extension of its format.
    fn write(self, path: &Path, width: usize, height: usize) -> std::io::Result<PathBuf> {
        let (magic, extension, most, bytes) = match self {
            PixelFormat::Grey8 => ("P5", "pgm", 255, 1),
            PixelFormat::Grey16 => ("P5", "pgm", 65535, 2),
            PixelFormat::Colour8 => ("P6", "ppm", 255, 3),
            PixelFormat::Colour16 => ("P6", "ppm", 65535, 6),
            PixelFormat::Float => ("", "npy", 0, 4),
        };
        let mut file = format!("{magic}\n{width} {height}\n{most}\n").into_bytes();
        if self == PixelFormat::Float {
            let about = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({height}, {width}), }}");
            file = b"\x93NUMPY\x01\0\x76\0".to_vec();
            file.extend(format!("{about:<117}\n").bytes());
        }
        file.resize(file.len() + width * height * bytes, 0);
        let path = path.with_extension(extension);
        std::fs::write(&path, file)?;
        Ok(path)
    }
}

/// A run of a program, from file to file.
#[derive(Clone, Debug)]
pub struct FileRun {
    /// The name of a detector, or `horus`.
    pub program: &'static str,
    /// The chain of operations of `horus`.
    pub chain: String,
    /// The format of its input.
    pub samples: PixelFormat,
    /// Width and height in pixels.
    pub size: (usize, usize),
    /// The extension of its output.
    pub output: &'static str,
    /// `--depth`.
    pub depth: &'static str,
}

impl FileRun {
    /// A detector's default run from an 8-bit picture to a PNG.
    pub fn of(program: &'static str, size: (usize, usize)) -> FileRun {
        FileRun { program, chain: String::new(), samples: PixelFormat::Grey8, size, output: "png", depth: "8" }
    }

    /// The launches of the run.
    ///
    /// # Errors
    /// If the program fails, or a file cannot be written.
    pub fn launches(&self) -> Result<Vec<RecordedLaunch>, BoxedError> {
        let folder = tempfile::tempdir()?;
        let input = self.samples.write(&folder.path().join("in"), self.size.0, self.size.1)?;
        let output = folder.path().join("out").with_extension(self.output);
        let mut words: Vec<OsString> = [self.program, "--depth", self.depth].map(OsString::from).to_vec();
        words.extend([input.clone(), output.clone()].map(PathBuf::into_os_string));
        words.extend(self.chain.split(' ').filter(|w| !w.is_empty()).map(OsString::from));
        let detector = DETECTORS.iter().find(|(name, _)| *name == self.program);
        let job = match detector {
            Some((name, detector)) => job(name, "", *detector, words)?,
            None => command::job_of(words)?,
        };
        let device = RecordingDevice::new()?;
        let launches = device.launches();
        let session = Session::on(Box::new(device)).build()?;
        self.run(&job, &session, &input, &output).map_err(|e| format!("{} {}: {e}", self.program, self.chain))?;
        Ok(launches.get())
    }

    fn run(&self, job: &BatchJob, session: &Session, input: &Path, output: &Path) -> Result<()> {
        let picture = AnyImage::open_with(session, input, &job.options.open_options())?;
        match job.work {
            horus_apps::batch::RunFiles::Numbers { .. } => session.get_all((job.numbers)(&picture)?).map(drop),
            _ => (job.operation)(&picture)?.save(&Caller::process(), output, None, &job.save_options()).map(drop),
        }
    }
}

/// Sizes that together lead to every kernel: kernels depend on the alignment to 16 bytes of rows of 1-, 2-, 4- and
/// 8-byte elements.
const SIZES: [(usize, usize); 5] = [(256, 256), (312, 200), (300, 200), (301, 200), (302, 200)];

/// Runs whose machine code is shipped: the detectors' default runs on pictures of any type and size
/// to files of any type, and the examples of the operations of `horus` on 8-bit pictures.
pub fn shipped() -> Vec<FileRun> {
    let mut runs = Vec::new();
    for (program, _) in DETECTORS {
        for samples in PixelFormat::ALL {
            for size in SIZES {
                for (output, depth) in [("png", "8"), ("png", "16"), ("npy", "8"), ("tif", "32")] {
                    runs.push(FileRun { samples, output, depth, ..FileRun::of(program, size) });
                }
            }
        }
    }
    let detectors = DETECTORS.map(|(name, _)| (name, name.to_owned()));
    let examples = command::examples().filter(|(name, _)| DETECTORS.iter().all(|(detector, _)| name != detector));
    for (_, chain) in examples.chain(detectors) {
        for samples in [PixelFormat::Grey8, PixelFormat::Colour8] {
            for size in [SIZES[0], SIZES[3]] {
                runs.push(FileRun { chain: chain.clone(), samples, depth: "auto", ..FileRun::of("horus", size) });
            }
        }
    }
    runs
}

/// The launches of each run. An operation of `horus` may take only grey or only coloured pictures, but must take one of
/// them.
///
/// # Errors
/// If a detector fails, or a chain of operations fails with every picture.
pub fn recorded(runs: &[FileRun]) -> Result<Vec<Vec<RecordedLaunch>>, BoxedError> {
    let (mut launches, mut taken, mut refused) = (Vec::new(), BTreeSet::new(), BTreeMap::new());
    for run in runs {
        match run.launches() {
            Ok(some) => {
                taken.insert(&run.chain);
                launches.push(some);
            }
            Err(e) if run.chain.is_empty() => return Err(e),
            Err(e) => drop(refused.insert(&run.chain, e)),
        }
    }
    match refused.into_iter().find(|(chain, _)| !taken.contains(chain)) {
        Some((_, e)) => Err(e),
        None => Ok(launches),
    }
}

/// A kernel for large images, and its number of launches.
#[derive(Clone, Debug)]
pub struct CountedKernel {
    /// One of the programs with this source.
    pub program: Generated,
    /// The name of the kernel.
    pub name: String,
    /// Number of launches.
    pub times: usize,
}

/// The kernels of launches of large images on a GPU of sm_`arch` with these limits. Each source occurs once.
///
/// # Errors
/// If one cannot be generated.
pub fn distinct(
    launches: &[RecordedLaunch],
    arch: u32,
    limits: KernelLimits,
) -> Result<BTreeMap<String, CountedKernel>, BoxedError> {
    let mut found: BTreeMap<String, CountedKernel> = BTreeMap::new();
    for launch in launches {
        let Some(program) = launch.programs(arch, limits)?.into_iter().next() else { continue };
        let new = || CountedKernel { name: launch.kernel.name(), times: 0, program: program.clone() };
        found.entry(program.source.clone()).or_insert_with(new).times += 1;
    }
    Ok(found)
}

/// The kernels of runs on images of all sizes on a GPU of sm_`arch` with these limits, and the kernel that copies. Each
/// source occurs once.
///
/// # Errors
/// If a run fails.
pub fn sources(
    runs: &[Vec<RecordedLaunch>],
    arch: u32,
    limits: KernelLimits,
) -> Result<BTreeMap<String, String>, BoxedError> {
    let mut found = BTreeMap::from([(pieces::program(&[]).source, "copies".to_owned())]);
    // Runs that differ in their files have the same launches.
    let mut known: HashMap<(String, Geometry), Vec<&RecordedLaunch>> = HashMap::new();
    for launch in runs.iter().flatten() {
        let alike = known.entry((launch.kernel.name(), launch.output)).or_default();
        if alike.contains(&launch) {
            continue;
        }
        alike.push(launch);
        let programs = launch.programs(arch, limits)?;
        found.extend(programs.into_iter().map(|program| (program.source, launch.kernel.name())));
    }
    Ok(found)
}
