//! Special files: pipes, devices, sockets, links, and the input file itself.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::error::Result;
use horus_core::image::Image;
use horus_core::io::FileTarget;
use horus_core::session::Session;

use crate::formats::AT_ONCE;
use crate::{TestFolder, refused, session};

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo").success());
}

#[test]
fn what_is_no_file_is_not_read() {
    let (s, folder) = (session(), TestFolder::new());
    fifo(&folder.at("pipe.png"));
    symlink("pipe.png", folder.at("link.png")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(folder.at("socket.png")).unwrap();
    symlink("/dev/zero", folder.at("zero.png")).unwrap();
    symlink("ring.png", folder.at("ring.png")).unwrap();
    let cases = [
        (folder.at("pipe.png"), "it is a pipe, not a file"),
        (folder.at("link.png"), "it is a pipe, not a file"),
        (folder.at("socket.png"), "it is a socket, not a file"),
        ("/dev/zero".into(), "it is a character device, not a file"),
        (folder.at("zero.png"), "it is a character device, not a file"),
        (folder.at("."), "it is a directory, not a file"),
        (folder.at("ring.png"), "symbolic link"),
        (folder.at("none.png"), "No such file"),
        (folder.put("empty.png", b""), "the file is empty"),
    ];
    let started = Instant::now();
    for (path, cause) in cases {
        let told = refused(s.open(&path));
        assert!(told.contains(cause), "{}: {told}", path.display());
    }
    assert!(started.elapsed() < AT_ONCE);
}

#[test]
fn every_rank_is_told_of_what_is_no_file() {
    let folder = TestFolder::new();
    fifo(&folder.at("pipe.png"));
    let told = ThreadComm::run(3, |comm| {
        let device = CpuDevice::new(Some(1)).expect("a CPU");
        let s = Session::on(Box::new(device)).communicator(Arc::new(comm)).build().expect("a session");
        refused(s.open(folder.at("pipe.png")))
    });
    assert_eq!(told, ["it is a pipe, not a file"; 3]);
}

#[test]
fn pipes_and_devices_are_written_into_and_stay() -> Result<()> {
    let (s, folder) = (session(), TestFolder::new());
    let image = Image::from_fn(&s, 9, 8, |y, x| (y * 8 + x) as u8);
    // The pipe comes first: if it is replaced, the test ends before it reaches the machine's
    // devices.
    fifo(&folder.at("pipe"));
    for name in ["link.png", "link.tif", "link.npy"] {
        symlink("pipe", folder.at(name)).unwrap();
        let pipe = folder.at("pipe");
        let reader = std::thread::spawn(move || fs::read(pipe).unwrap());
        image.save(folder.at(name))?;
        assert!(fs::metadata(folder.at("pipe")).unwrap().file_type().is_fifo());
        let read = folder.put(&format!("read-{name}"), &reader.join().unwrap());
        assert_eq!(Image::<u8>::open(&s, read)?.to_vec()?, image.to_vec()?);
    }
    symlink("/dev/null", folder.at("null.png")).unwrap();
    image.save(folder.at("null.png"))?;
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    assert!(folder.at("null.png").is_symlink());
    symlink("/dev/full", folder.at("full.png")).unwrap();
    assert!(image.save(folder.at("full.png")).expect_err("it is full").to_string().contains("No space left"));
    assert!(folder.names().iter().all(|name| !name.starts_with('.')), "{:?}", folder.names());
    Ok(())
}

#[test]
fn folders_and_sockets_are_not_written() {
    let (s, folder) = (session(), TestFolder::new());
    let image = Image::<u8>::zeros(&s, (3, 3));
    fs::create_dir(folder.at("folder.png")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(folder.at("socket.png")).unwrap();
    for (name, cause) in [("folder.png", "it is a folder"), ("socket.png", "it is a socket, which is not overwritten")]
    {
        let told = image.save(folder.at(name)).expect_err(name).to_string();
        assert!(told.ends_with(cause), "{told}");
    }
    assert_eq!((folder.names().len(), s.stats().evaluations), (2, 0));
}

#[test]
fn descriptors_are_written_through() {
    // Neither a file of this name in the folder of descriptors, nor one beside the target file.
    let folder = TestFolder::new();
    let file = fs::File::create(folder.at("open")).unwrap();
    let path = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
    FileTarget::new(Path::new(&path)).unwrap().fill(|to| to.write_all(b"through").map_err(|e| e.to_string())).unwrap();
    assert_eq!(fs::read(folder.at("open")).unwrap(), b"through");
    assert_eq!(file.metadata().unwrap().len(), 7, "the file that is open is the file that was written");
}

#[test]
fn the_file_that_was_read_can_be_written() -> Result<()> {
    let (s, folder) = (session(), TestFolder::new());
    let path = folder.at("in.png");
    let image = Image::from_fn(&s, 6, 5, |y, x| (y * 5 + x) as u8);
    image.save(&path)?;
    let read = Image::<u8>::open(&s, &path)?;
    (&read + 100).save(&path)?;
    assert_eq!(Image::<u8>::open(&s, &path)?.to_vec()?, (100..130).collect::<Vec<u8>>());
    // The image read stays unchanged.
    assert_eq!(read.to_vec()?, image.to_vec()?);
    // A failure while writing leaves the input unchanged.
    let before = fs::read(&path).unwrap();
    let failed = FileTarget::new(&path).unwrap().fill(|to| {
        to.write_all(b"half").unwrap();
        Err("no space".into())
    });
    assert_eq!((failed, fs::read(&path).unwrap()), (Err("no space".into()), before));
    assert_eq!(folder.names(), ["in.png"]);
    Ok(())
}

#[test]
fn mode_and_owner_stay_and_hard_links_part() -> Result<()> {
    let (s, folder) = (session(), TestFolder::new());
    let path = folder.put("a.png", b"old");
    fs::hard_link(&path, folder.at("other.png")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o604)).unwrap();
    // The test changes the owner if it is permitted to; otherwise it keeps the present one.
    let _ = std::os::unix::fs::chown(&path, Some(4242), Some(2424));
    let before = fs::metadata(&path).unwrap();
    Image::<u8>::zeros(&s, (3, 3)).save(&path)?;
    let after = fs::metadata(&path).unwrap();
    assert_eq!((after.mode(), after.uid(), after.gid()), (before.mode(), before.uid(), before.gid()));
    assert_ne!((after.ino(), after.len()), (before.ino(), before.len()));
    assert_eq!(fs::read(folder.at("other.png")).unwrap(), b"old");
    Ok(())
}

#[test]
fn nothing_lies_beside_the_target_while_it_is_computed() -> Result<()> {
    let folder = Arc::new(TestFolder::new());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let device = CpuDevice::new(Some(1))?;
    let s = {
        let (folder, seen) = (Arc::clone(&folder), Arc::clone(&seen));
        Session::on(Box::new(device)).observer(move |_| seen.lock().unwrap().push(folder.names())).build()?
    };
    let image = Image::from_fn(&s, 30, 30, |y, x| (y * x) as f32 / 900.0);
    image.gauss(2.0).save(folder.at("a.png"))?;
    let seen = seen.lock().unwrap();
    assert!(!seen.is_empty() && seen.iter().all(Vec::is_empty), "{seen:?}");
    assert_eq!(folder.names(), ["a.png"]);
    Ok(())
}
