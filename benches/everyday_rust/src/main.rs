//! Everyday functions of Horus beside those of Rust's image crates, in one run.
//!
//! ```text
//! cargo run --release --manifest-path benches/everyday_rust/Cargo.toml -- [--sizes 480x640,1080x1920] [--functions gauss,resize]
//!     [--threads 2] [--seconds 0.15]
//! ```
//!
//! Two times of Horus: *held*, from a picture in the session to a result there, and *vec*, from a `Vec` to a `Vec`. Peers read a
//! slice and write new memory. Calls take turns, and the least time of each counts. A ratio is the time of the fastest peer by
//! Horus's: above 1 Horus is faster. `~` marks a peer that computes something coarser (taps, weights or positions of 8 to 16 bits).

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use fast_image_resize as fir;
use horus::prelude::*;
use horus::types::Element;
use image::{ImageBuffer, Luma, Rgb};
use kornia_image::{Image as Kornia, ImageSize};
use kornia_imgproc as kornia;
use libblur::{BlurImage, BlurImageMut, ConvolutionMode, EdgeMode, EdgeMode2D, FastBlurChannels, ThreadingPolicy};

type Call<'a> = Box<dyn FnMut() + 'a>;
type Outcome<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A row of the table: the calls of each library, Horus's two first.
struct Row<'a> {
    name: String,
    calls: Vec<(&'static str, Call<'a>)>,
}

/// What a run measures.
struct Options {
    sizes: Vec<(usize, usize)>,
    functions: Vec<String>,
    threads: usize,
    seconds: f64,
}

/// A picture in memory and in a session.
struct Picture<'a, T: Pixel> {
    session: &'a Session,
    shape: Shape,
    values: Vec<T>,
    held: Image<T>,
    threads: usize,
}

impl<'a, T: Pixel> Picture<'a, T> {
    fn new(session: &'a Session, (height, width): (usize, usize), channels: usize, threads: usize) -> Outcome<Self> {
        let shape = Shape::new(height, width, channels);
        let top = if T::TAG.is_float() { 1.0 } else { T::HIGHEST.to_f64() };
        let mut state = 1u64;
        let mut noise = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f64 / 16_777_216.0
        };
        let mut values = Vec::with_capacity(shape.len());
        for y in 0..height {
            for x in 0..width {
                for c in 0..channels {
                    let wave = 0.45 + 0.2 * ((y as f64 / 23.0).sin() + ((x + 7 * c) as f64 / 31.0).cos());
                    values.push(T::from_f64((wave + 0.1 * noise()) * top));
                }
            }
        }
        let held = Image::from_slice(session, shape, &values);
        Ok(Picture { session, shape, values, held, threads })
    }

    /// A row of `record`, in the session and from vector to vector, beside peers.
    fn row<R: Element + 'a>(
        &'a self,
        name: &str,
        record: impl Fn(&Image<T>) -> Image<R> + Clone + 'a,
        peers: Vec<(&'static str, Call<'a>)>,
    ) -> Row<'a> {
        let from_vec = record.clone();
        let mut calls: Vec<(&'static str, Call<'a>)> = vec![
            (
                "held",
                Box::new(move || {
                    let _kept = record(&self.held);
                    self.session.evaluate().expect("an evaluation");
                }),
            ),
            (
                "vec",
                Box::new(move || {
                    let image = Image::from_slice(self.session, self.shape, &self.values);
                    let found = from_vec(&image).to_vec().expect("pixels");
                    assert!(!found.is_empty());
                }),
            ),
        ];
        calls.extend(peers);
        Row { name: name.into(), calls }
    }

    /// A row of a number of `record`.
    fn number(
        &'a self,
        name: &str,
        record: impl Fn(&Image<T>) + Clone + 'a,
        peers: Vec<(&'static str, Call<'a>)>,
    ) -> Row<'a> {
        let from_vec = record.clone();
        let mut calls: Vec<(&'static str, Call<'a>)> = vec![
            ("held", Box::new(move || record(&self.held))),
            ("vec", Box::new(move || from_vec(&Image::from_slice(self.session, self.shape, &self.values)))),
        ];
        calls.extend(peers);
        Row { name: name.into(), calls }
    }

    fn size(&self) -> ImageSize {
        ImageSize { width: self.shape.width, height: self.shape.height }
    }

    fn policy(&self) -> ThreadingPolicy {
        ThreadingPolicy::Fixed(NonZeroUsize::new(self.threads).expect("a thread"))
    }

    fn channels(&self) -> FastBlurChannels {
        if self.shape.channels == 1 { FastBlurChannels::Plane } else { FastBlurChannels::Channels3 }
    }
}

