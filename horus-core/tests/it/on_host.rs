//! Functions that the host computes, compared with their definitions, on any number of ranks.

use horus_core::cpu::device::CpuDevice;
use horus_core::image::{Image, hough_line, watershed};
use horus_core::ops::components::Connectivity;
use horus_core::session::Session;

use crate::derived::everywhere;

fn session() -> Session {
    Session::on(Box::new(CpuDevice::new(Some(2)).unwrap())).build().unwrap()
}

/// The watershed by its definition: of all pixels that have a label and wait, the lowest, then the
/// one that has waited longest, passes its label on. No two markers are of equal pixels.
fn flooded(h: usize, w: usize, pixels: &[i16], markers: &[i32], corners: bool, mask: &[bool]) -> Vec<i32> {
    let mut labels: Vec<i32> = markers.iter().zip(mask).map(|(m, inside)| if *inside { *m } else { 0 }).collect();
    let mut waiting: Vec<(i16, usize)> = (0..h * w).filter(|at| labels[*at] != 0).map(|at| (pixels[at], at)).collect();
    let faces = [(-1, 0), (0, -1), (0, 1), (1, 0)];
    let diagonal = [(-1, -1), (-1, 1), (1, -1), (1, 1)];
    let steps: Vec<(isize, isize)> = faces.into_iter().chain(diagonal.into_iter().filter(|_| corners)).collect();
    while let Some(first) = (0..waiting.len()).min_by_key(|k| waiting[*k].0) {
        let (level, at) = waiting.remove(first);
        for (dy, dx) in &steps {
            let (y, x) = ((at / w).cast_signed() + dy, (at % w).cast_signed() + dx);
            if y < 0 || x < 0 || y >= h.cast_signed() || x >= w.cast_signed() {
                continue;
            }
            let to = y.cast_unsigned() * w + x.cast_unsigned();
            if mask[to] && labels[to] == 0 {
                labels[to] = labels[at];
                waiting.push((pixels[to].max(level), to));
            }
        }
    }
    labels
}

#[test]
fn a_watershed_is_the_flood_by_definition() {
    for (h, w) in [(1, 1), (1, 17), (13, 1), (2, 2), (23, 31), (16, 64)] {
        // Plateaus of few levels; markers on levels of their own.
        let (mut pixels, mut markers) = (vec![0i16; h * w], vec![0; h * w]);
        for at in 0..h * w {
            pixels[at] = (at * 7919 % 131 % 5) as i16 * 100;
            if at % 37 == 5 {
                (pixels[at], markers[at]) = (1 + (at / 37) as i16, if at % 2 == 0 { -3 } else { at as i32 });
            }
        }
        let mask: Vec<bool> = (0..h * w).map(|at| at * 31 % 17 > 2).collect();
        for (corners, masked) in [(false, false), (true, false), (false, true), (true, true)] {
            let neighbours = if corners { Connectivity::CORNERS } else { Connectivity::FACES };
            let ours = everywhere(|s| {
                let image = Image::from_slice(s, (h, w), &pixels);
                let (markers, mask) = (Image::from_slice(s, (h, w), &markers), Image::from_slice(s, (h, w), &mask));
                let found = watershed(&image, &markers, neighbours, masked.then_some(&mask)).unwrap();
                found.to_vec().unwrap().into_iter().map(f64::from).collect()
            });
            let within = if masked { mask.clone() } else { vec![true; h * w] };
            let want = flooded(h, w, &pixels, &markers, corners, &within);
            let want: Vec<f64> = want.into_iter().map(f64::from).collect();
            assert_eq!(ours, want, "{h}x{w}, corners {corners}, mask {masked}");
        }
    }
}

#[test]
fn a_plateau_divides_halfway() {
    let s = session();
    let flat = Image::<f32>::zeros(&s, (1, 9));
    let markers = Image::from_slice(&s, (1, 9), &[1, 0, 0, 0, 0, 0, 0, 0, 2]);
    let found = watershed(&flat, &markers, Connectivity::FACES, None).unwrap().to_vec().unwrap();
    assert_eq!(found, [1, 1, 1, 1, 1, 2, 2, 2, 2]);
    let none = watershed(&flat, &Image::zeros(&s, (1, 9)), Connectivity::FACES, None).unwrap();
    assert_eq!(none.to_vec().unwrap(), [0; 9]);
}

