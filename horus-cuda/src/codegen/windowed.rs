//! Means and variances of rectangles and ranks under footprints; see `kernels/windowed.cuh`.

use horus_core::device::Geometry;
use horus_core::dtype::{DType, Scalar};
use horus_core::error::DeviceError;
use horus_core::ops::neighbourhood::Reach;
use horus_core::ops::windowed::{BoxMean, FootprintSpan, Ranked, Sliding, Windowed, summed};
use horus_core::shape::Border;

use super::cpp::{CppCall, Expr, Stmt, args, name, template};
use super::fixed::program;
use super::params::KernelParams;
use super::{
    CudaOperation, Generated, KernelLimits, PRELUDE, Pointer, Shapes, WINDOWED, blocks, border_name, plane_at,
};

/// Threads of a block.
const THREADS: usize = 256;
/// Most bytes of shared memory per block, so that a multiprocessor runs several.
const SHARED: usize = 96 << 10;
/// Rows and columns of a block that searches for ranks under large footprints.
const RANKED: (usize, usize) = (8, 32);

impl CudaOperation for Sliding {
    fn generate(&self, shapes: &Shapes<'_>, limits: KernelLimits) -> Result<Generated, DeviceError> {
        let Sliding { how, border } = self;
        match how {
            Windowed::Mean(mean) => {
                let sum = total(shapes.inputs[0].dtype, mean.height().saturating_mul(mean.width()));
                let image = (shapes.rows.len(), shapes.output.shape.width);
                let tile = WindowTile::of((mean.height(), mean.width()), image, sum.size(), SHARED.min(limits.shared));
                rectangles(mean, sum.name(), tile.map(|tile| (tile, sum.size())), *border, shapes)
            }
            Windowed::Variance(mean) => rectangles(mean, "hs_moments", None, *border, shapes),
            Windowed::Rank(rank) => ranks(rank, *border, shapes, limits),
        }
    }
}

/// Parameters common to these kernels, images and rows, and the statements that declare them.
fn params(border: Border, shapes: &Shapes<'_>) -> (KernelParams, Vec<Stmt>, Expr) {
    let (input, out) = (shapes.inputs[0], shapes.output);
    let t = input.dtype.name();
    let mut p = KernelParams::default();
    p.pointer(out.dtype.name(), "out", Pointer::Output { offset: 0 });
    p.pointer(&format!("const {t}"), "in", Pointer::Input { index: 0, offset: 0 });
    p.long("in_plane", input.plane() as i64);
    p.long("out_plane", out.plane() as i64);
    let Geometry { shape, window, .. } = input;
    for (member, v) in [
        ("height", shape.height.cast_signed()),
        ("width", shape.width.cast_signed()),
        ("start", window.start),
        ("end", window.end),
        ("row0", shapes.rows.start),
        ("row1", shapes.rows.end),
        ("out_start", out.window.start),
    ] {
        p.int(member, v);
    }
    let constant = p.constant(Scalar::F64(border.constant().unwrap_or(0.0)), input.dtype);
    let plane = |image: &str| {
        let first = name(format_args!("p.{image}"));
        plane_at(first, name("(int)blockIdx.y"), name(format_args!("p.{image}_plane")))
    };
    let body = vec![
        Stmt::Let {
            ctype: format!("const hs_plane<{t}>"),
            name: "in".into(),
            value: Expr::Members(None, args![plane("in"), "p.height", "p.width", "p.start", "p.end"]),
        },
        Stmt::Let {
            ctype: "const hs_around_rows".into(),
            name: "at".into(),
            value: Expr::Members(
                None,
                args!["p.height", "p.width", "p.start", "p.end", "p.row0", "p.row1", "p.out_start"],
            ),
        },
        Stmt::Let { ctype: format!("{}* const", out.dtype.name()), name: "out".into(), value: plane("out") },
    ];
    (p, body, constant)
}

/// The type of the sums: 32-bit integers for integers of few bits.
fn total(dtype: DType, area: usize) -> DType {
    let most = if dtype.is_narrow() { 1 << (8 * dtype.size()) } else { usize::MAX };
    if area.saturating_mul(most) < 1 << 31 { DType::I32 } else { summed(dtype) }
}

