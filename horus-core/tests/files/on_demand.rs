//! Pictures read on demand: only the needed parts, in bounded memory, with the bits of the whole.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use horus_core::comm::Communicator;
use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::error::{Error, Result};
use horus_core::image::{Image, Until};
use horus_core::io::{AnyImage, Compression, Depth, OpenOptions, SaveOptions, Scaling};
use horus_core::ops::geometric::Interpolation;
use horus_core::session::{Session, SessionBuilder};
use horus_core::shape::Axis;
use horus_testing::simulated::SimulatedDevice;

use super::TestFolder;
use super::regions::deflate;
use super::tiffs::{self, TiffTestPage};

const HEIGHT: usize = 480;
const WIDTH: usize = 512;
const TILE: usize = 64;

fn sample(y: usize, x: usize) -> u8 {
    ((y * 37 + x * 11 + y * x / 64) % 251) as u8
}

/// A picture in tiles, and the same as an array and as a grey map.
fn pictures(folder: &TestFolder) -> [PathBuf; 3] {
    pictures_of(folder, HEIGHT)
}

fn pictures_of(folder: &TestFolder, height: usize) -> [PathBuf; 3] {
    let corners = (0..height).step_by(TILE).flat_map(|y| (0..WIDTH).step_by(TILE).map(move |x| (y, x)));
    let tile = |(top, left): (usize, usize)| {
        (top..top + TILE).flat_map(|y| (left..left + TILE).map(move |x| sample(y, x))).collect()
    };
    let side = Some((TILE as u32, TILE as u32));
    let grey = TiffTestPage::grey(WIDTH as u32, height as u32, &[]);
    let page = TiffTestPage { tile: side, chunks: corners.map(tile).collect(), ..grey };
    let tiff = folder.put("tiles.tif", &tiffs::file(&[page], false));
    let s = super::session();
    let image = Image::from_fn(&s, height, WIDTH, sample);
    let others = ["array.npy", "map.pgm"].map(|name| folder.at(name));
    for path in &others {
        image.save(path).unwrap();
    }
    let [array, map] = others;
    [tiff, array, map]
}

fn builder(memory: Option<usize>) -> SessionBuilder {
    let builder = Session::on(Box::new(CpuDevice::new(Some(1)).expect("a CPU")));
    memory.map_or_else(|| Session::on(Box::new(CpuDevice::new(Some(1)).unwrap())), |bytes| builder.host_memory(bytes))
}

fn on_ranks<R: Send>(ranks: usize, memory: Option<usize>, run: impl Fn(&Session) -> R + Sync) -> Vec<R> {
    if ranks == 1 {
        return vec![run(&builder(memory).build().expect("a session"))];
    }
    ThreadComm::run(ranks, |comm| {
        let comm: Arc<dyn Communicator> = Arc::new(comm);
        run(&builder(memory).communicator(comm).build().expect("a session"))
    })
}

fn later(session: &Session, path: &Path, later: bool) -> AnyImage {
    let options = OpenOptions { on_demand: Some(later), ..OpenOptions::default() };
    AnyImage::open_with(session, path, &options).expect("a picture")
}

fn bits(values: impl IntoIterator<Item = f64>) -> Vec<u64> {
    values.into_iter().map(f64::to_bits).collect()
}

fn pixels(image: &Image<f32>) -> Result<Vec<u64>> {
    Ok(bits(image.to_vec()?.into_iter().map(f64::from)))
}

type PictureComputation = fn(&AnyImage) -> Result<Vec<u64>>;

