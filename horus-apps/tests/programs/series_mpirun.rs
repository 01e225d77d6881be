//! Series of pictures under `mpirun`, with 1 to 5 ranks: distributed by picture, and in strips.
#![cfg(feature = "mpi")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::{Mutex, PoisonError};

use crate::files::{picture, text};
use horus::io::{PixelSize, with_pixel_size};
use horus::prelude::*;
use horus_core::cpu::device::CpuDevice;
use horus_core::session::Session as CoreSession;

/// Serialises jobs: they have more ranks than most machines have cores.
static TURN: Mutex<()> = Mutex::new(());

/// `convrot` on so many ranks, one thread each. `MPIRUN` names another launcher.
fn mpirun(ranks: usize, words: &[&str]) -> Output {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut command = crate::launcher::mpirun();
    command.args(["-n", &ranks.to_string(), env!("CARGO_BIN_EXE_convrot")]).args(words);
    command.args(["--theta-step", "90", "--sigma-u", "2", "--sigma-v", "1"]).output().unwrap()
}

fn contents(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|p| (p.file_name().unwrap().into(), fs::read(&p).unwrap())).collect()
}

#[test]
fn every_number_of_ranks_writes_the_same_files() {
    // The first picture decides whether pictures are distributed.
    for (first, dealt) in [((40, 50), true), ((horus_core::series::DEALT / 1024, 1024), false)] {
        let dir = tempfile::tempdir().unwrap();
        let input = dir.path().join("in");
        fs::create_dir(&input).unwrap();
        for i in 0..7 {
            picture(&input.join(format!("{i}.pgm")), if i == 0 { first } else { (30 + i, 40) }, i);
        }
        fs::write(input.join("3.pgm"), "P5 100 100 255 too short").unwrap();
        let mut one = None;
        for ranks in [1, 2, 5] {
            let out = dir.path().join(format!("out{ranks}"));
            let run = mpirun(ranks, &[input.to_str().unwrap(), "--out-dir", out.to_str().unwrap()]);
            let (said, told) = (text(&run.stderr), text(&run.stdout));
            assert!(!run.status.success(), "a picture fails: {said}");
            let errors: Vec<&str> = said.lines().filter(|l| l.starts_with("error: ")).collect();
            assert!(errors.len() == 2 && errors[0].contains("3.pgm") && errors[1].contains("1 of 7"), "{said}");
            assert!(told.starts_with("convrot: 6 pictures, 1 failure, in ") && told.lines().count() == 1, "{told}");
            let files = contents(&out);
            assert_eq!(files.len(), 6);
            assert!(*one.get_or_insert_with(|| files.clone()) == files, "{ranks} ranks, dealt: {dealt}");
        }
    }
}

#[test]
fn wrong_usage_and_skipping_are_the_same_on_all_ranks() {
    let dir = tempfile::tempdir().unwrap();
    let (input, out) = (dir.path().join("a.pgm"), dir.path().join("out"));
    picture(&input, (20, 30), 1);
    let (input, out) = (input.to_str().unwrap(), out.to_str().unwrap());
    let run = mpirun(3, &[input, input, "--out-dir", out]);
    let said = text(&run.stderr);
    assert!(!run.status.success() && said.matches("error: ").count() == 1, "{said}");
    assert!(said.contains("a.pgm is given more than once"), "{said}");
    assert!(mpirun(3, &[input, "--out-dir", out]).status.success());
    let again = mpirun(3, &[input, "--out-dir", out, "--skip-existing"]);
    assert!(again.status.success() && text(&again.stdout).contains("1 that already existed"), "{again:?}");
}

#[test]
fn a_loss_is_told_for_each_file_whatever_the_number_of_ranks() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in");
    fs::create_dir(&input).unwrap();
    let session = CoreSession::on(Box::new(CpuDevice::new(Some(1)).unwrap())).build().unwrap();
    let small = Image::from_fn(&session, 40, 30, |y, x| (y * x % 251) as u8);
    // Every rank but the first of three has a picture of micrometres.
    for i in 0..6 {
        let path = input.join(format!("{i}.png"));
        let micrometres = (i % 3 > 0).then_some(PixelSize { levels: None, rows: 0.5, columns: 0.5 });
        with_pixel_size(&small, micrometres).save(path).unwrap();
    }
    let out = dir.path().join("out");
    let (many, one) = (input.to_str().unwrap(), input.join("1.png"));
    let result = dir.path().join("one.pgm");
    let series: &[&str] = &[many, "--out-dir", out.to_str().unwrap(), "--format", "pgm", "median", "3"];
    let single: &[&str] = &[one.to_str().unwrap(), result.to_str().unwrap(), "median", "3"];
    for ranks in ["1", "3"] {
        // Four of six pictures have a size of pixels.
        for (words, files) in [(series, 4), (single, 1)] {
            let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
            let mut command = crate::launcher::mpirun();
            let run = command.args(["-n", ranks, env!("CARGO_BIN_EXE_horus")]).args(words).output().unwrap();
            let said = text(&run.stderr);
            assert!(run.status.success(), "{said}");
            let told = said.lines().filter(|line| line.contains("its size of pixels is not stored"));
            assert_eq!(told.count(), files, "{ranks} ranks: {said}");
        }
    }
}
