//! Expressions per pixel: the contents of [`Kernel::Map`](super::Kernel::Map).

use std::fmt;

use crate::ops::edge::WarpEdge;
use crate::ops::geometric::{Affine, Flip, Interpolation};
use crate::ops::neighbourhood::{Filter, OrderFilter};
use crate::ops::pixel::PixelOp;
use crate::ops::planes::PlaneMap;
use horus_base::dtype::{Conversion, DType, Scalar};
use horus_base::shape::{Axis, Border};

/// A value inside a [`MapKernel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Val {
    /// The leaf of this index.
    Leaf(usize),
    /// The result of the instruction of this index.
    Instr(usize),
    /// A constant.
    Const(Scalar),
    /// The coordinate of the pixel along an axis of the image, in this type. For a copy beyond the image, the
    /// coordinate of the original.
    Index(Axis, DType),
}

/// Operation of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InstrOp {
    /// A pixel operation on operands of type [`Instr::operand`].
    Pixel(PixelOp),
    /// Conversion from [`Instr::operand`] to [`Instr::result`].
    Convert(Conversion),
}

/// One instruction of a [`MapKernel`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Instr {
    /// Operation.
    pub op: InstrOp,
    /// Type of the operands (for `Select`, of the two choices).
    pub operand: DType,
    /// Type of the result.
    pub result: DType,
    /// The operands, as many as the operation's arity.
    pub args: Vec<Val>,
}

/// The source that a filter reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FilterSource {
    /// The kernel's input of this index.
    Input(usize),
    /// The result of a chain of the same kernel.
    Chain(usize),
    /// The result of a row filter of the same kernel.
    Stage(usize),
}

/// A row filter whose result only column filters of the same kernel read, so that it is never stored whole.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RowFilterStage {
    /// The source: an input or a chain.
    pub source: FilterSource,
    /// A dense filter of one row.
    pub filter: Filter,
    /// Border mode of this filter.
    pub border: Border,
}

/// The read operation of a leaf.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LeafOp {
    /// The pixel itself.
    Load(usize),
    /// The pixel at the same position in another plane of an input, or a constant beyond its planes. For an
    /// input whose pixels have several samples, planes are counted as if each channel had a plane: see
    /// [`MapKernel::reads_samples`].
    LoadPlane(usize, PlaneMap),
    /// The response of a linear filter. Over a [`FilterSource::Stage`] it is a dense filter of one column.
    Correlate(FilterSource, Filter, Border),
    /// The pixel at an offset (rows down, columns right).
    Shift(FilterSource, [isize; 2], Border),
    /// A generalized convolution or a median.
    OrderFilter(usize, OrderFilter, Border),
    /// A sample of an affine map.
    Warp(usize, Affine, Interpolation, WarpEdge),
    /// The pixel of the mirror image.
    Flip(usize, Flip),
}

/// Kinds of reads beyond the pixel itself. Filters of one kind are computed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterKind {
    /// Linear filters and shifts.
    Linear,
    /// Medians and generalized convolutions.
    OrderFilter,
    /// Affine maps and mirrors.
    Geometric,
}

/// A leaf: its read operation and its type. The type is that of the input, except for linear samples, whose
/// type may be wider: see [`Leaf::reads_type`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Leaf {
    /// Read operation.
    pub op: LeafOp,
    /// Result type.
    pub dtype: DType,
}

/// An expression per pixel. Instructions are in topological order.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct MapKernel {
    /// Number of inputs.
    pub inputs: usize,
    /// Expressions that filters and shifts read, evaluated around the computed pixels and never stored whole.
    /// They share the kernel's inputs. Each result is an image of its own: the border mode of its reader
    /// applies beyond its edges. [`MapKernel::chain_fault`] gives the limits of chains.
    pub chains: Vec<MapKernel>,
    /// Row filters that leaves read.
    pub stages: Vec<RowFilterStage>,
    /// Reads of inputs.
    pub leaves: Vec<Leaf>,
    /// Pixel operations.
    pub code: Vec<Instr>,
    /// The stored value; `None` only in an unfinished kernel.
    pub result: Option<Val>,
    /// Further stored values, each in an image of its own of the same shape. Only a [`join`](MapKernel::join)
    /// of several kernels has them.
    pub additional_results: Vec<Val>,
    /// Set if the stored values are the samples of the pixels of one image, in this order, instead of images
    /// of their own. Only for kernels that [may read samples](MapKernel::reads_samples), which are computed
    /// as for an image of one sample.
    pub woven: bool,
}

