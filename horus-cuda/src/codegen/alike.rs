//! Alike steps of a kernel.
//!
//! A detector filters with pair after pair of filters, does the same arithmetic with each, and keeps the largest. Such a
//! step is groups of leaves and the instructions that follow them; a [`Run`] is steps that differ in their filters and
//! constants only, each of which reads the result of the one before.

use horus_core::dtype::DType;
use horus_core::ir::kernel::{InstrOp, LeafOp, MapKernel, Source, Val};
use horus_core::shape::Border;

use super::schedule::{Block, Group, How, window};

/// Fewer steps than this stay as they are.
const FEWEST: usize = 3;
/// Steps of a loop: what differs between them has room in the parameters of the kernel.
const MOST: usize = 32;

/// Groups, by their numbers, and the instructions that can run after them.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) groups: std::ops::Range<usize>,
    pub(super) code: Vec<usize>,
}

/// Alike steps.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) steps: Vec<Step>,
    /// Of the instructions of a step, the one that reads the result of the step before, and as which operand.
    pub(super) carried: (usize, usize),
}

impl Run {
    /// The groups of all steps.
    pub(super) fn groups(&self) -> std::ops::Range<usize> {
        self.steps[0].groups.start..self.steps[self.steps.len() - 1].groups.end
    }

    /// Multiply-adds of a thread.
    pub(super) fn work(&self, kernel: &MapKernel, groups: &[Group], block: Block) -> usize {
        let leaves = groups[self.groups()].iter().flat_map(|g| &g.leaves);
        let taps =
            leaves.map(|&l| if let LeafOp::Correlate(_, f, _) = &kernel.leaves[l].op { f.taps().len() } else { 0 });
        taps.sum::<usize>() * block.rows * block.cols
    }
}

/// Where an operand comes from, as seen from its step.
#[derive(Debug, PartialEq)]
enum Operand {
    /// This instruction of the step.
    Own(usize),
    /// This leaf of this group of the step.
    Leaf(usize, usize),
    Constant,
    /// The last instruction of the step before.
    Before,
    /// Not of these steps.
    Outer(Val),
}

/// What steps of a run have in common.
#[derive(Debug, PartialEq)]
struct Likeness {
    groups: Vec<Filters>,
    code: Vec<Instr>,
}

/// How a group is computed, how many leaves of which type it has, and the tile of which input it reads.
type Filters = (How, usize, DType, Option<(Source, Border)>);
/// What an instruction does, with which types, on what.
type Instr = (InstrOp, DType, DType, Vec<Operand>);

struct Finder<'a> {
    kernel: &'a MapKernel,
    groups: &'a [Group],
    steps: &'a [Step],
    /// Whether only the last result of a step is read outside it.
    sealed: Vec<bool>,
    /// Whether that one is read in the next step at most.
    passed: Vec<bool>,
}