/// A call of a function of `libblur` that writes a new picture.
macro_rules! blur {
    ($of:expr, $name:literal, |$from:ident, $to:ident| $call:expr) => {{
        let picture = $of;
        let (width, height) = (picture.shape.width as u32, picture.shape.height as u32);
        let call = move || {
            let $from = BlurImage::borrow(&picture.values, width, height, picture.channels());
            let mut room = BlurImageMut::alloc(width, height, picture.channels());
            let $to = &mut room;
            $call.expect("libblur");
        };
        ($name, Box::new(call) as Call<'_>)
    }};
}

/// The number of taps on each axis that Horus's Gaussian has.
fn taps(sigma: f64) -> u32 {
    2 * (3.0 * sigma).ceil() as u32 + 1
}

const MIRRORED: EdgeMode2D = EdgeMode2D::new(EdgeMode::Reflect101);

fn gauss8<'a>(of: &'a Picture<'a, u8>, sigma: f64) -> (&'static str, Call<'a>) {
    let params = libblur::GaussianBlurParams::new(taps(sigma), sigma);
    blur!(of, "libblur~", |from, to| libblur::gaussian_blur(
        &from,
        to,
        params,
        MIRRORED,
        of.policy(),
        ConvolutionMode::FixedPoint
    ))
}

fn gauss16<'a>(of: &'a Picture<'a, u16>, sigma: f64) -> (&'static str, Call<'a>) {
    let params = libblur::GaussianBlurParams::new(taps(sigma), sigma);
    blur!(of, "libblur~", |from, to| libblur::gaussian_blur_u16(
        &from,
        to,
        params,
        MIRRORED,
        of.policy(),
        ConvolutionMode::FixedPoint
    ))
}

fn gauss32<'a>(of: &'a Picture<'a, f32>, sigma: f64) -> (&'static str, Call<'a>) {
    let params = libblur::GaussianBlurParams::new(taps(sigma), sigma);
    blur!(of, "libblur", |from, to| libblur::gaussian_blur_f32(
        &from,
        to,
        params,
        MIRRORED,
        of.policy(),
        libblur::IeeeBinaryConvolutionMode::Normal
    ))
}

fn median<'a>(of: &'a Picture<'a, u8>, radius: u32) -> (&'static str, Call<'a>) {
    blur!(of, "libblur", |from, to| libblur::median_blur(&from, to, radius, of.policy()))
}

/// Resizing by `fast_image_resize`.
fn fir_resize<'a, T: Pixel>(
    of: &'a Picture<'a, T>,
    (height, width): (usize, usize),
    kind: fir::PixelType,
    algorithm: fir::ResizeAlg,
) -> (&'static str, Call<'a>) {
    let call = move || {
        let (rows, columns) = (of.shape.height as u32, of.shape.width as u32);
        let from = fir::images::ImageRef::new(columns, rows, bytemuck::cast_slice(&of.values), kind).expect("a view");
        let mut to = fir::images::Image::new(width as u32, height as u32, kind);
        let options = fir::ResizeOptions::new().resize_alg(algorithm).use_alpha(false);
        fir::Resizer::new().resize(&from, &mut to, &options).expect("fast_image_resize");
    };
    let name = if of.values.first().is_some_and(|_| T::TAG.is_float()) { "fir" } else { "fir~" };
    (name, Box::new(call))
}

