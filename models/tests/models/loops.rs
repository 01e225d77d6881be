//! The programs that repeat a step, compared with NumPy (`tests/goldens/loops.py`), and bit by bit
//! with themselves in other modes and on other numbers of ranks.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::files::{SMALL, entries, text};
use horus::prelude::*;
use horus_core::comm::threads::ThreadComm;
use horus_models::in_parts;
use horus_models::perona_malik::Diffusion;
use horus_models::poisson::{Poisson, Rhs};

fn run(program: &str, args: &[&str]) -> Output {
    let path = match program {
        "jacobi" => env!("CARGO_BIN_EXE_jacobi"),
        "hirlam" => env!("CARGO_BIN_EXE_hirlam"),
        _ => env!("CARGO_BIN_EXE_perona_malik"),
    };
    Command::new(path).args(args).env_remove("HORUS_MODE").env("HORUS_DEVICE", "cpu").output().unwrap()
}

/// Runs a program that must succeed; returns its stdout and stderr.
fn runs(program: &str, args: &[&str]) -> (String, String) {
    let out = run(program, args);
    assert!(out.status.success(), "{}", text(&out.stderr));
    (text(&out.stdout), text(&out.stderr))
}

fn cpu() -> Session {
    Session::builder().device("cpu").threads(1).build().unwrap()
}

/// The pixels of a file, channels last.
fn pixels(path: &Path) -> Vec<f64> {
    let image = AnyImage::open(&cpu(), path).unwrap().convert::<f64>();
    image.to_array::<horus::ndarray::Ix3>().unwrap().iter().copied().collect()
}

fn golden(name: &str) -> Vec<f64> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/goldens/loops");
    pixels(&folder.join(format!("{name}.npy")))
}

fn differ(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len(), "numbers of pixels");
    // A NaN is larger than any tolerance.
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, |m: f64, d| if d <= m { m } else { d })
}

#[test]
fn jacobi_computes_what_numpy_does() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("u.npy");
    let args = ["--size", "37", "--steps", "200", "--out", file.to_str().unwrap()];
    // u reaches 0.5: some roundings of it.
    for (options, tolerance) in [(&[][..], 2e-6), (&["--f64"], 1e-14)] {
        let mut bytes = Vec::new();
        for more in [&[][..], &["--rhs", "image"], &["--mode", "naive"], &["--mode", "lazy", "--threads", "1"]] {
            let (said, _) = runs("jacobi", &[&args, options, more].concat());
            assert!(said.contains("37 x 37 pixels, f") && said.contains("200 steps, largest change in the"), "{said}");
            let largest = differ(&pixels(&file), &golden("jacobi"));
            assert!(largest <= tolerance, "{options:?} {more:?} differs by {largest:e}");
            bytes.push(fs::read(&file).unwrap());
        }
        assert!(bytes.windows(2).all(|b| b[0] == b[1]), "{options:?}: the same bits");
    }
}

#[test]
fn jacobi_in_space_computes_what_numpy_does() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("u.npy");
    let args = ["--size", "13", "--depth", "9", "--steps", "60", "--out", file.to_str().unwrap()];
    for (options, tolerance) in [(&[][..], 2e-6), (&["--f64"], 1e-14)] {
        let mut bytes = Vec::new();
        for more in [&[][..], &["--rhs", "image"], &["--mode", "naive"], &["--mode", "lazy", "--threads", "1"]] {
            runs("jacobi", &[&args, options, more].concat());
            let largest = differ(&pixels(&file), &golden("jacobi_in_space"));
            assert!(largest <= tolerance, "{options:?} {more:?} differs by {largest:e}");
            bytes.push(fs::read(&file).unwrap());
        }
        assert!(bytes.windows(2).all(|b| b[0] == b[1]), "{options:?}: the same bits");
    }
}