/// Means or variances of pixels that are added in type `sum`: in tiles, whose sums have so many bytes, or by each
/// thread alone.
fn rectangles(
    mean: &BoxMean,
    sum: &str,
    tile: Option<(WindowTile, usize)>,
    border: Border,
    shapes: &Shapes<'_>,
) -> Result<Generated, DeviceError> {
    let out = shapes.output;
    let (tall, wide) = (mean.height(), mean.width());
    let (mut p, mut body, constant) = params(border, shapes);
    for (member, v) in [("up", mean.reach.up), ("tall", tall), ("left", mean.reach.left), ("wide", wide)] {
        p.int(member, v.cast_signed());
    }
    p.long("count", mean.count as i64);
    let planes = blocks(out.shape.planar().planes(), "planes")?;
    let (height, width) = (shapes.rows.len(), out.shape.width);
    let mut arguments = args!["in", "at", "p.up", "p.tall", "p.left", "p.wide", constant, "p.count"];
    let Some((tile, size)) = tile else {
        arguments.push("out".into());
        body.push(CppCall::new("hs_box_alone", template![sum, border_name(border), THREADS], arguments).into());
        let grid = [blocks((height * width).div_ceil(THREADS), "a mean")?, planes];
        return Ok(program(&[PRELUDE, WINDOWED], &body, p, grid, THREADS, 0));
    };
    let across = width.div_ceil(tile.wide);
    p.int("across", across.cast_signed());
    arguments.extend(args!["p.across", "out"]);
    let template = template![sum, border_name(border), THREADS, tile.tall, tile.wide, tile.flight];
    body.push(CppCall::new("hs_box", template, arguments).into());
    let grid = [blocks(across * height.div_ceil(tile.tall), "a mean")?, planes];
    Ok(program(&[PRELUDE, WINDOWED], &body, p, grid, THREADS, tile.bytes((tall, wide), size)))
}

/// The tile that a block computes.
#[derive(Clone, Copy, Debug)]
struct WindowTile {
    tall: usize,
    wide: usize,
    /// Rows that are added at once.
    flight: usize,
}

impl WindowTile {
    /// Bytes of shared memory for a window: two buffers of rows, reused for the results, and two of
    /// row sums.
    fn bytes(self, (tall, wide): (usize, usize), size: usize) -> usize {
        let columns = self.wide * (self.tall + tall - 1);
        let rows = self.flight * (self.wide + wide - 1);
        2 * size * columns + size * (2 * rows).max(self.tall * self.wide)
    }

    /// The tile with the least work per pixel among those that fit; `None` if none does.
    fn of(window: (usize, usize), image: (usize, usize), size: usize, shared: usize) -> Option<WindowTile> {
        /// Additions that take as long as a synchronisation of the threads.
        const WAIT: usize = 4 * THREADS;
        let (tall, wide) = window;
        let steps = |n: usize| n.ilog2() as usize + n.count_ones() as usize;
        let powers = |most: usize, n: usize| (0..=most).map(|k| 1usize << k).filter(move |p| *p < 2 * n.max(1));
        let mut best: Option<(f64, WindowTile)> = None;
        for (high, broad) in powers(9, image.0).flat_map(|h| powers(10, image.1).map(move |w| (h, w))) {
            let rows = high + tall - 1;
            for flight in powers(7, rows) {
                let tile = WindowTile { tall: high, wide: broad, flight };
                if tile.bytes(window, size) > shared {
                    continue;
                }
                let line = broad + wide - 1;
                let row_work = rows * line * (steps(wide) + 2) + rows.div_ceil(flight) * (steps(wide) + 2) * WAIT;
                let column_work = rows * broad * steps(tall) + steps(tall) * WAIT;
                let work = (row_work + column_work) as f64 / (high * broad) as f64;
                if best.is_none_or(|(least, _)| work < least) {
                    best = Some((work, tile));
                }
            }
        }
        best.map(|(_, tile)| tile)
    }
}

