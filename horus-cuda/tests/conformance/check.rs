//! Runs the conformance cases on a GPU and compares every bit with the host's evaluation.
//!
//! `horus-cuda-check [FILTER] [--tunings N] [--part I/N]`: only cases whose name contains FILTER, or
//! one of several separated by commas; each as a large image is computed, as a small one is, and with
//! N tuning candidates; every N-th case from the I-th on, so that several processes share the work.
//! Exits with 1 on any difference.
//!
//! `horus-cuda-check --numbers`: every function of every `f32`, and the corpus of programs, against the hashes that are kept
//! (`tests/goldens`), through sessions on the GPU.

mod cases;
#[path = "../../../horus-core/tests/numbers/corpus.rs"]
mod corpus;
#[path = "../../../horus-core/tests/numbers/on_session.rs"]
mod on_session;
mod planes;

use std::process::ExitCode;

use horus_core::device::{Device, Launch, LaunchInput, Memory};
use horus_core::error::DeviceError;
use horus_core::host::StridedCopy;
use horus_core::session::Session;
use horus_core::shape::{Shape, Window};
use horus_cuda::CudaDevice;
use horus_cuda::tuning::{all_sizes, candidates};
use horus_testing::numbers::{FUNCTIONS, GoldenRow, Sample};
use horus_testing::reference::kernel::HostImage;

use cases::{ConformanceLaunch, cases};

fn upload(device: &CudaDevice, image: &HostImage) -> Result<Memory, DeviceError> {
    let mut memory = device.allocate(image.bytes.len())?;
    device.write(&image.bytes, &mut memory, 0)?;
    Ok(memory)
}

fn run(device: &CudaDevice, case: &ConformanceLaunch, inputs: &[HostImage]) -> Result<Vec<HostImage>, DeviceError> {
    let memories: Vec<Memory> = inputs.iter().map(|i| upload(device, i)).collect::<Result<_, _>>()?;
    // Bytes that a kernel does not write stay as they were: zero, as in the host's evaluation.
    let mut images = case.outputs();
    let mut outputs: Vec<Memory> = images.iter().map(|o| upload(device, o)).collect::<Result<_, _>>()?;
    let inputs: Vec<LaunchInput<'_>> =
        memories.iter().zip(&case.inputs).map(|(memory, &geometry)| LaunchInput { memory, geometry }).collect();
    let (kernel, geometry, rows) = (&case.kernel, case.output, case.rows);
    if let Some((output, more)) = outputs.split_first_mut() {
        let more: &mut [&mut Memory] = &mut more.iter_mut().collect::<Vec<_>>();
        device.launch(Launch { kernel, inputs: &inputs, output, additional_outputs: more, geometry, rows })?;
    }
    for (image, memory) in images.iter_mut().zip(&outputs) {
        device.read(memory, 0, &mut image.bytes)?;
    }
    Ok(images)
}

/// Uploads and downloads of several chunks return the original bytes.
fn transfers(device: &CudaDevice) -> Result<bool, DeviceError> {
    let shape = Shape::new(2111, 10_007, 1);
    let window = Window::whole(shape.height);
    let geometry = horus_core::device::Geometry { shape, dtype: horus_core::dtype::DType::F32, window };
    let image = HostImage::random(geometry, 5);
    let memory = upload(device, &image)?;
    let mut copy = device.allocate(image.bytes.len())?;
    let rest = image.bytes.len() - 1001;
    device.copy(&memory, &mut copy, &[StridedCopy::run(0, 0, 1001), StridedCopy::run(1001, 1001, rest)])?;
    let mut back = vec![0; image.bytes.len()];
    device.read(&copy, 0, &mut back)?;
    Ok(back == image.bytes && pieces(device, &image, &memory)?)
}

/// Many rectangles copied by one kernel, with columns of every width and alignment.
fn pieces(device: &CudaDevice, image: &HostImage, memory: &Memory) -> Result<bool, DeviceError> {
    let stride = 4 * 10_007;
    let mut want = vec![0; image.bytes.len()];
    let mut copy = device.allocate(want.len())?;
    device.write(&want, &mut copy, 0)?;
    let piece = |i: usize| StridedCopy {
        from: 16 * i * stride + 37 * i,
        to: 16 * i * stride + [4 * i, 37 * i, 0][i % 3],
        bytes: 3000 + [4 * i, i, 16 * i][i % 3],
        rows: 1 + i % 16,
        from_stride: stride,
        to_stride: [stride, 6000][i % 2],
    };
    let pieces: Vec<StridedCopy> = (0..130).map(piece).collect();
    for (from, to, bytes) in pieces.iter().flat_map(|p| p.runs()) {
        want[to..to + bytes].copy_from_slice(&image.bytes[from..from + bytes]);
    }
    device.copy(memory, &mut copy, &pieces)?;
    let mut got = vec![0; want.len()];
    device.read(&copy, 0, &mut got)?;
    Ok(got == want)
}

