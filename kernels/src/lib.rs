//! The CUDA sources from which `horus-cuda` generates kernels, and the tuning tables that ship with it.
//!
//! A generated kernel is some of these headers, followed by one entry point that calls their
//! templates. `emulate.h` and `emulate_main.h` run generated kernels on the host in tests.

/// Launch shapes measured on GPUs of the architecture `sm_90`.
pub const SM_90: &str = include_str!("../tuning/sm_90.json");
/// `around.cuh`.
pub const AROUND: &str = include_str!("../around.cuh");
/// `bytes.cuh`.
pub const BYTES: &str = include_str!("../bytes.cuh");
/// `cast.cuh`.
pub const CAST: &str = include_str!("../cast.cuh");
/// `components.cuh`.
pub const COMPONENTS: &str = include_str!("../components.cuh");
/// `dense.cuh`.
pub const DENSE: &str = include_str!("../dense.cuh");
/// `distance.cuh`.
pub const DISTANCE: &str = include_str!("../distance.cuh");
/// `fourier.cuh`.
pub const FOURIER: &str = include_str!("../fourier.cuh");
/// `gather.cuh`.
pub const GATHER: &str = include_str!("../gather.cuh");
/// `labels.cuh`.
pub const LABELS: &str = include_str!("../labels.cuh");
/// `layout.cuh`.
pub const LAYOUT: &str = include_str!("../layout.cuh");
/// `math.cuh`.
pub const MATH: &str = include_str!("../math.cuh");
/// `math_only.cuh`.
pub const MATH_ONLY: &str = include_str!("../math_only.cuh");
/// `near.cuh`.
pub const NEAR: &str = include_str!("../near.cuh");
/// `pieces.cuh`.
pub const PIECES: &str = include_str!("../pieces.cuh");
/// `pointwise.cuh`.
pub const POINTWISE: &str = include_str!("../pointwise.cuh");
/// `prelude.cuh`.
pub const PRELUDE: &str = include_str!("../prelude.cuh");
/// `product.cuh`.
pub const PRODUCT: &str = include_str!("../product.cuh");
/// `reconstruction.cuh`.
pub const RECONSTRUCTION: &str = include_str!("../reconstruction.cuh");
/// `reduce.cuh`.
pub const REDUCE: &str = include_str!("../reduce.cuh");
/// `resize.cuh`.
pub const RESIZE: &str = include_str!("../resize.cuh");
/// `sampling.cuh`.
pub const SAMPLING: &str = include_str!("../sampling.cuh");
/// `separable.cuh`.
pub const SEPARABLE: &str = include_str!("../separable.cuh");
/// `steps.cuh`.
pub const STEPS: &str = include_str!("../steps.cuh");
/// `thin.cuh`.
pub const THIN: &str = include_str!("../thin.cuh");
/// `tile.cuh`.
pub const TILE: &str = include_str!("../tile.cuh");
/// `windowed.cuh`.
pub const WINDOWED: &str = include_str!("../windowed.cuh");
