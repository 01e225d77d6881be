//! Positions of an array's samples in an image.
//!
//! An image has levels, rows, columns and channels. In memory it is level by level, row by row, the
//! samples of a pixel adjacent. An array has axes in any order. Axes may be missing, and there may
//! be an axis of times, one of which is selected.

use std::ops::Range;

use horus_core::error::Audience;
use horus_core::shape::{Region, Shape};

/// The role of an array's axis in an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Time,
    Channel,
    Level,
    Row,
    Column,
}

impl Role {
    /// The role for the name of an axis in OME-Zarr.
    pub(crate) fn named(name: &str) -> Option<Role> {
        match name.to_ascii_lowercase().as_str() {
            "t" | "time" => Some(Role::Time),
            "c" | "channel" => Some(Role::Channel),
            "z" => Some(Role::Level),
            "y" => Some(Role::Row),
            "x" => Some(Role::Column),
            _ => None,
        }
    }

    /// The name of the axis in OME-Zarr.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Role::Time => "t",
            Role::Channel => "c",
            Role::Level => "z",
            Role::Row => "y",
            Role::Column => "x",
        }
    }

    /// The type of the axis in OME-Zarr.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Role::Time => "time",
            Role::Channel => "channel",
            Role::Level | Role::Row | Role::Column => "space",
        }
    }
}

/// The axes of an array that form an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArrayLayout {
    roles: Vec<Role>,
    extents: Vec<u64>,
    /// The selected time.
    time: u64,
}

impl ArrayLayout {
    /// The layout of an array with these axes and lengths.
    ///
    /// # Errors
    /// A message if the axes do not form an image, if there are several times and none is selected,
    /// if there is no such time, or if a length exceeds any memory.
    pub(crate) fn new(roles: Vec<Role>, extents: Vec<u64>, time: Option<usize>) -> Result<ArrayLayout, String> {
        let (axes, n) = (listed(&roles), extents.len());
        if roles.len() != n {
            return Err(format!("an array of {n} axes, of which {} are described ({axes})", roles.len()));
        }
        let twice = |i: &usize| roles[..*i].contains(&roles[*i]);
        if let Some(i) = (0..n).find(twice) {
            return Err(format!("its axes are {axes}: {} occurs twice", roles[i].name()));
        }
        if !roles.contains(&Role::Row) || !roles.contains(&Role::Column) {
            return Err(format!("its axes are {axes}: an image needs y and x"));
        }
        if extents.iter().any(|n| usize::try_from(*n).is_err()) {
            return Err(format!("an array of {extents:?} samples does not fit into memory's addresses"));
        }
        let mut layout = ArrayLayout { roles, extents, time: 0 };
        let times = layout.extent(Role::Time);
        layout.time = match time {
            None if times > 1 => {
                let choice = Audience::now().select_wording("ZarrOptions::time", "--page N", "page=N");
                return Err(format!("it has {times} times, of which one is read: choose it by {choice}"));
            }
            Some(time) if time >= times => {
                return Err(format!("time {time} requested, but it has {times} (times start at 0)"));
            }
            chosen => chosen.unwrap_or(0) as u64,
        };
        Ok(layout)
    }

    /// The layout of an image to write: channels and levels if there are several, rows, columns.
    pub(crate) fn of(shape: Shape) -> ArrayLayout {
        let all = [
            (Role::Channel, shape.channels),
            (Role::Level, shape.depth),
            (Role::Row, shape.height),
            (Role::Column, shape.width),
        ];
        let always = |role: Role| matches!(role, Role::Row | Role::Column);
        let (roles, extents) =
            all.into_iter().filter(|(role, n)| always(*role) || *n > 1).map(|(role, n)| (role, n as u64)).unzip();
        ArrayLayout { roles, extents, time: 0 }
    }

    /// The roles of the axes, from the slowest to the fastest.
    pub(crate) fn roles(&self) -> &[Role] {
        &self.roles
    }

    pub(crate) fn extents(&self) -> &[u64] {
        &self.extents
    }

    fn extent(&self, role: Role) -> usize {
        of(&self.roles, &self.extents, role).unwrap_or(1) as usize
    }

    /// The shape of the image.
    pub(crate) fn shape(&self) -> Shape {
        let extent = |role| self.extent(role);
        Shape::volume(extent(Role::Level), extent(Role::Row), extent(Role::Column), extent(Role::Channel))
    }

