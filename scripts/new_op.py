#!/usr/bin/env python3
"""Writes the skeleton of an operation: every file it needs, with tests that fail until its parts are written.

    scripts/new_op.py pixel NAME      a row of the table of pixel operations
    scripts/new_op.py whole NAME      an operation on whole images: planner, oracle, CPU, GPU, function

NAME has the letters, digits and underscores of a function. Prints the files it wrote and what is left to do.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def written(path, text):
    file = ROOT / path
    if file.exists():
        sys.exit(f"{path} is there already")
    file.write_text(text)
    print(f"wrote    {path}")


def inserted(path, pattern, line):
    """Adds a line before the first match of a pattern."""
    text = (ROOT / path).read_text()
    at = re.search(pattern, text, flags=re.M)
    if not at:
        sys.exit(f"{path} has no place for the line `{line.strip()}`")
    (ROOT / path).write_text(text[: at.start()] + line + text[at.start() :])
    print(f"added to {path}: {line.strip()}")


def sorted_in(path, line):
    """Adds a line of modules or names, in alphabetical order."""
    text = (ROOT / path).read_text()
    head = re.match(r"(?:pub(?:\(\w+\))? )?(mod|use) ", line)[0]
    lines = [found for found in re.findall(rf"^{re.escape(head)}[^\n{{}}]*;\n", text, flags=re.M)]
    after = next((found for found in lines if found > line), None)
    at = text.index(after) if after else text.index(lines[-1]) + len(lines[-1])
    (ROOT / path).write_text(text[:at] + line + text[at:])
    print(f"added to {path}: {line.strip()}")


def added(path, lines):
    """Adds lines at the end."""
    with (ROOT / path).open("a") as file:
        file.write(lines)
    print(f"added to {path}: {lines.splitlines()[-1]}")


def pixel(name, camel):
    row = f'                {camel} "{name}" |a| a.abs(), "TODO: one line", {{ "hs_abs(a)", 1.0 }};\n'
    inserted("horus-plan/src/ops/pixel.rs", r"^            \}\n            binary \{", row)
    print(
        """