/// Programs that fit into little memory: parts, and reductions.
const PROGRAMS: [(&str, PictureComputation); 9] = [
    ("a part of a filter", |picture| pixels(&picture.to_unit().gauss(2.0).crop(100, 203, 40, 51))),
    ("a part by a global range", |picture| {
        let unit = picture.to_unit().sobel(Axis::Columns);
        let range = unit.max_value() - unit.min_value();
        pixels(&(unit / range).crop(0, 480, 33, 32))
    }),
    ("moments", |picture| {
        let smooth = picture.luminance().gauss(1.0);
        let (mean, variance) = smooth.session().get_all((smooth.mean(), smooth.variance()))?;
        Ok(bits([mean, variance]))
    }),
    ("a sum of what was scaled by a mean", |picture| {
        let image = picture.convert::<f64>();
        let scaled = &image / image.mean();
        Ok(bits([scaled.sum().get()?, image.sqrt().sum().get()?]))
    }),
    ("a histogram", |picture| {
        let counts = picture.to_unit().rotate(10.0, Interpolation::Bilinear).histogram(17, 0.0, 1.0).get()?;
        Ok(counts)
    }),
    ("labels", |picture| {
        let image = picture.to_unit();
        let labels = (&image * 5.0).convert::<u8>();
        let parts = image.by_label(&labels, 6);
        let (sums, low) = picture.convert::<u8>().session().get_all((parts.sum(), parts.min()))?;
        let shapes = labels.by_label(&labels, 6).shapes().get()?.into_iter();
        let shapes = shapes.flat_map(|s| [s.centre.0, s.centre.1, s.covariance.0, s.covariance.1, s.covariance.2]);
        Ok(bits(sums.into_iter().chain(low.into_iter().map(f64::from)).chain(shapes)))
    }),
    ("rows and columns", |picture| {
        let image = picture.to_unit();
        let (rows, columns) =
            (image.over(Axis::Columns).sum().to_vec()?, image.gauss(1.0).over(Axis::Rows).sum().to_vec()?);
        Ok(bits(rows.into_iter().chain(columns)))
    }),
    ("an order", |picture| Ok(bits([picture.to_unit().percentile(30.0).get()?]))),
    ("a smaller picture", |picture| {
        pixels(&picture.to_unit().gauss(3.0).rotate(30.0, Interpolation::Bilinear).resize(
            37,
            41,
            Interpolation::Bilinear,
        ))
    }),
];

/// Programs that need more: tables for an order of floats, and the pixels under one that combines
/// many.
const LARGER: [&str; 2] = ["an order", "a smaller picture"];

#[test]
fn sums_of_running_sums_are_refused_before_reading_or_computed() {
    const MIB: usize = 1 << 20;
    let folder = TestFolder::new();
    let file = folder.at("colours.ppm");
    let s = super::session();
    let plane = |k: usize| Image::from_fn(&s, 900, 1200, |y, x| sample(y + k, x));
    Image::stack(&s, [plane(0), plane(1), plane(2)], Axis::Channels).save(&file).unwrap();
    let sum = |s: &Session, is_later: bool| {
        let sum = later(s, &file, is_later).to_unit().gauss(2.0).over(Axis::Rows).cumsum().sum().get();
        (sum.map(f64::to_bits), s.stats().read.chunks)
    };
    let want = sum(&s, false).0.unwrap();
    for limit in [4, 8, 12, 16, 24, 32, 48] {
        let run = |limit: usize| sum(&builder(Some(limit * MIB)).build().unwrap(), true);
        let got = match run(limit) {
            (Ok(sum), _) => sum,
            (Err(error), read) => {
                let said = error.to_string();
                assert_eq!(read, 0, "at {limit}: {said}");
                let enough = said.split("at least ").nth(1).and_then(|rest| rest.split('M').next()?.parse().ok());
                run(enough.expect("a limit")).0.unwrap_or_else(|error| panic!("{limit}: {said}; then {error}"))
            }
        };
        assert_eq!(got, want, "at {limit}");
    }
}

#[test]
fn what_is_read_later_is_what_is_read_now() {
    let folder = TestFolder::new();
    let files = pictures(&folder);
    let s = super::session();
    for (what, compute) in PROGRAMS {
        let want = compute(&later(&s, &files[0], false)).unwrap();
        for (ranks, memory) in [(1, None), (1, Some(900_000)), (2, Some(900_000)), (3, None), (4, Some(900_000))] {
            let memory = memory.map(|bytes| if LARGER.contains(&what) { 4 * bytes } else { bytes });
            for file in &files[..if ranks == 1 { 3 } else { 1 }] {
                let got = on_ranks(ranks, memory, |s| {
                    compute(&later(s, file, true)).unwrap_or_else(|e| panic!("{what} on {ranks} ranks: {e}"))
                });
                let name = file.display();
                assert!(got.iter().all(|got| *got == want), "{what} of {name} on {ranks} ranks within {memory:?}");
            }
        }
    }
}

