//! Series of pictures on one rank: order, errors of single pictures, the same bytes as picture by
//! picture, bounds, ends.

use std::cell::Cell;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use horus_core::cpu::device::CpuDevice;
use horus_core::device::Device;
use horus_core::error::{Error, Result};
use horus_core::image::Image;
use horus_core::io::{AnyImage, OpenOptions, Picture, PixelSize, SaveOptions, Scaling, with_pixel_size};
use horus_core::ops::resize::Resampling;
use horus_core::session::Session;
use horus_core::shape::Axis;
use horus_testing::simulated::SimulatedDevice;

fn session(threads: usize) -> Session {
    Session::on(Box::new(CpuDevice::new(Some(threads)).unwrap())).build().unwrap()
}

/// Sessions on the host's memory and on a device with memory of its own.
fn sessions() -> Vec<Session> {
    let cpu = |n| CpuDevice::new(Some(n)).unwrap();
    let apart: Box<dyn Device> = Box::new(SimulatedDevice::new(cpu(2), usize::MAX / 2).requiring_preparation());
    let mut all: Vec<Session> = [1, 2, 5].into_iter().map(session).collect();
    all.push(Session::on(apart).build().unwrap());
    all
}

/// Pictures `0.pgm`, `1.pgm`, ... of these sizes in `dir`, all different.
fn pictures(dir: &Path, sizes: &[(usize, usize)]) -> Vec<PathBuf> {
    let session = session(1);
    let write = |(i, &(h, w)): (usize, &(usize, usize))| {
        let path = dir.join(format!("{i}.pgm"));
        let pixel = |y: usize, x: usize| ((y * 31 + x * 17 + i * 71) * (x + 3 * y + 1) % 251) as u8;
        Image::from_fn(&session, h, w, pixel).save(&path).unwrap();
        path
    };
    sizes.iter().enumerate().map(write).collect()
}

fn equal(dir: &Path, n: usize) -> Vec<PathBuf> {
    pictures(dir, &vec![(40, 33); n])
}

fn operation(picture: &AnyImage) -> Image<f32> {
    let smooth = picture.luminance().gauss(1.5);
    smooth.sobel(Axis::Columns).hypot(smooth.sobel(Axis::Rows))
}

const RANGE: SaveOptions = {
    let mut options = SaveOptions {
        depth: horus_core::io::Depth::Auto,
        scaling: Scaling::Auto,
        tile: None,
        compression: horus_core::io::Compression::None,
        quality: None,
        clipping: horus_core::io::Clipping::Warn,
        sizes: 1,
        nodata: None,
        resampling: None,
    };
    options.scaling = Scaling::Range;
    options
};

/// Names in `to` with the extension `png`.
fn named(to: &Path) -> impl Fn(&Path) -> PathBuf {
    let to = to.to_owned();
    move |path| to.join(path.file_name().unwrap()).with_extension("png")
}