/// Resizing by `pic-scale`.
macro_rules! pic_scale {
    ($of:expr, $size:expr, $channels:literal, $type:ty, $plan:ident) => {{
        let (of, (height, width)) = ($of, $size);
        let call = move || {
            let policy = pic_scale::ThreadingPolicy::Fixed(of.threads);
            let scaler = pic_scale::Scaler::new(pic_scale::ResamplingFunction::Bilinear).set_threading_policy(policy);
            let from_size = pic_scale::ImageSize::new(of.shape.width, of.shape.height);
            let plan = scaler.$plan(from_size, pic_scale::ImageSize::new(width, height)).expect("a plan");
            let from =
                pic_scale::ImageStore::<$type, $channels>::from_slice(&of.values, of.shape.width, of.shape.height)
                    .expect("a view");
            let mut to = pic_scale::ImageStoreMut::<$type, $channels>::alloc(width, height);
            plan.resample(&from, &mut to).expect("pic-scale");
        };
        ("pic-scale~", Box::new(call) as Call<'_>)
    }};
}

fn kornia_of<const C: usize>(of: &Picture<'_, u8>) -> Kornia<u8, C> {
    Kornia::new(of.size(), of.values.clone()).expect("a picture")
}

/// A call of a function of `kornia` that writes a new picture of bytes.
fn kornia_call<'a, const C: usize, const D: usize>(
    of: &'a Picture<'a, u8>,
    name: &'static str,
    (height, width): (usize, usize),
    call: impl Fn(&Kornia<u8, C>, &mut Kornia<u8, D>) + 'a,
) -> (&'static str, Call<'a>) {
    let from = kornia_of::<C>(of);
    let size = ImageSize { width, height };
    (
        name,
        Box::new(move || {
            let mut to = Kornia::from_size_val(size, 0).expect("memory");
            call(&from, &mut to);
        }),
    )
}

const KERNEL: [f32; 9] = [1.0, 2.0, 0.0, -1.0, 3.0, 1.0, 0.0, 1.0, -2.0];

