//! The package of machine code contains the kernels of the programs for every size of picture.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use horus_cuda::nvrtc::{Nvrtc, OPTIONS};
use horus_cuda::recorder::RecordedLaunch;
use horus_cuda::shipped::{Package, Packing, limits};
use horus_testing::cases::part;
use horus_tools::kernels::{DETECTORS, FileRun, PixelFormat, distinct, recorded, shipped, sources};

/// The detectors' runs of the package.
fn of_detectors() -> Vec<Vec<RecordedLaunch>> {
    recorded(&shipped().into_iter().filter(|run| run.program != "horus").collect::<Vec<_>>()).unwrap()
}

#[test]
fn every_size_and_type_finds_its_kernels_among_the_shipped_ones() {
    let all = of_detectors();
    let known = [80, 90, 120].map(|arch| (arch, sources(&all, arch, limits(arch).unwrap()).unwrap()));
    std::thread::scope(|threads| {
        for number in 0..DETECTORS.len() {
            let known = &known;
            threads.spawn(move || finds_its_kernels(number, known));
        }
    });
}

/// Pictures of several sizes and types need no kernel but those that are `known` for each architecture.
fn finds_its_kernels(number: usize, known: &[(u32, BTreeMap<String, String>)]) {
    let pictures = vec![
        ((512, 384), PixelFormat::Grey8, "png"),
        ((333, 257), PixelFormat::Colour8, "pgm"),
        ((1024, 1024), PixelFormat::Grey8, "npy"),
        ((1366, 768), PixelFormat::Colour16, "png"),
        ((1000, 1500), PixelFormat::Grey16, "tif"),
        ((2051, 1025), PixelFormat::Float, "npy"),
        ((4096, 4096), PixelFormat::Grey8, "pgm"),
    ];
    let (program, _) = DETECTORS[number];
    // Each picture by one of the detectors, or by all.
    let some = |all: Vec<_>| all.into_iter().skip(number).step_by(DETECTORS.len()).collect();
    for (size, samples, output) in part(pictures, some) {
        let run = FileRun { samples, output, ..FileRun::of(program, size) };
        let launches = run.launches().unwrap();
        for (arch, known) in known {
            let made = sources(std::slice::from_ref(&launches), *arch, limits(*arch).unwrap()).unwrap();
            assert!(made.len() >= 3, "{run:?} launches {} kernels", made.len());
            let missing: Vec<&String> =
                made.iter().filter(|(source, _)| !known.contains_key(*source)).map(|(_, name)| name).collect();
            assert!(missing.is_empty(), "{run:?} on sm_{arch} must compile {missing:?}");
        }
    }
}

#[test]
fn every_operation_of_the_command_is_recorded_and_kernels_are_bounded() {
    let runs = shipped();
    let chains: BTreeSet<&str> = runs.iter().map(|run| &*run.chain).collect();
    for (name, chain) in horus_apps::command::examples() {
        let detector = DETECTORS.iter().any(|(detector, _)| *detector == name);
        assert!(chains.contains(if detector { name } else { &chain }), "{name}");
    }
    let kernels = sources(&recorded(&runs).unwrap(), 90, limits(90).unwrap()).unwrap();
    assert!((100..600).contains(&kernels.len()), "{} kernels", kernels.len());
}

/// Code from a package equals the compiler's, bit for bit, and nothing is found for another
/// architecture.
#[test]
fn a_package_has_the_code_that_the_compiler_makes() {
    let nvrtc = match Nvrtc::load() {
        Ok(nvrtc) => nvrtc,
        Err(e) => panic!("{e}"),
    };
    let run = FileRun::of("convrot", (256, 256));
    let kernels: Vec<String> =
        distinct(&run.launches().unwrap(), 90, limits(90).unwrap()).unwrap().into_keys().take(3).collect();
    let make = || {
        let mut packing = Packing::new(nvrtc.version());
        for source in &kernels {
            packing.add(source, OPTIONS, 90, nvrtc.compile(source, 90).unwrap());
        }
        packing.bytes()
    };
    let bytes = make();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("package");
    std::fs::write(&path, &bytes).unwrap();
    let package = Package::open(&path).unwrap();
    assert_eq!(package.architectures().into_iter().collect::<Vec<_>>(), [(90, kernels.len())]);
    assert_eq!(package.compiler(), nvrtc.version());
    for source in &kernels {
        let code = package.find(source, OPTIONS, 90).unwrap();
        assert_eq!(&code[..4], b"\x7fELF");
        assert_eq!(package.find(source, OPTIONS, 80), None);
        assert_eq!(package.find(source, &OPTIONS[1..], 90), None);
    }
    assert_eq!(make(), bytes, "the same sources give the same bytes");
}

#[test]
fn the_tool_says_what_it_cannot_make() {
    let tool = |arch: &str| {
        let run = Command::new(env!("CARGO_BIN_EXE_horus-kernels")).args(["/nonexistent/out", "--arch", arch]).output();
        let out = run.unwrap();
        (out.status.code(), String::from_utf8(out.stderr).unwrap())
    };
    assert_eq!(tool("1"), (Some(1), "error: sm_1 is not known\n".into()));
    assert_eq!(tool("x").0, Some(2));
}