fn entries(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn results_come_in_order_and_are_those_of_single_pictures() {
    let dir = tempfile::tempdir().unwrap();
    let sizes: Vec<_> = (0..17).map(|i| (5 + i * 7 % 40, 90 - i * 5)).collect();
    let paths = pictures(dir.path(), &sizes);
    let one = session(1);
    for session in sessions() {
        for ahead in [1, 2, 100] {
            let mut seen = 0;
            for (i, item) in session.series(&paths, operation).ahead(ahead).into_iter().enumerate() {
                let pixels = item.result.unwrap();
                assert_eq!((item.number, item.path.as_deref()), (i, Some(paths[i].as_path())));
                assert_eq!(item.picture.unwrap().0, pixels.shape());
                let single = operation(&AnyImage::open(&one, &paths[i]).unwrap()).to_vec().unwrap();
                assert!(pixels.iter().map(|v| v.to_bits()).eq(single.iter().map(|v| v.to_bits())), "{session:?} {i}");
                seen += 1;
            }
            assert_eq!(seen, paths.len());
        }
    }
}

#[test]
fn files_have_the_bytes_of_single_runs() {
    let dir = tempfile::tempdir().unwrap();
    let paths = pictures(dir.path(), &[(30, 50), (1, 1), (30, 50), (64, 64), (200, 3)]);
    let single = tempfile::tempdir().unwrap();
    let scales: Vec<_> = paths
        .iter()
        .map(|path| {
            let image = operation(&AnyImage::open(&session(1), path).unwrap());
            image.save_with(named(single.path())(path), &RANGE).unwrap()
        })
        .collect();
    for session in sessions() {
        let out = tempfile::tempdir().unwrap();
        let saved = session.series(&paths, operation).save(named(out.path()), &RANGE).all().unwrap();
        assert_eq!(saved.iter().map(|s| s.scale).collect::<Vec<_>>(), scales);
        assert_eq!(entries(out.path()), entries(single.path()));
        for name in entries(out.path()) {
            assert!(
                fs::read(out.path().join(&name)).unwrap() == fs::read(single.path().join(&name)).unwrap(),
                "{session:?}: {name}"
            );
        }
    }
}

#[test]
fn a_picture_that_fails_is_told_in_its_place_and_the_others_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut paths = pictures(dir.path(), &[(20, 20), (20, 21), (20, 20), (20, 20), (20, 20), (20, 20), (20, 20)]);
    let whole = fs::read(&paths[2]).unwrap();
    fs::write(&paths[2], &whole[..whole.len() / 2]).unwrap();
    paths[3] = dir.path().join("missing.png");
    fs::write(&paths[4], "no picture").unwrap();
    for session in sessions() {
        let out = tempfile::tempdir().unwrap();
        // One does not fit the operation, one the format.
        let background = |p: &AnyImage| {
            let image = p.luminance();
            let mask = Image::<f32>::zeros(image.session(), (20, 20));
            image - mask
        };
        let name = |path: &Path| {
            let name = named(out.path())(path);
            if path == paths[5] { name.with_extension("gif") } else { name }
        };
        let items: Vec<_> = session.series(&paths, background).save(name, &RANGE).collect();
        let said: Vec<String> =
            items.iter().map(|i| i.result.as_ref().map_or_else(ToString::to_string, |_| String::new())).collect();
        assert_eq!(items.iter().map(|i| i.number).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6]);
        for (i, cause) in ["", "differ in size", "2.pgm", "missing.png", "not a PNG", "unknown extension .gif", ""]
            .into_iter()
            .enumerate()
        {
            assert!(said[i].contains(cause) && said[i].is_empty() == cause.is_empty(), "{i}: {}", said[i]);
        }
        assert_eq!(entries(out.path()), ["0.png", "6.png"]);
        assert_eq!(items[1].picture.unwrap().0.width, 21, "it was read");
        assert_eq!(items[3].picture, None);
        // A failure leaves nothing behind that a later read would meet.
        session.evaluate().unwrap();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_fails_its_picture_alone() {
    let dir = tempfile::tempdir().unwrap();
    let paths = equal(dir.path(), 4);
    let out = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/dev/full", out.path().join("1.png")).unwrap();
    for session in sessions() {
        let items: Vec<_> = session.series(&paths, operation).save(named(out.path()), &RANGE).collect();
        let failed: Vec<_> = items.iter().filter(|i| i.result.is_err()).map(|i| i.number).collect();
        assert_eq!(failed, [1]);
        let message = items[1].result.as_ref().unwrap_err().to_string();
        assert!(message.contains("cannot write") && message.contains("No space left"), "{message}");
        assert_eq!(entries(out.path()), ["0.png", "1.png", "2.png", "3.png"]);
    }
}

#[test]
fn frames_of_equal_kind_share_a_plan() {
    let dir = tempfile::tempdir().unwrap();
    let paths = equal(dir.path(), 6);
    for session in sessions() {
        let out = tempfile::tempdir().unwrap();
        session.series(&paths, operation).save(named(out.path()), &RANGE).all().unwrap();
        let stats = session.stats();
        assert_eq!((stats.evaluations, stats.planned), (6, 1), "{session:?}");
    }
}

#[test]
fn pictures_under_way_are_bounded_in_number_and_in_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let paths = equal(dir.path(), 30);
    const PICTURE: usize = 40 * 33;
    for session in sessions() {
        for (ahead, memory, most) in
            [(1, usize::MAX, 1), (4, usize::MAX, 4), (100, 1, 2), (100, 10 * PICTURE, 10), (100, usize::MAX, 30)]
        {
            let taken = Cell::new(0usize);
            let inputs = paths.iter().inspect(|_| taken.set(taken.get() + 1));
            let mut done = 0;
            let mut peak = 0;
            // Results are bytes, too: as large as the pictures. Two are read before the size of one
            // is known.
            let series = session.series(inputs, |p| p.convert::<u8>() / 2).ahead(ahead).memory(memory);
            for item in series {
                item.result.unwrap();
                peak = peak.max(taken.get() - done);
                done += 1;
            }
            assert_eq!(done, 30);
            assert!(peak <= most, "{peak} of {most} pictures under way, {session:?}");
            assert!(peak >= most.min(4) - usize::from(memory == 1), "{peak} pictures under way at most");
        }
    }
}

