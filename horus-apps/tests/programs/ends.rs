//! Interrupted runs, and unusual inputs and outputs.
#![cfg(target_os = "linux")]

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::files::{entries, listens, signal, text};

fn horus() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_horus"));
    command.env_remove("HORUS_MODE").env("HORUS_DEVICE", "cpu");
    command
}

fn picture(path: &Path, size: (usize, usize)) {
    crate::files::picture(path, size, 0);
}

#[test]
fn a_run_that_waits_for_its_picture_can_be_interrupted() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("o.png");
    let single: &[&OsStr] = &["-".as_ref(), out.as_os_str(), "gauss".as_ref(), "1".as_ref()];
    let numbers: &[&OsStr] = &["-".as_ref(), "mean".as_ref()];
    let list: &[&OsStr] = &["--files-from".as_ref(), "-".as_ref(), "mean".as_ref()];
    for words in [single, numbers, list] {
        for name in ["INT", "TERM"] {
            let mut command = horus();
            command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().unwrap();
            // It stays open: the picture never ends.
            let stdin = child.stdin.take().unwrap();
            listens(&child);
            // The read may not have begun.
            std::thread::sleep(Duration::from_millis(200));
            signal(&child, name);
            let run = child.wait_with_output().unwrap();
            drop(stdin);
            assert_eq!((run.status.code(), text(&run.stderr)), (Some(130), "error: cancelled\n".into()), "{words:?}");
            assert!(run.stdout.is_empty() && entries(dir.path()).is_empty());
        }
    }
}

#[test]
fn a_series_that_is_killed_leaves_whole_files_only() {
    let dir = tempfile::tempdir().unwrap();
    let (input, output) = (dir.path().join("in"), dir.path().join("out"));
    fs::create_dir(&input).unwrap();
    for i in 0..30 {
        picture(&input.join(format!("{i:02}.pgm")), (700, 900));
    }
    for wait in [0, 3, 7, 12, 20] {
        let mut child = horus()
            .arg(&input)
            .arg("--out-dir")
            .arg(&output)
            .args(["gauss", "1"])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        while !output.exists() || entries(&output).is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(wait));
        signal(&child, "KILL");
        child.wait().unwrap();
        for name in entries(&output) {
            assert!(!name.starts_with('.'), "{name} is left");
            assert!(fs::read(output.join(&name)).unwrap().ends_with(b"IEND\xaeB`\x82"), "{name}");
        }
        fs::remove_dir_all(&output).unwrap();
    }
}

#[test]
fn names_in_a_list_end_with_zero_bytes_and_nothing_is_mistaken_for_another() {
    let dir = tempfile::tempdir().unwrap();
    let names = ["a.pgm", "line\nbreak.pgm", "b c.pgm"].map(|name| dir.path().join(name));
    names.iter().for_each(|path| picture(path, (9, 8)));
    let before: Vec<Vec<u8>> = names.iter().map(|path| fs::read(path).unwrap()).collect();
    let list = dir.path().join("list");
    let mut file = File::create(&list).unwrap();
    for name in &names {
        file.write_all(&[name.as_os_str().as_bytes(), b"\0"].concat()).unwrap();
    }
    let out = dir.path().join("out");
    let run = horus().arg("--files-from").arg(&list).arg("--out-dir").arg(&out).args(["gauss", "1"]).output().unwrap();
    assert!(run.status.success(), "{}", text(&run.stderr));
    assert_eq!(entries(&out), ["a.png", "b c.png", "line\nbreak.png"]);
    assert!(names.iter().map(|path| fs::read(path).unwrap()).eq(before), "no picture was written over");
    // One line per picture.
    let run = horus().arg("--files-from").arg(&list).arg("mean").output().unwrap();
    let told = text(&run.stdout);
    assert!(run.status.success() && told.lines().count() == 3 && told.contains("line\\nbreak.pgm\t"), "{told}");
}

#[test]
fn numbers_of_many_pictures_come_in_order_beside_errors_and_are_traced() {
    let dir = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = (0..12).map(|i| dir.path().join(format!("{i:02}.pgm"))).collect();
    paths.iter().enumerate().for_each(|(i, path)| picture(path, (10 + i, 20)));
    fs::write(&paths[5], "P5 100 100 255 too short").unwrap();
    let trace = dir.path().join("trace.json");
    let run = horus().args(&paths).arg("--trace").arg(&trace).args(["convert", "f64", "sum"]).output().unwrap();
    assert_eq!(run.status.code(), Some(1));
    // The pixels are the end of the file.
    let sum = |i: usize| {
        let file = fs::read(&paths[i]).unwrap();
        file[file.len() - (10 + i) * 20..].iter().map(|p| f64::from(*p)).sum::<f64>()
    };
    let expected: Vec<String> =
        (0..12).filter(|i| *i != 5).map(|i| format!("{}\t{}", paths[i].display(), sum(i))).collect();
    assert_eq!(text(&run.stdout).lines().collect::<Vec<_>>(), expected);
    let said = text(&run.stderr);
    assert!(said.contains("05.pgm") && said.ends_with("error: 1 of 12 pictures failed\n"), "{said}");
    let traced: serde_json::Value = serde_json::from_slice(&fs::read(trace).unwrap()).unwrap();
    assert!(traced["traceEvents"].as_array().unwrap().len() >= 11);
    // One line per channel.
    let small = Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets/small.png");
    let run = horus().arg(small).arg("stats").output().unwrap();
    assert_eq!(text(&run.stdout).lines().count(), 3);
}

