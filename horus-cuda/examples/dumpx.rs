//! Dump.

use horus_core::prelude::*;
use horus_cuda::nvrtc::Nvrtc;
use horus_cuda::recorder::Recorder;
use horus_cuda::shipped::limits;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = PathBuf::from(std::env::args().nth(1).unwrap());
    let only = std::env::args().nth(2).unwrap_or_default();
    std::fs::create_dir_all(&dir)?;
    let nvrtc = Nvrtc::load()?;
    type P = Box<dyn Fn(&Session) -> Result<(), Error>>;
    let programs: Vec<(&str, P)> = vec![
        (
            "jac3",
            Box::new(|s| {
                let u = Image::<f32>::from_volume_fn(s, 512, 512, 512, |z, y, x| (z ^ y ^ x) as f32)
                    .with_border(Border::Constant(0.0));
                let c = Image::<f32>::from_volume_fn(s, 512, 512, 1, |z, y, x| (z ^ y ^ x) as f32);
                let r = Image::<f32>::from_volume_fn(s, 1, 1, 512, |z, y, x| (z ^ y ^ x) as f32);
                let around = u.correlate(&Filter::sparse([(-1, 0), (0, -1), (0, 1), (1, 0)], [1.0; 4]));
                let ends = u.shift(1, 0, 0) + u.shift(-1, 0, 0);
                (around + ends).mul_add(1.0 / 6.0, &(c * r)).max_value().get().map(drop)
            }),
        ),
        (
            "jac2",
            Box::new(|s| {
                let u = Image::<f32>::from_fn(s, 4096, 4096, |y, x| (y ^ x) as f32).with_border(Border::Constant(0.0));
                let around = u.correlate(&Filter::sparse([(-1, 0), (0, -1), (0, 1), (1, 0)], [0.25; 4]));
                around.to_vec().map(drop)
            }),
        ),
        (
            "sum",
            Box::new(|s| {
                let v = Image::<f32>::from_fn(s, 512, 512, |y, x| (y ^ x) as f32);
                v.sum().get().map(drop)
            }),
        ),
        (
            "max",
            Box::new(|s| {
                let v = Image::<f32>::from_fn(s, 512, 512, |y, x| (y ^ x) as f32);
                v.max_value().get().map(drop)
            }),
        ),
    ];
    for (name, program) in programs.into_iter().filter(|p| p.0.contains(&only)) {
        let recorder = Recorder::new()?;
        let launches = recorder.launches();
        let session = Session::on(Box::new(recorder)).build()?;
        program(&session)?;
        for (i, l) in launches.get().iter().enumerate() {
            println!(
                "{name} {i}: {} {:?} -> {:?}",
                l.kernel.name(),
                l.inputs.iter().map(|g| g.shape).collect::<Vec<_>>(),
                l.output.shape
            );
            for (j, g) in l.programs(90, limits(90).unwrap())?.iter().enumerate() {
                let start = std::time::Instant::now();
                std::fs::write(dir.join(format!("{name}{i}_{j}.cu")), &g.source)?;
                let cubin = nvrtc.compile(&g.source, 90)?;
                println!(
                    "  {j}: grid {:?} block {} shared {} compiled in {:.1?} {} bytes passes {:?}",
                    g.grid,
                    g.block,
                    g.shared,
                    start.elapsed(),
                    cubin.len(),
                    g.passes
                );
                std::fs::write(dir.join(format!("{name}{i}_{j}.cubin")), cubin)?;
            }
        }
    }
    Ok(())
}
