//! Groups of filters computed from shared memory or from registers.

use horus_core::dtype::{DType, Scalar};
use horus_core::error::DeviceError;
use horus_core::ir::kernel::{FilterSource, LeafOp};
use horus_core::ops::neighbourhood::{Filter, FilterLayout, Reach};
use horus_core::shape::Border;

use super::super::cpp::{CppCall, Expr, Operator, Stmt, args, name, template};
use super::super::schedule::{
    InputTile, LeafGroup, Method, NearFilter, ThreadBlock, plane, sum_pitch, tap_pitch, window,
};
use super::super::{border_name, cost, defect, vector};
use super::MapGenerator;
use super::chains::{source_aligned, source_name};

/// A group of dense filters and their input.
pub(super) struct DenseGroup<'a> {
    pub(super) source: FilterSource,
    pub(super) border: Border,
    filter: &'a Filter,
    pub(super) dtype: DType,
    /// Filters of the group.
    count: usize,
    height: usize,
    pub(super) width: usize,
    anchor_y: usize,
    anchor_x: usize,
}

impl<'a> MapGenerator<'a> {
    /// The common properties of a group of dense filters.
    pub(super) fn dense_group(&self, group: &LeafGroup) -> Result<DenseGroup<'a>, DeviceError> {
        let leaf = &self.kernel.leaves[group.leaves[0]];
        match window(leaf) {
            Some((source, Some(filter), border)) => match *filter.layout() {
                FilterLayout::Dense { height, width, anchor_y, anchor_x } => {
                    let (dtype, count) = (leaf.dtype, group.leaves.len());
                    Ok(DenseGroup { source, border, filter, dtype, count, height, width, anchor_y, anchor_x })
                }
                FilterLayout::Sparse(_) => Err(defect("a sparse filter is computed as a dense one")),
            },
            _ => Err(defect("a group of dense filters has none")),
        }
    }

    /// Columns of a filter per loop body: whole vectors of `dtype`.
    fn piece(&self, dtype: DType) -> usize {
        self.tuning.piece.next_multiple_of(vector(dtype))
    }

    /// Loads the tile of a group unless it is loaded.
    pub(super) fn load_tile(
        &mut self,
        source: FilterSource,
        border: Border,
        tile: InputTile,
        dtype: DType,
        out: &mut Vec<Stmt>,
    ) -> Result<(), DeviceError> {
        if !self.shared.takes_tile(source, border, tile, out) {
            return Ok(());
        }
        let value = self.border_value(border, dtype);
        let (threads, b) = (self.block.threads(), border_name(border));
        let (to, from) = (Expr::Shared(dtype, self.shared.kept()), source_name(source)?);
        let aligned = source_aligned(self.kernel, source);
        let InputTile { up, left, rows, cols, pitch, .. } = tile;
        self.cost += cost::TILE;
        out.push(Stmt::Call(if tile.loose {
            let n = self.loose_tiles;
            self.loose_tiles += 1;
            let [up, left, rows, cols] = [("up", up), ("left", left), ("rows", rows), ("cols", cols)].map(|(of, v)| {
                self.params.int(&format!("tile{n}_{of}"), v.cast_signed());
                name(format_args!("p.tile{n}_{of}"))
            });
            CppCall::new(
                "hs_load_loose_tile",
                template![b, b, pitch, threads],
                args![to, from, name("y0") - up, name("x0") - left, rows, cols, aligned, value],
            )
        } else {
            CppCall::new(
                "hs_load_tile",
                template![b, b, rows, cols, pitch, threads],
                args![to, from, name("y0") - up, name("x0") - left, aligned, value],
            )
            .shareable(cost::TILE)
        }));
        out.push(Stmt::AwaitCopies);
        Ok(())
    }

    /// The address of the thread's pixels in a tile, `dy` rows down.
    pub(super) fn thread_tile(&self, dtype: DType, byte: usize, pitch: usize, dy: usize) -> Expr {
        let ThreadBlock { rows, cols, .. } = self.block;
        Expr::Shared(dtype, byte) + (name("ty") * rows + dy) * pitch + name("tx") * cols
    }

    pub(super) fn dense(
        &mut self,
        group: &LeafGroup,
        tile: InputTile,
        array: &str,
        out: &mut Vec<Stmt>,
    ) -> Result<(), DeviceError> {
        let d = self.dense_group(group)?;
        self.load_tile(d.source, d.border, tile, d.dtype, out)?;
        let taps = self.taps(group)?;
        let ThreadBlock { rows, cols, .. } = self.block;
        if d.height * d.width * rows * cols * d.count > self.tuning.unroll {
            let from = self.table_rows(d.dtype, d.width, tap_pitch(d.width, d.dtype), &taps);
            return self.looped_dense(group, tile, array, from, out);
        }
        self.cost += cost::dense(self.block, d.count, (d.height, d.width), true, 0);
        let taps = self.fixed_taps(d.dtype, &taps);
        let step = self.helpers.step(&self.kernel.leaves[group.leaves[0]]);
        let pixels = self.thread_tile(d.dtype, self.shared.kept(), tile.pitch, tile.up - d.anchor_y);
        let (t, pitch, off) = (d.dtype.name(), tile.pitch, tile.left - d.anchor_x);
        let template = template![step, t, d.height, d.width, d.width, rows, cols, d.count, pitch, off, true, 0];
        out.push(CppCall::new("hs_dense", template, args![pixels, taps, array]).into());
        Ok(())
    }

    /// A filter of bytes, by products of matrices of integers. A thread computes sums of other pixels than its own;
    /// they go through shared memory.
    pub(super) fn products(
        &mut self,
        group: &LeafGroup,
        tile: InputTile,
        array: &str,
        out: &mut Vec<Stmt>,
    ) -> Result<(), DeviceError> {
        let d = self.dense_group(group)?;
        let Some((input, dtype)) = self.kernel.bytes(&self.kernel.leaves[group.leaves[0]]) else {
            return Err(defect("a group of filters of bytes has none"));
        };
        self.load_tile(FilterSource::Input(input), d.border, tile, dtype, out)?;
        // Waits until the sums of the previous group have been read.
        out.push(Stmt::Synchronize);
        let off = tile.left - d.anchor_x;
        let (first, skew) = (off / 4 * 4, off % 4);
        let matrices = (skew + 7 + d.width).div_ceil(32);
        let taps = self.table.words(matrix_words(d.filter.taps(), d.width, matrices, skew));
        let (block, pitch) = (self.block, sum_pitch(self.block));
        let at = self.shared.kept() + tile.bytes();
        self.shared.reserve(at + block.height() * pitch * size_of::<f32>());
        let pixels = Expr::Shared(dtype, self.shared.kept()) + ((tile.up - d.anchor_y) * tile.pitch + first);
        let (taps, sums) = (Expr::Table("u32".into(), Box::new(taps.into())), Expr::Shared(DType::F32, at));
        let (signed, threads) = (dtype == DType::I8, block.threads());
        let template = template![signed, d.height, matrices, tile.pitch, block.height(), block.width(), pitch, threads];
        let parts = block.height() / 16 * block.width() / 8 / (threads / 32);
        self.cost += 40 * parts * matrices;
        out.push(CppCall::new("hs_bytes", template, args![pixels, taps, sums.clone()]).into());
        out.push(Stmt::Synchronize);
        let ThreadBlock { rows, cols, .. } = block;
        let own = sums + name("ty") * rows * pitch + name("tx") * cols;
        let taken = CppCall::new("hs_take_sums", template![pitch, rows, cols], args![own, format!("{array}[0]")]);
        out.push(taken.into());
        self.shared.is_read();
        Ok(())
    }

    /// The taps of all filters of a group.
    pub(super) fn taps(&self, group: &LeafGroup) -> Result<Vec<f64>, DeviceError> {
        let mut taps = Vec::new();
        for &l in &group.leaves {
            taps.extend_from_slice(self.filter(l)?.taps());
        }
        Ok(taps)
    }

    /// Dense filters over a loaded tile; their taps are copied from the table to shared memory.
    pub(super) fn looped_dense(
        &mut self,
        group: &LeafGroup,
        tile: InputTile,
        array: &str,
        from: Expr,
        out: &mut Vec<Stmt>,
    ) -> Result<(), DeviceError> {
        let d = self.dense_group(group)?;
        let pitch = tap_pitch(d.width, d.dtype);
        let (at, count) = (self.shared.kept() + tile.bytes(), d.count * d.height * pitch);
        let taps = Expr::Shared(d.dtype, at);
        out.extend([Stmt::Synchronize, self.copy_taps(count, taps.clone(), from).into(), Stmt::AwaitCopies]);
        self.shared.is_read();
        self.shared.reserve(at + count * d.dtype.size());
        let ThreadBlock { rows, cols, .. } = self.block;
        let step = self.helpers.step(&self.kernel.leaves[group.leaves[0]]);
        let (piece, off) = (self.piece(d.dtype), tile.left - d.anchor_x);
        let (t, height, width) = (d.dtype.name(), d.height, d.width);
        let pixels = self.thread_tile(d.dtype, self.shared.kept(), tile.pitch, tile.up - d.anchor_y);
        let cost = cost::dense(self.block, d.count, (height, width), false, piece);
        self.cost += cost;
        let template = template![step, t, height, width, pitch, rows, cols, d.count, tile.pitch, off, false, piece];
        out.push(CppCall::new("hs_dense", template, args![pixels, taps, array]).shareable(cost).into());
        Ok(())
    }

    /// Begins to copy so many taps.
    fn copy_taps(&self, count: usize, to: Expr, from: Expr) -> CppCall {
        CppCall::new("hs_load_taps", template![count, self.block.threads()], vec![to, from])
    }

    /// A filter too tall for its tile: bands of its rows, in order, each with its own tile.
    pub(super) fn chunked(
        &mut self,
        group: &LeafGroup,
        band: usize,
        array: &str,
        out: &mut Vec<Stmt>,
    ) -> Result<(), DeviceError> {
        let d = self.dense_group(group)?;
        let from = self.table_rows(d.dtype, d.width, tap_pitch(d.width, d.dtype), d.filter.taps());
        self.shared.forget(out);
        let value = self.border_value(d.border, d.dtype);
        let whole = d.height / band * band;
        let body = self.band(group, name("k"), band, &from, &value, array)?;
        out.push(Stmt::iterations(whole, band, body));
        if whole < d.height {
            out.extend(self.band(group, whole.into(), d.height - whole, &from, &value, array)?);
        }
        Ok(())
    }

    /// Rows `first..first + band` of a filter with taps at `from`; `value` is the constant of a constant border.
    fn band(
        &mut self,
        group: &LeafGroup,
        first: Expr,
        band: usize,
        from: &Expr,
        value: &Expr,
        array: &str,
    ) -> Result<Vec<Stmt>, DeviceError> {
        let d = self.dense_group(group)?;
        let step = self.helpers.step(&self.kernel.leaves[group.leaves[0]]);
        self.cost += cost::TILE + cost::dense(self.block, 1, (band, d.width), false, self.piece(d.dtype));
        let (t, pitch) = (d.dtype.name(), tap_pitch(d.width, d.dtype));
        let reach = Reach { up: 0, down: band - 1, ..d.filter.reach() };
        let tile = InputTile::new(self.block, reach, d.dtype);
        let at = self.shared.kept() + tile.bytes();
        self.shared.reserve(at + band * pitch * d.dtype.size());
        let (threads, ThreadBlock { rows, cols, .. }) = (self.block.threads(), self.block);
        let (b, across) = (border_name(d.border), tile.pitch);
        let (to, taps) = (Expr::Shared(d.dtype, self.shared.kept()), Expr::Shared(d.dtype, at));
        let load = CppCall::new(
            "hs_load_tile",
            template![b, b, tile.rows, across, across, threads],
            args![
                to,
                source_name(d.source)?,
                name("y0") - d.anchor_y + first.clone(),
                name("x0") - tile.left,
                source_aligned(self.kernel, d.source),
                value.clone(),
            ],
        );
        let copy = self.copy_taps(band * pitch, taps.clone(), from.clone() + first * pitch);
        let (off, piece) = (tile.left - d.anchor_x, self.piece(d.dtype));
        let dense = CppCall::new(
            "hs_dense",
            template![step, t, band, d.width, pitch, rows, cols, 1, across, off, false, piece],
            args![self.thread_tile(d.dtype, self.shared.kept(), tile.pitch, 0), taps, array],
        );
        Ok(vec![load.into(), copy.into(), Stmt::AwaitCopies, dense.into(), Stmt::Synchronize])
    }

    pub(super) fn sparse(
        &mut self,
        group: &LeafGroup,
        tile: InputTile,
        array: &str,
        out: &mut Vec<Stmt>,
    ) -> Result<(), DeviceError> {
        let l = group.leaves[0];
        let leaf = &self.kernel.leaves[l];
        let Some((source, Some(filter), border)) = window(leaf) else {
            return Err(defect(format_args!("leaf {l} has no window")));
        };
        let dtype = leaf.dtype;
        let step = self.helpers.step(leaf);
        self.load_tile(source, border, tile, dtype, out)?;
        // Offsets are data, so that filters that differ only in direction share a binary.
        let offsets = filter.offsets().into_iter().map(|(y, x)| [(y * tile.pitch.cast_signed() + x) as i32]);
        let at = self.table.offsets(dtype, filter.taps(), offsets);
        let [taps, count] = self.sparse_taps(l, at, filter.taps().len(), "hs_tap");
        let pixels = self.thread_tile(dtype, self.shared.kept(), tile.pitch, 0);
        let pixels = match self.loose_tiles.checked_sub(1).filter(|_| tile.loose) {
            Some(n) => pixels + name(format_args!("p.tile{n}_up")) * tile.pitch + format!("p.tile{n}_left"),
            None => pixels + (tile.up * tile.pitch + tile.left),
        };
        let ThreadBlock { rows, cols, .. } = self.block;
        let template = template![step, dtype.name(), rows, cols, tile.pitch];
        out.push(CppCall::new("hs_sparse", template, args![pixels, taps, count, format!("{array}[0]")]).into());
        Ok(())
    }

    /// A filter of few taps, from registers.
    pub(super) fn near(
        &mut self,
        group: &LeafGroup,
        reach: Reach,
        array: &str,
        out: &mut Vec<Stmt>,
    ) -> Result<(), DeviceError> {
        let l = group.leaves[0];
        let leaf = &self.kernel.leaves[l];
        let kernel = self.kernel;
        let Some(NearFilter { source, border, reach: own, .. }) = NearFilter::of(leaf, kernel) else {
            return Err(defect(format_args!("leaf {l} is not near its pixel")));
        };
        let (dtype, block, Reach { up, down, left, right }) = (leaf.dtype, self.block, reach);
        let ThreadBlock { rows, cols, .. } = block;
        let (b, value) = (border_name(border), self.border_value(border, dtype));
        let of_levels = if let FilterSource::Chain(c) = source { plane(&kernel.chains[c]) } else { None };
        let image = source_name(source)? + if of_levels.is_some() { ".q0" } else { "" };
        let known = self.windows.iter().position(|of| *of == (source, border));
        let mut pixels = format!("w{}", known.unwrap_or(self.windows.len()));
        if known.is_none() {
            self.windows.push((source, border));
            let extents = (up + rows + down, left + cols + right);
            out.push(Stmt::Array { dtype, name: pixels.clone(), extents: vec![extents.0, extents.1] });
            let template = template![b, up, down, left, right, block.height(), block.width(), rows, cols];
            let aligned = source_aligned(kernel, source);
            let args = args![image.as_str(), "y0", "x0", "y", "x", aligned, value.clone(), pixels.as_str()];
            let load = CppCall::new("hs_load_window", template, args).into();
            // A level beyond the ends of its input is constant.
            out.push(match of_levels.and_then(Border::constant) {
                None => load,
                Some(beyond) => Stmt::If {
                    condition: name(format_args!("{image}.data")).with(Operator::Equal, "nullptr"),
                    then: vec![Stmt::fill(
                        extents,
                        &pixels,
                        self.params.constant(Scalar::from_f64(dtype, beyond), dtype),
                    )],
                    otherwise: vec![load],
                },
            });
            self.cost += cost::TILE;
        }
        let (filter, left) = match &leaf.op {
            LeafOp::Correlate(FilterSource::Stage(s), column, _) => {
                let row = &kernel.stages[*s].filter;
                let (passed, taps) = (format!("s{l}"), self.fixed_taps(dtype, row.taps()));
                out.push(Stmt::Array { dtype, name: passed.clone(), extents: vec![up + rows + down, cols] });
                let template = template![b, row.taps().len(), left - own.left];
                let args = args![image, name("y") - up, pixels, taps, value, passed.as_str()];
                out.push(CppCall::new("hs_near_rows", template, args).into());
                self.cost += row.taps().len() * (up + rows + down) * cols;
                pixels = passed;
                (column, 0)
            }
            _ => match window(leaf) {
                Some((_, Some(filter), _)) => (filter, left),
                _ => return Err(defect(format_args!("leaf {l} has no window"))),
            },
        };
        self.cost += filter.taps().len() * rows * cols;
        let (step, taps) = (self.helpers.step(leaf), self.fixed_taps(dtype, filter.taps()));
        for (k, (y, x)) in filter.offsets().into_iter().enumerate() {
            let at = [(up, y), (left, x)].map(|(before, by)| before.cast_signed() + by);
            let template = template![step, at[0], at[1]];
            let args = args![pixels.as_str(), taps.clone() + k, format!("{array}[0]")];
            out.push(CppCall::new("hs_near", template, args).into());
        }
        Ok(())
    }

    /// Returns `true` if a group of column filters is unrolled with its taps as parameters.
    fn column_is_fixed(&self, group: &LeafGroup) -> Result<bool, DeviceError> {
        if self.looped[group.leaves[0]] {
            return Ok(false);
        }
        let taps = self.filter(group.leaves[0])?.taps().len();
        let ThreadBlock { rows, cols, .. } = self.block;
        Ok(taps * rows * cols * group.leaves.len() <= self.tuning.unroll)
    }

    /// Copies the taps of all looped column filters to the beginning of shared memory, once.
    pub(super) fn load_column_taps(&mut self, out: &mut Vec<Stmt>) -> Result<(), DeviceError> {
        let (mut taps, mut of_taps) = (Vec::new(), None);
        for group in self.schedule.groups.iter().filter(|g| matches!(g.method, Method::Column(_))) {
            let l = group.leaves[0];
            if self.column_is_fixed(group)? {
                continue;
            }
            // One kernel may filter images of both float types; only filters of the first type have their taps here.
            let dtype = *of_taps.get_or_insert(self.kernel.leaves[l].dtype);
            if self.kernel.leaves[l].dtype == dtype {
                self.column_taps[l] = Some(taps.len() * dtype.size());
                taps.extend(self.taps(group)?);
            }
        }
        let Some(dtype) = of_taps else { return Ok(()) };
        let from = self.table_rows(dtype, taps.len(), taps.len(), &taps);
        self.shared.keep(taps.len() * dtype.size());
        out.extend([self.copy_taps(taps.len(), Expr::Shared(dtype, 0), from).into(), Stmt::AwaitCopies]);
        Ok(())
    }

    pub(super) fn column(
        &mut self,
        group: &LeafGroup,
        slot: usize,
        array: &str,
        out: &mut Vec<Stmt>,
    ) -> Result<(), DeviceError> {
        let at = self.schedule.slots[slot];
        self.stage(slot, out)?;
        let l = group.leaves[0];
        let dtype = self.kernel.leaves[l].dtype;
        let (height, anchor_y) = self.column_extent(l)?;
        let taps = match self.column_taps[l] {
            Some(at) => Expr::Shared(dtype, at),
            None => {
                let taps = self.taps(group)?;
                self.fixed_taps(dtype, &taps)
            }
        };
        let fixed = self.column_is_fixed(group)?;
        let ThreadBlock { rows, cols, .. } = self.block;
        let count = group.leaves.len();
        let pixels = self.thread_tile(dtype, self.shared.kept() + at.at, at.pitch, at.up - anchor_y);
        let template = template![dtype.name(), height, rows, cols, count, at.pitch, fixed];
        let column = CppCall::new("hs_column", template, args![pixels, taps, array]);
        let cost = cost::column(self.block, count, height, fixed || height < rows, &[height % rows]);
        self.cost += cost;
        // The taps of a fixed column are operands of the multiply-adds; a function would have to read them.
        out.push(if fixed { column } else { column.shareable(cost) }.into());
        Ok(())
    }

    /// The number of taps of a column filter, and the index of its centre tap.
    pub(super) fn column_extent(&self, l: usize) -> Result<(usize, usize), DeviceError> {
        match *self.filter(l)?.layout() {
            FilterLayout::Dense { height, anchor_y, .. } => Ok((height, anchor_y)),
            FilterLayout::Sparse(_) => Err(defect(format_args!("leaf {l} is no column filter"))),
        }
    }
}

/// Each row of `width` taps as matrices of 32 rows and 8 columns, in the order of the lanes of a warp
/// (`kernels/bytes.cuh`). Column `n` of a matrix has the taps from row `n + skew` on.
fn matrix_words(taps: &[f64], width: usize, matrices: usize, skew: usize) -> impl Iterator<Item = u32> {
    let of_rows = taps.chunks(width).flat_map(move |row| (0..matrices).map(move |m| (row, m)));
    of_rows.flat_map(move |(row, m)| {
        (0..64).map(move |word| {
            let (lane, half) = (word / 2, word % 2);
            let at = 32 * m + 16 * half + 4 * (lane % 4);
            let tap =
                |k: usize| (at + k).checked_sub(lane / 4 + skew).and_then(|k| row.get(k)).map_or(0, |tap| *tap as i8);
            u32::from_le_bytes(std::array::from_fn(|k| tap(k).cast_unsigned()))
        })
    })
}
