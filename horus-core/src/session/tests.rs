//! Tests of a session's evaluations and of the values that it keeps.

use crate::cpu::device::CpuDevice;
use crate::error::Cause;
use crate::image::{Image, samples};
use crate::session::*;
use horus_testing::simulated::SimulatedDevice;

fn session() -> Session {
    let device = CpuDevice::new(Some(1)).expect("a CPU");
    Session::on(Box::new(device)).build().expect("a session on the CPU")
}

#[test]
fn several_values_are_fetched_in_one_evaluation() {
    let s = session();
    let a = Image::from_slice(&s, (1, 3), &[1.0f32, 2.0, 3.0]);
    let (twice, squares) = (&a * 2.0, a.square());
    let asked = [squares.handle(), twice.handle(), squares.handle()];
    let got = s.fetch_all(&asked, ResultDelivery::Everyone).expect("values");
    let got: Vec<&[f32]> = got.iter().flatten().map(|b| b.as_slice()).collect();
    assert_eq!(got, [[1.0, 4.0, 9.0], [2.0, 4.0, 6.0], [1.0, 4.0, 9.0]]);
    let stats = s.stats();
    assert_eq!((stats.evaluations, stats.made.launches), (1, 1), "one launch computes both, nothing is computed twice");
}

#[test]
fn results_under_way_arrive_and_their_images_go_on() {
    let device = SimulatedDevice::new(CpuDevice::new(Some(1)).expect("a CPU"), 1 << 20);
    let log = device.call_counts();
    let s = Session::on(Box::new(device)).build().expect("a session");
    let a = Image::from_slice(&s, (1, 3), &[1.0f32, 2.0, 3.0]);
    let twice = &a * 2.0;
    // The same value is recorded twice: it becomes one node with two readers.
    let again = &a * 2.0;
    let pending =
        s.begin_all(&[twice.handle(), again.handle(), twice.handle()], ResultDelivery::Root).expect("an evaluation");
    // Later operations neither wait for the result nor change it. They find the image on the device.
    let sum = (&twice + 1.0).to_vec().expect("pixels");
    assert_eq!(sum, [3.0, 5.0, 7.0]);
    assert_eq!(log.get().writes, 1);
    drop((twice, again, a));
    let got = std::thread::spawn(move || pending.wait()).join().expect("no panic").expect("pixels");
    let got: Vec<&[f32]> = got.iter().flatten().map(|b| b.as_slice()).collect();
    assert_eq!(got, [[2.0, 4.0, 6.0]; 3]);
    // An image whose pixels went directly to a reader is downloaded again for the next reader.
    let b = Image::from_slice(&s, (1, 1), &[5.0f32]).sqrt();
    let first = s.begin_all(&[b.handle()], ResultDelivery::Root).expect("an evaluation");
    assert_eq!(b.to_vec().expect("pixels"), [5.0f32.sqrt()]);
    drop(first);
}

#[test]
fn a_cancelled_evaluation_ends_between_steps_and_the_session_lives() {
    let asked: Arc<Mutex<Option<Canceller>>> = Arc::default();
    let own = Arc::clone(&asked);
    let device = CpuDevice::new(Some(1)).expect("a CPU");
    // The observer cancels the evaluation at its second step, once.
    let observer = move |p: Progress<'_>| {
        if p.step == 1
            && let Some(canceller) = own.lock().expect("no panic").take()
        {
            canceller.cancel();
        }
    };
    let s = Session::on(Box::new(device)).observer(observer).build().expect("a session");
    let image = samples::worms(&s, 8, 8).gauss(1.0);
    let before = image.to_vec().expect("nobody asks yet");
    let canceller = s.canceller();
    *asked.lock().expect("no panic") = Some(canceller.clone());
    let sum = image.gauss(2.0).median(3);
    assert!(matches!(sum.to_vec(), Err(Error::Cancelled(Cause::Asked))));
    assert!(matches!(image.mean().get(), Err(Error::Cancelled(Cause::Asked))), "until it is cleared");
    canceller.clear();
    assert_eq!(image.to_vec().expect("what was there is there"), before);
    canceller.set_deadline(Some(Instant::now()));
    assert!(matches!((&image + 1.0).to_vec(), Err(Error::Cancelled(Cause::Deadline))));
    canceller.set_deadline(None);
    assert!((&image + 1.0).to_vec().is_ok());
}
