//! Stores and pictures on a server, which is in this process and may fail.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use horus_core::image::Image;
use horus_core::io::{AnyImage, Compression, OpenOptions, SaveOptions};
use horus_core::session::Session;
use horus_zarr::{ZarrOptions, ZarrSaveOptions, describe, open, open_picture, save};

use super::{StoreFolder, builder, session};

/// What goes wrong with an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    Status(u16),
    /// The connection ends in the middle.
    Cut,
    /// A few bytes come at a time.
    Slow,
}

#[derive(Default)]
struct Behaviour {
    /// The faults of the next answers for a path; the last one remains if it is `true`.
    faults: HashMap<String, (Vec<Fault>, bool)>,
    /// Requests: the path and the range.
    requests: Vec<(String, String)>,
    sent: u64,
    ignores_ranges: bool,
    has_tags: bool,
    /// Answers wait until so many requests are open.
    together: usize,
    open: usize,
    most_open: usize,
}

/// Serves the files of a folder at a loopback address.
struct Server {
    address: String,
    behaviour: Arc<(Mutex<Behaviour>, Condvar)>,
    /// One test at a time: the cache of responses is one.
    _alone: MutexGuard<'static, ()>,
}

impl Server {
    fn of(folder: &Path) -> Server {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let behaviour: Arc<(Mutex<Behaviour>, Condvar)> = Arc::default();
        let (folder, of_thread) = (folder.to_owned(), Arc::clone(&behaviour));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (folder, behaviour) = (folder.clone(), Arc::clone(&of_thread));
                std::thread::spawn(move || answer(stream.unwrap(), &folder, &behaviour));
            }
        });
        Server { address, behaviour, _alone: alone }
    }

    fn url(&self, name: &str) -> String {
        format!("{}/{name}", self.address)
    }

    fn set(&self, change: impl FnOnce(&mut Behaviour)) {
        change(&mut self.behaviour.0.lock().unwrap());
    }

    fn fails(&self, path: &str, faults: &[Fault], always: bool) {
        self.set(|b| drop(b.faults.insert(path.into(), (faults.to_vec(), always))));
    }

    /// The requests for paths that contain this, since the last call.
    fn requests(&self, of: &str) -> Vec<(String, String)> {
        let requests = std::mem::take(&mut self.behaviour.0.lock().unwrap().requests);
        requests.into_iter().filter(|(path, _)| path.contains(of)).collect()
    }
}

/// Answers a request, and closes the connection.
fn answer(mut stream: TcpStream, folder: &Path, (behaviour, changed): &(Mutex<Behaviour>, Condvar)) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
    let Some(first) = lines.next() else { return };
    let path = first.split(' ').nth(1).unwrap().split('?').next().unwrap().trim_start_matches('/').to_owned();
    let headers: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let range = headers.iter().find_map(|line| line.to_ascii_lowercase().strip_prefix("range: ").map(str::to_owned));
    let mut state = behaviour.lock().unwrap();
    state.requests.push((path.clone(), range.clone().unwrap_or_default()));
    state.open += 1;
    state.most_open = state.most_open.max(state.open);
    changed.notify_all();
    if path.contains("/c/") {
        let enough = |state: &mut Behaviour| state.most_open < state.together;
        state = changed.wait_timeout_while(state, Duration::from_secs(20), enough).unwrap().0;
    }
    let fault = state.faults.get_mut(&path).and_then(|(faults, always)| match (&faults[..], *always) {
        ([last], true) => Some(*last),
        ([], _) => None,
        _ => Some(faults.remove(0)),
    });
    let (range, tag) = (range.filter(|_| !state.ignores_ranges), if state.has_tags { "ETag: \"1\"\r\n" } else { "" });
    drop(state);
    let head = |status: &str, bytes: usize| {
        format!(
            "HTTP/1.1 {status}\r\nContent-Length: {bytes}\r\n{tag}Last-Modified: Tue, 01 Dec 2026 00:00:00 GMT\r\nConnection: close\r\n"
        )
    };
    let (head, body) = match (fault, fs::read(folder.join(&path))) {
        (Some(Fault::Status(status)), _) => (head(&format!("{status} Failed"), 0), Vec::new()),
        (_, Err(_)) => (head("404 Not Found", 0), Vec::new()),
        (_, Ok(all)) => match range.as_deref().and_then(|range| range.strip_prefix("bytes=")?.split_once('-')) {
            None => (head("200 OK", all.len()), all),
            Some((from, to)) => {
                let from_end = from.is_empty();
                let number = |text: &str| text.parse::<usize>().unwrap_or(usize::MAX - 1);
                let start = if from_end { all.len().saturating_sub(number(to)) } else { number(from) };
                let end = if from_end { all.len() } else { (number(to) + 1).min(all.len()) };
                let of = format!("Content-Range: bytes {start}-{}/{}\r\n", end - 1, all.len());
                (head("206 Partial Content", end - start) + &of, all[start..end].to_vec())
            }
        },
    };
    let mut send = || {
        stream.write_all(format!("{head}\r\n").as_bytes())?;
        match fault {
            Some(Fault::Cut) => stream.write_all(&body[..body.len() / 2]),
            Some(Fault::Slow) => body.chunks(64).try_for_each(|bytes| {
                std::thread::sleep(Duration::from_millis(1));
                stream.write_all(bytes)
            }),
            _ => stream.write_all(&body),
        }
    };
    // A client that is gone is no concern of the server.
    let _sent = send();
    let mut state = behaviour.lock().unwrap();
    state.sent += body.len() as u64;
    state.open -= 1;
}

