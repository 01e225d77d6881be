//! The programs of `examples/` compared with arrays computed by NumPy, SciPy, scikit-image and
//! OpenCV (`goldens/programs.py`), and bit by bit with themselves on other numbers of ranks and in
//! other modes.
//!
//! The arrays were computed in f64 from images that are exactly f32 numbers, and are stored as f32:
//! a relative error of 6e-8. Masks are compared exactly: the script refuses inputs whose masks
//! depend on rounding.

// Each has a `main`, which is not called here.
#![allow(dead_code)]

use std::path::PathBuf;
use std::sync::Arc;

use horus::prelude::*;
use horus_core::comm::threads::ThreadComm;
use horus_core::dtype::Element;
use ndarray::{Array, Array2, Array3, Dimension, Ix3};
use ndarray_npy::{ReadableElement, read_npy};

#[path = "../examples/background_subtraction.rs"]
mod background_subtraction;
#[path = "../examples/canny.rs"]
mod canny;
#[path = "../examples/cells.rs"]
mod cells;
#[path = "../examples/chambolle.rs"]
mod chambolle;
#[path = "../examples/colour.rs"]
mod colour;
#[path = "../examples/deskew.rs"]
mod deskew;
#[path = "../examples/exposure_fusion.rs"]
mod exposure_fusion;
#[path = "../examples/flat_field.rs"]
mod flat_field;
#[path = "../examples/focus_stack.rs"]
mod focus_stack;
#[path = "../examples/frangi.rs"]
mod frangi;
#[path = "../examples/granulometry.rs"]
mod granulometry;
#[path = "../examples/harris.rs"]
mod harris;
#[path = "../examples/heat.rs"]
mod heat;
#[path = "../examples/hysteresis.rs"]
mod hysteresis;
#[path = "../examples/jacobi.rs"]
mod jacobi;
#[path = "../examples/ndvi.rs"]
mod ndvi;
#[path = "../examples/optical_flow.rs"]
mod optical_flow;
#[path = "../examples/otsu.rs"]
mod otsu;
#[path = "../examples/perona_malik.rs"]
mod perona_malik;
#[path = "../examples/pyramids.rs"]
mod pyramids;
#[path = "../examples/registration.rs"]
mod registration;
#[path = "../examples/richardson_lucy.rs"]
mod richardson_lucy;
#[path = "../examples/sauvola.rs"]
mod sauvola;
#[path = "../examples/segment.rs"]
mod segment;
#[path = "../examples/stars.rs"]
mod stars;
#[path = "../examples/structure_tensor.rs"]
mod structure_tensor;
#[path = "../examples/template_matching.rs"]
mod template_matching;
#[path = "../examples/tiling.rs"]
mod tiling;
#[path = "../examples/tutorial.rs"]
mod tutorial;
#[path = "../examples/unsharp_mask.rs"]
mod unsharp_mask;

fn golden<T: ReadableElement, D: Dimension>(name: &str) -> Array<T, D> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/programs");
    read_npy(folder.join(format!("{name}.npy"))).unwrap_or_else(|e| panic!("golden {name}: {e}"))
}

fn image<T: Element + ReadableElement>(session: &Session, name: &str) -> Image<T> {
    Image::from_array(session, golden::<T, ndarray::Ix2>(name).view())
}

fn grey(session: &Session) -> Image<f32> {
    image(session, "grey")
}

fn unit(session: &Session) -> Image<f32> {
    Image::from_array(session, golden::<u8, ndarray::Ix3>("colour").view()).to_unit()
}

/// The result of a program, in row-major order and channels last, as in the goldens.
struct ProgramOutput {
    golden: &'static str,
    values: Vec<f64>,
}

fn output<T: Pixel>(golden: &'static str, image: &Image<T>) -> Result<ProgramOutput> {
    Ok(ProgramOutput { golden, values: image.to_array::<Ix3>()?.iter().map(|v| v.to_f64()).collect() })
}

fn mask(golden: &'static str, mask: &Image<bool>) -> Result<ProgramOutput> {
    output(golden, &mask.convert::<u8>())
}

fn run_unsharp_mask(s: &Session) -> Result<Vec<ProgramOutput>> {
    Ok(vec![output("unsharp_mask", &unsharp_mask::unsharp_mask(&grey(s), 2.0, 1.5))?])
}

