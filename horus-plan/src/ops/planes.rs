//! Plane maps: the input plane that each plane of a result reads, and the planes of a concatenated image.

use super::describe::{Accepts, OperationGroup, Pattern, describe, description, required};
use std::fmt;

use super::footprint::{Access, InputRead, Rect};
use super::operation::{
    Family, ImageExtent, ImageOperation, Instance, LaunchEffort, SampleImages, SampleOperations, ensure, stays,
};
use horus_base::position_map::PositionMap;
use horus_base::shape::{Border, Shape};

describe! {
    CHANNEL = description("channel", OperationGroup::Types, Pattern::Pixel, "One channel")
        .takes(&[required("n", Accepts::Count, "the first is 0")])
        .elsewhere(&["np: `a[..., i]`", "cv.extractChannel", "imageproc::map::into_red_channel"])
        .example("channel 0");
    STACK = description("stack", OperationGroup::Types, Pattern::Pixel, "The channels of `a`, then those of the other picture")
        .takes(&[required("other", Accepts::File, "of the same size")])
        .elsewhere(&["np.stack", "cv.merge"])
        .differs("along an axis: `stack(&session, [r, g, b], Axis::Channels)`")
        .example("channel 0 stack @in");
    UNSTACK = description("unstack", OperationGroup::Types, Pattern::Pixel, "The images of each channel or level")
        .elsewhere(&["np.unstack", "cv.split"])
        .differs("`volume.unstack(Axis::Depth)`");
    SLICE = description("slice", OperationGroup::Types, Pattern::Pixel, "Levels of a volume, as a volume or an image")
        .elsewhere(&["np: `a[z]` `a[i:j]`"]);
}

/// Bound on positions along the depth, so that kernels can count in 32 bits.
const FAR: i64 = 1 << 30;

/// A read of whole planes, each pixel at its own position. Level `z` and channel `c` of the result read level `step * z
/// + offset` of the input, subject to the border mode, and channel `c` or a fixed channel.
///
/// A step of 1 shifts along the depth, -1 mirrors it, 0 repeats one level.
///
/// ```
/// # use horus_core::{ops::planes::PlaneMap, shape::{Border, Shape}};
/// let volume = Shape::volume(4, 1, 1, 2);
/// let next = PlaneMap::levels(volume, 2, 1, 1, Border::Replicate); // each level reads the next one
/// assert_eq!((0..8).map(|p| next.at(p)).collect::<Vec<_>>(), [2, 3, 4, 5, 6, 7, 6, 7].map(Some));
/// assert_eq!(PlaneMap::levels(volume, 2, 1, 1, Border::Constant(0.0)).at(6), None);
/// assert_eq!(PlaneMap::one(5).at(3), Some(5));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PlaneMap {
    /// Channels of the result.
    pub channels: usize,
    /// Levels of the input.
    pub depth: usize,
    /// Channels of the input: the distance in planes between levels.
    pub stride: usize,
    /// The channel read by every channel of the result, if fixed.
    pub channel: Option<usize>,
    /// Input levels per level of the result.
    pub step: i32,
    /// Input level of level 0 of the result.
    pub offset: i32,
    /// Border mode along the depth.
    pub border: Border,
}

impl PlaneMap {
    /// The map of plane `plane` of the input to every plane of the result.
    pub const fn one(plane: usize) -> PlaneMap {
        PlaneMap {
            channels: 1,
            depth: plane + 1,
            stride: 1,
            channel: None,
            step: 0,
            offset: plane as i32,
            border: Border::Replicate,
        }
    }

    /// The map to level `step * z + offset` of an image of shape `input`, in a result of `channels` channels: as many
    /// as the input has, or any number if the input has one, which is repeated.
    pub fn levels(input: Shape, channels: usize, step: i32, offset: i32, border: Border) -> PlaneMap {
        let channel = (input.channels == 1 && channels != 1).then_some(0);
        PlaneMap { channels, depth: input.depth, stride: input.channels, channel, step, offset, border }.simplified()
    }

    /// The map to channel `c` of every level of an image of shape `input`, in a result of one channel.
    pub fn channel(input: Shape, c: usize) -> PlaneMap {
        let Shape { depth, channels: stride, .. } = input;
        let border = Border::Replicate;
        PlaneMap { channels: 1, depth, stride, channel: Some(c), step: 1, offset: 0, border }.simplified()
    }

    /// The canonical form: a single plane if every plane of the result reads the same one.
    fn simplified(self) -> PlaneMap {
        let level = match self.step {
            _ if self.depth == 1 && !matches!(self.border, Border::Constant(_)) => Some(0),
            0 => self.border.map(self.offset as isize, self.depth),
            _ => None,
        };
        match (level, self.channel.or((self.stride == 1).then_some(0))) {
            (Some(z), Some(c)) => PlaneMap::one(z * self.stride + c),
            _ => self,
        }
    }

