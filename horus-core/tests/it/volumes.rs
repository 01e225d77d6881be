//! Volumes through the public interface: against plain loops over arrays, on any number of ranks
//! and in every mode with the same bits.

use std::sync::Arc;

use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::dtype::Element;
use horus_core::error::Result;
use horus_core::image::Image;
use horus_core::io::AnyImage;
use horus_core::ops::geometric::Interpolation;
use horus_core::plan::Mode;
use horus_core::session::{Session, SessionBuilder};
use horus_core::shape::{Axis, Border, Shape};
use horus_testing::cases::{covering, part};
use ndarray::{Array3, Array4, Ix2, Ix3, Ix4, s};

/// Levels, rows and columns: odd ones, one level, one pixel, fewer rows than ranks.
const SIZES: [[usize; 3]; 5] = [[5, 7, 9], [1, 6, 5], [1, 1, 1], [33, 3, 2], [2, 17, 40]];

fn borders() -> [Border; 5] {
    Border::all(7.0)
}

fn builder() -> SessionBuilder {
    Session::on(Box::new(CpuDevice::new(Some(1)).unwrap()))
}

fn session() -> Session {
    builder().build().unwrap()
}

fn value(z: usize, y: usize, x: usize) -> f32 {
    ((z * 131 + y * 31 + x * 17) % 101) as f32 * 0.37 - 9.0
}

fn given([d, h, w]: [usize; 3]) -> Array3<f32> {
    Array3::from_shape_fn((d, h, w), |(z, y, x)| value(z, y, x))
}

fn volume(s: &Session, [d, h, w]: [usize; 3]) -> Image<f32> {
    Image::from_volume_fn(s, d, h, w, value)
}

/// The pixels that `program` computes, checked to have the same bits in every mode and on 1 to 5
/// ranks; without `HORUS_CASES`, on each number of ranks in one mode.
fn everywhere(name: &str, program: impl Fn(&Session) -> Result<Vec<f64>> + Sync) -> Vec<f64> {
    let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    let first = program(&session()).unwrap_or_else(|e| panic!("{name}: {e}"));
    let modes = [Mode::Naive, Mode::Lazy, Mode::Fused];
    let all = (1..=5usize).flat_map(|ranks| modes.map(|mode| (ranks, mode))).collect();
    let turn = name.bytes().map(usize::from).sum::<usize>();
    for (ranks, mode) in part(all, |all| all.into_iter().filter(|(n, mode)| *mode == modes[(turn + n) % 3]).collect()) {
        let all = ThreadComm::run(ranks, |comm| {
            let session = builder().communicator(Arc::new(comm)).mode(mode).build().unwrap();
            program(&session).unwrap_or_else(|e| panic!("{name}, {mode:?}, {ranks} ranks: {e}"))
        });
        all.iter().for_each(|one| assert_eq!(bits(one), bits(&first), "{name}, {mode:?}, {ranks} ranks"));
    }
    first
}

fn numbers<T: Element + Into<f64>>(image: &Image<T>) -> Result<Vec<f64>> {
    Ok(image.to_vec()?.into_iter().map(Into::into).collect())
}

fn wide(array: impl IntoIterator<Item = f32>) -> Vec<f64> {
    array.into_iter().map(f64::from).collect()
}

/// Pixel `i` of a line of `n` as SciPy documents its modes, written out rather than computed.
fn read(border: Border, i: isize, n: usize) -> Option<usize> {
    let mut line: Vec<usize> = (0..n).collect();
    let back: Vec<usize> = match border {
        Border::Constant(_) => return usize::try_from(i).ok().filter(|i| *i < n),
        Border::Replicate => return Some(i.clamp(0, n as isize - 1) as usize),
        Border::Wrap => Vec::new(),
        Border::Reflect => (0..n).rev().collect(),
        _ => (1..n.max(2) - 1).rev().collect(),
    };
    line.extend(back);
    Some(line[i.rem_euclid(line.len() as isize) as usize])
}

#[test]
fn shifts_read_neighbours_through_every_border() {
    let shifts: [[isize; 3]; 5] = [[1, 0, 0], [-2, 0, 0], [0, 3, -1], [2, -1, 2], [-9, 0, 11]];
    for [size, border, by] in covering([SIZES.len(), borders().len(), shifts.len()]) {
        let (size, border, by) = (SIZES[size], borders()[border], shifts[by]);
        let name = format!("shift {by:?} of {size:?}, {border}");
        let ours = everywhere(&name, |s| numbers(&volume(s, size).with_border(border).shift(by[0], by[1], by[2])));
        let from = given(size);
        let at = |i: usize, k: usize| read(border, i as isize - by[k], size[k]);
        let want =
            Array3::from_shape_fn((size[0], size[1], size[2]), |(z, y, x)| match (at(z, 0), at(y, 1), at(x, 2)) {
                (Some(z), Some(y), Some(x)) => from[[z, y, x]],
                _ => 7.0,
            });
        assert_eq!(ours, wide(want), "{name}");
    }
}

