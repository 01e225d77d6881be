//! Similar iterations of a kernel as a loop, which compiles faster and fits the instruction caches. The loop has one
//! body per filter size, and the arithmetic once.

use horus_core::error::DeviceError;
use horus_core::ir::kernel::Val;
use horus_core::ops::neighbourhood::FilterLayout;

use super::super::cpp::{CppCall, Expr, Stmt, args, name, pixel, template};
use super::super::instructions::{Instructions, Leaves};
use super::super::schedule::{InputTile, LeafGroup, Method, ThreadBlock, tap_pitch};
use super::super::similar::GroupLoop;
use super::super::{cost, defect};
use super::MapGenerator;
use super::row_passes::SlotRowFilter;

/// The body of a group; groups of one loop with equal bodies share it.
#[derive(Clone, Debug, PartialEq)]
enum GroupBody {
    /// Columns with fewer taps than a thread has rows, unrolled; the pitch of their stage.
    Column { taps: usize, pitch: usize },
    /// Columns with any larger number of taps; the pitch of their stage.
    LoopedColumn { pitch: usize },
    /// Dense filters of one size from one tile.
    Dense(FilterLayout),
}

/// The inputs of a group in one iteration.
#[derive(Debug)]
struct GroupInputs {
    /// Fills shared memory; empty if its content is valid.
    fill: Vec<Stmt>,
    /// The row filter that fills shared memory.
    pass: Option<SlotRowFilter>,
    body: GroupBody,
    /// First element of the pixels in shared memory; first element of the taps (for a tile, byte of the table); number
    /// of taps of a column.
    at: [usize; 3],
}

/// Parameter bytes of a group in one iteration.
pub(super) const NEED_BYTES: usize = 16;

