//! Pictures larger than memory, and programs in less memory than they need: computed by a child
//! process that reports its peak.
#![cfg(target_os = "linux")]

use std::collections::HashSet;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;

use horus_core::cpu::device::CpuDevice;
use horus_core::error::Result;
use horus_core::filters::Footprint;
use horus_core::image::{Image, Until};
use horus_core::io::{AnyImage, Depth, SaveOptions, Scaling};
use horus_core::ops::components::Connectivity;
use horus_core::ops::geometric::Interpolation;
use horus_core::session::Session;
use horus_core::shape::Axis;
use horus_testing::cases::part;

const HEIGHT: usize = 6_000;
const WIDTH: usize = 8_000;
/// Limit for images: half of the picture, an eighth of its intermediates.
const MEMORY: usize = 24 << 20;
/// Memory of the process besides images: its code, threads, decoders and encoders.
const BESIDE: usize = 24 << 20;

/// A map of grey values, written row by row.
fn picture(path: &Path) {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
    write!(file, "P5\n{WIDTH} {HEIGHT}\n255\n").unwrap();
    for y in 0..HEIGHT {
        let row: Vec<u8> = (0..WIDTH).map(|x| ((x * 7 + y * 13 + x * y / 1024) % 253) as u8).collect();
        file.write_all(&row).unwrap();
    }
    file.flush().unwrap();
}

fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix("kB").unwrap().trim().parse::<usize>().unwrap() << 10
}

/// The program: a filter, scaled by the range of its result.
fn run(input: &Path, output: &Path, memory: Option<usize>) {
    let builder = Session::on(Box::new(CpuDevice::new(Some(2)).unwrap()));
    let builder = memory.into_iter().fold(builder, |b, bytes| b.host_memory(bytes));
    let session = builder
        .explain(|text| {
            if text.starts_with("regions") {
                println!("{text}")
            }
        })
        .build()
        .unwrap();
    let smooth: Image<f32> = AnyImage::open(&session, input).unwrap().to_unit().gauss(2.0);
    let options = SaveOptions { depth: Depth::Eight, scaling: Scaling::Range, ..SaveOptions::default() };
    let scale = (smooth * 3.0).save_with(output, &options).unwrap().unwrap();
    println!("\nscale {} {}", scale.low.to_bits(), scale.high.to_bits());
}

/// The name of a program, and the program.
type OutOfCoreProgram = (&'static str, fn(&Session) -> Result<f64>);

/// Programs whose images are in memory from the start: 64 MiB of floats. What they return is counted, too.
const IN_MEMORY: [OutOfCoreProgram; 14] = [
    ("nothing", |_| Ok(0.0)),
    ("a filter's mean", |s| given(s).gauss(2.0).mean().get()),
    ("filters that are kept", |s| {
        let (a, b) = (given(s).gauss(2.0), given(s).sobel(Axis::Rows));
        s.evaluate()?;
        Ok(f64::from(a.pixel((0, 0))? + b.pixel((0, 0))?))
    }),
    ("a rotated image, read", |s| {
        given(s)
            .rotate(30.0, Interpolation::Bicubic)
            .to_vec()
            .map(|v| v.iter().step_by(1009).copied().map(f64::from).sum())
    }),
    ("an image by its mean, saved", |s| {
        let (image, folder) = (given(s), tempfile::tempdir().unwrap());
        let file = folder.path().join("out.npy");
        (image.gauss(2.0) / image.mean()).save(&file)?;
        AnyImage::open(s, &file)?.convert::<f32>().gauss(1.0).sum().get()
    }),
    ("medians of disks", |s| given(s).median(&Footprint::disc(5)).over(Axis::Rows).sum().pixel((0, 7))),
    ("steps of a loop", |s| {
        let found = s.iterate(given(s), 5, |u| u.gauss(1.0))?;
        found.state.mean().get()
    }),
    ("a loop until it is smooth", |s| {
        let edge = given(s).gt(0.5);
        let found = s.iterate(given(s), Until::below(0.02, 8).every(4), |u| edge.select(u, u.gauss(1.0)))?;
        Ok(found.state.mean().get()? + found.steps as f64)
    }),
    ("a loop of two images", |s| {
        let found = s.iterate((given(s), given(s).gt(0.5)), 3, |(u, m)| (u.gauss(1.0), u.gt(0.4) ^ m))?;
        Ok(found.state.0.mean().get()? + found.state.1.convert::<f32>().mean().get()?)
    }),
    ("a loop that is watched", |s| {
        let mut sums = 0.0;
        let add = |_, u: &Image<f32>| -> Result<ControlFlow<()>> {
            sums += u.sum().get()?;
            Ok(ControlFlow::Continue(()))
        };
        s.iterate_watched(given(s), 4, |u| u.gauss(1.0), 2, add)?;
        Ok(sums)
    }),
    ("labels", |s| given(s).gt(0.5).label(Connectivity::FACES).max_value().get().map(f64::from)),
    ("what is not small", |s| given(s).gt(0.5).remove_small(9, Connectivity::CORNERS).count().get().map(|n| n as f64)),
    ("distances", |s| given(s).gt(0.1).distances().euclidean::<f32>().mean().get()),
    ("a reconstruction", |s| {
        let mask = given(s);
        (&mask - 0.2).reconstruct(&mask, Connectivity::FACES).mean().get()
    }),
];

fn given(session: &Session) -> Image<f32> {
    Image::from_fn(session, 4096, 4096, |y, x| ((x * 7 + y * 13 + x * y / 1024) % 253) as f32 / 253.0)
}

/// A program of [`IN_MEMORY`] within the megabytes of `HORUS_TEST_MEMORY`.
#[test]
fn in_memory() {
    let Ok(name) = std::env::var("HORUS_TEST_PROGRAM") else { return };
    let bytes = std::env::var("HORUS_TEST_MEMORY").unwrap().parse::<usize>().unwrap() << 20;
    let session = Session::on(Box::new(CpuDevice::new(Some(2)).unwrap())).host_memory(bytes).build().unwrap();
    let (_, program) = IN_MEMORY.iter().find(|(known, _)| *known == name).unwrap();
    match program(&session) {
        Ok(value) => println!("\ndone {value}"),
        Err(e) => println!("\nrefused: {e}"),
    }
    println!("peak {}", peak());
}

#[test]
fn programs_in_memory_take_no_more_than_they_are_allowed() {
    const MIB: usize = 1 << 20;
    let run = |name: &str, limit: usize| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "in_memory", "--nocapture"]).env("HORUS_TEST_PROGRAM", name);
        let output = command.env("HORUS_TEST_MEMORY", limit.to_string()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
        (number(&text, "peak"), text)
    };
    let (empty, _) = run("nothing", 100);
    for (name, _) in &IN_MEMORY[1..] {
        let (mut ends, mut values) = (Vec::new(), HashSet::new());
        for limit in part(vec![100, 150, 300], |_| vec![100, 300]) {
            let (peak, text) = run(name, limit);
            let end = if text.contains("\ndone ") { "done" } else { "an error" };
            values.extend(text.lines().find(|l| l.starts_with("done ")).map(str::to_owned));
            println!("| {name} | {limit} MiB | {} MiB | {end} |", peak / MIB);
            assert!(peak <= empty + (limit + 64) * MIB, "{name} at {limit} MiB: {} MiB\n{text}", peak / MIB);
            let told = text.contains("out of memory") && text.contains("HORUS_HOST_MEMORY allows");
            assert!(end == "done" || told, "{text}");
            ends.push(end);
        }
        let more_is_enough = ends.windows(2).all(|two| two[0] != "done" || two[1] == "done");
        assert!(more_is_enough && ends.last() == Some(&"done"), "{name}: {ends:?}");
        assert_eq!(values.len(), 1, "{name} within any memory");
    }
}

