//! Alike steps of a kernel as a loop: less code to compile, and little enough for the caches of instructions.
//!
//! A detector filters with pair after pair of filters, does the same arithmetic with each, and keeps the largest. Such a
//! step is groups of leaves and the instructions that follow them; a [`Run`] is steps that differ in their filters and
//! constants only, each of which reads the result of the one before. It becomes one loop: a body per size of filter, and
//! the arithmetic once.

use std::fmt::Write as _;
use std::mem::{replace, take};

use horus_core::dtype::DType;
use horus_core::error::DeviceError;
use horus_core::kernel::{InstrOp, LeafOp, MapKernel, Val};
use horus_core::ops::neighbourhood::Layout;
use horus_core::shape::Border;

use super::expr::{Code, each_pixel};
use super::map::Map;
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
    carried: (usize, usize),
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
enum From {
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
type Filters = (How, usize, DType, Option<(usize, Border)>);
/// What an instruction does, with which types, on what.
type Instr = (InstrOp, DType, DType, Vec<From>);

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
            Val::Const(_) => From::Constant,
            Val::Leaf(l) => members
                .iter()
                .enumerate()
                .find_map(|(j, g)| g.leaves.iter().position(|&k| k == l).map(|at| From::Leaf(j, at)))
                .unwrap_or(From::Outer(*v)),
            Val::Instr(i) => match step.code.iter().position(|&k| k == i) {
                Some(at) => From::Own(at),
                None if before == Some(i) => From::Before,
                None => From::Outer(*v),
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
        let mut before = args.filter(|&(i, j)| second.code[i].3[j] == From::Before);
        let (carried, None) = (before.next()?, before.next()) else { return None };
        // Before the first step there is some value that exists by then.
        let start = first.code.get(carried.0)?.3.get(carried.1)?;
        if matches!(start, From::Own(_) | From::Leaf(..)) {
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

/// What the loop needs to know of a group in each step, as members of the parameters.
#[derive(Default)]
struct Varying {
    /// Which body is run.
    case: Vec<i32>,
    /// Where the pixels begin, in elements of shared memory.
    from: Vec<i32>,
    /// Where the taps begin.
    taps: Vec<i32>,
    /// Taps of a column.
    size: Vec<i32>,
}

impl Map<'_> {
    /// Emits a run as a loop.
    pub(super) fn rolled(&mut self, run: &Run, code: &mut Code<'_>) -> Result<(), DeviceError> {
        let Block { rows, cols, .. } = self.block;
        let kernel = self.kernel;
        let steps = &run.steps;
        let id = steps[0].groups.start;
        let (Some(&last), Some(&end)) = (steps[0].code.last(), steps[steps.len() - 1].code.last()) else {
            return Ok(());
        };
        // What the first step reads from memory, the others read too, or the loop begins with it.
        for &arg in steps[0].code.iter().flat_map(|&i| &kernel.code[i].args) {
            if let Val::Leaf(l) = arg
                && self.schedule.lazy[l]
                && !code.is_defined(l)
            {
                let array = self.read(l)?;
                code.define(l, &array);
            }
        }
        let result = kernel.code[last].result;
        let carry = format!("carry{id}");
        let start = kernel.code[steps[0].code[run.carried.0]].args[run.carried.1];
        let start = code.value(start, result, &mut self.params);
        let _ = writeln!(self.body, "    {} {carry}[{rows}][{cols}];", result.name());
        each_pixel(&mut self.body, rows, cols, &format!("{carry}[r][c] = {start};"));
        let _ = writeln!(self.body, "#pragma unroll 1\n    for (int k = 0; k < {}; ++k) {{", steps.len());
        for j in 0..steps[0].groups.len() {
            let array = format!("a{}", id + j);
            let groups: Vec<Group> = steps.iter().map(|s| self.schedule.groups[s.groups.start + j].clone()).collect();
            let step = self.step(groups[0].leaves[0]);
            let _ = writeln!(
                self.body,
                "    {} {array}[{}][{rows}][{cols}];\n    hs_start<{step}>({array});",
                kernel.leaves[groups[0].leaves[0]].dtype.name(),
                groups[0].leaves.len(),
            );
            self.filters(&groups, &array, id + j);
            for (g, &l) in groups[0].leaves.iter().enumerate() {
                code.define(l, &format!("{array}[{g}]"));
            }
        }
        let before = format!("{carry}[r][c]");
        for at in 0..steps[0].code.len() {
            let alike: Vec<usize> = steps.iter().map(|s| s.code[at]).collect();
            let carried = (at == run.carried.0).then_some((run.carried.1, &*before));
            code.emit(&mut self.body, &mut self.params, &alike, carried, (rows, cols));
        }
        each_pixel(&mut self.body, rows, cols, &format!("{before} = v{last}[r][c];"));
        self.body.push_str("    }\n");
        steps.iter().flat_map(|s| &s.code).for_each(|&i| code.finish(i));
        code.rename(end, &carry);
        Ok(())
    }

    /// One group of each step: what it needs in shared memory, then the body for its size.
    fn filters(&mut self, groups: &[Group], array: &str, id: usize) {
        let mut bodies: Vec<(String, String)> = Vec::new();
        let mut fills = Vec::new();
        let mut varying = Varying::default();
        for group in groups {
            let before = take(&mut self.body);
            let (key, [from, taps, size]) = match group.how {
                How::Column(slot) => self.column_step(group, slot),
                _ => self.dense_step(group),
            };
            fills.push(replace(&mut self.body, before));
            let case = bodies.iter().position(|b| b.0 == key).unwrap_or_else(|| {
                let before = take(&mut self.body);
                match group.how {
                    How::Column(slot) => self.column_body(group, slot, array, id),
                    _ => self.dense_body(group, array, id),
                }
                let body = replace(&mut self.body, before);
                bodies.push((key, body));
                bodies.len() - 1
            });
            varying.case.push(case as i32);
            varying.from.push(from as i32);
            varying.taps.push(taps as i32);
            varying.size.push(size as i32);
        }
        let cases = |out: &mut String, over: &str, bodies: &mut dyn Iterator<Item = (usize, &str)>| {
            let mut text = String::new();
            for (n, body) in bodies.filter(|b| !b.1.is_empty()) {
                let _ = writeln!(text, "    case {n}: {{\n{body}    }} break;");
            }
            if !text.is_empty() {
                let _ = writeln!(out, "    switch ({over}) {{\n{text}    default: break;\n    }}");
            }
        };
        cases(&mut self.body, "k", &mut fills.iter().map(String::as_str).enumerate());
        if let [(_, body)] = &bodies[..] {
            self.body.push_str(body);
        } else {
            let over = self.params.ints(&format!("case{id}"), &varying.case);
            cases(&mut self.body, &format!("{over}[k]"), &mut bodies.iter().map(|b| b.1.as_str()).enumerate());
        }
        self.params.ints(&format!("from{id}"), &varying.from);
        self.params.ints(&format!("taps{id}"), &varying.taps);
        self.params.ints(&format!("size{id}"), &varying.size);
    }

    /// Sees to the stage that a group of column filters reads; which body it needs, and where its pixels and its taps
    /// begin, in elements, and how many taps it has.
    fn column_step(&mut self, group: &Group, slot: usize) -> (String, [usize; 3]) {
        let at = self.schedule.slots[slot];
        self.stage(slot, at);
        let l = group.leaves[0];
        let size = self.kernel.leaves[l].dtype.size();
        let Layout::Dense { height, anchor_y, .. } = *self.filter(l).layout() else { return Default::default() };
        let from = at.at / size + (at.up - anchor_y) * at.pitch;
        let rows = self.block.rows;
        let body = if height < rows { format!("{height} taps") } else { format!("remainder {}", height % rows) };
        (format!("{body} {}", at.pitch), [from, self.column_taps[l].unwrap_or(0) / size, height])
    }

    fn column_body(&mut self, group: &Group, slot: usize, array: &str, id: usize) {
        let at = self.schedule.slots[slot];
        let l = group.leaves[0];
        let dtype = self.kernel.leaves[l].dtype;
        let height = self.filter(l).taps().len();
        let Block { rows, cols, .. } = self.block;
        let count = group.leaves.len();
        let pixels = format!("{} + p.from{id}[k]", self.thread_tile(dtype, self.kept, at.pitch, 0));
        let taps = format!("{} + p.taps{id}[k]", self.at(dtype, 0));
        let (t, pitch) = (dtype.name(), at.pitch);
        let _ = if height < rows {
            writeln!(
                self.body,
                "    hs_column<{t}, {height}, {rows}, {cols}, {count}, {pitch}, false>({pixels}, {taps}, {array});"
            )
        } else {
            let rest = height % rows;
            writeln!(
                self.body,
                "    hs_column_looped<{t}, {rest}, {rows}, {cols}, {count}, {pitch}>({pixels}, {taps}, p.size{id}[k], p.size{id}[k] / {rows} - 1, {array});"
            )
        };
    }

    /// As [`Map::column_step`] for a tile; the taps begin at this byte of the table.
    fn dense_step(&mut self, group: &Group) -> (String, [usize; 3]) {
        let l = group.leaves[0];
        let How::Dense(tile) = group.how else { return Default::default() };
        let Some((input, _, border)) = window(&self.kernel.leaves[l]) else { return Default::default() };
        let dtype = self.kernel.leaves[l].dtype;
        self.load_tile(input, border, tile, dtype);
        let (pitch, taps) = self.dense_taps(group);
        let Layout::Dense { width, .. } = *self.filter(l).layout() else { return Default::default() };
        let at = self.table.rows(dtype, width, pitch, &taps);
        (format!("{:?}", self.filter(l).layout()), [0, at, 0])
    }

    fn dense_body(&mut self, group: &Group, array: &str, id: usize) {
        let How::Dense(tile) = group.how else { return };
        let dtype = self.kernel.leaves[group.leaves[0]].dtype;
        let from = format!("reinterpret_cast<const {}*>(p.table + p.taps{id}[k])", dtype.name());
        self.looped_dense(group, tile, array, &from);
    }
}

#[cfg(test)]
mod tests {
    use horus_core::device::Geometry;
    use horus_core::dtype::{DType, Scalar};
    use horus_core::kernel::{Instr, InstrOp, Kernel, Val};
    use horus_core::ops::pixel::PixelOp;
    use horus_core::shape::{Shape, Window};

    use crate::codegen::{Limits, Shapes, generate};
    use crate::conformance::{conv2d, convrot};
    use crate::tuning::lookup;

    /// How often each loop of the kernel runs, and how many divisions there are.
    fn loops(kernel: Kernel) -> (Vec<usize>, usize) {
        let shape = Shape::new(100, 100, 1);
        let image = Geometry { shape, dtype: DType::F32, window: Window::whole(100) };
        let tuning = crate::tuning::Tuning { group: 2, unroll: 0, ..lookup(&kernel, DType::F32, 90) };
        let shapes = Shapes { inputs: &[image], output: image, rows: image.window };
        let source = generate(&kernel, &shapes, &tuning, Limits { shared: 227 << 10 }).unwrap().source;
        let body = &source[source.find("hs_kernel(").unwrap()..];
        let counts = body.split("for (int k = 0; k < ").skip(1);
        (counts.map(|s| s[..s.find(';').unwrap()].parse().unwrap()).collect(), body.matches("hs_division").count())
    }

    fn changed(mut kernel: Kernel, change: impl FnOnce(&mut Vec<Instr>, &mut Option<Val>)) -> Kernel {
        if let Kernel::Map(m) = &mut kernel {
            change(&mut m.code, &mut m.result);
        }
        kernel
    }

    #[test]
    fn pairs_of_filters_become_one_loop() {
        assert_eq!(loops(convrot(3, 43, false)), (vec![9], 1));
        assert_eq!(loops(convrot(2, 11, true)), (vec![4], 1));
        assert_eq!(loops(conv2d(9, 19)), (vec![9], 1));
        assert!(loops(conv2d(2, 19)).0.is_empty(), "two steps stay as they are");
        assert_eq!(loops(conv2d(40, 5)).0, [32, 8], "a loop is not endless");
    }

    #[test]
    fn what_is_read_elsewhere_or_differs_stays() {
        let f = DType::F32;
        let max = |args| Instr { op: InstrOp::Pixel(PixelOp::Max), operand: f, result: f, args };
        // Every step is a division, a product, a maximum: the product of the fifth is read at the end, too.
        let read = changed(conv2d(9, 5), |code, result| {
            code.push(max(vec![Val::Instr(26), Val::Instr(13)]));
            *result = Some(Val::Instr(27));
        });
        assert_eq!(loops(read), (vec![4, 3], 4), "nor is the last step like the others: more follows it");
        let other = changed(conv2d(9, 5), |code, _| code[12].op = InstrOp::Pixel(PixelOp::Div));
        assert_eq!(loops(other).0, [4, 4]);
        // The maximum of the fifth step is read by the last as its own, too: nothing hands it on.
        let skips = changed(conv2d(9, 5), |code, _| code[26].args[1] = Val::Instr(14));
        assert_eq!(loops(skips).0, [5], "and two steps remain after it");
        let zero = changed(conv2d(9, 5), |code, _| code[2].args[0] = Val::Const(Scalar::F32(-0.0)));
        assert_eq!(loops(zero).0, [9], "what comes before the first step may be anything");
    }
}
