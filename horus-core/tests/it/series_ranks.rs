//! Series of pictures on several ranks: in strips, and distributed.

use std::cell::{Cell, RefCell};
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use horus_core::comm::Communicator;
use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::image::Image;
use horus_core::io::{AnyImage, OpenOptions, Picture, SaveOptions, Scaling};
use horus_core::series::{DEALT, Input};
use horus_core::session::Session;
use horus_core::shape::Axis;

fn session(comm: ThreadComm) -> Session {
    let device = Box::new(CpuDevice::new(Some(1)).unwrap());
    Session::on(device).communicator(Arc::new(comm)).build().unwrap()
}

fn alone() -> Session {
    Session::on(Box::new(CpuDevice::new(Some(1)).unwrap())).build().unwrap()
}

fn pictures(dir: &Path, sizes: &[(usize, usize)]) -> Vec<PathBuf> {
    let session = alone();
    let write = |(i, &(h, w)): (usize, &(usize, usize))| {
        let path = dir.join(format!("{i}.pgm"));
        Image::from_fn(&session, h, w, |y, x| ((y * 31 + x * 17 + i * 71) * (x + 3 * y + 1) % 251) as u8)
            .save(&path)
            .unwrap();
        path
    };
    sizes.iter().enumerate().map(write).collect()
}

fn operation(picture: &AnyImage) -> Image<f32> {
    let smooth = picture.luminance().gauss(1.5);
    smooth.sobel(Axis::Columns).hypot(smooth.sobel(Axis::Rows))
}

fn range() -> SaveOptions {
    SaveOptions { scaling: Scaling::Range, ..SaveOptions::default() }
}

fn named(to: &Path) -> impl Fn(&Path) -> PathBuf {
    let to = to.to_owned();
    move |path| to.join(path.file_name().unwrap()).with_extension("png")
}

fn contents(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|p| (p.file_name().unwrap().into(), fs::read(&p).unwrap())).collect()
}

#[test]
fn pixels_are_the_same_on_any_number_of_ranks() {
    let dir = tempfile::tempdir().unwrap();
    let paths = pictures(dir.path(), &[(40, 33), (7, 60), (40, 33), (1, 1), (50, 20), (40, 33), (40, 33)]);
    let one: Vec<Vec<u32>> = alone()
        .series(&paths, operation)
        .into_iter()
        .map(|i| i.result.unwrap().iter().map(|v| v.to_bits()).collect())
        .collect();
    for ranks in 1..=5 {
        let all = ThreadComm::run(ranks, |comm| {
            let session = session(comm);
            let own = |path: &PathBuf| -> Input {
                // Every second picture is made by the program, on every rank.
                let number: usize = path.file_stem().unwrap().to_str().unwrap().parse().unwrap();
                if number.is_multiple_of(2) { path.into() } else { Picture::open(path, &OpenOptions::default()).into() }
            };
            let mut sums = 0.0;
            let mut results: Vec<Vec<u32>> = Vec::new();
            for item in session.series(paths.iter().map(own), operation) {
                let pixels = item.result.unwrap();
                results.push(pixels.iter().map(|v| v.to_bits()).collect());
                // All ranks evaluate the program's own computations between the pictures at the
                // same place.
                sums += session.open(&paths[0]).unwrap().luminance().sum().get().unwrap();
            }
            assert!(sums > 0.0);
            results
        });
        assert!(all.iter().all(|results| *results == one), "{ranks} ranks");
    }
}

/// Small pictures, which are distributed, and large ones, which are not.
#[test]
fn files_are_the_same_on_any_number_of_ranks_dealt_or_in_strips() {
    let small = vec![(40, 33), (7, 60), (40, 33), (1, 1), (50, 20), (40, 33), (40, 33)];
    let large = vec![(DEALT / 1024, 1024), (30, 30)];
    for (sizes, dealt) in [(small, true), (large, false)] {
        let dir = tempfile::tempdir().unwrap();
        let mut paths = pictures(dir.path(), &sizes);
        paths.insert(1, dir.path().join("missing.png"));
        fs::write(dir.path().join("text.png"), "no picture").unwrap();
        paths.push(dir.path().join("text.png"));
        let one = tempfile::tempdir().unwrap();
        let save = |session: &Session, out: &Path| -> Vec<_> {
            let options = range();
            let items = session.series(&paths, operation).save(named(out), &options);
            let name = |p: &Path| p.file_name().unwrap().to_owned();
            items
                .map(|i| {
                    let result = i.result.map(|s| (name(&s.path), s.scale)).map_err(|e| e.to_string());
                    (i.number, i.path, i.picture, result)
                })
                .collect()
        };
        let expected = save(&alone(), one.path());
        assert_eq!(expected.iter().filter(|(.., r)| r.is_ok()).count(), sizes.len());
        for ranks in 2..=5 {
            let out = tempfile::tempdir().unwrap();
            let told = ThreadComm::run(ranks, |comm| {
                let session = session(comm);
                let told = save(&session, out.path());
                (told, session.stats().evaluations)
            });
            assert!(told.iter().all(|(told, _)| *told == expected), "{ranks} ranks");
            let evaluations: usize = told.iter().map(|(_, evaluations)| evaluations).sum();
            let times = if dealt { 1 } else { ranks };
            assert_eq!(evaluations, times * sizes.len(), "all ranks evaluate each unless pictures are dealt");
            assert!(contents(out.path()) == contents(one.path()), "{ranks} ranks");
        }
    }
}