fn run_canny(s: &Session) -> Result<Vec<ProgramOutput>> {
    Ok(vec![mask("canny", &canny(&grey(s), 1.0, 0.06, 0.2))?])
}

fn run_harris(s: &Session) -> Result<Vec<ProgramOutput>> {
    let response = harris::harris(&grey(s), 1.5, 0.05);
    Ok(vec![output("harris", &response)?, mask("harris_corners", &harris::corners(&response, 7))?])
}

fn run_otsu(s: &Session) -> Result<Vec<ProgramOutput>> {
    let threshold = otsu::otsu(&grey(s).black_hat(&Footprint::disc(6)), 256)?;
    let threshold = ProgramOutput { golden: "otsu", values: vec![threshold.into()] };
    Ok(vec![threshold, mask("otsu_vessels", &otsu::vessels(&grey(s))?)?])
}

fn run_frangi(s: &Session) -> Result<Vec<ProgramOutput>> {
    Ok(vec![output("frangi", &frangi::frangi(&grey(s), &[1.0, 1.5, 2.5], 0.5))?])
}

fn run_sauvola(s: &Session) -> Result<Vec<ProgramOutput>> {
    Ok(vec![output("sauvola", &sauvola::sauvola(&grey(s), 15, 0.05, 0.05))?])
}

fn run_segment(s: &Session) -> Result<Vec<ProgramOutput>> {
    let labels = segment::segment(&grey(s));
    let parts = grey(s).by_label(&labels, 2);
    let (mean, variance) = s.get_all((parts.mean(), parts.variance()))?;
    let mut values = Vec::new();
    for (k, shape) in labels.by_label(&labels, 2).shapes().get()?.iter().enumerate() {
        let (yy, yx, xx) = shape.covariance;
        values.extend([shape.pixels as f64, shape.centre.0, shape.centre.1, yy, yx, xx, mean[k], variance[k]]);
    }
    let measured = ProgramOutput { golden: "segment_measured", values };
    Ok(vec![output("segment", &labels)?, measured, output("segment_density", &segment::density(&labels, 16))?])
}

fn run_background_subtraction(s: &Session) -> Result<Vec<ProgramOutput>> {
    let frames: Array3<f32> = golden("frames");
    let frames: Vec<Image<f32>> = frames.outer_iter().map(|frame| Image::from_array(s, frame)).collect();
    let mut background = &frames[0] * 0.5 + 0.2;
    let mut masks = Vec::new();
    for frame in &frames {
        let moving = background_subtraction::foreground(&mut background, frame, 0.1, 0.25);
        masks.extend(mask("background_subtraction", &moving)?.values);
    }
    Ok(vec![ProgramOutput { golden: "background_subtraction", values: masks }, output("background", &background)?])
}

fn run_richardson_lucy(s: &Session) -> Result<Vec<ProgramOutput>> {
    let psf: Array2<f32> = golden("psf");
    let taps: Vec<f64> = psf.iter().map(|v| f64::from(*v)).collect();
    let psf = Filter::dense(psf.nrows(), psf.ncols(), taps);
    let sharp = richardson_lucy::richardson_lucy(&image(s, "blurred"), &psf, 12)?;
    Ok(vec![output("richardson_lucy", &sharp)?])
}

fn run_perona_malik(s: &Session) -> Result<Vec<ProgramOutput>> {
    Ok(vec![output("perona_malik", &perona_malik::perona_malik(&grey(s), 0.05, 0.2, 15)?)?])
}

fn run_jacobi(s: &Session) -> Result<Vec<ProgramOutput>> {
    let holes = image::<u8>(s, "holes").ne(0);
    Ok(vec![output("jacobi", &jacobi::jacobi(&grey(s), &holes, 1e-7)?)?])
}

fn run_chambolle(s: &Session) -> Result<Vec<ProgramOutput>> {
    Ok(vec![output("chambolle", &chambolle::chambolle(&grey(s), 0.1, 40)?)?])
}

fn run_hysteresis(s: &Session) -> Result<Vec<ProgramOutput>> {
    let dark = grey(s).black_hat(&Footprint::disc(6));
    Ok(vec![mask("hysteresis", &hysteresis::hysteresis(&dark.gt(0.03), &dark.gt(0.13))?)?])
}