    /// The indices along each axis of a region of some levels of the image.
    pub(crate) fn part(&self, levels: &Range<usize>, region: Region) -> Vec<Range<u64>> {
        let range = |(role, extent): (&Role, &u64)| match role {
            Role::Time => self.time..self.time + 1,
            Role::Row => region.top as u64..region.bottom() as u64,
            Role::Column => region.left as u64..region.right() as u64,
            Role::Level => levels.start as u64..levels.end as u64,
            Role::Channel => 0..*extent,
        };
        self.roles.iter().zip(&self.extents).map(range).collect()
    }

    /// The value for an axis from values for all axes; 1 if the array has no such axis.
    pub(crate) fn value(&self, role: Role, of_axes: &[u64]) -> usize {
        of(&self.roles, of_axes, role).unwrap_or(1) as usize
    }

    /// A block of the array in memory with these `ranges` of indices; the last axis is the fastest.
    pub(crate) fn block<'a>(&'a self, ranges: &'a [Range<u64>]) -> ArrayBlock<'a> {
        let mut strides = vec![1; ranges.len()];
        for axis in (1..ranges.len()).rev() {
            strides[axis - 1] = strides[axis] * count(&ranges[axis]);
        }
        ArrayBlock { layout: self, ranges, strides }
    }
}

/// A block of an array in memory.
pub(crate) struct ArrayBlock<'a> {
    layout: &'a ArrayLayout,
    ranges: &'a [Range<u64>],
    /// Samples from an index to the next, for each axis.
    strides: Vec<usize>,
}

impl ArrayBlock<'_> {
    /// The indices along an axis; only 0 if the array has no such axis.
    pub(crate) fn range(&self, role: Role) -> Range<usize> {
        of(&self.layout.roles, self.ranges, role).map_or(0..1, |r| r.start as usize..r.end as usize)
    }

    fn stride(&self, role: Role) -> usize {
        of(&self.layout.roles, &self.strides, role).unwrap_or(0)
    }

    /// The position of a sample, and the strides from there.
    pub(crate) fn place(&self, level: usize, row: usize, column: usize, channel: usize) -> SampleStrides {
        let at = |role: Role, i: usize| i.saturating_sub(self.range(role).start) * self.stride(role);
        let first = at(Role::Time, self.layout.time as usize) + at(Role::Level, level) + at(Role::Row, row);
        SampleStrides {
            first: first + at(Role::Column, column) + at(Role::Channel, channel),
            row: self.stride(Role::Row),
            column: self.stride(Role::Column),
            channel: self.stride(Role::Channel),
        }
    }
}

/// The position of a first sample, and strides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SampleStrides {
    /// The first sample.
    pub(crate) first: usize,
    /// Samples from a row to the next.
    pub(crate) row: usize,
    /// Samples from a column to the next.
    pub(crate) column: usize,
    /// Samples from a channel to the next.
    pub(crate) channel: usize,
}

impl SampleStrides {
    /// The position of a sample in the contiguous memory of a region whose pixels have `samples`
    /// samples.
    pub(crate) fn within(
        region: Region,
        samples: usize,
        (level, row, column, channel): (usize, usize, usize, usize),
    ) -> SampleStrides {
        let pixel = (level * region.height + row - region.top) * region.width + column - region.left;
        SampleStrides { first: pixel * samples + channel, row: region.width * samples, column: samples, channel: 1 }
    }
}

/// Copies `rows` rows of `columns` pixels of `channels` samples of `size` bytes.
pub(crate) fn copy(
    from: &[u8],
    at: SampleStrides,
    to: &mut [u8],
    there: SampleStrides,
    (rows, columns, channels): (usize, usize, usize),
    size: usize,
) {
    let adjoins = |place: SampleStrides| place.column == channels && (channels == 1 || place.channel == 1);
    for y in 0..rows {
        let (a, b) = (at.first + y * at.row, there.first + y * there.row);
        if adjoins(at) && adjoins(there) {
            let n = columns * channels;
            to[b * size..(b + n) * size].copy_from_slice(&from[a * size..(a + n) * size]);
            continue;
        }
        for (a, b) in (0..channels).map(|c| (a + c * at.channel, b + c * there.channel)) {
            match size {
                1 => samples::<1>(from, a, at.column, to, b, there.column, columns),
                2 => samples::<2>(from, a, at.column, to, b, there.column, columns),
                4 => samples::<4>(from, a, at.column, to, b, there.column, columns),
                _ => samples::<8>(from, a, at.column, to, b, there.column, columns),
            }
        }
    }
}

