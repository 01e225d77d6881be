//! What a detector's kernels cost to compile, without a GPU: plans each detector as a session with a GPU does, and
//! compiles every distinct kernel, one after the other and in several threads.
//!
//! `cargo run -p horus-apps --example cold -- [DETECTOR [SIZE [THREADS]]]`, with `HORUS_NVRTC` naming the compiler and
//! `HORUS_ARCH` the architecture (90). `HORUS_DUMP=DIR` keeps sources and machine code.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use horus::core::session::Session as CoreSession;
use horus::prelude::*;
use horus_apps::detectors::{Detector, Params, conv2d, convrot, convuv};
use horus_cuda::codegen::{Limits, Generated};
use horus_cuda::conformance::{Launched, Recorder};
use horus_cuda::nvrtc::Nvrtc;

type Failure = Box<dyn std::error::Error>;

/// What a detector's run on a picture of this size, from file to file, launches.
fn launches(detector: Detector, size: usize) -> Result<Vec<Launched>, Failure> {
    let device = Recorder::new()?;
    let launches = device.launches();
    let session = CoreSession::on(Box::new(device)).build()?;
    let folder = std::env::temp_dir().join(format!("horus-cold-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let (input, output) = (folder.join("in.pgm"), folder.join("out.pgm"));
    let mut picture = format!("P5\n{size} {size}\n255\n").into_bytes();
    picture.resize(picture.len() + size * size, 0);
    std::fs::write(&input, picture)?;
    let image = AnyImage::open(&session, &input)?.luminance();
    detector(&image, &Params::default()).save(&output)?;
    std::fs::remove_dir_all(&folder)?;
    Ok(launches.get())
}

/// Each program once, with the name of its kernel and how many launches run it.
fn distinct(launches: &[Launched], arch: u32) -> Result<Vec<(Generated, String, usize)>, Failure> {
    let limits = Limits { shared: if arch == 90 || arch >= 100 { 227 << 10 } else { 99 << 10 } };
    let mut found: Vec<(Generated, String, usize)> = Vec::new();
    let mut known = HashMap::new();
    for launch in launches {
        let Some(program) = launch.program(arch, limits)? else { continue };
        let at = *known.entry(program.source.clone()).or_insert(found.len());
        if at == found.len() {
            found.push((program, launch.kernel.name(), 0));
        }
        found[at].2 += 1;
    }
    Ok(found)
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let only = arguments.next().unwrap_or_default();
    let size = arguments.next().map_or(Ok(1024), |s| s.parse())?;
    let threads = arguments.next().map_or(Ok(0), |s| s.parse())?;
    let arch = std::env::var("HORUS_ARCH").map_or(Ok(90), |s| s.parse())?;
    let keep = std::env::var_os("HORUS_DUMP").map(PathBuf::from);
    let start = Instant::now();
    let nvrtc = Nvrtc::load()?;
    println!("NVRTC {:?} loaded in {:.0?}", nvrtc.version(), start.elapsed());
    let detectors = [("convrot", convrot as Detector), ("conv2d", conv2d), ("convuv", convuv)];
    for (name, detector) in detectors.into_iter().filter(|d| d.0.contains(&only)) {
        let start = Instant::now();
        let launches = launches(detector, size)?;
        let planned = start.elapsed();
        let start = Instant::now();
        let programs = distinct(&launches, arch)?;
        println!(
            "{name} {size}: {} launches of {} kernels, planned in {planned:.0?}, generated in {:.0?}",
            launches.len(),
            programs.len(),
            start.elapsed()
        );
        if threads <= 1 {
            let start = Instant::now();
            for (i, (program, what, times)) in programs.iter().enumerate() {
                let start = Instant::now();
                let cubin = nvrtc.compile(&program.source, arch).map_err(|e| format!("{what}: {e}"))?;
                let took = start.elapsed().as_secs_f64() * 1e3;
                println!(
                    "{took:8.0} ms {:7} bytes of code, {:6} of source, cost {:5}, {times:3} launches: {i:02} {what}",
                    cubin.len(),
                    program.source.len(),
                    program.cost
                );
                if let Some(folder) = &keep {
                    std::fs::create_dir_all(folder)?;
                    std::fs::write(folder.join(format!("{name}-{i:02}.cu")), &program.source)?;
                    std::fs::write(folder.join(format!("{name}-{i:02}.cubin")), &cubin)?;
                }
            }
            println!("{name} {size}: all in {:.0?}", start.elapsed());
        } else {
            let (next, start) = (AtomicUsize::new(0), Instant::now());
            std::thread::scope(|scope| {
                let work = || {
                    while let Some((program, what, _)) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if let Err(e) = nvrtc.compile(&program.source, arch) {
                            println!("{what}: {e}");
                        }
                    }
                };
                (0..threads).for_each(|_| drop(scope.spawn(work)));
            });
            println!("{name} {size}: all in {:.0?} on {threads} threads", start.elapsed());
        }
    }
    Ok(())
}
