//! From a kernel to CUDA C++ and the parameters of a launch, without a driver.
//!
//! The source depends on the *structure* of a kernel (accesses, sizes, types, borders) and on the tuning. Taps,
//! constants, coefficients of maps and geometry are parameters, so all orientations of a detector share one binary. A
//! generated file is the headers of `kernels/` followed by one kernel that calls their templates.
//!
//! Pointwise kernels are in `pointwise`, reductions along rows in `reduced`, calls of a single template in `fixed`,
//! several iterations of a loop in `repeat`, everything else in `map`. All emit the statements of `cpp`, which become
//! text at the end. `docs/design/kernel.md` follows one kernel from calls to CUDA, with its shared memory.

mod components;
mod cost;
mod cpp;
mod distance;
mod fixed;
mod fourier;
mod instructions;
mod labels;
mod map;
mod params;
mod parts;
mod planes;
mod pointwise;
mod product;
mod reconstruction;
mod reduced;
mod repeat;
mod schedule;
mod similar;
mod thin;
mod windowed;

use std::fmt::Display;

use horus_core::device::Geometry;
use horus_core::dtype::DType;
use horus_core::error::DeviceError;
use horus_core::ir::kernel::{Kernel, MapKernel};
use horus_core::ops::pixel::TABLE;
use horus_core::ops::{ImageOperation as _, Merge, Whole};
use horus_core::shape::{Border, Window};
use horus_core::{implementation, whole_operations};
use horus_cuda_kernels::{
    AROUND, BYTES, CAST, COMPONENTS, DENSE, DISTANCE, FOURIER, GATHER, LABELS, LAYOUT, MATH, MATH_ONLY, NEAR,
    POINTWISE, PRELUDE, PRODUCT, RECONSTRUCTION, REDUCE, RESIZE, SAMPLING, SEPARABLE, STEPS, TILE, WINDOWED,
};

use self::cpp::{CppCall, Expr};
use crate::tuning::Tuning;

pub use cost::MOST as MOST_COST;
pub use parts::KernelPart;
pub(crate) use schedule::NearFilter;

/// Name of every generated kernel.
pub const ENTRY: &str = "hs_kernel";

/// Geometries of a launch.
#[derive(Clone, Copy, Debug)]
pub struct Shapes<'a> {
    /// The inputs' geometries.
    pub inputs: &'a [Geometry],
    /// The output's geometry; further outputs differ in type only.
    pub output: Geometry,
    /// The output rows to compute (for a histogram, the input rows to count).
    pub rows: Window,
}

/// Resource limits of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelLimits {
    /// Bytes of shared memory a block may use.
    pub shared: usize,
}

impl KernelLimits {
    /// Returns `true` if the device multiplies matrices of 8-bit integers: from compute capability 8.0 on. Earlier
    /// devices have less shared memory per block.
    const fn multiplies_bytes(self) -> bool {
        self.shared >= 99 << 10
    }
}

/// The buffer whose address a pointer parameter receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pointer {
    /// The output.
    Output {
        /// Bytes from its beginning.
        offset: usize,
    },
    /// The output of a result after the first.
    FurtherOutput {
        /// Its index.
        index: usize,
        /// Bytes from its beginning.
        offset: usize,
    },
    /// An input.
    Input {
        /// Its index.
        index: usize,
        /// Bytes from its beginning.
        offset: usize,
    },
    /// The [`Generated::table`].
    Table,
    /// Memory of this launch only: see [`LaunchSequence::scratch`].
    Scratch,
    /// The place of the fold of all rows in a reduction along rows, which computes it in its last block; 0 if the fold
    /// is a launch of its own.
    Total,
    /// The counter of a reduction along rows with a [`Pointer::Total`]; 0 between launches.
    Done,
}

/// Consecutive launches of one kernel, numbered 0, 1, ... by the first integer of the parameters.
///
/// The last of them may be repeated in rounds until nothing is left to do. Before each round, the first
/// [`LaunchSequence::FLAG`] bytes of the scratch memory are zeroed; a round that leaves them zero is the last. The host
/// waits for each round and reads the flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchSequence {
    /// Number of launches that run once.
    pub count: u32,
    /// Number of launches per repeated round, after the others: 0 for none.
    pub repeated: u32,
    /// Bytes of uninitialised memory that the launches share.
    pub scratch: usize,
}

