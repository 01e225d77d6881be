//! The oracle: every operation straight from its definition, pixel by pixel.
//!
//! Nothing here is optimised or parallel. The oracle shares only definitions with backends: the
//! arithmetic of [`Pixel`], [`Border::map`](horus_base::shape::Border::map), the order of the taps
//! of a [`Filter`](horus_plan::ops::neighbourhood::Filter),
//! [`MedianSize::network`](horus_plan::ops::neighbourhood::MedianSize::network),
//! [`Affine::at`](horus_plan::ops::geometric::Affine::at) and the fixed order of
//! [`fold`](horus_plan::ops::reduce::fold). Every backend, on any number of ranks and threads, must
//! yield the bits of [`evaluate`] (except the sign and payload of NaN); `tests/goldens` checks
//! [`evaluate`] itself against scipy.

use horus_base::dtype::{Conversion, DType, Float, Pixel, Scalar, convert_pixel};
use horus_base::shape::{Axis, Shape};
use horus_plan::ir::graph::{Graph, Node, Op, Operand, ValueId};
use horus_plan::ops::components::Connectivity;
use horus_plan::ops::distance::{NearestOnLine, NearestPixel};
use horus_plan::ops::planes::PlaneMap;
use horus_plan::ops::{Components, Remap, Tiled, Whole};

pub mod components;
pub mod distance;
pub mod geometric;
pub mod kernel;
pub mod neighbourhood;
pub mod pixel;
pub mod reads;
pub mod reconstruction;
pub mod reduce;
pub mod sampling;
pub mod windowed;

mod image;
pub use image::Image;

/// The values of the graph's roots, in their order. `source` gives existing values.
///
/// # Panics
/// If the graph is malformed: inputs of the wrong number, type or size, or an operation whose
/// result has another shape or type than its node.
pub fn evaluate(graph: &Graph<Op>, source: &dyn Fn(ValueId) -> Image) -> Vec<Image> {
    let mut values: Vec<Image> = Vec::new();
    for (id, node) in graph.iter() {
        let inputs: Vec<&Image> = node.inputs.iter().map(|i| &values[i.0]).collect();
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

/// The value of one node from the values of its inputs. Interleaved channels are computed as planes.
fn apply(node: &Node<Op>, inputs: &[&Image], source: &dyn Fn(ValueId) -> Image) -> Image {
    let orders = matches!(&node.op, Op::Source(_) | Op::Whole(Whole::Deinterleave(_) | Whole::Interleave(_)));
    if node.shape.samples > 1 && !orders {
        let planes: Vec<Image> = inputs.iter().map(|image| deinterleaved(image)).collect();
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
                    Operand::Input(i) => pixel::ImageOrScalar::Image(inputs[*i]),
                    Operand::Const(c) => pixel::ImageOrScalar::Const(*c),
                })
                .collect();
            pixel::apply(*op, &operands)
        }
        Op::Convert(rule) => converted(inputs[0], node.dtype.stored(), *rule),
        Op::Planes(map) => planes(inputs[0], map, node.shape),
        Op::Correlate(filter, border) => neighbourhood::correlate(inputs[0], filter, *border),
        Op::Separable { row, column, border } => neighbourhood::separable(inputs[0], row, column, *border),
        Op::Order(filter, border) => neighbourhood::order(inputs[0], filter, *border),
        Op::Warp(map, interpolation, edge) => geometric::warp(inputs[0], node.shape, map, *interpolation, *edge),
        Op::Flip(flip) => geometric::flip(inputs[0], *flip),
        Op::Whole(operation) => apply_whole(operation, node, inputs),
    }
}

fn apply_whole(operation: &Whole, node: &Node<Op>, inputs: &[&Image]) -> Image {
    match operation {
        Whole::Lookup(_) => lookup(inputs[0], inputs[1]),
        Whole::Remap(Remap { sampling: how, border, outside }) => {
            sampling::remap(inputs[0], &inputs[1..], *how, *border, *outside)
        }
        Whole::Resize(how) => sampling::resize(inputs[0], how, node.shape),
        Whole::Merge(_) => merge(inputs, node.shape),
        Whole::Fourier(how) => neighbourhood::fourier(inputs[0], how),
        Whole::Windowed(how) => windowed::windowed(inputs[0], how, node.dtype.stored()),
        Whole::Transpose(_) => geometric::transpose(inputs[0]),
        Whole::Deinterleave(_) => deinterleaved(inputs[0]),
        Whole::Interleave(_) => interleaved(inputs[0]),
        Whole::MatrixProduct(_) => product(inputs[0], inputs[1], node.shape),
        Whole::RowReduce(how) => reduce::rows(inputs[0], *how, inputs.get(1).copied()),
        Whole::Running(_) => reduce::running(inputs[0]),
        Whole::RunningDepth(_) => reduce::running_depth(inputs[0]),
        Whole::Fold(how) => reduce::fold(inputs[0], *how),
        Whole::Labels(how) => reduce::labels(inputs[0], inputs.get(1).copied(), *how),
        Whole::Components(Components { neighbours: how }) => label(inputs[0], *how),
        Whole::Reconstruct(how) => reconstruction::reconstruct(inputs[0], inputs[1], *how),
        Whole::NearestOnLine(how) => nearest_on_line(inputs[0], *how),
        Whole::NearestPixel(how) => nearest(inputs[0], *how, node.dtype.stored()),
        Whole::Tiles(Tiled { grid, reduce: how }) => reduce::tiles(inputs[0], *grid, *how, node.shape),
        Whole::Histogram(how) => reduce::histogram(inputs[0], how.bins, how.lo(), how.hi()),
    }
}

