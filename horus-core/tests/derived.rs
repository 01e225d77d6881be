//! Statistics of tiles, windows and labels against their definitions, with the same bits in every mode and on any number of ranks.

use std::sync::Arc;

use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::device::Device;
use horus_core::device::simulated::Simulated;
use horus_core::image::Image;
use horus_core::plan::Mode;
use horus_core::session::Session;

fn session(mode: Mode) -> Session {
    Session::on(Box::new(CpuDevice::new(Some(2)).unwrap())).mode(mode).build().unwrap()
}

/// What `compute` gives in every mode on one rank, and fused on up to four: the same bits.
fn everywhere(compute: impl Fn(&Session) -> Vec<f64> + Sync) -> Vec<f64> {
    let alone = compute(&session(Mode::Fused));
    let bits = |v: &[f64]| v.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    for mode in [Mode::Naive, Mode::Lazy] {
        assert_eq!(bits(&compute(&session(mode))), bits(&alone), "{mode:?}");
    }
    for ranks in 2..=4 {
        let all = ThreadComm::run(ranks, |comm| {
            let cpu = CpuDevice::new(Some(1)).unwrap();
            let device: Box<dyn Device> =
                if ranks == 3 { Box::new(Simulated::new(cpu, usize::MAX / 2)) } else { Box::new(cpu) };
            compute(&Session::on(device).communicator(Arc::new(comm)).build().unwrap())
        });
        assert!(all.iter().all(|one| bits(one) == bits(&alone)), "{ranks} ranks");
    }
    alone
}

const H: usize = 29;
const W: usize = 150;

/// Numbers of every size, none of which is simple.
fn value(y: usize, x: usize) -> f32 {
    let n = (y * 7919 + x * 104_729) % 1009;
    (n as f32 - 400.0) / 3.0 + if x > 60 { 1000.0 } else { 0.0 }
}

/// Number, sum, squared deviation, smallest and largest of some pixels, added up one by one in `f64`.
fn plain(pixels: impl Iterator<Item = f64> + Clone) -> [f64; 5] {
    let (n, sum) = pixels.clone().fold((0.0, 0.0), |(n, s), v| (n + 1.0, s + v));
    let squares = pixels.clone().map(|v| (v - sum / n).powi(2)).sum();
    [n, sum, squares, pixels.clone().fold(f64::INFINITY, f64::min), pixels.fold(f64::NEG_INFINITY, f64::max)]
}

#[track_caller]
fn close(ours: f64, want: f64, what: &str) {
    assert!((ours - want).abs() <= 1e-12 * want.abs().max(1.0), "{what}: {ours} instead of {want}");
}

#[test]
fn tiles_and_windows_have_the_statistics_of_their_pixels() {
    for (size, step, whole) in
        [((8, 16), (8, 16), false), ((5, 70), (3, 33), true), ((1, 1), (1, 1), false), ((64, 64), (64, 64), false)]
    {
        let parts = |image: &Image<f32>| if whole { image.windows(size, step) } else { image.tiles(size.0, size.1) };
        let ours = everywhere(|s| {
            let image = Image::from_fn(s, H, W, value);
            let parts = parts(&image);
            let f64s = |image: Image<f32>| image.convert::<f64>();
            let all = [parts.sum(), parts.mean(), parts.variance(), f64s(parts.min()), f64s(parts.max())];
            all.iter().flat_map(|image| image.to_vec().unwrap()).collect()
        });
        let count = |extent: usize, size: usize, step: usize| {
            if whole { (extent - size) / step + 1 } else { extent.div_ceil(step) }
        };
        let (rows, columns) = (count(H, size.0, step.0), count(W, size.1, step.1));
        assert_eq!(ours.len(), 5 * rows * columns, "{size:?}");
        for y in 0..rows {
            for x in 0..columns {
                let (top, left) = (y * step.0, x * step.1);
                let down = top..H.min(top + size.0);
                let pixels = down.flat_map(|y| (left..W.min(left + size.1)).map(move |x| f64::from(value(y, x))));
                let [n, sum, squares, least, most] = plain(pixels);
                for (k, want) in [sum, sum / n, squares / n, least, most].into_iter().enumerate() {
                    close(ours[(k * rows + y) * columns + x], want, &format!("{size:?}, {k} at {y}, {x}"));
                }
            }
        }
    }
}

#[test]
fn tiles_are_reduced_channel_by_channel_and_of_any_expression() {
    let ours = everywhere(|s| {
        let image = Image::from_planes(s, 2, 4, &[&[1u8, 2, 3, 4, 5, 6, 7, 8], &[10, 0, 10, 0, 250, 0, 255, 0]]);
        let sums = (image.convert::<f32>() * 0.5).tiles(2, 2).sum();
        let mut all = sums.to_vec().unwrap();
        all.extend(image.tiles(1, 4).max().to_vec().unwrap().into_iter().map(f64::from));
        all
    });
    assert_eq!(ours, [7.0, 11.0, 130.0, 132.5, 4.0, 8.0, 10.0, 255.0]);
}

#[test]
fn parts_that_are_none_are_errors() {
    let s = session(Mode::Fused);
    let image = Image::from_fn(&s, 4, 5, value);
    let message = |image: &Image<f64>| image.check().unwrap_err().to_string();
    assert!(message(&image.tiles(0, 3).sum()).starts_with("tiles: 0x3 pixels make no tiles of an image of 4x5"));
    assert!(image.tiles(9, 9).mean().check().is_ok());
    let wrong = message(&image.windows((5, 2), (1, 1)).variance());
    assert!(
        wrong.starts_with("windows: 5x2 pixels every 1 rows and 1 columns make no windows of an image of 4x5"),
        "{wrong}"
    );
    assert!(image.windows((2, 2), (0, 1)).min().check().is_err());
}
