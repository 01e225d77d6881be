//! Reconstruction by iteration until nothing changes.

use super::{Image, Shape};
use horus_base::dtype::Pixel;
use horus_plan::ops::reconstruction::Reconstruction;

/// Reconstruction of a mask from a marker, of one channel.
pub fn reconstruct(marker: &Image, mask: &Image, how: Reconstruction) -> Image {
    let Shape { depth, height, width, .. } = mask.shape;
    horus_base::dispatch!(mask.dtype(), T => {
        let found = reconstruction::<T>(marker.as_slice(), mask.as_slice(), [depth, height, width], how);
        Image::new(mask.shape, found)
    })
}

/// Reconstruction of a mask from a marker, of `[depth, height, width]` pixels: the definition.
pub fn reconstruction<T: Pixel>(marker: &[T], mask: &[T], extent: [usize; 3], how: Reconstruction) -> Vec<T> {
    let [_, height, width] = extent;
    let mask: Vec<T> = mask.iter().map(|v| how.ordered(*v)).collect();
    let mut found: Vec<T> = marker.iter().zip(&mask).map(|(a, b)| how.within(how.ordered(*a), *b)).collect();
    loop {
        let before = found.clone();
        for (i, v) in found.iter_mut().enumerate() {
            let at = [i / width / height, i / width % height, i % width];
            for by in how.neighbours.neighbours() {
                let place = [0, 1, 2].map(|axis| at[axis].checked_add_signed(by[axis]).filter(|k| *k < extent[axis]));
                if let [Some(z), Some(y), Some(x)] = place {
                    *v = how.grown(*v, before[(z * height + y) * width + x]);
                }
            }
            *v = how.within(*v, mask[i]);
        }
        if found == before {
            return found;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use horus_plan::ops::components::Connectivity;

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
        assert_eq!(
            found.iter().map(|v| v.to_bits()).collect::<Vec<_>>(),
            [0.0, 0.0, least, 2.0, 2.0].map(f32::to_bits)
        );
        let how = Reconstruction { erosion: true, ..how };
        assert_eq!(reconstruction(&[nan, 1.0, 0.0], &[3.0, 2.0, nan], [1, 1, 3], how), [3.0, 2.0, f32::INFINITY]);
    }
}
