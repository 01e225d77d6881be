//! The oracle: every operation by its definition, pixel by pixel, neither optimised nor parallel.
//!
//! Every backend, on any number of ranks and threads, must yield the bits of [`evaluate`] (except the sign and payload
//! of NaN); `tests/goldens` checks [`evaluate`] against SciPy. The oracle shares only definitions with backends: the
//! arithmetic of [`Pixel`], [`Border::map`](horus_base::shape::Border::map), the order of the taps of a
//! [`Filter`](horus_plan::ops::neighbourhood::Filter),
//! [`MedianSize::network`](horus_plan::ops::neighbourhood::MedianSize::network),
//! [`Affine::at`](horus_plan::ops::geometric::Affine::at) and the fixed order of
//! [`fold`](horus_plan::ops::reduce::fold).

use horus_base::dtype::{Conversion, DType, Pixel, Scalar, convert_pixel};
use horus_base::shape::{Axis, Shape, Window};
use horus_host::device::Geometry;
use horus_plan::ir::graph::{Graph, Node, Op, PixelOpOperand, ValueId};
use horus_plan::ops::Whole;
use horus_plan::ops::planes::PlaneMap;
use horus_plan::{implementation, whole_operations};

pub mod components;
pub mod distance;
pub mod geometric;
pub mod kernel;
mod layout;
pub mod neighbourhood;
pub mod pixel;
pub mod reads;
pub mod reconstruction;
pub mod reduce;
pub mod sampling;
pub mod thin;
pub mod windowed;

mod image;
pub use image::ReferenceImage;
pub use layout::{deinterleaved, interleaved, merge};

/// The values of the graph's roots, in their order. `source` returns existing values.
///
/// # Panics
/// If the graph is malformed: inputs of the wrong number, type or size, or an operation whose
/// result has another shape or type than its node.
pub fn evaluate(graph: &Graph<Op>, source: &dyn Fn(ValueId) -> ReferenceImage) -> Vec<ReferenceImage> {
    let mut values: Vec<ReferenceImage> = Vec::new();
    for (id, node) in graph.iter() {
        let inputs: Vec<&ReferenceImage> = node.inputs.iter().map(|i| &values[i.0]).collect();
        let value = apply(node, &inputs, source);
        assert_eq!(
            (value.shape, value.dtype()),
            (node.shape, node.dtype.stored()),
            "{id} = {} (recorded at {}) yields another shape or type than it was recorded with",
            node.op.name(),
            node.site
        );
        values.push(value);
    }
    graph.roots.iter().map(|r| values[r.0].clone()).collect()
}

/// The value of one node, from the values of its inputs. Interleaved channels are computed as planes.
fn apply(node: &Node<Op>, inputs: &[&ReferenceImage], source: &dyn Fn(ValueId) -> ReferenceImage) -> ReferenceImage {
    let orders = matches!(&node.op, Op::Source(_) | Op::Whole(Whole::Deinterleave(_) | Whole::Interleave(_)));
    if node.shape.samples > 1 && !orders {
        let planes: Vec<ReferenceImage> = inputs.iter().map(|image| deinterleaved(image)).collect();
        let node = Node { shape: node.shape.deinterleaved(), ..node.clone() };
        return interleaved(&apply(&node, &planes.iter().collect::<Vec<_>>(), source));
    }
    match &node.op {
        Op::Source(id) => source(*id),
        Op::Fill(value) => fill(node.shape, node.dtype.stored(), *value),
        Op::Index(axis) => index(node.shape, node.dtype.stored(), *axis),
        Op::Pixel(op, operands) => {
            let operands: Vec<pixel::ImageOrScalar<'_>> = operands
                .iter()
                .map(|operand| match operand {
                    PixelOpOperand::Input(i) => pixel::ImageOrScalar::Image(inputs[*i]),
                    PixelOpOperand::Const(c) => pixel::ImageOrScalar::Const(*c),
                })
                .collect();
            pixel::apply(*op, &operands)
        }
        Op::Convert(rule) => converted(inputs[0], node.dtype.stored(), *rule),
        Op::Planes(map) => planes(inputs[0], map, node.shape),
        Op::Correlate(filter, border) => neighbourhood::correlate(inputs[0], filter, *border),
        Op::Separable { row, column, border } => neighbourhood::separable(inputs[0], row, column, *border),
        Op::OrderFilter(filter, border) => neighbourhood::order(inputs[0], filter, *border),
        Op::Warp(map, interpolation, edge) => geometric::warp(inputs[0], node.shape, map, *interpolation, *edge),
        Op::Flip(flip) => geometric::flip(inputs[0], *flip),
        Op::Whole(operation) => definition(operation).of_images(inputs, (node.shape, node.dtype.stored())),
    }
}

use kernel::HostImage;

/// The definition of an operation on whole images.
pub(crate) trait OperationDefinition {
    /// Its result, of this shape and type, from images.
    fn of_images(&self, inputs: &[&ReferenceImage], result: (Shape, DType)) -> ReferenceImage;

    /// The requested rows of its result, from the images of a launch. Samples are channels: `out` is the geometry
    /// without samples.
    fn of_launch(&self, inputs: &[HostImage], output: &mut HostImage, out: Geometry, rows: Window);
}

/// The definition of an operation.
fn definition(operation: &Whole) -> &dyn OperationDefinition {
    whole_operations!(implementation operation as OperationDefinition)
}

/// A constant image.
pub fn fill(shape: Shape, dtype: DType, value: Scalar) -> ReferenceImage {
    horus_base::dispatch!(dtype, T => ReferenceImage::from_fn(shape, |_, _, _| T::from_scalar(value)))
}

/// An image of the row, column, channel or level of each pixel.
pub fn index(shape: Shape, dtype: DType, axis: Axis) -> ReferenceImage {
    horus_base::dispatch!(dtype, T => ReferenceImage::from_fn(shape, |plane, y, x| {
        T::from_f64(match axis {
            Axis::Rows => y,
            Axis::Columns => x,
            Axis::Channels => plane % shape.channels,
            Axis::Depth => plane / shape.channels,
        } as f64)
    }))
}

/// Every pixel converted to another type; see [`convert_pixel`].
pub fn convert(image: &ReferenceImage, dtype: DType) -> ReferenceImage {
    converted(image, dtype, Conversion::Nearest)
}

fn converted(image: &ReferenceImage, dtype: DType, rule: Conversion) -> ReferenceImage {
    horus_base::dispatch!(dtype, D => {
        ReferenceImage::from_fn(image.shape, |c, y, x| convert_pixel::<f64, D>(image.number(c, y, x), rule))
    })
}

/// Planes read through a map, as an image of shape `shape`.
pub fn planes(image: &ReferenceImage, map: &PlaneMap, shape: Shape) -> ReferenceImage {
    horus_base::dispatch!(image.dtype(), T => ReferenceImage::from_fn(shape, |p, y, x| match map.at(p) {
        Some(plane) => image.at::<T>(plane, y, x),
        None => map.border.constant().map_or(T::ZERO, T::from_f64),
    }))
}
