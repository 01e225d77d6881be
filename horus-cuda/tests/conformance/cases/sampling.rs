//! Connected components, reconstruction, samples at positions of other images, and resizing.

use horus_core::device::Geometry;
use horus_core::dtype::{DType, Scalar};
use horus_core::ir::kernel::Kernel;
use horus_core::ops::components::Connectivity;
use horus_core::ops::fourier::Across;
use horus_core::ops::neighbourhood::Filter;
use horus_core::ops::reconstruction::Reconstruction;
use horus_core::ops::resize::{Resampling, ResizedLines};
use horus_core::ops::sampling::Sampling;
use horus_core::ops::{Components, Fourier, ImageOperation as _, MatrixProduct, Remap, Resize};
use horus_core::shape::{Border, Shape, Window};

use super::{ConformanceLaunch, Fill, borders, case, whole};

pub(super) fn cases() -> Vec<ConformanceLaunch> {
    let mut all = Vec::new();
    let mut lines = [[[false; 3]; 3]; 3];
    lines[0][2][0] = true;
    lines[1][0][1] = true;
    // More than one block of pixels, several levels, and lines.
    let shapes = [Shape::new(67, 131, 1), Shape::volume(5, 23, 41, 1), Shape::new(1, 5000, 1), Shape::new(300, 1, 1)];
    for shape in shapes {
        for how in [Connectivity::FACES, Connectivity::CORNERS, Connectivity::new(lines)] {
            for components in [Components::labels(how), Components::sizes(how)] {
                all.push(case(
                    format!("{} of {shape} {how:?}", components.kind()),
                    Kernel::from(components),
                    vec![whole(shape, DType::U8)],
                    whole(shape, DType::I32),
                ));
            }
        }
    }
    for dtype in DType::ALL {
        let kernel = Kernel::from(Components::labels(Connectivity::FACES));
        all.push(case(
            format!("components of {dtype}"),
            kernel,
            vec![whole(shapes[0], dtype)],
            whole(shapes[0], DType::I32),
        ));
    }
    all.extend(reconstructions(lines));
    let mut add = |name: String, how, border, (image, dtype): (Shape, DType), at: Shape, of: DType, volume: bool| {
        let depth = if volume { at.depth } else { image.depth };
        let output = whole(Shape { depth, channels: image.channels, ..at }, dtype);
        let positions = whole(at, of);
        let mut inputs: Vec<Geometry> = vec![whole(image, dtype)];
        inputs.extend(std::iter::repeat_n(positions, if volume { 3 } else { 2 }));
        // One in two has a value outside.
        let outside = all.len().is_multiple_of(2).then_some(Scalar::from_f64(dtype, 5.0));
        all.push(case(name, Kernel::from(Remap { sampling: how, border, outside }), inputs, output));
    };
    // Positions are mostly between -0.6 and 1.4.
    let (image, at) = (Shape::new(2, 3, 2), Shape::new(19, 37, 1));
    let (volume, places) = (Shape::volume(2, 3, 2, 2), Shape::volume(3, 7, 21, 1));
    for (k, how) in Sampling::ALL.into_iter().enumerate() {
        // All borders for one sampling with few and one with many pixels.
        let several = matches!(how, Sampling::Linear | Sampling::Spline3);
        for border in borders().into_iter().cycle().skip(k).take(if several { 5 } else { 1 }) {
            let name = format!("remap {} {border}", how.name());
            add(name, how, border, (image, DType::F32), at, DType::F32, false);
        }
        let border = borders()[(k + 2) % 5];
        let name = format!("remap {} {border} of a volume", how.name());
        add(name, how, border, (volume, DType::F64), places, DType::F64, true);
    }
    for how in [Sampling::Nearest, Sampling::Cubic] {
        for dtype in DType::ALL {
            let name = format!("remap {} {dtype} to the edge", how.name());
            add(name, how, Border::Replicate, (image, dtype), at, DType::F64, false);
        }
    }
    all.extend(resizes());
    all.extend(transforms());
    all.extend(products());
    let mut strip = all.iter().rfind(|c| c.name.starts_with("remap")).cloned();
    if let Some(c) = &mut strip {
        c.name = "remap of a strip".into();
        c.inputs[1].window = Window::new(3, 15);
        c.inputs[2].window = Window::new(2, 18);
        c.output.window = Window::new(4, 14);
        c.rows = Window::new(5, 13);
    }
    all.extend(strip);
    let levels = Shape { depth: 3, ..image };
    let positions = whole(at, DType::F32);
    let output = whole(Shape { depth: 3, channels: 2, ..at }, DType::F32);
    let kernel = Kernel::from(Remap { sampling: Sampling::Cubic, border: Border::Reflect, outside: None });
    let mut wild =
        case("remap to any floats of levels", kernel, vec![whole(levels, DType::F32), positions, positions], output);
    wild.fill = Fill::Wild;
    all.push(wild);
    all
}

