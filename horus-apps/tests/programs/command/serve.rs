//! `horus serve` and `horus --server`: the same answers as the command, in one session, whatever other clients do.
#![cfg(target_os = "linux")]

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use super::{command, pictures};
use crate::files::{entries, picture, signal, text};

/// A server in a folder of pictures.
struct TestServer {
    folder: tempfile::TempDir,
    process: Child,
}

impl TestServer {
    fn new(options: &[&str]) -> TestServer {
        TestServer::start(pictures(), command(&[&["serve", "socket"], options].concat()))
    }

    /// Starts a server and waits until it serves.
    fn start(folder: tempfile::TempDir, mut server: Command) -> TestServer {
        server.current_dir(&folder).env("HORUS_DEVICE", "cpu").stdout(Stdio::piped());
        let log = File::create(folder.path().join("log")).unwrap();
        let mut process = server.stdin(Stdio::null()).stderr(log).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("serving at socket on CPU"), "{line}");
        TestServer { folder, process }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn socket(&self) -> PathBuf {
        self.path().join("socket")
    }

    /// A command that the server runs.
    fn command(&self, words: &[&str]) -> Command {
        let socket = self.socket();
        let mut command = command(&[&["--server", socket.to_str().unwrap()], words].concat());
        command.current_dir(&self.folder).stdin(Stdio::null());
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    #[track_caller]
    fn succeeds(&self, words: &[&str]) -> String {
        let out = self.run(words);
        assert!(out.status.success(), "{words:?}: {}", text(&out.stderr));
        text(&out.stdout)
    }

    #[track_caller]
    fn fails(&self, words: &[&str], status: i32, cause: &str) {
        let out = self.run(words);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(status), "{words:?}: {said}");
        assert!(said.starts_with("error: ") && said.contains(cause), "{words:?}: {said}");
    }

    /// The server still works.
    #[track_caller]
    fn works(&self) {
        assert_eq!(self.succeeds(&["grey.png", "max"]), "grey.png\t250\n");
    }

    /// Sends bytes, closes the connection for writing if nothing follows, and returns the answer.
    fn answer(&self, bytes: &[u8], ends: bool) -> Vec<u8> {
        let mut stream = UnixStream::connect(self.socket()).unwrap();
        // A server that refuses a request does not read all of it.
        let _ = stream.write_all(bytes);
        if ends {
            stream.shutdown(std::net::Shutdown::Write).unwrap();
        }
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer
    }

