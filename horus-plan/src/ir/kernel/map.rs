//! Expressions per pixel: what [`Kernel::Map`](super::Kernel::Map) consists of.

use std::fmt;

use crate::ops::geometric::{Affine, Flip, Interpolation};
use crate::ops::neighbourhood::{Filter, Generalized, MedianSize};
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
    /// Where the pixel is along an axis of the image, as a number of this type; of a copy beyond the image, where it was copied
    /// from.
    Index(Axis, DType),
}

/// What an instruction does.
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
    /// What it does.
    pub op: InstrOp,
    /// Type of the operands (of the two choices, for `Select`).
    pub operand: DType,
    /// Type of the result.
    pub result: DType,
    /// The operands: as many as the operation has.
    pub args: Vec<Val>,
}

/// What a filter reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The kernel's input of this index.
    Input(usize),
    /// The result of a chain of the same kernel.
    Chain(usize),
    /// The result of a row pass of the same kernel.
    Stage(usize),
}

/// A row filter whose result is read by column filters of the same kernel only, so that it is never stored whole.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stage {
    /// What it reads: an input or a chain.
    pub source: Source,
    /// A dense filter of one row.
    pub filter: Filter,
    /// For this pass.
    pub border: Border,
}

/// How a leaf reads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LeafOp {
    /// The pixel itself.
    Load(usize),
    /// The pixel itself in another plane of an input, or a constant in planes beyond it.
    LoadPlane(usize, PlaneMap),
    /// Response of a linear filter. Over a [`Source::Stage`] the filter is a dense one of one column.
    Correlate(Source, Filter, Border),
    /// The pixel so many rows further down and columns further right.
    Shift(Source, [isize; 2], Border),
    /// Generalized convolution.
    Generalized(usize, Generalized, Border),
    /// Median.
    Median(usize, MedianSize, Border),
    /// Sample of an affine map.
    Warp(usize, Affine, Interpolation, Border),
    /// Pixel of the mirror image.
    Flip(usize, Flip),
}

/// A leaf: how it reads, and the type it yields (the type of the input it reads).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Leaf {
    /// How it reads.
    pub op: LeafOp,
    /// What it yields.
    pub dtype: DType,
}

/// An expression per pixel. Instructions come in an order in which operands come first.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct MapKernel {
    /// Number of inputs.
    pub inputs: usize,
    /// Expressions whose results filters and shifts read, evaluated around the pixels that are computed and never stored
    /// whole. The inputs of each are those of this kernel. Each result is an image of its own: beyond its edges there is what the
    /// border of its reader says. [`MapKernel::chain_fault`] tells what cannot be a chain.
    pub chains: Vec<MapKernel>,
    /// Whether a device evaluates chains anew for each tap that reads them, where it would otherwise evaluate them once for each
    /// pixel of a tile. A processor keeps rows in either case.
    pub per_pixel: bool,
    /// Row passes that leaves read.
    pub stages: Vec<Stage>,
    /// Reads of the inputs.
    pub leaves: Vec<Leaf>,
    /// Pixel operations.
    pub code: Vec<Instr>,
    /// The value that is stored; `None` only in an unfinished kernel.
    pub result: Option<Val>,
    /// Values that are stored beside it, each in an image of its own of the same extent: only in a [`join`](MapKernel::join) of
    /// several kernels.
    pub more: Vec<Val>,
}

impl Leaf {
    /// What the leaf reads.
    pub fn source(&self) -> Source {
        match self.op {
            LeafOp::Load(i)
            | LeafOp::LoadPlane(i, _)
            | LeafOp::Generalized(i, ..)
            | LeafOp::Median(i, ..)
            | LeafOp::Warp(i, ..)
            | LeafOp::Flip(i, _) => Source::Input(i),
            LeafOp::Correlate(source, ..) | LeafOp::Shift(source, ..) => source,
        }
    }