#[test]
fn pictures_of_the_program_are_named_by_their_number() {
    let dir = tempfile::tempdir().unwrap();
    let paths = equal(dir.path(), 3);
    let out = tempfile::tempdir().unwrap();
    let session = session(2);
    let open = |path: &PathBuf| Picture::open(path, &OpenOptions::default());
    let frames = [open(&paths[0]), open(&paths[1]), Err(Error::Config("the camera fell".into())), open(&paths[2])];
    let name = |number: &Path| out.path().join(number).with_extension("pgm");
    let items: Vec<_> = session.series(frames, |p| p.convert::<u8>()).save(name, &SaveOptions::default()).collect();
    assert!(items[2].result.as_ref().unwrap_err().to_string().contains("the camera fell"));
    assert_eq!(entries(out.path()), ["000000.pgm", "000001.pgm", "000003.pgm"]);
    assert_eq!(fs::read(out.path().join("000003.pgm")).unwrap(), fs::read(&paths[2]).unwrap());
    // Bytes of files, with names of their own.
    let bytes = paths.iter().map(|p| horus_core::series::Input::from(fs::read(p).unwrap()).named(p));
    let named = |path: &Path| out.path().join("named").with_extension("x").with_file_name(path.file_name().unwrap());
    session.series(bytes, |p| p.convert::<u8>()).save(named, &SaveOptions::default()).all().unwrap();
    assert_eq!(fs::read(out.path().join("1.pgm")).unwrap(), fs::read(&paths[1]).unwrap());
}

#[test]
fn leaving_early_leaves_whole_files_only() {
    let dir = tempfile::tempdir().unwrap();
    let paths = pictures(dir.path(), &vec![(300, 400); 24]);
    for session in sessions() {
        let out = tempfile::tempdir().unwrap();
        let start = Instant::now();
        let mut series = session.series(&paths, operation).save(named(out.path()), &RANGE);
        series.by_ref().take(3).for_each(|item| assert!(item.result.is_ok()));
        drop(series);
        assert!(start.elapsed() < Duration::from_secs(60));
        let files = entries(out.path());
        assert!(files.len() >= 3 && files.len() < 24, "{files:?}");
        for file in files {
            assert!(!file.starts_with(".horus-"), "{file}");
            Picture::open(out.path().join(&file), &OpenOptions::default()).unwrap();
        }
        // One that never began reads nothing.
        drop(session.series([dir.path().join("none")], operation).into_iter());
        // The session remains usable.
        assert!(operation(&AnyImage::open(&session, &paths[0]).unwrap()).sum().get().unwrap() > 0.0);
    }
}

#[test]
fn a_panic_of_the_operation_goes_through() {
    let dir = tempfile::tempdir().unwrap();
    let paths = equal(dir.path(), 9);
    for session in sessions() {
        let out = tempfile::tempdir().unwrap();
        let calls = Cell::new(0);
        let operation = |picture: &AnyImage| {
            calls.set(calls.get() + 1);
            assert!(calls.get() < 5, "the fifth is unlucky");
            operation(picture)
        };
        let run = AssertUnwindSafe(|| session.series(&paths, operation).save(named(out.path()), &RANGE).all());
        let panic = catch_unwind(run).unwrap_err();
        assert!(panic.downcast_ref::<&str>().is_some_and(|m| m.contains("unlucky")));
        assert!(entries(out.path()).iter().all(|f| !f.starts_with(".horus-")));
        assert!(session.open(&paths[0]).unwrap().luminance().sum().get().unwrap() > 0.0);
    }
}