    /// The map to `depth` levels, each of which reads its own level of the input as this map, to a result of one level and
    /// `channels` channels, reads an image of shape `input`; `None` if it reads some of several channels.
    pub(crate) fn of_each_level(&self, input: Shape, channels: usize, depth: usize) -> Option<PlaneMap> {
        let planes: Vec<usize> = (0..channels).map(|c| self.at(c)).collect::<Option<_>>()?;
        let first = *planes.first()?;
        let channel = match planes.iter().copied().eq(0..input.channels) {
            true => None,
            false if planes.iter().all(|plane| *plane == first) => Some(first),
            false => return None,
        };
        Some(PlaneMap {
            channels,
            depth,
            stride: input.channels,
            channel,
            step: 1,
            offset: 0,
            border: Border::Replicate,
        })
    }

    /// The input plane that plane `plane` of the result reads; `None` for the constant of the border mode.
    pub fn at(&self, plane: usize) -> Option<usize> {
        let (z, c) = (plane / self.channels, plane % self.channels);
        let level = z.cast_signed() * self.step as isize + self.offset as isize;
        Some(self.border.map(level, self.depth)? * self.stride + self.channel.unwrap_or(c))
    }

    /// The plane that every plane of the result reads, if the map is [`PlaneMap::one`] or
    /// equivalent.
    pub fn fixed(&self) -> Option<usize> {
        let one = self.step == 0 && (self.channels == 1 || self.channel.is_some());
        if one { self.at(0) } else { None }
    }

    /// An upper bound of the number of input planes that a result of `planes` planes reads.
    pub fn count(&self, planes: usize) -> usize {
        let levels = if self.step == 0 { 1 } else { (planes / self.channels.max(1)).min(self.depth) };
        levels * if self.channel.is_some() { 1 } else { self.channels }
    }

    /// Checks that the input has every plane that a result of `result` planes reads.
    ///
    /// # Errors
    /// Describes the mismatch.
    pub fn fits(&self, input: usize, result: usize) -> Result<(), String> {
        let PlaneMap { channels, depth, stride, channel, step, offset, .. } = *self;
        let inside = depth.checked_mul(stride).is_some_and(|n| 0 < n && n <= input);
        let last = channel.map_or(channels, |c| c.saturating_add(1));
        if channels == 0 || !inside || last > stride {
            return Err(format!("{self} of an input of {input} planes"));
        }
        let reach = i64::from(step).abs().saturating_mul((result / channels) as i64);
        if reach.saturating_add(i64::from(offset).abs()) > FAR {
            return Err(format!("{self} in {result} planes is out of range"));
        }
        Ok(())
    }
}

impl fmt::Display for PlaneMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(plane) = self.fixed() {
            return write!(f, "plane {plane}");
        }
        match (self.step, self.offset) {
            (1, 0) => f.write_str("levels")?,
            (1, by) => write!(f, "levels {by:+}")?,
            (0, z) => write!(f, "level {z}")?,
            (step, 0) => write!(f, "levels *{step}")?,
            (step, by) => write!(f, "levels *{step}{by:+}")?,
        }
        self.channel.map_or(Ok(()), |c| write!(f, ", channel {c}"))
    }
}

/// The input and plane of each plane of a concatenated image. Inputs with the depth of the output are concatenated
/// along the channels, others along the depth; `None` if they do not add up to the output.
pub fn stacked(inputs: impl Iterator<Item = Shape> + Clone, output: Shape) -> Option<Vec<(usize, usize)>> {
    let total = |extent: fn(Shape) -> usize| inputs.clone().try_fold(0usize, |n, s| n.checked_add(extent(s)));
    let plane = |s: Shape| (s.height, s.width);
    if inputs.clone().any(|s| plane(s) != plane(output)) {
        return None;
    }
    if inputs.clone().all(|s| s.depth == output.depth) && total(|s| s.channels)? == output.channels {
        let level = |z: usize| {
            inputs.clone().enumerate().flat_map(move |(i, s)| (0..s.channels).map(move |c| (i, z * s.channels + c)))
        };
        return Some((0..output.depth).flat_map(level).collect());
    }
    let along = inputs.clone().all(|s| s.channels == output.channels) && total(|s| s.depth)? == output.depth;
    along.then(|| inputs.enumerate().flat_map(|(i, s)| (0..s.planes()).map(move |p| (i, p))).collect())
}

/// The inputs concatenated along the channels or the depth: see [`stacked`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Merge;

