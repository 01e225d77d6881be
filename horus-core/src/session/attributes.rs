//! Attributes of an image: the metadata of its files, which results inherit and saved files receive.
//!
//! All rules are here; `docs/design/attributes.md` has them as a table. An operation says in [`Op::relation`] where the
//! pixels of its result are in its inputs. A function of several operations says so with [`Attributes::of_function`].

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::dtype::DType;
use crate::ir::graph::Op;
use crate::ops::Whole;
use crate::ops::geometric::Interpolation;
use crate::session::Handle;
use crate::shape::Shape;
use horus_base::lengths::PixelSize;
use horus_base::position_map::{PositionMap, Relation};
use horus_files::{Alpha, Exif, FileSpec, Georeference, Metadata, StoredScale, UnsupportedMetadata};

/// Attributes of an image. Georeferences, values that depend on them, and names are known only on the rank that reads
/// and writes the files. Pixel sizes and alpha are known on all ranks, because programs depend on them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attributes {
    grid: Fact<OnGrid>,
    spacing: Fact<PixelSpacing>,
    /// Distance of levels.
    levels: Fact<f64>,
    nodata: Fact<Nodata>,
    colours: Fact<Arc<FileColourTable>>,
    /// Pixels are labels or truth values, of this type, which have no means.
    labels: Fact<DType>,
    profile: Fact<ProfileChannels>,
    printed: Fact<PixelSpacing>,
    exif: Fact<ExifNote>,
    texts: Fact<Arc<[(String, String)]>>,
    /// Names of channels: one for each channel, or none.
    names: Fact<Arc<[String]>>,
    /// Kind of alpha of the last channel.
    alpha: Option<Alpha>,
    /// Rows and columns of the tiles of the file.
    tile: Option<(usize, usize)>,
    /// `true` if grids of several pictures were compared, or equal EXIF data or texts of several pictures.
    compared: bool,
}

/// An attribute: unknown, known or lost.
#[derive(Clone, Debug, Default)]
enum Fact<T> {
    /// No file contains it.
    #[default]
    Unknown,
    Known(T),
    /// An input has it, but the result does not.
    Lost(AttributeLoss),
}

/// Operation or function that lost an attribute, and the reason.
#[derive(Clone, Copy, Debug)]
struct AttributeLoss {
    by: &'static str,
    why: LossReason,
}

#[derive(Clone, Copy, Debug)]
enum LossReason {
    /// Attributes of combined images differ.
    Differ,
    /// Pixels, channels or values differ from those of the input.
    Others,
    /// Levels come from several images.
    Stacked,
    /// The result is a mask.
    Mask,
}

/// Position of an image's pixels in the picture of a georeference.
#[derive(Clone, Debug)]
struct OnGrid {
    of: Arc<Georeference>,
    placed: PositionMap,
}

/// Position of an image's pixels in a picture with this pixel size.
#[derive(Clone, Copy, Debug)]
struct PixelSpacing {
    of: PixelSize,
    placed: PositionMap,
}

/// EXIF data of a picture, and how an image's pixels relate to the picture.
#[derive(Clone, Debug)]
struct ExifNote {
    of: Arc<Exif>,
    /// Pixels have moved.
    moved: bool,
    /// Rows and columns have the order and direction of the picture.
    upright: bool,
}

#[derive(Clone, Debug)]
struct Nodata {
    /// Text of the value in the file.
    value: Arc<str>,
    /// Pixel type of the file.
    dtype: DType,
    /// Value of another input, whose missing pixels are no longer marked.
    other: Option<Arc<str>>,
}

#[derive(Debug, PartialEq)]
struct FileColourTable {
    colours: Vec<u16>,
    /// Pixel type of the indices.
    dtype: DType,
}

#[derive(Debug, PartialEq)]
struct FileColourProfile {
    icc: Arc<[u8]>,
    /// Pixel type of the file.
    dtype: DType,
}

/// Colours of an image's channels in a colour profile.
#[derive(Clone, Debug)]
struct ProfileChannels {
    of: Arc<FileColourProfile>,
    /// Index of each channel's colour, `None` for alpha. Without a list, channels have the order of the file.
    channels: Option<Arc<[Option<usize>]>>,
}

impl ProfileChannels {
    /// Number of colours of the profile.
    fn count(&self) -> usize {
        if self.of.icc.get(16..20) == Some(b"GRAY") { 1 } else { 3 }
    }

    fn colour(&self, channel: usize) -> Option<usize> {
        match &self.channels {
            Some(all) => all.get(channel).copied().flatten(),
            None => (channel < self.count()).then_some(channel),
        }
    }

