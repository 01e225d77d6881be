//! Results that each rank takes by itself: the rows that it has, up to whole chunks of a file.

use std::sync::Arc;

use crate::device::Geometry;
use crate::error::{DeviceError, Result};
use crate::execute::Delivered;
use crate::host::StridedCopy;
use crate::host::buffer::HostBuffer;
use crate::ir::graph::NodeId;
use crate::plan::state::Placement;
use crate::region::Rect;
use crate::session::engine::run::ProgramRun;
use crate::session::{Session, SessionState};
use crate::shape::Window;

/// Rows of a result that this rank has for the file, in the coordinates of the image.
#[derive(Debug)]
pub(crate) struct RankRows {
    pub(crate) rows: Window,
    pub(crate) pixels: Arc<HostBuffer>,
}

/// Rows of a result on the hosts of all ranks.
#[derive(Clone, Debug)]
pub(crate) struct RankStrips {
    /// Of this rank, with its halo.
    pub(crate) geometry: Geometry,
    /// Rows that each rank takes.
    strips: Vec<Window>,
}

/// Pixels of some rows and columns of an image.
#[derive(Clone, Copy)]
struct Rows {
    /// Rows and columns in memory.
    held: Rect,
    planes: usize,
    /// Bytes of a pixel.
    element: usize,
}

impl Rows {
    fn bytes(&self) -> usize {
        self.held.area() * self.planes * self.element
    }

    /// Copies of a part of these pixels to memory of its size, plane by plane.
    fn pieces(&self, part: Rect) -> Vec<StridedCopy> {
        let [top, left] = part.seen_from(self.held).corner().map(isize::unsigned_abs);
        let (row, stride) = (part.columns.len() * self.element, self.held.columns.len() * self.element);
        let piece = |plane: usize| StridedCopy {
            from: (plane * self.held.rows.len() + top) * stride + left * self.element,
            to: plane * part.rows.len() * row,
            bytes: row,
            rows: part.rows.len(),
            from_stride: stride,
            to_stride: row,
        };
        (0..self.planes).map(piece).collect()
    }
}

/// Windows of all ranks, moved so that they consist of whole chunks of `rows` rows of a region `all`, which does. Rank
/// 0 takes all rows of a region that does not.
fn in_chunks(strips: &[Window], all: Window, rows: Option<usize>) -> Vec<Window> {
    let (mut end, mut start) = (all.start, all.start);
    let Some(chunk) = rows.map(|rows| rows.max(1).cast_signed()) else {
        return (0..strips.len()).map(|rank| if rank == 0 { all } else { Window::new(all.end, all.end) }).collect();
    };
    let moved = |strip: &Window| {
        end = if strip.is_empty() { end } else { end.max(strip.end) };
        let nearest = (end + chunk / 2).div_euclid(chunk) * chunk;
        let until = if end == all.end { end } else { nearest.clamp(start, all.end) };
        let window = Window::new(start, until);
        start = until;
        window
    };
    strips.iter().map(moved).collect()
}

impl Session {
    /// The rows of a result that each rank has after a run.
    pub(crate) fn distribution_of(&self, state: &SessionState, made: &ProgramRun, node: NodeId) -> Option<RankStrips> {
        let named = || made.names[node.0].and_then(|value| state.images.in_memory.get(&value));
        let image = made.images.get(node.0).and_then(Option::as_ref).or_else(named)?;
        let height = image.geometry.shape.height;
        let strip = |rank: usize| match image.state.placement {
            Placement::Strips(_) if rank < made.partition.ranks() => made.partition.strip(rank, height),
            Placement::On(owner) if rank == owner => Window::whole(height),
            Placement::Replicated if rank == 0 => Window::whole(height),
            _ => Window::new(0, 0),
        };
        Some(RankStrips { geometry: image.geometry, strips: (0..self.ranks()).map(strip).collect() })
    }