    /// Whether the leaf repeats a row, a column or a pixel: what it reads is small beside what is computed.
    pub fn repeats(&self) -> bool {
        matches!(&self.op, LeafOp::Warp(_, map, Interpolation::Nearest, _) if map.repeats())
    }

    /// Changes which kernel input the leaf reads (stages and chains are not touched).
    pub fn map_input(&mut self, f: impl Fn(usize) -> usize) {
        match &mut self.op {
            LeafOp::Load(i)
            | LeafOp::LoadPlane(i, _)
            | LeafOp::Generalized(i, ..)
            | LeafOp::Median(i, ..)
            | LeafOp::Warp(i, ..)
            | LeafOp::Flip(i, _)
            | LeafOp::Shift(Source::Input(i), ..)
            | LeafOp::Correlate(Source::Input(i), ..) => *i = f(*i),
            LeafOp::Correlate(Source::Stage(_) | Source::Chain(_), ..)
            | LeafOp::Shift(Source::Stage(_) | Source::Chain(_), ..) => {}
        }
    }
}

impl MapKernel {
    /// What a leaf reads, or the stage that it reads: an input or a chain.
    pub fn image(&self, leaf: &Leaf) -> Source {
        match leaf.source() {
            Source::Stage(s) => self.stages[s].source,
            image => image,
        }
    }

    /// Whether a leaf reads input `i`, itself or through stages and chains.
    pub fn reads(&self, leaf: &Leaf, i: usize) -> bool {
        match self.image(leaf) {
            Source::Chain(c) => self.chains[c].reads_input(i),
            image => image == Source::Input(i),
        }
    }

    /// Whether any leaf reads input `i`, itself or through stages and chains.
    pub fn reads_input(&self, i: usize) -> bool {
        self.leaves.iter().any(|l| self.reads(l, i))
    }

    /// The type of the value that is stored.
    pub fn result_type(&self) -> DType {
        self.result.map_or(DType::F32, |v| self.type_of(v))
    }

    /// The type of a value.
    pub fn type_of(&self, value: Val) -> DType {
        match value {
            Val::Leaf(l) => self.leaves[l].dtype,
            Val::Instr(i) => self.code[i].result,
            Val::Const(s) => s.dtype(),
            Val::Index(_, dtype) => dtype,
        }
    }

    /// All values that are stored.
    pub fn results(&self) -> impl DoubleEndedIterator<Item = Val> + '_ {
        self.result.iter().chain(&self.more).copied()
    }

    /// Whether a value is where the pixel is.
    pub fn has_index(&self) -> bool {
        let values = self.code.iter().flat_map(|i| i.args.iter().copied()).chain(self.results());
        values.into_iter().any(|v| matches!(v, Val::Index(..))) || self.chains.iter().any(MapKernel::has_index)
    }

    /// Whether every leaf reads just the pixel itself.
    pub fn is_pointwise(&self) -> bool {
        self.leaves.iter().all(|l| matches!(l.op, LeafOp::Load(_) | LeafOp::LoadPlane(..)))
    }
}

impl fmt::Display for MapKernel {
    /// What the kernel does, in the order of evaluation, repetitions counted: `row 1x19 + 6 correlate 19x1 + absdiv ...`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let chains = self.chains.iter().map(|c| format!("({c})"));
        let stages = self.stages.iter().map(|s| format!("row {}", s.filter));
        let leaves = self.leaves.iter().filter_map(|l| match &l.op {
            LeafOp::Load(_) => None,
            LeafOp::LoadPlane(_, map) => Some(map.to_string()),
            LeafOp::Correlate(_, k, _) => Some(format!("correlate {k}")),
            LeafOp::Shift(_, [y, x], _) => Some(format!("shift {y},{x}")),
            LeafOp::Generalized(_, g, _) => Some(format!("{:?}/{:?} {}", g.combine, g.reduce, g.window).to_lowercase()),
            LeafOp::Median(_, s, _) => Some(format!("median {0}x{0}", 2 * s.radius() + 1)),
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