fn ranks(rank: &Ranked, border: Border, shapes: &Shapes<'_>, limits: KernelLimits) -> Result<Generated, DeviceError> {
    let (dtype, out) = (shapes.inputs[0].dtype, shapes.output);
    let (width, height) = (out.shape.width, shapes.rows.len());
    if let Some(kept) = KeptRanks::of(rank, dtype, limits.shared) {
        return ranks_in_box(&kept, border, shapes);
    }
    let (mut p, mut body, constant) = params(border, shapes);
    p.pointer("const int", "spans", Pointer::Table);
    p.int("count", rank.spans.len().cast_signed());
    p.int("place", rank.place.cast_signed());
    let reach = rank.reach();
    for (member, v) in [("up", reach.up), ("down", reach.down), ("left", reach.left), ("right", reach.right)] {
        p.int(member, v.cast_signed());
    }
    body.push(Stmt::Let {
        ctype: "const hs_reach".into(),
        name: "reach".into(),
        value: Expr::Members(None, args!["p.up", "p.down", "p.left", "p.right"]),
    });
    if rank.crosses_levels() {
        return ranks_of_levels(rank, (p, body, constant), border, shapes);
    }
    let table =
        |spans: &[FootprintSpan]| spans.iter().flat_map(|s| [s.y, s.from, s.to]).flat_map(i32::to_ne_bytes).collect();
    let planes = blocks(out.shape.planar().planes(), "planes")?;
    let Some(columns) = HistogramColumns::of(rank, dtype, height * width * out.shape.planar().planes(), limits.shared)
    else {
        let across = width.div_ceil(RANKED.1);
        p.int("across", across.cast_signed());
        let arguments = args!["in", "at", "p.spans", "p.count", "reach", "p.place", constant, "p.across", "out"];
        let template = template![border_name(border), RANKED.0, RANKED.1];
        body.push(CppCall::new("hs_rank_of_many", template, arguments).into());
        let grid = [blocks(across * height.div_ceil(RANKED.0), "a rank")?, planes];
        let table = table(&rank.spans);
        return Ok(Generated { table, ..program(&[PRELUDE, WINDOWED], &body, p, grid, RANKED.0 * RANKED.1, 0) });
    };
    let HistogramColumns { tall, pitch, count, shared } = columns;
    let enter = without(&rank.spans, 1);
    // The pixels that leave the footprint of the row above.
    let leave: Vec<FootprintSpan> =
        without(&rank.spans, -1).iter().map(|s| FootprintSpan { y: s.y - 1, ..*s }).collect();
    let across = width.div_ceil(HistogramColumns::WIDE);
    for (member, v) in
        [("entered", enter.len()), ("leaving", leave.len()), ("across", across), ("tall", tall), ("pitch", pitch)]
    {
        p.int(member, v.cast_signed());
    }
    let all = [&rank.spans[..], &enter, &leave].concat();
    let mut arguments = args!["in", "at", "p.spans", "p.count", "p.entered", "p.leaving", "reach", "p.place", constant];
    arguments.extend(args!["p.across", "p.tall", "p.pitch", "out"]);
    let template = template![border_name(border), HistogramColumns::WIDE, count.name()];
    body.push(CppCall::new("hs_rank", template, arguments).into());
    let grid = [blocks(across * height.div_ceil(tall), "a rank")?, planes];
    Ok(Generated {
        table: table(&all),
        ..program(&[PRELUDE, WINDOWED], &body, p, grid, HistogramColumns::WIDE, shared)
    })
}

/// How threads keep keys in order to find ranks in a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct KeptRanks {
    /// Levels before the pixel, and all.
    front: usize,
    deep: usize,
    reach: Reach,
    /// Number of keys that a thread keeps.
    kept: usize,
    /// The rank, counted from the end at which keys are kept.
    place: usize,
    from_largest: bool,
    /// Pixels of a thread.
    rows: usize,
    /// Bytes of shared memory.
    shared: usize,
}

impl KeptRanks {
    /// Warps of a block.
    const WARPS: usize = 8;
    /// Most bytes of the keys that a thread keeps: they are in registers, and up to three times.
    const MOST: usize = 128;