    /// Assigns colours to channels; unknown if no channel has a colour.
    fn with(self, channels: Arc<[Option<usize>]>) -> Fact<ProfileChannels> {
        let any = channels.iter().any(Option::is_some);
        if any { Fact::Known(ProfileChannels { channels: Some(channels), ..self }) } else { Fact::Unknown }
    }
}

impl<T: Clone> Fact<T> {
    fn of(known: Option<T>) -> Fact<T> {
        known.map_or(Fact::Unknown, Fact::Known)
    }

    fn known(&self) -> Option<&T> {
        match self {
            Fact::Known(known) => Some(known),
            _ => None,
        }
    }

    fn lost(&self) -> Option<AttributeLoss> {
        match self {
            Fact::Lost(lost) => Some(*lost),
            _ => None,
        }
    }

    fn or(self, other: Fact<T>) -> Fact<T> {
        if matches!(self, Fact::Unknown) { other } else { self }
    }

    /// Attribute of a result, computed by `next`; `None` means that it is lost.
    fn then(&self, lost: AttributeLoss, next: impl FnOnce(T) -> Option<Fact<T>>) -> Fact<T> {
        match self.clone() {
            Fact::Known(known) => next(known).unwrap_or(Fact::Lost(lost)),
            other => other,
        }
    }

    /// Attribute of two images together.
    fn with(self, other: Fact<T>, by: &'static str, agree: impl FnOnce(&T, &T) -> bool) -> Fact<T> {
        match (self, other) {
            (lost @ Fact::Lost(_), _) | (_, lost @ Fact::Lost(_)) => lost,
            (Fact::Known(a), Fact::Known(b)) if !agree(&a, &b) => {
                Fact::Lost(AttributeLoss { by, why: LossReason::Differ })
            }
            (a, b) => a.or(b),
        }
    }
}

impl OnGrid {
    fn seen(&self) -> Option<Georeference> {
        self.of.transformed(&self.placed)
    }

    fn agrees(&self, other: &OnGrid) -> bool {
        (Arc::ptr_eq(&self.of, &other.of) && self.placed.is_same_as(&other.placed))
            || self.seen().zip(other.seen()).is_some_and(|(a, b)| a.agrees(&b))
    }
}

impl PixelSpacing {
    fn seen(&self) -> Option<PixelSize> {
        self.of.mapped_by(&self.placed)
    }

    fn agrees(&self, other: &PixelSpacing) -> bool {
        match (self.seen(), other.seen()) {
            (Some(a), Some(b)) => close(a.rows, b.rows) && close(a.columns, b.columns),
            // Neither has a size.
            (None, None) => true,
            _ => false,
        }
    }
}

impl ExifNote {
    /// EXIF data of a result whose pixels have this position, if it is known.
    fn seen(self, placed: Option<PositionMap>) -> ExifNote {
        let is_here = placed.is_some_and(|placed| placed.is_identity());
        let is_upright = |placed: PositionMap| {
            let [[xx, xy, _], [yx, yy, _]] = placed.rows();
            xx > 0.0 && yy > 0.0 && xy == 0.0 && yx == 0.0
        };
        ExifNote { moved: self.moved || !is_here, upright: self.upright && placed.is_some_and(is_upright), ..self }
    }
}

/// Returns `true` for equal lengths, up to the rounding of files.
fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * a.abs().max(b.abs())
}

/// An operation on images, or a function of several operations.
struct AppliedOperation<'a> {
    by: &'static str,
    op: Option<&'a Op>,
    shape: Shape,
    dtype: DType,
}

impl Attributes {
    /// Attributes of a picture; `None` if the file has none.
    pub(crate) fn of(said: Metadata, dtype: DType) -> Option<Arc<Attributes>> {
        if said == Metadata::default() {
            return None;
        }
        let Metadata { reference, pixel, names, alpha, profile, printed, exif, texts, tile } = said;
        let place = reference.as_ref().and_then(Georeference::place);
        let words = reference.as_ref().map(Georeference::nodata).filter(|words| !words.is_empty());
        let colours = reference.as_ref().map(Georeference::colours).filter(|colours| !colours.is_empty());
        let all = Attributes {
            grid: Fact::of(place.map(|of| OnGrid { of: Arc::new(of), placed: PositionMap::default() })),
            nodata: Fact::of(words.map(|value| Nodata { value: value.into(), dtype, other: None })),
            colours: Fact::of(colours.map(|colours| Arc::new(FileColourTable { colours: colours.to_vec(), dtype }))),
            profile: Fact::of(
                profile.map(|icc| ProfileChannels { of: Arc::new(FileColourProfile { icc, dtype }), channels: None }),
            ),
            printed: Fact::of(printed.map(|of| PixelSpacing { of, placed: PositionMap::default() })),
            exif: Fact::of(exif.map(|of| ExifNote { of, moved: false, upright: true })),
            texts: Fact::of(texts),
            names: Fact::of(if names.is_empty() { None } else { Some(names.into()) }),
            alpha,
            tile,
            ..Attributes::default()
        };
        Some(Arc::new(all.sized(pixel)))
    }

