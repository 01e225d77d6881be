//! Compile times of a detector's kernels, without a GPU: plans each detector as a session with a GPU does, and
//! compiles every distinct kernel, one after the other and in several threads.
//!
//! `cargo run -p horus-tools --example cold -- [DETECTOR [SIZE [THREADS]]]`, with `HORUS_NVRTC` naming the compiler and
//! `HORUS_ARCH` the architecture (90). `HORUS_DUMP=DIR` keeps sources and machine code.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use horus_cuda::nvrtc::Nvrtc;
use horus_cuda::shipped::limits;
use horus_tools::kernels::{BoxedError, CountedKernel, DETECTORS, FileRun, distinct};

fn main() -> Result<(), BoxedError> {
    let mut arguments = std::env::args().skip(1);
    let only = arguments.next().unwrap_or_default();
    let size: usize = arguments.next().map_or(Ok(1024), |s| s.parse())?;
    let threads = arguments.next().map_or(Ok(0), |s| s.parse())?;
    let arch = std::env::var("HORUS_ARCH").map_or(Ok(90), |s| s.parse())?;
    let limits = limits(arch).ok_or("the architecture is not known")?;
    let keep = std::env::var_os("HORUS_DUMP").map(PathBuf::from);
    let start = Instant::now();
    let nvrtc = Nvrtc::load()?;
    println!("NVRTC {:?} loaded in {:.0?}", nvrtc.version(), start.elapsed());
    for (name, _) in DETECTORS.into_iter().filter(|d| d.0.contains(&only)) {
        let start = Instant::now();
        let launches = FileRun::of(name, (size, size)).launches()?;
        let planned = start.elapsed();
        let start = Instant::now();
        let programs: Vec<CountedKernel> = distinct(&launches, arch, limits)?.into_values().collect();
        println!(
            "{name} {size}: {} launches of {} kernels, planned in {planned:.0?}, generated in {:.0?}",
            launches.len(),
            programs.len(),
            start.elapsed()
        );
        if threads <= 1 {
            let start = Instant::now();
            for (i, CountedKernel { program, name: what, times }) in programs.iter().enumerate() {
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
                    while let Some(CountedKernel { program, name: what, .. }) =
                        programs.get(next.fetch_add(1, Ordering::Relaxed))
                    {
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