    /// Ranks in a box that contains the pixel, if keeping keys takes fewer instructions than histograms or a search.
    fn of(rank: &Ranked, dtype: DType, room: usize) -> Option<KeptRanks> {
        let (count, place, reach) = (rank.count(), rank.place, rank.reach());
        let front = rank.spans.first()?.z.min(0).unsigned_abs() as usize;
        let deep = front + rank.spans.last()?.z.max(0).unsigned_abs() as usize + 1;
        let (tall, wide) = (reach.up + reach.down + 1, reach.left + reach.right + 1);
        if deep.checked_mul(tall)?.checked_mul(wide)? != count {
            return None;
        }
        let from_largest = count - place <= place;
        let end = if from_largest { count - place } else { place + 1 };
        let kept = end.next_multiple_of(match end {
            ..=8 => 1,
            9..=16 => 2,
            _ => 4,
        });
        let (key, rows) = (dtype.size().max(4), if tall < 3 { 1 } else { 4 });
        let shared = key * deep * (KeptRanks::WARPS * rows + tall - 1) * (32 + wide - 1);
        // Keys of a pixel, and instructions: to keep one, of which a minimum counts twice, or to find the rank otherwise.
        // The latter are estimated from times on an H200.
        let added = if rows == 1 { count } else { deep * wide * (tall + 5) / 4 };
        let keeping = added * (4 * kept + 8) * key / 4;
        let otherwise = match dtype.size() {
            _ if rank.crosses_levels() => count * 30 * dtype.size(),
            1 => 2000,
            _ => 5000 + 30 * count,
        };
        let fits = kept * key <= KeptRanks::MOST && shared <= SHARED.min(room);
        (fits && keeping < otherwise).then_some(KeptRanks {
            front,
            deep,
            reach,
            kept,
            place: end - 1,
            from_largest,
            rows,
            shared,
        })
    }
}

fn ranks_in_box(of: &KeptRanks, border: Border, shapes: &Shapes<'_>) -> Result<Generated, DeviceError> {
    let (mut p, mut body, constant) = params(border, shapes);
    let shape = shapes.output.shape;
    let [depth, channels] = [shape.depth as i32, shape.channels as i32];
    let levels = p.shared_ints("levels", [channels, depth, channels, -1, 1]);
    let across = shape.width.div_ceil(32);
    let Reach { up, down, left, right } = of.reach;
    for (member, v) in [
        ("deep", of.deep),
        ("front", of.front),
        ("tall", up + down + 1),
        ("wide", left + right + 1),
        ("place", of.place),
        ("up", up),
        ("left", left),
        ("across", across),
    ] {
        p.int(member, v.cast_signed());
    }
    p.int("flip", if of.from_largest { -1 } else { 0 });
    body.push(Stmt::Let {
        ctype: "const hs_box_around".into(),
        name: "box".into(),
        value: Expr::Members(None, args!["p.deep", "p.front", "p.tall", "p.up", "p.wide", "p.left"]),
    });
    let mut arguments = args!["in", "p.in_plane", levels, "at", "box", "p.place", "p.flip"];
    arguments.extend(args![constant, "p.across", "out"]);
    let template = template![border_name(border), KeptRanks::WARPS, of.rows, of.kept];
    body.push(CppCall::new("hs_rank_in_box", template, arguments).into());
    let high = KeptRanks::WARPS * of.rows;
    let grid = [blocks(across * shapes.rows.len().div_ceil(high), "a rank")?, blocks(shape.planes(), "planes")?];
    Ok(program(&[PRELUDE, WINDOWED], &body, p, grid, 32 * KeptRanks::WARPS, of.shared))
}

/// Ranks across levels: each thread searches for the rank of its pixel, bit by bit.
fn ranks_of_levels(
    rank: &Ranked,
    (mut p, mut body, constant): (KernelParams, Vec<Stmt>, Expr),
    border: Border,
    shapes: &Shapes<'_>,
) -> Result<Generated, DeviceError> {
    let shape = shapes.output.shape;
    let [depth, channels] = [shape.depth as i32, shape.channels as i32];
    let levels = p.shared_ints("levels", [channels, depth, channels, -1, 1]);
    let across = shape.width.div_ceil(RANKED.1);
    p.int("across", across.cast_signed());
    let arguments =
        args!["in", "p.in_plane", levels, "at", "p.spans", "p.count", "reach", "p.place", constant, "p.across", "out"];
    let template = template![border_name(border), RANKED.0, RANKED.1];
    body.push(CppCall::new("hs_rank_of_levels", template, arguments).into());
    let grid = [blocks(across * shapes.rows.len().div_ceil(RANKED.0), "a rank")?, blocks(shape.planes(), "planes")?];
    let numbers = rank.spans.iter().flat_map(|s| [s.z, s.y, s.from, s.to]);
    let table = numbers.flat_map(i32::to_ne_bytes).collect();
    Ok(Generated { table, ..program(&[PRELUDE, WINDOWED], &body, p, grid, RANKED.0 * RANKED.1, 0) })
}