fn bytes<'a>(of: &'a Picture<'a, u8>) -> Vec<Row<'a>> {
    use kornia_imgproc::interpolation::InterpolationMode::Bilinear;
    let Shape { height, width, .. } = of.shape;
    let size = (height, width);
    let small = (height / 3, width / 3);
    let half = (height / 2, width / 2);
    let grey = image::GrayImage::from_raw(width as u32, height as u32, of.values.clone()).expect("a picture");
    let grey: &'a image::GrayImage = Box::leak(Box::new(grey));
    let mut rows = Vec::new();
    for sigma in [1.0, 2.0, 10.0] {
        rows.push(of.row(
            &format!("gauss {sigma} u8"),
            move |a| a.gauss(sigma).convert::<u8>(),
            vec![gauss8(of, sigma)],
        ));
    }
    for side in [5, 31] {
        let params = libblur::BoxBlurParameters::new(side);
        rows.push(of.row(
            &format!("box {side} u8"),
            move |a| a.box_mean(side as usize).convert::<u8>(),
            vec![
                blur!(of, "libblur", |from, to| libblur::box_blur(&from, to, params, of.policy())),
                ("imageproc", Box::new(move || drop(imageproc::filter::box_filter(grey, side / 2, side / 2)))),
            ],
        ));
    }
    for side in [3u32, 5, 9] {
        rows.push(of.row(&format!("median {side} u8"), move |a| a.median(side as usize), vec![median(of, side / 2)]));
    }
    rows.push(of.row(
        "correlate 3x3 u8",
        |a| a.correlate(&Filter::dense(3, 3, KERNEL.map(f64::from))).convert::<u8>(),
        vec![blur!(of, "libblur", |from, to| libblur::filter_2d::<u8, f32>(
            &from,
            to,
            &KERNEL,
            libblur::KernelShape::new(3, 3),
            MIRRORED,
            libblur::Scalar::default(),
            of.policy()
        ))],
    ));
    rows.push(of.row(
        "sobel u8 to i16",
        |a| a.sobel(Axis::Columns).convert::<i16>(),
        vec![("imageproc", Box::new(move || drop(imageproc::gradients::horizontal_sobel(grey))))],
    ));
    let erosion = kornia::morphology::box_kernel(5);
    rows.push(of.row(
        "erosion 5 u8",
        |a| a.erode(5),
        vec![
            (
                "imageproc",
                Box::new(move || {
                    drop(imageproc::morphology::erode(grey, imageproc::distance_transform::Norm::LInf, 2))
                }),
            ),
            kornia_call::<1, 1>(of, "kornia", size, move |from, to| {
                kornia::morphology::erode(from, to, &erosion, kornia::padding::PaddingMode::Replicate, [0])
                    .expect("kornia");
            }),
        ],
    ));
    rows.push(of.row(
        "resize / 3 averaged u8",
        move |a| a.resize(small.0, small.1, Resampling::Triangle),
        vec![
            fir_resize(of, small, fir::PixelType::U8, fir::ResizeAlg::Convolution(fir::FilterType::Bilinear)),
            pic_scale!(of, small, 1, u8, plan_planar_resampling),
            kornia_call::<1, 1>(of, "kornia~", small, |from, to| {
                kornia::resize::resize_fast_mono_aa(from, to, Bilinear, true).expect("kornia")
            }),
        ],
    ));
    rows.push(of.row(
        "resize / 3 lanczos u8",
        move |a| a.resize(small.0, small.1, Resampling::Lanczos),
        vec![fir_resize(of, small, fir::PixelType::U8, fir::ResizeAlg::Convolution(fir::FilterType::Lanczos3))],
    ));
    for (name, to) in [("/ 3", small), ("/ 2", half), ("* 2", (2 * height, 2 * width))] {
        rows.push(of.row(
            &format!("resize {name} sampled u8"),
            move |a| a.resize(to.0, to.1, Interpolation::Bilinear),
            vec![
                fir_resize(of, to, fir::PixelType::U8, fir::ResizeAlg::Interpolation(fir::FilterType::Bilinear)),
                kornia_call::<1, 1>(of, "kornia~", to, |from, to| {
                    kornia::resize::resize_fast_mono_aa(from, to, Bilinear, false).expect("kornia")
                }),
            ],
        ));
    }
    let turn = kornia::warp::get_rotation_matrix2d((width as f32 / 2.0, height as f32 / 2.0), 30.0, 1.0);
    rows.push(of.row(
        "rotate 30 linear u8",
        |a| a.rotate(30.0, Interpolation::Bilinear),
        vec![kornia_call::<1, 1>(of, "kornia~", size, move |from, to| {
            kornia::warp::warp_affine_u8(from, to, &turn).expect("kornia")
        })],
    ));
    rows.push(of.row(
        "threshold u8",
        |a| a.gt(128),
        vec![
            (
                "imageproc",
                Box::new(move || {
                    drop(imageproc::contrast::threshold(grey, 128, imageproc::contrast::ThresholdType::Binary))
                }),
            ),
            kornia_call::<1, 1>(of, "kornia", size, |from, to| {
                kornia::threshold::threshold_binary(from, to, 128, 255).expect("kornia")
            }),
        ],
    ));
    rows.push(of.number(
        "otsu u8",
        |a| assert!(a.otsu().get().is_ok()),
        vec![("imageproc", Box::new(move || assert!(imageproc::contrast::otsu_level(grey) > 0)))],
    ));
    rows.push(of.number(
        "histogram u8",
        |a| assert!(a.histogram(256, 0.0, 256.0).get().is_ok()),
        vec![("imageproc", Box::new(move || drop(imageproc::stats::histogram(grey))))],
    ));
    rows.push(of.number(
        "sum u8",
        |a| assert!(a.sum().get().is_ok()),
        vec![("iterator", Box::new(move || assert!(of.values.iter().map(|v| u64::from(*v)).sum::<u64>() > 0)))],
    ));
    rows.push(of.row(
        "label u8",
        |a| a.gt(128).label(Connectivity::FACES),
        vec![(
            "imageproc",
            Box::new(move || {
                let mask = imageproc::contrast::threshold(grey, 128, imageproc::contrast::ThresholdType::Binary);
                drop(imageproc::region_labelling::connected_components(
                    &mask,
                    imageproc::region_labelling::Connectivity::Four,
                    Luma([0]),
                ))
            }),
        )],
    ));
    rows
}

fn words<'a>(of: &'a Picture<'a, u16>) -> Vec<Row<'a>> {
    let Shape { height, width, .. } = of.shape;
    let small = (height / 3, width / 3);
    let mut rows = Vec::new();
    for sigma in [1.0, 10.0] {
        rows.push(of.row(
            &format!("gauss {sigma} u16"),
            move |a| a.gauss(sigma).convert::<u16>(),
            vec![gauss16(of, sigma)],
        ));
    }
    let params = libblur::BoxBlurParameters::new(31);
    rows.push(of.row(
        "box 31 u16",
        |a| a.box_mean(31).convert::<u16>(),
        vec![blur!(of, "libblur", |from, to| libblur::box_blur_u16(&from, to, params, of.policy()))],
    ));
    rows.push(of.row(
        "resize / 3 averaged u16",
        move |a| a.resize(small.0, small.1, Resampling::Triangle),
        vec![fir_resize(of, small, fir::PixelType::U16, fir::ResizeAlg::Convolution(fir::FilterType::Bilinear))],
    ));
    rows.push(of.number(
        "sum u16",
        |a| assert!(a.sum().get().is_ok()),
        vec![("iterator", Box::new(move || assert!(of.values.iter().map(|v| u64::from(*v)).sum::<u64>() > 0)))],
    ));
    rows
}

