//! Row filters: chunk by chunk from an input into a stage in shared memory that column filters read.

use horus_core::dtype::DType;
use horus_core::error::DeviceError;
use horus_core::ir::kernel::{FilterSource, LeafOp};
use horus_core::ops::neighbourhood::FilterLayout;
use horus_core::shape::Border;

use super::super::cpp::{CppCall, Expr, SharedRowFilter, SharedRowFilters, Stmt, args, name, template};
use super::super::schedule::{StageSlot, skewed_pitch};
use super::super::{border_name, cost, defect};
use super::MapGenerator;
use super::chains::{source_aligned, source_name};

/// A row filter that fills a slot.
#[derive(Clone, Debug)]
pub(super) struct SlotRowFilter {
    dtype: DType,
    source: FilterSource,
    /// Borders of the column filters, beyond the rows, and of the row filter, beyond the columns.
    borders: [Border; 2],
    slot: StageSlot,
    /// Number and address of the taps.
    width: usize,
    taps: Expr,
    /// The unused columns at the left of the loaded input.
    off: usize,
}

impl SlotRowFilter {
    /// Elements from row to row of the chunks of the input.
    fn pitch_in(&self) -> usize {
        skewed_pitch(self.slot.input.cols, self.dtype)
    }

    /// Returns `true` if one loop can fill the slots of both, with a row filter for each.
    fn shares(&self, other: &SlotRowFilter) -> bool {
        matches!(self.source, FilterSource::Input(_))
            && (self.dtype, self.source, self.borders, self.slot.pitch)
                == (other.dtype, other.source, other.borders, other.slot.pitch)
    }
}

