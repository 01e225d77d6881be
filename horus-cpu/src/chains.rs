//! Rows of chains, computed when filters request them.
//!
//! A chain of pixel operations computes any row from the rows of its inputs. A chain with filters has its own feeds, of
//! rows of images or of other chains. The feeds move down with the requested rows, and restart where the requests go
//! back, at an edge of the image.

use std::ops::Range;

use super::expression::{EvaluationTile, Expression, slot_bytes};
use super::feed::Feed;
use super::plane::{self, ExpressionInput, RowSource, Unrolled};
use super::simd::Isa;
use super::tile_code::{TileCode, TileOperation, ValueStorage};
use horus_base::dispatch_float;
use horus_base::dtype::{DType, Pixel};
use horus_base::shape::{Border, Shape, Window};
use horus_host::device::Geometry;
use horus_plan::ir::kernel::FilterSource;

/// Elements of a chain row computed at a time.
const PIECE: usize = 1024;

/// The rows of a chain, computed on demand.
pub(super) struct ChainRows<'a> {
    expression: Expression<'a>,
    channel: usize,
    /// Requested columns.
    cols: Range<usize>,
    geometry: Geometry,
    /// Rows that some of the chain's inputs have in memory; the other inputs have them too, or the rows of which they
    /// are wrapped copies. Empty for a chain with filters, whose rows are the rows of the image.
    window: Window,
    /// One row of the result, then the slots, then the scratch of the feeds.
    scratch: *mut u8,
    feeds: Vec<(Feed<'a>, Option<ChainRows<'a>>)>,
    /// The next row that the feeds can serve.
    next: Option<isize>,
    /// Row pointers read by each group of filters.
    tables: Vec<Vec<*const u8>>,
}

/// Advances a feed of chain rows so that it serves output rows below `end`.
pub(super) fn advance(feed: &mut Feed<'_>, rows: &mut ChainRows<'_>, end: isize, isa: Isa) {
    dispatch_float!(feed.spec().dtype, T => {
        // SAFETY: the rows are of the feed's type; the device checked the instruction set.
        unsafe { feed.advance::<T>(rows, end, isa) }
    });
}

impl<'a> ChainRows<'a> {
    /// Bytes of scratch for rows of an image of shape `shape`, of type `dtype`.
    pub(super) fn scratch(schedule: &TileCode, shape: Shape, dtype: DType) -> usize {
        let feeds = schedule.feeds.iter().map(|f| {
            let rows = Feed::scratch(f, &schedule.row_stages(f), shape.width, 1, shape.height) * f.dtype.size();
            let FilterSource::Chain(c) = f.source else { return rows };
            rows + ChainRows::scratch(&schedule.chains[c], shape, f.dtype)
        });
        row_bytes(shape.width, dtype) + schedule.slots * slot_bytes(schedule, PIECE) + feeds.sum::<usize>()
    }

