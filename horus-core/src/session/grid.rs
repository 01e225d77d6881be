//! The place of an image's pixels in the picture that it was made from: for files that say where on
//! the earth that is and what values stand for, and for the size of pixels.

use std::path::Path;
use std::sync::Arc;

use super::Handle;
use crate::dtype::DType;
use crate::ir::graph::Op;
use crate::ops::Whole;
use crate::ops::geometric::Interpolation;
use crate::shape::Shape;
use horus_base::lengths::PixelSize;
use horus_base::placed::Placed;
use horus_files::files::{Draft, Georeference};

/// The pixels of a value in the picture that they were made from.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    of: Arc<Picture>,
    /// `None` if an operation lost it.
    placed: Option<Placed>,
    /// The levels are as far apart as those of the picture.
    levels: bool,
    /// All values are those of pixels of the picture.
    picked: bool,
    /// All pictures had the same georeference. Only rank 0 knows, so that nothing but files may
    /// depend on it.
    agreed: bool,
}

#[derive(Debug)]
struct Picture {
    /// On the rank that read it.
    reference: Option<Georeference>,
    pixel: Option<PixelSize>,
    dtype: DType,
}

impl Grid {
    /// That of a picture; `None` if nothing is known of it.
    pub(crate) fn of(reference: Option<Georeference>, pixel: Option<PixelSize>, dtype: DType) -> Option<Grid> {
        let known = reference.is_some() || pixel.is_some();
        known.then(|| Grid {
            of: Arc::new(Picture { reference, pixel, dtype }),
            placed: Some(Placed::default()),
            levels: true,
            picked: true,
            agreed: true,
        })
    }

    /// With another size of pixels.
    pub(crate) fn with_pixel(grid: Option<&Grid>, pixel: Option<PixelSize>, dtype: DType) -> Option<Grid> {
        let reference = grid.and_then(Grid::seen);
        let sized = Grid::of(reference, pixel, grid.map_or(dtype, |grid| grid.of.dtype));
        sized.map(|sized| Grid { picked: grid.is_none_or(|grid| grid.picked), ..sized })
    }

    /// The georeference of the pixels, if they have one.
    fn seen(&self) -> Option<Georeference> {
        self.of.reference.as_ref().filter(|_| self.agreed)?.seen(&self.placed?)
    }

    /// The size of the pixels, if it is known.
    pub(crate) fn pixel(&self) -> Option<PixelSize> {
        let size = self.of.pixel?.seen(&self.placed?)?;
        Some(if self.levels { size } else { PixelSize { levels: None, ..size } })
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
            let apart = match op {
                Op::Planes(map) => shape.depth == 1 || map.step.abs() == 1,
                _ => from.depth == shape.depth,
            };
            let levels = grid.levels && apart;
            let picked = grid.picked && picks(op);
            all = Some(match all {
                None => Grid { of: Arc::clone(&grid.of), placed: moved, levels, picked, agreed: grid.agreed },
                Some(all) => {
                    // A file that says nothing contradicts nothing.
                    let differ = |a: &Picture, b: &Picture| {
                        a.reference.is_some() && b.reference.is_some() && a.reference != b.reference
                    };
                    let sizes = all.of.pixel.zip(grid.of.pixel).is_none_or(|(a, b)| a == b);
                    let same = sizes && all.placed.zip(moved).is_some_and(|(a, b)| a.is(&b));
                    let agreed = Arc::ptr_eq(&all.of, &grid.of) || !differ(&all.of, &grid.of);
                    let says = |told: &Picture| (told.reference.is_some(), told.pixel.is_some());
                    let of = if says(&grid.of) > says(&all.of) { Arc::clone(&grid.of) } else { Arc::clone(&all.of) };
                    Grid {
                        of,
                        placed: all.placed.filter(|_| same),
                        levels: all.levels && levels,
                        picked: all.picked && picked,
                        agreed: all.agreed && grid.agreed && agreed,
                    }
                }
            });
        }
        all
    }

    /// The pixels of smaller sizes of the values, of which samples of type `stored` are saved; on the rank that read
    /// the picture.
    pub(crate) fn reduced(&self, stored: DType) -> Reduced {
        let reference = self.of.reference.as_ref().filter(|_| self.agreed && stored == self.of.dtype);
        match reference {
            Some(reference) if self.picked && !reference.colours().is_empty() => Reduced::Picked,
            Some(reference) => reference.missing().map_or(Reduced::Means, Reduced::MeansBut),
            None => Reduced::Means,
        }
    }

    /// Lets a file say where the picture lies and what its values stand for; warns if it cannot.
    pub(crate) fn locate(&self, draft: &mut Draft, path: &Path) {
        let Some(reference) = &self.of.reference else { return };
        let (lost, why) = match self.seen() {
            Some(seen) => (draft.locate(&seen, self.of.dtype, self.picked), "only TIFF files have one"),
            None if reference.is_placed() => {
                (vec!["georeference"], "its pixels are not those of the file that was read, cut out or resized")
            }
            None => return,
        };
        for lost in lost {
            crate::warn!("{}: it has no {lost}, unlike the file that was read: {why}", path.display());
        }
    }
}

/// True if an operation picks pixels of its inputs, and changes no value, apart from a constant beyond the border.
fn picks(op: &Op) -> bool {
    match op {
        Op::Planes(_) | Op::Flip(_) | Op::Warp(_, Interpolation::Nearest, _) => true,
        Op::Whole(operation) => matches!(operation, Whole::Transpose(_)),
        _ => false,
    }
}

/// Pixels of smaller sizes of an image.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Reduced {
    /// Means of its pixels.
    Means,
    /// Means of those that are not this value, which stands for missing ones.
    MeansBut(f64),
    /// Every other one, of indices that have no means.
    Picked,
}
