//! Linear filters: banks, stages, chains and sizes.

use super::{KernelImage, KernelRandom, borders, check, run, total};
use horus_base::dispatch;
use horus_base::dtype::{Conversion, DType, Pixel, Scalar};
use horus_base::shape::{Border, Shape, Window};
use horus_cpu::device::CpuDevice;
use horus_host::buffer::HostBuffer;
use horus_host::device::{Geometry, Memory};
use horus_plan::ir::kernel::{FilterSource, Instr, InstrOp, Kernel, Leaf, LeafOp, MapKernel, RowFilterStage, Val};
use horus_plan::ops::neighbourhood::Filter;
use horus_plan::ops::pixel::PixelOp;
use horus_plan::ops::planes::PlaneMap;
use horus_testing::cases::covering;

fn taps(r: &mut KernelRandom, n: usize) -> Vec<f64> {
    (0..n).map(|i| if i % 5 == 3 { 0.0 } else { r.unit() }).collect()
}

const SHAPES: [(usize, usize, usize); 7] =
    [(1, 1, 1), (1, 37, 1), (29, 1, 1), (7, 5, 2), (33, 70, 1), (14, 300, 2), (45, 131, 1)];

#[test]
fn banks_of_filters_match_the_definition() {
    let mut r = KernelRandom(1);
    for dtype in [DType::F32, DType::F64] {
        for (n, (h, w)) in
            [(1, 1), (3, 3), (1, 7), (9, 1), (4, 6), (17, 5), (2, 3), (1, 90), (60, 1), (3, 75)].into_iter().enumerate()
        {
            let (sh, sw, sc) = SHAPES[(n * 3 + dtype.size()) % SHAPES.len()];
            for (b, border) in borders().into_iter().enumerate() {
                let shape = if b % 2 == 0 { Shape::new(sh, sw, sc) } else { Shape::new(9, 51, 1) };
                let input = KernelImage::random(shape, dtype, n as u64);
                let count = [1, 2, 3, 4, 6, 7, 5][(n + 2 * b) % 7];
                let filters = (0..count).map(|_| Filter::dense(h, w, taps(&mut r, h * w)));
                let leaves: Vec<Leaf> =
                    filters.map(|f| Leaf { op: LeafOp::Correlate(FilterSource::Input(0), f, border), dtype }).collect();
                let k = total(MapKernel { inputs: 1, leaves, ..MapKernel::default() }, dtype);
                check(&k, &[input], dtype, &format!("{count} filters {h}x{w} {border} {dtype}"));
            }
        }
    }
}

#[test]
fn sparse_filters_and_mixed_banks_match_the_definition() {
    let mut r = KernelRandom(2);
    for dtype in [DType::F32, DType::F64] {
        for (b, border) in borders().into_iter().enumerate() {
            for (s, &(sh, sw, sc)) in SHAPES.iter().enumerate() {
                let offsets: Vec<(i32, i32)> =
                    (0..11).map(|_| ((r.next() % 9) as i32 - 3, (r.next() % 41) as i32 - 25)).collect();
                let count = 1 + (b + s) % 7;
                let small = Filter::dense(3, 3, taps(&mut r, 9));
                let mut leaves: Vec<Leaf> = (0..count)
                    .map(|_| Filter::sparse(offsets.clone(), taps(&mut r, 11)))
                    .chain([small, Filter::sparse(vec![(4, 1)], vec![0.5])])
                    .map(|f| Leaf { op: LeafOp::Correlate(FilterSource::Input(0), f, border), dtype })
                    .collect();
                if border != Border::Wrap {
                    leaves.push(Leaf { op: LeafOp::Load(0), dtype });
                }
                let k = total(MapKernel { inputs: 1, leaves, ..MapKernel::default() }, dtype);
                let input = KernelImage::random(Shape::new(sh, sw, sc), dtype, 5);
                check(&k, &[input], dtype, &format!("{count} sparse filters {border} {dtype}"));
            }
        }
    }
}

