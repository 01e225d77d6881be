//! Similar parts of a kernel, which can be the iterations of a loop.
//!
//! A detector applies one pair of filters after the other, does the same arithmetic with each, and keeps the maximum.
//! Such an iteration is groups of leaves and the instructions that follow them. The iterations of a [`GroupLoop`]
//! differ in their filters and constants only; each reads the result of the previous one.

use horus_core::dtype::DType;
use horus_core::ir::kernel::{FilterSource, InstrOp, LeafOp, MapKernel, Val};
use horus_core::shape::Border;

use super::schedule::{LeafGroup, Method, ThreadBlock, window};

/// Fewer iterations than this do not become a loop.
const FEWEST: usize = 3;
/// Most iterations of a loop; their differences must fit the parameters of the kernel.
const MOST: usize = 32;

/// Groups, by number, and the instructions that can run after them.
#[derive(Clone, Debug)]
pub(super) struct Iteration {
    pub(super) groups: std::ops::Range<usize>,
    pub(super) code: Vec<usize>,
}

/// Similar iterations.
#[derive(Clone, Debug)]
pub(super) struct GroupLoop {
    pub(super) iterations: Vec<Iteration>,
    /// The instruction of an iteration that reads the result of the previous iteration, and the index of this operand.
    pub(super) loop_operand: (usize, usize),
}

impl GroupLoop {
    /// The groups of all iterations.
    pub(super) fn groups(&self) -> std::ops::Range<usize> {
        self.iterations[0].groups.start..self.iterations[self.iterations.len() - 1].groups.end
    }

    /// Multiply-adds per thread.
    pub(super) fn work(&self, kernel: &MapKernel, groups: &[LeafGroup], block: ThreadBlock) -> usize {
        let leaves = groups[self.groups()].iter().flat_map(|g| &g.leaves);
        let taps =
            leaves.map(|&l| if let LeafOp::Correlate(_, f, _) = &kernel.leaves[l].op { f.taps().len() } else { 0 });
        taps.sum::<usize>() * block.rows * block.cols
    }
}

/// The origin of an operand, relative to its iteration.
#[derive(Debug, PartialEq)]
enum OperandOrigin {
    /// This instruction of the iteration.
    Own(usize),
    /// This leaf of this group of the iteration.
    Leaf(usize, usize),
    Constant,
    /// The last instruction of the previous iteration.
    Before,
    /// A value from outside these iterations.
    Outer(Val),
}

/// The common properties of a loop's iterations.
#[derive(Debug, PartialEq)]
struct Likeness {
    groups: Vec<GroupForm>,
    code: Vec<InstrForm>,
}

/// A group's method, number and type of its leaves, and the input of its tile.
type GroupForm = (Method, usize, DType, Option<(FilterSource, Border)>);
/// An instruction's operation, types and operands.
type InstrForm = (InstrOp, DType, DType, Vec<OperandOrigin>);

struct GroupLoopFinder<'a> {
    kernel: &'a MapKernel,
    groups: &'a [LeafGroup],
    steps: &'a [Iteration],
    /// For each iteration, `true` if only its last result is read outside it.
    sealed: Vec<bool>,
    /// For each iteration, `true` if at most the next iteration reads this result.
    passed: Vec<bool>,
}

