//! Linear filters by Fourier transforms of tiles; see `kernels/fourier.cuh`.

use horus_core::dtype::{DType, Scalar};
use horus_core::error::DeviceError;
use horus_core::ops::footprint::Rect;
use horus_core::ops::fourier::{ACROSS, Fourier, Roots};
use horus_core::ops::neighbourhood::Filter;
use horus_core::shape::Window;

use super::cpp::{CppCall, Expr, Stmt, args, name, template};
use super::fixed::with_bounds;
use super::params::KernelParams;
use super::{
    CudaOperation, FOURIER, Generated, KernelLimits, LaunchSequence, PRELUDE, Pointer, Shapes, blocks, border_name,
};

/// Fewest threads of a block.
const THREADS: usize = 64;
/// Threads for which a multiprocessor has registers.
const RESIDENT: usize = 384;
/// Most blocks that share the work of a launch.
const BLOCKS: usize = 4096;
/// Lines that threads transform together; fewer if shared memory is too small.
const LINES: [usize; 3] = [8, 4, 2];
/// Points of a line that a thread holds, as in the kernel.
const POINTS: usize = 16;
/// Bytes of a complex number.
const COMPLEX: usize = 16;
/// Most bytes of the transforms of a round. More bytes take fewer launches, which gains more than staying in the
/// second-level cache.
const ROUND: usize = 192 << 20;