impl ImageOperation for Merge {
    fn kind(&self) -> &'static str {
        "stack"
    }

    fn check(&self, inputs: &[ImageExtent], output: ImageExtent) -> Result<(), String> {
        if let Some((shape, dtype)) = inputs.iter().find(|i| i.1 != output.1) {
            return Err(format!("planes of {shape} {dtype} for {} {}", output.0, output.1));
        }
        let fits = stacked(inputs.iter().map(|i| i.0), output.0).is_some();
        ensure(fits, || format!("{} images are not the planes of {}", inputs.len(), output.0))
    }

    fn reads(&self, _: usize, need: Rect, _: Shape) -> InputRead {
        InputRead::inside(need)
    }

    fn access(&self, _: usize) -> Access {
        Access::IN_PLACE
    }

    fn position_map(&self, _: usize, from: Shape, to: Shape) -> Option<PositionMap> {
        stays(from, to)
    }

    fn in_place(&self, _: usize) -> bool {
        true
    }

    fn by_levels(&self, _: usize) -> bool {
        true
    }

    fn effort(&self, _: &[ImageExtent], output: ImageExtent, rows: usize) -> LaunchEffort {
        LaunchEffort::of_rows(Family::Pixel, output.0, rows, 0.0)
    }
}

impl SampleOperations for Merge {
    fn samples(of: SampleImages) -> Vec<Instance> {
        let (shape, dtype) = of.image;
        vec![Instance::of(Merge, &[of.image; 2], (Shape { channels: 2 * shape.channels, ..shape }, dtype))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_read_through_the_border() {
        let volume = Shape::volume(4, 2, 2, 1);
        let read = |step, offset, border| {
            let map = PlaneMap::levels(volume, 1, step, offset, border);
            (0..4).map(|p| map.at(p).map_or('-', |z| char::from(b'a' + z as u8))).collect::<String>()
        };
        assert_eq!(read(1, -2, Border::Reflect101), "cbab");
        assert_eq!(read(1, -2, Border::Reflect), "baab");
        assert_eq!(read(1, 2, Border::Wrap), "cdab");
        assert_eq!(read(1, -1, Border::Constant(3.0)), "-abc");
        assert_eq!(read(-1, 3, Border::Replicate), "dcba");
        assert_eq!(read(2, 0, Border::Replicate), "acdd");
        assert_eq!(read(0, 2, Border::Replicate), "cccc");
    }

    #[test]
    fn what_is_always_one_plane_has_one_form() {
        let volume = Shape::volume(4, 2, 2, 3);
        assert_eq!(PlaneMap::channel(Shape::new(2, 2, 3), 2), PlaneMap::one(2));
        assert_eq!(PlaneMap::levels(Shape::new(2, 2, 1), 5, 0, 0, Border::Replicate), PlaneMap::one(0));
        assert_eq!(PlaneMap::one(7).fixed(), Some(7));
        assert_eq!(PlaneMap::channel(volume, 1).fixed(), None);
        assert_eq!((0..4).map(|z| PlaneMap::channel(volume, 1).at(z)).collect::<Vec<_>>(), [1, 4, 7, 10].map(Some));
    }

    #[test]
    fn maps_that_read_elsewhere_are_refused() {
        let map = PlaneMap::levels(Shape::volume(4, 2, 2, 3), 3, 1, 1, Border::Wrap);
        assert!(map.fits(12, 12).is_ok());
        assert!(map.fits(11, 12).is_err());
        assert!(PlaneMap { channel: Some(3), ..map }.fits(12, 12).is_err());
        assert!(PlaneMap { channels: 0, ..map }.fits(12, 12).is_err());
        assert!(PlaneMap { channels: 4, ..map }.fits(12, 12).is_err());
        assert!(PlaneMap { step: i32::MAX, ..map }.fits(12, 12).is_err());
        assert!(PlaneMap { depth: usize::MAX, ..map }.fits(12, 12).is_err());
    }

    #[test]
    fn images_follow_each_other_along_what_differs() {
        let shapes = |d, c| [Shape::volume(d, 2, 3, c); 2].into_iter();
        assert_eq!(stacked(shapes(2, 1), Shape::volume(2, 2, 3, 2)).unwrap(), [(0, 0), (1, 0), (0, 1), (1, 1)]);
        assert_eq!(stacked(shapes(1, 2), Shape::volume(2, 2, 3, 2)).unwrap(), [(0, 0), (0, 1), (1, 0), (1, 1)]);
        assert_eq!(stacked(shapes(1, 1), Shape::new(2, 3, 2)).unwrap(), [(0, 0), (1, 0)]);
        assert!(stacked(shapes(1, 1), Shape::new(2, 3, 3)).is_none());
        assert!(stacked(shapes(2, 1), Shape::volume(3, 2, 3, 2)).is_none());
    }
}
