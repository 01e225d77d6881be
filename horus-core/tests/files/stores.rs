//! Custom sources and sinks of pixels, region by region.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use horus_core::comm::Communicator;
use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::dtype::DType;
use horus_core::error::Error;
use horus_core::host::workers::Workers;
use horus_core::image::Image;
use horus_core::io::{AnyImage, FileTraffic, RegionSink, RegionSource, SinkRole, save_to};
use horus_core::session::Session;
use horus_core::shape::{Region, Shape};

const SHAPE: Shape = Shape::volume(2, 600, 500, 2);

/// The sample at a place in memory: level by level, row by row, those of a pixel beside each other.
fn sample(at: usize) -> u16 {
    (at / 2 * 97 + at % 2 * 20_011) as u16
}

/// The samples of each row of a region: the place of the first in the image, and their number.
fn rows(region: Region) -> impl Iterator<Item = (usize, usize)> {
    let rows = (0..SHAPE.depth).flat_map(move |z| (region.top..region.bottom()).map(move |y| z * SHAPE.height + y));
    rows.map(move |y| ((y * SHAPE.width + region.left) * SHAPE.channels, region.width * SHAPE.channels))
}

/// Computed samples, which fail from a row on.
struct ComputedSource {
    end: usize,
    read: AtomicU64,
}

impl ComputedSource {
    fn until(end: usize) -> Result<Box<dyn RegionSource>, String> {
        Ok(Box::new(ComputedSource { end, read: AtomicU64::new(0) }))
    }
}

impl RegionSource for ComputedSource {
    fn shape(&self) -> Shape {
        SHAPE
    }

    fn dtype(&self) -> DType {
        DType::U16
    }

    fn chunk(&self) -> (usize, usize) {
        (40, 50)
    }

