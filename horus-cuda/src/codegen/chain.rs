//! Chains: pixel operations that filters read, as C++ types that answer for pixels like an image in memory does.

use std::fmt::Write as _;

use horus_core::error::DeviceError;
use horus_core::ir::kernel::{LeafOp, MapKernel, Source, Val};

use super::expr::{Code, each_pixel};
use super::map::Map;
use super::params::Params;
use super::vector;

/// Vectors of 16 bytes that a thread computes at a time while it fills a tile: their reads are in flight together.
const AHEAD: usize = 4;

/// What templates that read `source` are given: a plane or a chain.
pub(super) fn source_name(source: Source) -> String {
    match source {
        Source::Input(i) => format!("in{i}"),
        Source::Chain(c) => format!("chain{c}"),
        Source::Stage(s) => format!("stage_{s}_is_no_image"),
    }
}

/// Whether rows of what `source` reads begin at multiples of 16 bytes.
pub(super) fn source_aligned(kernel: &MapKernel, source: Source) -> String {
    match source {
        Source::Chain(c) => {
            let parts: Vec<String> = inputs(&kernel.chains[c]).map(|i| format!("p.aligned{i}")).collect();
            format!("({})", parts.join(" && "))
        }
        Source::Input(i) => format!("p.aligned{i}"),
        Source::Stage(_) => "false".into(),
    }
}

/// Bytes of parameters that the constants of a chain take.
pub(super) fn constant_bytes(chain: &MapKernel) -> usize {
    let constants = chain.code.iter().flat_map(|i| &i.args).chain(&chain.result).filter(|v| matches!(v, Val::Const(_)));
    2 * size_of::<f64>() * constants.count()
}

/// The inputs that a chain reads.
fn inputs(chain: &MapKernel) -> impl Iterator<Item = usize> {
    let mut all: Vec<usize> =
        chain.leaves.iter().filter_map(|l| if let Source::Input(i) = l.source() { Some(i) } else { None }).collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter()
}

impl Map<'_> {
    /// Defines the type of each chain and a variable of that type.
    pub(super) fn declare_chains(&mut self) -> Result<(), DeviceError> {
        for (n, chain) in self.kernel.chains.iter().enumerate() {
            let dtype = chain.result_type();
            let (t, v) = (dtype.name(), vector(dtype));
            let mut planes = String::new();
            let mut given = Vec::new();
            for (l, leaf) in chain.leaves.iter().enumerate() {
                let Source::Input(i) = leaf.source() else { continue };
                let u = leaf.dtype.name();
                let plane = match leaf.op {
                    LeafOp::LoadChannel(_, c) => {
                        self.params.int(&format!("channel{n}_{l}"), c.cast_signed());
                        format!("p.channel{n}_{l}")
                    }
                    _ => "plane".into(),
                };
                let _ = writeln!(planes, "    hs_plane<{u}> q{l};");
                given
                    .push(format!("{{p.in{i} + {plane} * p.plane{i}, p.height{i}, p.width{i}, p.start{i}, p.end{i}}}"));
            }
            let bound = |f: &str, member: &str| {
                let parts = inputs(chain).map(|i| format!("p.{member}{i}"));
                parts.reduce(|a, b| format!("{f}({a}, {b})")).unwrap_or_else(|| "0".into())
            };
            let first = inputs(chain).next().unwrap_or(0);
            let one = body(chain, &mut self.params, 1, 1, |l, u| {
                format!("    {u} l{l}[1][1];\n    l{l}[0][0] = q{l}.row(hs_held(q{l}, y))[x];\n")
            })?;
            let many = body(chain, &mut self.params, AHEAD, v, |l, u| {
                format!("    {u} l{l}[{AHEAD}][{v}];\n    hs_load_lines(q{l}, y, x, aligned, l{l});\n")
            })?;
            let mut stored = String::new();
            each_pixel(&mut stored, AHEAD, v, &format!("to[r].v[c] = {}[r][c];", many.1));
            let _ = writeln!(
                self.types,
                "struct hs_chain{n} {{\n    int height, width, start, end;\n{planes}    const hs_params& p;\n    \
                 static constexpr int AHEAD = {AHEAD};\n    \
                 HS_FN_MEMBER {t} at(int y, int x) const {{\n{}    return {}[0][0];\n    }}\n    \
                 HS_FN_MEMBER void vectors(const int (&y)[{AHEAD}], const int (&x)[{AHEAD}], bool aligned, hs_vec<{t}, {v}> (&to)[{AHEAD}]) const {{\n{}{stored}    }}\n}};",
                one.0, one.1, many.0,
            );
            let _ = writeln!(
                self.body,
                "    const hs_chain{n} chain{n} = {{p.height{first}, p.width{first}, {}, {}, {}, p}};",
                bound("min", "start"),
                bound("max", "end"),
                given.join(", "),
            );
        }
        Ok(())
    }
}

/// The code of a chain for `rows` times `cols` pixels, and the array of its result. `read` gives the code that reads a
/// leaf of a type.
fn body(
    chain: &MapKernel,
    params: &mut Params,
    rows: usize,
    cols: usize,
    read: impl Fn(usize, &str) -> String,
) -> Result<(String, String), DeviceError> {
    let mut out = String::new();
    let mut code = Code::new(chain);
    for (l, leaf) in chain.leaves.iter().enumerate() {
        out.push_str(&read(l, leaf.dtype.name()));
        code.define(l, &format!("l{l}"));
    }
    let lazy = vec![false; chain.leaves.len()];
    code.advance(&mut out, params, rows, cols, &lazy, |l, _, _| {
        Err(DeviceError::Internal(format!("leaf {l} of a chain is read late")))
    })?;
    let result = code.result(&mut out, params, chain.result_type(), rows, cols);
    Ok((out, result))
}
