//! The pixels of an image that an operation reads.

use std::fmt;

use super::neighbourhood::Reach;
use horus_base::shape::{Border, Region, Shape, Window};

/// A rectangle of an image: rows and columns, of all its planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rect {
    /// Its rows.
    pub rows: Window,
    /// Its columns.
    pub columns: Window,
}

impl Rect {
    /// All of an image.
    pub const fn whole(shape: Shape) -> Rect {
        Rect { rows: Window::whole(shape.height), columns: Window::whole(shape.width) }
    }

    /// `height` rows from `top` on and `width` columns from `left` on.
    pub const fn at(top: usize, left: usize, height: usize, width: usize) -> Rect {
        Rect {
            rows: Window::new(top.cast_signed(), (top + height).cast_signed()),
            columns: Window::new(left.cast_signed(), (left + width).cast_signed()),
        }
    }

    /// Its first row and its first column.
    pub const fn corner(self) -> [isize; 2] {
        [self.rows.start, self.columns.start]
    }

    /// The same of one that begins inside its image.
    pub const fn inside(self) -> Region {
        let [top, left] = self.corner();
        Region::new(top.unsigned_abs(), left.unsigned_abs(), self.rows.len(), self.columns.len())
    }

    /// The same, its rows and columns counted from the corner of another.
    #[must_use]
    pub fn seen_from(self, other: Rect) -> Rect {
        let from = |w: Window, start: isize| Window::new(w.start - start, w.end - start);
        Rect { rows: from(self.rows, other.rows.start), columns: from(self.columns, other.columns.start) }
    }

    /// Number of pixels of a plane of it.
    pub const fn area(self) -> usize {
        self.rows.len().saturating_mul(self.columns.len())
    }

    /// Whether it has no pixels.
    pub const fn is_empty(self) -> bool {
        self.rows.is_empty() || self.columns.is_empty()
    }

    /// The smallest region that holds both.
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

    /// Whether every pixel of `other` is in it.
    pub const fn covers(self, other: Rect) -> bool {
        other.is_empty() || (self.rows.covers(other.rows) && self.columns.covers(other.columns))
    }

    /// The shape of an image of this region of an image of shape `of`.
    pub const fn shape(self, of: Shape) -> Shape {
        Shape { height: self.rows.len(), width: self.columns.len(), ..of }
    }
}

impl fmt::Display for Rect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rows {}, columns {}", self.rows, self.columns)
    }
}

/// The pixels that an operation asks for, and how those beyond the edges of the image are made up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// Rows and columns; with a border, also beyond the image.
    pub rect: Rect,
    /// Border mode of a filter; `None` of an operation that reads inside its image.
    pub border: Option<Border>,
}

impl Reading {
    /// The pixels of a rectangle, as far as the image has them.
    pub const fn inside(rect: Rect) -> Reading {
        Reading { rect, border: None }
    }

    /// All pixels.
    pub const fn whole(of: Shape) -> Reading {
        Reading::inside(Rect::whole(of))
    }

    /// The pixels of `need` and those around them.
    pub fn around(need: Rect, reach: Reach, border: Border) -> Reading {
        let rows = need.rows.grown(reach.up, reach.down);
        Reading { rect: Rect { rows, columns: need.columns.grown(reach.left, reach.right) }, border: Some(border) }
    }

    /// The smallest range of rows that holds those read of an image of `height` rows.
    pub fn rows(&self, height: usize) -> Window {
        self.border.map_or(self.rect.rows, |border| mapped(border, self.rect.rows, height)).clipped(height)
    }

    /// The part of an image of shape `of` that must be there so that reading it with the border gives what the whole gives.
    #[must_use]
    pub fn kept(&self, of: Shape) -> Rect {
        let Some(border) = self.border else { return self.rect };
        Rect { rows: kept(border, self.rect.rows, of.height), columns: kept(border, self.rect.columns, of.width) }
    }
}

/// How a kernel reads one of its inputs: what the planner must make valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The rows it computes, and `reach` beyond; `wrap` if rows beyond the image are read periodically.
    Rows {
        /// Rows beyond those computed.
        reach: Reach,
        /// Whether some filter has [`Border::Wrap`].
        wrap: bool,
    },
    /// Rows that depend on where the output row is: see [`Reading`].
    Footprint,
    /// All rows, everywhere.
    Whole,
}

impl Access {
    /// The rows it computes.
    pub const IN_PLACE: Access = Access::Rows { reach: Reach::NONE, wrap: false };

    /// The rows it computes and those that a filter reads around them.
    pub fn around(reach: Reach, border: Border) -> Access {
        Access::Rows { reach: both_ways(reach, border), wrap: border == Border::Wrap }
    }
}

/// How far a strip must reach: what is read above an image that is mirrored lies below its first row.
pub(crate) fn both_ways(reach: Reach, border: Border) -> Reach {
    let rows = reach.up.max(reach.down);
    match border {
        Border::Reflect | Border::Reflect101 => Reach { up: rows, down: rows, ..reach },
        _ => reach,
    }
}

/// The pixels of a line of `height` that a window, read with `border`, touches: the smallest range that holds them.
fn mapped(border: Border, window: Window, height: usize) -> Window {
    let inside = window.clipped(height);
    if inside == window || matches!(border, Border::Constant(_)) || height == 0 {
        return inside;
    }
    // What is read goes up and down through the image, or begins anew, at multiples of `turn`, and is monotonic between
    // them (everywhere, where the edge is repeated). So the ends and the first turns tell all: two turns are a passage
    // through the whole image.
    let turn = match border {
        Border::Reflect101 => height - 1,
        _ => height,
    };
    let turn = turn.max(1).cast_signed();
    let Window { start, end } = window;
    let last = end - 1;
    // From the start to the first turn at or after it.
    let ahead = (turn - start.rem_euclid(turn)) % turn;
    let first = start.checked_add(ahead).filter(|t| *t < end);
    let second = first.and_then(|t| t.checked_add(turn)).filter(|t| *t < end);
    let turns = [first, second].into_iter().flatten().flat_map(|t| [t.saturating_sub(1), t]);
    let read = turns.filter(|y| window.contains(*y)).chain([start, last]).filter_map(|y| border.map(y, height));
    read.fold(inside, |w, y| w.union(Window::new(y.cast_signed(), y.cast_signed() + 1)))
}

/// The pixels of a line of `n` that must be there so that reading `window` with `border` gives what it gives of the whole line: those
/// that are read, and the edges beyond which something is read, so that the edge mode finds them. All of them where it goes round,
/// or back and forth.
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
        Border::Wrap => whole,
        Border::Replicate => {
            let first = if before { Window::new(0, 1) } else { inside };
            let end = if after { Window::new(len - 1, len) } else { inside };
            inside.union(first).union(end)
        }
        // Turned once, so that only the edge at which it is turned matters.
        Border::Reflect | Border::Reflect101 if window.start > -len && last < 2 * len - 1 => {
            let turned = |i: isize| border.map(i, n).map_or(0, usize::cast_signed);
            let first = if before { Window::new(0, turned(window.start) + 1) } else { inside };
            let end = if after { Window::new(turned(last), len) } else { inside };
            inside.union(first).union(end)
        }
        Border::Reflect | Border::Reflect101 => whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BORDERS: [Border; 5] =
        [Border::Reflect101, Border::Reflect, Border::Replicate, Border::Wrap, Border::Constant(0.0)];

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
                            // Nothing of the line may be read at all.
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

    /// The smallest range of rows that holds all of `read`.
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