fn run_heat(s: &Session) -> Result<Vec<ProgramOutput>> {
    Ok(vec![output("heat", &s.iterate(grey(s), 50, |u| heat::heat(u, 0.2))?.state)?])
}

fn run_colour(s: &Session) -> Result<Vec<ProgramOutput>> {
    let balanced = output("colour_grey_world", &colour::grey_world(&unit(s)))?;
    Ok(vec![balanced, output("colour_saturate", &colour::saturate(&unit(s), 1.3))?])
}

fn run_template_matching(s: &Session) -> Result<Vec<ProgramOutput>> {
    let score = template_matching::match_template(&(grey(s) * 0.5), &grey(s).crop(30, 70, 19, 24))?;
    Ok(vec![output("template_matching", &score)?])
}

fn run_pyramids(s: &Session) -> Result<Vec<ProgramOutput>> {
    let (a, b) = (grey(s).crop(0, 0, 93, 117), grey(s).crop(0, 11, 93, 117).flip(Axis::Columns));
    let mask = Image::from_fn(s, 93, 117, |y, x| if y + x < 100 { 1.0 } else { 0.0 });
    Ok(vec![output("pyramids", &pyramids::blend(&a, &b, &mask, 4))?])
}

fn run_tiling(s: &Session) -> Result<Vec<ProgramOutput>> {
    let work = |part: &Image<f32>| part.gauss_derivative(2.0, (0, 2)).max(part.gauss_derivative(2.0, (2, 0)));
    let tiles = output("tiling", &tiling::tiled(&grey(s), 40, 6, work))?;
    let whole = output("tiling", &work(&grey(s)))?;
    assert_eq!(bits(&tiles), bits(&whole), "tiles and the whole differ");
    Ok(vec![tiles])
}

fn run_tutorial(s: &Session) -> Result<Vec<ProgramOutput>> {
    Ok(vec![mask("tutorial", &tutorial::vessels(grey(s)))?])
}

/// Planes of bytes or of 16 bits, one after the other.
fn planes<T: Pixel + ReadableElement>(s: &Session, name: &str) -> Vec<Image<T>> {
    golden::<T, ndarray::Ix3>(name).outer_iter().map(|plane| Image::from_array(s, plane)).collect()
}

/// Several images as one array, with an index of images as its first axis.
fn stacked(golden: &'static str, images: &[Image<f32>]) -> Result<ProgramOutput> {
    let outputs = images.iter().map(|image| output(golden, image)).collect::<Result<Vec<_>>>()?;
    Ok(ProgramOutput { golden, values: outputs.into_iter().flat_map(|o| o.values).collect() })
}

fn run_flat_field(s: &Session) -> Result<Vec<ProgramOutput>> {
    let camera = planes(s, "camera");
    Ok(vec![output("flat_field", &flat_field::correct(&camera[6], &camera[..3], &camera[3..6]))?])
}

fn run_cells(s: &Session) -> Result<Vec<ProgramOutput>> {
    let picture = image::<u8>(s, "cells").to_unit();
    let seeds = output("cells_seeds", &cells::seeds(&picture, 2.0, 0.05))?;
    Ok(vec![mask("cells_mask", &cells::mask(&picture))?, seeds])
}

fn run_deskew(s: &Session) -> Result<Vec<ProgramOutput>> {
    let angles: Vec<f64> = (-20..=20).map(|i| f64::from(i) * 0.5).collect();
    let values = deskew::profiles(&image::<u8>(s, "page").to_unit(), &angles)?;
    Ok(vec![ProgramOutput { golden: "deskew", values }])
}

fn run_ndvi(s: &Session) -> Result<Vec<ProgramOutput>> {
    let bands = planes(s, "bands");
    let index = ndvi::ndvi(&bands[0], &bands[1]);
    let fields = Image::from_fn(s, 48, 64, |y, x| (y / 16 * 4 + x / 16) as u8);
    let values = ndvi::by_field(&index, &(bands[0].gt(0) & bands[1].gt(0)), &fields, 12).get()?;
    Ok(vec![output("ndvi", &index)?, ProgramOutput { golden: "ndvi_fields", values }])
}