    fn sized(self, pixel: Option<PixelSize>) -> Attributes {
        let spacing = Fact::of(pixel.map(|of| PixelSpacing { of, placed: PositionMap::default() }));
        Attributes { spacing, levels: Fact::of(pixel.and_then(|pixel| pixel.levels)), ..self }
    }

    /// Sets the pixel size.
    pub(crate) fn with_pixel(all: Option<&Arc<Attributes>>, pixel: Option<PixelSize>) -> Option<Arc<Attributes>> {
        let all = all.map(|all| (**all).clone());
        (all.is_some() || pixel.is_some()).then(|| Arc::new(all.unwrap_or_default().sized(pixel)))
    }

    /// Sets the names of channels.
    pub(crate) fn with_names(all: Option<&Arc<Attributes>>, names: Vec<String>) -> Option<Arc<Attributes>> {
        let names = Fact::of(if names.is_empty() { None } else { Some(names.into()) });
        let all = all.map(|all| (**all).clone()).unwrap_or_default();
        Some(Arc::new(Attributes { names, ..all }))
    }

    /// Declares pixels of this type labels.
    pub(crate) fn with_labels(all: Option<&Arc<Attributes>>, dtype: DType) -> Option<Arc<Attributes>> {
        let all = all.map(|all| (**all).clone()).unwrap_or_default();
        Some(Arc::new(Attributes { labels: Fact::Known(dtype), ..all }))
    }

    /// Sets or removes the alpha of the last channel.
    pub(crate) fn with_alpha(all: Option<&Arc<Attributes>>, alpha: Option<Alpha>) -> Option<Arc<Attributes>> {
        let all = all.map(|all| (**all).clone());
        (all.is_some() || alpha.is_some()).then(|| Arc::new(Attributes { alpha, ..all.unwrap_or_default() }))
    }

    /// Kind of alpha of the last channel.
    pub(crate) fn alpha(all: Option<&Arc<Attributes>>) -> Option<Alpha> {
        all?.alpha
    }

    /// Names of channels, if they are known.
    pub(crate) fn names(all: Option<&Arc<Attributes>>) -> &[String] {
        all.and_then(|all| all.names.known()).map(|names| &**names).unwrap_or_default()
    }

    /// Pixel size, if it is known.
    pub(crate) fn pixel(&self) -> Option<PixelSize> {
        let size = self.spacing.known()?.seen()?;
        Some(PixelSize { levels: self.levels.known().copied(), ..size })
    }

    /// Returns `true` if the georeference, EXIF data and texts of this result come unchanged from `picture`, as far as
    /// they are known.
    pub(crate) fn follow(&self, picture: &Attributes) -> bool {
        fn one<T>(own: Option<&T>, of: Option<&T>, same: impl Fn(&T, &T) -> bool) -> bool {
            own.zip(of).is_none_or(|(own, of)| same(own, of))
        }
        !self.compared
            && one(self.grid.known(), picture.grid.known(), |a, b| Arc::ptr_eq(&a.of, &b.of))
            && one(self.exif.known(), picture.exif.known(), |a, b| Arc::ptr_eq(&a.of, &b.of))
            && one(self.texts.known(), picture.texts.known(), Arc::ptr_eq)
    }

    /// Attributes of the same result of another picture with this metadata.
    pub(crate) fn of_another(&self, said: Metadata) -> Attributes {
        let grid = match (self.grid.clone(), said.reference.as_ref().and_then(Georeference::place)) {
            (Fact::Known(grid), Some(of)) => Fact::Known(OnGrid { of: Arc::new(of), ..grid }),
            (grid, _) => grid,
        };
        let exif = match (self.exif.clone(), said.exif) {
            (Fact::Known(exif), Some(of)) => Fact::Known(ExifNote { of, ..exif }),
            (exif, _) => exif,
        };
        let texts = match (self.texts.clone(), said.texts) {
            (Fact::Known(_), Some(of)) => Fact::Known(of),
            (texts, _) => texts,
        };
        Attributes { grid, exif, texts, ..self.clone() }
    }