#[test]
fn what_does_not_fit_on_a_device_takes_regions() {
    let folder = TestFolder::new();
    let [tiff, ..] = pictures(&folder);
    let s = super::session();
    for (what, compute) in PROGRAMS {
        let want = compute(&later(&s, &tiff, false)).unwrap();
        let cpu = CpuDevice::new(Some(1)).expect("a CPU");
        let room = if LARGER.contains(&what) { 2_700_000 } else { 900_000 };
        let small = Session::on(Box::new(SimulatedDevice::new(cpu, room))).build().unwrap();
        let got = compute(&later(&small, &tiff, true)).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert!(got == want, "{what}");
    }
}

#[test]
fn what_does_not_fit_takes_passes_and_regions_and_says_so() -> Result<()> {
    let folder = TestFolder::new();
    let [tiff, ..] = pictures(&folder);
    let told = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&told);
    let s = builder(Some(900_000)).explain(move |text| sink.lock().unwrap().push_str(text)).build()?;
    let image = later(&s, &tiff, true).to_unit();
    let small = (&image / image.max_value()).resize(20, 20, Interpolation::Bilinear);
    assert_eq!(small.to_vec()?.len(), 400);
    let text = told.lock().unwrap();
    assert!(text.contains("reduction row_max in "), "{text}");
    assert!(!text.contains("480x512 f32"), "nothing whole is computed:\n{text}");
    Ok(())
}

#[test]
fn a_part_of_a_filtered_file_reads_the_tiles_that_it_needs() -> Result<()> {
    let folder = TestFolder::new();
    let [tiff, array, _] = pictures(&folder);
    let s = super::session();
    let smooth = later(&s, &tiff, true).to_unit().gauss(2.0);
    assert_eq!(s.stats().read.chunks, 0, "nothing is read when it is opened");
    // Across the corner of four tiles.
    smooth.crop(110, 180, 32, 40).to_vec()?;
    assert_eq!(s.stats().read.chunks, 4, "of {}", HEIGHT / TILE * WIDTH / TILE);
    smooth.crop(200, 200, 10, 10).to_vec()?;
    assert_eq!(s.stats().read.chunks, 5);
    let before = s.stats().read.bytes;
    later(&s, &array, true).convert::<u8>().crop(10, 20, 50, 60).to_vec()?;
    assert_eq!(s.stats().read.bytes - before, 50 * 60);
    Ok(())
}

#[test]
fn a_file_that_went_bad_is_an_error_of_who_looks_on_every_rank() {
    let folder = TestFolder::new();
    let [tiff, ..] = pictures(&folder);
    for ranks in [1, 3] {
        let bad = folder.at("bad.tif");
        std::fs::copy(&tiff, &bad).unwrap();
        let errors = on_ranks(ranks, None, |s| {
            let picture = later(s, &bad, true);
            if s.rank() == 0 {
                // In place: the last tiles are missing.
                std::fs::OpenOptions::new().write(true).open(&bad).unwrap().set_len(70_000).unwrap();
            }
            let part = picture.to_unit().crop(400, 400, 10, 10).to_vec();
            let first = picture.to_unit().crop(0, 0, 10, 10).to_vec();
            (part.unwrap_err(), first.is_ok())
        });
        for (error, first) in errors {
            let Error::File { action: "read", path, .. } = &error else { panic!("{error:?}") };
            assert!(path.ends_with("bad.tif") && first, "{error}");
        }
    }
}

#[test]
fn an_image_that_was_needed_as_a_whole_is_not_read_again() -> Result<()> {
    let folder = TestFolder::new();
    let [tiff, ..] = pictures(&folder);
    let s = super::session();
    let image = later(&s, &tiff, true).convert::<u8>();
    let whole = image.to_vec()?;
    let all = s.stats().read.chunks;
    assert_eq!(whole[3 * WIDTH + 5], sample(3, 5));
    image.to_unit().sum().get()?;
    assert_eq!(s.stats().read.chunks, all);
    // A loop over it.
    let looped = later(&s, &tiff, true).to_unit();
    let by = later(&s, &tiff, true).to_unit();
    let done = s.iterate(looped, Until::steps(3), |state| state * 0.5 + &by)?;
    let state = done.state.crop(10, 10, 1, 1).to_vec()?;
    let v = f32::from(sample(10, 10)) / 255.0;
    assert!((state[0] - v * 1.875).abs() < 1e-5, "{state:?}");
    Ok(())
}