#[test]
fn extents_of_one_are_repeated_along_every_axis() {
    let size = [5, 4, 6];
    let shapes = [[5, 1, 1], [1, 4, 6], [1, 1, 6], [1, 4, 1], [5, 4, 1], [5, 1, 6], [1, 1, 1]];
    for other in shapes {
        let ours = everywhere(&format!("{other:?}"), |s| {
            let other = Image::from_volume_fn(s, other[0], other[1], other[2], |z, y, x| value(z + 1, y + 2, x + 3));
            numbers(&(&other * volume(s, size) - &other))
        });
        let small = Array3::from_shape_fn((other[0], other[1], other[2]), |(z, y, x)| value(z + 1, y + 2, x + 3));
        let small = small.broadcast((5, 4, 6)).unwrap().to_owned();
        let want = &small * &given(size) - &small;
        assert_eq!(ours, wide(want), "{other:?}");
    }
    // Channels, too: one value for each, and a mask of one level.
    let s = session();
    let two = Image::stack(&s, [volume(&s, size), volume(&s, size) + 1.0], Axis::Channels) * [1.0, 10.0];
    assert_eq!(two.shape(), Shape::volume(5, 4, 6, 2));
    assert_eq!(two.pixel((3, 2, 1, 1)).unwrap(), (value(3, 2, 1) + 1.0) * 10.0);
    let level = Image::from_fn(&s, 4, 6, |y, x| value(0, y, x));
    let chosen = level.gt(0.0).select(&two, -1.0);
    assert_eq!(chosen.shape(), two.shape());
    for (z, c) in [(0, 0), (4, 0), (2, 1)] {
        let want = if value(0, 3, 5) > 0.0 { two.pixel((z, 3, 5, c)).unwrap() } else { -1.0 };
        assert_eq!(chosen.pixel((z, 3, 5, c)).unwrap(), want);
    }
    assert_eq!(two.over(&level.gt(-1e9)).sum().get().unwrap(), two.sum().get().unwrap());
}

#[test]
fn coordinates_know_levels_and_channels() {
    for shape in [Shape::volume(5, 3, 4, 1), Shape::volume(3, 2, 5, 2), Shape::volume(4, 1, 1, 1), Shape::new(2, 3, 4)]
    {
        for axis in [Axis::Depth, Axis::Channels, Axis::Rows, Axis::Columns] {
            let ours = everywhere(&format!("{axis} of {shape}"), |s| {
                let index = Image::<f32>::index(s, shape, axis);
                numbers(&(&index * 2.0 + index.with_border(Border::Constant(-1.0)).shift(1, 0, 0)))
            });
            let mut want = Vec::new();
            for (z, c, y, x) in (0..shape.len()).map(|i| {
                let (pixel, channel) = (i / shape.channels, i % shape.channels);
                let (level, at) = (pixel / shape.area(), pixel % shape.area());
                (level, channel, at / shape.width, at % shape.width)
            }) {
                let of = |z: usize| match axis {
                    Axis::Depth => z as f64,
                    Axis::Channels => c as f64,
                    Axis::Rows => y as f64,
                    Axis::Columns => x as f64,
                };
                want.push(2.0 * of(z) + z.checked_sub(1).map_or(-1.0, of));
            }
            assert_eq!(ours, want, "{axis} of {shape}");
        }
    }
}

