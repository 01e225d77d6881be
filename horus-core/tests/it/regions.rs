//! Parts of images: their pixels on any number of ranks, without computing more than they need.

use std::sync::{Arc, Mutex};

use horus_core::comm::Communicator;
use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::error::Result;
use horus_core::image::Image;
use horus_core::ops::geometric::Interpolation;
use horus_core::session::{Session, SessionBuilder};
use horus_core::shape::{Axis, Border};

fn builder() -> SessionBuilder {
    Session::on(Box::new(CpuDevice::new(Some(1)).expect("a CPU")))
}

fn on_ranks<R: Send>(ranks: usize, run: impl Fn(&Session) -> R + Sync) -> Vec<R> {
    if ranks == 1 {
        return vec![run(&builder().build().expect("a session"))];
    }
    ThreadComm::run(ranks, |comm| {
        let comm: Arc<dyn Communicator> = Arc::new(comm);
        run(&builder().communicator(comm).build().expect("a session"))
    })
}

fn value(y: usize, x: usize) -> f32 {
    ((y * 131 + x * 71) % 257) as f32 * 0.37 - 20.0
}

/// The position that is read before the first or after the last of `n` pixels, as in `numpy.pad`.
fn padded(mode: Border, i: isize, n: isize) -> Option<usize> {
    let inside = |i: isize| usize::try_from(i).ok().filter(|i| *i < n as usize);
    match mode {
        Border::Constant(_) => inside(i),
        Border::Replicate => inside(i.max(0).min(n - 1)),
        Border::Wrap => inside(((i % n) + n) % n),
        // By hand: back and forth, one pixel at a time.
        Border::Reflect | Border::Reflect101 => {
            let twice = mode == Border::Reflect;
            let (mut at, mut step) = (0isize, 1isize);
            let (steps, down) = (i.unsigned_abs(), i < 0);
            if down {
                // Mirrored: begin at the edge, go up.
                if twice && steps > 0 {
                    return padded(mode, steps as isize - 1, n);
                }
            }
            for _ in 0..steps {
                let next = at + step;
                if next < 0 || next >= n {
                    step = -step;
                    if !twice {
                        at += if n == 1 { 0 } else { step };
                    }
                } else {
                    at = next;
                }
            }
            inside(at)
        }
    }
}

#[test]
fn pads_crops_and_pastes_are_those_of_arrays_on_any_number_of_ranks() {
    const MODES: [Border; 5] = Border::all(9.5);
    let (h, w) = (11usize, 7usize);
    for ranks in 1..=5 {
        on_ranks(ranks, |s| {
            let a = Image::from_fn(s, h, w, value);
            for mode in MODES {
                let (top, bottom, left, right) = (5, 13, 8, 2);
                let got = a.with_border(mode).pad(top, bottom, left, right).to_vec().unwrap();
                let width = w + left + right;
                for (i, v) in got.iter().enumerate() {
                    let (y, x) = ((i / width) as isize - top as isize, (i % width) as isize - left as isize);
                    let from = padded(mode, y, h as isize).zip(padded(mode, x, w as isize));
                    let want = from.map_or(9.5, |(y, x)| value(y, x));
                    assert_eq!(v.to_bits(), want.to_bits(), "{mode} at {y}, {x} on {ranks} ranks");
                }
                // A part of what is padded, over its edge.
                let part = a.with_border(mode).pad(top, bottom, left, right).crop(3, 6, 9, 5).to_vec().unwrap();
                let want: Vec<f32> = (3..12).flat_map(|y| got[y * width + 6..y * width + 11].to_vec()).collect();
                assert_eq!(part, want, "{mode} on {ranks} ranks");
            }
            let stamp = Image::from_fn(s, 4, 3, |y, x| 1000.0 + (10 * y + x) as f32);
            for (top, left) in [(-2isize, -1isize), (8, 5), (3, 2), (-9, 0), (0, 30)] {
                let got = a.paste(&stamp, top, left).crop(1, 1, h - 2, w - 2).to_vec().unwrap();
                for (i, v) in got.iter().enumerate() {
                    let (y, x) = (i / (w - 2) + 1, i % (w - 2) + 1);
                    let (sy, sx) = (y as isize - top, x as isize - left);
                    let inside = (0..4).contains(&sy) && (0..3).contains(&sx);
                    let want = if inside { 1000.0 + (10 * sy + sx) as f32 } else { value(y, x) };
                    assert_eq!(*v, want, "{top}, {left} at {y}, {x} on {ranks} ranks");
                }
            }
        });
    }
}

/// A session that keeps what it explains.
fn explained() -> (Session, Arc<Mutex<String>>) {
    let told = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&told);
    let session = builder().explain(move |text| sink.lock().unwrap().push_str(text)).build().unwrap();
    (session, told)
}

#[test]
fn a_part_of_a_result_is_computed_from_a_part_of_its_source() -> Result<()> {
    let (s, told) = explained();
    let (h, w) = (700, 900);
    let a = Image::from_fn(&s, h, w, value);
    // Held, but not computed for it.
    let smooth = a.gauss(2.0);
    let turned = smooth.with_border(Border::Reflect101).rotate(20.0, Interpolation::Bicubic).sobel(Axis::Columns);
    let part = turned.crop(300, 400, 32, 40).to_vec()?;
    let text = std::mem::take(&mut *told.lock().unwrap());
    let launches: Vec<&str> = text.lines().filter(|l| l.contains("launch")).collect();
    assert!(!launches.is_empty(), "{text}");
    assert!(launches.iter().all(|l| !l.contains("700x900")), "{launches:#?}");
    let whole = turned.to_vec()?;
    let want: Vec<f32> = (300..332).flat_map(|y| whole[y * w + 400..y * w + 440].to_vec()).collect();
    let bits = |v: &[f32]| v.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&part), bits(&want));
    assert_eq!(smooth.to_vec()?.len(), h * w);
    Ok(())
}

#[test]
fn a_state_that_goes_on_is_kept_though_only_a_part_is_looked_at() -> Result<()> {
    let s = builder().build()?;
    let mut state = Image::from_fn(&s, 60, 60, value);
    for _ in 0..20 {
        state = state.gauss(1.0);
        state.crop(20, 20, 30, 30).to_vec()?;
    }
    // Each step once: 20 looks compute 20 steps, not 210.
    assert!(s.stats().made.launches <= 60, "{:?}", s.stats().made);
    Ok(())
}