    /// Attributes of the result of an operation.
    pub(crate) fn after(op: &Op, inputs: &[&Handle], shape: Shape, dtype: DType) -> Option<Arc<Attributes>> {
        if inputs.iter().all(|input| input.attributes.is_none()) {
            return None;
        }
        let relation = |(i, input): (usize, &&Handle)| op.relation(i, input.shape, shape);
        let relations: Vec<Relation> = inputs.iter().enumerate().map(relation).collect();
        let all = AppliedOperation { by: op.kind(), op: Some(op), shape, dtype }.of_all(inputs, &relations);
        all.map(|all| Arc::new(Attributes { alpha: alpha(op, inputs, shape), ..all }))
    }

    /// Attributes of the result of a function that records several operations, or computes on the host. `inputs` says
    /// how the result's pixels relate to the inputs' pixels. The function sets the attributes of position, and those
    /// that its operations leave unknown.
    pub(crate) fn of_function(
        by: &'static str,
        result: &Handle,
        inputs: &[(&Handle, Relation)],
    ) -> Option<Arc<Attributes>> {
        let (handles, relations): (Vec<&Handle>, Vec<Relation>) = inputs.iter().copied().unzip();
        let own = result.attributes.as_deref().cloned();
        let (shape, dtype) = (result.shape, result.dtype);
        let Some(said) = (AppliedOperation { by, op: None, shape, dtype }).of_all(&handles, &relations) else {
            return own.map(Arc::new);
        };
        let own = own.unwrap_or_default();
        Some(Arc::new(Attributes {
            nodata: own.nodata.or(said.nodata),
            colours: own.colours.or(said.colours),
            labels: own.labels.or(said.labels),
            profile: own.profile.or(said.profile),
            names: own.names.or(said.names),
            alpha: own.alpha,
            ..said
        }))
    }

    /// Attributes of a value of a loop, from those before and after an iteration.
    pub(crate) fn of_loop(before: &Handle, after: &Handle) -> Option<Arc<Attributes>> {
        let (shape, dtype) = (after.shape, after.dtype);
        let applied = AppliedOperation { by: "iterate", op: None, shape, dtype };
        let both = [before, after];
        let inputs: Vec<&Handle> = both.into_iter().filter(|value| value.attributes.is_some()).collect();
        let all = applied.of_all(&inputs, &vec![Relation::identity(); inputs.len()])?;
        let colours = both.iter().filter_map(|value| Some(value.attributes.as_ref()?.colours.clone()));
        let colours = colours.reduce(|a, b| a.with(b, applied.by, |a, b| a == b)).unwrap_or_default();
        Some(Arc::new(Attributes { colours, alpha: Attributes::alpha(after.attributes.as_ref()), ..all }))
    }

    /// How to make smaller sizes of an image that is saved as samples of type `stored`. Called on the rank that read
    /// the picture.
    pub(crate) fn reduced(&self, stored: DType) -> SizeReduction {
        let nodata = self.nodata.known().filter(|nodata| nodata.dtype == stored);
        let of_table = self.colours.known().map(|colours| colours.dtype);
        let labels = of_table.or(self.labels.known().copied()).filter(|dtype| *dtype == stored);
        match (labels, nodata.and_then(|nodata| nodata.value.trim().parse().ok())) {
            (Some(_), _) => SizeReduction::Mode,
            (None, Some(missing)) => SizeReduction::MeansBut(missing),
            (None, None) => SizeReduction::Means,
        }
    }

    /// Writes attributes to the description of a file, as far as its format supports them. Called last, on the rank
    /// that writes the file. Returns a warning for each attribute that an input had and the file does not have.
    pub(crate) fn describe(all: Option<&Arc<Attributes>>, draft: &mut FileSpec, path: &Path) -> Vec<String> {
        let (mut untold, mut place) = (Vec::new(), Georeference::default());
        if let Some(all) = all {
            draft.metadata = Metadata {
                reference: None,
                pixel: all.pixel(),
                printed: all.printed.known().and_then(PixelSpacing::seen),
                names: Attributes::names(Some(all)).to_vec(),
                alpha: all.alpha,
                profile: all.profile(draft, &mut untold),
                exif: all.exif.known().map(|exif| Arc::new(exif.of.transformed(exif.moved, exif.upright))),
                texts: all.texts.known().cloned(),
                tile: all.tile,
            };
            place = all.place(draft, &mut untold);
            all.lost(draft.stored().0.depth, &mut untold);
        }
        if draft.has_nodata() {
            // The program sets the value of missing pixels.
            untold.retain(|(what, _)| *what != UnsupportedMetadata::Nodata);
        }
        draft.metadata.reference = Some(place.clone());
        let lacking = draft.describe(path);
        let missing = if draft.has_nodata() { "" } else { place.nodata() };
        let other = all.and_then(|all| all.nodata.known()?.other.as_ref());
        let other = other.filter(|_| !missing.is_empty() && !lacking.contains(&UnsupportedMetadata::Nodata));
        let unmarked = other.map(|other| {
            let path = path.display();
            format!("{path}: pixels of {missing} are missing, as in one image that it was computed from; in another those of {other} were")
        });
        Attributes::warnings(untold, lacking, path).chain(unmarked).collect()
    }