    /// The rows of a result that this rank takes: of the requested part of the computed rectangle, in whole chunks of
    /// `chunk` rows, or on rank 0 all. Collective.
    pub(crate) fn own_rows(
        &self,
        strips: &RankStrips,
        delivered: Option<Delivered>,
        (asked, has): (Rect, Rect),
        chunk: Option<usize>,
    ) -> Result<RankRows> {
        let Geometry { shape, dtype, window } = strips.geometry;
        let seen = |rows: Window| Window::new(rows.start + has.rows.start, rows.end + has.rows.start);
        let own: Vec<Window> = strips.strips.iter().map(|strip| seen(*strip).intersect(asked.rows)).collect();
        let taken = in_chunks(&own, asked.rows, chunk);
        let here = self.rank();
        let pixels = match delivered.filter(|_| !own[here].is_empty()) {
            Some(Delivered::OnHost(pixels)) => pixels,
            Some(Delivered::InFlight(landing)) => landing.wait().map_err(|e| self.not_on_host(e))?,
            None => HostBuffer::zeroed(0),
        };
        let (planes, element) = (shape.planes(), shape.pixel_bytes(dtype));
        let rows_of = |rows: Window| Rows { held: Rect { rows, ..asked }, planes, element };
        let held = Rows { held: Rect { rows: seen(window), ..has }, planes, element };
        let is_in_place =
            (0..own.len()).all(|rank| own[rank].is_empty() && taken[rank].is_empty() || own[rank] == taken[rank]);
        if is_in_place && held.held == rows_of(taken[here]).held {
            return Ok(RankRows { rows: taken[here], pixels: Arc::new(pixels) });
        }
        let room = |rows: Window| self.0.pool.try_allocate_unbounded(rows_of(rows).bytes());
        let shared = |from: usize, to: usize| Some(own[from].intersect(taken[to])).filter(|rows| !rows.is_empty());
        let cut = |rows: Window| -> Result<HostBuffer, DeviceError> {
            let mut part = room(rows)?;
            self.workers().copy_pieces(pixels.bytes(), part.bytes_mut(), &held.pieces(rows_of(rows).held));
            Ok(part)
        };
        let others = || (0..self.ranks()).filter(|rank| *rank != here);
        let mut result = room(taken[here]).map_err(|e| self.not_on_host(e))?;
        let into = rows_of(taken[here]);
        let mut put = |rows: Window, from: &HostBuffer| {
            let pieces: Vec<_> = into.pieces(rows_of(rows).held).into_iter().map(StridedCopy::back).collect();
            self.workers().copy_pieces(from.bytes(), result.bytes_mut(), &pieces);
        };
        if let Some(rows) = shared(here, here) {
            put(rows, &cut(rows).map_err(|e| self.not_on_host(e))?);
        }
        if !is_in_place {
            let sends = others().filter_map(|to| Some((to, cut(shared(here, to)?))));
            let sends = sends.map(|(to, part)| Ok((to, part?))).collect::<Result<Vec<_>, DeviceError>>();
            let receives = others().filter_map(|from| Some((from, shared(from, here)?)));
            let receives = receives.map(|(from, rows)| Ok((from, rows, room(rows)?)));
            let receives = receives.collect::<Result<Vec<_>, DeviceError>>();
            let (sends, mut receives) =
                (sends.map_err(|e| self.not_on_host(e))?, receives.map_err(|e| self.not_on_host(e))?);
            let out: Vec<_> = sends.iter().map(|(to, part)| (*to, part.bytes())).collect();
            let mut into: Vec<_> = receives.iter_mut().map(|(from, _, part)| (*from, part.bytes_mut())).collect();
            let moved = self.0.comm.exchange(&out, &mut into);
            moved.map_err(|e| e.during(here, "moving rows to the ranks that write them"))?;
            receives.iter().for_each(|(_, rows, part)| put(*rows, part));
        }
        Ok(RankRows { rows: taken[here], pixels: Arc::new(result) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_become_whole_chunks() {
        let windows = |ends: &[isize]| {
            let starts = std::iter::once(0).chain(ends.iter().copied());
            starts.zip(ends).map(|(start, end)| Window::new(start, *end)).collect::<Vec<_>>()
        };
        let moved = |ends: &[isize], rows| {
            let all = Window::new(0, *ends.last().unwrap());
            in_chunks(&windows(ends), all, Some(rows)).iter().map(|w| w.end).collect::<Vec<_>>()
        };
        assert_eq!(moved(&[25, 50, 75, 100], 1), [25, 50, 75, 100]);
        assert_eq!(moved(&[25, 50, 75, 100], 16), [32, 48, 80, 100]);
        assert_eq!(moved(&[25, 50, 75, 100], 200), [0, 0, 0, 100]);
        assert_eq!(moved(&[100, 100, 100], 16), [100, 100, 100]);
        // Rows of rank 0 alone, in a region further down.
        let all = Window::new(64, 100);
        let root = [all, Window::new(0, 0), Window::new(0, 0)];
        let rest = Window::new(100, 100);
        assert_eq!(in_chunks(&root, all, Some(32)), [all, rest, rest]);
        assert_eq!(in_chunks(&[rest, all], all, None), [all, rest]);
    }
}