impl MapGenerator<'_> {
    /// Emits a loop.
    pub(super) fn emit_loop(
        &mut self,
        found: &GroupLoop,
        code: &mut Instructions<'_>,
        out: &mut Vec<Stmt>,
    ) -> Result<(), DeviceError> {
        let extents = (self.block.rows, self.block.cols);
        let (kernel, schedule) = (self.kernel, self.schedule);
        let steps = &found.iterations;
        let id = steps[0].groups.start;
        let (Some(&last), Some(&end)) = (steps[0].code.last(), steps[steps.len() - 1].code.last()) else {
            return Err(defect("a loop computes nothing"));
        };
        // Leaves that the first iteration reads from memory are read by the others too, or are initial values of the
        // loop.
        for &arg in steps[0].code.iter().flat_map(|&i| &kernel.code[i].args) {
            if let Val::Leaf(l) = arg
                && schedule.lazy[l]
                && !code.is_defined(l)
            {
                let array = self.read(l, out)?;
                code.define(l, &array);
            }
        }
        let result = kernel.code[last].result;
        let carry = format!("carry{id}");
        let start = kernel.code[steps[0].code[found.loop_operand.0]].args[found.loop_operand.1];
        let start = code.value(start, result, &mut self.params)?.expr();
        out.push(Stmt::Array { dtype: result, name: carry.clone(), extents: vec![extents.0, extents.1] });
        out.push(Stmt::fill(extents, &carry, start));
        let mut body = Vec::new();
        for (j, needs) in self.group_inputs(found)?.iter().enumerate() {
            let array = format!("a{}", id + j);
            let groups: Vec<&LeafGroup> = steps.iter().map(|s| &schedule.groups[s.groups.start + j]).collect();
            self.declare_accumulators(groups[0], &array, &mut body);
            self.iterated(&groups, needs, &array, id + j, &mut body)?;
            for (g, &l) in groups[0].leaves.iter().enumerate() {
                code.define(l, &format!("{array}[{g}]"));
            }
        }
        for at in 0..steps[0].code.len() {
            let similar: Vec<usize> = steps.iter().map(|s| s.code[at]).collect();
            let carried = (at == found.loop_operand.0).then_some((found.loop_operand.1, &*carry));
            code.emit(&mut body, &mut self.params, &similar, carried)?;
        }
        body.push(Stmt::fill(extents, &carry, pixel(format_args!("v{last}"))));
        out.push(Stmt::iterations(steps.len(), 1, body));
        steps.iter().flat_map(|s| &s.code).for_each(|&i| code.finish(i));
        code.rename(end, &carry);
        Ok(())
    }

    /// The inputs of each group in each iteration, in execution order: the contents of shared memory depend on
    /// everything before.
    fn group_inputs(&mut self, found: &GroupLoop) -> Result<Vec<Vec<GroupInputs>>, DeviceError> {
        let mut needs: Vec<Vec<GroupInputs>> = found.iterations[0].groups.clone().map(|_| Vec::new()).collect();
        for step in &found.iterations {
            for (of_group, group) in needs.iter_mut().zip(&self.schedule.groups[step.groups.clone()]) {
                of_group.push(match group.method {
                    Method::Column(slot) => self.column_need(group, slot)?,
                    Method::Dense(tile) => self.dense_need(group, tile)?,
                    _ => return Err(defect("a loop computes neither columns nor tiles")),
                });
            }
        }
        Ok(needs)
    }

    /// One group of each iteration: fills shared memory, then runs the body for its size.
    fn iterated(
        &mut self,
        groups: &[&LeafGroup],
        needs: &[GroupInputs],
        array: &str,
        id: usize,
        out: &mut Vec<Stmt>,
    ) -> Result<(), DeviceError> {
        let mut bodies: Vec<(&GroupBody, Vec<Stmt>)> = Vec::new();
        let mut of_iteration = Vec::new();
        for (group, need) in groups.iter().zip(needs) {
            let known = bodies.iter().position(|b| *b.0 == need.body);
            of_iteration.push(known.unwrap_or(bodies.len()) as i32);
            if known.is_none() {
                let body = match group.method {
                    Method::Dense(tile) => self.dense_body(group, tile, array, id)?,
                    _ => {
                        let sharing = groups.iter().zip(needs).filter(|(_, n)| n.body == need.body);
                        let mut rests = Vec::new();
                        for (group, _) in sharing {
                            rests.push(self.remainder(group)?);
                        }
                        rests.sort_unstable();
                        rests.dedup();
                        vec![self.column_body(group, &need.body, array, id, &rests)?]
                    }
                };
                bodies.push((&need.body, body));
            }
        }
        let fills = needs.iter().map(|n| n.fill.clone()).enumerate().filter(|(_, fill)| !fill.is_empty());
        let cases: Vec<(usize, Vec<Stmt>)> = fills.collect();
        if !cases.is_empty() {
            out.push(Stmt::Switch { over: name("k"), cases });
        }
        let passes: Vec<_> = needs.iter().map(|n| n.pass.as_ref()).collect();
        self.row_passes(&passes, out)?;
        let mut bodies: Vec<(usize, Vec<Stmt>)> = bodies.into_iter().map(|b| b.1).enumerate().collect();
        if bodies.len() == 1 {
            out.extend(bodies.swap_remove(0).1);
        } else {
            self.params.ints(&format!("case{id}"), &of_iteration);
            out.push(Stmt::Switch { over: name(format_args!("p.case{id}[k]")), cases: bodies });
        }
        for (i, member) in ["from", "taps", "size"].into_iter().enumerate() {
            let values: Vec<i32> = needs.iter().map(|n| n.at[i] as i32).collect();
            self.params.ints(&format!("{member}{id}"), &values);
        }
        Ok(())
    }

    /// Ensures that the stage of a group of column filters is loaded.
    fn column_need(&mut self, group: &LeafGroup, slot: usize) -> Result<GroupInputs, DeviceError> {
        let at = self.schedule.slots[slot];
        let pass = self.row_pass(slot)?;
        let l = group.leaves[0];
        let size = self.kernel.leaves[l].dtype.size();
        let (taps, anchor_y) = self.column_extent(l)?;
        let from = at.at / size + (at.up - anchor_y) * at.pitch;
        let pitch = at.pitch;
        let body =
            if taps < self.block.rows { GroupBody::Column { taps, pitch } } else { GroupBody::LoopedColumn { pitch } };
        let Some(at_taps) = self.column_taps[l] else {
            return Err(defect("taps of a loop are not in shared memory"));
        };
        Ok(GroupInputs { fill: Vec::new(), pass, body, at: [from, at_taps / size, taps] })
    }

    /// Taps of a column that remain when a thread takes as many at a time as it has rows.
    fn remainder(&self, group: &LeafGroup) -> Result<usize, DeviceError> {
        Ok(self.filter(group.leaves[0])?.taps().len() % self.block.rows)
    }

    /// The body for columns with fewer taps than a thread has rows, or for all longer ones with these remainders.
    fn column_body(
        &mut self,
        group: &LeafGroup,
        body: &GroupBody,
        array: &str,
        id: usize,
        rests: &[usize],
    ) -> Result<Stmt, DeviceError> {
        let l = group.leaves[0];
        let dtype = self.kernel.leaves[l].dtype;
        let height = self.filter(l)?.taps().len();
        let ThreadBlock { rows, cols, .. } = self.block;
        let count = group.leaves.len();
        self.cost += cost::column(self.block, count, height, height < rows, rests);
        let member = |member: &str| name(format_args!("p.{member}{id}[k]"));
        let taps = Expr::Shared(dtype, 0) + member("taps");
        let (t, kept) = (dtype.name(), self.shared.kept());
        Ok(Stmt::Call(match body {
            GroupBody::Column { taps: height, pitch } => {
                let pixels = self.thread_tile(dtype, kept, *pitch, 0) + member("from");
                let template = template![t, height, rows, cols, count, pitch, false];
                CppCall::new("hs_column", template, args![pixels, taps, array])
            }
            GroupBody::LoopedColumn { pitch } => {
                let pixels = self.thread_tile(dtype, kept, *pitch, 0) + member("from");
                let mut template = template![t, rows, cols, count, pitch];
                template.extend(rests.iter().map(usize::to_string));
                CppCall::new("hs_column_looped", template, args![pixels, taps, member("size"), member("size"), array])
            }
            GroupBody::Dense(_) => return Err(defect("columns have the body of a tile")),
        }))
    }

    /// [`MapGenerator::column_need`] for a tile.
    fn dense_need(&mut self, group: &LeafGroup, tile: InputTile) -> Result<GroupInputs, DeviceError> {
        let d = self.dense_group(group)?;
        let mut fill = Vec::new();
        self.load_tile(d.source, d.border, tile, d.dtype, &mut fill)?;
        let taps = self.taps(group)?;
        let at = self.table.rows(d.dtype, d.width, tap_pitch(d.width, d.dtype), &taps);
        let body = GroupBody::Dense(self.filter(group.leaves[0])?.layout().clone());
        Ok(GroupInputs { fill, pass: None, body, at: [0, at, 0] })
    }

    fn dense_body(
        &mut self,
        group: &LeafGroup,
        tile: InputTile,
        array: &str,
        id: usize,
    ) -> Result<Vec<Stmt>, DeviceError> {
        let dtype = self.kernel.leaves[group.leaves[0]].dtype;
        let from = Expr::Table(dtype.name().into(), Box::new(name(format_args!("p.taps{id}[k]"))));
        let mut out = Vec::new();
        self.looped_dense(group, tile, array, from, &mut out)?;
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use horus_core::device::Geometry;
    use horus_core::dtype::{DType, Scalar};
    use horus_core::ir::kernel::{Instr, InstrOp, Kernel, Val};
    use horus_core::ops::pixel::PixelOp;
    use horus_core::shape::{Shape, Window};

    use crate::codegen::{KernelLimits, Shapes, generate};
    use crate::tuning::lookup;
    use crate::workloads::{conv2d, convrot};

    /// Iterations of each loop of the kernel, and the number of divisions.
    fn loops(kernel: Kernel) -> (Vec<usize>, usize) {
        let shape = Shape::new(100, 100, 1);
        let image = Geometry { shape, dtype: DType::F32, window: Window::whole(100) };
        let tuning = crate::tuning::Tuning { group: 2, unroll: 0, ..lookup(&kernel, DType::F32, 90) };
        let shapes = Shapes { inputs: &[image], output: image, rows: image.window };
        let source = generate(&kernel, &shapes, &tuning, KernelLimits { shared: 227 << 10 }).unwrap().source;
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
        // Every iteration is a division, a product and a maximum; the product of the fifth is also read at the end.
        let read = changed(conv2d(9, 5), |code, result| {
            code.push(max(vec![Val::Instr(26), Val::Instr(13)]));
            *result = Some(Val::Instr(27));
        });
        assert_eq!(loops(read), (vec![4, 3], 4), "nor is the last step like the others: more follows it");
        let other = changed(conv2d(9, 5), |code, _| code[12].op = InstrOp::Pixel(PixelOp::Div));
        assert_eq!(loops(other).0, [4, 4]);
        // The last iteration also reads the maximum of the fifth as a separate operand, which no loop passes on.
        let skips = changed(conv2d(9, 5), |code, _| code[26].args[1] = Val::Instr(14));
        assert_eq!(loops(skips).0, [5], "and two steps remain after it");
        let zero = changed(conv2d(9, 5), |code, _| code[2].args[0] = Val::Const(Scalar::F32(-0.0)));
        assert_eq!(loops(zero).0, [9], "what comes before the first step may be anything");
    }
}
