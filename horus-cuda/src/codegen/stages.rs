//! Row passes: from an input, chunk by chunk, into a stage in shared memory that column filters read.

use std::fmt::Write as _;

use horus_core::dtype::DType;
use horus_core::kernel::{LeafOp, Source};
use horus_core::ops::neighbourhood::Layout;
use horus_core::shape::Border;

use super::border_name;
use super::chain::{source_aligned, source_name};
use super::cost;
use super::map::Map;
use super::schedule::{Slot, Tile, skewed_pitch, stage_input};

/// A row pass that is to fill a slot.
#[derive(Clone, Debug)]
pub(super) struct RowPass {
    dtype: DType,
    source: Source,
    /// Where the column filters read beyond the rows, and the row pass beyond the columns.
    borders: [Border; 2],
    slot: Slot,
    /// Taps, and what they are called.
    width: usize,
    taps: String,
    /// What is loaded of the input, of which the first `off` columns are not needed.
    input: Tile,
    off: usize,
}

impl RowPass {
    /// Elements from row to row of the chunks of the input.
    fn pitch_in(&self) -> usize {
        skewed_pitch(self.input.cols, self.dtype)
    }

    /// Whether one loop can fill the slots of both, with a row pass for each.
    fn shares(&self, other: &RowPass) -> bool {
        matches!(self.source, Source::Input(_))
            && (self.dtype, self.source, self.borders, self.slot.pitch)
                == (other.dtype, other.source, other.borders, other.slot.pitch)
    }
}

impl Map<'_> {
    /// The row pass that a slot needs, unless it holds it already. Whoever takes it emits it, after a wait for who
    /// still reads shared memory.
    pub(super) fn row_pass(&mut self, slot: usize) -> Option<RowPass> {
        if self.valid[slot] {
            return None;
        }
        let at = self.schedule.slots[slot];
        self.busy = true;
        self.tile = None;
        for (i, other) in self.schedule.slots.iter().enumerate() {
            // Slots at the same place take turns.
            self.valid[i] &= other.at != at.at;
        }
        self.valid[slot] = true;
        let stage = &self.kernel.stages[at.key.stage];
        let dtype = self.kernel.leaves.iter().find_map(|l| match l.op {
            LeafOp::Correlate(Source::Stage(s), ..) if s == at.key.stage => Some(l.dtype),
            _ => None,
        })?;
        let Layout::Dense { width, anchor_x, .. } = *stage.filter.layout() else { return None };
        let input = stage_input(self.kernel, at.key.stage, self.block, dtype);
        let taps = self.fixed_taps(dtype, stage.filter.taps());
        let pass = RowPass {
            dtype,
            source: stage.source,
            borders: [at.key.border, stage.border],
            slot: at,
            width,
            taps,
            off: input.left - anchor_x,
            input,
        };
        self.reserve(self.chunks_at() + 2 * self.schedule.chunk * pass.pitch_in() * dtype.size());
        Some(pass)
    }

    /// Where the chunks of the input lie, in bytes of shared memory.
    fn chunks_at(&self) -> usize {
        self.kept + self.schedule.slot_bytes
    }

    /// Pixels of a thread along a row.
    fn span(&self) -> usize {
        self.tuning.span.min(self.block.width())
    }

    /// Fills a slot with its row pass unless it holds it already.
    pub(super) fn stage(&mut self, slot: usize) {
        if self.valid[slot] {
            return;
        }
        self.wait_for_readers();
        if let Some(pass) = self.row_pass(slot) {
            self.one_stage(&pass);
        }
    }

    fn one_stage(&mut self, pass: &RowPass) {
        let [value_y, value_x] = pass.borders.map(|b| self.border_value(b, pass.dtype));
        let row_pass = format!(
            "hs_stage<{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}>(",
            border_name(pass.borders[0]),
            border_name(pass.borders[1]),
            pass.width,
            pass.slot.chunks,
            self.schedule.chunk,
            self.block.width(),
            pass.input.cols,
            pass.pitch_in(),
            pass.slot.pitch,
            pass.input.left,
            pass.off,
            self.span(),
            self.block.threads(),
        );
        let _ = writeln!(
            self.body,
            "    {row_pass}{}, {}, {}, y0 - {}, x0, {}, {}, {value_y}, {value_x});",
            self.at(pass.dtype, self.kept + pass.slot.at),
            self.at(pass.dtype, self.chunks_at()),
            source_name(pass.source),
            pass.slot.up,
            source_aligned(self.kernel, pass.source),
            pass.taps,
        );
        self.instance(row_pass, cost::stage(pass.width, self.span()));
    }

    /// The row passes of a loop over `k`, by step: one at a time, with one copy of the code that loads if they are alike.
    pub(super) fn stages_of_steps(&mut self, passes: &[Option<RowPass>]) {
        let all: Vec<(usize, &RowPass)> =
            passes.iter().enumerate().filter_map(|(k, pass)| Some((k, pass.as_ref()?))).collect();
        let [(_, first), others @ ..] = &all[..] else { return };
        if others.is_empty() || !others.iter().all(|(_, pass)| pass.shares(first)) {
            self.body.push_str("    switch (k) {\n");
            for (k, pass) in all {
                let _ = writeln!(self.body, "    case {k}: {{\n    __syncthreads();");
                self.one_stage(pass);
                self.body.push_str("    } break;\n");
            }
            self.body.push_str("    default: break;\n    }\n");
            return;
        }
        let [value_y, value_x] = first.borders.map(|b| self.border_value(b, first.dtype));
        let (t, chunk, pitch) = (first.dtype.name(), self.schedule.chunk, first.slot.pitch);
        let (across, threads, span) = (self.block.width(), self.block.threads(), self.span());
        let pitch_in = all.iter().map(|(_, pass)| pass.pitch_in()).max().unwrap_or(0);
        let (mut which, mut bodies) = (String::new(), String::new());
        for (n, (k, pass)) in all.iter().enumerate() {
            let RowPass { slot, width, taps, input, off, dtype, .. } = pass;
            let _ = writeln!(
                which,
                "    case {k}: pass = {n}, chunks = {}, at = {}, up = {}, left = {}, cols = {}; break;",
                slot.chunks,
                slot.at / dtype.size(),
                slot.up,
                input.left,
                input.cols
            );
            let _ = writeln!(
                bodies,
                "    case {n}: hs_row_pass<{t}, {width}, {chunk}, {across}, {pitch_in}, {pitch}, {off}, {span}, {threads}>(in, out, {taps}); break;"
            );
        }
        let _ = writeln!(
            self.body,
            "    {{\n    int pass = -1, chunks = 0, at = 0, up = 0, left = 0, cols = 0;\n    switch (k) {{\n{which}    default: break;\n    }}\n    \
             if (pass >= 0) {{\n    __syncthreads();\n    \
             const auto row_pass = [&](const {t}* in, {t}* out) __attribute__((always_inline)) {{\n    \
             switch (pass) {{\n{bodies}    default: break;\n    }}\n    }};\n    \
             hs_stage_any<{}, {}, {chunk}, {across}, {pitch_in}, {pitch}, {threads}>({} + at, {}, {}, y0 - up, x0 - left, cols, chunks, {}, {value_y}, {value_x}, row_pass);\n    }}\n    }}",
            border_name(first.borders[0]),
            border_name(first.borders[1]),
            self.at(first.dtype, self.kept),
            self.at(first.dtype, self.chunks_at()),
            source_name(first.source),
            source_aligned(self.kernel, first.source),
        );
        let widths: Vec<usize> = all.iter().map(|(_, pass)| pass.width).collect();
        self.cost += cost::stages(&widths, span);
    }
}