/// Sample `c` of each pixel as the pixel of channel `c`.
pub fn deinterleaved(image: &Image) -> Image {
    let channels = image.shape.samples;
    horus_base::dispatch!(image.dtype(), T => Image::from_fn(image.shape.deinterleaved(), |plane, y, x| {
        image.at::<T>(plane / channels, y, x * channels + plane % channels)
    }))
}

/// The pixel of channel `c` as sample `c` of each pixel.
pub fn interleaved(image: &Image) -> Image {
    let channels = image.shape.channels;
    horus_base::dispatch!(image.dtype(), T => Image::from_fn(image.shape.interleaved(), |level, y, x| {
        image.at::<T>(level * channels + x % channels, y, x / channels)
    }))
}

/// A matrix product.
fn product(a: &Image, b: &Image, shape: Shape) -> Image {
    horus_base::dispatch_float!(a.dtype(), T => Image::from_fn(shape, |plane, y, x| {
        sum_of_products((0..a.shape.width).map(|k| [a.at::<T>(plane, y, k), b.at(plane, k, x)]))
    }))
}

/// A pixel of a matrix product, of the pairs of factors in order.
pub(crate) fn sum_of_products<T: Float>(factors: impl Iterator<Item = [T; 2]>) -> T {
    factors.fold(T::ZERO, |sum, [a, b]| a.fma(b, sum))
}

/// A constant image.
pub fn fill(shape: Shape, dtype: DType, value: Scalar) -> Image {
    horus_base::dispatch!(dtype, T => Image::from_fn(shape, |_, _, _| T::from_scalar(value)))
}

/// An image of the row, column, channel or level of each pixel.
pub fn index(shape: Shape, dtype: DType, axis: Axis) -> Image {
    horus_base::dispatch!(dtype, T => Image::from_fn(shape, |plane, y, x| {
        T::from_f64(match axis {
            Axis::Rows => y,
            Axis::Columns => x,
            Axis::Channels => plane % shape.channels,
            Axis::Depth => plane / shape.channels,
        } as f64)
    }))
}

/// Every pixel converted to another type; see [`convert_pixel`].
pub fn convert(image: &Image, dtype: DType) -> Image {
    converted(image, dtype, Conversion::Nearest)
}

fn converted(image: &Image, dtype: DType, rule: Conversion) -> Image {
    horus_base::dispatch!(dtype, D => {
        Image::from_fn(image.shape, |c, y, x| convert_pixel::<f64, D>(image.number(c, y, x), rule))
    })
}

/// Planes read through a map, as an image of shape `shape`.
pub fn planes(image: &Image, map: &PlaneMap, shape: Shape) -> Image {
    horus_base::dispatch!(image.dtype(), T => Image::from_fn(shape, |p, y, x| match map.at(p) {
        Some(plane) => image.at::<T>(plane, y, x),
        None => map.border.constant().map_or(T::ZERO, T::from_f64),
    }))
}

/// For each pixel, the entry of `table` at that index.
pub fn lookup(image: &Image, table: &Image) -> Image {
    let lowest = horus_base::dispatch!(image.dtype(), S => S::LOWEST.to_f64());
    let entry = |c, y, x| (image.number(c, y, x) - lowest) as usize;
    horus_base::dispatch!(table.dtype(), D => {
        Image::from_fn(image.shape, |c, y, x| table.at::<D>(0, 0, entry(c, y, x)))
    })
}

/// The connected components of the nonzero pixels of one channel.
pub fn label(image: &Image, how: Connectivity) -> Image {
    let Shape { depth, height, width, .. } = image.shape;
    let there: Vec<bool> = image.numbers().into_iter().map(|v| v != 0.0).collect();
    Image::new(image.shape, components::components(&there, [depth, height, width], how))
}

/// The offset of the nearest background pixel on each pixel's line.
pub fn nearest_on_line(image: &Image, how: NearestOnLine) -> Image {
    Image::from_fn(image.shape, |p, y, x| {
        let (line, at) = distance::line(image.shape, how.along, (p, y, x), |p, y, x| image.number(p, y, x) != 0.0);
        distance::nearest_on_line(&line, at)
    })
}

/// The nearest background pixel of each pixel, from offsets, as an image of type `dtype`.
pub fn nearest(offsets: &Image, how: NearestPixel, dtype: DType) -> Image {
    horus_base::dispatch!(dtype, T => Image::from_fn(offsets.shape, |p, y, x| {
        let (line, at) = distance::line(offsets.shape, how.along, (p, y, x), |p, y, x| offsets.at(p, y, x));
        T::from_scalar(distance::nearest(&line, at, how))
    }))
}

/// Images of one type, concatenated into an image of shape `shape`: along the channels if they have
/// its depth, else along the depth.
pub fn merge(images: &[&Image], shape: Shape) -> Image {
    let first = images[0];
    assert!(images.iter().all(|i| i.dtype() == first.dtype()), "merged images differ in type");
    let along = if images.iter().all(|i| i.shape.depth == shape.depth) { Axis::Channels } else { Axis::Depth };
    let total: usize = images.iter().map(|i| i.shape.extent(along)).sum();
    assert_eq!(first.shape.with_extent(along, total), shape, "merged images make up the result");
    horus_base::dispatch!(first.dtype(), T => Image::from_fn(shape, |p, y, x| {
        let (mut z, mut c) = (p / shape.channels, p % shape.channels);
        let mut rest = images.iter();
        loop {
            let image = rest.next().expect("the extents add up");
            assert_eq!(image.shape.with_extent(along, total), shape, "merged images have one extent");
            let (at, n) = (if along == Axis::Depth { &mut z } else { &mut c }, image.shape.extent(along));
            if *at < n {
                return image.at::<T>(z * image.shape.channels + c, y, x);
            }
            *at -= n;
        }
    }))
}
