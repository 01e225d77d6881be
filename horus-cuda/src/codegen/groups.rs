//! Groups of leaves computed from shared memory.

use std::fmt::Write as _;

use horus_core::dtype::DType;
use horus_core::kernel::{LeafOp, Source};
use horus_core::ops::neighbourhood::{Filter, Layout, Reach};
use horus_core::shape::Border;

use super::border_name;
use super::chain::{source_aligned, source_name};
use super::cost;
use super::leaves;
use super::map::Map;
use super::schedule::{Block, Group, How, Tile, tap_pitch, window};

impl Map<'_> {
    pub(super) fn at(&self, dtype: DType, byte: usize) -> String {
        format!("reinterpret_cast<{}*>(hs_smem + {byte})", dtype.name())
    }

    /// Columns of a filter in the body of a loop: whole vectors of `dtype`.
    fn piece(&self, dtype: DType) -> usize {
        self.tuning.piece.next_multiple_of(super::vector(dtype))
    }

    pub(super) fn reserve(&mut self, bytes: usize) {
        self.shared = self.shared.max(bytes);
    }

    pub(super) fn wait_for_readers(&mut self) {
        if self.busy {
            self.body.push_str("    __syncthreads();\n");
        }
        self.busy = true;
    }

    /// Loads the tile of a group unless it is there already.
    pub(super) fn load_tile(&mut self, source: Source, border: Border, tile: Tile, dtype: DType) {
        if self.tile == Some((source, border, tile)) {
            return;
        }
        self.wait_for_readers();
        self.valid.fill(false);
        self.tile = Some((source, border, tile));
        self.reserve(self.kept + tile.bytes());
        let value = self.border_value(border, dtype);
        let (threads, b) = (self.block.threads(), border_name(border));
        let (to, from) = (self.at(dtype, self.kept), source_name(source));
        let aligned = source_aligned(self.kernel, source);
        let Tile { up, left, rows, cols, pitch, .. } = tile;
        if tile.loose {
            let n = self.loose_tiles;
            self.loose_tiles += 1;
            for (name, extent) in [("up", up), ("left", left), ("rows", rows), ("cols", cols)] {
                self.params.int(&format!("tile{n}_{name}"), extent.cast_signed());
            }
            self.cost += cost::TILE;
            let _ = writeln!(
                self.body,
                "    hs_load_loose_tile<{b}, {b}, {pitch}, {threads}>({to}, {from}, y0 - p.tile{n}_up, x0 - p.tile{n}_left, p.tile{n}_rows, p.tile{n}_cols, {aligned}, {value});"
            );
        } else {
            let load = format!("hs_load_tile<{b}, {b}, {rows}, {cols}, {pitch}, {threads}>(");
            let _ = writeln!(self.body, "    {load}{to}, {from}, y0 - {up}, x0 - {left}, {aligned}, {value});");
            self.instance(load, cost::TILE);
        }
        self.body.push_str("    hs_commit();\n    hs_wait<0>();\n    __syncthreads();\n");
    }

    /// Where the thread's pixels begin in a tile, `dy` rows down.
    pub(super) fn thread_tile(&self, dtype: DType, byte: usize, pitch: usize, dy: usize) -> String {
        let Block { rows, cols, .. } = self.block;
        format!("{} + (ty * {rows} + {dy}) * {pitch} + tx * {cols}", self.at(dtype, byte))
    }

    pub(super) fn dense(&mut self, group: &Group, tile: Tile, array: &str) {
        let leaf = &self.kernel.leaves[group.leaves[0]];
        let Some((input, Some(filter), border)) = window(leaf) else { return };
        let Layout::Dense { height, width, anchor_y, anchor_x } = *filter.layout() else { return };
        let (dtype, count) = (leaf.dtype, group.leaves.len());
        let step = self.step(group.leaves[0]);
        self.load_tile(input, border, tile, dtype);
        let (pitch, taps) = self.dense_taps(group);
        let Block { rows, cols, .. } = self.block;
        if height * width * rows * cols * count > self.tuning.unroll {
            let from = self.table.rows(dtype, width, pitch, &taps);
            let from = self.table_at(dtype, from);
            self.looped_dense(group, tile, array, &from);
            return;
        }
        self.cost += cost::dense(self.block, count, (height, width), true, 0);
        let taps = self.fixed_taps(dtype, &taps);
        let _ = writeln!(
            self.body,
            "    hs_dense<{step}, {}, {height}, {width}, {width}, {rows}, {cols}, {count}, {}, {}, true, 0>({}, {taps}, {array});",
            dtype.name(),
            tile.pitch,
            tile.left - anchor_x,
            self.thread_tile(dtype, self.kept, tile.pitch, tile.up - anchor_y),
        );
    }

    /// The taps of a group of dense filters, and from row to row in shared memory.
    pub(super) fn dense_taps(&self, group: &Group) -> (usize, Vec<f64>) {
        let l = group.leaves[0];
        let taps = group.leaves.iter().flat_map(|&l| self.filter(l).taps().to_vec()).collect();
        let Layout::Dense { width, .. } = *self.filter(l).layout() else { return (0, taps) };
        (tap_pitch(width, self.kernel.leaves[l].dtype), taps)
    }

    /// Dense filters over a tile that is there, their taps copied from the table to shared memory.
    pub(super) fn looped_dense(&mut self, group: &Group, tile: Tile, array: &str, from: &str) {
        let l = group.leaves[0];
        let (dtype, count, step) = (self.kernel.leaves[l].dtype, group.leaves.len(), self.step(l));
        let Layout::Dense { height, width, anchor_y, anchor_x } = *self.filter(l).layout() else { return };
        let pitch = tap_pitch(width, dtype);
        let taps = self.copy_taps(dtype, self.kept + tile.bytes(), count * height * pitch, from);
        let Block { rows, cols, .. } = self.block;
        let dense = format!(
            "hs_dense<{step}, {}, {height}, {width}, {pitch}, {rows}, {cols}, {count}, {}, {}, false, {}>(",
            dtype.name(),
            tile.pitch,
            tile.left - anchor_x,
            self.piece(dtype),
        );
        let pixels = self.thread_tile(dtype, self.kept, tile.pitch, tile.up - anchor_y);
        let _ = writeln!(self.body, "    {dense}{pixels}, {taps}, {array});");
        self.instance(dense, cost::dense(self.block, count, (height, width), false, self.piece(dtype)));
    }

    /// Counts a template that the body instantiates: its text up to the arguments, and about how many instructions it is.
    pub(super) fn instance(&mut self, text: String, cost: usize) {
        self.cost += cost;
        self.calls.add(text, cost);
    }

    pub(super) fn filter(&self, l: usize) -> &Filter {
        match &self.kernel.leaves[l].op {
            LeafOp::Correlate(_, f, _) => f,
            LeafOp::Generalized(_, g, _) => &g.window,
            _ => unreachable!("only filters are grouped"),
        }
    }

    /// Copies taps to shared memory at `byte`; the expression of where they are.
    fn copy_taps(&mut self, dtype: DType, byte: usize, count: usize, from: &str) -> String {
        self.body.push_str("    __syncthreads();\n");
        let at = self.at(dtype, byte);
        let _ = writeln!(
            self.body,
            "    hs_load_taps<{count}, {}>({at}, {from});\n    hs_commit();\n    hs_wait<0>();\n    __syncthreads();",
            self.block.threads()
        );
        self.busy = true;
        self.reserve(byte + count * dtype.size());
        at
    }

    /// A filter too tall for its tile: bands of its rows in order, each with its own tile.
    pub(super) fn chunked(&mut self, group: &Group, band: usize, array: &str) {
        let leaf = &self.kernel.leaves[group.leaves[0]];
        let Some((_, Some(filter), border)) = window(leaf) else { return };
        let Layout::Dense { height, width, .. } = *filter.layout() else { return };
        let from = self.table.rows(leaf.dtype, width, tap_pitch(width, leaf.dtype), filter.taps());
        let from = self.table_at(leaf.dtype, from);
        self.tile = None;
        self.valid.fill(false);
        self.wait_for_readers();
        let value = self.border_value(border, leaf.dtype);
        let whole = height / band * band;
        let _ = writeln!(self.body, "#pragma unroll 1\n    for (int k = 0; k < {whole}; k += {band}) {{");
        self.band(group, "k", band, &from, &value, array);
        self.body.push_str("    }\n");
        if whole < height {
            self.band(group, &whole.to_string(), height - whole, &from, &value, array);
        }
    }

    /// Rows `first..first + band` of a filter.
    fn band(&mut self, group: &Group, first: &str, band: usize, from: &str, value: &str, array: &str) {
        let leaf = &self.kernel.leaves[group.leaves[0]];
        let Some((input, Some(filter), border)) = window(leaf) else { return };
        let Layout::Dense { width, anchor_y, anchor_x, .. } = *filter.layout() else { return };
        let dtype = leaf.dtype;
        let step = self.step(group.leaves[0]);
        self.cost += cost::TILE + cost::dense(self.block, 1, (band, width), false, self.piece(dtype));
        let pitch = tap_pitch(width, dtype);
        let reach = Reach { up: 0, down: band - 1, ..filter.reach() };
        let tile = Tile::new(self.block, reach, dtype);
        let taps_at = self.kept + tile.bytes();
        let (threads, Block { rows, cols, .. }) = (self.block.threads(), self.block);
        let _ = writeln!(
            self.body,
            "        hs_load_tile<{b}, {b}, {}, {tc}, {tc}, {threads}>({}, {input}, y0 - {anchor_y} + {first}, x0 - {}, {aligned}, {value});\n        \
             hs_load_taps<{}, {threads}>({taps}, {from} + {first} * {pitch});\n        \
             hs_commit();\n        hs_wait<0>();\n        __syncthreads();\n        \
             hs_dense<{step}, {}, {band}, {width}, {pitch}, {rows}, {cols}, 1, {tc}, {}, false, {}>({}, {taps}, {array});\n        \
             __syncthreads();",
            tile.rows,
            self.at(dtype, self.kept),
            tile.left,
            band * pitch,
            dtype.name(),
            tile.left - anchor_x,
            self.piece(dtype),
            self.thread_tile(dtype, self.kept, tile.pitch, 0),
            b = border_name(border),
            tc = tile.pitch,
            taps = self.at(dtype, taps_at),
            input = source_name(input),
            aligned = source_aligned(self.kernel, input),
        );
        self.reserve(taps_at + band * pitch * dtype.size());
    }

    pub(super) fn sparse(&mut self, group: &Group, tile: Tile, array: &str) {
        let l = group.leaves[0];
        let leaf = &self.kernel.leaves[l];
        let Some((input, Some(filter), border)) = window(leaf) else { return };
        let dtype = leaf.dtype;
        let step = self.step(l);
        self.load_tile(input, border, tile, dtype);
        // Offsets are data, so that filters that differ in direction only share a binary.
        let offsets = filter.offsets().into_iter().map(|(y, x)| [(y * tile.pitch.cast_signed() + x) as i32]);
        let at = self.table.offsets(dtype, filter.taps(), offsets);
        self.params.int(&format!("taps{l}"), at.cast_signed());
        self.params.int(&format!("count{l}"), filter.taps().len().cast_signed());
        let Block { rows, cols, .. } = self.block;
        let from = match self.loose_tiles.checked_sub(1).filter(|_| tile.loose) {
            Some(n) => format!("p.tile{n}_up * {} + p.tile{n}_left", tile.pitch),
            None => (tile.up * tile.pitch + tile.left).to_string(),
        };
        let _ = writeln!(
            self.body,
            "    hs_sparse<{step}, {t}, {rows}, {cols}, {}>({} + {from}, reinterpret_cast<const hs_tap<{t}>*>(p.table + p.taps{l}), p.count{l}, {array}[0]);",
            tile.pitch,
            self.thread_tile(dtype, self.kept, tile.pitch, 0),
            t = dtype.name(),
        );
    }

    pub(super) fn median(&mut self, group: &Group, tile: Tile, array: &str) {
        let leaf = &self.kernel.leaves[group.leaves[0]];
        let LeafOp::Median(input, size, border) = leaf.op else { return };
        self.load_tile(Source::Input(input), border, tile, leaf.dtype);
        let radius = size.radius();
        leaves::define_median(&mut self.helpers, radius);
        let _ = writeln!(
            self.body,
            "    hs_median{radius}<{}, {}, {}, {}>({} + {}, {array}[0]);",
            leaf.dtype.name(),
            self.block.rows,
            self.block.cols,
            tile.pitch,
            self.thread_tile(leaf.dtype, self.kept, tile.pitch, tile.up - radius),
            tile.left - radius,
        );
    }

    /// Whether a group of column filters is unrolled with its taps as parameters.
    fn column_is_fixed(&self, group: &Group) -> bool {
        if self.rolled[group.leaves[0]] {
            return false;
        }
        let taps = self.filter(group.leaves[0]).taps().len();
        let Block { rows, cols, .. } = self.block;
        taps * rows * cols * group.leaves.len() <= self.tuning.unroll
    }

    /// Copies the taps of all column filters that are looped over to the beginning of shared memory, once.
    pub(super) fn load_column_taps(&mut self) {
        let groups: Vec<Group> = self
            .schedule
            .groups
            .iter()
            .filter(|g| matches!(g.how, How::Column(_)) && !self.column_is_fixed(g))
            .cloned()
            .collect();
        let Some(first) = groups.first() else { return };
        let dtype = self.kernel.leaves[first.leaves[0]].dtype;
        let mut taps = Vec::new();
        for group in &groups {
            // One kernel may filter images of both float types; only those of the first keep their taps here.
            if self.kernel.leaves[group.leaves[0]].dtype == dtype {
                self.column_taps[group.leaves[0]] = Some(taps.len() * dtype.size());
                group.leaves.iter().for_each(|&l| taps.extend_from_slice(self.filter(l).taps()));
            }
        }
        let from = self.table.rows(dtype, taps.len(), taps.len(), &taps);
        let from = self.table_at(dtype, from);
        let at = self.at(dtype, 0);
        self.kept = (taps.len() * dtype.size()).next_multiple_of(super::schedule::REGION);
        self.reserve(self.kept);
        let _ = writeln!(
            self.body,
            "    hs_load_taps<{}, {}>({at}, {from});\n    hs_commit();\n    hs_wait<0>();\n    __syncthreads();",
            taps.len(),
            self.block.threads()
        );
    }

    pub(super) fn column(&mut self, group: &Group, slot: usize, array: &str) {
        let slot_at = self.schedule.slots[slot];
        self.stage(slot);
        let l = group.leaves[0];
        let dtype = self.kernel.leaves[l].dtype;
        let Layout::Dense { height, anchor_y, .. } = *self.filter(l).layout() else { return };
        let taps = match self.column_taps[l] {
            Some(at) => self.at(dtype, at),
            None => {
                let taps: Vec<f64> = group.leaves.iter().flat_map(|&l| self.filter(l).taps().to_vec()).collect();
                self.fixed_taps(dtype, &taps)
            }
        };
        let fixed = self.column_is_fixed(group);
        let Block { rows, cols, .. } = self.block;
        let (t, count, pitch) = (dtype.name(), group.leaves.len(), slot_at.pitch);
        let column = format!("hs_column<{t}, {height}, {rows}, {cols}, {count}, {pitch}, {fixed}>(");
        let pixels = self.thread_tile(dtype, self.kept + slot_at.at, pitch, slot_at.up - anchor_y);
        let _ = writeln!(self.body, "    {column}{pixels}, {taps}, {array});");
        let cost = cost::column(self.block, count, height, fixed || height < rows, &[height % rows]);
        if fixed {
            // Its taps are operands of the multiply-adds; a function would have to read them.
            self.cost += cost;
        } else {
            self.instance(column, cost);
        }
    }
}