    /// Waits until this many clients are connected whose requests have arrived: each has a thread.
    fn waits_for_watchers(&self, count: usize) {
        let tasks = format!("/proc/{}/task", self.process.id());
        let name = |task: &String| fs::read_to_string(format!("{tasks}/{task}/comm")).unwrap_or_default();
        let start = Instant::now();
        while entries(Path::new(&tasks)).iter().filter(|task| name(task) == "horus-watch\n").count() != count {
            assert!(start.elapsed() < Duration::from_secs(60), "{count} clients");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Ends the server by a signal, and returns its log.
    fn end(&mut self, name: &str) -> String {
        signal(&self.process, name);
        assert_eq!(self.process.wait().unwrap().code(), Some(0), "{name}");
        assert!(!self.socket().exists());
        fs::read_to_string(self.path().join("log")).unwrap()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A request as bytes.
fn request(folder: &Path, words: &[&str]) -> Vec<u8> {
    let body: String = [folder.to_str().unwrap()].iter().chain(words).map(|word| format!("{word}\0")).collect();
    [&u32::try_from(body.len()).unwrap().to_be_bytes()[..], body.as_bytes()].concat()
}

#[test]
fn answers_are_those_of_the_command() {
    let server = TestServer::new(&[]);
    fs::create_dir(server.path().join("sub")).unwrap();
    for words in [
        "../grey.png o.png gauss 2 --quiet",
        "../colour.png o.tif luminance gauss 1.5 sobel --quiet",
        "../grey.png o.png sub @../dark.png --quiet",
        "../grey.png ../colour.png --out-dir o.d median 3 --quiet",
        "../grey.png ../wide.tif mean --json",
        "../grey.png - --format png gauss 1",
        "../grey.png /dev/stdout --format png gauss 1 --quiet",
        "../float.npy o.png clamp -2 3 --scaling none --quiet",
        "montage o.png ../grey.png ../colour.png --tile 32",
        "compare ../grey.png ../dark.png",
        "compare ../grey.png ../grey.png",
        "info ../grey.png --statistics",
        "help gauss",
        "info --help",
        "--version",
        "none.png o.png gauss 2",
        "../grey.png o.png gauss -1",
        "../grey.png o.png guass 1",
        "../grey.png o.png gauss 2 --quite",
        "compare ../grey.png",
        "../grey.png none.png mean",
        "../grey.png none/o.png gauss 1",
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let here = server.path().join("sub");
        let run = |mut command: Command| {
            // The summary of a picture on standard output has times.
            let words = if words.contains(&"-") { &["--quiet"][..] } else { &[] };
            let out = command.args(words).current_dir(&here).env("HORUS_DEVICE", "cpu").output().unwrap();
            let mut files = Vec::new();
            for name in entries(&here) {
                let path = here.join(&name);
                let contents = |path: &Path| (path.to_owned(), fs::read(path).unwrap());
                if path.is_dir() {
                    files.extend(entries(&path).iter().map(|name| contents(&path.join(name))));
                    fs::remove_dir_all(&path).unwrap();
                } else {
                    files.push(contents(&path));
                    fs::remove_file(&path).unwrap();
                }
            }
            (out.status.code(), text(&out.stderr), out.stdout, files)
        };
        let (direct, served) = (run(command(&words)), run(server.command(&words)));
        assert!(direct == served, "{words:?}: {:?} and {:?}", (direct.0, direct.1), (served.0, served.1));
    }
    server.works();
}

#[test]
fn standard_input_is_read_where_it_is_asked_for() {
    let server = TestServer::new(&[]);
    let piped = |words: &[&str], file: &str| {
        let mut command = server.command(words);
        command.stdin(File::open(server.path().join(file)).unwrap()).output().unwrap()
    };
    server.succeeds(&["grey.png", "o.png", "gauss", "2"]);
    let out = piped(&["-", "-", "--format", "png", "gauss", "2", "--quiet"], "grey.png");
    assert!(out.status.success() && out.stdout == fs::read(server.path().join("o.png")).unwrap());
    assert_eq!(text(&piped(&["-", "max"], "grey.png").stdout), "-\t250\n");
    fs::write(server.path().join("list"), "grey.png\ndark.png\n").unwrap();
    assert_eq!(text(&piped(&["--files-from", "-", "max"], "list").stdout), "grey.png\t250\ndark.png\t19\n");
    let wrong = piped(&["-", "max"], "list");
    assert!(text(&wrong.stderr).starts_with("error: cannot read stdin: "), "{}", text(&wrong.stderr));
    // Others do not wait for the input of a client.
    let mut slow = server.command(&["-", "max"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    server.works();
    slow.stdin.take().unwrap().write_all(&fs::read(server.path().join("dark.png")).unwrap()).unwrap();
    assert_eq!(text(&slow.wait_with_output().unwrap().stdout), "-\t19\n");
}

#[test]
fn the_second_picture_has_the_session_and_the_plan_of_the_first() {
    let mut server = TestServer::new(&["-v"]);
    let words = ["in.pgm", "out.pgm", "gauss", "2"];
    for seed in 0..3 {
        picture(&server.path().join("in.pgm"), (60, 70), seed);
        server.succeeds(&words);
        let served = fs::read(server.path().join("out.pgm")).unwrap();
        super::succeeds(server.path(), &words);
        assert!(served == fs::read(server.path().join("out.pgm")).unwrap(), "{seed}");
    }
    let log = server.end("TERM");
    let lines: Vec<&str> = log.lines().filter(|line| line.starts_with("info: request ")).collect();
    for (i, line) in lines.iter().enumerate() {
        let evaluations = if i == 0 { "1 evaluation".into() } else { format!("{} evaluations", i + 1) };
        assert!(line.contains(&format!("request {}: status 0 after ", i + 1)), "{log}");
        assert!(line.ends_with(&format!("; {evaluations} so far, 1 planned")), "{log}");
    }
    assert_eq!(lines.len(), 3, "{log}");
}

#[test]
fn a_run_can_be_observed() {
    let server = TestServer::new(&[]);
    let words = ["grey.png", "o.png", "gauss", "1"];
    for _ in 0..2 {
        let told = server.succeeds(&[&words[..], &["-v"]].concat());
        assert!(told.contains("wrote o.png") && told.contains("made ") && told.contains("a naive run makes"), "{told}");
        assert!(server.succeeds(&[&words[..], &["--explain", "--quiet"]].concat()).contains("launch"));
        let trace = server.succeeds(&[&words[..], &["--trace", "/dev/stdout", "--quiet"]].concat());
        assert!(trace.starts_with("{\"") && trace.contains("traceEvents"), "{trace}");
        server.succeeds(&[&words[..], &["--report", "r.html"]].concat());
        let report = fs::read_to_string(server.path().join("r.html")).unwrap();
        assert!(report.contains("horus grey.png o.png gauss 1 --report r.html"));
        fs::remove_file(server.path().join("r.html")).unwrap();
    }
    assert_eq!(server.succeeds(&[&words[..], &["--quiet"]].concat()), "");
}

#[test]
fn limits_of_memory_hold_and_images_of_a_request_are_dropped() {
    let mut limited = command(&["serve", "socket"]);
    limited.env("HORUS_HOST_MEMORY", "8M");
    let server = TestServer::start(pictures(), limited);
    for _ in 0..3 {
        server.succeeds(&["colour.png", "o.npy", "resize", "300", "300", "gauss", "2"]);
        let large = ["colour.png", "o.npy", "resize", "1500", "1500", "gauss", "2"];
        server.fails(&large, 1, "0 of the 8388608 bytes that HORUS_HOST_MEMORY allows are in use");
    }
}

#[test]
fn options_of_the_session_are_those_of_the_server() {
    let server = TestServer::new(&["--threads", "1"]);
    let words = |words: &'static [&str]| [&["grey.png", "o.png", "gauss", "1"], words].concat();
    server.succeeds(&words(&["--threads", "1"]));
    server.fails(&words(&["--threads", "2"]), 1, "--threads 2: the server was started with --threads 1");
    server.fails(&words(&["--device", "cuda"]), 1, "--device cuda: the server was started with no --device");
    server.fails(&["compare", "grey.png", "dark.png", "--mode", "lazy"], 2, "--mode lazy: the server was started with");
    server.fails(&words(&["--compare", "cpu"]), 1, "run it without a server");
    server.fails(&["profile", "grey.png", "o.png", "gauss", "1"], 1, "run it without a server");
    server.fails(&["serve", "other"], 1, "a server starts no other server");
    server.fails(&words(&["--server", "other"]), 2, "--server is given twice");
    server.fails(&words(&["--deadline", "0"]), 1, "deadline");
    server.works();
}

#[test]
fn clients_are_served_one_after_the_other() {
    let server = TestServer::new(&[]);
    std::thread::scope(|scope| {
        for i in 0..8 {
            let server = &server;
            scope.spawn(move || {
                let output = format!("o{i}.png");
                for _ in 0..3 {
                    server.succeeds(&["colour.png", &output, "luminance", "gauss", "1"]);
                    server.works();
                    server.fails(&["none.png", &output, "gauss", "1"], 1, "cannot read none.png");
                }
            });
        }
    });
    let results: Vec<_> = (0..8).map(|i| fs::read(server.path().join(format!("o{i}.png"))).unwrap()).collect();
    assert!(results.iter().all(|result| *result == results[0]));
}

#[test]
fn wrong_requests_are_told_and_harm_nothing() {
    let server = TestServer::new(&[]);
    let body = request(server.path(), &["grey.png", "max"]);
    for (bytes, ends, cause) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], false, "the request has 1195725856 bytes; the limit is 16777216"),
        (&[255; 100_000], false, "the limit is 16777216"),
        (b"\0\0", true, "the request ends within its length"),
        (&body[..body.len() - 1], true, "the request ends after "),
        (b"\0\0\0\x05/tmp!", false, "each ended by a zero byte"),
        (b"\0\0\0\x04tmp\0", false, "\"tmp\" is not absolute"),
        (b"\0\0\0\x0d/none/at/all\0", false, "cannot enter /none/at/all: No such file"),
    ] {
        let answer = server.answer(bytes, ends);
        let said = String::from_utf8_lossy(&answer);
        assert!(answer[0] == 2 && said.contains("error: ") && said.contains(cause), "{bytes:?}: {said:?}");
        assert!(answer.ends_with(&[3, 0, 0, 0, 1, 1]) || cause.starts_with("cannot"), "{said:?}");
    }
    assert!(server.answer(b"", true).is_empty());
    assert_eq!(server.answer(&body, false), b"\x01\0\0\0\x0dgrey.png\t250\n\x03\0\0\0\x01\0");
    server.works();
}

#[test]
fn clients_that_are_stuck_block_no_others() {
    let server = TestServer::new(&[]);
    let connect = || UnixStream::connect(server.socket()).unwrap();
    let _silent = connect();
    let mut half = connect();
    half.write_all(&[0, 0]).unwrap();
    // It never reads what is more than a socket holds.
    let mut deaf = connect();
    deaf.write_all(&request(server.path(), &["grey.png", "-", "--format", "npy", "resize", "1200", "1200"])).unwrap();
    server.works();
}

/// A request that waits for a list of names from a pipe keeps its turn.
#[test]
fn a_client_that_is_gone_cancels_its_request() {
    let server = TestServer::new(&["-v"]);
    let at = |name: &str| server.path().join(name);
    assert!(Command::new("mkfifo").arg(at("list")).status().unwrap().success());
    let mut client = server.command(&["--files-from", "list", "--out-dir", "out", "gauss", "1"]).spawn().unwrap();
    // Opening waits until the request reads it.
    let mut list = OpenOptions::new().write(true).open(at("list")).unwrap();
    let mut next = server.command(&["grey.png", "max"]).stdout(Stdio::piped()).spawn().unwrap();
    server.waits_for_watchers(2);
    client.kill().unwrap();
    client.wait().unwrap();
    server.waits_for_watchers(1);
    assert!(next.try_wait().unwrap().is_none(), "it waits for its turn");
    list.write_all(b"grey.png\ndark.png\n").unwrap();
    drop(list);
    assert_eq!(text(&next.wait_with_output().unwrap().stdout), "grey.png\t250\n");
    assert!(entries(&at("out")).is_empty(), "{:?}", entries(&at("out")));
    assert!(fs::read_to_string(at("log")).unwrap().contains("request 1: status 130 "));
    server.works();
}

#[test]
fn only_its_owner_may_use_the_socket() {
    let mut shell = Command::new("sh");
    shell.args(["-c", "umask 0; exec \"$0\" serve socket", env!("CARGO_BIN_EXE_horus")]);
    let server = TestServer::start(pictures(), shell);
    let found = fs::symlink_metadata(server.socket()).unwrap();
    assert!(found.file_type().is_socket());
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
    assert!(!entries(server.path()).iter().any(|name| name.starts_with('.')), "{:?}", entries(server.path()));
    server.works();
}

#[test]
fn a_socket_without_a_server_is_replaced() {
    let mut server = TestServer::new(&[]);
    let second = command(&["serve", "socket"]).current_dir(server.path()).output().unwrap();
    let said = text(&second.stderr);
    assert!(
        second.status.code() == Some(1) && said.contains("a server listens at ") && said.contains(" already"),
        "{said}"
    );
    server.works();
    server.process.kill().unwrap();
    server.process.wait().unwrap();
    assert!(server.socket().exists());
    server.fails(&["grey.png", "max"], 1, "no server at ");
    let again = command(&["serve", "socket", "--threads", "1"]);
    let folder = std::mem::replace(&mut server.folder, tempfile::tempdir().unwrap());
    let mut server = TestServer::start(folder, again);
    server.works();
    server.end("INT");
    server.fails(&["grey.png", "max"], 1, "No such file");
    fs::write(server.path().join("text"), "kept").unwrap();
    let wrong = command(&["serve", "text"]).current_dir(server.path()).output().unwrap();
    assert!(text(&wrong.stderr).contains("is not a socket, and is not overwritten"), "{}", text(&wrong.stderr));
    assert_eq!(fs::read(server.path().join("text")).unwrap(), b"kept");
}

#[test]
fn a_signal_cancels_what_runs() {
    let mut server = TestServer::new(&[]);
    let at = |name: &str| server.path().join(name);
    fs::create_dir(at("in")).unwrap();
    for i in 0..200 {
        picture(&at(&format!("in/{i:03}.pgm")), (700, 900), 0);
    }
    let mut client = server.command(&["in", "--out-dir", "out", "gauss", "3"]);
    let client = client.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    while !at("out").exists() || entries(&at("out")).is_empty() {
        std::thread::sleep(Duration::from_millis(1));
    }
    server.end("TERM");
    let run = client.wait_with_output().unwrap();
    let said = text(&run.stderr);
    assert_eq!(run.status.code(), Some(130), "{said}");
    assert!(said.starts_with("error: cancelled: ") && said.contains(" of 200 pictures remain"), "{said}");
}

/// The client of the documentation.
#[test]
fn any_language_can_be_a_client() {
    let server = TestServer::new(&[]);
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/command.md")).unwrap();
    let code = page.split_once("A client in Python:\n\n").unwrap().1;
    let code: String = code.lines().map(|line| format!("{}\n", line.strip_prefix("    ").unwrap_or(line))).collect();
    fs::write(server.path().join("client.py"), code).unwrap();
    let run = |words: &[&str], input: &str| {
        let mut python = Command::new("python3");
        python.arg("client.py").arg(server.socket()).args(words).current_dir(server.path());
        let out = python.stdin(File::open(server.path().join(input)).unwrap()).output().unwrap();
        (out.status.code(), text(&out.stdout), text(&out.stderr))
    };
    assert_eq!(run(&["grey.png", "max"], "dark.png"), (Some(0), "grey.png\t250\n".into(), String::new()));
    assert_eq!(run(&["-", "max"], "dark.png"), (Some(0), "-\t19\n".into(), String::new()));
    let (status, _, said) = run(&["none.png", "max"], "dark.png");
    assert!(status == Some(1) && said.starts_with("error: "), "{said}");
}