fn slope(session: &Session) -> Image<u16> {
    Image::from_fn(session, 300, 200, |y, x| (1 + y * 200 + x * 7) as u16)
}

fn opened(session: &Session, url: &str) -> Image<u16> {
    open(session, url, &ZarrOptions::default()).unwrap_or_else(|e| panic!("{e}")).convert()
}

fn failed(session: &Session, url: &str) -> String {
    let pixels = open(session, url, &ZarrOptions::default()).and_then(|image| image.convert::<u16>().to_vec());
    pixels.map(drop).expect_err("it fails").to_string()
}

#[test]
fn each_chunk_is_requested_once_and_several_at_a_time() {
    let (session, folder) = (session(), StoreFolder::new());
    let image = slope(&session);
    let expected = image.gauss(2.0).to_vec().unwrap();
    let server = Server::of(&folder.at("."));
    for (name, shard) in [("chunks.zarr", None), ("shards.zarr", Some([1, 64, 64]))] {
        let options = ZarrSaveOptions { chunk: [1, 32, 32], shard, sizes: 2, ..ZarrSaveOptions::default() };
        save(&image, folder.at(name), &options).unwrap();
        server.set(|b| (b.together, b.most_open) = (4, 0));
        server.requests("");
        let remote = opened(&session, &server.url(name));
        assert!(server.requests("").iter().all(|(path, _)| !path.contains("/c/")));
        let smooth = remote.gauss(2.0);
        assert_eq!(smooth.to_vec().unwrap(), expected, "{name}");
        let mut requests = server.requests("/c/");
        server.set(|b| assert!(b.most_open >= 4, "{} at a time", b.most_open));
        // A shard has an index in addition.
        let all = if shard.is_some() { 5 * 4 + 10 * 7 } else { 10 * 7 };
        assert_eq!(requests.len(), all, "{name}");
        requests.sort();
        requests.dedup();
        assert_eq!(requests.len(), all, "{name}");
        // What was sent is kept.
        assert_eq!(remote.crop(7, 9, 50, 60).to_vec().unwrap(), image.crop(7, 9, 50, 60).to_vec().unwrap());
        assert!(server.requests("").is_empty());
        // A part reads its chunks.
        let part = opened(&session, &server.url(name)).crop(33, 1, 30, 30).to_vec().unwrap();
        assert_eq!(part, image.crop(33, 1, 30, 30).to_vec().unwrap());
        assert_eq!(server.requests("/c/").len(), 1 + usize::from(shard.is_some()));
        let level = ZarrOptions { level: 1, ..ZarrOptions::default() };
        let small = open(&session, server.url(name), &level).unwrap();
        let local = open(&session, folder.at(name), &level).unwrap();
        assert_eq!(small.convert::<u16>().to_vec().unwrap(), local.convert::<u16>().to_vec().unwrap());
        assert_eq!(describe(server.url(name), &level).unwrap(), describe(folder.at(name), &level).unwrap());
    }
}