impl Leaf {
    /// The source of the leaf.
    pub fn source(&self) -> FilterSource {
        match self.op {
            LeafOp::Load(i)
            | LeafOp::LoadPlane(i, _)
            | LeafOp::OrderFilter(i, ..)
            | LeafOp::Warp(i, ..)
            | LeafOp::Flip(i, _) => FilterSource::Input(i),
            LeafOp::Correlate(source, ..) | LeafOp::Shift(source, ..) => source,
        }
    }

    /// Returns `true` if the leaf can read an image of this type: its own type or, for a leaf that
    /// interpolates in floats, integers that floats represent exactly. These are converted first.
    pub fn reads_type(&self, of: DType) -> bool {
        let narrow = of.is_narrow() && of != DType::I8 && self.dtype.is_float();
        of == self.dtype || (narrow && matches!(self.op, LeafOp::Warp(_, _, Interpolation::Bilinear, _)))
    }

    /// The source, the offset (rows down, columns right) and the border mode of a leaf that reads a pixel at
    /// a fixed offset.
    pub fn at_offset(&self) -> Option<(FilterSource, [isize; 2], Border)> {
        match self.op {
            LeafOp::Shift(source, by, border) => Some((source, by, border)),
            LeafOp::Warp(i, map, Interpolation::Nearest, WarpEdge::Border(border)) => {
                Some((FilterSource::Input(i), map.shift()?, border))
            }
            _ => None,
        }
    }

    /// Returns `true` if the leaf broadcasts a row, a column or a pixel, so that its input is small relative
    /// to the output.
    pub fn repeats(&self) -> bool {
        matches!(&self.op, LeafOp::Warp(_, map, Interpolation::Nearest, _) if map.repeats())
    }

    /// The rows down of each read row, and the border mode, of a leaf that broadcasts a column.
    pub(super) fn repeated_column(&self) -> Option<(isize, Border)> {
        match &self.op {
            // A periodic warp does not read copies of rows beyond the image.
            LeafOp::Warp(_, map, Interpolation::Nearest, WarpEdge::Border(border)) if *border != Border::Wrap => {
                Some((map.repeated_column()?, *border))
            }
            _ => None,
        }
    }

    /// The kind of the leaf's filter; `None` for a leaf that reads the pixel itself or
    /// [broadcasts](Leaf::repeats) a few pixels.
    pub(crate) fn filter_kind(&self) -> Option<FilterKind> {
        match &self.op {
            LeafOp::Load(_) | LeafOp::LoadPlane(..) => None,
            LeafOp::Warp(..) if self.repeats() => None,
            LeafOp::Correlate(..) | LeafOp::Shift(..) => Some(FilterKind::Linear),
            LeafOp::OrderFilter(..) => Some(FilterKind::OrderFilter),
            LeafOp::Warp(..) | LeafOp::Flip(..) => Some(FilterKind::Geometric),
        }
    }

    /// Renumbers the kernel input of the leaf; stages and chains are unchanged.
    pub fn map_input(&mut self, f: impl Fn(usize) -> usize) {
        match &mut self.op {
            LeafOp::Load(i)
            | LeafOp::LoadPlane(i, _)
            | LeafOp::OrderFilter(i, ..)
            | LeafOp::Warp(i, ..)
            | LeafOp::Flip(i, _)
            | LeafOp::Shift(FilterSource::Input(i), ..)
            | LeafOp::Correlate(FilterSource::Input(i), ..) => *i = f(*i),
            LeafOp::Correlate(FilterSource::Stage(_) | FilterSource::Chain(_), ..)
            | LeafOp::Shift(FilterSource::Stage(_) | FilterSource::Chain(_), ..) => {}
        }
    }
}

impl MapKernel {
    /// The input or chain that a leaf reads, possibly through a stage.
    pub fn image(&self, leaf: &Leaf) -> FilterSource {
        match leaf.source() {
            FilterSource::Stage(s) => self.stages[s].source,
            image => image,
        }
    }

    /// Returns `true` if a leaf reads input `i`, directly or through stages and chains.
    pub fn reads(&self, leaf: &Leaf, i: usize) -> bool {
        match self.image(leaf) {
            FilterSource::Chain(c) => self.chains[c].reads_input(i),
            image => image == FilterSource::Input(i),
        }
    }

    /// Returns `true` if any leaf reads input `i`, directly or through stages and chains.
    pub(crate) fn reads_input(&self, i: usize) -> bool {
        self.leaves.iter().any(|l| self.reads(l, i))
    }

    /// Type of the stored value.
    pub fn result_type(&self) -> DType {
        self.result.map_or(DType::F32, |v| self.type_of(v))
    }

