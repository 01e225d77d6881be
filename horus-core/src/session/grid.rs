//! The place of an image's pixels in the picture that it was made from: for files that say where on
//! the earth that is.

use std::path::Path;
use std::sync::Arc;

use super::Handle;
use crate::dtype::DType;
use crate::ir::graph::Op;
use crate::shape::Shape;
use horus_base::placed::Placed;
use horus_files::files::{Draft, Georeference};

/// The pixels of a value, on the rank that read the picture.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    of: Arc<Picture>,
    /// `None` if an operation lost it.
    placed: Option<Placed>,
}

#[derive(Debug, PartialEq)]
struct Picture {
    reference: Georeference,
    dtype: DType,
}

impl Grid {
    pub(crate) fn of(reference: Georeference, dtype: DType) -> Grid {
        Grid { of: Arc::new(Picture { reference, dtype }), placed: Some(Placed::default()) }
    }

    /// That of the result of an operation: of its inputs, where they agree.
    pub(super) fn after(op: &Op, inputs: &[&Handle], shape: Shape) -> Option<Grid> {
        // A number, a row or a column repeated is a number beside others.
        if matches!(op, Op::Warp(map, ..) if map.repeats()) {
            return None;
        }
        let mut all: Option<Grid> = None;
        for (i, input) in inputs.iter().enumerate() {
            let Some(grid) = &input.grid else { continue };
            let (from, one) = (input.shape, input.shape.height == 1 || input.shape.width == 1);
            if matches!(op, Op::Pixel(..)) && one && (from.height, from.width) != (shape.height, shape.width) {
                continue; // a number, a row or a column
            }
            let moved = op.placed(i, from, shape).and_then(|next| Some(grid.placed?.then(&next)));
            all = Some(match all {
                None => Grid { of: Arc::clone(&grid.of), placed: moved },
                Some(all) => {
                    let same = all.placed.zip(moved).is_some_and(|(a, b)| a.is(&b));
                    let same = same && (Arc::ptr_eq(&all.of, &grid.of) || all.of.reference == grid.of.reference);
                    Grid { placed: all.placed.filter(|_| same), ..all }
                }
            });
        }
        all
    }

    /// Lets a file say where the picture lies; warns if it cannot.
    pub(crate) fn locate(&self, draft: &mut Draft, path: &Path) {
        let seen = self.placed.and_then(|placed| self.of.reference.seen(&placed));
        let why = match seen {
            Some(seen) if draft.locate(&seen, self.of.dtype) => return,
            Some(_) => "only TIFF files have one",
            None => "its pixels are not those of the file that was read, cut out or resized",
        };
        crate::warn!("{}: it has no georeference, unlike the file that was read: {why}", path.display());
    }
}
