//! Alike steps of a kernel as a loop: less code to compile, and little enough for the caches of instructions. There is a
//! body per size of filter, and the arithmetic once.

use std::fmt::Write as _;
use std::mem::{replace, take};

use horus_core::error::DeviceError;
use horus_core::ir::kernel::Val;
use horus_core::ops::neighbourhood::Layout;

use super::alike::Run;
use super::cost;
use super::expr::{Code, each_pixel};
use super::map::Map;
use super::schedule::{Block, Group, How, window};
use super::stages::RowPass;

/// What a group needs in one step.
#[derive(Default)]
struct Need {
    /// Fills shared memory; nothing if what it needs is there already.
    fill: String,
    /// As `fill`, by a row pass.
    pass: Option<RowPass>,
    /// Tells the body that it needs.
    body: String,
    /// Where the pixels begin, in elements of shared memory; where the taps do, in elements or, for a tile, in bytes of the
    /// table; how many taps a column has.
    at: [usize; 3],
}

/// Bytes of the parameters that a group of a step takes.
pub(super) const NEED_BYTES: usize = 16;

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
        for (j, needs) in self.needs(run).into_iter().enumerate() {
            let array = format!("a{}", id + j);
            let groups: Vec<Group> = steps.iter().map(|s| self.schedule.groups[s.groups.start + j].clone()).collect();
            let step = self.step(groups[0].leaves[0]);
            let _ = writeln!(
                self.body,
                "    {} {array}[{}][{rows}][{cols}];\n    hs_start<{step}>({array});",
                kernel.leaves[groups[0].leaves[0]].dtype.name(),
                groups[0].leaves.len(),
            );
            self.filters(&groups, &needs, &array, id + j);
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

    /// What each group needs in each step. What is in shared memory by then depends on all that came before, so it is asked
    /// in the order in which the loop runs.
    fn needs(&mut self, run: &Run) -> Vec<Vec<Need>> {
        let mut needs: Vec<Vec<Need>> = run.steps[0].groups.clone().map(|_| Vec::new()).collect();
        for step in &run.steps {
            for (of_group, g) in needs.iter_mut().zip(step.groups.clone()) {
                let group = self.schedule.groups[g].clone();
                let before = take(&mut self.body);
                let need = match group.how {
                    How::Column(slot) => self.column_step(&group, slot),
                    _ => self.dense_step(&group),
                };
                of_group.push(Need { fill: replace(&mut self.body, before), ..need });
            }
        }
        needs
    }

    /// One group of each step: what it needs in shared memory, then the body for its size.
    fn filters(&mut self, groups: &[Group], needs: &[Need], array: &str, id: usize) {
        let mut bodies: Vec<(&str, String)> = Vec::new();
        let mut of_step = Vec::new();
        for (group, need) in groups.iter().zip(needs) {
            let known = bodies.iter().position(|b| b.0 == need.body);
            of_step.push(known.unwrap_or(bodies.len()) as i32);
            if known.is_none() {
                let before = take(&mut self.body);
                match group.how {
                    How::Column(slot) => {
                        let alike = groups.iter().zip(needs).filter(|(_, n)| n.body == need.body).map(|(g, _)| g);
                        let mut rests: Vec<usize> = alike.map(|g| self.remainder(g)).collect();
                        rests.sort_unstable();
                        rests.dedup();
                        self.column_body(group, slot, array, id, &rests);
                    }
                    _ => self.dense_body(group, array, id),
                }
                bodies.push((&need.body, replace(&mut self.body, before)));
            }
        }
        self.switch("k", needs.iter().map(|n| &*n.fill));
        let passes: Vec<_> = needs.iter().map(|n| n.pass.clone()).collect();
        self.stages_of_steps(&passes);
        if let [(_, body)] = &bodies[..] {
            self.body.push_str(body);
        } else {
            let over = self.params.ints(&format!("case{id}"), &of_step);
            self.switch(&format!("{over}[k]"), bodies.iter().map(|b| &*b.1));
        }
        for (i, name) in ["from", "taps", "size"].into_iter().enumerate() {
            let values: Vec<i32> = needs.iter().map(|n| n.at[i] as i32).collect();
            self.params.ints(&format!("{name}{id}"), &values);
        }
    }

    /// Runs the text of the number that `over` is, if there is any text.
    fn switch<'t>(&mut self, over: &str, texts: impl Iterator<Item = &'t str>) {
        let mut cases = String::new();
        for (n, text) in texts.enumerate().filter(|t| !t.1.is_empty()) {
            let _ = writeln!(cases, "    case {n}: {{\n{text}    }} break;");
        }
        if !cases.is_empty() {
            let _ = writeln!(self.body, "    switch ({over}) {{\n{cases}    default: break;\n    }}");
        }
    }

    /// Sees to the stage that a group of column filters reads.
    fn column_step(&mut self, group: &Group, slot: usize) -> Need {
        let at = self.schedule.slots[slot];
        let pass = self.row_pass(slot);
        let l = group.leaves[0];
        let size = self.kernel.leaves[l].dtype.size();
        let Layout::Dense { height, anchor_y, .. } = *self.filter(l).layout() else { return Need::default() };
        let from = at.at / size + (at.up - anchor_y) * at.pitch;
        let rows = self.block.rows;
        let body = if height < rows { format!("{height} taps") } else { "looped".into() };
        let at_taps = self.column_taps[l].unwrap_or(0) / size;
        Need { pass, body: format!("{body} {}", at.pitch), at: [from, at_taps, height], ..Need::default() }
    }

    /// Taps of a column that are left when they are taken as many at a time as a thread has rows.
    fn remainder(&self, group: &Group) -> usize {
        self.filter(group.leaves[0]).taps().len() % self.block.rows
    }

    /// A body for columns of fewer taps than a thread has rows, or for all of more that leave these remainders.
    fn column_body(&mut self, group: &Group, slot: usize, array: &str, id: usize, rests: &[usize]) {
        let at = self.schedule.slots[slot];
        let l = group.leaves[0];
        let dtype = self.kernel.leaves[l].dtype;
        let height = self.filter(l).taps().len();
        let Block { rows, cols, .. } = self.block;
        let count = group.leaves.len();
        self.cost += cost::column(self.block, count, height, height < rows, rests);
        let pixels = format!("{} + p.from{id}[k]", self.thread_tile(dtype, self.kept, at.pitch, 0));
        let taps = format!("{} + p.taps{id}[k]", self.at(dtype, 0));
        let (t, pitch) = (dtype.name(), at.pitch);
        let _ = if height < rows {
            writeln!(
                self.body,
                "    hs_column<{t}, {height}, {rows}, {cols}, {count}, {pitch}, false>({pixels}, {taps}, {array});"
            )
        } else {
            let rests: String = rests.iter().map(|r| format!(", {r}")).collect();
            writeln!(
                self.body,
                "    hs_column_looped<{t}, {rows}, {cols}, {count}, {pitch}{rests}>({pixels}, {taps}, p.size{id}[k], p.size{id}[k], {array});"
            )
        };
    }

    /// As [`Map::column_step`] for a tile.
    fn dense_step(&mut self, group: &Group) -> Need {
        let l = group.leaves[0];
        let How::Dense(tile) = group.how else { return Need::default() };
        let Some((input, _, border)) = window(&self.kernel.leaves[l]) else { return Need::default() };
        let dtype = self.kernel.leaves[l].dtype;
        self.load_tile(input, border, tile, dtype);
        let (pitch, taps) = self.dense_taps(group);
        let Layout::Dense { width, .. } = *self.filter(l).layout() else { return Need::default() };
        let at = self.table.rows(dtype, width, pitch, &taps);
        Need { body: format!("{:?}", self.filter(l).layout()), at: [0, at, 0], ..Need::default() }
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
    use horus_core::ir::kernel::{Instr, InstrOp, Kernel, Val};
    use horus_core::ops::pixel::PixelOp;
    use horus_core::shape::{Shape, Window};

    use crate::codegen::{Limits, Shapes, generate};
    use crate::tuning::lookup;
    use crate::workloads::{conv2d, convrot};

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