#[test]
fn stages_and_columns_match_the_definition() {
    let mut r = KernelRandom(3);
    for [dtype, b, s] in covering([2, borders().len(), SHAPES.len()]) {
        let (dtype, border, (sh, sw, sc)) = ([DType::F32, DType::F64][dtype], borders()[b], SHAPES[s]);
        let lengths = [[3, 19], [8, 1], [43, 5], [90, 12]][(b + s) % 4];
        let stages: Vec<RowFilterStage> = lengths
            .iter()
            .map(|&n| RowFilterStage { source: FilterSource::Input(0), filter: Filter::row(taps(&mut r, n)), border })
            .collect();
        let mut leaves = Vec::new();
        for i in 0..8 {
            let f = Filter::column(taps(&mut r, lengths[i % 2] + i / 4));
            leaves.push(Leaf { op: LeafOp::Correlate(FilterSource::Stage(i % 2), f, border), dtype });
        }
        let k = total(MapKernel { inputs: 1, stages, leaves, ..MapKernel::default() }, dtype);
        let input = KernelImage::random(Shape::new(sh, sw, sc), dtype, 6);
        check(&k, &[input], dtype, &format!("stages {lengths:?} {border} {dtype}"));
    }
}

/// `(a as dtype) * b - a` of inputs 0 and 1.
fn chain(dtype: DType) -> MapKernel {
    let leaf = |i, dtype| Leaf { op: LeafOp::Load(i), dtype };
    let pixel = |op, args| Instr { op: InstrOp::Pixel(op), operand: dtype, result: dtype, args };
    let convert = Instr {
        op: InstrOp::Convert(Conversion::Nearest),
        operand: DType::U8,
        result: dtype,
        args: vec![Val::Leaf(0)],
    };
    let product = pixel(PixelOp::Mul, vec![Val::Instr(0), Val::Leaf(1)]);
    let code = vec![convert, product, pixel(PixelOp::Sub, vec![Val::Instr(1), Val::Instr(0)])];
    let leaves = vec![leaf(0, DType::U8), leaf(1, dtype)];
    MapKernel { inputs: 2, leaves, code, result: Some(Val::Instr(2)), ..MapKernel::default() }
}

#[test]
fn filters_over_chains_match_the_definition() {
    let mut r = KernelRandom(4);
    for dtype in [DType::F32, DType::F64] {
        for border in borders() {
            for (sh, sw, sc) in SHAPES.into_iter().chain([(9, 600, 1), (1, 1, 2)]) {
                let stage = |source, n, r: &mut KernelRandom| RowFilterStage {
                    source,
                    filter: Filter::row(taps(r, n)),
                    border,
                };
                let stages = vec![
                    stage(FilterSource::Chain(0), 19, &mut r),
                    stage(FilterSource::Chain(1), 4, &mut r),
                    stage(FilterSource::Input(1), 7, &mut r),
                ];
                let column = |s, n, r: &mut KernelRandom| {
                    LeafOp::Correlate(FilterSource::Stage(s), Filter::column(taps(r, n)), border)
                };
                let ops = [
                    column(0, 9, &mut r),
                    column(1, 6, &mut r),
                    column(2, 5, &mut r),
                    LeafOp::Correlate(FilterSource::Chain(0), Filter::dense(4, 3, taps(&mut r, 12)), border),
                    LeafOp::Correlate(
                        FilterSource::Chain(1),
                        Filter::sparse(vec![(-9, 2), (3, -5), (0, 0)], taps(&mut r, 3)),
                        border,
                    ),
                    LeafOp::Load(1),
                ];
                let leaves = ops.into_iter().map(|op| Leaf { op, dtype }).collect();
                let small = MapKernel {
                    leaves: vec![Leaf { op: LeafOp::LoadPlane(1, PlaneMap::one(0)), dtype }],
                    result: Some(Val::Leaf(0)),
                    inputs: 2,
                    ..MapKernel::default()
                };
                let chains = vec![chain(dtype), small];
                let k = total(MapKernel { inputs: 2, chains, stages, leaves, ..MapKernel::default() }, dtype);
                let shape = Shape::new(sh, sw, sc);
                let inputs = [KernelImage::random(shape, DType::U8, 9), KernelImage::random(shape, dtype, 10)];
                check(&k, &inputs, dtype, &format!("chains {border} {dtype}"));
            }
        }
    }
}