#[test]
fn a_loop_goes_on_where_others_need_the_memory_of_what_it_reads() -> Result<()> {
    const SIDE: usize = 128;
    let folder = TestFolder::new();
    let [tiff, ..] = pictures(&folder);
    let file = folder.at("by.npy");
    Image::from_fn(&super::session(), SIDE, SIDE, |y, x| (y * SIDE + x) as f32).save(&file)?;
    let s = builder(Some(900_000)).build()?;
    let AnyImage::F32(by) = later(&s, &file, true) else { panic!("another type") };
    let large = later(&s, &tiff, true);
    let start = Image::constant(&s, (SIDE, SIDE), 0f32);
    let mut sums = Vec::new();
    // Watching a step needs all the memory.
    let watch = |_, _: &Image<f32>| {
        sums.push(large.to_unit().gauss(1.0).sum().get()?);
        Ok(std::ops::ControlFlow::Continue(()))
    };
    let done = s.iterate_watched(start, 4, |state| state * 0.5 + &by, 1, watch)?;
    assert_eq!(sums.len(), 4);
    assert_eq!(done.state.crop(3, 5, 1, 1).to_vec()?, [1.875 * (3 * SIDE + 5) as f32]);
    Ok(())
}

#[test]
fn a_forecast_knows_a_pass_for_each_extent_that_is_reduced() -> Result<()> {
    let folder = TestFolder::new();
    let [tiff, ..] = pictures(&folder);
    let other = folder.at("other.npy");
    Image::from_fn(&super::session(), 300, 400, sample).save(&other)?;
    let s = builder(Some(900_000)).build()?;
    let (one, two) = (later(&s, &tiff, true).to_unit(), later(&s, &other, true).to_unit());
    let told = one.session().forecast_memory(&((&one - one.mean()) / two.gauss(1.0).max_value()))?;
    assert_eq!(told.passes, 2, "{told}");
    assert!(told.read >= 2 * HEIGHT * WIDTH + 300 * 400, "{told}");
    Ok(())
}

#[test]
fn what_is_turned_is_reduced_in_parts_of_rows() -> Result<()> {
    let folder = TestFolder::new();
    let file = folder.at("wide.npy");
    Image::from_fn(&super::session(), 300, 2600, sample).save(&file)?;
    let reductions: [(&str, PictureComputation, bool); 4] = [
        ("a sum", |picture| Ok(bits([picture.to_unit().rotate(45.0, Interpolation::Bilinear).sum().get()?])), true),
        (
            "moments",
            |picture| {
                let turned = picture.to_unit().rotate(45.0, Interpolation::Bilinear);
                let (mean, variance) = turned.session().get_all((turned.mean(), turned.variance()))?;
                Ok(bits([mean, variance]))
            },
            true,
        ),
        (
            "a range",
            |picture| {
                let turned = picture.to_unit().rotate(45.0, Interpolation::Bilinear) - 0.25;
                let (low, high) = turned.session().get_all((turned.min_value(), turned.max_value()))?;
                Ok(bits([low, high].map(f64::from)))
            },
            true,
        ),
        // The first of several equal pixels, by whole rows.
        (
            "a place",
            |picture| {
                let place = picture.to_unit().gauss(1.0).argmax().get()?.unwrap_or_default();
                Ok(bits(place.map(|n| n as f64)))
            },
            false,
        ),
    ];
    for (what, compute, tiles) in reductions {
        let want = compute(&later(&super::session(), &file, false))?;
        for ranks in [1, 3] {
            let got = on_ranks(ranks, Some(3_000_000), |s| {
                compute(&later(s, &file, true)).unwrap_or_else(|e| panic!("{what}: {e}"))
            });
            assert!(got.iter().all(|got| *got == want), "{what} on {ranks} ranks");
        }
        let told = Arc::new(Mutex::new(String::new()));
        let sink = Arc::clone(&told);
        let s = builder(Some(3_000_000)).explain(move |text| sink.lock().unwrap().push_str(text)).build()?;
        compute(&later(&s, &file, true))?;
        let text = told.lock().unwrap();
        assert_eq!(text.contains("tiles of "), tiles, "{what}: {text}");
    }
    Ok(())
}