/// The child process; without its variable, does nothing.
#[test]
fn child() {
    let Some(folder) = std::env::var_os("HORUS_TEST_FOLDER") else { return };
    let folder = Path::new(&folder);
    let (name, memory) = match std::env::var("HORUS_TEST_BOUND") {
        Ok(_) => ("bounded", Some(MEMORY)),
        Err(_) => ("whole", None),
    };
    let extension = std::env::var("HORUS_TEST_FORMAT").unwrap();
    run(&folder.join("large.pgm"), &folder.join(name).with_extension(extension), memory);
    println!("\npeak {}", peak());
}

fn spawn(folder: &Path, bounded: bool, format: &str) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child", "--nocapture"]).env("HORUS_TEST_FOLDER", folder).env("HORUS_TEST_FORMAT", format);
    if bounded {
        command.env("HORUS_TEST_BOUND", "1");
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    text
}

fn number(text: &str, name: &str) -> usize {
    let line = text.lines().find_map(|l| l.strip_prefix(name)).unwrap_or_else(|| panic!("no {name} in {text}"));
    line.trim().parse().unwrap()
}

#[test]
fn a_picture_larger_than_memory_is_the_same_bytes_in_bounded_memory() {
    let folder = tempfile::tempdir().unwrap();
    picture(&folder.path().join("large.pgm"));
    for format in ["pgm", "tif"] {
        let whole = spawn(folder.path(), false, format);
        let bounded = spawn(folder.path(), true, format);
        let scales =
            |text: &str| text.lines().filter(|l| l.starts_with("scale")).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(scales(&whole), scales(&bounded));
        assert!(!whole.contains("regions:") && bounded.contains("reduction "), "{bounded}");
        let peak = number(&bounded, "peak");
        assert!(peak < MEMORY + BESIDE, "{peak} bytes at most, {} without a bound\n{bounded}", number(&whole, "peak"));
        let [one, other] = ["whole", "bounded"].map(|n| folder.path().join(n).with_extension(format));
        assert!(std::fs::read(&one).unwrap() == std::fs::read(&other).unwrap(), "files differ");
    }
}

#[test]
fn what_no_machine_has_is_refused_before_anything_is_computed() {
    const SIDE: usize = 600_000;
    let folder = tempfile::tempdir().unwrap();
    let session = Session::on(Box::new(CpuDevice::new(Some(2)).unwrap())).build().unwrap();
    let flat = Image::<f32>::constant(&session, (SIDE, SIDE), 1.0);
    let (one, other) = (flat.gauss(2.0), flat.transpose().gauss(3.0));
    for error in [session.evaluate().unwrap_err(), (&one + &other).save(folder.path().join("never.npy")).unwrap_err()] {
        let text = error.to_string();
        assert!(error.is_out_of_memory() && text.contains("HORUS_HOST_MEMORY allows by default"), "{text}");
        assert!(text.contains("(recorded at ") && text.contains("M are needed"), "{text}");
    }
    assert!(Image::from_fn(&session, SIDE, SIDE, |_, _| 1f64).check().unwrap_err().is_out_of_memory());
    let small = flat.crop(0, 0, 2, 3).sum().get().unwrap();
    assert_eq!(small, 6.0, "the session goes on");
}