#[test]
fn a_folder_without_pictures_does_not_end_what_others_have() {
    let dir = tempfile::tempdir().unwrap();
    let empty = dir.path().join("x.png");
    fs::create_dir(&empty).unwrap();
    picture(&dir.path().join("a.pgm"), (9, 8));
    let run = horus().arg(&empty).arg(dir.path().join("a.pgm")).arg("mean").output().unwrap();
    assert!(run.status.success() && text(&run.stdout).lines().count() == 1);
    assert!(text(&run.stderr).contains("no pictures in"), "{}", text(&run.stderr));
    assert_eq!(horus().arg(&empty).arg("mean").output().unwrap().status.code(), Some(2));
}

fn piped(words: &[&str]) -> Output {
    let small = Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets/small.png");
    horus().args(words).stdin(File::open(small).unwrap()).output().unwrap()
}

#[test]
fn a_picture_on_stdout_is_alone_there_by_whatever_name() {
    let run = piped(&["-", "-", "--format", "png", "gauss", "1"]);
    for name in ["/dev/stdout", "/proc/self/fd/1"] {
        let other = piped(&["-", name, "--format", "png", "gauss", "1"]);
        assert!(other.status.success() && other.stdout == run.stdout, "{name}");
        assert!(text(&other.stderr).contains("wrote "), "{}", text(&other.stderr));
    }
    let small = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/small.png");
    let compared = piped(&[small, "-", "--format", "png", "gauss", "1", "--compare", "1"]);
    assert!(compared.stdout == run.stdout && text(&compared.stderr).contains("user-perceived speedup"));
    let twice = piped(&["-", "-", "--format", "png", "gauss", "1", "--compare", "1"]);
    assert!(twice.status.code() == Some(2) && text(&twice.stderr).contains("which stdin does not allow"));
    let empty = horus().args(["-", "o.png"]).stdin(Stdio::null()).output().unwrap();
    assert!(text(&empty.stderr).starts_with("error: cannot read stdin: the file is empty"), "{}", text(&empty.stderr));
}

#[test]
fn what_cannot_be_printed_is_a_failure() {
    let full = || File::options().write(true).open("/dev/full").unwrap();
    for words in [&["help"][..], &["help", "gauss"]] {
        let run =
            horus().args(words).stdout(full()).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
        assert_eq!(run.status.code(), Some(1));
        assert!(text(&run.stderr).starts_with("error: cannot print to stdout: No space"), "{}", text(&run.stderr));
    }
}

#[test]
fn a_trace_overwrites_no_file_of_a_series_that_is_skipped() {
    let dir = tempfile::tempdir().unwrap();
    let (a, out) = (dir.path().join("a.pgm"), dir.path().join("out"));
    picture(&a, (9, 8));
    let series = |trace: &Path| {
        let mut command = horus();
        command.arg(&a).arg("--out-dir").arg(&out).args(["--skip-existing", "--trace"]).arg(trace).args(["gauss", "1"]);
        command.output().unwrap()
    };
    assert!(series(&dir.path().join("t.json")).status.success());
    let before = fs::read(&a).unwrap();
    for file in [&a, &out.join("a.png")] {
        let run = series(file);
        assert_eq!(run.status.code(), Some(1), "{}", text(&run.stdout));
        assert!(text(&run.stderr).contains("it is also a picture of this run"), "{}", text(&run.stderr));
    }
    assert_eq!(fs::read(&a).unwrap(), before);
}

#[test]
fn shares_of_the_parts_are_told_of_a_single_run() {
    let dir = tempfile::tempdir().unwrap();
    picture(&dir.path().join("a.pgm"), (90, 80));
    let mut run = horus();
    run.arg("-v").arg(dir.path().join("a.pgm")).arg(dir.path().join("o.png")).args(["gauss", "1"]);
    let told = text(&run.stderr(Stdio::null()).output().unwrap().stdout);
    let line = told.lines().find(|l| l.starts_with("ms: ")).unwrap();
    let shares: Vec<f64> =
        line.split('(').skip(1).map(|part| part.split(' ').next().unwrap().parse().unwrap()).collect();
    assert!(shares.len() == 10 && (shares.iter().sum::<f64>() - 100.0).abs() <= 5.0, "{line}");
}

#[test]
fn what_is_measured_is_told_beside_what_was_predicted() {
    let dir = tempfile::tempdir().unwrap();
    picture(&dir.path().join("a.pgm"), (400, 300));
    let told = |verbose: &[&str]| {
        let mut run = horus();
        run.args(verbose).arg(dir.path().join("a.pgm")).arg(dir.path().join("o.png")).args(["gauss", "5"]);
        text(&run.args(["--device", "cpu"]).stderr(Stdio::null()).output().unwrap().stdout)
    };
    let line = |told: &str| told.lines().find_map(|l| l.strip_prefix("measured / predicted ms: ").map(str::to_owned));
    assert_eq!(line(&told(&[])), None);
    let told = told(&["-v"]);
    let line = line(&told).unwrap_or_else(|| panic!("{told}"));
    let number = |text: &str| text.parse::<f64>().unwrap_or_else(|e| panic!("{text}: {e} in {line}"));
    let parts: Vec<(&str, f64, f64)> = line
        .split(", ")
        .map(|part| {
            let (rest, predicted) = part.split_once(" / ").unwrap();
            let (name, measured) = rest.rsplit_once(' ').unwrap();
            (name, number(measured), number(predicted))
        })
        .collect();
    let names: Vec<&str> = parts.iter().map(|p| p.0).collect();
    assert_eq!(names, ["upload", "kernels", "download", "between ranks", "in all"]);
    let [upload, kernels, download, between, all] = parts[..] else { panic!("{line}") };
    // The CPU computes in place, alone.
    assert_eq!((upload.1, download.1, between.1, between.2), (0.0, 0.0, 0.0, 0.0), "{line}");
    assert!(kernels.1 > 0.0 && kernels.2 > 0.0 && all.1 >= kernels.1 && all.2 >= kernels.2, "{line}");
}