#[test]
fn images_that_do_not_fit_a_watershed_are_errors() {
    let s = session();
    let told = |image: &Image<u8>, markers: &Image<i32>, mask: Option<&Image<bool>>| {
        watershed(image, markers, Connectivity::FACES, mask).unwrap_err().to_string()
    };
    let (image, markers) = (Image::<u8>::zeros(&s, (4, 5)), Image::<i32>::zeros(&s, (4, 5)));
    let small = told(&image, &Image::zeros(&s, (4, 4)), None);
    assert!(small.starts_with("watershed: markers of 4x4 for an image of 4x5"), "{small}");
    let mask = told(&image, &markers, Some(&Image::zeros(&s, (5, 4))));
    assert!(mask.starts_with("watershed: a mask of 5x4 for an image of 4x5"), "{mask}");
    let colour = Image::stack(&s, [&image, &image], horus_core::shape::Axis::Channels);
    assert!(told(&colour, &markers, None).contains("the image has 2 channels"));
    let empty = told(&Image::zeros(&s, (0, 5)), &markers, None);
    assert!(empty.starts_with("zeros: "), "{empty}");
    let other = session();
    assert!(told(&image, &Image::zeros(&other, (4, 5)), None).contains("watershed"), "another session");
}

/// The number of pixels at each distance, one direction after the other.
fn lines(h: usize, w: usize, there: impl Fn(usize, usize) -> bool, normals: &[[f64; 2]]) -> Vec<f64> {
    let reach = ((h * h + w * w) as f64).sqrt().ceil() as usize;
    let mut counts = vec![0.0; normals.len() * (2 * reach + 1)];
    for (y, x) in (0..h).flat_map(|y| (0..w).map(move |x| (y, x))).filter(|&(y, x)| there(y, x)) {
        for (k, normal) in normals.iter().enumerate() {
            let distance = (normal[0] * x as f64 + normal[1] * y as f64).round() as isize;
            counts[k * (2 * reach + 1) + reach.wrapping_add_signed(distance)] += 1.0;
        }
    }
    counts
}

#[test]
fn lines_count_their_pixels() {
    let angles = [0.0f64, 90.0, -90.0, 45.0, -45.0, 60.0, 180.0, 17.3, -71.9];
    let normals = angles.map(|a| [a.to_radians().cos(), a.to_radians().sin()]);
    // Exact halves, of both signs.
    let normals = [&normals[..], &[[0.5, 0.0], [-0.5, 0.0], [0.5, -0.5]]].concat();
    for (h, w) in [(1, 1), (1, 19), (14, 1), (23, 31), (8, 70)] {
        let there = |y: usize, x: usize| (y * 31 + x * 17).is_multiple_of(5) || y == 7;
        let ours = everywhere(|s| {
            let counts = hough_line(&Image::from_fn(s, h, w, there), &normals).get().unwrap();
            counts.into_iter().flatten().map(|n| n as f64).collect()
        });
        assert_eq!(ours, lines(h, w, there, &normals), "{h}x{w}");
    }
    // Distances of which `f64` has no more than 33 bits of a fraction.
    let (s, w) = (session(), 530_000);
    let there = |_: usize, x: usize| x % 997 < 2;
    let counts = hough_line(&Image::from_fn(&s, 1, w, there), &normals).get().unwrap();
    let counts: Vec<f64> = counts.into_iter().flatten().map(|n| n as f64).collect();
    assert!(counts == lines(1, w, there, &normals), "1x{w}");
}

#[test]
fn masks_and_normals_that_do_not_fit_are_errors() {
    let s = session();
    let mask = Image::from_fn(&s, 4, 5, |_, x| x == 2);
    assert_eq!(hough_line(&mask, &[]).get().unwrap(), Vec::<Vec<u64>>::new());
    let told = |mask: &Image<bool>, normal: [f64; 2]| hough_line(mask, &[normal]).check().unwrap_err().to_string();
    assert!(told(&mask, [1.0, 0.5]).starts_with("hough_line: the normal is (1, 0.5); its length must be 1"));
    assert!(told(&mask, [f64::NAN, 0.0]).contains("the normal is (NaN, 0)"));
    let volume = Image::from_slice(&s, (2, 2, 2), &[true; 8]);
    assert!(told(&volume, [1.0, 0.0]).contains("2 levels and 1 channels"));
    assert!(told(&Image::zeros(&s, (0, 5)), [1.0, 0.0]).starts_with("zeros: "));
}
