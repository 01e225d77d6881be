//! Linear filters by Fourier transforms of tiles; see `kernels/fourier.cuh`.

use horus_core::dtype::{DType, Scalar};
use horus_core::error::DeviceError;
use horus_core::ops::footprint::Rect;
use horus_core::ops::fourier::{Fourier, Roots};
use horus_core::ops::neighbourhood::Filter;
use horus_core::shape::Window;

use super::cpp::{Call, Expr, Stmt, args, name, template};
use super::fixed::program;
use super::params::KernelParams;
use super::{FOURIER, Generated, PRELUDE, Passes, Pointer, Shapes, blocks, border_name};

/// Threads per block.
const THREADS: usize = 256;
/// Most blocks that share the work of a pass.
const BLOCKS: usize = 1024;
/// Lines of a tile that a block transforms, as in the kernel.
const LINES: usize = 8;
/// Bytes of a complex number.
const COMPLEX: usize = 16;
/// Most bytes of the pairs of tiles of a round.
const ROUND: usize = 64 << 20;

pub(super) fn generate(how: &Fourier, shapes: &Shapes<'_>) -> Result<Generated, DeviceError> {
    let (input, out) = (shapes.inputs[0], shapes.output);
    let ([tall, wide], [down, across], reach) = (how.tile, how.step(), how.reach());
    let all = how.pairs(Rect { rows: shapes.rows, columns: Window::whole(out.shape.width) });
    let (pairs_down, pairs_across) = (all.rows.len() / down, all.columns.len() / (2 * across));
    let pairs = pairs_down * pairs_across * input.shape.planes();
    let round = (ROUND / (tall * wide * COMPLEX)).clamp(1, pairs);
    let filters = how.filters.len();
    let shared = (round.max(filters) * tall.max(wide) / LINES).min(BLOCKS);
    let taps = how.filters.iter().map(|f| f.taps().len()).max().unwrap_or(0);

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
    let at_reflected = doubles(&mut how.filters.iter().flat_map(|f| how.reflected(f)).map(|[re, _]| re));
    // Filters of fewer taps end with some that are not read: see `ends`.
    let padded = |f: &Filter| f.taps().iter().copied().chain(std::iter::repeat(0.0)).take(taps).collect::<Vec<_>>();
    let at_weights = doubles(&mut how.filters.iter().flat_map(padded));
    let at_places = table.len() as i64;
    let ends: Vec<usize> = how.filters.iter().map(|f| f.taps().len()).collect();
    for filter in &*how.filters {
        let places = filter
            .offsets()
            .into_iter()
            .flat_map(|(dy, dx)| [dy + reach.up.cast_signed(), dx + reach.left.cast_signed()].map(|n| n as i32));
        places.chain(std::iter::repeat(0)).take(2 * taps).for_each(|n| table.extend(n.to_le_bytes()));
    }
    let at_ends = table.len() as i64;
    ends.into_iter().for_each(|n| table.extend((n as i32).to_le_bytes()));

    let t = out.dtype.name();
    let mut p = KernelParams::default();
    // The first pass: see `Passes`.
    p.int("pass", 0);
    p.pointer(t, "out", Pointer::Output { offset: out.row(0, shapes.rows.start) * out.dtype.size() });
    p.pointer(&format!("const {t}"), "in", Pointer::Input { index: 0, offset: 0 });
    p.pointer("unsigned char", "scratch", Pointer::Scratch);
    p.pointer("const unsigned char", "table", Pointer::Table);
    p.long("in_plane", input.plane() as i64);
    p.long("out_plane", out.plane() as i64);
    for (member, at) in [
        ("at_roots", at_roots),
        ("at_reflected", at_reflected),
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
        ("filters", filters.cast_signed()),
        ("tall", tall.cast_signed()),
        ("wide", wide.cast_signed()),
        ("down", down.cast_signed()),
        ("across", across.cast_signed()),
        ("up", reach.up.cast_signed()),
        ("left", reach.left.cast_signed()),
        ("top", all.rows.start),
        ("first", all.columns.start),
        ("pairs_down", pairs_down.cast_signed()),
        ("pairs_across", pairs_across.cast_signed()),
        ("pairs", pairs.cast_signed()),
        ("round", round.cast_signed()),
        ("blocks", shared.cast_signed()),
        ("taps", taps.cast_signed()),
    ] {
        p.int(member, v);
    }
    let outside = p.constant(Scalar::from_f64(out.dtype, how.border.constant().unwrap_or(0.0)), out.dtype);
    let largest = p.constant(Scalar::F64(Fourier::largest(out.dtype)), DType::F64);
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
        "p.filters",
        "p.tall",
        "p.wide",
        "p.down",
        "p.across",
        "p.up",
        "p.left",
        "p.top",
        "p.first",
        "p.pairs_down",
        "p.pairs_across",
        "p.pairs",
        "p.round",
        "p.blocks",
        "p.taps",
        outside,
        largest,
        of("hs_complex", "at_roots"),
        of("f64", "at_reflected"),
        of("int", "at_places"),
        of("int", "at_ends"),
        of("f64", "at_weights"),
        "p.scratch",
    ];
    let body = [
        Stmt::Let {
            ctype: format!("const hs_fourier_tiles<{t}>"),
            name: "tiles".into(),
            value: Expr::Members(None, members),
        },
        Call::new(
            "hs_fourier",
            template![border_name(how.border), THREADS],
            args!["p.pass", "tiles", name("(hs_complex*)hs_smem")],
        )
        .into(),
    ];
    let rounds = blocks(pairs.div_ceil(round) * (2 + 2 * filters), "passes over tiles")?;
    let scratch = (2 * round + filters) * tall * wide * COMPLEX + 2 * round * DType::I32.size();
    let made = program(
        &[PRELUDE, FOURIER],
        &body,
        p,
        [blocks(shared, "tiles")?, 1],
        THREADS,
        tall.max(wide) * LINES * COMPLEX,
    );
    Ok(Generated { table, passes: Some(Passes { count: rounds, repeated: 0, scratch }), ..made })
}