#[test]
fn slices_channels_and_stacks_keep_their_places() {
    let s = session();
    let pixels = Array4::from_shape_fn((3, 4, 5, 2), |(z, y, x, c)| (1000 * z + 100 * c + 10 * y + x) as u16);
    for ranks in 1..=3 {
        ThreadComm::run(ranks, |comm| {
            let s = builder().communicator(Arc::new(comm)).build().unwrap();
            let v = Image::from_volume_array(&s, pixels.view());
            assert_eq!(v.to_array().unwrap(), pixels);
            assert_eq!(v.slice(2).to_array().unwrap(), pixels.slice(s![2, .., .., ..]));
            assert_eq!(v.channel(1).to_array().unwrap(), pixels.slice(s![.., .., .., 1..2]));
            assert_eq!(v.slice(1..3).to_array().unwrap(), pixels.slice(s![1..3, .., .., ..]));
            assert_eq!(v.flip(Axis::Depth).to_array().unwrap(), pixels.slice(s![..;-1, .., .., ..]));
            for step in [1, 2, 3, 9] {
                let every = pixels.slice(s![..;step as isize, ..;2, ..;3, ..]);
                assert_eq!(v.step((step, 1, 1)).step((2, 3)).to_array().unwrap(), every);
            }
            assert_eq!(v.crop(1, 2, 3, 3).to_array().unwrap(), pixels.slice(s![.., 1..4, 2..5, ..]));
            assert_eq!(v.transpose().to_array().unwrap(), pixels.view().permuted_axes([0, 2, 1, 3]));
            assert_eq!(Image::stack(&s, v.unstack(Axis::Depth), Axis::Depth).to_array().unwrap(), pixels);
            assert_eq!(Image::stack(&s, v.unstack(Axis::Channels), Axis::Channels).to_array().unwrap(), pixels);
            let twice = Image::stack(&s, [&v, &v.channel(0)], Axis::Channels).channel(2).to_array::<Ix4>().unwrap();
            assert_eq!(twice, pixels.slice(s![.., .., .., 0..1]));
            let deep = Image::stack(&s, [&v, &v.slice(0)], Axis::Depth);
            assert_eq!(deep.slice(3).to_array().unwrap(), pixels.slice(s![0, .., .., ..]));
        });
    }
    // Any strides, any source.
    let turned = pixels.view().permuted_axes([1, 0, 3, 2]);
    assert_eq!(Image::from_volume_array(&s, turned).to_array().unwrap(), turned);
    let levels = pixels.slice(s![.., ..;-1, ..;2, 0]);
    let read = Image::from_volume_array(&s, levels).to_array::<Ix4>().unwrap();
    assert_eq!(read.index_axis_move(ndarray::Axis(3), 0), levels);
    let mut kept = s.pixels_of::<u16>(Shape::volume(3, 4, 5, 2)).unwrap();
    Image::from_volume_array(&s, pixels.view()).read_into(&mut kept).unwrap();
    assert_eq!(kept.view4(), pixels);
}

#[test]
fn an_operation_in_the_plane_works_level_by_level() {
    for size in SIZES {
        type Step = fn(&Image<f32>) -> Image<f32>;
        let steps: [(&str, Step); 8] = [
            ("tiles", |i| i.tiles(2, 3).max()),
            ("gauss", |i| i.gauss((1.2, 1.2))),
            ("rotate", |i| i.rotate(31.0, Interpolation::Bilinear)),
            ("resize", |i| i.resize(9, 4, Interpolation::Bilinear)),
            ("median", |i| i.with_border(Border::Reflect).median((3, 3))),
            ("flip", |i| i.flip([Axis::Rows, Axis::Columns])),
            ("pad", |i| i.with_border(Border::Reflect).pad(1, 2, 3, 0)),
            ("paste", |i| i.paste(&Image::constant(i.session(), (2, 2), 5.0), 1, -1)),
        ];
        for (name, step) in steps {
            let whole = everywhere(&format!("{name} {size:?}"), |s| numbers(&step(&volume(s, size))));
            let s = session();
            let levels = volume(&s, size).unstack(Axis::Depth);
            let want: Vec<f64> = levels.iter().flat_map(|level| numbers(&step(level)).unwrap()).collect();
            assert_eq!(whole, want, "{name} {size:?}");
        }
    }
}

#[test]
fn everything_is_reduced_over_all_levels() {
    for size in SIZES {
        let ours = everywhere(&format!("{size:?}"), |s| {
            let v = volume(s, size);
            let of = s.get_all((v.sum(), v.mean(), v.min_value(), v.max_value(), v.variance()))?;
            Ok(vec![of.0, of.1, of.2.into(), of.3.into(), of.4])
        });
        let all = given(size).mapv(f64::from);
        let mean = all.mean().unwrap();
        let want = [all.sum(), mean, min(&all), max(&all), all.mapv(|v| (v - mean) * (v - mean)).mean().unwrap()];
        // Sums of a few hundred numbers of up to 30 in another order.
        ours.iter().zip(want).for_each(|(a, b)| assert!((a - b).abs() < 1e-9, "{size:?}: {a} for {b}"));
    }
    let s = session();
    let two = Image::stack(&s, [volume(&s, [4, 3, 2]), volume(&s, [4, 3, 2]) * 2.0], Axis::Channels);
    let sum = given([4, 3, 2]).mapv(f64::from).sum();
    let channels = two.over([Axis::Rows, Axis::Columns, Axis::Depth]);
    let (sums, means) = (channels.sum(), channels.mean());
    assert_eq!((sums.shape(), means.shape()), (Shape::new(1, 1, 2), Shape::new(1, 1, 2)));
    assert!((sums.to_vec().unwrap()[1] - 2.0 * sum).abs() < 1e-9 && means.to_vec().unwrap()[0] == (sum / 24.0) as f32);
    assert_eq!(sums.to_vec().unwrap()[0].to_bits(), two.channel(0).sum().get().unwrap().to_bits());
}