/// The sum of weighed levels of an image, in this order, as filters along the depth are recorded; `first` is what it begins with.
fn along_levels(shape: Shape, dtype: DType, terms: &[(isize, f64)], border: Border, first: Option<usize>) -> MapKernel {
    let mut k = MapKernel { inputs: 2, ..MapKernel::default() };
    let mut sum = Val::Const(Scalar::from_f64(dtype, 0.0));
    if let Some(image) = first {
        k.leaves.push(Leaf { op: LeafOp::Load(image), dtype });
        sum = Val::Leaf(0);
    }
    for (on, tap) in terms {
        let map = PlaneMap::levels(shape, shape.channels, 1, *on as i32, border);
        let op = if *on == 0 { LeafOp::Load(0) } else { LeafOp::LoadPlane(0, map) };
        let args = vec![Val::Leaf(k.leaves.len()), Val::Const(Scalar::from_f64(dtype, *tap)), sum];
        k.leaves.push(Leaf { op, dtype });
        sum = Val::Instr(k.code.len());
        k.code.push(Instr { op: InstrOp::Pixel(PixelOp::MulAdd), operand: dtype, result: dtype, args });
    }
    k.result = Some(sum);
    k
}

#[test]
fn filters_along_levels_match_the_definition() {
    let mut r = KernelRandom(9);
    // Fewer and more levels than taps, parts of columns, and blocks of levels.
    let shapes = [(1, 5, 70, 1), (2, 1, 3, 2), (5, 9, 131, 1), (13, 12, 40, 2), (61, 3, 90, 1), (300, 5, 41, 1)];
    for [double, b, i] in covering([2, borders().len(), shapes.len()]) {
        let (dtype, border) = ([DType::F32, DType::F64][double], borders()[b]);
        let (depth, h, w, channels) = shapes[i];
        let shape = Shape::volume(depth, h, w, channels);
        let inputs = || [KernelImage::random(shape, dtype, 7), KernelImage::random(shape, dtype, 8)];
        let n = [5, 4, 63, 8, 9, 31][i].min(64);
        let weights = taps(&mut r, n);
        let rising: Vec<_> = (-(n as isize / 2)..).zip(weights.iter().copied()).collect();
        let what = format!("{n} levels of {shape} {border} {dtype}");
        check(&along_levels(shape, dtype, &rising, border, None), &inputs(), dtype, &what);
        if i > 3 {
            continue;
        }
        // Sums that are no such filter.
        let falling: Vec<_> = rising.iter().map(|(on, tap)| (-on, *tap)).collect();
        check(&along_levels(shape, dtype, &falling, border, None), &inputs(), dtype, &format!("{what}, turned"));
        let apart: Vec<_> = rising.iter().map(|(on, tap)| (2 * on, *tap)).collect();
        check(&along_levels(shape, dtype, &apart, border, None), &inputs(), dtype, &format!("{what}, apart"));
        for first in [0, 1] {
            let begun = along_levels(shape, dtype, &rising, border, Some(first));
            check(&begun, &inputs(), dtype, &format!("{what}, begun with image {first}"));
        }
        let mut two = along_levels(shape, dtype, &rising, border, None);
        two.leaves[1].map_input(|_| 1);
        check(&two, &inputs(), dtype, &format!("{what}, of two images"));
        let mut mixed = along_levels(shape, dtype, &rising, border, None);
        if let LeafOp::LoadPlane(_, map) = &mut mixed.leaves[0].op {
            map.border = if border == Border::Reflect { Border::Constant(2.0) } else { Border::Reflect };
        }
        check(&mixed, &inputs(), dtype, &format!("{what}, of two borders"));
    }
}

