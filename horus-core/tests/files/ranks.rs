//! Files that all ranks read and write: the bits and bytes of one rank, and rank 0 alone where ranks see other files.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use horus_core::comm::Communicator;
use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::dtype::DType;
use horus_core::error::Result;
use horus_core::image::Image;
use horus_core::io::{
    AnyImage, FileTraffic, OpenOptions, RegionSink, RegionSource, SaveOptions, SinkPlace, SinkRole, Workers, save_to,
};
use horus_core::ops::geometric::Interpolation;
use horus_core::session::Session;
use horus_core::settings::Ranks;
use horus_core::shape::{Region, Shape};

use super::TestFolder;

const HEIGHT: usize = 301;
const WIDTH: usize = 270;

fn on_ranks<R: Send>(ranks: usize, memory: Option<usize>, run: impl Fn(&Session) -> R + Sync) -> Vec<R> {
    ThreadComm::run(ranks, |comm| {
        let comm: Arc<dyn Communicator> = Arc::new(comm);
        let builder = Session::on(Box::new(CpuDevice::new(Some(1)).unwrap())).communicator(comm).ranks(Ranks::All);
        let builder = memory.into_iter().fold(builder, |builder, bytes| builder.host_memory(bytes));
        run(&builder.build().expect("a session"))
    })
}

fn opened(session: &Session, path: &Path) -> Result<Image<f32>> {
    let options = OpenOptions { on_demand: Some(true), ..OpenOptions::default() };
    Ok(AnyImage::open_with(session, path, &options)?.to_unit())
}

type Program = fn(&Image<f32>) -> Image<f32>;

const PROGRAMS: [(&str, Program); 4] = [
    ("a pixel operation", |image| image * 0.5),
    ("a filter", |image| image.gauss(2.0)),
    ("a rotation", |image| image.rotate(30.0, Interpolation::Bilinear)),
    ("a filter relative to a maximum", |image| image.gauss(1.0) / image.max_value()),
];

#[test]
fn each_rank_reads_and_writes_its_rows() {
    let folder = TestFolder::new();
    let (source, one) = (folder.at("source.npy"), super::session());
    Image::from_fn(&one, HEIGHT, WIDTH, |y, x| ((y * 37 + x * 11 + y * x / 64) % 251) as u8).save(&source).unwrap();
    let whole = (HEIGHT * WIDTH) as u64;
    for (what, program) in PROGRAMS {
        for name in ["result.npy", "result.pgm", "result.tif", "tiles.tif"] {
            let options = SaveOptions { tile: name.starts_with("tiles").then_some((32, 48)), ..SaveOptions::default() };
            let (alone, path) = (folder.at("alone.tif").with_extension(&name[name.len() - 3..]), folder.at(name));
            program(&opened(&one, &source).unwrap()).save_with(&alone, &options).unwrap();
            let want = std::fs::read(&alone).unwrap();
            for ranks in 2..=5 {
                for memory in [None, Some(1 << 20)] {
                    let read = on_ranks(ranks, memory, |s| {
                        program(&opened(s, &source).unwrap()).save_with(&path, &options).unwrap();
                        s.stats().read.bytes
                    });
                    let case = format!("{what} to {name}, {ranks} ranks, {memory:?}: read {read:?} of {whole}");
                    assert!(std::fs::read(&path).unwrap() == want, "{case}: other bytes");
                    assert_eq!(folder.names().iter().filter(|name| name.starts_with('.')).count(), 0, "{case}");
                    if memory.is_none() && what != "a rotation" {
                        let most = whole / ranks as u64 + 14 * WIDTH as u64;
                        assert!(read.iter().all(|read| (1..=most).contains(read)), "{case}");
                    }
                    std::fs::remove_file(&path).unwrap();
                }
            }
        }
    }
}

#[test]
fn channels_and_levels_have_the_bytes_of_one_rank() {
    let folder = TestFolder::new();
    let (source, one) = (folder.at("source.npy"), super::session());
    let pixels: Vec<u8> = (0..4 * 37 * 23 * 3).map(|i| (i * 31 % 251) as u8).collect();
    for (shape, ranks) in
        [(Shape::volume(4, 37, 23, 3), 2..=5), (Shape::volume(2, 3, 8, 3), 4..=5), (Shape::volume(2, 1, 1, 3), 2..=3)]
    {
        Image::from_slice(&one, shape, &pixels[..shape.len()]).save(&source).unwrap();
        let run = |s: &Session, path: &Path| {
            let options = OpenOptions { on_demand: Some(true), volume: true, ..OpenOptions::default() };
            AnyImage::open_with(s, &source, &options)?.to_unit().gauss(1.0).save(path).map(drop)
        };
        for name in ["volume.npy", "volume.tif"] {
            let (alone, path) = (folder.at("alone").with_extension(&name[7..]), folder.at(name));
            run(&one, &alone).unwrap();
            for ranks in ranks.clone() {
                for memory in [None, Some(1 << 18)] {
                    on_ranks(ranks, memory, |s| run(s, &path).unwrap_or_else(|e| panic!("{name}, {ranks} ranks: {e}")));
                    assert!(std::fs::read(&path).unwrap() == std::fs::read(&alone).unwrap(), "{name}, {ranks} ranks");
                }
            }
        }
    }
}

/// Pixels of a rank's own.
struct OwnPixels {
    value: u8,
    identity: Option<u64>,
    fails_from: usize,
}

impl RegionSource for OwnPixels {
    fn shape(&self) -> Shape {
        Shape::new(HEIGHT, WIDTH, 1)
    }

    fn dtype(&self) -> DType {
        DType::U8
    }

    fn chunk(&self) -> (usize, usize) {
        (1, WIDTH)
    }