/// Products by tiles of each size, of whole steps of terms and others.
fn products() -> Vec<ConformanceLaunch> {
    let mut all = Vec::new();
    for dtype in [DType::F32, DType::F64] {
        for (height, terms, width, planes) in
            [(130, 19, 132, 32), (70, 32, 68, 32), (37, 45, 41, 2), (37, 16, 44, 2), (3, 1, 2, 1)]
        {
            let inputs = [Shape::new(height, terms, planes), Shape::new(terms, width, planes)];
            let name = format!("product of {} and {} {dtype}", inputs[0], inputs[1]);
            let inputs = inputs.map(|shape| whole(shape, dtype)).to_vec();
            all.push(case(name, Kernel::from(MatrixProduct), inputs, whole(Shape::new(height, width, planes), dtype)));
        }
    }
    let inputs = vec![whole(Shape::new(45, 21, 2), DType::F32), whole(Shape::new(21, 70, 2), DType::F32)];
    let mut strip =
        case("product of a strip", Kernel::from(MatrixProduct), inputs, whole(Shape::new(45, 70, 2), DType::F32));
    strip.inputs[0].window = Window::new(3, 35);
    strip.output.window = Window::new(4, 30);
    strip.rows = Window::new(5, 29);
    strip.fill = Fill::Wild;
    all.push(strip);
    all
}

/// Filters by transforms of tiles of even and odd numbers of levels.
fn transforms() -> Vec<ConformanceLaunch> {
    let mut all = Vec::new();
    let taps = |n: usize| (0..n).map(|i| (i * i % 11) as f64 - 4.5).collect::<Vec<_>>();
    let (image, many) = (Shape::new(45, 70, 2), Shape::new(45, 70, 4));
    let two = [Filter::dense(3, 6, taps(18)), Filter::dense(3, 6, vec![0.25; 18])];
    let sparse = Filter::sparse([(-4, 0), (1, 2), (1, 2)], [0.5, 1.5, -3.0]);
    for (k, border) in borders().into_iter().enumerate() {
        let dtype = [DType::F32, DType::F64][k % 2];
        let how = Fourier::of(two.clone(), border, [16, 32]);
        all.push(case(
            format!("{} {border}", how.name()),
            Kernel::from(how),
            vec![whole(image, dtype)],
            whole(many, dtype),
        ));
    }
    // Tiles at edges that hold a constant too large for transforms, beside others.
    let one = Shape::new(45, 70, 1);
    for tile in [[16, 16], [16, 128], [64, 16], [256, 32], [128, 64], [32, 512]] {
        let border = if tile[1] < 64 { Border::Constant(1e30) } else { Border::Reflect };
        let how = Fourier { origin: [5, 0], ..Fourier::of(&two[..1], border, tile) };
        all.push(case(how.name(), Kernel::from(how), vec![whole(one, DType::F32)], whole(one, DType::F32)));
    }
    let how = Fourier { origin: [26, 27], ..Fourier::of([sparse.clone()], Border::Wrap, [32, 16]) };
    let mut strip =
        case("transforms of a strip", Kernel::from(how), vec![whole(image, DType::F32)], whole(image, DType::F32));
    strip.output.window = Window::new(4, 30);
    strip.rows = Window::new(5, 29);
    strip.fill = Fill::Wild;
    all.push(strip);
    // A filter of a volume: more levels than are computed together in a thread, and fewer than it reads.
    let parts = [two[0].clone(), Filter::sparse([], []), sparse, two[1].clone()];
    for (k, border) in borders().into_iter().enumerate() {
        let (dtype, tile) = ([DType::F64, DType::F32][k % 2], [[32, 16], [16, 64]][k % 2]);
        for depth in [2, 37] {
            let volume = Shape::volume(depth, 25, 40, 1 + k % 2);
            let stored = if depth == 2 { DType::F64 } else { dtype };
            let across = Some(Across { before: k % 4, stored });
            let how = Fourier { across, ..Fourier::of(parts.clone(), border, tile) };
            let name = format!("{} {border} {depth}", how.name());
            let mut launch = case(name, Kernel::from(how), vec![whole(volume, dtype)], whole(volume, dtype));
            if k % 2 == 1 {
                launch.fill = Fill::Wild;
            }
            all.push(launch);
        }
    }
    all
}

