//! Reductions of the pixels of each label; see `kernels/labels.cuh`.

use horus_core::dtype::DType;
use horus_core::error::DeviceError;
use horus_core::ops::labels::{DIGIT_BITS, DIGITS, Digits, LabelReduce, PLACE, PRODUCT};

use super::cpp::{CppCall, Expr, Stmt, args, name, template};
use super::fixed::program;
use super::params::KernelParams;
use super::{CudaOperation, Generated, KernelLimits, LABELS, PRELUDE, Pointer, Shapes, blocks};

/// Most bytes of sums in shared memory; larger ones are added in global memory.
const SHARED: usize = 48 << 10;
/// Threads per block for all kernels, and pixels per thread for sums.
const THREADS: usize = 256;
const EACH: usize = 64;
const SEARCHING: usize = 1024;
// `labels.cuh` relies on them.
const _: () = assert!(DIGITS == 88 && DIGIT_BITS == 24 && 1 + 2 * PLACE + 3 * PRODUCT == 14);

impl CudaOperation for LabelReduce {
    fn generate(&self, shapes: &Shapes<'_>, _limits: KernelLimits) -> Result<Generated, DeviceError> {
        let how = *self;
        let (rows, width) = (shapes.rows, shapes.inputs[0].shape.width);
        let planes = blocks(shapes.inputs[0].shape.planes(), "levels of labels")?;
        let mut p = KernelParams::default();
        p.pointer("f64", "out", Pointer::Output { offset: 0 });
        for (i, (g, member)) in shapes.inputs.iter().zip(["labels", "image"]).enumerate() {
            let offset = if how.adds_up() { g.row(0, rows.start) * g.dtype.size() } else { 0 };
            p.pointer(&format!("const {}", g.dtype.name()), member, Pointer::Input { index: i, offset });
            p.int(&format!("{member}_start"), g.window.start);
            p.long(&format!("{member}_plane"), g.plane() as i64);
        }
        p.int("labels_count", how.count().cast_signed());
        p.int("width", width.cast_signed());
        let headers = [PRELUDE, LABELS];
        let Some(block) = how.block() else {
            let pixels = rows.len() * width;
            p.long("count", pixels as i64);
            let (count, columns) = how.extent(0);
            let bytes = count.saturating_mul(columns * DType::F64.size());
            let shared = bytes <= SHARED;
            // One plane per second index of a block.
            let plane = || Expr::from(CppCall::new("i64", template![], args!["blockIdx.y"]));
            let of = |image: &str| name(format_args!("p.{image}")) + plane() * name(format_args!("p.{image}_plane"));
            let call = match how {
                LabelReduce::Shape { origin: [top, left], .. } => {
                    p.long("top", top as i64 + rows.start as i64);
                    p.long("left", left as i64);
                    let args = args![of("labels"), "p.count", "p.width", "p.top", "p.left", "p.labels_count", "p.out"];
                    CppCall::new("hs_label_shapes", template![THREADS, EACH, shared], args)
                }
                _ => {
                    let (squares, of_pixels) = match how {
                        LabelReduce::Sum { squares, of, .. } => (squares, of),
                        _ => (false, DType::F64),
                    };
                    let sum = |digits: Digits| format!("hs_sum<{}, {}>", digits.first, digits.count);
                    let (plain, squared) = (Digits::of(of_pixels), Digits::of_squares(of_pixels));
                    p.int("columns", columns.cast_signed());
                    p.int("squared", (1 + plain.columns()).cast_signed());
                    let (labels, image) = (of("labels"), of("image"));
                    let args = args![labels, image, "p.count", "p.labels_count", "p.columns", "p.squared", "p.out"];
                    let which = template![THREADS, EACH, shared, squares, sum(plain), sum(squared)];
                    CppCall::new("hs_label_sums", which, args)
                }
            };
            let grid = [blocks(pixels.div_ceil(THREADS * EACH), "sums of labels")?, planes];
            let sums = program(&headers, &[call.into()], p, grid, THREADS, if shared { bytes } else { 0 });
            return Ok(Generated { clear: true, ..sums });
        };
        p.int("row0", rows.start);
        p.int("out_start", shapes.output.window.start);
        p.int("height", shapes.inputs[0].shape.height.cast_signed());
        p.int("planes", shapes.inputs[0].shape.planes().cast_signed());
        // The rows that this block of threads searches, and where they begin in each image.
        let first = |start: &str| CppCall::new("i64", template![], args![name("top") - start]);
        let at =
            |image: &str| name(format_args!("p.{image}")) + Expr::from(first(&format!("p.{image}_start"))) * "p.width";
        let lines = CppCall::new("min", template![], args![name("p.height") - "top", block]);
        let to = CppCall::new("i64", template![], args![name("block") - "p.out_start"]);
        let table = name("p.out") + Expr::from(to) * "p.labels_count";
        let (labels, image) = (at("labels"), at("image"));
        let args =
            args![labels, "p.labels_plane", image, "p.image_plane", "p.planes", "count", "p.labels_count", table];
        let least = matches!(how, LabelReduce::Min { .. });
        let body = [
            Stmt::constant("int", "block", name("p.row0") + "blockIdx.x"),
            Stmt::constant("int", "top", name("block") * block),
            Stmt::constant("i64", "count", Expr::from(CppCall::new("i64", template![], args![lines])) * "p.width"),
            CppCall::new("hs_label_extremes", template![SEARCHING, least], args).into(),
        ];
        Ok(program(&headers, &body, p, [blocks(rows.len(), "extremes of labels")?, 1], SEARCHING, 0))
    }
}