fn min(all: &Array3<f64>) -> f64 {
    all.iter().copied().fold(f64::INFINITY, f64::min)
}

fn max(all: &Array3<f64>) -> f64 {
    all.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

#[test]
fn levels_are_summed_and_compared_from_the_first_to_the_last() {
    for size in [[5, 7, 9], [1, 6, 5], [70, 3, 2]] {
        let sum = everywhere("sum", |s| numbers(&volume(s, size).over(Axis::Depth).sum()));
        let most = everywhere("max", |s| numbers(&volume(s, size).over(Axis::Depth).max()));
        let least = everywhere("min", |s| numbers(&volume(s, size).over(Axis::Depth).min()));
        let mean = everywhere("mean", |s| numbers(&volume(s, size).over(Axis::Depth).mean()));
        let running = everywhere("cumsum", |s| numbers(&volume(s, size).over(Axis::Depth).cumsum()));
        let all = given(size).mapv(f64::from);
        let (mut total, mut each) = (ndarray::Array2::<f64>::zeros((size[1], size[2])), Vec::new());
        for level in all.outer_iter() {
            total += &level;
            each.extend(total.iter().copied());
        }
        assert_eq!((sum, running), (total.iter().copied().collect(), each));
        let fold = |f: fn(f64, f64) -> f64| -> Vec<f64> {
            all.map_axis(ndarray::Axis(0), |line| line.iter().copied().reduce(f).unwrap()).into_iter().collect()
        };
        assert_eq!((most, least), (fold(f64::max), fold(f64::min)));
        assert_eq!(mean, total.mapv(|v| f64::from((v / size[0] as f64) as f32)).into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn volumes_go_to_files_and_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let s = session();
    let one = Array4::from_shape_fn((5, 4, 3, 1), |(z, y, x, _)| (z * 50 + y * 10 + x) as u8);
    let three = Array4::from_shape_fn((4, 70, 41, 3), |(z, y, x, c)| (z * 7001 + y * 71 + x * 3 + c) as u16);
    let numbers = Array4::from_shape_fn((2, 3, 4, 5), |(z, y, x, c)| (z + y) as f64 / (1 + x + c) as f64);
    let (npy, tif) = (folder.path().join("v.npy"), folder.path().join("v.tif"));
    for path in [&npy, &tif] {
        Image::from_volume_array(&s, one.view()).save(path).unwrap();
        let read = AnyImage::open_volume(&s, path).unwrap();
        assert_eq!(read.convert::<u8>().to_array().unwrap(), one, "{}", path.display());
        Image::from_volume_array(&s, three.view()).save(path).unwrap();
        let read = AnyImage::open_volume(&s, path).unwrap();
        assert_eq!(read.convert::<u16>().to_array().unwrap(), three, "{}", path.display());
    }
    // Four axes are a volume however the file is opened; three only if the program says so.
    Image::from_volume_array(&s, numbers.view()).save(&npy).unwrap();
    assert_eq!(ndarray_npy::read_npy::<_, Array4<f64>>(&npy).unwrap(), numbers);
    assert_eq!(Image::<f64>::open(&s, &npy).unwrap().to_array().unwrap(), numbers);
    ndarray_npy::write_npy(&npy, &one.slice(s![.., .., .., 0])).unwrap();
    assert_eq!(AnyImage::open_volume(&s, &npy).unwrap().shape(), Shape::volume(5, 4, 3, 1));
    assert_eq!(AnyImage::open(&s, &npy).unwrap().shape(), Shape::new(5, 4, 3));
    // In Fortran order.
    let turned = Array4::from_shape_fn(ndarray::ShapeBuilder::f((4, 6, 5, 3)), |(z, y, x, c)| {
        (1000 * z + 100 * y + 10 * x + c) as i32
    });
    ndarray_npy::write_npy(&npy, &turned).unwrap();
    assert_eq!(AnyImage::open(&s, &npy).unwrap().convert::<i32>().to_array().unwrap(), turned);
    // One page by itself, and an image as a volume of one level.
    let page = AnyImage::open_page(&s, &tif, 2).unwrap();
    assert_eq!(page.convert::<u16>().to_array().unwrap(), three.slice(s![2, .., .., ..]));
    assert_eq!(AnyImage::open(&s, &tif).unwrap().shape(), Shape::new(70, 41, 3));
    Image::from_slice(&s, (2, 2), &[1u8, 2, 3, 4]).save(&npy).unwrap();
    assert_eq!(AnyImage::open_volume(&s, &npy).unwrap().shape(), Shape::new(2, 2, 1));
    for name in ["v.png", "v.pgm", "v.jpg", "v.bmp"] {
        let told = Image::from_volume_array(&s, one.view()).save(folder.path().join(name)).unwrap_err().to_string();
        assert!(told.contains("cannot hold 5 levels of 4x3 pixels") && told.contains("save as tif, npy"), "{told}");
    }
}

#[test]
fn pages_that_differ_are_no_volume() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pages.tif");
    let mut file = tiff::encoder::TiffEncoder::new(std::fs::File::create(&path).unwrap()).unwrap();
    file.write_image::<tiff::encoder::colortype::Gray8>(3, 2, &[0; 6]).unwrap();
    file.write_image::<tiff::encoder::colortype::Gray8>(2, 2, &[0; 4]).unwrap();
    drop(file);
    let told = AnyImage::open_volume(&session(), &path).unwrap_err().to_string();
    assert!(told.contains("page 1 has 2x2 u8 pixels and page 0 2x3 u8"), "{told}");
}

#[test]
fn what_does_not_fit_is_one_error_with_its_line() {
    let s = session();
    let v = volume(&s, [5, 4, 3]);
    let told = |image: Image<f32>| image.to_vec().unwrap_err().to_string();
    let here = "volumes.rs:";
    for (error, parts) in [
        (told(v.slice(5)), ["slice: level 5 requested, but there are only 5", here]),
        (told(v.slice(4..6)), ["slice: 2 levels from level 4 lie outside 5x4x3", here]),
        (told(v.slice(1..1)), ["slice", "0x4x3"]),
        (
            told(v.step((0, 1, 1))),
            ["step: requested every 0-th level, 1-th row and 1-th column; steps begin at 1", here],
        ),
        (told(v.step((2, 0))), ["step: requested every 1-th level, 2-th row and 0-th column; steps begin at 1", here]),
        (told(&v + volume(&s, [4, 4, 3])), ["add: images differ in size, 5x4x3 and 4x4x3", here]),
        (told(v.with_border(Border::Wrap).shift(1 << 28, 0, 0)), ["shift: requested a shift by 268435456", here]),
        (told(v.paste(&volume(&s, [2, 1, 1]), 0, 0)), ["paste", "2x1x1"]),
        (
            told(Image::stack(&s, [v.clone(), volume(&s, [1, 4, 4])], Axis::Depth)),
            ["stack: images differ in size, 5x4x3 and 4x4", here],
        ),
        (told(Image::stack(&s, Vec::<Image<f32>>::new(), Axis::Depth)), ["stack", here]),
        (told(Image::from_slice(&s, (2, 2, 2), &[0.0; 7])), ["from_slice: 7 values for 2x2x2 pixels", here]),
        (told(Image::from_slice(&s, (0, 2, 2), &[])), ["from_slice", here]),
        (told(Image::constant(&s, (70_000, 1, 1), 0.0)), ["70000x1x1 f32 pixels is too large", here]),
        (told(Image::constant(&s, (1 << 40, 1 << 29, 1 << 29), 0.0)), ["is too large", here]),
        (told(Image::constant(&s, (4, 1 << 30, 1 << 28), 0.0)), ["is too large", here]),
        (
            told(Image::stack(&s, [&v, &v.slice(0)], Axis::Channels)),
            ["stack: images differ in size, 5x4x3 and 4x3", here],
        ),
        (v.to_array::<Ix2>().unwrap_err().to_string(), ["to_array: the image has 5 levels", here]),
        (v.to_array::<Ix3>().unwrap_err().to_string(), ["to_array: the image has 5 levels", here]),
        (
            v.pixel((0, 0)).unwrap_err().to_string(),
            ["pixel: the image has 5 levels; a position in it is `(z, y, x)`", here],
        ),
        (
            v.pixel((5, 0, 0)).unwrap_err().to_string(),
            ["pixel: level 5, row 0, column 0, channel 0 is outside 5x4x3", here],
        ),
    ] {
        assert!(parts.iter().all(|part| error.contains(part)), "{error:?} has not {parts:?}");
    }
}
