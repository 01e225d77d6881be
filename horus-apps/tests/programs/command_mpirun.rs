//! The command `horus` under `mpirun`: the same bytes, and each error once.
#![cfg(feature = "mpi")]

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::files::{SMALL, text};

const HORUS: &str = env!("CARGO_BIN_EXE_horus");

/// `mpirun -n ranks horus words`, one thread per rank. `MPIRUN` names another launcher.
fn mpirun(dir: &Path, ranks: usize, words: &[&str]) -> Output {
    crate::launcher::mpirun().args(["-n", &ranks.to_string(), HORUS]).args(words).current_dir(dir).output().unwrap()
}

#[test]
fn every_number_of_ranks_does_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::copy(SMALL, dir.join("in.png")).unwrap();
    let chain = ["luminance", "gauss", "2", "sub", "@in.png", "rotate", "30", "sobel", "add", "@in"];
    let mask = ["equalize", "otsu", "opening", "disc", "1"];
    let mut written = Vec::new();
    for ranks in [1, 2, 3] {
        let mut files = Vec::new();
        for (name, chain) in [("a.npy", &chain[..]), ("b.png", &mask)] {
            let out = mpirun(dir, ranks, &[&["in.png", name, "--quiet"], chain].concat());
            assert!(out.status.success(), "{ranks} ranks: {}", text(&out.stderr));
            files.push(fs::read(dir.join(name)).unwrap());
        }
        let out = mpirun(dir, ranks, &["in.png", "in.png", "stats"]);
        assert_eq!(text(&out.stdout).lines().count(), 6, "rank 0 alone prints: {}", text(&out.stdout));
        files.push(out.stdout);
        written.push(files);
    }
    assert!(written.iter().all(|files| *files == written[0]));
}

#[test]
fn what_is_wrong_is_told_once() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::copy(SMALL, dir.join("in.png")).unwrap();
    for (words, cause) in [
        (&["gauss", "-1"][..], "operation 1, `gauss -1`: sigma is -1"),
        (&["sub", "@none.png"], "operation 1, `sub @none.png`: cannot read none.png"),
        (&["gaus", "2"], "did you mean `gauss`?"),
    ] {
        let out = mpirun(dir, 2, &[&["in.png", "o.png"], words].concat());
        assert!(!out.status.success());
        let errors =
            text(&out.stderr).lines().filter(|l| l.starts_with("error: ")).map(str::to_owned).collect::<Vec<_>>();
        assert!(matches!(&errors[..], [one] if one.contains(cause)), "{}", text(&out.stderr));
    }
    let help = mpirun(dir, 2, &["help", "gauss"]);
    assert_eq!(text(&help.stdout).matches("gauss SIGMA").count(), 1);
}