The row computes `|a|` so far. Left to do:
1. Its Rust body and CUDA expression, of methods of `Arithmetic` and functions of kernels/prelude.cuh; its line, and its names in other libraries (`like`).
2. Where no method of `Arithmetic` computes it: one in horus-base/src/dtype/arithmetic.rs, and `hs_NAME` in kernels/prelude.cuh.
3. With `fn NAME` in its braces it is a method of `Image`, which has as many as it may have (`METHODS` in tests/surface.rs): another has to go.
4. cargo xtask pages; its expectation in tests/goldens/command.py, then run that."""
    )


PLAN = '''//! TODO: what it is.

use super::describe::{{OperationGroup, Pattern, describe, description}};
use super::footprint::{{Access, InputRead, Rect}};
use super::operation::{{
    Distribution, LaunchEffort, ImageExtent, Family, ImageOperation, Instance, SampleOperations, SampleImages, ensure, images, stays,
}};
use horus_base::position_map::PositionMap;
use horus_base::shape::Shape;

describe! {{
    {upper} = description("{name}", OperationGroup::Morphology, Pattern::WholeImage, "TODO: one line")
        .details("TODO: formula and source.");
}}

/// TODO: what it computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct {camel};

impl ImageOperation for {camel} {{
    fn kind(&self) -> &'static str {{
        "{name}"
    }}

    fn check(&self, inputs: &[ImageExtent], output: ImageExtent) -> Result<(), String> {{
        let [input] = images(inputs)?;
        ensure(input == output, || format!("it yields {{}}, wanted is {{}}", input.0, output.0))
    }}

    fn reads(&self, _: usize, _: Rect, of: Shape) -> InputRead {{
        InputRead::whole(of)
    }}

    fn access(&self, _: usize) -> Access {{
        Access::Whole
    }}

    fn position_map(&self, _: usize, from: Shape, to: Shape) -> Option<PositionMap> {{
        stays(from, to)
    }}

    fn in_place(&self, _: usize) -> bool {{
        true
    }}

    fn distribution(&self) -> Distribution {{
        Distribution::Whole
    }}

    fn effort(&self, _: &[ImageExtent], output: ImageExtent, _: usize) -> LaunchEffort {{
        LaunchEffort::of_rows(Family::Rank, output.0, output.0.height, 1.0)
    }}
}}

impl SampleOperations for {camel} {{
    fn samples(of: SampleImages) -> Vec<Instance> {{
        vec![Instance::of({camel}, &[of.plane], of.plane)]
    }}
}}
'''

CPU = '''//! TODO: how it is computed.

use super::{{CpuOperation, OperationOutput, out, type_of, view}};
use horus_base::dispatch;
use horus_base::error::DeviceError;
use horus_host::device::{{LaunchInput, Memory}};
use horus_plan::ops::{camel};

impl CpuOperation for {camel} {{
    fn run(&self, inputs: &[LaunchInput<'_>], output: &mut Memory, to: &OperationOutput) -> Result<(), DeviceError> {{
        dispatch!(type_of(inputs), T => {{
            let (input, out) = (view::<T>(inputs, 0)?, out::<T>(output)?);
            // TODO: this is the first pixel everywhere.
            let first = to.geometry.row(0, to.rows.start);
            let wanted = &mut out[first..first + to.rows.len() * to.geometry.shape.width];
            wanted.fill(input.first().unwrap_or_default());
        }});
        Ok(())
    }}
}}
'''

DEFINITION = '''//! TODO: the definition, pixel by pixel and unlike how devices compute it.

use super::kernel::HostImage;
use super::{{OperationDefinition, ReferenceImage}};
use horus_base::dispatch;
use horus_base::dtype::DType;
use horus_base::shape::{{Shape, Window}};
use horus_host::device::Geometry;
use horus_plan::ops::{camel};

impl OperationDefinition for {camel} {{
    fn of_images(&self, inputs: &[&ReferenceImage], (shape, dtype): (Shape, DType)) -> ReferenceImage {{
        // TODO
        dispatch!(dtype, T => ReferenceImage::from_fn(shape, |plane, y, x| inputs[0].at::<T>(plane, y, x)))
    }}

    fn of_launch(&self, inputs: &[HostImage], output: &mut HostImage, out: Geometry, rows: Window) {{
        // TODO
        dispatch!(out.dtype, T => {{
            for y in rows.start..rows.end {{
                (0..out.shape.width).for_each(|x| output.put::<T>(0, y, x, inputs[0].get(0, y, x)));
            }}
        }});
    }}
}}
'''

CUDA = '''//! TODO: its kernel.

use horus_core::error::DeviceError;
use horus_core::ops::{camel};
use horus_cuda_kernels::{upper};

use super::cpp::{{CppCall, args, template}};
use super::fixed::program;
use super::params::KernelParams;
use super::{{CudaOperation, Generated, KernelLimits, PRELUDE, Pointer, Shapes, blocks}};

impl CudaOperation for {camel} {{
    fn generate(&self, shapes: &Shapes<'_>, _limits: KernelLimits) -> Result<Generated, DeviceError> {{
        const THREADS: usize = 128;
        let (out, count) = (shapes.output, shapes.output.shape.len());
        let mut p = KernelParams::default();
        p.pointer(out.dtype.name(), "out", Pointer::Output {{ offset: 0 }});
        p.pointer(&format!("const {{}}", out.dtype.name()), "in", Pointer::Input {{ index: 0, offset: 0 }});
        p.int("count", count.cast_signed());
        let call = CppCall::new("hs_{name}", template![THREADS], args!["p.out", "p.in", "p.count"]);
        let grid = [blocks(count.div_ceil(THREADS), "{name}")?, 1];
        Ok(program(&[PRELUDE, {upper}], &[call.into()], p, grid, THREADS, 0))
    }}
}}
'''

KERNEL = '''// TODO: this copies.

template <int THREADS, class T>
HS_FN void hs_{name}(T* out, const T* in, int count) {{
    const i64 i = (i64)blockIdx.x * THREADS + threadIdx.x;
    if (i < count) out[i] = in[i];
}}
'''

FUNCTION = '''//! TODO: what it is.

use std::panic::Location;

use super::{{Image, record}};
use crate::dtype::Pixel;
use crate::ir::graph::Op;
use crate::ops::{camel};

/// TODO: shapes, units, borders, errors, source.
///
/// ```
/// # use horus_core::{{self as horus, cpu::device::CpuDevice, prelude::*}};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let image = Image::from_slice(&session, (1, 3), &[0u8, 1, 0]);
/// assert_eq!(horus::image::{name}(&image).to_vec()?, [1, 1, 1], "TODO: the right pixels");
/// # Ok::<(), horus_core::error::Error>(())
/// ```
#[track_caller]
pub fn {name}<T: Pixel>(image: &Image<T>) -> Image<T> {{
    let (site, shape) = (Location::caller(), image.shape());
    image.attempt(shape, || Ok(record(image.session(), Op::from({camel}), &[image.handle()], shape, site)))
}}
'''


def whole(name, camel):
    names = {"name": name, "camel": camel, "upper": name.upper()}
    ops = "horus-plan/src/ops/mod.rs"
    written(f"horus-plan/src/ops/{name}.rs", PLAN.format(**names))
    sorted_in(ops, f"pub mod {name};\n")
    sorted_in(ops, f"pub use {name}::{camel};\n")
    inserted(ops, r"^            /// Counts in equal bins\.", f"            /// TODO: what it computes.\n            {camel}({camel}),\n")
    inserted(ops, r"^        histogram::DESCRIBED,", f"        {name}::DESCRIBED,\n")
    written(f"horus-cpu/src/whole/{name}.rs", CPU.format(**names))
    sorted_in("horus-cpu/src/whole/mod.rs", f"mod {name};\n")
    written(f"horus-testing/src/reference/{name}.rs", DEFINITION.format(**names))
    sorted_in("horus-testing/src/reference/mod.rs", f"pub mod {name};\n")
    written(f"horus-cuda/src/codegen/{name}.rs", CUDA.format(**names))
    sorted_in("horus-cuda/src/codegen/mod.rs", f"mod {name};\n")
    written(f"kernels/{name}.cuh", KERNEL.format(**names))
    added("kernels/src/lib.rs", f"/// `{name}.cuh`.\npub const {name.upper()}: &str = include_str!(\"../{name}.cuh\");\n")
    written(f"horus-core/src/image/{name}.rs", FUNCTION.format(**names))
    sorted_in("horus-core/src/image/mod.rs", f"mod {name};\n")
    sorted_in("horus-core/src/image/mod.rs", f"pub use {name}::{name};\n")
    inserted("horus-core/tests/conformance/printed.rs", r"^        Whole::Running\(unit\)", f"        Whole::{camel}(unit) => format!(\"{{unit:?}}\"),\n")
    print(
        """
It compiles; the example of its function fails, and so do `samples_of_whole_image_operations` of horus-core and `emulate` of horus-cuda. Left to do: each
TODO; a golden by SciPy or scikit-image (tests/goldens/regenerate.py, horus-core/tests/goldens); the page of operations
(cargo xtask pages); a line of CHANGELOG.md."""
    )


if __name__ == "__main__":
    kinds = {"pixel": pixel, "whole": whole}
    if len(sys.argv) != 3 or sys.argv[1] not in kinds or not re.fullmatch(r"[a-z][a-z0-9_]*", sys.argv[2]):
        sys.exit(__doc__.strip())
    name = sys.argv[2]
    kinds[sys.argv[1]](name, "".join(part.capitalize() for part in name.split("_")))