#[test]
fn filters_larger_than_the_image_match_the_definition() {
    let mut r = KernelRandom(5);
    let dtype = DType::F32;
    for border in borders() {
        for (sh, sw, n) in [(9, 11, 121), (1, 37, 150), (29, 1, 90), (30, 5, 31)] {
            let stages =
                vec![RowFilterStage { source: FilterSource::Input(0), filter: Filter::row(taps(&mut r, n)), border }];
            let column = LeafOp::Correlate(FilterSource::Stage(0), Filter::column(taps(&mut r, n)), border);
            let dense = LeafOp::Correlate(FilterSource::Input(0), Filter::dense(n, 3, taps(&mut r, 3 * n)), border);
            let leaves = [column, dense].map(|op| Leaf { op, dtype }).to_vec();
            let k = total(MapKernel { inputs: 1, stages, leaves, ..MapKernel::default() }, dtype);
            let input = KernelImage::random(Shape::new(sh, sw, 1), dtype, 7);
            check(&k, &[input], dtype, &format!("{n} taps on {sh}x{sw} {border}"));
        }
    }
}

/// The cost once grew with the square of the number of taps, to minutes.
#[test]
fn a_filter_larger_than_the_image_costs_its_taps() {
    let mut r = KernelRandom(6);
    let (dtype, border) = (DType::F32, Border::Reflect101);
    let d = CpuDevice::new(Some(1)).unwrap();
    for shape in [Shape::new(40, 50, 1), Shape::new(1, 300, 1), Shape::new(300, 1, 1)] {
        let stages =
            vec![RowFilterStage { source: FilterSource::Input(0), filter: Filter::row(taps(&mut r, 80_001)), border }];
        let op = LeafOp::Correlate(FilterSource::Stage(0), Filter::column(taps(&mut r, 80_001)), border);
        let k = total(MapKernel { inputs: 1, stages, leaves: vec![Leaf { op, dtype }], ..MapKernel::default() }, dtype);
        let start = std::time::Instant::now();
        let input = [KernelImage::random(shape, dtype, 8)];
        run(&d, &Kernel::Map(k), &input, shape, dtype, Window::whole(shape.height));
        assert!(start.elapsed().as_secs() < 10, "{shape}: {:?}", start.elapsed());
    }
}

#[test]
fn wide_images_are_cut_into_chunks_without_a_trace() {
    let mut r = KernelRandom(7);
    let dtype = DType::F32;
    for border in borders() {
        let dense = Filter::dense(3, 3, taps(&mut r, 9));
        let sparse = Filter::sparse(vec![(1, -3), (0, 0), (-2, 5)], taps(&mut r, 3));
        for (filter, width) in [(dense, 513), (sparse, 2700), (Filter::row(taps(&mut r, 300)), 1531)] {
            let leaves = vec![Leaf { op: LeafOp::Correlate(FilterSource::Input(0), filter, border), dtype }];
            let k = total(MapKernel { inputs: 1, leaves, ..MapKernel::default() }, dtype);
            check(
                &k,
                &[KernelImage::random(Shape::new(6, width, 1), dtype, 8)],
                dtype,
                &format!("{width} columns {border}"),
            );
        }
        let mut k = MapKernel { inputs: 1, ..MapKernel::default() };
        for n in [5, 90, 2, 31] {
            k.stages.push(RowFilterStage {
                source: FilterSource::Input(0),
                filter: Filter::row(taps(&mut r, n)),
                border,
            });
            let op =
                LeafOp::Correlate(FilterSource::Stage(k.stages.len() - 1), Filter::column(taps(&mut r, 3)), border);
            k.leaves.push(Leaf { op, dtype });
        }
        let k = total(k, dtype);
        check(&k, &[KernelImage::random(Shape::new(5, 2500, 1), dtype, 9)], dtype, &format!("four stages {border}"));
    }
}

