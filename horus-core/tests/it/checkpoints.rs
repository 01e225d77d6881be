//! Checkpoints of loops: a loop that continues from one has the bits of an uninterrupted loop.

use std::path::Path;
use std::sync::{Arc, Mutex};

use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::device::Device;
use horus_core::dtype::DType;
use horus_core::error::{Error, Result};
use horus_core::image::{CheckpointImage, CheckpointStore, Checkpoints, Ending, Image, Iterated, Until};
use horus_core::session::{BlockMap, Session};
use horus_core::shape::{Border, Shape};
use horus_testing::simulated::SimulatedDevice;

type Stored = (usize, Vec<CheckpointImage>);

/// The last checkpoint in memory, and the number of iterations at which writing fails.
#[derive(Clone, Default)]
struct MemoryStore {
    last: Arc<Mutex<Option<Stored>>>,
    full: Option<usize>,
}

impl MemoryStore {
    fn steps(&self) -> Option<usize> {
        self.last.lock().unwrap().as_ref().map(|(steps, _)| *steps)
    }
}

impl CheckpointStore for MemoryStore {
    fn path(&self) -> &Path {
        Path::new("memory")
    }

    fn last(&self, images: &[(Shape, DType)]) -> std::result::Result<Option<usize>, String> {
        let last = self.last.lock().unwrap();
        let Some((steps, stored)) = &*last else { return Ok(None) };
        if stored.iter().map(|image| (image.shape, image.dtype)).ne(images.iter().copied()) {
            return Err("other images".into());
        }
        Ok(Some(*steps))
    }

    fn create(&self) -> std::result::Result<(), String> {
        if self.full == Some(0) { Err("read only".into()) } else { Ok(()) }
    }

    fn read(&self, to: &mut [&mut [u8]]) -> std::result::Result<(), String> {
        let last = self.last.lock().unwrap();
        let (_, stored) = last.as_ref().ok_or("nothing")?;
        to.iter_mut().zip(stored).for_each(|(to, image)| to.copy_from_slice(image.pixels.bytes()));
        Ok(())
    }

    fn write(&self, steps: usize, images: &[CheckpointImage]) -> std::result::Result<(), String> {
        if self.full.is_some_and(|full| steps >= full) {
            return Err("no space left".into());
        }
        *self.last.lock().unwrap() = Some((steps, images.to_vec()));
        Ok(())
    }
}

type State = (Image<f32>, Image<f64>, Image<bool>);

fn initial(s: &Session) -> State {
    let u = Image::from_fn(s, 23, 17, |y, x| ((y * 31 + x * 17) % 101) as f32 * 0.125);
    let of_colours: Vec<f64> = (0..9 * 7 * 3).map(|i| f64::from(i % 13)).collect();
    let colours = Image::from_slice(s, Shape::new(9, 7, 3), &of_colours);
    let mask = u.gt(5.0);
    (u, colours, mask)
}

fn step((u, colours, mask): &State) -> State {
    let next = u.with_border(Border::Replicate).gauss(1.0);
    let mask = mask.select(&next, u).gt(4.0);
    (next, colours * 0.75 + 0.125, mask)
}

type Bits = (Vec<u32>, Vec<u64>, Vec<bool>);

fn bits(of: &Iterated<State>) -> Bits {
    let (u, colours, mask) = &of.state;
    let u = u.to_vec().unwrap().into_iter().map(f32::to_bits).collect();
    let colours = colours.to_vec().unwrap().into_iter().map(f64::to_bits).collect();
    (u, colours, mask.to_vec().unwrap())
}

fn session(comm: ThreadComm, separate: bool) -> Session {
    let cpu = CpuDevice::new(Some(1)).unwrap();
    let device: Box<dyn Device> =
        if separate { Box::new(SimulatedDevice::new(cpu, 1 << 22).with_fabric()) } else { Box::new(cpu) };
    Session::on(device).communicator(Arc::new(comm)).build().unwrap()
}

fn run(ranks: usize, separate: bool, until: Until, checkpoints: &Checkpoints) -> Result<(Bits, usize, Ending)> {
    let ran = ThreadComm::run(ranks, |comm| {
        let s = session(comm, separate);
        let ended = s.iterate_checkpointed(initial(&s), until, step, checkpoints, None)?;
        Ok((bits(&ended), ended.steps, ended.ending))
    });
    ran.into_iter().reduce(|a, b| a.and_then(|a| b.map(|b| (assert!(a == b, "ranks differ"), a).1))).unwrap()
}