#[test]
fn stores_of_version_2_and_absent_chunks() {
    let goldens = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/goldens");
    let (session, server) = (session(), Server::of(&goldens));
    for (name, time) in [("ome-0.4.zarr", Some(1)), ("v2-zlib.zarr", None), ("absent.zarr", None)] {
        let options = ZarrOptions { time, ..ZarrOptions::default() };
        let read = |path: &Path| open(&session, path, &options).unwrap().convert::<f64>().to_vec().unwrap();
        assert_eq!(read(Path::new(&server.url(name))), read(&goldens.join(name)), "{name}");
    }
}

#[test]
fn requests_that_fail_are_repeated() {
    let (session, folder) = (session(), StoreFolder::new());
    let image = slope(&session);
    save(&image, folder.at("a.zarr"), &ZarrSaveOptions { chunk: [1, 100, 100], ..ZarrSaveOptions::default() }).unwrap();
    let server = Server::of(&folder.at("."));
    let expected = image.to_vec().unwrap();
    for has_tags in [false, true] {
        server.set(|b| b.has_tags = has_tags);
        server.fails("a.zarr/zarr.json", &[Fault::Status(503)], false);
        server.fails("a.zarr/0/c/0/0", &[Fault::Status(500), Fault::Status(500)], false);
        server.fails("a.zarr/0/c/1/0", &[Fault::Cut, Fault::Cut], false);
        server.fails("a.zarr/0/c/2/1", &[Fault::Cut, Fault::Status(500), Fault::Slow], false);
        assert_eq!(opened(&session, &server.url("a.zarr")).to_vec().unwrap(), expected);
        let requests = server.requests("");
        let count = |path: &str| requests.iter().filter(|(of, _)| of == path).count();
        assert_eq!([count("a.zarr/0/c/0/0"), count("a.zarr/0/c/1/0"), count("a.zarr/0/c/2/0")], [3, 3, 1]);
    }
}