#[test]
fn jacobi_approaches_the_solution() {
    let done = Poisson::<f64>::new(&cpu(), 15, Rhs::Broadcast).unwrap().relaxed(10_000, Some(1e-15), None).unwrap();
    assert_eq!(done.ending, Ending::Converged);
    let wave = |i: usize| (std::f64::consts::PI * (i + 1) as f64 / 16.0).sin();
    let solution: Vec<f64> = (0..225).map(|p| wave(p / 15) * wave(p % 15)).collect();
    // Discretisation error of five points: h^2 pi^2 / 12.
    let error = differ(&done.state.to_vec().unwrap(), &solution);
    assert!(error > 1e-3 && error < 4e-3, "{error}");
}

#[test]
fn a_tolerance_ends_a_loop_where_numpy_does() {
    let dir = tempfile::tempdir().unwrap();
    let (u, v) = (dir.path().join("u.npy"), dir.path().join("v.npy"));
    let (u, v) = (u.to_str().unwrap(), v.to_str().unwrap());
    let runs_of: [(_, &[&str], _); 2] = [
        ("jacobi", &["--size", "37", "--out", u, "--f64", "--tolerance", "9.8e-4"], "jacobi_ends"),
        ("perona_malik", &[SMALL, v, "--tolerance", "3e-4"], "perona_malik_ends"),
    ];
    for (program, args, name) in runs_of {
        let [steps, change] = golden(name)[..] else { panic!("two numbers") };
        let (said, log) = runs(program, &[args, &["--steps", "1000"]].concat());
        assert!(said.contains(&format!(", {steps} steps, ")), "{said} does not say {steps} steps");
        let told = said.split("largest change in the last one ").nth(1).and_then(|rest| rest.split(',').next());
        let told: f64 = told.unwrap().parse().unwrap();
        assert!((told / change - 1.0).abs() < 1e-3, "{said} does not say {change}");
        assert!(said.contains(", less than ") && !said.contains("not less"), "{said}");
        assert!(log.is_empty(), "{log}");
        // An unreached tolerance is not a failure.
        let (said, log) = runs(program, &[args, &["--steps", "13"]].concat());
        assert!(said.contains(", 13 steps,") && said.contains(", not less than "), "{said}");
        assert!(log.contains("did not converge in 13 steps"), "{log}");
    }
}

#[test]
fn perona_malik_computes_what_numpy_does() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("u.npy");
    let args = [SMALL, file.to_str().unwrap(), "--steps", "15", "--kappa", "0.05", "--lambda", "0.2"];
    let mut bytes = Vec::new();
    for more in [&[][..], &["--mode", "naive"], &["--mode", "lazy", "--threads", "1"]] {
        let (said, _) = runs("perona_malik", &[&args, more].concat());
        assert!(said.contains("96 x 80 pixels, 15 steps, largest change in the last one "), "{said}");
        let largest = differ(&pixels(&file), &golden("perona_malik"));
        assert!(largest <= 2e-6, "{more:?} differs by {largest:e}");
        bytes.push(fs::read(&file).unwrap());
    }
    assert!(bytes.windows(2).all(|b| b[0] == b[1]), "the same bits");

    // A series and a dry run.
    let folder = dir.path().join("out");
    let series = [SMALL, "--out-dir", folder.to_str().unwrap(), "--format", "npy", "--steps", "15"];
    runs("perona_malik", &series);
    assert!(fs::read(folder.join("small.npy")).unwrap() == bytes[0], "a series writes the same");
    let (said, _) = runs("perona_malik", &[&args[..], &["--dry-run-ranks", "4"]].concat());
    assert!(said.starts_with("on 4 ranks") && said.contains("exchange"), "{said}");
}

#[test]
fn no_step_leaves_what_there_is() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("u.npy");
    let path = file.to_str().unwrap();
    let (said, log) = runs("jacobi", &["--size", "5", "--steps", "0", "--out", path, "-v"]);
    assert!(said.contains("f32, 0 steps\n") && said.contains("ms: start"), "{said} {log}");
    assert_eq!(pixels(&file), [0.0; 25]);
    runs("perona_malik", &[SMALL, path, "--steps", "0", "--quiet"]);
    let picture: Vec<f64> = AnyImage::open(&cpu(), SMALL)
        .unwrap()
        .to_unit()
        .to_array::<horus::ndarray::Ix3>()
        .unwrap()
        .iter()
        .map(|v| f64::from(*v))
        .collect();
    assert_eq!(pixels(&file), picture);
}

