//! Functions composed of other operations: the same bits in every mode and on any number of ranks,
//! and errors. `tests/goldens/composed.rs` compares them with other libraries.

use horus_core::cpu::device::CpuDevice;
use horus_core::image::{Image, bilateral, canny, equalize_adapthist, equalize_hist, local_maxima, peak_local_max};
use horus_core::ops::components::Connectivity;
use horus_core::session::Session;
use horus_core::shape::{Axis, Border};

use crate::derived::everywhere;

const SIZES: [(usize, usize); 6] = [(1, 1), (1, 17), (13, 1), (2, 2), (23, 31), (16, 70)];

fn session() -> Session {
    Session::on(Box::new(CpuDevice::new(Some(2)).unwrap())).build().unwrap()
}

/// Plateaus of few levels, and patches.
fn level(y: usize, x: usize) -> u8 {
    ((y * 7919 + x * 104_729) % 1009 % 3 + (y / 5 + x / 7) % 3 * 40) as u8
}

#[test]
fn composed_functions_have_the_same_bits_everywhere() {
    for (h, w) in SIZES {
        let ours = everywhere(|s| {
            let image = Image::from_fn(s, h, w, level);
            let floats = image.convert::<f32>() / 100.0;
            let mut all: Vec<f64> = canny(&image, 1.3, 20.0, 60.0).convert::<f64>().to_vec().unwrap();
            let images = [
                canny(&floats.with_border(Border::Wrap), 0.0, 0.2, 0.5).convert::<f64>(),
                equalize_hist(&image, 256).convert(),
                equalize_hist(&floats, 10).convert(),
                equalize_adapthist(&image, Some((5, 9)), 0.1, 64).unwrap().convert(),
                equalize_adapthist(&floats, None, 0.01, 256).unwrap().convert(),
                local_maxima(&image, Connectivity::FACES).convert(),
                bilateral(&floats, 5, 0.2, 1.5).convert(),
                bilateral(&image.with_border(Border::Constant(9.0)), 3, 20.0, 2.0).convert(),
            ];
            images.iter().for_each(|image| all.extend(image.to_vec().unwrap()));
            let peaks = peak_local_max(&image, 2, None, 0).get().unwrap();
            all.extend(peaks.into_iter().flatten().map(|at| at as f64));
            all
        });
        assert!(ours.len() >= 9 * h * w && ours.iter().all(|v| !v.is_nan()), "{h}x{w}");
    }
}

/// Local maxima by their definition, of 8 neighbours: floods each plateau.
fn maxima(h: usize, w: usize) -> Vec<bool> {
    let at = |place: usize| level(place / w, place % w);
    let mut found = vec![false; h * w];
    for (start, found) in found.iter_mut().enumerate() {
        let (mut plateau, mut next, mut highest) = (vec![start], 0, true);
        while next < plateau.len() {
            let (y, x) = (plateau[next] / w, plateau[next] % w);
            for near in (y.saturating_sub(1)..h.min(y + 2))
                .flat_map(|v| (x.saturating_sub(1)..w.min(x + 2)).map(move |u| v * w + u))
            {
                highest &= at(near) <= at(start);
                if at(near) == at(start) && !plateau.contains(&near) {
                    plateau.push(near);
                }
            }
            next += 1;
        }
        *found = highest && plateau.len() < h * w;
    }
    found
}

#[test]
fn local_maxima_are_plateaus_without_a_higher_neighbour() {
    let s = session();
    for (h, w) in SIZES {
        let ours = local_maxima(&Image::from_fn(&s, h, w, level), Connectivity::CORNERS).to_vec().unwrap();
        assert_eq!(ours, maxima(h, w), "{h}x{w}");
    }
    // A NaN is no maximum and hides none.
    let broken = Image::from_slice(&s, (1, 5), &[1.0, 3.0, f64::NAN, 2.0, 0.0]);
    let found = local_maxima(&broken, Connectivity::FACES).convert::<u8>().to_vec().unwrap();
    assert_eq!(found, [0, 1, 0, 1, 0]);
    assert_eq!(peak_local_max(&broken, 1, None, 0).get().unwrap(), [[0, 0, 1], [0, 0, 3]]);
}