/// Files of one picture, whose bytes are compared: the name, the options, and how it is computed.
type ComparedFile = (&'static str, SaveOptions, fn(&AnyImage, &Path, &SaveOptions) -> Result<()>);

fn filtered(picture: &AnyImage, path: &Path, options: &SaveOptions) -> Result<()> {
    picture.to_unit().gauss(1.0).save_with(path, options).map(drop)
}

fn colours(picture: &AnyImage, path: &Path, options: &SaveOptions) -> Result<()> {
    let grey = picture.convert::<u8>();
    let all = [grey.median(3), grey.dilate(3), grey];
    Image::stack(all[0].session(), &all, Axis::Channels).save_with(path, options).map(drop)
}

fn levels(picture: &AnyImage, path: &Path, options: &SaveOptions) -> Result<()> {
    let grey = picture.convert::<u8>();
    let all = [grey.median(3), grey];
    Image::stack(all[0].session(), &all, Axis::Depth).save_with(path, options).map(drop)
}

#[test]
fn a_file_has_the_same_bytes_whatever_memory_and_ranks_there_are() {
    let folder = TestFolder::new();
    let sources = pictures_of(&folder, 10 * HEIGHT);
    let auto = SaveOptions::default();
    let deflated = SaveOptions { compression: Compression::Deflate, ..auto };
    let stored: [ComparedFile; 10] = [
        ("grey.tif", auto, filtered),
        ("grey.tif", SaveOptions { depth: Depth::Eight, scaling: Scaling::Range, ..deflated }, filtered),
        ("grey.tif", SaveOptions { tile: Some((32, 48)), ..deflated }, filtered),
        ("grey.tif", SaveOptions { sizes: 3, depth: Depth::Eight, ..deflated }, filtered),
        ("grey.npy", auto, filtered),
        ("grey.pgm", auto, filtered),
        ("colour.tif", auto, colours),
        ("colour.tif", deflated, colours),
        ("volume.tif", auto, levels),
        ("volume.tif", deflated, levels),
    ];
    for source in &sources[..2] {
        for (i, (name, options, save)) in stored.iter().enumerate() {
            let path = folder.at(name);
            let mut want: Option<Vec<u8>> = None;
            for (ranks, memory) in [(1, None), (1, Some(5 << 20)), (3, Some(7 << 20))] {
                let case = format!("{}, file {i}: {name}, {ranks} ranks, {memory:?}", source.display());
                for saved in on_ranks(ranks, memory, |s| save(&AnyImage::open(s, source)?, &path, options)) {
                    saved.unwrap_or_else(|e| panic!("{case}: {e}"));
                }
                let bytes = std::fs::read(&path).unwrap();
                let want = want.get_or_insert_with(|| bytes.clone());
                assert!(bytes == *want, "{case}: {} and {} bytes", bytes.len(), want.len());
            }
            let read = OpenOptions { volume: name.starts_with("volume"), ..OpenOptions::default() };
            let tile = AnyImage::describe(&super::session(), &path, &read).unwrap().tile;
            let asked = options.tile.or((options.sizes > 1 && !source.ends_with("tiles.tif")).then_some((512, 512)));
            if name.ends_with("tif") && (asked.is_some() || source.ends_with("tiles.tif")) {
                assert_eq!(tile, asked.unwrap_or((TILE, TILE)), "file {i}");
            }
        }
    }
}

/// A picture in one deflated strip, as other programs write.
fn in_one_strip(folder: &TestFolder, height: usize) -> PathBuf {
    let pixels: Vec<u8> = (0..height).flat_map(|y| (0..WIDTH).map(move |x| sample(y, x))).collect();
    let page = TiffTestPage {
        compression: 8,
        chunks: vec![deflate(&pixels)],
        ..TiffTestPage::grey(WIDTH as u32, height as u32, &[])
    };
    folder.put("strip.tif", &tiffs::file(&[page], false))
}

#[test]
fn a_strip_that_many_regions_read_is_inflated_once() -> Result<()> {
    let folder = TestFolder::new();
    // Two MiB, whose rows are columns of the result.
    let strip = in_one_strip(&folder, 4096);
    let turned = |s: &Session, path: &Path| AnyImage::open(s, &strip)?.to_unit().transpose().save(path).map(drop);
    let (whole, regions) = (folder.at("whole.npy"), folder.at("regions.npy"));
    turned(&super::session(), &whole)?;
    let told = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&told);
    let s = builder(Some(3 << 20)).explain(move |text| sink.lock().unwrap().push_str(text)).build()?;
    turned(&s, &regions)?;
    let told = told.lock().unwrap();
    assert!(told.contains("regions:\n"), "it does not fit");
    assert_eq!(s.stats().read.chunks, 1, "{told}");
    assert!(std::fs::read(whole).unwrap() == std::fs::read(regions).unwrap());
    Ok(())
}
