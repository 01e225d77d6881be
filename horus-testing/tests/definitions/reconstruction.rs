//! Reconstruction of marked regions.

use horus_plan::ops::Reconstruction;
use horus_plan::ops::components::Connectivity;
use horus_testing::reference::reconstruction::reconstruction;

#[test]
fn a_marker_fills_what_it_touches() {
    let mask = [3u8, 5, 4, 0, 6, 6];
    let how = Reconstruction { erosion: false, neighbours: Connectivity::FACES };
    assert_eq!(reconstruction(&[0, 2, 9, 0, 1, 0], &mask, [1, 1, 6], how), [3, 4, 4, 0, 1, 1]);
    let how = Reconstruction { erosion: true, ..how };
    assert_eq!(reconstruction(&[9, 9, 9, 9, 7, 9], &mask, [1, 1, 6], how), [7, 7, 7, 7, 7, 7]);
}

#[test]
fn a_nan_is_the_lowest_and_zeros_have_no_sign() {
    let (nan, least) = (f32::NAN, f32::NEG_INFINITY);
    let how = Reconstruction { erosion: false, neighbours: Connectivity::FACES };
    let found = reconstruction(&[nan, -0.0, 3.0, nan, 9.0], &[-0.0, 5.0, nan, 4.0, 2.0], [1, 1, 5], how);
    assert_eq!(found.iter().map(|v| v.to_bits()).collect::<Vec<_>>(), [0.0, 0.0, least, 2.0, 2.0].map(f32::to_bits));
    let how = Reconstruction { erosion: true, ..how };
    assert_eq!(reconstruction(&[nan, 1.0, 0.0], &[3.0, 2.0, nan], [1, 1, 3], how), [3.0, 2.0, f32::INFINITY]);
}