fn floats<'a>(of: &'a Picture<'a, f32>) -> Vec<Row<'a>> {
    let Shape { height, width, .. } = of.shape;
    let small = (height / 3, width / 3);
    let mut rows = Vec::new();
    for sigma in [1.0, 3.0, 10.0] {
        rows.push(of.row(&format!("gauss {sigma} f32"), move |a| a.gauss(sigma), vec![gauss32(of, sigma)]));
    }
    let params = libblur::BoxBlurParameters::new(31);
    rows.push(of.row(
        "box 31 f32",
        |a| a.box_mean(31),
        vec![blur!(of, "libblur", |from, to| libblur::box_blur_f32(&from, to, params, of.policy()))],
    ));
    rows.push(of.row(
        "sobel f32",
        |a| a.sobel(Axis::Columns).hypot(&a.sobel(Axis::Rows)),
        vec![("kornia", {
            let from = Kornia::<f32, 1>::new(of.size(), of.values.clone()).expect("a picture");
            Box::new(move || {
                let mut to = Kornia::from_size_val(from.size(), 0.0).expect("memory");
                kornia::filter::sobel(&from, &mut to, 3).expect("kornia");
            })
        })],
    ));
    rows.push(of.row(
        "resize / 3 averaged f32",
        move |a| a.resize(small.0, small.1, Resampling::Triangle),
        vec![
            fir_resize(of, small, fir::PixelType::F32, fir::ResizeAlg::Convolution(fir::FilterType::Bilinear)),
            pic_scale!(of, small, 1, f32, plan_planar_resampling_f32),
        ],
    ));
    rows
}

fn colours<'a>(of: &'a Picture<'a, u8>) -> Vec<Row<'a>> {
    use kornia_imgproc::interpolation::InterpolationMode::Bilinear;
    let Shape { height, width, .. } = of.shape;
    let (size, small) = ((height, width), (height / 3, width / 3));
    let buffer =
        ImageBuffer::<Rgb<u8>, _>::from_raw(width as u32, height as u32, of.values.clone()).expect("a picture");
    let buffer: &'a ImageBuffer<Rgb<u8>, Vec<u8>> = Box::leak(Box::new(buffer));
    let turn = kornia::warp::get_rotation_matrix2d((width as f32 / 2.0, height as f32 / 2.0), 30.0, 1.0);
    vec![
        of.row("gauss 2 rgb", |a| a.gauss(2.0).convert::<u8>(), vec![gauss8(of, 2.0)]),
        of.row("median 3 rgb", |a| a.median(3), vec![median(of, 1)]),
        of.row(
            "rotate 30 linear rgb",
            |a| a.rotate(30.0, Interpolation::Bilinear),
            vec![kornia_call::<3, 3>(of, "kornia~", size, move |from, to| {
                kornia::warp::warp_affine_u8(from, to, &turn).expect("kornia")
            })],
        ),
        of.row(
            "resize / 3 averaged rgb",
            move |a| a.resize(small.0, small.1, Resampling::Triangle),
            vec![
                fir_resize(of, small, fir::PixelType::U8x3, fir::ResizeAlg::Convolution(fir::FilterType::Bilinear)),
                pic_scale!(of, small, 3, u8, plan_rgb_resampling),
            ],
        ),
        of.row(
            "resize / 3 sampled rgb",
            move |a| a.resize(small.0, small.1, Interpolation::Bilinear),
            vec![
                fir_resize(of, small, fir::PixelType::U8x3, fir::ResizeAlg::Interpolation(fir::FilterType::Bilinear)),
                kornia_call::<3, 3>(of, "kornia~", small, |from, to| {
                    kornia::resize::resize_fast_rgb_aa(from, to, Bilinear, false).expect("kornia")
                }),
            ],
        ),
        of.row(
            "threshold rgb",
            |a| a.gt(128),
            vec![kornia_call::<3, 3>(of, "kornia", size, |from, to| {
                kornia::threshold::threshold_binary(from, to, 128, 255).expect("kornia")
            })],
        ),
        of.row(
            "grey rgb",
            |a| a.luminance().convert::<u8>(),
            vec![
                kornia_call::<3, 1>(of, "kornia~", size, |from, to| {
                    kornia::color::gray_from_rgb_u8(from, to).expect("kornia")
                }),
                ("imageproc", Box::new(move || drop(image::imageops::grayscale(buffer)))),
            ],
        ),
        of.number(
            "sum rgb",
            |a| assert!(a.sum().get().is_ok()),
            vec![("iterator", Box::new(move || assert!(of.values.iter().map(|v| u64::from(*v)).sum::<u64>() > 0)))],
        ),
    ]
}

