//! The place of an image's pixels in the picture that it was made from: for files that say where on
//! the earth that is and what values stand for, and for the size of pixels; the names of its channels, and
//! which is alpha.

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
use horus_files::files::{Alpha, Draft, Georeference, Metadata, tell_once};

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
    /// No other picture took part.
    alone: bool,
    /// Names of channels, if some are known, as rank 0 knows them; as many as channels, or none that are right.
    names: Option<Arc<[String]>>,
    /// The last channel, or the only one of those of a picture, is alpha.
    alpha: Option<Alpha>,
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
    pub(crate) fn of(said: Metadata, dtype: DType) -> Option<Grid> {
        let Metadata { reference, pixel, names, alpha } = said;
        let known = reference.is_some() || pixel.is_some() || !names.is_empty() || alpha.is_some();
        known.then(|| Grid {
            of: Arc::new(Picture { reference, pixel, dtype }),
            placed: Some(Placed::default()),
            levels: true,
            picked: true,
            agreed: true,
            alone: true,
            names: (!names.is_empty()).then(|| names.into()),
            alpha,
        })
    }

    /// With another size of pixels.
    pub(crate) fn with_pixel(grid: Option<&Grid>, pixel: Option<PixelSize>, dtype: DType) -> Option<Grid> {
        let (names, alpha) = (Grid::names(grid).to_vec(), Grid::alpha(grid));
        let said = Metadata { reference: grid.and_then(Grid::seen), pixel, names, alpha };
        let sized = Grid::of(said, grid.map_or(dtype, |grid| grid.of.dtype));
        sized.map(|sized| Grid { picked: grid.is_none_or(|grid| grid.picked), ..sized })
    }

    /// With names of channels.
    pub(crate) fn with_names(grid: Option<&Grid>, names: Vec<String>, dtype: DType) -> Option<Grid> {
        match grid {
            Some(grid) => Some(Grid { names: (!names.is_empty()).then(|| names.into()), ..grid.clone() }),
            None => Grid::of(Metadata { names, ..Metadata::default() }, dtype),
        }
    }

    /// With a last channel that is alpha, or is not.
    pub(crate) fn with_alpha(grid: Option<&Grid>, alpha: Option<Alpha>, dtype: DType) -> Option<Grid> {
        match grid {
            Some(grid) => Some(Grid { alpha, ..grid.clone() }),
            None => Grid::of(Metadata { alpha, ..Metadata::default() }, dtype),
        }
    }

    /// What the last channel is as alpha.
    pub(crate) fn alpha(grid: Option<&Grid>) -> Option<Alpha> {
        grid?.alpha
    }

    /// The names of channels, if they are known.
    pub(crate) fn names(grid: Option<&Grid>) -> &[String] {
        grid.and_then(|grid| grid.names.as_deref()).unwrap_or_default()
    }

    /// True if its picture has a georeference.
    pub(crate) fn is_referenced(&self) -> bool {
        self.of.reference.is_some()
    }

    /// True if all that this knows of a place on the earth and of the meaning of values is what is known of `picture`.
    pub(crate) fn is_of(&self, picture: &Grid) -> bool {
        self.alone && Arc::ptr_eq(&self.of, &picture.of)
    }

    /// The same pixels of another picture, which has this georeference.
    pub(crate) fn of_another(&self, reference: Option<Georeference>) -> Grid {
        let Picture { pixel, dtype, .. } = *self.of;
        Grid { of: Arc::new(Picture { reference, pixel, dtype }), ..self.clone() }
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
            let names = grid.names.as_ref().and_then(|names| named(op, names, from, shape));
            let Grid { agreed, alone, .. } = *grid;
            all = Some(match all {
                None => {
                    Grid { of: Arc::clone(&grid.of), placed: moved, levels, picked, agreed, alone, names, alpha: None }
                }
                Some(all) => {
                    // A file that says nothing contradicts nothing.
                    let differ = |a: &Picture, b: &Picture| {
                        a.reference.is_some() && b.reference.is_some() && a.reference != b.reference
                    };
                    let sizes = all.of.pixel.zip(grid.of.pixel).is_none_or(|(a, b)| a == b);
                    // Nor does one that says nothing of places, only names.
                    let silent = |of: &Picture| of.reference.is_none() && of.pixel.is_none();
                    let placed = match (silent(&all.of), silent(&grid.of)) {
                        (true, _) => moved,
                        (false, true) => all.placed,
                        _ => all.placed.filter(|_| sizes && all.placed.zip(moved).is_some_and(|(a, b)| a.is(&b))),
                    };
                    let one = Arc::ptr_eq(&all.of, &grid.of);
                    let together = one || !differ(&all.of, &grid.of);
                    let says = |told: &Picture| (told.reference.is_some(), told.pixel.is_some());
                    let of = if says(&grid.of) > says(&all.of) { Arc::clone(&grid.of) } else { Arc::clone(&all.of) };
                    Grid {
                        of,
                        placed,
                        levels: all.levels && levels,
                        picked: all.picked && picked,
                        agreed: all.agreed && agreed && together,
                        alone: all.alone && alone && one,
                        names: match (all.names, names) {
                            (Some(a), Some(b)) if a != b => Some([].into()),
                            (a, b) => a.or(b),
                        },
                        alpha: None,
                    }
                }
            });
        }
        if matches!(op, Op::Whole(Whole::Merge(_)))
            && let Some(all) = all.as_mut().filter(|_| inputs.iter().all(|input| input.shape.depth == shape.depth))
        {
            let of = |input: &&Handle| Grid::names(input.grid.as_ref()).to_vec();
            let names: Arc<[String]> = inputs.iter().flat_map(of).collect();
            all.names = (!names.is_empty()).then_some(names);
        }
        all.map(|all| Grid { alpha: alpha(op, inputs, shape), ..all })
    }

    /// The pixels of smaller sizes of the values, of which samples of type `stored` are saved; on the rank that read
    /// the picture.
    pub(crate) fn reduced(&self, stored: DType) -> Reduced {
        let reference = self.of.reference.as_ref().filter(|_| self.agreed && stored == self.of.dtype);
        match reference {
            Some(reference) if self.picked && !reference.colours().is_empty() => Reduced::Mode,
            Some(reference) => reference.missing().map_or(Reduced::Means, Reduced::MeansBut),
            None => Reduced::Means,
        }
    }

    /// Lets a file say where the picture lies and what its values stand for; warns, once, if it cannot.
    fn locate(&self, draft: &mut Draft, path: &Path) {
        let Some(reference) = &self.of.reference else { return };
        let (lost, why) = match self.seen() {
            Some(seen) => (draft.locate(&seen, self.of.dtype, self.picked), "only TIFF files have one"),
            None if reference.is_placed() => {
                (vec!["georeference"], "its pixels are not those of the file that was read, cut out or resized")
            }
            None => return,
        };
        for lost in lost {
            tell_once(lost, || format!("{}: it has no {lost}, unlike the file that was read: {why}", path.display()));
        }
    }

    /// Lets the file at a path say what is known of an image beside its pixels, if it can: on the rank that writes it, and
    /// last.
    pub(crate) fn describe(grid: Option<&Grid>, draft: &mut Draft, path: &Path) {
        if let Some(grid) = grid {
            draft.pixel = grid.pixel();
            draft.names = Grid::names(Some(grid)).to_vec();
            draft.alpha = grid.alpha;
            grid.locate(draft, path);
        }
        draft.describe(path);
    }
}