fn run_focus_stack(s: &Session) -> Result<Vec<ProgramOutput>> {
    let frames: Vec<_> = planes::<u8>(s, "focus").iter().map(Image::to_unit).collect();
    let (stack, depth) = focus_stack::focus_stack(&frames, 2.0);
    Ok(vec![output("focus_stack", &stack)?, output("focus_depth", &depth)?])
}

fn run_registration(s: &Session) -> Result<Vec<ProgramOutput>> {
    let pair: Vec<_> = planes::<u8>(s, "pair").iter().map(Image::to_unit).collect();
    let values = registration::register(&pair[0], &pair[1], &[4.0, 2.0, 1.0])?.to_vec();
    Ok(vec![ProgramOutput { golden: "registration", values }])
}

fn run_exposure_fusion(s: &Session) -> Result<Vec<ProgramOutput>> {
    let exposures: ndarray::Array4<u8> = golden("exposures");
    let exposures: Vec<_> = exposures.outer_iter().map(|e| Image::from_array(s, e).to_unit()).collect();
    Ok(vec![output("exposure_fusion", &exposure_fusion::fuse(&exposures, 4))?])
}

fn run_stars(s: &Session) -> Result<Vec<ProgramOutput>> {
    let light = stars::without_sky(&image::<u16>(s, "sky").convert(), 8);
    let labels = stars::stars(&light, 5.0);
    let values = stars::measure(&light, &labels)?.into_iter().flatten().collect();
    let measured = ProgramOutput { golden: "stars_measured", values };
    Ok(vec![output("stars_light", &light)?, output("stars", &labels)?, measured])
}

fn run_optical_flow(s: &Session) -> Result<Vec<ProgramOutput>> {
    let pair: Vec<_> = planes::<u8>(s, "pair").iter().map(Image::to_unit).collect();
    let (down, right) = optical_flow::flow(&pair[0], &pair[1], 11, 3);
    Ok(vec![stacked("optical_flow", &[down, right])?])
}

fn run_granulometry(s: &Session) -> Result<Vec<ProgramOutput>> {
    let (values, sizes) = granulometry::granulometry(&grey(s), 6)?;
    Ok(vec![ProgramOutput { golden: "granulometry", values }, output("granulometry_sizes", &sizes)?])
}

fn run_structure_tensor(s: &Session) -> Result<Vec<ProgramOutput>> {
    let (angle, coherence) = structure_tensor::orientation(&grey(s), 1.5);
    let twice = angle * 2.0;
    Ok(vec![stacked("orientation", &[twice.cos() * &coherence, twice.sin() * coherence])?])
}

fn bits(output: &ProgramOutput) -> Vec<u64> {
    output.values.iter().map(|v| v.to_bits()).collect()
}

type ProgramFunction = fn(&Session) -> Result<Vec<ProgramOutput>>;