    /// The rows of plane `channel` of the image of `schedule` over `inputs`, restricted to columns `cols`. `geometry`
    /// is the image's shape and type (its window is ignored); `scratch` has the size given by [`ChainRows::scratch`].
    pub(super) fn new(
        schedule: &'a TileCode,
        inputs: &'a [ExpressionInput<'a>],
        geometry: Geometry,
        (channel, cols): (usize, Range<usize>),
        scratch: *mut u8,
        isa: Isa,
    ) -> ChainRows<'a> {
        let read = schedule.instructions.iter().flat_map(|s| match &s.operation {
            TileOperation::Run(_, _, _, args) => args.as_slice(),
            _ => &[],
        });
        let held = read.filter_map(|p| match p {
            ValueStorage::Plane(i, _) => Some(inputs[*i].rows),
            ValueStorage::Level(l) => Some(inputs[schedule.levels[*l].input].rows),
            _ => None,
        });
        let window = match held.reduce(Window::union) {
            _ if !schedule.feeds.is_empty() => Window::new(0, 0),
            window => window.unwrap_or(Window::whole(geometry.shape.height)),
        };
        let slot_bytes = slot_bytes(schedule, PIECE);
        let expression = Expression { schedule, inputs, extra_outputs: &[], shape: geometry.shape, slot_bytes, isa };
        let tables = vec![Vec::new(); schedule.groups.len()];
        ChainRows { expression, channel, cols, geometry, window, scratch, feeds: Vec::new(), next: None, tables }
    }

    /// Rows beyond the image that can be computed like rows inside.
    pub(super) fn window(&self) -> Window {
        self.window
    }

    /// Restarts the feeds at row `y`.
    fn begin(&mut self, y: isize) {
        let Expression { schedule, inputs, slot_bytes, isa, .. } = self.expression;
        let Shape { height, width, .. } = self.geometry.shape;
        let before = row_bytes(width, self.geometry.dtype) + schedule.slots * slot_bytes;
        let mut at = self.scratch.wrapping_add(before);
        self.feeds.clear();
        for spec in &schedule.feeds {
            let passes = schedule.row_stages(spec);
            let bytes = Feed::scratch(spec, &passes, width, 1, height) * spec.dtype.size();
            let feed = Feed::new(spec, passes, self.cols.clone(), (height, width), y, 1, at);
            at = at.wrapping_add(bytes);
            let rows = if let FilterSource::Chain(c) = spec.source {
                let geometry = Geometry { dtype: spec.dtype, ..self.geometry };
                let chain = &schedule.chains[c];
                let rows = ChainRows::new(chain, inputs, geometry, (self.channel, feed.columns()), at, isa);
                at = at.wrapping_add(ChainRows::scratch(chain, geometry.shape, spec.dtype));
                Some(rows)
            } else {
                None
            };
            self.feeds.push((feed, rows));
        }
    }

    /// Advances the feeds to the rows that the filters read around row `y`.
    fn feed(&mut self, y: isize) {
        if self.next != Some(y) {
            self.begin(y);
        }
        self.next = Some(y + 1);
        let Expression { schedule, inputs, isa, .. } = self.expression;
        for (feed, rows) in &mut self.feeds {
            match (rows, feed.spec().source) {
                (Some(rows), _) => advance(feed, rows, y + 1, isa),
                (None, FilterSource::Input(i)) => dispatch_float!(feed.spec().dtype, T => {
                    // SAFETY: as in `advance`.
                    unsafe { feed.advance(&mut Unrolled(inputs[i].plane::<T>(self.channel)), y + 1, isa) }
                }),
                (None, _) => debug_assert!(false, "a feed reads an image or a chain"),
            }
        }
        for (group, table) in schedule.groups.iter().zip(&mut self.tables) {
            let (feed, _) = &self.feeds[group.feed];
            let read = Window::new(y, y + 1).grown(group.reach.up, group.reach.down);
            let x = self.cols.start.cast_signed() - group.reach.left.cast_signed();
            table.clear();
            dispatch_float!(feed.spec().dtype, T => {
                let row = |y| feed.at::<T>(None, Window::new(0, 0), group.part, y, x).cast::<u8>();
                table.extend((read.start..read.end).map(row));
            });
        }
    }

    /// Computes row `y`.
    fn compute(&mut self, y: isize, cols: Range<usize>) {
        if !self.expression.schedule.feeds.is_empty() {
            debug_assert_eq!(cols, self.cols, "columns that the feeds do not have");
            self.feed(y);
        }
        let (width, dtype) = (self.geometry.shape.width, self.geometry.dtype);
        let slots = self.scratch.wrapping_add(row_bytes(width, dtype));
        for start in cols.clone().step_by(PIECE) {
            let spot = EvaluationTile {
                rows: Window::new(y, y + 1),
                cols: start..cols.end.min(start + PIECE),
                channel: self.channel,
                slots,
                out: self.scratch.wrapping_add(start * dtype.size()),
                stride: width,
            };
            for step in &self.expression.schedule.instructions {
                match &step.operation {
                    TileOperation::Run(op, operand, result, args) => {
                        self.expression.run(*op, (*operand, *result), args, step.targets[0], &spot);
                    }
                    TileOperation::Index(axis, dtype) => self.expression.index(*axis, *dtype, step.targets[0], &spot),
                    TileOperation::Group(g) => {
                        self.expression.group(*g, step, &spot, &self.tables[*g], start - self.cols.start)
                    }
                    TileOperation::Repeat(i, still, dtype) => {
                        self.expression.repeat((*i, *still, *dtype), step.targets[0], &spot);
                    }
                    TileOperation::Leaf(_)
                    | TileOperation::Split(..)
                    | TileOperation::Sample(..)
                    | TileOperation::Join(..) => {
                        debug_assert!(false, "a chain has linear filters, shifts and pixel operations")
                    }
                }
            }
        }
    }
}

impl<T: Pixel> RowSource<T> for ChainRows<'_> {
    fn resolve(&self, y: isize, border: Border) -> Option<isize> {
        plane::resolve(y, border, self.geometry.shape.height, self.window)
    }

    fn row(&mut self, y: isize, cols: Range<usize>) -> &[T] {
        debug_assert_eq!(T::DTYPE, self.geometry.dtype);
        self.compute(y, cols);
        // SAFETY: the scratch begins with a row; bytes of it that have not been computed are
        // initialised memory.
        unsafe { std::slice::from_raw_parts(self.scratch.cast_const().cast::<T>(), self.geometry.shape.width) }
    }
}

fn row_bytes(width: usize, dtype: DType) -> usize {
    (width * dtype.size()).next_multiple_of(64) + 64
}
