//! Times copies between a program's memory and the chunks through which pixels pass to a device and back, by number of
//! threads, size of chunks, synchronisation and kind of stores. With a device, compares the throughput of such copies
//! with direct copies by the device.

use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use horus::prelude::*;
use horus_core::device::{Device, DownloadStart, Memory};
use horus_core::error::DeviceError;
use horus_core::host::StridedCopy;
use horus_core::host::buffer::Pool;
use horus_core::host::sequential_output::{SequentialOutput, Unwritten};
use horus_core::host::stores::Stores;
use horus_core::host::workers::Workers;

/// Times copies in host memory and, with a device, to it and back.
#[derive(Parser)]
struct CopyBenchOptions {
    /// MiB to copy.
    #[arg(long, default_value_t = 64)]
    size: usize,
    /// Numbers of threads.
    #[arg(long, value_delimiter = ',', default_value = "1,2,4,8,16")]
    threads: Vec<usize>,
    /// MiB per chunk.
    #[arg(long, value_delimiter = ',', default_value = "1,2,4,8")]
    chunk: Vec<usize>,
    /// Number of chunks, one of which is transferred while the others are copied.
    #[arg(long, default_value_t = 6)]
    buffers: usize,
    /// Timed runs, after one that is not counted.
    #[arg(long, default_value_t = 9)]
    runs: usize,
    /// A device to copy to and from: cuda, cuda:N.
    #[arg(long)]
    device: Option<String>,
}

const MIB: usize = 1 << 20;

