//! Regions: a program evaluated for rectangles of its results.
//!
//! A region of a result needs regions of what it is computed from: a filter some rows and columns more, a rotation a
//! footprint, a sum all of it. [`needs`] goes through a recorded program backwards and finds them; [`restrict`] makes of it a program
//! of the same operations on smaller images, whose sources are cut, whose affine maps are moved and whose coordinates begin elsewhere.
//! Every pixel that is needed is computed from the same operands by the same arithmetic, so that its bits are those that it has in the
//! whole; and what comes after (fusion, plans, devices, ranks) knows nothing of regions.
//!
//! A restricted image has *cut edges*, beyond which the whole image goes on. An edge mode makes something up there, and what is
//! computed from it is wrong; but regions reach as far as the pixels that are needed, so no needed pixel is computed from
//! such. At an edge of the whole image, edge modes do what they always do: a region whose pixels read beyond it begins at the
//! edge, and holds all that is mirrored.
//!
//! All of it is a pure function of the program.
//!
//! A program can be evaluated for rectangles of its results (`region/`). Going backwards, each operation says which
//! rectangle of its inputs it reads: a filter some rows and columns more, an affine map a footprint, a reduction
//! all. The program is then rewritten to one of the same operations on smaller images: sources are cut, affine maps
//! moved by whole pixels (in fixed point, so that fractions stay), coordinates begin elsewhere. What lies beyond a
//! *cut* edge is made up by the border and wrong, and never needed, since rectangles reach as far as what is
//! needed; at an edge of the whole image a rectangle that reads beyond it holds the edge and all that is mirrored,
//! and one that goes round is as long as the image. Nodes that read each other pixel by pixel get one rectangle,
//! unless that is twice what one of them needs. Everything after this knows nothing of regions, and gives the bits
//! of the whole. The first pass of the optimiser does it with whole results, so that a crop of an image computes
//! what lies around it; a value that the user holds is not computed whole for it where computing the part again
//! costs little beside it (`region::spared`).

mod axis;
mod computed;
mod divide;
mod narrow;
mod reads;
mod restrict;

use std::fmt;

use horus_base::shape::{Region, Shape, Window};

pub use divide::Division;
pub use narrow::{narrow, spared};
pub use reads::needs;
pub use restrict::{Cut, InPlace, Restricted, Supply, restrict};

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
