//! The regions that operations read.

use std::fmt;

use super::neighbourhood::Reach;
use horus_base::shape::{Border, Region, Shape, Window};

/// A rectangle of an image: rows and columns, in all planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rect {
    /// Row range.
    pub rows: Window,
    /// Column range.
    pub columns: Window,
}

impl Rect {
    /// The whole image.
    pub const fn whole(shape: Shape) -> Rect {
        Rect { rows: Window::whole(shape.height), columns: Window::whole(shape.width) }
    }

    /// `height` rows from `top` and `width` columns from `left`.
    pub const fn at(top: usize, left: usize, height: usize, width: usize) -> Rect {
        Rect {
            rows: Window::new(top.cast_signed(), (top + height).cast_signed()),
            columns: Window::new(left.cast_signed(), (left + width).cast_signed()),
        }
    }

    /// First row and first column.
    pub const fn corner(self) -> [isize; 2] {
        [self.rows.start, self.columns.start]
    }

    /// The same rectangle as a region, if it starts inside the image.
    pub const fn inside(self) -> Region {
        let [top, left] = self.corner();
        Region::new(top.unsigned_abs(), left.unsigned_abs(), self.rows.len(), self.columns.len())
    }

    /// The same rectangle, relative to the corner of `other`.
    #[must_use]
    pub fn seen_from(self, other: Rect) -> Rect {
        let from = |w: Window, start: isize| Window::new(w.start - start, w.end - start);
        Rect { rows: from(self.rows, other.rows.start), columns: from(self.columns, other.columns.start) }
    }

    /// Number of pixels per plane.
    pub const fn area(self) -> usize {
        self.rows.len().saturating_mul(self.columns.len())
    }

    /// Returns `true` if it has no pixels.
    pub const fn is_empty(self) -> bool {
        self.rows.is_empty() || self.columns.is_empty()
    }

    /// The smallest rectangle that contains both.
    #[must_use]
    pub fn hull(self, other: Rect) -> Rect {
        if self.is_empty() {
            return other;
        }
        if other.is_empty() {
            return self;
        }
        Rect { rows: self.rows.union(other.rows), columns: self.columns.union(other.columns) }
    }

    /// Returns `true` if it contains `other`.
    pub const fn covers(self, other: Rect) -> bool {
        other.is_empty() || (self.rows.covers(other.rows) && self.columns.covers(other.columns))
    }

    /// The shape of this rectangle, cropped from an image of shape `of`.
    pub const fn shape(self, of: Shape) -> Shape {
        Shape { height: self.rows.len(), width: self.columns.len(), ..of }
    }
}

impl fmt::Display for Rect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rows {}, columns {}", self.rows, self.columns)
    }
}

/// The pixels that an operation reads, and the border mode for those outside the image.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InputRead {
    /// Rows and columns; with a border, possibly outside the image.
    pub rect: Rect,
    /// Border mode of a filter; `None` if the operation reads only inside its image.
    pub border: Option<Border>,
}

impl InputRead {
    /// The part of a rectangle that lies inside the image.
    pub const fn inside(rect: Rect) -> InputRead {
        InputRead { rect, border: None }
    }

    /// All pixels of the image.
    pub const fn whole(of: Shape) -> InputRead {
        InputRead::inside(Rect::whole(of))
    }

    /// The pixels of `need` and those around them within `reach`.
    pub fn around(need: Rect, reach: Reach, border: Border) -> InputRead {
        let rows = need.rows.grown(reach.up, reach.down);
        InputRead { rect: Rect { rows, columns: need.columns.grown(reach.left, reach.right) }, border: Some(border) }
    }

    /// The smallest row range that contains the rows read of an image of `height` rows.
    pub fn rows(&self, height: usize) -> Window {
        self.border.map_or(self.rect.rows, |border| mapped(border, self.rect.rows, height)).clipped(height)
    }

    /// A part of an image of shape `of` that suffices: reading it with the border gives the same pixels as reading the
    /// whole image.
    #[must_use]
    pub fn sufficient_part(&self, of: Shape) -> Rect {
        let Some(border) = self.border else { return self.rect };
        Rect { rows: kept(border, self.rect.rows, of.height), columns: kept(border, self.rect.columns, of.width) }
    }
}

/// The rows of one input that a kernel reads; the planner must make them valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The computed rows and `reach` beyond them.
    Rows {
        /// Rows beyond the computed ones.
        reach: Reach,
        /// Set if rows outside the image are read periodically: a filter has [`Border::Wrap`].
        wrap: bool,
    },
    /// Rows that depend on the position of the output row: see [`InputRead`].
    Footprint,
    /// All rows, for every output row.
    Whole,
}

impl Access {
    /// The computed rows only.
    pub const IN_PLACE: Access = Access::Rows { reach: Reach::NONE, wrap: false };

