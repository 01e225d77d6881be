//! Chains: inputs of filters as C++ types with the interface of an image in memory.
//!
//! A chain of pixel operations is evaluated at any row that its inputs have. A chain with shifts knows the rows of the
//! image: the borders of its shifts give pixels beyond the edges, and copies of rows stand for the rows of the image. A
//! GPU does not compute chains with filters ([`MapKernel::chains_filters`]).

use std::fmt::Write as _;

use horus_core::dtype::DType;
use horus_core::error::DeviceError;
use horus_core::ir::kernel::{FilterSource, Leaf, LeafOp, MapKernel, Val};

use super::super::cpp::{CppCall, Expr, Operator, Stmt, args, name, template, text};
use super::super::instructions::Instructions;
use super::super::params::KernelParams;
use super::super::planes::PlaneRead;
use super::super::{border_name, defect, vector};
use super::{MapGenerator, plane_of};

/// Vectors of 16 bytes that a thread computes at a time while it fills a tile, so that their reads overlap.
const AHEAD: usize = 4;

/// The template argument for `source`: a plane or a chain.
pub(super) fn source_name(source: FilterSource) -> Result<String, DeviceError> {
    match source {
        FilterSource::Input(i) => Ok(format!("in{i}")),
        FilterSource::Chain(c) => Ok(format!("chain{c}")),
        FilterSource::Stage(s) => Err(defect(format_args!("stage {s} is read as an image"))),
    }
}

/// An expression that is true at run time if the rows of `source` begin at multiples of 16 bytes.
pub(super) fn source_aligned(kernel: &MapKernel, source: FilterSource) -> Expr {
    match source {
        FilterSource::Chain(c) => {
            let parts = loaded(&kernel.chains[c]).map(|i| name(format_args!("p.aligned{i}")));
            // A chain of constants alone, or of shifts, reads no rows directly.
            parts.reduce(|a, b| a.with(Operator::And, b)).unwrap_or_else(|| name("true"))
        }
        FilterSource::Input(i) => name(format_args!("p.aligned{i}")),
        FilterSource::Stage(_) => name("false"),
    }
}

/// Parameter bytes of a chain's constants.
pub(super) fn constant_bytes(chain: &MapKernel) -> usize {
    let constants = chain.code.iter().flat_map(|i| &i.args).chain(&chain.result).filter(|v| matches!(v, Val::Const(_)));
    let reads = chain.leaves.iter().filter(|l| matches!(l.op, LeafOp::LoadPlane(..))).count();
    2 * size_of::<f64>() * (constants.count() + reads) + chain.chains.iter().map(constant_bytes).sum::<usize>()
}

/// The inputs that a chain reads pixel by pixel.
fn loaded(chain: &MapKernel) -> impl Iterator<Item = usize> {
    let mut all: Vec<usize> = chain
        .leaves
        .iter()
        .filter_map(|l| if let LeafOp::Load(i) | LeafOp::LoadPlane(i, _) = l.op { Some(i) } else { None })
        .collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter()
}