impl GroupLoopFinder<'_> {
    /// Finds for each iteration the results that are read outside it.
    fn trace(&mut self) {
        let (kernel, steps) = (self.kernel, self.steps);
        let mut of_instr = vec![None; kernel.code.len()];
        let mut of_leaf = vec![None; kernel.leaves.len()];
        for (s, step) in steps.iter().enumerate() {
            step.code.iter().for_each(|&i| of_instr[i] = Some(s));
            self.groups[step.groups.clone()].iter().flat_map(|g| &g.leaves).for_each(|&l| of_leaf[l] = Some(s));
        }
        (self.sealed, self.passed) = (vec![true; steps.len()], vec![true; steps.len()]);
        let of = &of_instr;
        let reads = kernel.code.iter().enumerate().flat_map(|(i, c)| c.args.iter().map(move |a| (of[i], *a)));
        // No iteration reads the results of the kernel.
        for (reader, value) in reads.chain(kernel.results().map(|v| (None, v))) {
            let (Val::Leaf(at) | Val::Instr(at)) = value else { continue };
            let Some(s) = (if matches!(value, Val::Leaf(_)) { of_leaf[at] } else { of_instr[at] }) else { continue };
            if reader == Some(s) {
                continue;
            }
            // Another iteration may read the last instruction only, and only the next one may.
            let is_last = matches!(value, Val::Instr(_)) && steps[s].code.last() == Some(&at);
            self.sealed[s] &= is_last;
            self.passed[s] &= matches!(value, Val::Leaf(_)) || reader == Some(s + 1);
        }
    }

    fn likeness(&self, s: usize) -> Option<Likeness> {
        let step = &self.steps[s];
        let members = &self.groups[step.groups.clone()];
        let before = s.checked_sub(1).and_then(|b| self.steps[b].code.last().copied());
        let mut groups = Vec::new();
        for group in members {
            let leaf = &self.kernel.leaves[group.leaves[0]];
            let (method, input) = match group.method {
                // The stage may differ.
                Method::Column(_) => (Method::Column(0), None),
                Method::Dense(tile) if matches!(leaf.op, LeafOp::Correlate(..)) => {
                    (Method::Dense(tile), window(leaf).map(|(input, _, border)| (input, border)))
                }
                _ => return None,
            };
            groups.push((method, group.leaves.len(), leaf.dtype, input));
        }
        let from = |v: &Val| match *v {
            Val::Const(_) => OperandOrigin::Constant,
            Val::Leaf(l) => members
                .iter()
                .enumerate()
                .find_map(|(j, g)| g.leaves.iter().position(|&k| k == l).map(|at| OperandOrigin::Leaf(j, at)))
                .unwrap_or(OperandOrigin::Outer(*v)),
            Val::Index(..) => OperandOrigin::Outer(*v),
            Val::Instr(i) => match step.code.iter().position(|&k| k == i) {
                Some(at) => OperandOrigin::Own(at),
                None if before == Some(i) => OperandOrigin::Before,
                None => OperandOrigin::Outer(*v),
            },
        };
        let code = step.code.iter().map(|&i| {
            let instr = &self.kernel.code[i];
            (instr.op, instr.operand, instr.result, instr.args.iter().map(from).collect())
        });
        Some(Likeness { groups, code: code.collect() })
    }

    /// The loop that begins at iteration `s`.
    fn loop_at(&self, s: usize) -> Option<GroupLoop> {
        let (first, second) = (self.likeness(s)?, self.likeness(s + 1)?);
        let args = second.code.iter().enumerate().flat_map(|(i, c)| (0..c.3.len()).map(move |j| (i, j)));
        let mut before = args.filter(|&(i, j)| second.code[i].3[j] == OperandOrigin::Before);
        let (carried, None) = (before.next()?, before.next()) else { return None };
        // A value for the first iteration must exist by then.
        let start = first.code.get(carried.0)?.3.get(carried.1)?;
        if matches!(start, OperandOrigin::Own(_) | OperandOrigin::Leaf(..)) {
            return None;
        }
        let instrs = |(i, (a, b)): (usize, (&InstrForm, &InstrForm))| {
            let args = a.3.iter().zip(&b.3).enumerate();
            (a.0, a.1, a.2) == (b.0, b.1, b.2) && args.into_iter().all(|(j, (x, y))| (i, j) == carried || x == y)
        };
        let same = first.groups == second.groups
            && first.code.len() == second.code.len()
            && first.code.iter().zip(&second.code).enumerate().all(instrs);
        let next = |t: usize| self.passed[t - 1] && self.sealed[t] && self.likeness(t).is_some_and(|l| l == second);
        if !same || !self.sealed[s] {
            return None;
        }
        let more = (s + 1..self.steps.len()).take(MOST - 1).take_while(|&t| next(t)).count();
        (more + 1 >= FEWEST).then(|| GroupLoop { iterations: self.steps[s..=s + more].to_vec(), loop_operand: carried })
    }
}

/// The loops among the iterations of a kernel; `sequence` has the instructions that run after each group.
pub(super) fn loops(kernel: &MapKernel, groups: &[LeafGroup], sequence: &[Vec<usize>]) -> Vec<GroupLoop> {
    let mut columns = groups.iter().filter(|g| matches!(g.method, Method::Column(_)));
    let dtype = |g: &LeafGroup| kernel.leaves[g.leaves[0]].dtype;
    // Shared memory has taps of one type only.
    let first = columns.next().map(dtype);
    if !columns.all(|g| Some(dtype(g)) == first) {
        return Vec::new();
    }
    let mut steps = Vec::new();
    let mut from = 0;
    for (g, code) in sequence.iter().enumerate().filter(|(_, code)| !code.is_empty()) {
        steps.push(Iteration { groups: from..g + 1, code: code.clone() });
        from = g + 1;
    }
    let mut finder = GroupLoopFinder { kernel, groups, steps: &steps, sealed: Vec::new(), passed: Vec::new() };
    finder.trace();
    let mut found: Vec<GroupLoop> = Vec::new();
    let mut s = 0;
    while s + 1 < steps.len() {
        let one = finder.loop_at(s);
        s += one.as_ref().map_or(1, |l| l.iterations.len());
        found.extend(one);
    }
    found
}