/// Compares functions and programs with what is kept; returns the number of differences.
fn numbers(device: CudaDevice) -> horus_core::error::Result<usize> {
    /// Pixels of an image of arguments, as a power of two: 256 MiB.
    const PIXELS: u32 = 26;
    let session = Session::on(Box::new(device)).build()?;
    let mut differences = 0;
    for sample in Sample::ALL {
        let hashes = on_session::hashes(&session, sample, PIXELS, |_, _, _| {})?;
        for (function, hash) in FUNCTIONS.iter().zip(hashes) {
            let kept = GoldenRow::find(function).hashes[sample as usize];
            let same = hash == kept;
            differences += usize::from(!same);
            let told = if same { "as kept".to_owned() } else { format!("DIFFERS from {kept:016x}") };
            println!("{:<12} 2^{:<2} {hash:016x} {told}", function.name, sample.count(function).ilog2());
        }
    }
    match corpus::compared(&corpus::rows(&session)?) {
        Ok(()) => println!("corpus: as kept"),
        Err(changed) => {
            differences += 1;
            println!("corpus: {changed}");
        }
    }
    Ok(differences)
}

fn part_of(text: &str) -> Option<(usize, usize)> {
    let (first, parts) = text.split_once('/')?;
    let (first, parts) = (first.parse().ok()?, parts.parse().ok()?);
    (first < parts).then_some((first, parts))
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| arguments.iter().position(|a| a == name).and_then(|i| arguments.get(i + 1));
    let count = option("--tunings").and_then(|n| n.parse().ok()).unwrap_or(0);
    let part = option("--part").map_or("0/1", String::as_str);
    let Some((first, parts)) = part_of(part) else {
        eprintln!("--part {part}: two numbers, I/N, of which the first is less than the second");
        return ExitCode::FAILURE;
    };
    let filter = arguments.first().filter(|a| !a.starts_with("--")).cloned().unwrap_or_default();
    let mut device = match CudaDevice::open(0, None) {
        Ok(d) => d,
        Err(e) => {
            eprintln!("{e}");
            return ExitCode::FAILURE;
        }
    };
    println!("{}", device.names().name);
    if arguments.iter().any(|a| a == "--numbers") {
        return match numbers(device) {
            Ok(0) => ExitCode::SUCCESS,
            Ok(n) => {
                println!("{n} differences");
                ExitCode::FAILURE
            }
            Err(e) => {
                eprintln!("{e}");
                ExitCode::FAILURE
            }
        };
    }
    let (mut passed, mut failed) = (0, 0);
    let mut report = |name: &str, result: Result<Option<String>, DeviceError>| match result {
        Ok(None) => passed += 1,
        Ok(Some(text)) => {
            failed += 1;
            println!("DIFFERS {name}: {text}");
        }
        Err(e) => {
            failed += 1;
            println!("FAILS   {name}: {e}");
        }
    };
    report("transfers", transfers(&device).map(|same| (!same).then(|| "bytes changed on the way".to_owned())));
    let cases = cases().into_iter().filter(|c| filter.split(',').any(|f| c.name.contains(f)));
    for (turn, case) in cases.skip(first).step_by(parts).enumerate() {
        let inputs = case.images();
        let expected = case.expected(&inputs);
        let dtype = case.inputs.first().map_or(case.output.dtype, |g| g.dtype);
        let sizes = all_sizes(&case.kernel, dtype, device.arch());
        // The large one, and the small ones in turn.
        let small = (sizes.len() > 1).then(|| sizes[1 + turn % (sizes.len() - 1)]);
        let others = candidates(&case.kernel, dtype, device.arch());
        let step = (others.len() / (count + 1)).max(1);
        let others = others.into_iter().step_by(step).skip(1).take(count);
        for tuning in [sizes[0]].into_iter().chain(small).chain(others) {
            device.set_tuning(Some(tuning));
            let result = run(&device, &case, &inputs)
                .map(|out| case.difference(&out, &expected).map(|text| format!("{text} ({tuning:?})")));
            report(&case.name, result);
        }
    }
    println!("{passed} pass, {failed} do not; {:?}", device.statistics());
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
