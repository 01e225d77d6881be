//! The command line of the detectors.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::files::{SMALL, entries, text};

fn run(program: &str, args: &[&str]) -> Output {
    let path = match program {
        "convrot" => env!("CARGO_BIN_EXE_convrot"),
        "conv2d" => env!("CARGO_BIN_EXE_conv2d"),
        "horus" => env!("CARGO_BIN_EXE_horus"),
        _ => env!("CARGO_BIN_EXE_convuv"),
    };
    Command::new(path).args(args).env_remove("HORUS_MODE").env_remove("HORUS_DEVICE").output().unwrap()
}

/// The run fails with status 1 and one line that contains `cause`, and leaves `dir` as it was.
fn fails(args: &[&str], dir: &Path, cause: &str) {
    let before = entries(dir);
    let out = run("convrot", args);
    let message = text(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{message}");
    assert!(message.starts_with("error: ") && message.lines().count() == 1, "{message}");
    assert!(message.contains(cause), "{message} does not say {cause}");
    assert_eq!(entries(dir), before);
}

#[test]
fn a_run_writes_the_picture_and_a_summary() {
    let dir = tempfile::tempdir().unwrap();
    for program in ["convrot", "conv2d", "convuv"] {
        let out_file = dir.path().join(format!("{program}.png"));
        let args = [SMALL, out_file.to_str().unwrap(), "--theta-step", "60", "--sigma-u", "2"];
        let out = run(program, &args);
        assert!(out.status.success(), "{}", text(&out.stderr));
        let summary = text(&out.stdout);
        assert!(summary.contains("96 x 80 pixels, 3 orientations, 3 scales"), "{summary}");
        assert!(summary.contains("CPU") && summary.contains("1 rank") && summary.contains("scaled"), "{summary}");
        assert!(fs::metadata(out_file).unwrap().len() > 500);
    }
    assert_eq!(entries(dir.path()), ["conv2d.png", "convrot.png", "convuv.png"]);
}

#[test]
fn every_mode_and_thread_count_writes_the_same_values() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for options in [&["--mode", "naive"][..], &["--mode", "lazy", "--threads", "1"], &["--threads", "3"], &[]] {
        let out_file = dir.path().join("out.npy");
        let mut args = vec![SMALL.to_owned(), out_file.to_str().unwrap().to_owned()];
        args.extend(["--quiet", "--theta-step", "45", "--sigma-u", "3"].map(str::to_owned));
        args.extend(options.iter().map(|o| (*o).to_owned()));
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let out = run("convrot", &args);
        assert!(out.status.success() && out.stdout.is_empty(), "{}", text(&out.stderr));
        files.push(fs::read(&out_file).unwrap());
    }
    assert!(files.windows(2).all(|f| f[0] == f[1]));
}

#[test]
fn a_tolerance_has_the_same_bits_in_every_mode_and_its_algorithms_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let out_file = dir.path().join("out.npy");
    let written = |options: &[&str]| {
        let args =
            [&[SMALL, out_file.to_str().unwrap(), "--theta-step", "45", "--sigma-u", "7", "--sigma-v", "2"], options]
                .concat();
        let out = run("conv2d", &args);
        assert!(out.status.success(), "{}", text(&out.stderr));
        (fs::read(&out_file).unwrap(), text(&out.stdout))
    };
    let (exact, _) = written(&["--quiet"]);
    let (near, told) = written(&["--within", "1e-4", "--explain"]);
    assert!(told.contains(" filters of 43x43 (within "), "{told}");
    assert!(near != exact, "the tolerance is used");
    for options in [&["--mode", "naive"][..], &["--mode", "lazy", "--threads", "1"]] {
        assert!(written(&[&["--within", "1e-4", "--quiet"], options].concat()).0 == near, "{options:?}");
    }
}

#[test]
fn explain_and_trace_tell_what_happened() {
    let dir = tempfile::tempdir().unwrap();
    let (out_file, trace) = (dir.path().join("o.tif"), dir.path().join("trace.json"));
    let (out_path, trace_path) = (out_file.to_str().unwrap(), trace.to_str().unwrap());
    let args = [SMALL, out_path, "--theta-step", "90", "--explain", "--trace", trace_path];
    let out = run("conv2d", &args);
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert!(text(&out.stdout).contains("launch") && !text(&out.stdout).contains("recorded:"), "{}", text(&out.stdout));
    assert!(!text(&out.stdout).contains(".rs:"), "{}", text(&out.stdout));
    let json: serde_json::Value = serde_json::from_slice(&fs::read(trace).unwrap()).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    assert!(events.iter().any(|e| e["cat"] == "kernel"), "{json}");
}