#[test]
fn with_one_ahead_the_result_of_a_frame_is_yielded_before_the_next_is_taken() {
    fn camera(taken: &Cell<usize>) -> impl Iterator<Item = Vec<u8>> {
        taken.set(0);
        (0..6).map(move |_| {
            taken.set(taken.get() + 1);
            b"P5\n3 2\n255\n\x00\x10\x20\x30\x40\x50".to_vec()
        })
    }
    let out = tempfile::tempdir().unwrap();
    for ranks in 1..=3 {
        ThreadComm::run(ranks, |comm| {
            let session = session(comm);
            let taken = Cell::new(0);
            for (number, item) in session.series(camera(&taken), operation).ahead(1).into_iter().enumerate() {
                item.result.unwrap();
                assert_eq!(taken.get(), number + 1, "{ranks} ranks");
            }
            let saved = session.series(camera(&taken), operation).ahead(1).save(named(out.path()), &range());
            for (number, item) in saved.enumerate() {
                assert!(item.result.unwrap().path.exists());
                assert_eq!(taken.get(), number + 1, "{ranks} ranks, saved");
            }
            assert_eq!(taken.get(), 6);
        });
    }
}

#[test]
fn dealt_pictures_are_traced_and_told_as_they_are_done() {
    let dir = tempfile::tempdir().unwrap();
    let paths = pictures(dir.path(), &[(20, 20); 7]);
    let out = tempfile::tempdir().unwrap();
    let told = ThreadComm::run(3, |comm| {
        let rank = comm.rank();
        let device = Box::new(CpuDevice::new(Some(1)).unwrap());
        let session = Session::on(device).communicator(Arc::new(comm)).trace(true).build().unwrap();
        let done: Rc<RefCell<Vec<usize>>> = Rc::default();
        let note = Rc::clone(&done);
        let series = session.series(&paths, operation).save(named(out.path()), &range());
        let mut series = series.observe(move |item| note.borrow_mut().push(item.number));
        assert_eq!(series.next().unwrap().number, 0);
        assert_eq!(*done.borrow(), (rank..7).step_by(3).collect::<Vec<_>>(), "before the first is yielded");
        assert_eq!(series.count(), 6);
        assert!(session.times().total() > std::time::Duration::ZERO);
        session.trace_json().unwrap()
    });
    let trace: serde_json::Value = serde_json::from_str(told[0].as_ref().unwrap()).unwrap();
    for (rank, pictures) in [(0, 3), (1, 2), (2, 2)] {
        let events = trace["traceEvents"].as_array().unwrap().iter().filter(|e| e["pid"] == rank);
        let plans = events.filter(|e| e["cat"] == "planning");
        assert!(plans.map(|e| e["ts"].as_f64().unwrap()).filter(|ts| *ts >= 0.0).count() == pictures, "rank {rank}");
    }
}

#[test]
fn what_needs_an_image_of_all_ranks_is_not_dealt() {
    let dir = tempfile::tempdir().unwrap();
    let paths = pictures(dir.path(), &[(20, 20); 4]);
    let out = tempfile::tempdir().unwrap();
    ThreadComm::run(3, |comm| {
        let session = session(comm);
        let background = Image::<f32>::constant(&session, (20, 20), 0.25);
        let operation = |picture: &AnyImage| picture.luminance().absdiff(&background);
        let saved = session.series(&paths, operation).save(named(out.path()), &range()).all().unwrap();
        assert_eq!((saved.len(), session.stats().evaluations), (4, 4));
    });
    assert_eq!(contents(out.path()).len(), 4);
}

#[test]
fn a_deadline_ends_dealt_pictures_on_all_ranks() {
    let dir = tempfile::tempdir().unwrap();
    let paths = pictures(dir.path(), &[(20, 20); 9]);
    let out = tempfile::tempdir().unwrap();
    let told = ThreadComm::run(3, |comm| {
        let late = comm.rank() == 1;
        let session = session(comm);
        let canceller = session.canceller();
        let operation = |picture: &AnyImage| {
            if late {
                canceller.cancel();
            }
            operation(picture)
        };
        let items = session.series(&paths, operation).save(named(out.path()), &range());
        items.map(|i| (i.number, i.result.is_ok())).collect::<Vec<_>>()
    });
    // Rank 1 takes 1, 4 and 7, and ends with its first.
    let expected: Vec<_> = [0, 1, 2, 3, 5, 6, 8].into_iter().map(|i| (i, i != 1)).collect();
    assert!(told.iter().all(|told| *told == expected), "{told:?}");
    assert_eq!(contents(out.path()).len(), 6);
}