impl CudaOperation for Fourier {
    fn generate(&self, shapes: &Shapes<'_>, limits: KernelLimits) -> Result<Generated, DeviceError> {
        let how = self;
        let (input, out) = (shapes.inputs[0], shapes.output);
        let ([tall, wide], [down, across], reach) = (how.tile, how.step(), how.reach());
        let all = how.pairs(Rect { rows: shapes.rows, columns: Window::whole(out.shape.width) });
        let (pairs_down, pairs_across) = (all.rows.len() / down, all.columns.len() / (2 * across));
        let (filters, added, sums) = (how.filters.len(), how.added(), how.across.is_some());
        let together = how.together(input.shape.depth, ACROSS / how.tile_bytes(), true);
        // Levels that a unit reads, and tiles of products; those with a single filter take the place of the transforms.
        let each = together + added - 1;
        let products = if sums { together } else { usize::from(filters > 1) };
        let units = pairs_down * pairs_across * input.shape.channels * input.shape.depth.div_ceil(together);
        let most = if sums { ACROSS } else { ROUND };
        let round = (most / ((each + products) * how.tile_bytes())).clamp(1, units);
        let threads = |lines: usize| (lines * tall.max(wide) / POINTS).max(THREADS);
        // Points, with gaps between them, and roots.
        let bytes = |lines: usize| (threads(lines) * (POINTS + 1) + (tall + wide) / 8 * 9) * COMPLEX;
        let lines = LINES.into_iter().find(|lines| bytes(*lines) <= limits.shared).unwrap_or(LINES[2]);
        let (threads, bytes) = (threads(lines), bytes(lines));
        // The spectra of a block's points, if they leave room for as many blocks as registers do.
        let spectra = filters * threads * COMPLEX;
        let held = sums && spectra <= limits.shared / (RESIDENT / threads).max(1);
        let bytes = if held { bytes.max(spectra) } else { bytes };
        let shared = ((round * each).max(filters) * tall * wide).div_ceil(POINTS * threads).min(BLOCKS);
        let taps = how.filters.iter().map(|f| f.taps().len()).max().unwrap_or(0);

        // The non-zero points of filters as tiles, column by column.
        let mut ends_of_columns = vec![0];
        let (mut points, mut values) = (Vec::new(), Vec::new());
        for filter in &*how.filters {
            let tile = how.reflected(filter);
            for x in 0..wide {
                for y in (0..tall).filter(|y| tile[y * wide + x][0] != 0.0) {
                    points.push(y);
                    values.push(tile[y * wide + x][0]);
                }
                ends_of_columns.push(points.len());
            }
        }
        // Filters of fewer taps end with some that are not read: see `ends`.
        let padded = |f: &Filter| f.taps().iter().copied().chain(std::iter::repeat(0.0)).take(taps).collect::<Vec<_>>();
        let places = |f: &Filter| {
            let in_tile = |(dy, dx): (isize, isize)| [dy + reach.up.cast_signed(), dx + reach.left.cast_signed()];
            let places = f.offsets().into_iter().flat_map(in_tile);
            places.chain(std::iter::repeat(0)).take(2 * taps).map(isize::cast_unsigned).collect::<Vec<_>>()
        };
        let mut table = Vec::new();
        let mut doubles = |values: &mut dyn Iterator<Item = f64>| {
            let at = table.len();
            values.for_each(|v| table.extend(v.to_le_bytes()));
            at as i64
        };
        let roots = |n: usize| {
            let roots = Roots::of(n);
            (0..n).flat_map(move |k| roots.at(k))
        };
        let at_roots = doubles(&mut roots(tall).chain(roots(wide)));
        let at_values = doubles(&mut values.into_iter());
        let at_weights = doubles(&mut how.filters.iter().flat_map(padded));
        let mut ints = |values: &mut dyn Iterator<Item = usize>| {
            let at = table.len();
            values.for_each(|v| table.extend((v as i32).to_le_bytes()));
            at as i64
        };
        let at_columns = ints(&mut ends_of_columns.into_iter());
        let at_points = ints(&mut points.into_iter());
        let at_places = ints(&mut how.filters.iter().flat_map(places));
        let at_ends = ints(&mut how.filters.iter().map(|f| f.taps().len()));

        let t = out.dtype.name();
        let stored = if how.stored() == DType::F32 { "hs_single" } else { "hs_complex" };
        let mut p = KernelParams::default();
        // The first launch: see `LaunchSequence`.
        p.int("pass", 0);
        p.pointer(t, "out", Pointer::Output { offset: out.row(0, shapes.rows.start) * out.dtype.size() });
        p.pointer(&format!("const {t}"), "in", Pointer::Input { index: 0, offset: 0 });
        p.pointer("unsigned char", "scratch", Pointer::Scratch);
        p.pointer("const unsigned char", "table", Pointer::Table);
        let at_spectra = round * (each + products) * how.tile_bytes();
        p.long("spectra", at_spectra as i64);
        p.long("in_plane", input.plane() as i64);
        p.long("out_plane", out.plane() as i64);
        for (member, at) in [
            ("at_roots", at_roots),
            ("at_columns", at_columns),
            ("at_points", at_points),
            ("at_values", at_values),
            ("at_weights", at_weights),
            ("at_places", at_places),
            ("at_ends", at_ends),
        ] {
            p.long(member, at);
        }
        for (member, v) in [
            ("height", input.shape.height.cast_signed()),
            ("width", input.shape.width.cast_signed()),
            ("start", input.window.start),
            ("end", input.window.end),
            ("row0", shapes.rows.start),
            ("row1", shapes.rows.end),
            ("channels", input.shape.channels.cast_signed()),
            ("depth", input.shape.depth.cast_signed()),
            ("filters", filters.cast_signed()),
            ("added", added.cast_signed()),
            ("before", how.across.map_or(0, |across| across.before.cast_signed())),
            ("together", together.cast_signed()),
            ("down", down.cast_signed()),
            ("across", across.cast_signed()),
            ("up", reach.up.cast_signed()),
            ("left", reach.left.cast_signed()),
            ("top", all.rows.start),
            ("first", all.columns.start),
            ("pairs_down", pairs_down.cast_signed()),
            ("pairs_across", pairs_across.cast_signed()),
            ("units", units.cast_signed()),
            ("round", round.cast_signed()),
            ("products", if products == 0 { 0 } else { (round * each).cast_signed() }),
            ("held", held.into()),
            ("blocks", shared.cast_signed()),
            ("taps", taps.cast_signed()),
        ] {
            p.int(member, v);
        }
        let outside = p.constant(Scalar::from_f64(out.dtype, how.border.constant().unwrap_or(0.0)), out.dtype);
        let largest = p.constant(Scalar::F64(Fourier::largest(out.dtype, how.stored())), DType::F64);
        let of = |ctype: &str, member: &str| name(format_args!("(const {ctype}*)(p.table + p.{member})"));
        let members = args![
            "p.in",
            "p.in_plane",
            "p.height",
            "p.width",
            "p.start",
            "p.end",
            "p.out",
            "p.out_plane",
            "p.row0",
            "p.row1",
            "p.channels",
            "p.depth",
            "p.filters",
            "p.added",
            "p.before",
            "p.together",
            "p.down",
            "p.across",
            "p.up",
            "p.left",
            "p.top",
            "p.first",
            "p.pairs_down",
            "p.pairs_across",
            "p.units",
            "p.round",
            "p.products",
            "p.held",
            "p.blocks",
            "p.taps",
            outside,
            largest,
            of("hs_complex", "at_roots"),
            of("int", "at_columns"),
            of("int", "at_points"),
            of("f64", "at_values"),
            of("int", "at_places"),
            of("int", "at_ends"),
            of("f64", "at_weights"),
            "p.scratch",
            name("(hs_complex*)(p.scratch + p.spectra)"),
        ];
        let body = [
            Stmt::Let {
                ctype: format!("const hs_fourier_tiles<{stored}, {t}, {tall}, {wide}>"),
                name: "tiles".into(),
                value: Expr::Members(None, members),
            },
            CppCall::new(
                "hs_fourier",
                template![border_name(how.border), if sums { added } else { 0 }, lines, threads],
                args!["p.pass", "tiles", name("(hs_complex*)hs_smem")],
            )
            .into(),
        ];
        let stages = if sums { 6 } else { 2 + 2 * filters };
        let passes = blocks(1 + units.div_ceil(round) * stages, "passes over tiles")?;
        let scratch = at_spectra + filters * tall * wide * COMPLEX + (1 + 2 * units * each) * DType::I32.size();
        let made = with_bounds(
            &[PRELUDE, FOURIER],
            &body,
            p,
            [blocks(shared, "tiles")?, 1],
            (threads, format!("{threads}, {}", RESIDENT / threads)),
            bytes,
        );
        Ok(Generated { table, sequence: Some(LaunchSequence { count: passes, repeated: 0, scratch }), ..made })
    }
}
