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

mod computed;
mod divide;
mod narrow;
mod reads;
mod restrict;

pub use crate::ops::footprint::Rect;
pub use divide::Division;
pub use narrow::{narrow, spared};
pub use reads::needs;
pub use restrict::{Cut, InPlace, Restricted, Supply, restrict};