#[test]
fn errors_name_the_url_and_the_cause() {
    let (session, folder) = (session(), StoreFolder::new());
    save(
        &slope(&session),
        folder.at("a.zarr"),
        &ZarrSaveOptions { chunk: [1, 100, 100], ..ZarrSaveOptions::default() },
    )
    .unwrap();
    let server = Server::of(&folder.at("."));
    let url = server.url("a.zarr");
    let is_told = |error: &str, parts: &[&str]| {
        assert!(error.starts_with("cannot read") && parts.iter().all(|part| error.contains(part)), "{error}");
    };
    let none = server.url("none.zarr");
    is_told(&failed(&session, &none), &[&none, "there is no zarr.json, .zarray or .zgroup"]);
    for (fault, cause) in [(Fault::Status(500), "500"), (Fault::Status(403), "403"), (Fault::Cut, "")] {
        server.requests("");
        server.fails("a.zarr/0/c/1/1", &[fault], true);
        is_told(&failed(&session, &url), &[&format!("chunk {url}/0/c/1/1: "), cause]);
        let requests = server.requests("a.zarr/0/c/1/1").len();
        assert_eq!(requests, if cause == "403" { 1 } else { 5 });
    }
    server.fails("a.zarr/zarr.json", &[Fault::Status(401)], true);
    is_told(&failed(&session, &url), &[&url, "its zarr.json: ", "401"]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let refused = format!("http://{}/a.zarr", listener.local_addr().unwrap());
    drop(listener);
    is_told(&failed(&session, &refused), &[&refused, "refused"]);
    let plain = url.replace("http:", "https:");
    is_told(&failed(&session, &plain), &[&plain, "tls"]);
    let error = save(&slope(&session), &url, &ZarrSaveOptions::default()).unwrap_err().to_string();
    assert!(error.starts_with("cannot write") && error.contains("servers are only read"), "{error}");
}

#[test]
fn the_cache_is_bounded_by_the_memory() {
    let folder = StoreFolder::new();
    // An eighth is less than the store.
    let session = builder(2).host_memory(1 << 20).build().unwrap();
    let whole = super::session();
    let noise = Image::from_fn(&whole, 1200, 1200, |y, x| ((y * 1200 + x) as u32).wrapping_mul(2_654_435_761) as u16);
    let options = ZarrSaveOptions { chunk: [1, 100, 100], ..ZarrSaveOptions::default() };
    save(&noise, folder.at("a.zarr"), &options).unwrap();
    let server = Server::of(&folder.at("."));
    let image = opened(&session, &server.url("a.zarr"));
    assert_eq!(image.max_value().get().unwrap(), noise.max_value().get().unwrap());
    assert_eq!(server.requests("/c/").len(), 144);
    assert_eq!(image.min_value().get().unwrap(), noise.min_value().get().unwrap());
    let again = server.requests("/c/").len();
    assert!(again > 100, "{again}");
}

#[test]
fn a_server_without_ranges_sends_whole_files() {
    let (session, folder) = (session(), StoreFolder::new());
    let image = slope(&session);
    let shards = ZarrSaveOptions { chunk: [1, 32, 32], shard: Some([1, 64, 64]), ..ZarrSaveOptions::default() };
    save(&image, folder.at("a.zarr"), &shards).unwrap();
    image.save(folder.at("a.tif")).unwrap();
    let server = Server::of(&folder.at("."));
    server.set(|b| b.ignores_ranges = true);
    let expected = image.to_vec().unwrap();
    assert_eq!(opened(&session, &server.url("a.zarr")).to_vec().unwrap(), expected);
    // The whole, after the range that was not sent.
    let of_first = server.requests("/c/0/0").len();
    assert!((1..=2).contains(&of_first), "{of_first}");
    let picture = open_picture(&session, server.url("a.tif"), &OpenOptions::default()).unwrap();
    assert_eq!(picture.convert::<u16>().to_vec().unwrap(), expected);
    assert_eq!(server.requests("a.tif").len(), 2);
}

#[test]
fn a_tile_of_a_picture_is_requested_once() {
    let (session, folder) = (session(), StoreFolder::new());
    let image = Image::from_fn(&session, 1500, 1600, |y, x| (y * x) as u32);
    let server = Server::of(&folder.at("."));
    for compression in [Compression::None, Compression::Deflate, Compression::Zstd] {
        let options = SaveOptions { tile: Some((256, 256)), sizes: 3, compression, ..SaveOptions::default() };
        let image = image.convert::<f32>();
        image.save_with(folder.at("a.tif"), &options).unwrap();
        let size = fs::metadata(folder.at("a.tif")).unwrap().len();
        let opened = |level| {
            let options = OpenOptions { level, ..OpenOptions::default() };
            open_picture(&session, server.url("a.tif"), &options).unwrap().convert::<f32>()
        };
        let remote = opened(0);
        server.set(|b| b.sent = 0);
        let part = remote.crop(700, 800, 50, 90);
        assert_eq!(part.to_vec().unwrap(), image.crop(700, 800, 50, 90).to_vec().unwrap());
        server.set(|b| assert!(b.sent < size / 4, "{compression:?}: {} of {size} bytes", b.sent));
        server.requests("");
        assert_eq!(remote.to_vec().unwrap(), image.to_vec().unwrap());
        let mut requests = server.requests("a.tif");
        let all = requests.len();
        requests.sort();
        requests.dedup();
        assert_eq!(requests.len(), all);
        let options = OpenOptions { level: 2, ..OpenOptions::default() };
        let local = AnyImage::open_with(&session, folder.at("a.tif"), &options).unwrap();
        assert_eq!(opened(2).to_vec().unwrap(), local.convert::<f32>().to_vec().unwrap());
    }
    image.convert::<u16>().save(folder.at("a.png")).unwrap();
    let picture = open_picture(&session, server.url("a.png?key=1"), &OpenOptions::default()).unwrap();
    assert_eq!(picture.convert::<u16>().to_vec().unwrap(), image.convert::<u16>().to_vec().unwrap());
    let told = |name: &str| open_picture(&session, server.url(name), &OpenOptions::default()).unwrap_err().to_string();
    let error = told("none.tif");
    assert!(error.contains(&server.url("none.tif")) && error.contains("404"), "{error}");
    fs::write(folder.at("text.tif"), "text").unwrap();
    assert!(told("text.tif").contains("not a PNG"), "{}", told("text.tif"));
    server.fails("a.tif", &[Fault::Status(500)], true);
    assert!(told("a.tif").contains("500"), "{}", told("a.tif"));
}
