//! Filters of volumes against scipy (`tests/goldens/volumes.py`), and against the definition bit by
//! bit.

use std::sync::Arc;

use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::dtype::Element;
use horus_core::error::Result;
use horus_core::filters::Footprint;
use horus_core::image::{Image, Taps};
use horus_core::ops::neighbourhood::Filter;
use horus_core::plan::Mode;
use horus_core::session::{Session, SessionBuilder};
use horus_core::shape::Border;
use ndarray::{Array1, Array3, Array4, ArrayView3, Ix4};
use ndarray_npy::{ReadableElement, read_npy};

fn golden<A: ReadableElement, D: ndarray::Dimension>(name: &str) -> ndarray::Array<A, D> {
    let path = format!("{}/../tests/goldens/volumes/{name}.npy", env!("CARGO_MANIFEST_DIR"));
    read_npy(path).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// The borders in the order of the goldens' first axis.
const BORDERS: [Border; 5] = Border::all(0.75);

fn builder() -> SessionBuilder {
    Session::on(Box::new(CpuDevice::new(Some(1)).unwrap()))
}

fn session() -> Session {
    builder().build().unwrap()
}

fn image(s: &Session) -> Image<f32> {
    Image::from_volume_array(s, golden::<f32, ndarray::Ix3>("image").view())
}

fn pixels<T: Element>(image: &Image<T>) -> Array3<T> {
    image.to_array::<Ix4>().unwrap().index_axis_move(ndarray::Axis(3), 0)
}

#[track_caller]
fn close(name: &str, ours: &Image<f32>, want: ArrayView3<'_, f64>, most: f64) {
    let ours = pixels(ours);
    assert_eq!(ours.dim(), want.dim(), "{name}");
    let worst = ours.iter().zip(want).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
    assert!(worst <= most, "{name} differs by {worst:e}, {most:e} is allowed");
}

/// The part of a filter in each level.
fn parts(name: &str) -> Vec<Filter> {
    let taps: Array3<f32> = golden(name);
    let (_, h, w) = taps.dim();
    taps.outer_iter().map(|part| Filter::dense(h, w, part.iter().map(|t| f64::from(*t)).collect::<Vec<_>>())).collect()
}

#[test]
fn linear_filters_are_those_of_scipy_for_every_border() {
    let s = session();
    let v = image(&s);
    let line: Vec<f64> = golden::<f32, ndarray::Ix1>("taps_line").mapv(f64::from).to_vec();
    let want = |name: &str| -> Array4<f64> { golden(name) };
    for (k, border) in BORDERS.into_iter().enumerate() {
        // Sums of 27 products of numbers up to 4, each rounded at 6e-8 of its size.
        let results = [
            ("correlate_cube", v.with_border(border).correlate(&parts("taps_cube"))),
            ("convolve_cube", v.with_border(border).convolve(&parts("taps_cube"))),
            ("correlate_even", v.with_border(border).correlate(&parts("taps_even"))),
            ("correlate_line", v.with_border(border).correlate(Taps::Depth(&line))),
        ];
        for (name, ours) in results {
            close(&format!("{name}, {border}"), &ours, want(name).index_axis(ndarray::Axis(0), k), 1e-5);
        }
    }
    // Three passes with taps rounded to f32.
    for (name, ours) in [
        ("gauss", v.gauss(1.0)),
        ("gauss_aniso", v.gauss((0.7, 1.0, 1.4))),
        ("gauss_z", v.gauss_derivative((1.0, 0.8, 1.2), (1, 0, 0))),
        ("gauss_zzx", v.gauss_derivative((1.1, 0.8, 1.2), (2, 0, 1))),
        ("laplace", v.laplace()),
    ] {
        close(name, &ours, golden::<f64, ndarray::Ix3>(name).view(), 3e-6);
    }
}

#[test]
fn order_filters_and_shifts_are_exactly_those_of_scipy() {
    let s = session();
    let v = image(&s);
    let mask: Array3<u8> = golden("footprint");
    let part = |level: ndarray::ArrayView2<'_, u8>| {
        Footprint::from_mask(3, 3, &level.iter().map(|v| *v != 0).collect::<Vec<_>>())
    };
    let odd: Vec<Footprint> = mask.outer_iter().map(part).collect();
    let wide = vec![Footprint::rectangle(3, 1); 5];
    for (k, border) in BORDERS.into_iter().enumerate() {
        let by = [[1, 0, 0], [-3, 2, 0], [0, -1, 4], [2, 1, -2]];
        let mut results: Vec<(String, Image<f32>)> = vec![
            ("median".into(), v.with_border(border).median((3, 3, 3))),
            ("erosion_odd".into(), v.with_border(border).erode(&odd)),
            ("dilation_odd".into(), v.with_border(border).dilate(&odd)),
            ("erosion_box".into(), v.with_border(border).erode(&wide)),
            ("dilation_box".into(), v.with_border(border).dilate(&wide)),
        ];
        results.extend(
            by.iter().enumerate().map(|(i, d)| (format!("shift_{i}"), v.with_border(border).shift(d[0], d[1], d[2]))),
        );
        for (name, ours) in results {
            let want: Array4<f32> = golden(&name);
            assert_eq!(pixels(&ours), want.index_axis(ndarray::Axis(0), k), "{name}, {border}");
        }
    }
}