impl LaunchSequence {
    /// Bytes of the flag that requests another round: one `int`.
    pub const FLAG: usize = 4;
}

/// A generated kernel and the parameters of its launch.
#[derive(Clone, Debug)]
pub struct Generated {
    /// CUDA C++, one `extern "C"` kernel called [`ENTRY`].
    pub source: String,
    /// The bytes of the kernel's parameter.
    pub params: Vec<u8>,
    /// Offsets of addresses in `params`.
    pub pointers: Vec<(usize, Pointer)>,
    /// Constant data that the kernel reads through [`Pointer::Table`].
    pub table: Vec<u8>,
    /// Blocks in x and y.
    pub grid: [u32; 2],
    /// Threads per block.
    pub block: u32,
    /// Bytes of dynamic shared memory per block.
    pub shared: u32,
    /// `true` if the output must be zeroed first.
    pub clear: bool,
    /// `true` if the kernel may begin while the previous one ends; it waits on its own (`hs_wait_for_previous`).
    pub early: bool,
    /// Approximate number of instructions after compilation; 0 for small kernels.
    pub cost: usize,
    /// The launches, if there are several.
    pub sequence: Option<LaunchSequence>,
}

/// Treatment of templates that a kernel uses more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repeats {
    /// Each use is inlined, for speed.
    Inlined,
    /// One function, compiled once.
    Called,
}

/// Generates the program of a launch. [`Whole::Merge`] and [`Kernel::Source`] are copies, not
/// programs.
///
/// # Errors
/// [`DeviceError::Unsupported`] for a kernel no device runs: a linear filter of an integer image, a
/// source. [`DeviceError::Limit`] if an extent is beyond 2^30.
pub fn generate(
    kernel: &Kernel,
    shapes: &Shapes<'_>,
    tuning: &Tuning,
    limits: KernelLimits,
) -> Result<Generated, DeviceError> {
    generate_with(kernel, shapes, tuning, limits, Repeats::Inlined)
}

fn generate_with(
    kernel: &Kernel,
    shapes: &Shapes<'_>,
    tuning: &Tuning,
    limits: KernelLimits,
    repeats: Repeats,
) -> Result<Generated, DeviceError> {
    check_extents(shapes)?;
    let samples = shapes.output.shape.samples;
    let program = match kernel {
        // A repeated pixel has its own samples.
        Kernel::Map(m) if pointwise::serves(m) && (samples == 1 || m.is_pointwise()) => {
            // Samples are read and computed one by one, or all in the same way.
            if m.woven || samples == 1 {
                return pointwise::generate(m, shapes, tuning);
            }
            let inputs: Vec<Geometry> = shapes.inputs.iter().map(|input| input.flat()).collect();
            return pointwise::generate(
                m,
                &Shapes { inputs: &inputs, output: shapes.output.flat(), ..*shapes },
                tuning,
            );
        }
        Kernel::Map(m) => map::generate(m, shapes, tuning, limits, repeats)?,
        Kernel::Repeat(repeat) => repeat::generate(repeat, shapes, tuning, limits)?,
        Kernel::MapReduce(map, how) => return reduced::expression(map, *how, shapes),
        Kernel::Whole(operation) => {
            let program = whole_operations!(implementation operation as CudaOperation).generate(shapes, limits)?;
            // Other operations have one sample, or process each sample separately.
            let samples = match operation {
                Whole::Windowed(_) | Whole::Resize(_) => samples,
                Whole::RowReduce(_) => shapes.inputs[0].shape.samples,
                _ => 1,
            };
            return Ok(with_samples(samples, program));
        }
        Kernel::Source(_) => return Err(unsupported(shapes, kernel.name())),
    };
    Ok(with_samples(samples, program))
}

/// The program of images whose pixels have several samples.
fn with_samples(samples: usize, program: Generated) -> Generated {
    match samples {
        1 => program,
        _ => Generated { source: format!("#define HS_SAMPLES {samples}\n{}", program.source), ..program },
    }
}