fn resizes() -> Vec<ConformanceLaunch> {
    let mut all = Vec::new();
    let (image, larger, smaller) = (Shape::new(23, 37, 2), Shape::new(61, 50, 2), Shape::new(7, 300, 2));
    for (k, how) in Resampling::ALL.into_iter().enumerate() {
        for (n, dtype) in DType::ALL.into_iter().enumerate().filter(|(n, _)| k == 4 || n % 4 == k % 4) {
            let to = if (k + n) % 2 == 0 { larger } else { smaller };
            let lines = |from, to| ResizedLines::new(from, to);
            let kernel = Resize { how, rows: lines(image.height, to.height), columns: lines(image.width, to.width) };
            let name = format!("resize {} {dtype}", how.name());
            all.push(case(name, Kernel::from(kernel), vec![whole(image, dtype)], whole(to, dtype)));
        }
    }
    let columns = ResizedLines { first: 11, ..ResizedLines::new(40, 90) };
    let part =
        Resize { how: Resampling::Lanczos, rows: ResizedLines { first: 20, ..ResizedLines::new(90, 60) }, columns };
    let (input, output) = (Shape::new(44, 30, 1), Shape::new(24, 50, 1));
    let mut strip = case(
        "resize of a strip of a part",
        Kernel::from(part),
        vec![whole(input, DType::F32)],
        whole(output, DType::F32),
    );
    strip.inputs[0].window = Window::new(6, 40);
    strip.output.window = Window::new(8, 20);
    strip.rows = Window::new(9, 19);
    all.push(strip);
    all
}

/// Markers of all types that grow for a few rounds, and ones that grow for many.
fn reconstructions(lines: [[[bool; 3]; 3]; 3]) -> Vec<ConformanceLaunch> {
    let mut all = Vec::new();
    let mut add = |neighbours, erosion, (shape, dtype): (Shape, DType), fill| {
        let how = Reconstruction { erosion, neighbours };
        let image = whole(shape, dtype);
        let name = format!("{} of {fill:?} {shape} {dtype} {neighbours:?}", how.name());
        all.push(ConformanceLaunch { fill, ..case(name, Kernel::from(how), vec![image; 2], image) });
    };
    let shapes = [Shape::new(67, 131, 1), Shape::volume(5, 23, 41, 1), Shape::volume(2, 90, 90, 1)];
    for (k, neighbours) in [Connectivity::FACES, Connectivity::EDGES, Connectivity::CORNERS, Connectivity::new(lines)]
        .into_iter()
        .enumerate()
    {
        for (n, shape) in shapes.into_iter().enumerate() {
            add(neighbours, (k + n) % 2 == 0, (shape, DType::F32), Fill::Random);
        }
        add(neighbours, k % 2 == 0, (shapes[0], DType::F32), Fill::Wild);
    }
    for dtype in DType::ALL {
        [false, true]
            .into_iter()
            .for_each(|erosion| add(Connectivity::CORNERS, erosion, (shapes[0], dtype), Fill::Random));
    }
    for shape in [Shape::new(1, 5000, 1), Shape::new(300, 1, 1), Shape::volume(9, 1, 1, 1), Shape::new(1, 1, 1)] {
        add(Connectivity::FACES, false, (shape, DType::U8), Fill::Random);
    }
    for (shape, dtype) in [(Shape::new(31, 40, 1), DType::U8), (Shape::volume(5, 11, 20, 1), DType::F32)] {
        add(Connectivity::FACES, false, (shape, dtype), Fill::Maze);
    }
    all
}
