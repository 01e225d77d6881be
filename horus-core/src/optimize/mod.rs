//! Graph passes: what turns a recorded program into kernels.
//!
//! A readable list of named passes, each a function from graph to graph. [`PASSES`] run on recorded operations,
//! [`lower`](lower::lower) turns operations into kernels, [`fuse`](fuse::fuse) merges kernels, [`absorb`](prologue::absorb)
//! moves pixel operations into the kernels whose filters read them.

pub mod cse;
pub mod fuse;
pub mod lower;
pub mod prologue;
pub mod separable;

use crate::ir::graph::{Graph, Op};
use crate::ir::kernel::Kernel;

/// A pass over recorded operations.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// Its name in dumps.
    pub name: &'static str,
    /// What it does.
    pub run: fn(Graph<Op>) -> Graph<Op>,
}

/// The passes over recorded operations, in order.
pub const PASSES: &[Pass] = &[
    Pass { name: "split separable filters", run: separable::split },
    Pass { name: "common subexpressions", run: cse::merge },
    Pass { name: "dead code", run: Graph::without_dead },
];

/// Runs all passes and lowers; without `fuse`, operations are lowered one by one as recorded. `dump` is given the name
/// and the text of the graph after each pass.
pub fn optimize(mut graph: Graph<Op>, fuse: bool, dump: &mut dyn FnMut(&str, &dyn std::fmt::Display)) -> Graph<Kernel> {
    dump("recorded", &graph);
    if !fuse {
        return lower::lower(graph.without_dead());
    }
    for pass in PASSES {
        graph = (pass.run)(graph);
        dump(pass.name, &graph);
    }
    let fused = fuse::fuse(&lower::lower(graph)).without_dead();
    dump("fused", &fused);
    let absorbed = prologue::absorb(fused).without_dead();
    dump("prologues", &absorbed);
    absorbed
}