/// The mean of `filter` over an image of `dtype`, cut to whole numbers.
fn mean(filter: Filter, border: Border, dtype: DType) -> MapKernel {
    const F: DType = DType::F32;
    let convert = |rule, operand, result, arg| Instr { op: InstrOp::Convert(rule), operand, result, args: vec![arg] };
    let pixel = |op, arg, constant: f64| Instr {
        op: InstrOp::Pixel(op),
        operand: F,
        result: F,
        args: vec![arg, Val::Const(Scalar::from_f64(F, constant))],
    };
    let floats = MapKernel {
        inputs: 1,
        leaves: vec![Leaf { op: LeafOp::Load(0), dtype }],
        code: vec![convert(Conversion::Nearest, dtype, F, Val::Leaf(0))],
        result: Some(Val::Instr(0)),
        ..MapKernel::default()
    };
    let count = filter.taps().len() as f64;
    MapKernel {
        inputs: 1,
        chains: vec![floats],
        leaves: vec![Leaf { op: LeafOp::Correlate(FilterSource::Chain(0), filter, border), dtype: F }],
        code: vec![
            pixel(PixelOp::Add, Val::Leaf(0), 0.5),
            pixel(PixelOp::Mul, Val::Instr(0), 1.0 / count),
            convert(Conversion::Cast, F, dtype, Val::Instr(1)),
        ],
        result: Some(Val::Instr(2)),
        ..MapKernel::default()
    }
}

#[test]
fn means_of_integers_match_the_definition() {
    let lengths = [2, 3, 4, 5, 7, 8, 31, 63, 64];
    for [wide, b, n, column] in covering([2, borders().len(), lengths.len(), 2]) {
        let (dtype, border, n) = ([DType::U8, DType::U16][wide], borders()[b], lengths[n]);
        let filter = if column == 1 { Filter::column(vec![1.0; n]) } else { Filter::row(vec![1.0; n]) };
        let input = KernelImage::random(Shape::new(37, 131, 1), dtype, n as u64);
        check(&mean(filter, border, dtype), &[input], dtype, &format!("mean of {n} {border} {dtype}"));
    }
}

/// Filters of bytes, which become numbers as they are read.
fn of_bytes(dtype: DType, filters: impl IntoIterator<Item = (Filter, Border)>) -> MapKernel {
    let convert = Instr {
        op: InstrOp::Convert(Conversion::Nearest),
        operand: dtype,
        result: DType::F32,
        args: vec![Val::Leaf(0)],
    };
    let chain = MapKernel {
        inputs: 1,
        leaves: vec![Leaf { op: LeafOp::Load(0), dtype }],
        code: vec![convert],
        result: Some(Val::Instr(0)),
        ..MapKernel::default()
    };
    let leaf = |(f, border)| Leaf { op: LeafOp::Correlate(FilterSource::Chain(0), f, border), dtype: DType::F32 };
    let leaves = filters.into_iter().map(leaf).collect();
    total(MapKernel { inputs: 1, chains: vec![chain], leaves, ..MapKernel::default() }, DType::F32)
}

/// Whole numbers from `least` to `largest`.
fn whole(r: &mut KernelRandom, n: usize, least: i64, largest: i64) -> Vec<f64> {
    (0..n).map(|_| (least + (r.next() % (largest - least + 1) as u64) as i64) as f64).collect()
}