#[test]
fn cancelling_ends_a_series_with_its_error() {
    let dir = tempfile::tempdir().unwrap();
    let paths = equal(dir.path(), 12);
    for session in sessions() {
        let out = tempfile::tempdir().unwrap();
        let canceller = session.canceller();
        let calls = Cell::new(0);
        let operation = |picture: &AnyImage| {
            calls.set(calls.get() + 1);
            if calls.get() == 6 {
                canceller.cancel();
            }
            operation(picture)
        };
        let items: Vec<_> = session.series(&paths, operation).save(named(out.path()), &RANGE).collect();
        assert_eq!(items.len(), 6);
        assert!(items[..5].iter().all(|i| i.result.is_ok()));
        assert!(matches!(items[5].result, Err(Error::Cancelled(_))));
        assert_eq!(entries(out.path()).len(), 5);
        canceller.clear();
        assert_eq!(session.series(&paths, |p| p.luminance()).into_iter().filter(|i| i.result.is_ok()).count(), 12);
        // A deadline that has passed lets nothing begin.
        session.set_deadline(Some(Instant::now()));
        let items: Vec<Result<_>> = session.series(&paths, |p| p.luminance()).into_iter().map(|i| i.result).collect();
        assert!(items.len() == 1 && items[0].as_ref().unwrap_err().to_string().contains("deadline"));
    }
}

#[test]
fn a_picture_that_the_device_has_no_room_for_fails_alone() {
    let dir = tempfile::tempdir().unwrap();
    let paths = pictures(dir.path(), &[(64, 64), (64, 64), (600, 600), (64, 64), (64, 64)]);
    let small = SimulatedDevice::new(CpuDevice::new(Some(2)).unwrap(), 600_000);
    let session = Session::on(Box::new(small)).build().unwrap();
    assert!(session.series(&paths, operation).into_iter().all(|item| item.result.is_ok()), "by regions");
    let product = |picture: &AnyImage| {
        let grey = picture.luminance();
        grey.matmul(&grey) // all of the second for any row
    };
    let results: Vec<_> = session.series(&paths, product).into_iter().map(|i| i.result).collect();
    assert!(results[2].as_ref().unwrap_err().to_string().contains("out of memory"));
    assert_eq!(results.iter().filter(|r| r.is_ok()).count(), 4);
}

#[test]
fn no_pictures_are_a_series() {
    let session = session(2);
    assert_eq!(session.series(Vec::<PathBuf>::new(), operation).into_iter().count(), 0);
    assert!(session.series(Vec::<PathBuf>::new(), operation).save(|p| p.to_owned(), &RANGE).all().unwrap().is_empty());
}

#[test]
fn each_picture_has_its_own_size_of_pixels() {
    let dir = tempfile::tempdir().unwrap();
    let side = |i: usize| 0.5 * 2f64.powi(i as i32);
    let first = session(1);
    let paths: Vec<PathBuf> = (0..4).map(|i| dir.path().join(format!("{i}.png"))).collect();
    for (i, path) in paths.iter().enumerate() {
        let image = Image::from_fn(&first, 20, 30, |y, x| (y * x + i) as u8);
        // The last has none.
        let size = PixelSize::of([None, Some(side(i)), Some(side(i))]).filter(|_| i < 3);
        with_pixel_size(&image, size).save(path).unwrap();
    }
    for session in sessions() {
        for once in [false, true] {
            let name = |path: &Path| path.with_extension("tif");
            let half = |image: &AnyImage| image.convert::<u8>().resize(10, 15, Resampling::Area);
            let series = session.series(&paths, half);
            let series = if once { series.recorded_once() } else { series };
            for (i, saved) in series.save(name, &SaveOptions::default()).enumerate() {
                let saved = AnyImage::open(&first, saved.result.unwrap().path).unwrap();
                let told = saved.pixel_size().map(|size| (size.rows, size.columns));
                assert_eq!(told, (i < 3).then_some((2.0 * side(i), 2.0 * side(i))), "{i}, once: {once}");
            }
        }
    }
}