/// The columns of a block that walks down with histograms.
struct HistogramColumns {
    tall: usize,
    /// Codes from row to row of the tile.
    pitch: usize,
    /// The type of a histogram's counts.
    count: DType,
    /// Bytes of shared memory.
    shared: usize,
}

impl HistogramColumns {
    /// Columns of a block.
    const WIDE: usize = 64;
    /// `HS_ALIKE` of `windowed.cuh`.
    const ALIKE: usize = 32;
    /// Columns that keep a large GPU busy: an H200 runs 59,000 at once, limited by shared memory.
    const BUSY: usize = 1 << 16;

    /// The longest columns that keep the GPU busy and fit into `room` bytes of shared memory; `None` if there are none.
    /// The first pixel of a column reads its whole footprint.
    fn of(rank: &Ranked, dtype: DType, pixels: usize, room: usize) -> Option<HistogramColumns> {
        let Reach { up, down, left, right } = rank.reach();
        let count = match rank.count() {
            0..=0xff => DType::U8,
            0x100..=0xffff => DType::U16,
            _ => return None,
        };
        let keys = if dtype.size() == 1 { 0 } else { HistogramColumns::ALIKE * dtype.size().max(4) };
        let pitch = (HistogramColumns::WIDE + left + right).next_multiple_of(4);
        let shared = |tall: usize| HistogramColumns::WIDE * (256 * count.size() + keys) + (tall + up + down) * pitch;
        let longest = (pixels / HistogramColumns::BUSY).clamp(4, 64);
        let tall = std::iter::successors(Some(longest), |tall| Some(tall / 2)).take_while(|tall| *tall >= 4);
        let tall = tall.into_iter().find(|tall| shared(*tall) <= room)?;
        Some(HistogramColumns { tall, pitch, count, shared: shared(tall) })
    }
}

/// The parts of spans that no span `by` rows further down covers.
fn without(spans: &[FootprintSpan], by: i32) -> Vec<FootprintSpan> {
    let mut parts = Vec::new();
    for span in spans {
        let mut from = span.from;
        for other in spans.iter().filter(|s| s.y == span.y + by && s.from < span.to) {
            if other.from > from {
                parts.push(FootprintSpan { from, to: other.from, ..*span });
            }
            from = from.max(other.to);
        }
        if from < span.to {
            parts.push(FootprintSpan { from, ..*span });
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_down_exchanges_the_ends_of_columns() {
        let span = |y, from, to| FootprintSpan { z: 0, y, from, to };
        let square = [span(-1, -1, 2), span(0, -1, 2), span(1, -1, 2)];
        assert_eq!(without(&square, 1), [square[2]]);
        assert_eq!(without(&square, -1), [square[0]]);
        let ring = [span(-1, -2, 3), span(0, -2, -1), span(0, 1, 3), span(2, 0, 1)];
        assert_eq!(without(&ring, 1), [span(-1, -1, 1), span(0, -2, -1), span(0, 1, 3), span(2, 0, 1)]);
        assert_eq!(without(&ring, -1), [span(-1, -2, 3), span(2, 0, 1)]);
    }

    #[test]
    fn tiles_fit_and_what_fits_nowhere_is_told() {
        for window in [(1, 1), (3, 3), (101, 101), (128, 128), (1, 2001), (2001, 1), (1, 5000)] {
            for size in [4, 8] {
                for shared in [48 << 10, SHARED] {
                    let tile = WindowTile::of(window, (2048, 2048), size, shared);
                    if window.1 == 5000 && size == 8 {
                        assert_eq!(tile.is_some(), shared == SHARED);
                        continue;
                    }
                    let tile = tile.unwrap();
                    assert!(tile.bytes(window, size) <= shared, "{window:?} {tile:?}");
                }
            }
        }
        assert!(WindowTile::of((65537, 1), (100, 100), 4, SHARED).is_none());
    }
}
