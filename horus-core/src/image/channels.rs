//! Channels of an image, apart and together.

use std::panic::Location;

use super::{Image, check_shape, record};
use crate::dtype::Pixel;
use crate::error::{Error, Result};
use crate::graph::Op;
use crate::shape::Shape;

/// Red, green and blue in the luminance of ITU-R BT.601.
const LUMINANCE: [f32; 3] = [0.299, 0.587, 0.114];

impl<T: Pixel> Image<T> {
    /// Channel `i` as an image of one channel.
    ///
    /// # Errors
    /// If there is no such channel.
    #[track_caller]
    pub fn channel(&self, i: usize) -> Result<Image<T>> {
        let site = Location::caller();
        if i >= self.channels() {
            return Err(Error::parameter("channel", format!("no channel {i} among {}", self.channels()), site));
        }
        if self.channels() == 1 {
            return Ok(self.clone());
        }
        Ok(self.node_of_shape(Op::Channel(i), Shape { channels: 1, ..self.shape() }, site))
    }

    /// The one-channel images `planes` as the channels of one image.
    ///
    /// # Errors
    /// If there is none, one has several channels, or sizes or sessions differ.
    #[track_caller]
    pub fn merge(planes: &[&Image<T>]) -> Result<Image<T>> {
        let site = Location::caller();
        let Some(first) = planes.first() else {
            return Err(Error::Empty { op: "merge", shape: Shape::new(0, 0, 0), site });
        };
        for plane in planes {
            first.check_match("merge", plane, site)?;
            if plane.channels() != 1 {
                let message = format!("an image of {} channels is no plane", plane.channels());
                return Err(Error::parameter("merge", message, site));
            }
        }
        let shape = Shape { channels: planes.len(), ..first.shape() };
        check_shape::<T>("merge", shape, site)?;
        let inputs: Vec<_> = planes.iter().map(|p| p.handle()).collect();
        Ok(record(first.session(), Op::Merge, &inputs, shape, site))
    }

    /// The luminance, `0.299 R + 0.587 G + 0.114 B` (ITU-R BT.601) in `f32`, on the scale of the pixels. One channel is
    /// grey already; the last of two or four channels is taken for opacity and ignored.
    ///
    /// # Errors
    /// If there are more than four channels.
    #[track_caller]
    pub fn luminance(&self) -> Result<Image<f32>> {
        match self.channels() {
            1 | 2 => Ok(self.channel(0)?.convert()),
            3 | 4 => {
                let weighted = |i: usize| Ok(self.channel(i)?.convert::<f32>() * LUMINANCE[i]);
                (weighted(0)? + weighted(1)?)? + weighted(2)?
            }
            n => {
                let message = format!("an image of {n} channels has no luminance");
                Err(Error::parameter("luminance", message, Location::caller()))
            }
        }
    }
}