#[test]
fn filters_of_bytes_match_the_definition() {
    let mut r = KernelRandom(7);
    let extents =
        [(3, 3), (1, 5), (5, 4), (1, 3), (2, 7), (7, 6), (9, 9), (4, 33), (31, 31), (15, 15), (60, 3), (3, 75)];
    for [signed, n, b] in covering([2, extents.len(), borders().len()]) {
        let (dtype, constant, (h, w)) = ([DType::U8, DType::I8][signed], [200.0, -7.0][signed], extents[n]);
        let (border, (sh, sw, sc)) = (Border::all(constant)[b], SHAPES[(n * 3 + signed) % SHAPES.len()]);
        let shape = if b % 2 == 0 { Shape::new(sh, sw, sc) } else { Shape::new(9, 51, 1) };
        let input = KernelImage::random(shape, dtype, n as u64);
        let count = [1, 2, 3, 4, 6, 7, 5][(n + 2 * b) % 7];
        // Of pairs of taps up to 64 products fit into 16 bits, of others they need not.
        let most = if (n + b) % 2 == 0 { 64 } else { 127 };
        let filters: Vec<Filter> = (0..count).map(|_| Filter::dense(h, w, whole(&mut r, h * w, -most, most))).collect();
        let k = of_bytes(dtype, filters.iter().map(|f| (f.clone(), border)));
        let exact = filters.iter().all(|f| f.is_exact_for(dtype, border));
        assert!(exact || h * w > 900, "{h}x{w}");
        check(&k, &[input], DType::F32, &format!("{count} filters {h}x{w} of {dtype}, {border}"));
    }
}

#[test]
fn filters_of_bytes_mix_with_others() {
    let mut r = KernelRandom(8);
    for dtype in [DType::U8, DType::I8] {
        for (b, &(sh, sw, sc)) in SHAPES.iter().enumerate() {
            let borders = Border::all([0.0, 0.5, 300.0][b % 3]);
            let dense = |h: usize, w: usize, taps: Vec<f64>| Filter::dense(h, w, taps);
            let filters = [
                (dense(3, 3, vec![127.0, -128.0, 0.0, -0.0, 1.0, -1.0, 5.0, 64.0, -64.0]), borders[b % 5]),
                (dense(3, 3, whole(&mut r, 9, -128, 127)), borders[b % 5]),
                (dense(3, 3, vec![0.5; 9]), borders[b % 5]),
                (dense(3, 3, vec![128.0; 9]), borders[(b + 1) % 5]),
                (dense(5, 3, whole(&mut r, 15, -9, 9)), borders[(b + 4) % 5]),
                (Filter::sparse([(0, 4), (-2, 1)], [3.0, -2.0]), borders[b % 5]),
                (Filter::column([1.0, 2.0, 1.0]), borders[(b + 2) % 5]),
            ];
            let k = of_bytes(dtype, filters);
            let input = KernelImage::random(Shape::new(sh, sw, sc), dtype, b as u64);
            check(&k, &[input], DType::F32, &format!("filters of {dtype} and others, {sh}x{sw}"));
        }
    }
}

#[test]
fn filters_of_bytes_end_where_sums_are_not_exact() {
    let filter = |n: usize, tap: f64| Filter::dense(n, n, vec![tap; n * n]);
    // 22 * 22 * 127 * 255 is below 2^24, 23 * 23 * 127 * 255 is not.
    assert!(
        filter(22, 127.0).is_exact_for(DType::U8, Border::Wrap)
            && !filter(23, 127.0).is_exact_for(DType::U8, Border::Wrap)
    );
    for n in [22, 23, 32, 33] {
        for (dtype, tap) in [(DType::U8, 127.0), (DType::U8, -128.0), (DType::I8, -128.0), (DType::I8, 127.0)] {
            let bright = dispatch!(dtype, T => HostBuffer::from_slice(&vec![T::HIGHEST; 40 * 37]));
            let geometry = Geometry { shape: Shape::new(40, 37, 1), dtype, window: Window::whole(40) };
            let input = KernelImage { memory: Memory::Host(bright), geometry };
            let k = of_bytes(dtype, [(filter(n, tap), Border::Replicate), (filter(n, -tap + 1.0), Border::Replicate)]);
            check(&k, &[input], DType::F32, &format!("{n}x{n} of {tap} over the brightest {dtype}"));
        }
    }
}