    fn fill(&self, region: Region, to: &mut [u8], _: &Workers) -> Result<(), String> {
        assert!(region.is_inside(SHAPE) && to.len() == SHAPE.planes() * region.height * region.width * 2);
        if region.bottom() > self.end {
            return Err(format!("no row {}", self.end));
        }
        let places = rows(region).flat_map(|(first, n)| first..first + n);
        places.zip(to.as_chunks_mut::<2>().0).for_each(|(at, to)| *to = sample(at).to_ne_bytes());
        self.read.fetch_add(to.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn counted(&self) -> FileTraffic {
        FileTraffic { chunks: 0, bytes: self.read.load(Ordering::Relaxed) }
    }
}

/// The data received by a sink.
#[derive(Debug, Default)]
struct SinkRecord {
    regions: Vec<Region>,
    samples: Vec<u16>,
    finished: bool,
    dropped: bool,
}

/// A sink that keeps its data, and fails at a region.
struct FailingSink {
    came: Arc<Mutex<SinkRecord>>,
    fails_at: usize,
}

impl RegionSink for FailingSink {
    fn chunk(&self) -> (usize, usize) {
        (64, 100)
    }

    fn put(&mut self, region: Region, pixels: &[u8], _: &Workers) -> Result<(), String> {
        let mut came = self.came.lock().unwrap();
        if came.regions.len() == self.fails_at {
            return Err("the sink is full".into());
        }
        came.regions.push(region);
        came.samples.resize(SHAPE.len(), 0);
        assert_eq!(pixels.len(), SHAPE.planes() * region.height * region.width * 2);
        let places = rows(region).flat_map(|(first, n)| first..first + n);
        for (at, sample) in places.zip(pixels.as_chunks::<2>().0) {
            assert_eq!(std::mem::replace(&mut came.samples[at], u16::from_ne_bytes(*sample)), 0, "written twice");
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), String> {
        self.came.lock().unwrap().finished = true;
        Ok(())
    }
}

impl Drop for FailingSink {
    fn drop(&mut self) {
        self.came.lock().unwrap().dropped = true;
    }
}

fn on_ranks<R: Send>(ranks: usize, memory: Option<usize>, run: impl Fn(&Session) -> R + Sync) -> Vec<R> {
    let session = |comm: Option<Arc<dyn Communicator>>| {
        let builder = Session::on(Box::new(CpuDevice::new(Some(1)).expect("a CPU")));
        let builder = memory.into_iter().fold(builder, |b, bytes| b.host_memory(bytes));
        let builder = comm.into_iter().fold(builder, |b, comm| b.communicator(comm));
        builder.build().expect("a session")
    };
    if ranks == 1 {
        return vec![run(&session(None))];
    }
    ThreadComm::run(ranks, |comm| run(&session(Some(Arc::new(comm)))))
}

fn doubled(session: &Session, end: usize) -> Image<u16> {
    let image = AnyImage::from_source(session, "computed", || ComputedSource::until(end)).expect("a source");
    assert_eq!((image.shape(), image.dtype()), (SHAPE, DType::U16));
    image.convert::<u16>().max(1u16)
}

#[test]
fn samples_go_from_a_source_to_a_sink_as_a_whole_or_by_regions() {
    for (ranks, memory) in [(1, None), (3, None), (1, Some(4 << 20)), (3, Some(4 << 20))] {
        let came = Arc::new(Mutex::new(SinkRecord::default()));
        let begun = AtomicU64::new(0);
        let saved = on_ranks(ranks, memory, |session| {
            save_to(&doubled(session, usize::MAX), "kept", |_| {
                begun.fetch_add(1, Ordering::Relaxed);
                Ok(Box::new(FailingSink { came: Arc::clone(&came), fails_at: usize::MAX }))
            })
        });
        assert!(saved.iter().all(Result::is_ok) && begun.into_inner() == 1, "{saved:?}");
        let came = came.lock().unwrap();
        assert!(came.finished);
        for (i, found) in came.samples.iter().enumerate() {
            assert_eq!(*found, sample(i).max(1), "sample {i}");
        }
        if memory.is_none() {
            assert_eq!(came.regions, [Region::whole(SHAPE)]);
        } else {
            assert!(came.regions.len() > 2, "{:?}", came.regions);
        }
        for region in &came.regions {
            let whole = |start: usize, end: usize, chunk: usize, n: usize| {
                start.is_multiple_of(chunk) && (end.is_multiple_of(chunk) || end == n)
            };
            assert!(whole(region.top, region.bottom(), 64, SHAPE.height), "{region}");
            assert!(whole(region.left, region.right(), 100, SHAPE.width), "{region}");
        }
    }
}

#[test]
fn a_failure_is_told_on_all_ranks_and_nothing_is_finished() {
    for ranks in [1, 3] {
        for (memory, end, fails_at, expected) in [
            (None, 300, usize::MAX, "cannot read computed: no row 300"),
            (Some(4 << 20), 300, usize::MAX, "cannot read computed: no row 300"),
            (None, usize::MAX, 0, "cannot write kept: the sink is full"),
            (Some(4 << 20), usize::MAX, 1, "cannot write kept: the sink is full"),
        ] {
            let came = Arc::new(Mutex::new(SinkRecord::default()));
            let errors = on_ranks(ranks, memory, |session| {
                let sink = |_: SinkRole<'_>| {
                    Ok(Box::new(FailingSink { came: Arc::clone(&came), fails_at }) as Box<dyn RegionSink>)
                };
                save_to(&doubled(session, end), "kept", sink).expect_err("it fails").to_string()
            });
            assert!(errors.iter().all(|e| e == expected), "{errors:?}");
            let came = came.lock().unwrap();
            assert!(!came.finished && came.dropped);
        }
        let errors = on_ranks(ranks, None, |session| {
            let none = AnyImage::from_source(session, "none", || Err("there is none".into())).map(drop);
            let begin = |_: SinkRole<'_>| Err("no room".into());
            let full = save_to(&doubled(session, usize::MAX), "full", begin);
            [none, full].map(|outcome: Result<(), Error>| outcome.expect_err("it fails").to_string())
        });
        assert!(
            errors.iter().all(|e| e == &["cannot read none: there is none", "cannot write full: no room"]),
            "{errors:?}"
        );
    }
}