#[test]
fn bad_input_fails_with_one_line_and_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (good, out) = (SMALL.to_owned(), at("out.png"));
    let bytes = fs::read(&good).unwrap();
    fs::write(at("truncated.png"), &bytes[..bytes.len() / 2]).unwrap();
    fs::write(at("text.png"), "not a picture").unwrap();
    fs::write(at("empty.png"), "").unwrap();
    fails(&[&at("missing.png"), &out], dir.path(), "missing.png");
    fails(&[&at("truncated.png"), &out], dir.path(), "truncated.png");
    fails(&[&at("text.png"), &out], dir.path(), "text.png");
    fails(&[&at("empty.png"), &out], dir.path(), "empty.png");
    fails(&[dir.path().to_str().unwrap(), &out], dir.path(), "cannot read");
    fails(&[&good, &at("out.xyz")], dir.path(), "xyz");
    fails(&[&good, &at("no/such/folder/out.png")], dir.path(), "cannot write");
    fails(&[&good, &out, "--device", "tpu"], dir.path(), "tpu");
    fails(&[&good, &out, "--sigma-u", "100000"], dir.path(), "gauss_xy: a radius of 300000 pixels");
}

#[test]
fn a_gpu_that_cannot_be_used_is_an_error_when_asked_for_and_a_line_when_not() {
    let dir = tempfile::tempdir().unwrap();
    let (good, out) = (SMALL.to_owned(), dir.path().join("out.png").to_str().unwrap().to_owned());
    // No machine has a GPU of this number.
    fails(&[&good, &out, "--device", "cuda:999"], dir.path(), "no CUDA device: ");
    fails(&[&good, &out, "--device", "cuda:first"], dir.path(), "cuda:N");
    let args = [&good, &out, "-v", "--theta-step", "90", "--sigma-u", "2", "--sigma-v", "1"];
    let automatic = run("convrot", &args);
    assert!(automatic.status.success(), "{}", text(&automatic.stderr));
    let log = text(&automatic.stderr);
    assert_eq!(log.matches("computing on").count(), 1, "{log}");
    assert!(log.contains("found a GPU") || log.contains("no CUDA device: "), "{log}");
}

#[test]
fn wrong_usage_exits_with_two() {
    for args in
        [&["in.png"][..], &["in.png", "out.png", "--theta-step", "0"], &["in.png", "out.png", "--sigma-v", "NaN"]]
    {
        assert_eq!(run("convuv", args).status.code(), Some(2));
    }
}

#[test]
fn a_dry_run_tells_what_ranks_would_exchange_and_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let out_file = dir.path().join("lines.png");
    for ranks in ["4", "20", "1024"] {
        let out = run("conv2d", &[SMALL, out_file.to_str().unwrap(), "--dry-run-ranks", ranks]);
        let said = text(&out.stdout);
        assert!(out.status.success(), "{}", text(&out.stderr));
        assert!(said.starts_with(&format!("on {ranks} ranks, at 5 us per message and 20 GB/s")), "{said}");
        assert!(said.contains("scatter") && said.contains("gather") && said.contains("in total"), "{said}");
        assert!(said.contains("efficiency") && said.contains("limited by"), "{said}");
    }
    let machine = ["--dry-run-ranks", "512", "--machine", "h200x8-ib"];
    let out = run("convrot", &[&[SMALL, out_file.to_str().unwrap()], &machine[..]].concat());
    let said = text(&out.stdout);
    assert!(said.starts_with("on 512 ranks, 8 on each host, at 5 us per message and 45 GB/s between hosts"), "{said}");
    assert!(said.contains("between racks: ") && said.contains("between devices of a host: "), "{said}");
    assert!(said.contains("profile of NVIDIA H200"), "{said}");
    let out = run("convrot", &[SMALL, "o.png", "--dry-run-ranks", "2", "--machine", "a100"]);
    assert!(!out.status.success() && text(&out.stderr).contains("the device must be"), "{}", text(&out.stderr));
    assert!(entries(dir.path()).is_empty());
}

#[test]
fn a_dry_run_tells_memory_and_time_and_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let out_file = dir.path().join("smooth.png");
    let out = run("horus", &[SMALL, out_file.to_str().unwrap(), "luminance", "gauss", "2", "--dry-run"]);
    let said = text(&out.stdout);
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert!(said.contains(" as a whole; images may take ") && said.contains("computed as a whole"), "{said}");
    assert!(entries(dir.path()).is_empty());
}

/// A short run with additional options.
fn brief(input: &Path, output: &Path, options: &[&str]) -> Output {
    let mut args = vec![input.to_str().unwrap(), output.to_str().unwrap()];
    args.extend(["--theta-step", "90", "--sigma-u", "2", "--sigma-v", "1"]);
    args.extend(options);
    run("convrot", &args)
}

#[cfg(unix)]
#[test]
fn a_trace_overwrites_neither_result_nor_input_by_whatever_name() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::copy(SMALL, at("in.png")).unwrap();
    fs::create_dir(at("sub")).unwrap();
    fs::write(at("o.png"), "old").unwrap();
    fs::hard_link(at("in.png"), at("hard.png")).unwrap();
    std::os::unix::fs::symlink("in.png", at("soft.png")).unwrap();
    std::os::unix::fs::symlink("new.png", at("coming.png")).unwrap();
    let before = fs::read(at("in.png")).unwrap();
    for (output, trace, what) in [
        ("o.png", "./o.png", "result"),
        ("new.png", "sub/../new.png", "result"),
        ("new.png", "coming.png", "result"),
        ("coming.png", "new.png", "result"),
        ("o.png", "in.png", "input"),
        ("o.png", "sub/../in.png", "input"),
        ("o.png", "soft.png", "input"),
        ("o.png", "hard.png", "input"),
        ("in.png", "soft.png", "result"),
    ] {
        let args = [at("in.png"), at(output), at(trace)];
        let [input, output, trace] = args.each_ref().map(|p| p.to_str().unwrap());
        fails(
            &[input, output, "--trace", trace],
            dir.path(),
            &format!("the trace and the {what} must be different files"),
        );
    }
    assert_eq!((fs::read(at("in.png")).unwrap(), fs::read(at("o.png")).unwrap()), (before, b"old".to_vec()));
}