fn samples<const N: usize>(from: &[u8], a: usize, step: usize, to: &mut [u8], b: usize, stride: usize, columns: usize) {
    let (from, to) = (from.as_chunks::<N>().0, to.as_chunks_mut::<N>().0);
    for x in 0..columns {
        to[b + x * stride] = from[a + x * step];
    }
}

/// Number of indices in a range.
pub(crate) fn count(range: &Range<u64>) -> usize {
    (range.end - range.start) as usize
}

/// The value for a role from values for all axes.
fn of<T: Clone>(roles: &[Role], values: &[T], role: Role) -> Option<T> {
    roles.iter().position(|r| *r == role).and_then(|axis| values.get(axis)).cloned()
}

fn listed(roles: &[Role]) -> String {
    roles.iter().map(|role| role.name()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_that_are_no_image_are_named() {
        let fails = |roles: &[Role], extents: &[u64], time, cause: &str| {
            let error = ArrayLayout::new(roles.to_vec(), extents.to_vec(), time).unwrap_err();
            assert!(error.contains(cause), "{error}");
        };
        use Role::*;
        fails(&[Row, Channel], &[2, 3], None, "its axes are y, c: an image needs y and x");
        fails(&[Row, Row, Column], &[2, 3, 4], None, "y occurs twice");
        fails(&[Row, Column], &[2, 3, 4], None, "an array of 3 axes, of which 2 are described (y, x)");
        fails(&[Time, Row, Column], &[2, 3, 4], None, "it has 2 times");
        fails(&[Time, Row, Column], &[2, 3, 4], Some(2), "time 2 requested, but it has 2");
        fails(&[Row, Column], &[3, 4], Some(1), "time 1 requested, but it has 1");
    }

    /// Every order of axes, against indices computed sample by sample.
    #[test]
    fn samples_are_found_in_every_order_of_axes() {
        use Role::*;
        let orders = [
            vec![Time, Channel, Level, Row, Column],
            vec![Level, Row, Column, Channel],
            vec![Column, Row],
            vec![Row, Level, Column, Channel, Time],
        ];
        for roles in orders {
            let extent = |role: &Role| match role {
                Time => 2,
                Channel => 3,
                Level => 4,
                Row => 5,
                Column => 6,
            };
            let extents: Vec<u64> = roles.iter().map(extent).collect();
            let time = roles.contains(&Time).then_some(1);
            let layout = ArrayLayout::new(roles.clone(), extents.clone(), time).unwrap();
            let region = Region::new(1, 2, 3, 4);
            let levels = if roles.contains(&Level) { 1..3 } else { 0..1 };
            let part = layout.part(&levels, region);
            let block = layout.block(&part);
            // A sample is its index in the whole array.
            let all: u64 = extents.iter().product();
            let index = |mut i: u64| {
                let mut at = vec![0; extents.len()];
                for axis in (0..extents.len()).rev() {
                    (at[axis], i) = (i % extents[axis], i / extents[axis]);
                }
                at
            };
            let inside = |at: &[u64]| at.iter().zip(&part).all(|(i, r)| r.contains(i));
            let bytes: Vec<u8> =
                (0..all).filter(|i| inside(&index(*i))).flat_map(|i| (i as u16).to_ne_bytes()).collect();
            let shape = layout.shape();
            for level in block.range(Level) {
                let mut pixels = vec![0; region.height * region.width * shape.channels * 2];
                let to = SampleStrides::within(region, shape.channels, (0, region.top, region.left, 0));
                let from = block.place(level, region.top, region.left, 0);
                copy(&bytes, from, &mut pixels, to, (region.height, region.width, shape.channels), 2);
                for (k, sample) in pixels.as_chunks::<2>().0.iter().enumerate() {
                    let at = index(u64::from(u16::from_ne_bytes(*sample)));
                    let (pixel, channel) = (k / shape.channels, k % shape.channels);
                    let (y, x) = (region.top + pixel / region.width, region.left + pixel % region.width);
                    let expected = roles.iter().map(|role| match role {
                        Time => 1,
                        Channel => channel,
                        Level => level,
                        Row => y,
                        Column => x,
                    });
                    assert!(expected.map(|i| i as u64).eq(at.iter().copied()), "{roles:?}, {at:?}");
                }
            }
            assert_eq!((block.range(Level), block.range(Channel)), (levels, 0..shape.channels));
        }
    }
}