/// Tap by tap as documented: a fused multiply-add for each, from 0.
#[test]
fn sums_along_the_depth_have_the_documented_order() {
    let (taps, given): (Array1<f32>, Array3<f32>) = (golden("taps_line"), golden("image"));
    let ours = image(&session()).with_border(Border::Replicate).correlate(Taps::Depth(&taps.mapv(f64::from).to_vec()));
    let (d, h, w) = given.dim();
    let want = Array3::from_shape_fn((d, h, w), |(z, y, x)| {
        (0..9).fold(0.0f32, |sum, k| {
            let level = (z as isize + k as isize - 4).clamp(0, d as isize - 1) as usize;
            taps[k].mul_add(given[[level, y, x]], sum)
        })
    });
    assert_eq!(pixels(&ours).mapv(f32::to_bits), want.mapv(f32::to_bits));
}

#[test]
fn every_mode_and_number_of_ranks_has_the_same_bits() {
    type Step = fn(&Image<f32>) -> Result<Vec<u32>>;
    fn bits(image: &Image<f32>) -> Result<Vec<u32>> {
        Ok(image.to_vec()?.iter().map(|v| v.to_bits()).collect())
    }
    let steps: [(&str, Step); 6] = [
        ("gauss", |v| bits(&v.gauss_derivative((1.0, 2.0, 0.8), (1, 0, 2)))),
        ("laplace", |v| bits(&v.laplace())),
        ("dilation", |v| bits(&v.with_border(Border::Wrap).dilate(&[(); 3].map(|()| Footprint::cross(1))))),
        ("median", |v| bits(&v.with_border(Border::Constant(1.0)).median((3, 3, 3)))),
        ("line", |v| bits(&v.with_border(Border::Reflect).correlate(Taps::Depth(&[0.1; 81])))),
        ("loop", |v| {
            let star = Filter::sparse([(-1, 0), (0, -1), (0, 1), (1, 0)], [1.0; 4]);
            let outside = Border::Constant(0.0);
            let step = |u: &Image<f32>| {
                let ends = u.with_border(outside).shift(1, 0, 0) + u.with_border(outside).shift(-1, 0, 0);
                (u.with_border(outside).correlate(&star) + ends) * (1.0 / 6.0)
            };
            bits(&v.session().iterate(v.clone(), 7, step)?.state)
        }),
    ];
    for (name, step) in steps {
        let run = |s: &Session| step(&image(s)).unwrap_or_else(|e| panic!("{name}: {e}"));
        let first = run(&session());
        for mode in [Mode::Naive, Mode::Lazy, Mode::Fused] {
            for ranks in [1, 2, 3, 5] {
                let all = ThreadComm::run(ranks, |comm| {
                    run(&builder().communicator(Arc::new(comm)).mode(mode).build().unwrap())
                });
                all.iter().for_each(|one| assert_eq!(*one, first, "{name}, {mode:?}, {ranks} ranks"));
            }
        }
    }
}

/// One step of a relaxation in space is one launch: neighbours above and below cost none.
#[test]
fn six_neighbours_are_one_launch() {
    let s = session();
    let star = Filter::sparse([(-1, 0), (0, -1), (0, 1), (1, 0)], [1.0; 4]);
    let outside = Border::Constant(0.0);
    let u = image(&s);
    let ends = u.with_border(outside).shift(1, 0, 0) + u.with_border(outside).shift(-1, 0, 0);
    let next = (u.with_border(outside).correlate(&star) + ends) * (1.0 / 6.0);
    next.to_vec().unwrap();
    assert_eq!(s.stats().made.launches, 1);
}

/// A row filter that pixel operations read joins filters along other axes, and filters of two passes.
#[test]
fn row_filters_join_others() {
    type Program = fn(&Image<f32>, Filter) -> Image<f32>;
    let taps = [1.0, -2.0, 1.0];
    let programs: [Program; 2] = [
        |u, row| {
            u.correlate(&row)
                + u.correlate(&Filter::column([1.0, -2.0, 1.0]))
                + u.correlate(Taps::Depth(&[1.0, -2.0, 1.0]))
        },
        |u, row| {
            u.slice(1).with_border(Border::Reflect).correlate(&row) + u.slice(1).with_border(Border::Reflect).gauss(1.0)
        },
    ];
    for program in programs {
        let s = session();
        program(&image(&s).with_border(Border::Reflect), Filter::row(taps)).to_vec().unwrap();
        assert_eq!(s.stats().made.launches, 1);
    }
}

#[test]
fn what_cannot_be_applied_is_named() {
    let s = session();
    let v = image(&s);
    let told = |image: Image<f32>| image.check().unwrap_err().to_string();
    assert!(told(v.gauss(-1.0)).contains("sigma is -1"));
    assert!(told(v.gauss_derivative((1.0, 1.0, 1.0), (0, 3, 0))).contains("order"));
    assert!(told(v.with_border(Border::Wrap).correlate(Taps::Depth(&[]))).starts_with("correlate: "));
    assert!(told(v.with_border(Border::Wrap).correlate(&[])).starts_with("correlate: "));
    let two = [Footprint::cross(1), Footprint::cross(1)];
    assert!(told(v.with_border(Border::Wrap).erode(&two)).contains("erode: the footprint has 2 levels"));
    assert!(told(v.with_border(Border::Wrap).dilate(&[Footprint::rectangle(2, 2)])).contains("both sizes must be odd"));
}