    /// Warnings for attributes that a store at a path does not have: it has only pixel sizes and names of channels.
    pub(crate) fn untold_by_store(&self, depth: usize, path: &Path) -> Vec<String> {
        let mut untold = Vec::new();
        self.lost(depth, &mut untold);
        let known = [
            (UnsupportedMetadata::Georeference, self.grid.known().is_some()),
            (UnsupportedMetadata::Nodata, self.nodata.known().is_some()),
            (UnsupportedMetadata::Colours, self.colours.known().is_some()),
            (UnsupportedMetadata::Profile, self.profile.known().is_some()),
            (UnsupportedMetadata::Printed, self.printed.known().is_some()),
            (UnsupportedMetadata::Exif, self.exif.known().is_some()),
            (UnsupportedMetadata::Texts, self.texts.known().is_some()),
        ];
        let lacking = known.into_iter().filter_map(|(what, known)| known.then_some(what)).collect();
        Attributes::warnings(untold, lacking, path).collect()
    }

    fn warnings(
        untold: Vec<(UnsupportedMetadata, String)>,
        lacking: Vec<UnsupportedMetadata>,
        path: &Path,
    ) -> impl Iterator<Item = String> + use<'_> {
        let lacking = lacking.into_iter().map(|lacking| (lacking, lacking.supporting_formats().to_owned()));
        untold.into_iter().chain(lacking).map(|(what, why)| {
            let what = match what {
                UnsupportedMetadata::Georeference => "georeference is",
                UnsupportedMetadata::Nodata => "value of missing pixels is",
                UnsupportedMetadata::Colours => "colour table is",
                UnsupportedMetadata::PixelSize => "size of pixels is",
                UnsupportedMetadata::Levels => "distance of levels is",
                UnsupportedMetadata::Names => "names of channels are",
                UnsupportedMetadata::Profile => "colour profile is",
                UnsupportedMetadata::Printed => "resolution is",
                UnsupportedMetadata::Exif => "EXIF data are",
                UnsupportedMetadata::Texts => "texts are",
            };
            format!("{}: its {what} not stored: {why}", path.display())
        })
    }

    /// Georeference of stored values; adds to `untold` what samples of this type cannot have, with the reason.
    fn place(&self, draft: &FileSpec, untold: &mut Vec<(UnsupportedMetadata, String)>) -> Georeference {
        let (_, stored) = draft.stored();
        let scaled = draft.scale != StoredScale::Not;
        let mut fits = |what, dtype: DType| {
            if dtype != stored || scaled {
                let now = if scaled { "scaled to the range of the file" } else { stored.name() };
                untold.push((what, format!("it is one of {dtype} pixels, and those of the file are {now}")));
            }
            dtype == stored && !scaled
        };
        let nodata = self.nodata.known().filter(|nodata| fits(UnsupportedMetadata::Nodata, nodata.dtype));
        let colours = self.colours.known().filter(|table| fits(UnsupportedMetadata::Colours, table.dtype));
        let place = self.grid.known().and_then(OnGrid::seen);
        if place.is_none() && self.grid.known().is_some() {
            untold.push((UnsupportedMetadata::Georeference, "the map of its pixels has no inverse".into()));
        }
        let nodata = nodata.map(|nodata| nodata.value.to_string()).unwrap_or_default();
        let colours = colours.map(|table| table.colours.to_vec()).unwrap_or_default();
        place.unwrap_or_default().with_values(nodata, colours)
    }

    /// Colour profile of stored values; adds to `untold` why samples of this type cannot have it.
    fn profile(&self, draft: &FileSpec, untold: &mut Vec<(UnsupportedMetadata, String)>) -> Option<Arc<[u8]>> {
        let coloured = self.profile.known()?;
        let colours: Vec<usize> = (0..draft.stored().0.channels).filter_map(|c| coloured.colour(c)).collect();
        let firsts = (0..coloured.count()).map(Some).eq((0..coloured.count()).map(|c| coloured.colour(c)));
        if !firsts || colours.len() != coloured.count() {
            // Channels other than the profile's have no profile; this needs no warning.
            return None;
        }
        let profile = &coloured.of;
        if draft.keeps_black_and_white(profile.dtype) {
            return Some(Arc::clone(&profile.icc));
        }
        untold.push((UnsupportedMetadata::Profile, "its values are no integers, or are scaled otherwise".into()));
        None
    }

    /// Adds the reasons of losses to `untold`.
    fn lost(&self, depth: usize, untold: &mut Vec<(UnsupportedMetadata, String)>) {
        if self.spacing.known().is_some_and(|spacing| spacing.seen().is_none()) {
            untold.push((UnsupportedMetadata::PixelSize, "a map made pixels with oblique sides".into()));
        }
        if self.printed.known().is_some_and(|printed| printed.seen().is_none()) {
            untold.push((UnsupportedMetadata::Printed, "a map made pixels with oblique sides".into()));
        }
        let mut tell = |what: UnsupportedMetadata, lost: Option<AttributeLoss>, differ: &str, others: &str| {
            let Some(AttributeLoss { by, why }) = lost else { return };
            untold.push((
                what,
                match why {
                    LossReason::Differ => format!("images {differ} were combined ({by})"),
                    LossReason::Others => format!("{others} ({by})"),
                    LossReason::Stacked => format!("levels of several images follow each other ({by})"),
                    LossReason::Mask => format!("a mask has none ({by})"),
                },
            ));
        };
        let (pixels, values) = ("its pixels are new ones", "its values are computed, not picked");
        tell(UnsupportedMetadata::Georeference, self.grid.lost(), "on different grids", pixels);
        tell(UnsupportedMetadata::Nodata, self.nodata.lost(), "", values);
        tell(UnsupportedMetadata::Colours, self.colours.lost(), "with different tables", values);
        tell(UnsupportedMetadata::PixelSize, self.spacing.lost(), "with pixels of different sizes", pixels);
        if depth > 1 && self.spacing.known().is_some() {
            tell(UnsupportedMetadata::Levels, self.levels.lost(), "with levels of different distances", pixels);
        }
        // Channels other than the profile's have no profile; this needs no warning.
        let differ = self.profile.lost().filter(|lost| matches!(lost.why, LossReason::Differ));
        tell(UnsupportedMetadata::Profile, differ, "with different colour profiles", "");
        tell(UnsupportedMetadata::Printed, self.printed.lost(), "of different resolutions", pixels);
        tell(UnsupportedMetadata::Exif, self.exif.lost(), "with different EXIF data", pixels);
        tell(UnsupportedMetadata::Texts, self.texts.lost(), "with different texts", pixels);
        tell(
            UnsupportedMetadata::Names,
            self.names.lost(),
            "with channels of different names",
            "its channels are new ones",
        );
    }
}