impl Finder<'_> {
    /// Says of each step what is read outside it.
    fn trace(&mut self) {
        let (kernel, steps) = (self.kernel, self.steps);
        let mut of_instr = vec![usize::MAX; kernel.code.len()];
        let mut of_leaf = vec![usize::MAX; kernel.leaves.len()];
        for (s, step) in steps.iter().enumerate() {
            step.code.iter().for_each(|&i| of_instr[i] = s);
            self.groups[step.groups.clone()].iter().flat_map(|g| &g.leaves).for_each(|&l| of_leaf[l] = s);
        }
        (self.sealed, self.passed) = (vec![true; steps.len()], vec![true; steps.len()]);
        let of = &of_instr;
        let reads = kernel.code.iter().enumerate().flat_map(|(i, c)| c.args.iter().map(move |a| (of[i], *a)));
        for (reader, value) in reads.chain(kernel.result.map(|v| (usize::MAX, v))) {
            match value {
                Val::Leaf(l) if of_leaf[l] != reader && of_leaf[l] != usize::MAX => self.sealed[of_leaf[l]] = false,
                Val::Instr(i) if of_instr[i] != reader && of_instr[i] != usize::MAX => {
                    let s = of_instr[i];
                    self.sealed[s] &= steps[s].code.last() == Some(&i);
                    self.passed[s] &= reader == s + 1;
                }
                _ => {}
            }
        }
    }

    fn likeness(&self, s: usize) -> Option<Likeness> {
        let step = &self.steps[s];
        let members = &self.groups[step.groups.clone()];
        let before = s.checked_sub(1).and_then(|b| self.steps[b].code.last().copied());
        let mut groups = Vec::new();
        for group in members {
            let leaf = &self.kernel.leaves[group.leaves[0]];
            let (how, input) = match group.how {
                // Which stage is read may differ.
                How::Column(_) => (How::Column(0), None),
                How::Dense(tile) if matches!(leaf.op, LeafOp::Correlate(..)) => {
                    (How::Dense(tile), window(leaf).map(|(input, _, border)| (input, border)))
                }
                _ => return None,
            };
            groups.push((how, group.leaves.len(), leaf.dtype, input));
        }
        let from = |v: &Val| match *v {
            Val::Const(_) => Operand::Constant,
            Val::Leaf(l) => members
                .iter()
                .enumerate()
                .find_map(|(j, g)| g.leaves.iter().position(|&k| k == l).map(|at| Operand::Leaf(j, at)))
                .unwrap_or(Operand::Outer(*v)),
            Val::Instr(i) => match step.code.iter().position(|&k| k == i) {
                Some(at) => Operand::Own(at),
                None if before == Some(i) => Operand::Before,
                None => Operand::Outer(*v),
            },
        };
        let code = step.code.iter().map(|&i| {
            let instr = &self.kernel.code[i];
            (instr.op, instr.operand, instr.result, instr.args.iter().map(from).collect())
        });
        Some(Likeness { groups, code: code.collect() })
    }

    /// The run that begins at step `s`.
    fn run(&self, s: usize) -> Option<Run> {
        let (first, second) = (self.likeness(s)?, self.likeness(s + 1)?);
        let args = second.code.iter().enumerate().flat_map(|(i, c)| (0..c.3.len()).map(move |j| (i, j)));
        let mut before = args.filter(|&(i, j)| second.code[i].3[j] == Operand::Before);
        let (carried, None) = (before.next()?, before.next()) else { return None };
        // Before the first step there is some value that exists by then.
        let start = first.code.get(carried.0)?.3.get(carried.1)?;
        if matches!(start, Operand::Own(_) | Operand::Leaf(..)) {
            return None;
        }
        let instrs = |(i, (a, b)): (usize, (&Instr, &Instr))| {
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
        (more + 1 >= FEWEST).then(|| Run { steps: self.steps[s..=s + more].to_vec(), carried })
    }
}

/// The runs among the steps of a kernel; `sequence` are the instructions that run after each group.
pub(super) fn runs(kernel: &MapKernel, groups: &[Group], sequence: &[Vec<usize>]) -> Vec<Run> {
    let mut columns = groups.iter().filter(|g| matches!(g.how, How::Column(_)));
    let dtype = |g: &Group| kernel.leaves[g.leaves[0]].dtype;
    // Taps of one type only are kept in shared memory.
    let first = columns.next().map(dtype);
    if !columns.all(|g| Some(dtype(g)) == first) {
        return Vec::new();
    }
    let mut steps = Vec::new();
    let mut from = 0;
    for (g, code) in sequence.iter().enumerate().filter(|(_, code)| !code.is_empty()) {
        steps.push(Step { groups: from..g + 1, code: code.clone() });
        from = g + 1;
    }
    let mut finder = Finder { kernel, groups, steps: &steps, sealed: Vec::new(), passed: Vec::new() };
    finder.trace();
    let mut found: Vec<Run> = Vec::new();
    let mut s = 0;
    while s + 1 < steps.len() {
        let run = finder.run(s);
        s += run.as_ref().map_or(1, |r| r.steps.len());
        found.extend(run);
    }
    found
}