    fn fill(&self, region: Region, to: &mut [u8], _: &Workers) -> Result<(), String> {
        if region.bottom() > self.fails_from {
            return Err(format!("no row {}", self.fails_from));
        }
        to.fill(self.value);
        Ok(())
    }

    fn counted(&self) -> FileTraffic {
        FileTraffic::default()
    }

    fn identity(&self) -> Option<u64> {
        self.identity
    }
}

/// An image of which each rank has a source with its own value.
fn own(s: &Session, identity: impl Fn(usize) -> Option<u64>, fails_from: usize) -> Image<u8> {
    let rank = s.rank();
    let source = OwnPixels { value: 1 + rank as u8, identity: identity(rank), fails_from };
    AnyImage::from_source(s, "own pixels", || Ok(Box::new(source))).unwrap().convert::<u8>()
}

#[test]
fn ranks_that_see_other_pixels_get_those_of_rank_0() {
    let sum = |identity: fn(usize) -> Option<u64>| {
        let sums = on_ranks(3, None, move |s| own(s, identity, usize::MAX).sum().get().unwrap());
        assert!(sums.windows(2).all(|pair| pair[0] == pair[1]), "{sums:?}");
        sums[0]
    };
    let of_root = (HEIGHT * WIDTH) as f64;
    assert_eq!(sum(|_| None), of_root);
    assert_eq!(sum(|rank| Some(rank as u64)), of_root);
    assert_eq!(sum(|rank| (rank != 2).then_some(7)), of_root);
    // They say that they see the same.
    assert!(sum(|_| Some(7)) > 1.5 * of_root);
}

#[test]
fn a_rank_that_cannot_read_is_an_error_of_all() {
    for memory in [None, Some(1 << 18)] {
        let errors = on_ranks(3, memory, |s| {
            let image = own(s, |_| Some(7), HEIGHT - 1);
            let rest = image.crop(0, 0, HEIGHT - 1, WIDTH).max_value().get();
            (image.gauss(1.0).sum().get().expect_err("a row is missing").to_string(), rest.is_ok())
        });
        let want = format!("cannot read own pixels: no row {}", HEIGHT - 1);
        assert!(errors.iter().all(|(error, goes_on)| *error == want && *goes_on), "{errors:?}");
    }
}

/// A file of which some ranks can write no rows, or cannot finish.
struct RankSink {
    path: std::path::PathBuf,
    fails: Option<&'static str>,
    is_first: bool,
    /// Rows that this rank has written.
    rows: Arc<AtomicUsize>,
}

impl RegionSink for RankSink {
    fn chunk(&self) -> (usize, usize) {
        (16, WIDTH)
    }

    fn put(&mut self, region: Region, pixels: &[u8], _: &Workers) -> Result<(), String> {
        assert!(region.top.is_multiple_of(16) && region.width == WIDTH && pixels.len() == region.height * WIDTH);
        self.rows.fetch_add(region.height, Ordering::Relaxed);
        if self.fails == Some("put") { Err("the disk is full".into()) } else { Ok(()) }
    }

    fn put_levels(&mut self, _: Range<usize>, region: Region, pixels: &[u8], at: &Workers) -> Result<(), String> {
        self.put(region, pixels, at)
    }

    fn place(&self) -> Option<SinkPlace> {
        let (path, layout) = (self.path.clone(), vec![1, 2]);
        Some(SinkPlace { path, is_one_file: true, is_of_other_host: false, layout })
    }

    fn finish(self: Box<Self>) -> Result<(), String> {
        if self.fails == Some("finish") {
            return Err("the disk is full".into());
        }
        if self.is_first { std::fs::write(&self.path, "whole").map_err(|e| e.to_string()) } else { Ok(()) }
    }
}

#[test]
fn a_rank_that_cannot_write_is_an_error_of_all_and_leaves_nothing() {
    let folder = TestFolder::new();
    let path = folder.at("a file");
    for memory in [None, Some(1 << 18)] {
        for (failing, how) in [(2, "put"), (1, "finish"), (0, "finish"), (0, "put"), (9, "put"), (9, "refused")] {
            let refuses = |rank| how == "refused" && rank == 2;
            let written: [Arc<AtomicUsize>; 3] = Default::default();
            let errors = on_ranks(3, memory, |s| {
                let rows = &written[s.rank()];
                let image = own(s, |_| Some(7), usize::MAX).dilate(3);
                let result = save_to(&image, &path, |role| {
                    if let SinkRole::Other(place) = role {
                        assert_eq!((&place.path, &place.layout[..]), (&path, &[1, 2][..]));
                        if refuses(s.rank()) {
                            return Err("this rank cannot open it".into());
                        }
                    }
                    let fails = (s.rank() == failing).then_some(how);
                    Ok(Box::new(RankSink {
                        path: path.clone(),
                        fails,
                        is_first: role == SinkRole::First,
                        rows: Arc::clone(rows),
                    }))
                });
                (result.map_err(|e| e.to_string()), image.sum().get().is_ok())
            });
            let want =
                if failing == 9 { Ok(()) } else { Err(format!("cannot write {}: the disk is full", path.display())) };
            assert!(
                errors.iter().all(|(written, goes_on)| *written == want && *goes_on),
                "{failing}, {how}: {errors:?}"
            );
            assert_eq!(path.exists(), failing == 9);
            let written = written.map(|rows| rows.load(Ordering::Relaxed));
            if failing == 9 && how == "refused" {
                assert_eq!(written, [HEIGHT, 0, 0], "rank 0 writes for all");
            } else if failing == 9 {
                assert!(written.iter().sum::<usize>() == HEIGHT && !written.contains(&0), "{written:?}");
            }
        }
        std::fs::remove_file(&path).unwrap();
    }
}