impl AppliedOperation<'_> {
    /// Attributes of the result, from those of the inputs and the relation of its pixels to theirs; `None` if none is
    /// known.
    fn of_all(&self, inputs: &[&Handle], relations: &[Relation]) -> Option<Attributes> {
        let mut all: Option<Attributes> = None;
        for (input, relation) in inputs.iter().zip(relations) {
            let (Some(one), false) = (&input.attributes, *relation == Relation::Broadcast) else { continue };
            let one = self.of_one(one, input.shape, *relation);
            all = Some(match all {
                None => one,
                Some(all) => self.together(all, one),
            });
        }
        if matches!(self.op, Some(Op::Whole(Whole::Merge(_))))
            && let Some(all) = all.as_mut().filter(|_| inputs.iter().all(|input| input.shape.depth == self.shape.depth))
        {
            let of = |input: &&Handle| {
                let mut names = Attributes::names(input.attributes.as_ref()).to_vec();
                names.resize(input.shape.channels, String::new());
                names
            };
            let names: Vec<String> = inputs.iter().flat_map(of).collect();
            let known = names.iter().any(|name| !name.is_empty());
            all.names = Fact::of(known.then(|| names.into()));
            all.profile = self.joined(inputs);
        }
        all
    }

    /// Colours of channels that are joined.
    fn joined(&self, inputs: &[&Handle]) -> Fact<ProfileChannels> {
        let (mut profile, mut channels) = (Fact::Unknown, Vec::new());
        for input in inputs {
            let own = input.attributes.as_ref().map(|all| all.profile.clone()).unwrap_or_default();
            let colour = |c| own.known().and_then(|own| own.colour(c));
            channels.extend((0..input.shape.channels).map(colour));
            profile = profile.with(own, self.by, |a: &ProfileChannels, b| a.of == b.of);
        }
        profile
            .then(AttributeLoss { by: self.by, why: LossReason::Others }, |profile| Some(profile.with(channels.into())))
    }

    /// Attributes of a result that is computed from one image.
    fn of_one(&self, of: &Attributes, from: Shape, relation: Relation) -> Attributes {
        let lost = |why| AttributeLoss { by: self.by, why };
        let others = lost(LossReason::Others);
        let (placed, levels) = match relation {
            Relation::Mapped(placed, levels) => (Some(placed), levels),
            Relation::Across(_) | Relation::Elsewhere | Relation::Broadcast => (None, None),
        };
        let names = match self.op {
            // A repeated channel has no name of its own.
            Some(Op::Planes(_)) if from.channels == 1 && self.shape.channels > 1 => Fact::Unknown,
            Some(Op::Planes(map)) if from.channels != self.shape.channels || map.channel.is_some() => {
                of.names.then(others, |names| {
                    let read = |c| map.at(c).and_then(|plane| names.get(plane % from.channels).cloned());
                    let read: Option<Arc<[String]>> = (0..self.shape.channels).map(read).collect();
                    read.map(Fact::Known)
                })
            }
            _ => of.names.then(others, |names| (from.channels == self.shape.channels).then_some(Fact::Known(names))),
        };
        let is_of_pixels = !matches!(relation, Relation::Elsewhere | Relation::Broadcast);
        let all = Attributes {
            grid: of.grid.then(others, |OnGrid { of, placed: before }| {
                Some(Fact::Known(OnGrid { of, placed: before.then(&placed?) }))
            }),
            spacing: of.spacing.then(others, |PixelSpacing { of, placed: before }| {
                Some(Fact::Known(PixelSpacing { of, placed: before.then(&placed?) }))
            }),
            levels: of.levels.then(
                lost(if placed.is_some() { LossReason::Stacked } else { LossReason::Others }),
                |side| {
                    // A repeated level has no distance to itself.
                    levels.map(|step| if step == 0.0 { Fact::Unknown } else { Fact::Known(side * step) })
                },
            ),
            nodata: of
                .nodata
                .then(lost(LossReason::Mask), |nodata| (self.dtype != DType::Bool).then_some(Fact::Known(nodata))),
            colours: of.colours.then(others, |colours| self.op.is_some_and(picks).then_some(Fact::Known(colours))),
            labels: of.labels.then(others, |labels| self.op.is_some_and(picks).then_some(Fact::Known(labels))),
            profile: of.profile.then(others, |profile| match self.op {
                _ if self.dtype == DType::Bool => None,
                Some(Op::Planes(map)) => {
                    // Levels beyond the border are constants.
                    let plane = |c| (0..self.shape.depth).find_map(|z| map.at(z * self.shape.channels + c));
                    let colour = |c| plane(c).and_then(|plane| profile.colour(plane % from.channels));
                    let channels = (0..self.shape.channels).map(colour).collect();
                    Some(profile.with(channels))
                }
                _ => (from.channels == self.shape.channels).then_some(Fact::Known(profile)),
            }),
            printed: of.printed.then(others, |PixelSpacing { of, placed: before }| {
                Some(Fact::Known(PixelSpacing { of, placed: before.then(&placed?) }))
            }),
            exif: of.exif.then(others, |noted| is_of_pixels.then(|| Fact::Known(noted.seen(placed)))),
            texts: of.texts.then(others, |texts| is_of_pixels.then_some(Fact::Known(texts))),
            names,
            alpha: None,
            tile: of.tile,
            compared: of.compared,
        };
        match relation {
            // Grids belong to planes.
            Relation::Across(map) if of.levels.known().is_some() => match of.pixel().map(|size| size.across(map)) {
                Some(Some(size)) => all.sized(Some(size)),
                _ => all,
            },
            _ => all,
        }
    }

    /// Combines the attributes that a result inherits from several images.
    fn together(&self, all: Attributes, one: Attributes) -> Attributes {
        let by = self.by;
        let pictures = all.grid.known().zip(one.grid.known());
        let compared = all.compared || one.compared || pictures.is_some_and(|(a, b)| !Arc::ptr_eq(&a.of, &b.of));
        // If these differ, they differ for other pictures, too.
        let noted = all.exif.known().zip(one.exif.known());
        let compared = compared || noted.is_some_and(|(a, b)| !Arc::ptr_eq(&a.of, &b.of) && a.of == b.of);
        let texts = all.texts.known().zip(one.texts.known());
        let compared = compared || texts.is_some_and(|(a, b)| !Arc::ptr_eq(a, b) && a == b);
        let exif = match (all.exif, one.exif) {
            (Fact::Known(a), Fact::Known(b)) if a.of == b.of => {
                Fact::Known(ExifNote { moved: a.moved || b.moved, upright: a.upright && b.upright, ..a })
            }
            (a, b) => a.with(b, by, |_, _| false),
        };
        Attributes {
            grid: all.grid.with(one.grid, by, OnGrid::agrees),
            spacing: all.spacing.with(one.spacing, by, PixelSpacing::agrees),
            levels: all.levels.with(one.levels, by, |a, b| close(*a, *b)),
            nodata: match (all.nodata, one.nodata) {
                (Fact::Known(a), Fact::Known(b)) => Fact::Known(self.first(a, b)),
                (a @ Fact::Known(_), _) | (_, a @ Fact::Known(_)) => a,
                (a, b) => a.or(b),
            },
            colours: all.colours.with(one.colours, by, |a, b| a == b),
            labels: all.labels.with(one.labels, by, |a, b| a == b),
            profile: match (all.profile, one.profile) {
                (Fact::Known(a), Fact::Known(b)) if a.of == b.of => {
                    let same = (0..self.shape.channels).all(|c| a.colour(c) == b.colour(c));
                    if same { Fact::Known(a) } else { Fact::Lost(AttributeLoss { by, why: LossReason::Others }) }
                }
                (a, b) => a.with(b, by, |_, _| false),
            },
            printed: all.printed.with(one.printed, by, PixelSpacing::agrees),
            exif,
            texts: all.texts.with(one.texts, by, |a, b| a == b),
            names: match (all.names, one.names) {
                // Channels without names contradict no other names.
                (Fact::Known(a), Fact::Known(b)) if a.len() == b.len() && b.iter().all(String::is_empty) => {
                    Fact::Known(a)
                }
                (Fact::Known(a), Fact::Known(b)) if a.len() == b.len() && a.iter().all(String::is_empty) => {
                    Fact::Known(b)
                }
                (a, b) => a.with(b, by, |a, b| a == b),
            },
            alpha: None,
            tile: all.tile.or(one.tile),
            compared,
        }
    }

    /// Selects the missing value of the first image, or of the image that has the result's type.
    fn first(&self, a: Nodata, b: Nodata) -> Nodata {
        let same = a.value.trim() == b.value.trim();
        let (first, other) = if a.dtype != self.dtype && b.dtype == self.dtype { (b, a) } else { (a, b) };
        let other = first.other.clone().or(if same { other.other } else { Some(other.value) });
        Nodata { other, ..first }
    }
}