impl MapGenerator<'_> {
    /// The row filter for a slot; `None` if the slot is valid. The caller emits it, after a wait for readers of shared
    /// memory.
    pub(super) fn row_pass(&mut self, slot: usize) -> Result<Option<SlotRowFilter>, DeviceError> {
        if self.shared.holds(slot) {
            return Ok(None);
        }
        let at = self.schedule.slots[slot];
        self.shared.fills(slot, &self.schedule.slots);
        let stage = &self.kernel.stages[at.key.stage];
        let dtype = self.kernel.leaves.iter().find_map(|l| match l.op {
            LeafOp::Correlate(FilterSource::Stage(s), ..) if s == at.key.stage => Some(l.dtype),
            _ => None,
        });
        let (Some(dtype), &FilterLayout::Dense { width, anchor_x, .. }) = (dtype, stage.filter.layout()) else {
            return Err(defect(format_args!("stage {} is no row pass", at.key.stage)));
        };
        let taps = self.fixed_taps(dtype, stage.filter.taps());
        let pass = SlotRowFilter {
            dtype,
            source: stage.source,
            borders: [at.key.border, stage.border],
            slot: at,
            width,
            taps,
            off: at.input.left - anchor_x,
        };
        self.shared.reserve(self.chunks_at() + 2 * self.schedule.chunk * pass.pitch_in() * dtype.size());
        Ok(Some(pass))
    }

    /// Byte offset in shared memory of the input's chunks.
    fn chunks_at(&self) -> usize {
        self.shared.kept() + self.schedule.slot_bytes
    }

    /// Pixels per thread along a row.
    fn span(&self) -> usize {
        self.tuning.span.min(self.block.width())
    }

    /// Fills a slot by its row filter unless it is valid.
    pub(super) fn stage(&mut self, slot: usize, out: &mut Vec<Stmt>) -> Result<(), DeviceError> {
        if self.shared.holds(slot) {
            return Ok(());
        }
        self.shared.wait_for_readers(out);
        if let Some(pass) = self.row_pass(slot)? {
            out.push(self.one_stage(&pass)?);
        }
        Ok(())
    }

    fn one_stage(&mut self, pass: &SlotRowFilter) -> Result<Stmt, DeviceError> {
        let [value_y, value_x] = pass.borders.map(|b| self.border_value(b, pass.dtype));
        let [border_y, border_x] = pass.borders.map(border_name);
        let SlotRowFilter { dtype, slot, width, off, .. } = pass;
        let (chunk, across, span, threads) =
            (self.schedule.chunk, self.block.width(), self.span(), self.block.threads());
        let cost = cost::stage(*width, span);
        self.cost += cost;
        let template = template![
            border_y,
            border_x,
            width,
            slot.chunks,
            chunk,
            across,
            slot.input.cols,
            pass.pitch_in(),
            slot.pitch,
            slot.input.left,
            off,
            span,
            threads,
        ];
        let args = args![
            Expr::Shared(*dtype, self.shared.kept() + slot.at),
            Expr::Shared(*dtype, self.chunks_at()),
            source_name(pass.source)?,
            name("y0") - slot.up,
            "x0",
            source_aligned(self.kernel, pass.source),
            pass.taps.clone(),
            value_y,
            value_x,
        ];
        Ok(CppCall::new("hs_stage", template, args).shareable(cost).into())
    }

    /// The row filters of a loop over `k`, by iteration: one at a time, with a single copy of the loading code if they
    /// are similar.
    pub(super) fn row_passes(
        &mut self,
        passes: &[Option<&SlotRowFilter>],
        out: &mut Vec<Stmt>,
    ) -> Result<(), DeviceError> {
        let all: Vec<(usize, &SlotRowFilter)> =
            passes.iter().enumerate().filter_map(|(k, pass)| Some((k, (*pass)?))).collect();
        let [(_, first), others @ ..] = &all[..] else { return Ok(()) };
        if others.is_empty() || !others.iter().all(|(_, pass)| pass.shares(first)) {
            let mut cases = Vec::new();
            for (k, pass) in all {
                cases.push((k, vec![Stmt::Synchronize, self.one_stage(pass)?]));
            }
            out.push(Stmt::Switch { over: name("k"), cases });
            return Ok(());
        }
        let [value_y, value_x] = first.borders.map(|b| self.border_value(b, first.dtype));
        let [border_y, border_x] = first.borders.map(border_name);
        let (t, chunk, pitch) = (first.dtype.name(), self.schedule.chunk, first.slot.pitch);
        let (across, threads, span) = (self.block.width(), self.block.threads(), self.span());
        let pitch_in = all.iter().map(|(_, pass)| pass.pitch_in()).max().unwrap_or(0);
        let one = |&(iteration, pass): &(usize, &SlotRowFilter)| {
            let SlotRowFilter { slot, width, taps, off, dtype, .. } = pass;
            let template = template![t, width, chunk, across, pitch_in, pitch, off, span, threads];
            SharedRowFilter {
                iteration,
                extents: [
                    ("chunks", slot.chunks),
                    ("at", slot.at / dtype.size()),
                    ("up", slot.up),
                    ("left", slot.input.left),
                    ("cols", slot.input.cols),
                ],
                pass: CppCall::new("hs_row_pass", template, args!["in", "out", taps.clone()]),
            }
        };
        let stage = CppCall::new(
            "hs_stage_any",
            template![border_y, border_x, chunk, across, pitch_in, pitch, threads],
            args![
                Expr::Shared(first.dtype, self.shared.kept()) + "at",
                Expr::Shared(first.dtype, self.chunks_at()),
                source_name(first.source)?,
                name("y0") - "up",
                name("x0") - "left",
                "cols",
                "chunks",
                source_aligned(self.kernel, first.source),
                value_y,
                value_x,
                "row_pass",
            ],
        );
        let passes = all.iter().map(one).collect();
        out.push(Stmt::RowPasses(SharedRowFilters { dtype: first.dtype, passes, stage }));
        let widths: Vec<usize> = all.iter().map(|(_, pass)| pass.width).collect();
        self.cost += cost::stages(&widths, span);
        Ok(())
    }
}