fn unsupported(shapes: &Shapes<'_>, kernel: String) -> DeviceError {
    DeviceError::Unsupported { kernel, dtype: shapes.output.dtype }
}

/// An operation on whole images, as a GPU computes it.
trait CudaOperation {
    /// The program of a launch that [`check`](horus_core::device::check) accepts.
    ///
    /// # Errors
    /// Errors of [`generate`].
    fn generate(&self, shapes: &Shapes<'_>, limits: KernelLimits) -> Result<Generated, DeviceError>;
}

impl CudaOperation for Merge {
    fn generate(&self, shapes: &Shapes<'_>, _limits: KernelLimits) -> Result<Generated, DeviceError> {
        Err(unsupported(shapes, self.name()))
    }
}

/// [`generate`] with a smaller tuning for a kernel that takes long to compile, and, if it is still large, with
/// functions for its repeated parts.
///
/// # Errors
/// Errors of [`generate`].
pub fn generate_bounded(
    kernel: &Kernel,
    shapes: &Shapes<'_>,
    tuning: &Tuning,
    limits: KernelLimits,
) -> Result<Generated, DeviceError> {
    bounded(kernel, shapes, tuning, limits).map(|(program, _)| program)
}

/// The program of [`generate_bounded`], and its tuning.
fn bounded(
    kernel: &Kernel,
    shapes: &Shapes<'_>,
    tuning: &Tuning,
    limits: KernelLimits,
) -> Result<(Generated, Tuning), DeviceError> {
    let mut program = generate(kernel, shapes, tuning, limits)?;
    let (mut tuning, mut best) = (*tuning, *tuning);
    while program.cost > MOST_COST
        && let Some(smaller) = cost::cheaper(kernel, &tuning)
    {
        tuning = smaller;
        let next = generate(kernel, shapes, &tuning, limits)?;
        if next.cost < program.cost {
            (program, best) = (next, tuning);
        }
    }
    if program.cost > cost::REPEATED {
        let called = generate_with(kernel, shapes, &best, limits, Repeats::Called)?;
        if called.cost < program.cost {
            program = called;
        }
    }
    Ok((program, best))
}

/// A part of the program of a launch, for profiles: the kernel that it computes, and the program, which uses as much
/// shared memory. `None` if the kernel is no expression per pixel.
///
/// # Errors
/// Errors of [`generate`].
pub fn generate_part(
    part: KernelPart,
    kernel: &Kernel,
    shapes: &Shapes<'_>,
    tuning: &Tuning,
    limits: KernelLimits,
) -> Result<Option<(Kernel, Generated)>, DeviceError> {
    let Kernel::Map(map) = kernel else { return Ok(None) };
    let (whole, tuning) = bounded(kernel, shapes, tuning, limits)?;
    let (computed, program) = match part {
        KernelPart::Math => {
            let source = format!("{MATH_ONLY}{}", whole.source);
            (map.clone(), Generated { source, ..whole.clone() })
        }
        KernelPart::Memory if pointwise::serves(map) => {
            let sums = Kernel::Map(parts::summed(map));
            let program = generate_with(&sums, shapes, &tuning, limits, Repeats::Inlined)?;
            return Ok(Some((sums, Generated { shared: program.shared.max(whole.shared), ..program })));
        }
        KernelPart::Memory => map::memory_only(map, shapes, &tuning, limits)?,
    };
    let shared = program.shared.max(whole.shared);
    Ok(Some((Kernel::Map(computed), Generated { shared, ..program })))
}

fn check_extents(shapes: &Shapes<'_>) -> Result<(), DeviceError> {
    // Coordinates are 32-bit in kernels, with space for a halo; addresses are 64-bit.
    const MOST: usize = 1 << 30;
    for g in shapes.inputs.iter().chain([&shapes.output]) {
        let far = |y: isize| y.unsigned_abs() > 2 * MOST - 1;
        if g.shape.height > MOST || g.shape.width > MOST || g.window.len() > MOST || far(g.window.start) {
            return Err(DeviceError::Limit(format!("an image of {} exceeds 2^30 pixels in one direction", g.shape)));
        }
    }
    Ok(())
}

/// An error of the generator, independent of the user's request.
fn defect(what: impl Display) -> DeviceError {
    DeviceError::Internal(format!("the generator of kernels is wrong: {what}; please report this"))
}

/// A count of blocks in the driver's type.
fn blocks(n: usize, kernel: &str) -> Result<u32, DeviceError> {
    i32::try_from(n)
        .map(i32::cast_unsigned)
        .map_err(|_| DeviceError::Limit(format!("{kernel} needs {n} blocks, more than a launch may have")))
}

/// The address of the first of some rows of an input.
fn first_row(input: usize, g: &Geometry, rows: Window) -> Pointer {
    let offset = if rows.is_empty() { 0 } else { g.row(0, rows.start) * g.dtype.size() };
    Pointer::Input { index: input, offset }
}

/// Returns `true` if all rows of the buffer begin at a multiple of 16 bytes, and neighbours follow each other.
fn rows_aligned(g: &Geometry) -> bool {
    g.shape.samples == 1 && (g.shape.width * g.dtype.size()).is_multiple_of(16)
}

/// The address of a plane of an image that begins at `first`; `size` is the number of elements of a level.
fn plane_at(first: Expr, plane: Expr, size: Expr) -> Expr {
    first + Expr::from(CppCall::new("hs_plane_at", vec![], vec![plane, size]))
}

/// The name of a border in the kernels. An unknown one fails to compile, with its name.
fn border_name(border: Border) -> String {
    format!("HS_{}", border.name().to_ascii_uppercase())
}

/// The kernel, with the `bounds` on its launches and the text of its body.
fn entry(bounds: impl Display, body: &str) -> String {
    format!(
        "extern \"C\" __global__ void __launch_bounds__({bounds}) {ENTRY}(const __grid_constant__ hs_params p) {{\n{body}}}\n"
    )
}

/// Assembles a source: headers, parameters, code. `HS_PORTABLE` is defined before those that other compilers than NVRTC compile.
fn assemble(headers: &[&str], params: &str, code: &str) -> String {
    let mut s = String::from("#ifndef HS_PORTABLE\n#define HS_INFINITY __int_as_float(0x7f800000)\n");
    s.push_str("extern __shared__ __align__(128) unsigned char hs_smem[];\n#endif\n");
    // Functions that few programs call follow the prelude.
    let calls = |functions: &[&str]| {
        let named = |part: &str| {
            part.match_indices("hs_").any(|(at, _)| functions.iter().any(|name| part[at..].starts_with(name)))
        };
        headers.iter().skip(1).chain([&params, &code]).any(|part| named(part))
    };
    let transcendental: Vec<&str> = TABLE
        .iter()
        .filter(|row| row.op.is_transcendental())
        .filter_map(|row| row.cuda.split_inclusive('(').next())
        .collect();
    let few = [(calls(&transcendental), MATH), (calls(&["hs_shifted"]), AROUND), (calls(&["hs_cast"]), CAST)];
    for (i, header) in headers.iter().enumerate() {
        s.push_str(header);
        few.iter().filter(|(called, _)| i == 0 && *called).for_each(|(_, functions)| s.push_str(functions));
    }
    s.push_str(params);
    s.push_str(code);
    s
}

/// The outputs of a kernel: name of the pointer parameter, geometry, and buffer with byte `offset`.
fn outputs(
    kernel: &MapKernel,
    first: Geometry,
    offset: impl Fn(&Geometry) -> usize,
) -> Vec<(String, Geometry, Pointer)> {
    let mut all = vec![("out".to_owned(), first, Pointer::Output { offset: offset(&first) })];
    for (index, value) in kernel.additional_results.iter().enumerate().take(kernel.further()) {
        let geometry = Geometry { dtype: kernel.type_of(*value), ..first };
        all.push((format!("more{index}"), geometry, Pointer::FurtherOutput { index, offset: offset(&geometry) }));
    }
    all
}

/// Elements of a type in 16 bytes.
fn vector(dtype: DType) -> usize {
    16 / dtype.size()
}