    /// Type of a value.
    pub fn type_of(&self, value: Val) -> DType {
        match value {
            Val::Leaf(l) => self.leaves[l].dtype,
            Val::Instr(i) => self.code[i].result,
            Val::Const(s) => s.dtype(),
            Val::Index(_, dtype) => dtype,
        }
    }

    /// All stored values.
    pub fn results(&self) -> impl DoubleEndedIterator<Item = Val> + '_ {
        self.result.iter().chain(&self.additional_results).copied()
    }

    /// Returns `true` if a value depends on the pixel's coordinates.
    pub fn has_index(&self) -> bool {
        let values = self.code.iter().flat_map(|i| i.args.iter().copied()).chain(self.results());
        values.into_iter().any(|v| matches!(v, Val::Index(..))) || self.chains.iter().any(MapKernel::has_index)
    }

    /// Number of images stored in addition to the first.
    pub fn further(&self) -> usize {
        if self.woven { 0 } else { self.additional_results.len() }
    }

    /// Returns `true` if leaves that read [planes](LeafOp::LoadPlane) may read single samples of interleaved
    /// pixels: the kernel has pixel operations only.
    pub fn reads_samples(&self) -> bool {
        self.is_pointwise() && self.chains.is_empty() && self.stages.is_empty() && !self.has_index()
    }

    /// Returns `true` if the kernel can be computed on pixels of several samples: see
    /// [`Op::knows_samples`](crate::ir::graph::Op::knows_samples). A [woven](MapKernel::woven) kernel makes
    /// such an image.
    pub fn knows_samples(&self) -> bool {
        if self.woven {
            return self.reads_samples();
        }
        let leaf = |l: &Leaf| match &l.op {
            LeafOp::Load(_) | LeafOp::Correlate(..) | LeafOp::Shift(..) | LeafOp::Warp(..) | LeafOp::Flip(..) => true,
            LeafOp::OrderFilter(_, filter, _) => filter.knows_samples(),
            LeafOp::LoadPlane(..) => false,
        };
        let is_index = |v: &Val| matches!(v, Val::Index(..));
        let mut values = self.code.iter().flat_map(|i| &i.args).chain(&self.result).chain(&self.additional_results);
        self.leaves.iter().all(leaf) && !values.any(is_index) && self.chains.iter().all(MapKernel::knows_samples)
    }

    /// Returns `true` if every leaf reads only the pixel itself.
    pub fn is_pointwise(&self) -> bool {
        self.leaves.iter().all(|l| matches!(l.op, LeafOp::Load(_) | LeafOp::LoadPlane(..)))
    }
}

impl fmt::Display for MapKernel {
    /// Writes the operations in evaluation order, with repetitions counted: `row 1x19 + 6 correlate 19x1 +
    /// absdiv ...`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let chains = self.chains.iter().map(|c| format!("({c})"));
        let stages = self.stages.iter().map(|s| format!("row {}", s.filter));
        let leaves = self.leaves.iter().filter_map(|l| match &l.op {
            LeafOp::Load(_) => None,
            LeafOp::LoadPlane(_, map) => Some(map.to_string()),
            LeafOp::Correlate(_, k, _) => Some(format!("correlate {k}")),
            LeafOp::Shift(_, [y, x], _) => Some(format!("shift {y},{x}")),
            LeafOp::OrderFilter(_, filter, _) => Some(filter.to_string()),
            LeafOp::Warp(_, _, i, _) => Some(format!("warp {i:?}").to_lowercase()),
            LeafOp::Flip(_, x) => Some(format!("flip {x:?}").to_lowercase()),
        });
        let code = self.code.iter().map(|i| match i.op {
            InstrOp::Pixel(op) => op.to_string(),
            InstrOp::Convert(Conversion::Nearest) => format!("to {}", i.result),
            InstrOp::Convert(Conversion::Cast) => format!("cast to {}", i.result),
        });
        let mut parts: Vec<(String, usize)> = Vec::new();
        for part in chains.chain(stages).chain(leaves).chain(code) {
            match parts.iter_mut().find(|(p, _)| *p == part) {
                Some((_, n)) => *n += 1,
                None => parts.push((part, 1)),
            }
        }
        if parts.is_empty() {
            return match self.result {
                Some(Val::Const(c)) => write!(f, "fill {c}"),
                Some(Val::Index(axis, _)) => write!(f, "index {axis}"),
                _ => f.write_str("copy"),
            };
        }
        let text: Vec<String> = parts.into_iter().map(|(p, n)| if n == 1 { p } else { format!("{n}x {p}") }).collect();
        f.write_str(&text.join(" + "))
    }
}