    /// The computed rows and the rows that a filter reads around them.
    pub fn around(reach: Reach, border: Border) -> Access {
        Access::Rows { reach: both_ways(reach, border), wrap: border == Border::Wrap }
    }
}

/// The reach of a strip in both directions: a row read above a mirrored image is a row below its first row.
pub(crate) fn both_ways(reach: Reach, border: Border) -> Reach {
    let rows = reach.up.max(reach.down);
    if border.mirror().is_some() { Reach { up: rows, down: rows, ..reach } } else { reach }
}

/// The smallest range of a line of `height` pixels that contains every pixel that a window reads with `border`.
fn mapped(border: Border, window: Window, height: usize) -> Window {
    let inside = window.clipped(height);
    if inside == window || matches!(border, Border::Constant(_)) || height == 0 {
        return inside;
    }
    // Source positions reverse (or restart) at multiples of `turn` and are monotonic in between; with a replicated edge
    // they are monotonic everywhere. The ends and the first turns therefore determine the range: two turns cover the
    // whole image.
    let turn = (height.cast_signed() - 1 + border.mirror().unwrap_or(1)).max(1);
    let Window { start, end } = window;
    let last = end - 1;
    // The distance from the start to the first turn at or after it.
    let ahead = (turn - start.rem_euclid(turn)) % turn;
    let first = start.checked_add(ahead).filter(|t| *t < end);
    let second = first.and_then(|t| t.checked_add(turn)).filter(|t| *t < end);
    let turns = [first, second].into_iter().flatten().flat_map(|t| [t.saturating_sub(1), t]);
    let read = turns.filter(|y| window.contains(*y)).chain([start, last]).filter_map(|y| border.map(y, height));
    read.fold(inside, |w, y| w.union(Window::new(y.cast_signed(), y.cast_signed() + 1)))
}

/// The pixels of a line of `n` that suffice to read `window` with `border`: the pixels read, and each end of the line
/// that the window crosses, so that the border mode applies there. The whole line if positions wrap around or reflect
/// more than once.
fn kept(border: Border, window: Window, n: usize) -> Window {
    let (inside, whole) = (window.clipped(n), Window::whole(n));
    if window.is_empty() {
        return Window::new(0, 0);
    }
    if inside == window {
        return inside;
    }
    let (len, last) = (n.cast_signed(), window.end - 1);
    let (before, after) = (window.start < 0, last >= len);
    match border {
        Border::Constant(_) => inside,
        Border::Replicate => {
            let first = if before { Window::new(0, 1) } else { inside };
            let end = if after { Window::new(len - 1, len) } else { inside };
            inside.union(first).union(end)
        }
        // The line is reflected once: only the crossed end matters.
        _ if border.mirror().is_some() && window.start > -len && last < 2 * len - 1 => {
            let turned = |i: isize| border.map(i, n).map_or(0, usize::cast_signed);
            let first = if before { Window::new(0, turned(window.start) + 1) } else { inside };
            let end = if after { Window::new(turned(last), len) } else { inside };
            inside.union(first).union(end)
        }
        _ => whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BORDERS: [Border; 5] = Border::all(0.0);

    #[test]
    fn what_is_read_of_a_part_is_what_is_read_of_the_whole() {
        let mut cut = 0;
        for border in BORDERS {
            for n in 1..8usize {
                for start in -20..20isize {
                    for end in start + 1..21 {
                        let part = kept(border, Window::new(start, end), n);
                        assert!(Window::whole(n).covers(part));
                        cut += usize::from(part.len() < n);
                        for i in start..end {
                            let whole = border.map(i, n);
                            // No pixel of the line is read, for example with a constant border.
                            let in_part = if part.is_empty() { None } else { border.map(i - part.start, part.len()) };
                            let in_part = in_part.map(|k| k + part.start.cast_unsigned());
                            assert_eq!(in_part, whole, "{border}, {n} pixels, {start}..{end} at {i}: {part}");
                        }
                    }
                }
            }
        }
        assert!(cut > 1000, "{cut}");
    }

    /// The smallest row range that contains all of `read`.
    fn hull(read: impl Iterator<Item = usize>) -> Window {
        read.fold(Window::new(0, 0), |w, y| w.union(Window::new(y.cast_signed(), y.cast_signed() + 1)))
    }

    #[test]
    fn mapped_rows_are_the_smallest_range_of_all_that_is_read() {
        for border in BORDERS {
            for h in 1..7usize {
                for start in -20..20isize {
                    for end in start + 1..21 {
                        let got = mapped(border, Window::new(start, end), h);
                        let want = hull((start..end).filter_map(|y| border.map(y, h)));
                        let same = got == want || (got.is_empty() && want.is_empty());
                        assert!(same, "{border}, height {h}, rows {start}..{end}: {got} instead of {want}");
                    }
                }
            }
        }
    }
}