/// Kind of alpha of a result's last channel: from inputs with as many channels, or from the last of the inputs that are
/// joined.
fn alpha(op: &Op, inputs: &[&Handle], to: Shape) -> Option<Alpha> {
    let of = |input: &Handle| Attributes::alpha(input.attributes.as_ref());
    match (op, inputs) {
        (Op::Whole(Whole::Merge(_)), [.., last]) if inputs.iter().all(|input| input.shape.depth == to.depth) => {
            of(last)
        }
        (Op::Planes(map), [input]) => {
            let from = input.shape.channels;
            // A repeated channel is a factor of colours.
            let last = map.at(to.channels - 1).is_some_and(|plane| plane % from == from - 1);
            of(input).filter(|_| last && (from > 1 || to.channels == 1))
        }
        _ => {
            let mut alike = inputs.iter().filter(|input| input.shape.channels == to.channels).map(|input| of(input));
            match to.channels {
                // A colour times alpha is a colour.
                1 => alike.next()?.filter(|first| alike.all(|other| other == Some(*first))),
                // An input without alpha may be a number or a repeated channel.
                _ => alike.flatten().next(),
            }
        }
    }
}

/// Returns `true` if an operation only moves pixels: it changes no value, except for constants beyond the border.
fn picks(op: &Op) -> bool {
    match op {
        Op::Planes(_) | Op::Flip(_) | Op::Warp(_, Interpolation::Nearest, _) => true,
        Op::Whole(operation) => matches!(operation, Whole::Transpose(_)),
        _ => false,
    }
}

/// How smaller sizes of an image are made.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum SizeReduction {
    /// Means of pixels.
    Means,
    /// Means of the pixels that differ from this value of missing pixels.
    MeansBut(f64),
    /// Most frequent value, for values that have no means.
    Mode,
    /// First of four pixels.
    Nearest,
}
