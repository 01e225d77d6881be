//! Pictures larger than memory: computed in bounded memory, by a child process that reports its
//! peak.
#![cfg(target_os = "linux")]

use std::io::Write;
use std::path::Path;
use std::process::Command;

use horus_core::cpu::device::CpuDevice;
use horus_core::image::Image;
use horus_core::io::{AnyImage, Depth, SaveOptions, Scaling};
use horus_core::session::Session;

const HEIGHT: usize = 10_000;
const WIDTH: usize = 8_000;
/// Limit for images: a third of the picture, a thirteenth of its intermediates.
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
        assert!(!whole.contains("regions:") && bounded.contains("a pass for "), "{bounded}");
        let peak = number(&bounded, "peak");
        assert!(peak < MEMORY + BESIDE, "{peak} bytes at most, {} without a bound\n{bounded}", number(&whole, "peak"));
        let [one, other] = ["whole", "bounded"].map(|n| folder.path().join(n).with_extension(format));
        if format == "pgm" {
            assert!(std::fs::read(&one).unwrap() == std::fs::read(&other).unwrap(), "files differ");
        } else {
            let session = Session::on(Box::new(CpuDevice::new(Some(2)).unwrap())).build().unwrap();
            let [one, other] = [one, other].map(|p| AnyImage::open(&session, p).unwrap().convert::<u8>());
            let differ = one.ne(&other).convert::<u8>().sum().get().unwrap();
            assert_eq!(differ, 0.0);
        }
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
        assert!(text.contains("(recorded at ") && text.contains("M would do"), "{text}");
    }
    assert!(Image::from_fn(&session, SIDE, SIDE, |_, _| 1f64).check().unwrap_err().is_out_of_memory());
    let small = flat.crop(0, 0, 2, 3).sum().get().unwrap();
    assert_eq!(small, 6.0, "the session goes on");
}