impl MapGenerator<'_> {
    /// Declares a variable for each chain; returns the definitions of their types.
    pub(super) fn declare_chains(&mut self, out: &mut Vec<Stmt>) -> Result<String, DeviceError> {
        let mut types = String::new();
        for (n, chain) in self.kernel.chains.iter().enumerate() {
            let value = self.declare_chain(chain, &n.to_string(), false, &mut types, out)?;
            out.push(Stmt::Let { ctype: format!("const hs_chain{n}"), name: format!("chain{n}"), value });
        }
        Ok(types)
    }

    /// Defines the type `hs_chain{label}` of a chain and returns its members. An `unrolled` chain, which has the rows
    /// of the image, finds them in its inputs.
    fn declare_chain(
        &mut self,
        chain: &MapKernel,
        label: &str,
        unrolled: bool,
        types: &mut String,
        out: &mut Vec<Stmt>,
    ) -> Result<Expr, DeviceError> {
        let plain = chain.is_pointwise();
        let dtype = chain.result_type();
        let (t, v) = (dtype.name(), vector(dtype));
        let mut planes = String::from(if chain.has_index() { "    int plane;\n" } else { "" });
        let mut given: Vec<Expr> = chain.has_index().then(|| name("plane")).into_iter().collect();
        // For each leaf, the value read beyond its planes.
        let mut outside = Vec::new();
        for (l, leaf) in chain.leaves.iter().enumerate() {
            let FilterSource::Input(i) = chain.image(leaf) else {
                outside.push(None);
                continue;
            };
            let read = match &leaf.op {
                LeafOp::LoadPlane(_, map) => {
                    PlaneRead::new(map, leaf.dtype, &format!("{label}_{l}"), &mut self.params, out)
                }
                _ => PlaneRead { plane: name("plane"), outside: None },
            };
            let _ = writeln!(planes, "    hs_plane<{}> q{l};", leaf.dtype.name());
            let mut members = plane_of(i, read.plane.clone());
            if read.outside.is_some() {
                let beyond = read.plane.clone().with(Operator::Less, 0);
                members[0] = beyond.choose("nullptr", members[0].clone());
            }
            given.push(Expr::Members(None, members));
            outside.push(read.outside);
        }
        for (c, within) in chain.chains.iter().enumerate() {
            let label = format!("{label}_{c}");
            given.push(self.declare_chain(within, &label, true, types, out)?);
            let _ = writeln!(planes, "    hs_chain{label} within{c};");
        }
        // Lines of a tile that a thread computes at a time.
        let ahead = if plain { AHEAD } else { 1 };
        let one = self.chain_body(chain, (1, 1), "at", plain, &outside)?;
        let mut many = self.chain_body(chain, (ahead, v), "y[r]", plain, &outside)?;
        let store = Stmt::Assign { to: name("to[r].v[c]"), value: Expr::Pixel(many.1) };
        many.0.push(Stmt::each_pixel((ahead, v), store));
        let place = if plain { "" } else { "    const int y[1] = {y0}, x[1] = {x0};\n" };
        let of = if plain { "int y, int x" } else { "int y0, int x0" };
        let _ = writeln!(
            types,
            "struct hs_chain{label} {{\n    int height, width, start, end;\n{planes}    const hs_params& p;\n    \
             static constexpr int AHEAD = {ahead};\n    \
             HS_FN_MEMBER {t} at({of}) const {{\n{place}{}    return {}[0][0];\n    }}\n    \
             HS_FN_MEMBER void vectors(const int (&y)[{ahead}], const int (&x)[{ahead}], bool aligned, hs_vec<{t}, {v}> (&to)[{ahead}]) const {{\n{}    }}\n}};",
            text(&one.0),
            one.1,
            text(&many.0),
        );
        self.cost += if plain { 0 } else { 8 * (v + 1) * chain.reads_per_pixel() };
        let mut members = args!["p.height", "p.width"];
        if plain && !unrolled {
            let bound = |f: &str, member: &str| {
                let parts = loaded(chain).map(|i| name(format_args!("p.{member}{i}")));
                parts.reduce(|a, b| CppCall::new(f, template![], vec![a, b]).into()).unwrap_or_else(|| name("0"))
            };
            members.extend([bound("min", "start"), bound("max", "end")]);
        } else {
            members.extend(args!["0", "p.height"]);
        }
        members.extend(given);
        members.push(name("p"));
        Ok(Expr::Members(None, members))
    }

    /// The code of a chain for so many lines and pixels of each, and the array of its result.
    fn chain_body(
        &mut self,
        chain: &MapKernel,
        extents: (usize, usize),
        row: &str,
        plain: bool,
        outside: &[Option<Expr>],
    ) -> Result<(Vec<Stmt>, String), DeviceError> {
        let mut reads = Vec::new();
        for (l, leaf) in chain.leaves.iter().enumerate() {
            reads.push(match &leaf.op {
                LeafOp::Load(_) | LeafOp::LoadPlane(..) => {
                    let read = if row == "at" {
                        let place = if plain { "y))[x" } else { "y[0]))[x[0]" };
                        let value = name(format_args!("q{l}.row(hs_held(q{l}, {place}]"));
                        Stmt::Assign { to: name(format_args!("l{l}[0][0]")), value }
                    } else {
                        let args = args![format!("q{l}"), "y", "x", "aligned", format!("l{l}")];
                        CppCall::new("hs_load_lines", template![], args).into()
                    };
                    vec![where_held(l, extents, outside[l].as_ref(), read)]
                }
                LeafOp::Warp(_, map, ..) => {
                    let [rows, cols] =
                        map.broadcast().ok_or_else(|| defect(format_args!("leaf {l} of a chain is turned")))?;
                    let (y, x) = (if rows { "0" } else { "y[r]" }, if cols { "0" } else { "x[r] + c" });
                    let value = name(format_args!("q{l}.row(hs_held(q{l}, {y}))[{x}]"));
                    vec![Stmt::fill(extents, &format!("l{l}"), value)]
                }
                _ => self.chain_shift(chain, leaf, l, extents)?,
            });
        }
        let place = match (row, plain) {
            ("at", true) => (name("y"), name("x")),
            _ => (name("y[r]"), name("x[r]") + "c"),
        };
        body(chain, &mut self.params, extents, place, |l| reads[l].clone())
    }

    /// The pixels that a shift reads.
    fn chain_shift(
        &mut self,
        chain: &MapKernel,
        leaf: &Leaf,
        l: usize,
        extents: (usize, usize),
    ) -> Result<Vec<Stmt>, DeviceError> {
        let LeafOp::Shift(_, [dy, dx], border) = leaf.op else {
            return Err(defect(format_args!("leaf {l} of a chain is neither a pixel nor a shift")));
        };
        let image = match chain.image(leaf) {
            FilterSource::Input(_) => name(format_args!("hs_unrolled<{}>(q{l})", leaf.dtype.name())),
            FilterSource::Chain(c) => name(format_args!("within{c}")),
            FilterSource::Stage(s) => return Err(defect(format_args!("stage {s} is read as an image"))),
        };
        let value = self.border_value(border, leaf.dtype);
        let template = template![border_name(border), extents.0, extents.1];
        let args = args![image, "y", "x", dy.to_string(), dx.to_string(), value, format!("l{l}")];
        Ok(vec![CppCall::new("hs_shifted", template, args).into()])
    }
}

