//! Series of pictures on the command line.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::files::{SMALL, entries, picture, text};

const CONVROT: &str = env!("CARGO_BIN_EXE_convrot");
const QUICK: [&str; 6] = ["--theta-step", "90", "--sigma-u", "2", "--sigma-v", "1"];

fn command(words: &[&str]) -> Command {
    let mut command = Command::new(CONVROT);
    command.args(words).args(QUICK).env_remove("HORUS_MODE").env("HORUS_DEVICE", "cpu");
    command
}

fn run(words: &[&str]) -> Output {
    command(words).output().unwrap()
}

/// Distinct pictures `0.pgm`, `1.pgm`, ...
fn pictures(dir: &Path, sizes: &[(usize, usize)]) {
    for (i, size) in sizes.iter().enumerate() {
        picture(&dir.join(format!("{i}.pgm")), *size, i);
    }
}

fn str(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A folder `in` with pictures, and a name for a folder beside it.
fn folders(sizes: &[(usize, usize)]) -> (tempfile::TempDir, PathBuf, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let (input, output) = (dir.path().join("in"), dir.path().join("out/deep"));
    fs::create_dir(&input).unwrap();
    pictures(&input, sizes);
    (dir, input, output)
}

#[test]
fn a_folder_and_single_runs_write_the_same_bytes() {
    let (dir, input, output) = folders(&[(40, 50), (33, 20), (40, 50), (1, 1), (200, 7)]);
    for threads in ["1", "2", "5"] {
        let out = run(&[str(&input), "--out-dir", str(&output), "--threads", threads]);
        assert!(out.status.success(), "{}", text(&out.stderr));
        let summary = text(&out.stdout);
        assert!(summary.starts_with("convrot: 5 pictures, 0 failures, in ") && summary.contains(" MB/s"), "{summary}");
        assert!(summary.contains(" pictures/s, ") && summary.lines().count() == 1, "{summary}");
        assert!(out.stderr.is_empty(), "no bar but on a terminal: {}", text(&out.stderr));
        assert_eq!(entries(&output), ["0.png", "1.png", "2.png", "3.png", "4.png"]);
        for i in 0..5 {
            let single = dir.path().join("single.png");
            let picture = input.join(format!("{i}.pgm"));
            assert!(run(&[str(&picture), str(&single)]).status.success());
            assert!(fs::read(&single).unwrap() == fs::read(output.join(format!("{i}.png"))).unwrap(), "{threads}: {i}");
        }
        fs::remove_dir_all(&output).unwrap();
    }
}

#[test]
fn lists_name_pictures_and_formats_are_chosen() {
    let (dir, input, output) = folders(&[(20, 20); 3]);
    let list = dir.path().join("list");
    let lines = format!("{}\n{}\n", str(&input.join("2.pgm")), str(&input.join("0.pgm")));
    fs::write(&list, &lines).unwrap();
    let words = ["--out-dir", str(&output), "--format", "npy", "--quiet"];
    let out = run(&[&["--files-from", str(&list)][..], &words].concat());
    assert!(out.status.success() && out.stdout.is_empty(), "{}", text(&out.stderr));
    assert_eq!(entries(&output), ["0.npy", "2.npy"]);
    fs::remove_dir_all(&output).unwrap();
    // The list from stdin, in addition to a picture.
    let mut child = command(&[&[str(&input.join("1.pgm")), "--files-from", "-"][..], &words].concat())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(entries(&output), ["0.npy", "1.npy", "2.npy"]);
}

#[test]
fn pictures_that_fail_are_named_and_the_rest_go_on() {
    let (_dir, input, output) = folders(&[(20, 20); 6]);
    let whole = fs::read(input.join("1.pgm")).unwrap();
    fs::write(input.join("1.pgm"), &whole[..whole.len() / 2]).unwrap();
    fs::write(input.join("3.png"), "no picture").unwrap();
    fs::write(input.join("notes.txt"), "no picture").unwrap();
    fs::remove_file(input.join("3.pgm")).unwrap();
    let missing = input.join("missing.pgm");
    let out = run(&[str(&input), str(&missing), "--out-dir", str(&output)]);
    assert_eq!(out.status.code(), Some(1));
    let said = text(&out.stderr);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 4, "{said}");
    for (line, name) in lines.iter().zip(["1.pgm", "3.png", "missing.pgm"]) {
        assert!(line.starts_with("error: cannot read ") && line.contains(name), "{line}");
    }
    assert_eq!(lines[3], "error: 3 of 7 pictures failed");
    assert!(text(&out.stdout).starts_with("convrot: 4 pictures, 3 failures, in "), "{}", text(&out.stdout));
    assert_eq!(entries(&output), ["0.png", "2.png", "4.png", "5.png"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_fails_what_is_written_there() {
    let (_dir, input, output) = folders(&[(20, 20); 3]);
    fs::create_dir_all(&output).unwrap();
    std::os::unix::fs::symlink("/dev/full", output.join("1.png")).unwrap();
    let out = run(&[str(&input), "--out-dir", str(&output)]);
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(
        said.contains("cannot write") && said.contains("1.png: No space left") && said.contains("1 of 3"),
        "{said}"
    );
    assert_eq!(entries(&output), ["0.png", "1.png", "2.png"]);
}

#[test]
fn what_is_there_is_skipped_if_asked() {
    let (_dir, input, output) = folders(&[(20, 20); 4]);
    fs::create_dir_all(&output).unwrap();
    fs::write(output.join("1.png"), "old").unwrap();
    let out = run(&[str(&input), "--out-dir", str(&output), "--skip-existing"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let summary = text(&out.stdout);
    assert!(summary.starts_with("convrot: 3 pictures, 0 failures, 1 that already existed, in "), "{summary}");
    assert_eq!(fs::read(output.join("1.png")).unwrap(), b"old");
    assert!(run(&[str(&input), "--out-dir", str(&output)]).status.success());
    assert!(fs::read(output.join("1.png")).unwrap().starts_with(b"\x89PNG"));
    // Nothing is left to do.
    let again = run(&[str(&input), "--out-dir", str(&output), "--skip-existing"]);
    assert!(again.status.success() && text(&again.stdout).contains("0 pictures, 0 failures, 4 that"), "{again:?}");
}

#[test]
fn names_that_collide_and_wrong_usage_are_told_before_anything_is_done() {
    let (dir, input, output) = folders(&[(20, 20); 2]);
    fs::copy(SMALL, input.join("1.png")).unwrap();
    let (one, out_dir, at) = (input.join("0.pgm"), str(&output), str(&input));
    let empty = dir.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let list = dir.path().join("nowhere");
    for (words, cause) in [
        (&[at, "--out-dir", out_dir][..], "would both be written to"),
        (&[str(&one), str(&one), "--out-dir", out_dir], "0.pgm is given more than once"),
        (&[str(&input.join("1.png")), "--out-dir", at], "would overwrite"),
        (&[str(&empty), "--out-dir", out_dir], "no pictures in"),
        (&["--files-from", str(&list), "--out-dir", out_dir], "cannot read the list"),
        (&["-", "--out-dir", out_dir], "stdin"),
        (&["--out-dir", out_dir], "pictures are required"),
        (&[str(&one)], "OUTPUT is required"),
        (&[at, at, at], "--out-dir"),
        (&[at, "--out-dir", out_dir, "--compare", "cpu"], "--compare"),
        (&[at, "--out-dir", out_dir, "--dry-run-ranks", "2"], "--dry-run-ranks"),
        (&[at, "--out-dir", out_dir, "--format", "gif"], "png, jpg"),
        (&[str(&one), "x.png", "--skip-existing"], "--out-dir"),
        (&[str(&one), "-"], "--format"),
    ] {
        let out = run(words);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.starts_with("error: ") && said.contains(cause), "{words:?}: {said}");
        assert!(!output.exists());
    }
    // A folder that cannot be created.
    let file = input.join("1.png/deep");
    let out = run(&[str(&one), "--out-dir", str(&file)]);
    assert_eq!(out.status.code(), Some(1), "{}", text(&out.stderr));
    assert!(text(&out.stderr).starts_with("error: cannot write "), "{}", text(&out.stderr));
}

#[test]
fn one_picture_goes_from_stdin_to_stdout() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("o.png");
    assert!(run(&[SMALL, str(&file)]).status.success());
    let out = command(&["-", "-", "--format", "png"]).stdin(fs::File::open(SMALL).unwrap()).output().unwrap();
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert!(out.stdout == fs::read(&file).unwrap(), "the same bytes");
    assert!(text(&out.stderr).contains("wrote -"), "the summary goes elsewhere: {}", text(&out.stderr));
    // A name with another extension.
    let odd = dir.path().join("o.tmp");
    assert!(run(&[SMALL, str(&odd), "--format", "png"]).status.success());
    assert_eq!(fs::read(odd).unwrap(), fs::read(&file).unwrap());
    let out = command(&["-", "-", "--format", "png"]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(out.status.code(), Some(1));
    assert!(out.stdout.is_empty() && text(&out.stderr).contains("empty"), "{}", text(&out.stderr));
}

#[test]
fn a_comparison_tells_the_user_perceived_speedup() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("o.png");
    for (what, second) in [("cpu", "CPU"), ("1", "CPU (1 thread"), ("naive", ", naive")] {
        let out = run(&[SMALL, str(&file), "--compare", what]);
        let said = text(&out.stdout);
        assert!(out.status.success(), "{}", text(&out.stderr));
        assert!(said.contains(second), "{said}");
        let last = said.lines().last().unwrap();
        assert!(
            last.starts_with("user-perceived speedup ") && last.ends_with("the results have the same bits"),
            "{said}"
        );
        let row = |name: &str| said.lines().find(|l| l.starts_with(name)).unwrap().split_whitespace().count();
        for part in ["start", "read", "upload", "kernels", "download", "write", "all"] {
            assert_eq!(row(part), 7, "{said}");
        }
        assert_eq!(entries(dir.path()), ["o.png"]);
    }
}

#[test]
fn a_deadline_ends_a_run_with_an_error() {
    let (dir, input, output) = folders(&[(20, 20); 3]);
    let out = run(&[str(&input), "--out-dir", str(&output), "--deadline", "0"]);
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert_eq!(said, "error: the deadline has passed: 3 of 3 pictures remain; --skip-existing resumes\n");
    assert!(entries(&output).is_empty());
    let single = dir.path().join("o.png");
    let out = run(&[SMALL, str(&single), "--deadline", "0"]);
    assert_eq!((out.status.code(), text(&out.stderr)), (Some(1), "error: the deadline has passed\n".to_owned()));
    assert!(!single.exists());
    assert!(run(&[SMALL, str(&single), "--deadline", "1e9"]).status.success());
}

/// A long run, and its output folder.
#[cfg(unix)]
fn long(input: &Path, output: &Path) -> std::process::Child {
    let mut command = Command::new(CONVROT);
    command.args([str(input), "--out-dir", str(output), "--threads", "1", "--device", "cpu"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[cfg(unix)]
fn signal(child: &std::process::Child, name: &str) {
    assert!(Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap().success());
}

#[cfg(unix)]
#[test]
fn an_interrupted_series_leaves_whole_files_and_can_be_resumed() {
    let (_dir, input, output) = folders(&[(300, 400); 60]);
    for name in ["INT", "TERM"] {
        let child = long(&input, &output);
        let start = Instant::now();
        while !output.exists() || entries(&output).iter().filter(|n| !n.starts_with('.')).count() < 2 {
            assert!(start.elapsed() < Duration::from_secs(60), "it begins");
            std::thread::sleep(Duration::from_millis(5));
        }
        signal(&child, name);
        let out = child.wait_with_output().unwrap();
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(130), "{said}");
        assert!(said.starts_with("error: cancelled: ") && said.contains("of 60 pictures remain"), "{said}");
        let files = entries(&output);
        assert!(files.len() >= 2 && files.len() < 60, "{files:?}");
        for file in &files {
            assert!(!file.starts_with('.'), "{file} is left");
            // The last chunk of a PNG file is present.
            assert!(fs::read(output.join(file)).unwrap().ends_with(b"IEND\xaeB`\x82"), "{file}");
        }
        fs::remove_dir_all(&output).unwrap();
    }
}

#[cfg(unix)]
#[test]
fn an_interrupted_picture_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("o.png");
    let vessels = Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets/vessels.png");
    let mut command = Command::new(CONVROT);
    command.args([str(&vessels), str(&file), "--theta-step", "0.1", "--threads", "1", "--device", "cpu"]);
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    // The picture is read by then, so the signal cancels the run; earlier it would also end it at
    // once.
    std::thread::sleep(Duration::from_millis(1500));
    signal(&child, "INT");
    let start = Instant::now();
    let out = child.wait_with_output().unwrap();
    assert_eq!((out.status.code(), text(&out.stderr)), (Some(130), "error: cancelled\n".to_owned()));
    assert!(start.elapsed() < Duration::from_secs(10));
    assert!(entries(dir.path()).is_empty());
}