#[test]
fn a_stopped_loop_continues_to_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().to_str().unwrap();
    let at = |name: &str| format!("{folder}/{name}");
    let programs: [(_, &[&str], _); 2] = [
        ("jacobi", &["--size", "9", "--out", &at("u.npy")], ["--rhs", "image"]),
        ("hirlam", &["--levels", "3", "--rows", "9", "--columns", "10", "--out-dir", folder], ["--seconds", "4"]),
    ];
    for (program, args, other) in programs {
        let store = at(&format!("{program}.zarr"));
        let after = |steps, more: &[&str]| {
            runs(program, &[args, &["--steps", steps], more].concat());
            fs::read(at("u.npy")).unwrap()
        };
        let checkpoints = ["--checkpoint", &store, "--checkpoint-every", "2"];
        let resume = [&checkpoints[..], &["--resume"]].concat();
        let whole = after("9", &[]);
        assert!(after("6", &checkpoints) != whole, "{program}");
        for (steps, more, cause) in [
            ("9", &checkpoints[..], "resume from it"),
            ("2", &resume, "its checkpoint is after"),
            ("9", &[&resume[..], &other].concat(), "another program"),
        ] {
            let said = text(&run(program, &[args, &["--steps", steps], more].concat()).stderr);
            assert!(said.starts_with("error: ") && said.contains(cause), "{program}: {said}");
        }
        assert!(after("9", &resume) == whole, "{program}: other bytes");
    }
}

#[test]
fn ranks_and_modes_give_the_same_bits() {
    let run = |ranks: usize, mode: Mode| {
        ThreadComm::run(ranks, |comm| {
            let s =
                Session::builder().device("cpu").threads(1).mode(mode).communicator(Arc::new(comm)).build().unwrap();
            let mut all: Vec<u64> = Vec::new();
            for rhs in [Rhs::Broadcast, Rhs::Image] {
                let single = Poisson::<f32>::new(&s, 23, rhs).unwrap().relaxed(45, None, None).unwrap();
                let double = Poisson::<f64>::new(&s, 23, rhs).unwrap().relaxed(500, Some(1e-3), None).unwrap();
                all.extend(single.state.to_vec().unwrap().iter().map(|v| u64::from(v.to_bits())));
                all.extend(double.state.to_vec().unwrap().iter().map(|v| v.to_bits()));
                all.extend([single.change, double.change].map(|c| c.unwrap().to_bits()));
                all.extend([single.steps as u64, double.steps as u64]);
            }
            let image = AnyImage::open(&s, SMALL).unwrap().to_unit();
            let done = Diffusion::new(0.05, 0.2).diffused(&image, 20, None).unwrap();
            all.extend(done.state.to_vec().unwrap().iter().map(|v| u64::from(v.to_bits())));
            all.push(done.change.unwrap().to_bits());
            all
        })
    };
    let alone = &run(1, Mode::Fused)[0];
    for ranks in 1..=3 {
        for mode in [Mode::Naive, Mode::Lazy, Mode::Fused] {
            for (rank, there) in run(ranks, mode).iter().enumerate() {
                assert!(there == alone, "rank {rank} of {ranks}, {mode:?}: other bits");
            }
        }
    }
}

