//! Chains: pixel operations that filters read, as C++ types that answer for pixels like an image in memory does.

use std::fmt::Write as _;

use horus_core::dtype::DType;
use horus_core::error::DeviceError;
use horus_core::ir::kernel::{LeafOp, MapKernel, Source, Val};

use super::super::cpp::{Call, Expr, Operator, Stmt, args, name, template, text};
use super::super::instructions::Instructions;
use super::super::params::KernelParams;
use super::super::planes::PlaneRead;
use super::super::{defect, vector};
use super::{MapGenerator, plane_of};

/// Vectors of 16 bytes that a thread computes at a time while it fills a tile: their reads are in flight together.
const AHEAD: usize = 4;

/// What templates that read `source` are given: a plane or a chain.
pub(super) fn source_name(source: Source) -> Result<String, DeviceError> {
    match source {
        Source::Input(i) => Ok(format!("in{i}")),
        Source::Chain(c) => Ok(format!("chain{c}")),
        Source::Stage(s) => Err(defect(format_args!("stage {s} is read as an image"))),
    }
}

/// Whether rows of what `source` reads begin at multiples of 16 bytes.
pub(super) fn source_aligned(kernel: &MapKernel, source: Source) -> Expr {
    match source {
        Source::Chain(c) => {
            let parts = inputs(&kernel.chains[c]).map(|i| name(format_args!("p.aligned{i}")));
            // A chain of constants alone reads no rows.
            parts.reduce(|a, b| a.with(Operator::And, b)).unwrap_or_else(|| name("true"))
        }
        Source::Input(i) => name(format_args!("p.aligned{i}")),
        Source::Stage(_) => name("false"),
    }
}

/// Bytes of parameters that the constants of a chain take.
pub(super) fn constant_bytes(chain: &MapKernel) -> usize {
    let constants = chain.code.iter().flat_map(|i| &i.args).chain(&chain.result).filter(|v| matches!(v, Val::Const(_)));
    let reads = chain.leaves.iter().filter(|l| matches!(l.op, LeafOp::LoadPlane(..))).count();
    2 * size_of::<f64>() * (constants.count() + reads)
}

/// The inputs that a chain reads.
fn inputs(chain: &MapKernel) -> impl Iterator<Item = usize> {
    let mut all: Vec<usize> =
        chain.leaves.iter().filter_map(|l| if let Source::Input(i) = l.source() { Some(i) } else { None }).collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter()
}

impl MapGenerator<'_> {
    /// Declares a variable for each chain; the definitions of their types.
    pub(super) fn declare_chains(&mut self, out: &mut Vec<Stmt>) -> Result<String, DeviceError> {
        let mut types = String::new();
        for (n, chain) in self.kernel.chains.iter().enumerate() {
            let dtype = chain.result_type();
            let (t, v) = (dtype.name(), vector(dtype));
            let mut planes = String::from(if chain.has_index() { "    int plane;\n" } else { "" });
            let mut given: Vec<Expr> = chain.has_index().then(|| name("plane")).into_iter().collect();
            // Of each leaf, what is read where it has no plane.
            let mut outside = Vec::new();
            for (l, leaf) in chain.leaves.iter().enumerate() {
                let Source::Input(i) = leaf.source() else {
                    return Err(defect("a chain reads pixels of no image"));
                };
                let read = match &leaf.op {
                    LeafOp::LoadPlane(_, map) => {
                        PlaneRead::new(map, leaf.dtype, &format!("{n}_{l}"), &mut self.params, out)
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
            let bound = |f: &str, member: &str| {
                let parts = inputs(chain).map(|i| name(format_args!("p.{member}{i}")));
                parts.reduce(|a, b| Call::new(f, template![], vec![a, b]).into()).unwrap_or_else(|| name("0"))
            };
            let first = inputs(chain).next().unwrap_or(0);
            let place = (name("y"), name("x"));
            let one = body(chain, &mut self.params, (1, 1), place, |l| {
                let value = name(format_args!("q{l}.row(hs_held(q{l}, y))[x]"));
                let read = Stmt::Assign { to: name(format_args!("l{l}[0][0]")), value };
                where_held(l, (1, 1), outside[l].as_ref(), read)
            })?;
            let place = (name("y[r]"), name("x[r]") + "c");
            let mut many = body(chain, &mut self.params, (AHEAD, v), place, |l| {
                let args = args![format!("q{l}"), "y", "x", "aligned", format!("l{l}")];
                let read = Call::new("hs_load_lines", template![], args).into();
                where_held(l, (AHEAD, v), outside[l].as_ref(), read)
            })?;
            let store = Stmt::Assign { to: name("to[r].v[c]"), value: Expr::Pixel(many.1) };
            many.0.push(Stmt::each_pixel((AHEAD, v), store));
            let _ = writeln!(
                types,
                "struct hs_chain{n} {{\n    int height, width, start, end;\n{planes}    const hs_params& p;\n    \
                 static constexpr int AHEAD = {AHEAD};\n    \
                 HS_FN_MEMBER {t} at(int y, int x) const {{\n{}    return {}[0][0];\n    }}\n    \
                 HS_FN_MEMBER void vectors(const int (&y)[{AHEAD}], const int (&x)[{AHEAD}], bool aligned, hs_vec<{t}, {v}> (&to)[{AHEAD}]) const {{\n{}    }}\n}};",
                text(&one.0),
                one.1,
                text(&many.0),
            );
            let mut members = args![format!("p.height{first}"), format!("p.width{first}")];
            members.extend([bound("min", "start"), bound("max", "end")]);
            members.extend(given);
            members.push(name("p"));
            out.push(Stmt::Let {
                ctype: format!("const hs_chain{n}"),
                name: format!("chain{n}"),
                value: Expr::Members(None, members),
            });
        }
        Ok(types)
    }
}

/// `read` where leaf `l` of a chain has a plane; else the constant.
fn where_held(l: usize, extents: (usize, usize), outside: Option<&Expr>, read: Stmt) -> Stmt {
    let Some(value) = outside else { return read };
    let condition = name(format_args!("q{l}.data")).with(Operator::Equal, "nullptr");
    let then = vec![Stmt::fill(extents, &format!("l{l}"), value.clone())];
    Stmt::If { condition, then, otherwise: vec![read] }
}

/// The code of a chain for so many rows and columns of pixels, and the array of its result. `read` gives the statement that
/// reads a leaf; `row` and `column` are where pixel `[r][c]` is.
fn body(
    chain: &MapKernel,
    params: &mut KernelParams,
    (rows, cols): (usize, usize),
    (row, column): (Expr, Expr),
    read: impl Fn(usize) -> Stmt,
) -> Result<(Vec<Stmt>, String), DeviceError> {
    let mut out = Vec::new();
    let mut code = Instructions::new(chain, rows, cols).at(row, column);
    for (l, leaf) in chain.leaves.iter().enumerate() {
        out.push(Stmt::Array { dtype: leaf.dtype, name: format!("l{l}"), extents: vec![rows, cols] });
        out.push(read(l));
        code.define(l, &format!("l{l}"));
    }
    let lazy = vec![false; chain.leaves.len()];
    code.advance(&mut out, params, &lazy)?;
    let dtype: DType = chain.result_type();
    let result = code.result(&mut out, params, dtype)?;
    Ok((out, result))
}
