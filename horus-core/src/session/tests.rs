//! What a session does beyond the results: which evaluations it makes, and what it keeps.

use super::*;
use crate::cpu::device::CpuDevice;
use crate::image::Image;

fn session() -> Session {
    let device = CpuDevice::new(Some(1)).expect("a CPU");
    Session::on(Box::new(device)).build().expect("a session on the CPU")
}

#[test]
fn several_values_are_fetched_in_one_evaluation() {
    let s = session();
    let a = Image::from_slice(&s, 1, 3, &[1.0f32, 2.0, 3.0]);
    let (twice, squares) = (&a * 2.0, a.square());
    let asked = [squares.handle(), twice.handle(), squares.handle()];
    let got = s.fetch_all(&asked, Want::Everyone).expect("values");
    let got: Vec<&[f32]> = got.iter().flatten().map(|b| b.as_slice()).collect();
    assert_eq!(got, [[1.0, 4.0, 9.0], [2.0, 4.0, 6.0], [1.0, 4.0, 9.0]]);
    let stats = s.stats();
    assert_eq!((stats.evaluations, stats.made.launches), (1, 2), "nothing is computed twice");
}