#[test]
fn relaxed_ranks_come_to_the_same_solution() {
    let solution = Poisson::<f64>::new(&cpu(), 7, Rhs::Image).unwrap().relaxed(1000, None, None).unwrap();
    let solution = solution.state.to_vec().unwrap();
    for (age, inner, parts) in [(1, 1, 1), (4, 1, 1), (0, 4, 1), (4, 1, 2)] {
        let each = ThreadComm::run(3, |comm| {
            let told = Arc::new(AtomicUsize::new(0));
            let count = Arc::clone(&told);
            let sink =
                move |text: &str| _ = count.fetch_add(usize::from(text.starts_with("blocks:")), Ordering::Relaxed);
            let builder = Session::builder().device("cpu").threads(1).communicator(Arc::new(comm));
            let session = builder.explain(sink).build().unwrap();
            let map = in_parts(7, 3, parts).unwrap().exchanging_every(inner).unwrap();
            session.place(map.relaxed(age)).unwrap();
            let problem = Poisson::<f64>::new(&session, 7, Rhs::Broadcast).unwrap();
            let [done, bounded] = [1000, 12].map(|steps| problem.relaxed(steps, Some(1e-6), None).unwrap());
            assert!(bounded.steps == 12 && bounded.ending == Ending::Steps && bounded.change > Some(1e-6));
            assert!(done.steps < 1000 && done.ending == Ending::Converged);
            assert!(told.load(Ordering::Relaxed) > 2, "in strips");
            done.state.to_vec().unwrap()
        });
        let apart = differ(&each[0], &solution);
        // A change of 1e-6 in a step that keeps cos(pi / 8) = .92 of an error: 1.3e-5, and room for what is late.
        assert!(apart < 1e-4, "age {age}, {inner} steps, {parts} parts: {apart:e}");
    }
}

#[test]
fn bad_input_is_one_clear_error() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let out = at("u.npy");
    let usage: [(&str, &[&str], &str); 9] = [
        ("jacobi", &["--steps", "3", "--out", &out], "--size"),
        ("jacobi", &["--size", "0", "--steps", "3", "--out", &out], "--size"),
        ("jacobi", &["--size", "8", "--steps", "-3", "--out", &out], "--steps"),
        ("jacobi", &["--size", "8", "--steps", "3", "--out", &out, "--tolerance", "NaN"], "--tolerance"),
        ("jacobi", &["--size", "8", "--steps", "3", "--out", &out, "--rhs", "row"], "--rhs"),
        ("jacobi", &["--size", "8", "--steps", "3", "--out", &out, "--relaxed", "1", "--depth", "3"], "--depth"),
        ("perona_malik", &[SMALL], "OUTPUT is required"),
        ("perona_malik", &[SMALL, &out, "--steps", "-1"], "--steps"),
        ("perona_malik", &[SMALL, &out, "--kappa", "0"], "--kappa"),
    ];
    for (program, args, cause) in usage {
        let result = run(program, args);
        let said = text(&result.stderr);
        assert_eq!((result.status.code(), said.matches("error:").count()), (Some(2), 1), "{said}");
        assert!(said.contains(cause), "{said} does not say {cause}");
    }
    let (nowhere, unknown) = (at("no/such/folder/u.npy"), at("u.xyz"));
    let failures: [(&str, &[&str], &str); 5] = [
        ("jacobi", &["--size", "8", "--steps", "3", "--out", &nowhere], "cannot write"),
        ("jacobi", &["--size", "8", "--steps", "3", "--out", &unknown], "xyz"),
        ("jacobi", &["--size", "8", "--steps", "3", "--out", &out, "--device", "tpu"], "tpu"),
        ("jacobi", &["--size", "18446744073709551615", "--steps", "3", "--out", &out], "18446744073709551615"),
        ("perona_malik", &["missing.png", &out], "missing.png"),
    ];
    for (program, args, cause) in failures {
        let result = run(program, args);
        let said = text(&result.stderr);
        assert_eq!((result.status.code(), said.lines().count()), (Some(1), 1), "{said}");
        assert!(said.starts_with("error: ") && said.contains(cause), "{said} does not say {cause}");
    }
    assert!(entries(dir.path()).is_empty());
}

#[test]
fn help_of_a_program_is_about_that_program() {
    for (program, begins) in [
        (env!("CARGO_BIN_EXE_jacobi"), "Solves Poisson's equation"),
        (env!("CARGO_BIN_EXE_perona_malik"), "Smooths pictures"),
        (env!("CARGO_BIN_EXE_pop"), "Density of sea water"),
        (env!("CARGO_BIN_EXE_hirlam"), ""),
    ] {
        let out = Command::new(program).arg("--help").output().unwrap();
        let about = text(&out.stdout).lines().next().unwrap().to_owned();
        assert!(out.status.success() && about.starts_with(begins), "{program}: {about}");
        assert!(!about.contains("Models of"), "{program}: {about}");
    }
}