#[test]
fn the_result_may_replace_the_input() {
    let dir = tempfile::tempdir().unwrap();
    let (lines, both) = (dir.path().join("lines.png"), dir.path().join("both.png"));
    fs::copy(SMALL, &both).unwrap();
    assert!(brief(&both, &lines, &[]).status.success());
    assert!(brief(&both, &both, &[]).status.success());
    assert_eq!(fs::read(&both).unwrap(), fs::read(&lines).unwrap());
    assert_eq!(entries(dir.path()), ["both.png", "lines.png"]);
}

#[cfg(unix)]
#[test]
fn results_and_traces_go_into_pipes_and_devices() {
    use std::os::unix::fs::FileTypeExt;
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    for pipe in ["result.png", "trace"] {
        assert!(Command::new("mkfifo").arg(at(pipe)).status().unwrap().success());
    }
    let readers = ["result.png", "trace"].map(at).map(|pipe| std::thread::spawn(move || fs::read(pipe).unwrap()));
    let out = brief(Path::new(SMALL), &at("result.png"), &["--trace", at("trace").to_str().unwrap()]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let [result, trace] = readers.map(|reader| reader.join().unwrap());
    assert!(result.starts_with(b"\x89PNG") && trace.starts_with(b"{"));
    for pipe in ["result.png", "trace"] {
        assert!(fs::symlink_metadata(at(pipe)).unwrap().file_type().is_fifo(), "{pipe} was replaced");
    }
    // The trace is part of the output, in order.
    let out = brief(Path::new(SMALL), &at("o.png"), &["--quiet", "--trace", "/dev/stdout"]);
    assert!(out.status.success() && out.stdout.starts_with(b"{"), "{}", text(&out.stderr));
    let file = fs::File::create(at("log")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_convrot"));
    command.args([SMALL, at("o.png").to_str().unwrap(), "--sigma-u", "2", "--trace", "/dev/stdout"]);
    assert!(command.stdout(file).status().unwrap().success());
    let log = fs::read_to_string(at("log")).unwrap();
    assert!(log.starts_with('{') && log.contains("}convrot: ") && log.trim_end().ends_with("0..255"), "{log}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_plan_that_cannot_be_printed_is_a_failure_and_a_closed_pipe_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let out_file = dir.path().join("o.png");
    let command = |options: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_convrot"));
        command.args([SMALL, out_file.to_str().unwrap(), "--theta-step", "90", "--sigma-u", "2"]);
        command.args(options);
        command
    };
    for options in [&["--explain", "--quiet"][..], &["--explain"], &["--dry-run-ranks", "4"], &[]] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let out = command(options).stdout(full).output().unwrap();
        assert_eq!(out.status.code(), Some(1), "{options:?}");
        assert_eq!(text(&out.stderr), "error: cannot print to stdout: No space left on device (os error 28)\n");
    }
    // The reading end is closed.
    let (read, write) = std::io::pipe().unwrap();
    drop(read);
    let out = command(&["--explain"]).stdout(write).output().unwrap();
    assert!(out.status.success() && out.stderr.is_empty(), "{}", text(&out.stderr));
}

#[test]
fn pages_and_sizes_can_be_chosen() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("o.png").to_str().unwrap().to_owned();
    fails(&[SMALL, &out, "--page", "1"], dir.path(), "page 1 requested, but it has 1 (pages start at 0)");
    fails(&[SMALL, &out, "--max-pixels", "7679"], dir.path(), "96x80 pixels exceed the limit of 7679");
    assert!(brief(Path::new(SMALL), Path::new(&out), &["--page", "0", "--max-pixels", "7680"]).status.success());
}

#[cfg(unix)]
#[test]
fn what_has_no_end_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    fails(&["/dev/zero", &at("o.png")], dir.path(), "cannot read /dev/zero: it is a character device, not a file");
    fails(&[&at("pipe"), &at("o.png")], dir.path(), "it is a pipe, not a file");
}

#[cfg(target_os = "linux")]
#[test]
fn a_run_that_is_killed_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("o.png");
    // A naive run of all orientations takes seconds; kill it while it computes.
    let mut child = Command::new(env!("CARGO_BIN_EXE_convuv"))
        .args([concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/vessels.png"), out.to_str().unwrap()])
        .args(["--theta-step", "0.1", "--threads", "1"])
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert!(child.try_wait().unwrap().is_none(), "it is computing");
    assert!(entries(dir.path()).is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(entries(dir.path()).is_empty());
}