#[test]
fn an_interrupted_loop_continues_to_the_same_bits_on_any_ranks_and_device() {
    for until in [Until::steps(23), Until::below(1e-2, 400).every(7)] {
        let never = Checkpoints::new(MemoryStore::default(), usize::MAX);
        let want = run(1, false, until, &never).unwrap();
        assert!(want.1 >= 23);
        for (k, (ranks, separate)) in [(1, false), (1, true), (2, true), (3, false)].into_iter().enumerate() {
            let store = MemoryStore::default();
            let checkpoints = Checkpoints::new(store.clone(), 5).resume(true);
            let (_, steps, ending) = run(ranks, separate, Until::steps(13), &checkpoints).unwrap();
            assert_eq!((steps, ending, store.steps()), (13, Ending::Steps, Some(10)));
            for (other, separate) in [(3, true), (1, false), (2, false), (1, true)].into_iter().skip(k % 2).step_by(2) {
                let again = MemoryStore::default();
                again.last.lock().unwrap().clone_from(&store.last.lock().unwrap());
                let resumed = run(other, separate, until, &Checkpoints::new(again, 5).resume(true)).unwrap();
                assert!(resumed == want, "from {ranks} ranks to {other}, {until:?}");
            }
        }
    }
}

#[test]
fn a_loop_that_reads_values_continues_too() {
    let work = |until: usize, store: &MemoryStore| {
        let s = Session::on(Box::new(CpuDevice::new(Some(1)).unwrap())).build().unwrap();
        let u = Image::from_fn(&s, 8, 9, |y, x| (y * x) as f64);
        let step = |u: &Image<f64>| u * (1.0 / (1.0 + u.max_value().get().unwrap()));
        let checkpoints = Checkpoints::new(store.clone(), 2).resume(true);
        let ended = s.iterate_checkpointed(u, until, step, &checkpoints, None)?;
        Ok::<_, Error>((ended.steps, ended.state.to_vec()?))
    };
    let want = work(7, &MemoryStore::default()).unwrap();
    let store = MemoryStore::default();
    let _ = work(5, &store).unwrap();
    assert_eq!(store.steps(), Some(4));
    assert_eq!(work(7, &store).unwrap(), want);
    assert_eq!(work(6, &store).unwrap().0, 6, "all iterations are made already");
    let e = work(5, &store).unwrap_err().to_string();
    assert!(e.contains("after 6 steps, the loop has 5"), "{e}");
}

#[test]
fn what_cannot_be_continued_is_refused() {
    let store = MemoryStore::default();
    let fresh = Checkpoints::new(store.clone(), 4);
    let _ = run(1, false, Until::steps(9), &fresh).unwrap();
    for ranks in [1, 2] {
        let e = run(ranks, false, Until::steps(9), &fresh).unwrap_err();
        assert!(matches!(e, Error::File { .. }) && e.to_string().contains("after 8 steps"), "{e}");
        let s = |comm| session(comm, false);
        let all = ThreadComm::run(ranks, |comm| {
            let (s, resuming) = (s(comm), fresh.clone().resume(true));
            let other = s.iterate_checkpointed(initial(&s).0, 9, |u| u.gauss(1.0), &resuming, None).unwrap_err();
            let none = Checkpoints::new(MemoryStore::default(), 0);
            let zero = s.iterate_checkpointed(initial(&s), 9, step, &none, None).unwrap_err();
            (other.to_string(), zero.to_string())
        });
        for (other, zero) in all {
            assert!(other.contains("other images") && other.contains("memory"), "{other}");
            assert!(zero.contains("every 0 steps"), "{zero}");
        }
    }
    let relaxed = ThreadComm::run(2, |comm| {
        let s = session(comm, false);
        s.place(BlockMap::new((23, 17), (12, 17), [Some(0), Some(1)]).unwrap().relaxed(4)).unwrap();
        let checkpoints = Checkpoints::new(MemoryStore::default(), 2);
        s.iterate_checkpointed(initial(&s).0, 9, |u| u.gauss(1.0), &checkpoints, None).unwrap_err().to_string()
    });
    assert!(relaxed.iter().all(|e| e.contains("relaxed")), "{relaxed:?}");
}

#[test]
fn a_store_that_fails_ends_the_loop_and_keeps_the_checkpoint_before() {
    for ranks in [1, 2] {
        let store = MemoryStore { full: Some(9), ..MemoryStore::default() };
        let e = run(ranks, false, Until::steps(30), &Checkpoints::new(store.clone(), 3)).unwrap_err();
        assert!(e.to_string().contains("no space left") && e.to_string().contains("memory"), "{e}");
        assert_eq!(store.steps(), Some(6));
        let store = MemoryStore { full: Some(30), ..MemoryStore::default() };
        assert!(
            run(ranks, false, Until::steps(30), &Checkpoints::new(store.clone(), 3)).is_err(),
            "the last one fails"
        );
        assert_eq!(store.steps(), Some(27));
        let store = MemoryStore { full: Some(0), ..MemoryStore::default() };
        let e = run(ranks, false, Until::steps(30), &Checkpoints::new(store, 3)).unwrap_err();
        assert!(e.to_string().contains("read only"), "before the first step: {e}");
    }
}