#[test]
fn floats_that_are_not_finite_are_not_counted() {
    let s = session();
    let image = Image::from_slice(&s, (1, 4), &[0.0f32, f32::NAN, 1.0, 1.0]);
    let shares = equalize_hist(&image, 2).to_vec().unwrap();
    assert!(shares[1].is_nan());
    assert_eq!([shares[0], shares[2], shares[3]], [1.0 / 3.0, 1.0, 1.0]);
}

#[test]
fn images_and_parameters_that_do_not_fit_are_errors() {
    let s = session();
    let (image, empty) = (Image::<u8>::zeros(&s, (4, 5)), Image::<u8>::zeros(&s, (0, 5)));
    let colour = Image::stack(&s, [&image, &image], Axis::Channels);
    let told = |wrong: horus_core::error::Result<()>, begins: &str| {
        let message = wrong.unwrap_err().to_string();
        assert!(message.starts_with(begins) && message.contains("composed.rs:"), "{message}");
    };
    told(canny(&colour, 1.0, 0.1, 0.2).check(), "canny: the image has 1 levels and 2 channels");
    told(canny(&image, -1.0, 0.1, 0.2).check(), "canny: sigma is -1; it must be finite and not negative");
    told(canny(&image, 1e9, 0.1, 0.2).check(), "canny: a Gaussian of sigma 1000000000 reaches 4000000000 pixels");
    told(canny(&image, 1.0, 0.3, 0.2).check(), "canny: the thresholds 0.3 and 0.2 are not ordered");
    told(canny(&empty, 1.0, 0.1, 0.2).check(), "zeros: ");
    told(equalize_hist(&image.convert::<f32>(), 0).check(), "equalize_hist: requested 0 bins");
    told(equalize_hist(&image.convert::<i32>(), 9).check(), "equalize_hist: the pixels are i32");
    told(equalize_hist(&empty, 9).check(), "zeros: ");
    let adapted = |image: &Image<u8>, tile, limit, bins| equalize_adapthist(image, tile, limit, bins).map(drop);
    told(adapted(&colour, None, 0.0, 9), "equalize_adapthist: the image has 1 levels and 2 channels");
    told(adapted(&image, Some((0, 3)), 0.0, 9), "equalize_adapthist: tiles of 0x3 pixels are empty");
    told(adapted(&image, None, f64::NAN, 9), "equalize_adapthist: the limit is NaN");
    told(adapted(&image, None, 0.0, 0), "equalize_adapthist: requested 0 bins");
    told(adapted(&empty, None, 0.0, 9), "zeros: ");
    let wide = Image::<u8>::zeros(&s, (300, 300));
    told(adapted(&wide, Some((1, 1)), 0.0, 256), "equalize_adapthist: 90000 tiles of 256 bins");
    told(equalize_adapthist(&image.convert::<i8>(), None, 0.0, 9).map(drop), "equalize_adapthist: the pixels are i8");
    let bright = image.convert::<f32>() + 2.0;
    told(equalize_adapthist(&bright, None, 0.0, 9).map(drop), "equalize_adapthist: pixels from 2 to 2");
    told(local_maxima(&colour, Connectivity::FACES).check(), "local_maxima: the image has 2 channels");
    told(peak_local_max(&colour, 1, None, 0).check(), "peak_local_max: the image has 2 channels");
    told(peak_local_max(&image, 1 << 20, None, 0).check(), "peak_local_max: the distance is 1048576");
    told(peak_local_max(&empty, 1, None, 0).check(), "zeros: ");
    told(bilateral(&image, 4, 1.0, 1.0).check(), "bilateral: the size is 4; it must be odd and at most 63");
    told(bilateral(&image, 3, 0.0, 1.0).check(), "bilateral: sigma is 0; it must be positive and finite");
    told(bilateral(&empty, 3, 1.0, 1.0).check(), "zeros: ");
}