/// `read` if leaf `l` of a chain has a plane; else the constant.
fn where_held(l: usize, extents: (usize, usize), outside: Option<&Expr>, read: Stmt) -> Stmt {
    let Some(value) = outside else { return read };
    let condition = name(format_args!("q{l}.data")).with(Operator::Equal, "nullptr");
    let then = vec![Stmt::fill(extents, &format!("l{l}"), value.clone())];
    Stmt::If { condition, then, otherwise: vec![read] }
}

/// The code of a chain for so many rows and columns of pixels, and the array of its result. `read` returns the
/// statements that read a leaf; `row` and `column` are the position of pixel `[r][c]`.
fn body(
    chain: &MapKernel,
    params: &mut KernelParams,
    (rows, cols): (usize, usize),
    (row, column): (Expr, Expr),
    read: impl Fn(usize) -> Vec<Stmt>,
) -> Result<(Vec<Stmt>, String), DeviceError> {
    let mut out = Vec::new();
    let mut code = Instructions::new(chain, rows, cols).at(row, column);
    for (l, leaf) in chain.leaves.iter().enumerate() {
        out.push(Stmt::Array { dtype: leaf.dtype, name: format!("l{l}"), extents: vec![rows, cols] });
        out.extend(read(l));
        code.define(l, &format!("l{l}"));
    }
    let lazy = vec![false; chain.leaves.len()];
    code.advance(&mut out, params, &lazy)?;
    let dtype: DType = chain.result_type();
    let result = code.result(&mut out, params, dtype)?;
    Ok((out, result))
}
