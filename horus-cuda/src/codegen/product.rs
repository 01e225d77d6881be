//! Matrix products: calls of `kernels/product.cuh`.

use horus_core::error::DeviceError;
use horus_core::ops::MatrixProduct;
use horus_core::ops::product::ProductTiles;

use super::cpp::{CppCall, Expr, args, template};
use super::fixed::{plane, with_bounds};
use super::params::KernelParams;
use super::{CudaOperation, Generated, KernelLimits, PRELUDE, PRODUCT, Pointer, Shapes, blocks, rows_aligned};

/// Threads along a side of a block: `HS_SIDE` of the kernel.
const SIDE: usize = ProductTiles::SIDE;

/// Terms of an iteration.
const STEP: usize = 8;

impl CudaOperation for MatrixProduct {
    fn generate(&self, shapes: &Shapes<'_>, _limits: KernelLimits) -> Result<Generated, DeviceError> {
        let (a, b, out) = (shapes.inputs[0], shapes.inputs[1], shapes.output);
        let (rows, width, planes) = (shapes.rows.len(), out.shape.width, out.shape.planes());
        let ProductTiles { thread: [m, n], count: [across, down] } = ProductTiles::of((out.shape, out.dtype), rows);
        let bytes = out.dtype.size();
        let t = out.dtype.name();
        let mut p = KernelParams::default();
        p.pointer(t, "out", Pointer::Output { offset: out.row(0, shapes.rows.start) * bytes });
        p.pointer(&format!("const {t}"), "a", Pointer::Input { index: 0, offset: a.row(0, shapes.rows.start) * bytes });
        p.pointer(&format!("const {t}"), "b", Pointer::Input { index: 1, offset: b.row(0, 0) * bytes });
        p.long("a_plane", a.plane() as i64);
        p.long("b_plane", b.plane() as i64);
        p.long("out_plane", out.plane() as i64);
        p.int("rows", rows.cast_signed());
        p.int("width", width.cast_signed());
        p.int("terms", a.shape.width.cast_signed());
        p.int("tiles", across.cast_signed());
        p.int("aligned", rows_aligned(&out) as isize);
        let (from, by, to) = (plane("p.a", "p.a_plane"), plane("p.b", "p.b_plane"), plane("p.out", "p.out_plane"));
        let shared = Expr::Shared(out.dtype, 0);
        let args = args![from, by, shared, to, "p.rows", "p.width", "p.terms", "p.tiles", "p.aligned"];
        let body = [CppCall::new("hs_product", template![m, n, STEP], args).into()];
        let grid = [blocks(across * down, "a product")?, blocks(planes, "planes")?];
        // Twice `hs_factors::SIZE`: two iterations; a vector separates the rows of the first factor.
        let room = 2 * STEP * ((SIDE * m + 16 / bytes) + SIDE * n) * bytes;
        // Two blocks share the registers of a multiprocessor: while one waits for its factors, the other computes.
        let threads = SIDE * SIDE;
        Ok(with_bounds(&[PRELUDE, PRODUCT], &body, p, grid, (threads, format_args!("{threads}, 2")), room))
    }
}