/// Median GB/s of `work`, which copies so many bytes.
fn rate(runs: usize, bytes: usize, mut work: impl FnMut() -> Result<(), DeviceError>) -> Result<f64, DeviceError> {
    work()?;
    let mut times = Vec::new();
    for _ in 0..runs.max(1) {
        let start = Instant::now();
        work()?;
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Ok(bytes as f64 / times[times.len() / 2] / 1e9)
}

/// Synchronisation of the threads.
#[derive(Clone, Copy)]
enum CopySynchronisation {
    /// Once per chunk.
    Each,
    /// Once for all chunks but one.
    InTurn(Stores),
}

const WAYS: [(&str, CopySynchronisation); 3] = [
    ("each", CopySynchronisation::Each),
    ("in turn", CopySynchronisation::InTurn(Stores::Cached)),
    ("streamed", CopySynchronisation::InTurn(Stores::Streamed)),
];

/// Copies to or from the few chunks.
fn through(workers: &Workers, way: CopySynchronisation, up: bool, user: &mut [u8], chunks: &mut [Vec<u8>]) {
    let size = chunks[0].len();
    let at_once = if let CopySynchronisation::Each = way { 1 } else { chunks.len().saturating_sub(1).max(1) };
    let mut first = 0;
    for parts in user.chunks_mut(size * at_once) {
        chunks.rotate_left(first);
        first = at_once % chunks.len();
        let pairs = parts.chunks_mut(size).zip(chunks.iter_mut());
        match way {
            CopySynchronisation::Each if up => {
                pairs.for_each(|(user, chunk)| workers.copy(user, &mut chunk[..user.len()]))
            }
            CopySynchronisation::Each => pairs.for_each(|(user, chunk)| workers.copy(&chunk[..user.len()], user)),
            CopySynchronisation::InTurn(stores) if up => {
                let pairs = pairs.map(|(user, chunk)| (&*user, SequentialOutput::over(&mut chunk[..user.len()])));
                workers.copy_in_turn(pairs.collect(), stores, |_| ());
            }
            CopySynchronisation::InTurn(stores) => {
                let pairs = pairs.map(|(user, chunk)| (&chunk[..user.len()], SequentialOutput::over(user)));
                workers.copy_in_turn(pairs.collect(), stores, |_| ());
            }
        }
    }
}

/// Copies in host memory.
fn host(options: &CopyBenchOptions) -> Result<()> {
    let bytes = options.size.max(1) * MIB;
    let (mut user, mut other) = (vec![1u8; bytes], vec![2u8; bytes]);
    println!(
        "GB/s of {} MiB through {} chunks, and from one place to another in one go",
        options.size, options.buffers
    );
    print!("{:>7} {:>9}", "threads", "chunk");
    for direction in ["to chunks", "back"] {
        WAYS.iter().for_each(|(name, _)| print!(" {:>19}", format!("{direction}, {name}")));
    }
    println!(" {:>9} {:>9}", "one go", "new");
    for &threads in &options.threads {
        let workers = Workers::new(Some(threads))?;
        let timed = |work: &mut dyn FnMut()| {
            let done = rate(options.runs, bytes, || {
                work();
                Ok(())
            });
            done.unwrap_or(f64::NAN)
        };
        let whole = timed(&mut || workers.copy(&user, &mut other));
        let new = timed(&mut || {
            let written = Unwritten::<u8>::new(bytes).and_then(|mut room| {
                room.fault(&workers);
                room.written(|spare| {
                    spare.append(&workers, &other);
                    Ok(())
                })
            });
            drop(std::hint::black_box(written));
        });
        for &chunk in &options.chunk {
            let mut chunks = vec![vec![3u8; chunk.max(1) * MIB]; options.buffers.max(1)];
            print!("{threads:>7} {:>9}", format!("{chunk} MiB"));
            for up in [true, false] {
                for (_, way) in WAYS {
                    let rate = timed(&mut || through(&workers, way, up, &mut user, &mut chunks));
                    print!(" {rate:>19.1}");
                }
            }
            println!(" {whole:>9.1} {new:>9.1}");
        }
    }
    Ok(())
}

/// Copies to a device and back, through chunks and directly.
fn device(device: &dyn Device, options: &CopyBenchOptions) -> Result<(), DeviceError> {
    println!("\n{} with {} threads, GB/s", device.names().name, device.workers().threads());
    println!("{:>9} {:>9} {:>9} {:>9} {:>9} {:>9}", "MiB", "up", "down", "both", "locked up", "down");
    let (staging, pool, runs) = (device.staging(), Pool::new(usize::MAX), options.runs);
    for size in [1, 4, 16, 64, 256, 1024] {
        let bytes = size * MIB;
        let (source, mut target) = (vec![1u8; bytes], vec![2u8; bytes]);
        let (mut there, back): (Memory, Memory) = (device.allocate(bytes)?, device.allocate(bytes)?);
        device.write(&source, &mut there, 0)?;
        let up = rate(runs, bytes, || device.write(&source, &mut there, 0).and_then(|()| device.synchronize()))?;
        let down = rate(runs, bytes, || device.read(&back, 0, &mut target))?;
        let both = rate(runs, 2 * bytes, || {
            std::thread::scope(|scope| {
                let read = scope.spawn(|| device.read(&back, 0, &mut target));
                let written = device.write(&source, &mut there, 0);
                read.join().map_err(|_| DeviceError::Internal("a copy panicked".into()))?.and(written)
            })?;
            device.synchronize()
        })?;
        let locked = |_| match staging.page_locked(bytes)? {
            Some(memory) => pool.try_adopt(memory, bytes),
            None => pool.try_allocate(bytes),
        };
        let (from, mut to) = (locked(())?, locked(())?);
        let fast_up = rate(runs, bytes, || {
            let ticket = staging.begin_upload(&from, &mut there, &[StridedCopy::run(0, 0, bytes)])?;
            staging.wait_for_upload(ticket, &mut there).and_then(|()| device.synchronize())
        })?;
        let fast_down = rate(runs, bytes, || {
            let landing = staging.start_download(&back, 0..bytes, &pool, DownloadStart::WithTarget)?;
            landing.copy_into(&mut to, device.workers())
        })?;
        println!("{size:>9} {up:>9.1} {down:>9.1} {both:>9.1} {fast_up:>9.1} {fast_down:>9.1}");
    }
    Ok(())
}

fn run(options: &CopyBenchOptions) -> Result<()> {
    host(options)?;
    let Some(name) = &options.device else { return Ok(()) };
    let session = Session::builder().device(name).eager(true).build()?;
    let Some(opened) = session.device() else { return Err(Error::Config("the session has no device".into())) };
    let failed = |source| Error::Device { op: "a copy".into(), device: opened.names().name, source };
    device(opened, options).map_err(failed)
}

fn main() -> ExitCode {
    horus_apps::exit_code(run(&CopyBenchOptions::parse()))
}