/// The least time of each call, in milliseconds; they take turns.
fn least(row: &mut Row<'_>, seconds: f64) -> Vec<f64> {
    let mut times = vec![f64::INFINITY; row.calls.len()];
    let end = Instant::now() + Duration::from_secs_f64(seconds * row.calls.len() as f64);
    loop {
        for ((_, call), least) in row.calls.iter_mut().zip(&mut times) {
            let part = Instant::now() + Duration::from_secs_f64(seconds / 8.0);
            loop {
                let start = Instant::now();
                call();
                let took = start.elapsed().as_secs_f64() * 1e3;
                *least = least.min(took);
                if Instant::now() > part {
                    break;
                }
            }
        }
        if Instant::now() > end {
            return times;
        }
    }
}

fn options() -> Outcome<Options> {
    let mut found = Options { sizes: vec![(480, 640), (1080, 1920)], functions: Vec::new(), threads: 2, seconds: 0.15 };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        match word.as_str() {
            "--sizes" => {
                let size = |size: &str| -> Outcome<(usize, usize)> {
                    let (rows, columns) = size.split_once('x').unwrap_or((size, size));
                    Ok((rows.parse()?, columns.parse()?))
                };
                found.sizes = value.split(',').map(size).collect::<Outcome<_>>()?;
            }
            "--functions" => found.functions = value.split(',').map(String::from).collect(),
            "--threads" => found.threads = value.parse()?,
            "--seconds" => found.seconds = value.parse()?,
            other => return Err(format!("{other}: options are --sizes, --functions, --threads, --seconds").into()),
        }
    }
    Ok(found)
}

fn main() -> Outcome {
    let options = options()?;
    rayon::ThreadPoolBuilder::new().num_threads(options.threads).build_global()?;
    let session = Session::builder().device("cpu").threads(options.threads).build()?;
    let mut ratios: Vec<(f64, f64, bool, String)> = Vec::new();
    for size in &options.sizes {
        let grey8 = Picture::<u8>::new(&session, *size, 1, options.threads)?;
        let grey16 = Picture::<u16>::new(&session, *size, 1, options.threads)?;
        let grey32 = Picture::<f32>::new(&session, *size, 1, options.threads)?;
        let rgb = Picture::<u8>::new(&session, *size, 3, options.threads)?;
        session.evaluate()?;
        let rows = [bytes(&grey8), words(&grey16), floats(&grey32), colours(&rgb)].into_iter().flatten();
        for mut row in rows {
            if !options.functions.is_empty() && !options.functions.iter().any(|part| row.name.contains(part)) {
                continue;
            }
            let times = least(&mut row, options.seconds);
            let best = (2..times.len()).min_by(|a, b| times[*a].total_cmp(&times[*b])).expect("a peer");
            let (held, vec, coarser) =
                (times[best] / times[0], times[best] / times[1], row.calls[best].0.ends_with('~'));
            let name = format!("{:24} {:>9}", row.name, format!("{}x{}", size.0, size.1));
            let all: Vec<String> =
                row.calls.iter().zip(&times).map(|((who, _), ms)| format!("{who} {ms:.3}")).collect();
            println!("{name}{} {held:6.2} {vec:6.2}  {}", if coarser { '~' } else { ' ' }, all.join("  "));
            ratios.push((held, vec, coarser, name));
        }
    }
    let below = |of: fn(&(f64, f64, bool, String)) -> f64| {
        ratios.iter().filter(|row| of(row) < if row.2 { 0.8 } else { 1.0 }).count()
    };
    println!(
        "{} rows; below 1 (~: .8): {} held, {} from vector to vector",
        ratios.len(),
        below(|r| r.0),
        below(|r| r.1)
    );
    Ok(())
}