/// Names of the channels of a result of shape `to`, from those of an input of shape `from`.
fn named(op: &Op, names: &Arc<[String]>, from: Shape, to: Shape) -> Option<Arc<[String]>> {
    let same = from.channels == to.channels;
    match op {
        // One that is repeated has no name beside others.
        Op::Planes(map) if from.channels > 1 && (!same || map.channel.is_some()) => {
            let read = |c| map.at(c).and_then(|plane| names.get(plane % from.channels).cloned());
            (0..to.channels).map(read).collect()
        }
        _ => same.then(|| Arc::clone(names)),
    }
}

/// What the last channel of a result is as alpha: that of inputs of as many channels, or the last of those that are put
/// together.
fn alpha(op: &Op, inputs: &[&Handle], to: Shape) -> Option<Alpha> {
    let of = |input: &Handle| Grid::alpha(input.grid.as_ref());
    match (op, inputs) {
        (Op::Whole(Whole::Merge(_)), [.., last]) if inputs.iter().all(|input| input.shape.depth == to.depth) => {
            of(last)
        }
        (Op::Planes(map), [input]) => {
            let from = input.shape.channels;
            // One that is repeated is a factor of colours.
            let last = map.at(to.channels - 1).is_some_and(|plane| plane % from == from - 1);
            of(input).filter(|_| last && (from > 1 || to.channels == 1))
        }
        _ => {
            let mut alike = inputs.iter().filter(|input| input.shape.channels == to.channels).map(|input| of(input));
            match to.channels {
                // A colour times alpha is a colour.
                1 => alike.next()?.filter(|first| alike.all(|other| other == Some(*first))),
                // An input without may be a number or a channel that is repeated.
                _ => alike.flatten().next(),
            }
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
    /// The most frequent, of values that have no means.
    Mode,
    /// The first of four.
    Nearest,
}
