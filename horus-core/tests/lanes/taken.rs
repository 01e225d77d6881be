//! Slices that devices take immediately: each lane its strip.

use std::sync::Arc;

use horus_core::device::Device;
use horus_core::image::Image;
use horus_core::session::Session;
use horus_core::shape::Axis;

use crate::{ROOM, cpu, one};

/// Rows and columns of sufficiently large pictures.
const SIDE: (usize, usize) = (4111, 4096);

fn pixels() -> Vec<f32> {
    (0..SIDE.0 * SIDE.1).map(|i| (i % 1013) as f32 - 300.0).collect()
}

#[test]
fn each_lane_takes_its_strip_of_a_slice() {
    let taking: Vec<Arc<crate::taking::Taking>> =
        (0..3).map(|_| Arc::new(crate::taking::Taking::new(cpu(), 8 * ROOM))).collect();
    let devices = taking.iter().map(|d| Arc::clone(d) as Arc<dyn Device>).collect();
    let s = Session::over(devices).weights(vec![1.0, 2.0, 1.0]).build().unwrap();
    let of = |s: &Session| {
        let pixels = pixels();
        let image = Image::<f32>::from_slice(s, (SIDE.0, SIDE.1), &pixels);
        drop(pixels); // the devices have them
        (image.gauss(1.0) + &image).over(Axis::Rows).sum().to_vec().unwrap()
    };
    assert!(of(&s) == of(&one()));
    let taken: Vec<usize> = taking.iter().map(|d| d.taken()).collect();
    assert_eq!(taken.iter().sum::<usize>(), SIDE.0 * SIDE.1 * 4, "each row by one lane: {taken:?}");
    assert!(taken[1] > taken[0] && taken[0] > 0);
}