/// Every program, and its largest difference from its goldens relative to their largest value;
/// masks must be equal. Unless noted, it allows some ten roundings of f32, 6e-8 each.
const PROGRAMS: [(&str, f64, ProgramFunction); 30] = [
    ("unsharp_mask", 1e-6, run_unsharp_mask),
    ("canny", 0.0, run_canny),
    // A difference of sums of products, each ten times as large.
    ("harris", 1e-5, run_harris),
    // The middle of a bin, from extremes that are themselves rounded to f32.
    ("otsu", 1e-7, run_otsu),
    // The smaller eigenvalue is a difference of larger numbers, and its ratio to the other enters
    // an exponential.
    ("frangi", 1e-5, run_frangi),
    // Computed in f64, stored in f32.
    ("sauvola", 1e-7, run_sauvola),
    // Exact sums, stored in f32.
    ("segment", 1e-7, run_segment),
    ("background_subtraction", 1e-6, run_background_subtraction),
    // Each of 12 steps multiplies by a quotient of sums of 81 products.
    ("richardson_lucy", 1e-5, run_richardson_lucy),
    ("perona_malik", 1e-6, run_perona_malik),
    // Iterated until a step changes less than 1e-7, compared with the solution.
    ("jacobi", 1e-5, run_jacobi),
    ("chambolle", 1e-6, run_chambolle),
    ("hysteresis", 0.0, run_hysteresis),
    // Fifty steps, compared with all of them at once.
    ("heat", 2e-6, run_heat),
    // Hues are quotients of differences.
    ("colour", 1e-6, run_colour),
    // Computed in f64, by scikit-image with Fourier transforms, stored in f32.
    ("template_matching", 1e-6, run_template_matching),
    ("pyramids", 1e-6, run_pyramids),
    // Second derivatives: small differences of pixels some fifty times as large.
    ("tiling", 1e-5, run_tiling),
    ("tutorial", 0.0, run_tutorial),
    ("flat_field", 1e-6, run_flat_field),
    ("cells", 0.0, run_cells),
    // A variance of sums, about their mean, of bilinear samples.
    ("deskew", 1e-6, run_deskew),
    // A difference of bands of up to ten times its size.
    ("ndvi", 1e-6, run_ndvi),
    // Pixels of the frames, unchanged.
    ("focus_stack", 1e-7, run_focus_stack),
    // Sums of products over thousands of pixels.
    ("registration", 1e-6, run_registration),
    // In nearly flat parts, the contrast that weighs the picture is a small difference of pixels
    // some fifty times as large.
    ("exposure_fusion", 3e-5, run_exposure_fusion),
    // Integers, summed in f64.
    ("stars", 1e-7, run_stars),
    // Quotients of small differences of products, where all gradients around a pixel are parallel.
    ("optical_flow", 2e-5, run_optical_flow),
    // Exact differences, summed in f64.
    ("granulometry", 1e-7, run_granulometry),
    // Differences of moments divided by their sum, and functions of an angle.
    ("structure_tensor", 1e-5, run_structure_tensor),
];

#[test]
fn programs_compute_what_others_do() {
    let session = Session::builder().device("cpu").build().expect("a session on the CPU");
    for (name, tolerance, run) in PROGRAMS {
        for output in run(&session).unwrap_or_else(|e| panic!("{name}: {e}")) {
            let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/programs");
            let path = folder.join(format!("{}.npy", output.golden));
            let (expected, tolerance): (Vec<f64>, f64) = match read_npy::<_, ndarray::ArrayD<u8>>(&path) {
                Ok(mask) => (mask.iter().map(|v| f64::from(*v)).collect(), 0.0),
                Err(_) => {
                    let floats: ndarray::ArrayD<f32> = golden(output.golden);
                    let largest = floats.iter().fold(0.0, |m: f32, v| m.max(v.abs()));
                    (floats.iter().map(|v| f64::from(*v)).collect(), tolerance * f64::from(largest))
                }
            };
            assert_eq!(output.values.len(), expected.len(), "{}: number of values", output.golden);
            let differences = output.values.iter().zip(&expected).map(|(a, b)| (a - b).abs());
            // A NaN is larger than any tolerance.
            let largest = differences.fold(0.0, |m: f64, d| if d <= m { m } else { d });
            println!("{:24} {largest:.1e} {tolerance:.0e}", output.golden);
            assert!(largest <= tolerance, "{}: differs by {largest:e}, more than {tolerance:e}", output.golden);
        }
    }
}

#[test]
fn programs_give_the_same_bits_on_any_number_of_ranks_and_in_any_mode() {
    let run_all = |ranks: usize, mode: Mode| {
        ThreadComm::run(ranks, |comm| {
            let session = Session::builder().device("cpu").threads(1).mode(mode).communicator(Arc::new(comm)).build();
            let session = session.expect("a session on the CPU");
            let outputs = PROGRAMS.map(|(name, _, run)| run(&session).unwrap_or_else(|e| panic!("{name}: {e}")));
            outputs.map(|all| all.iter().map(bits).collect::<Vec<_>>())
        })
    };
    let alone = &run_all(1, Mode::Fused)[0];
    // Each mode on one rank and on several.
    let others =
        [(1, Mode::Naive), (1, Mode::Lazy), (2, Mode::Lazy), (2, Mode::Fused), (3, Mode::Naive), (3, Mode::Fused)];
    for (ranks, mode) in others {
        for (rank, there) in run_all(ranks, mode).iter().enumerate() {
            for ((name, ..), (here, there)) in PROGRAMS.iter().zip(alone.iter().zip(there)) {
                assert!(here == there, "{name}, rank {rank} of {ranks}, {mode:?}: other bits");
            }
        }
    }
}
