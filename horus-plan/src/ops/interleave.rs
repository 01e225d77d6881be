//! The two orders of samples of several channels: in planes (one channel after another), and interleaved (pixel after
//! pixel), as in arrays and files.

use super::footprint::{Access, InputRead, Rect};
use super::operation::{
    Family, ImageExtent, ImageOperation, Instance, LaunchEffort, SampleImages, SampleOperations, images, makes, stays,
};
use horus_base::position_map::PositionMap;
use horus_base::shape::Shape;

/// A plane for each sample of interleaved pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Deinterleave;

/// Pixels with the samples of all channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Interleave;

macro_rules! order {
    ($operation:ident, $kind:literal, $made:ident, $from:ident) => {
        impl ImageOperation for $operation {
            fn kind(&self) -> &'static str {
                $kind
            }

            fn check(&self, inputs: &[ImageExtent], output: ImageExtent) -> Result<(), String> {
                let [(shape, dtype)] = images(inputs)?;
                if shape.$made().$from() != shape {
                    return Err(format!("{shape} has both orders of samples"));
                }
                makes((shape.$made(), dtype), output)
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

            fn supports_samples(&self) -> bool {
                true
            }

            fn effort(&self, _: &[ImageExtent], output: ImageExtent, rows: usize) -> LaunchEffort {
                LaunchEffort::of_rows(Family::Pixel, output.0, rows, 0.0)
            }
        }
    };
}
order!(Deinterleave, "deinterleave", deinterleaved, interleaved);
order!(Interleave, "interleave", interleaved, deinterleaved);

impl SampleOperations for Deinterleave {
    fn samples(of: SampleImages) -> Vec<Instance> {
        vec![Instance::of(Deinterleave, &[(of.image.0.interleaved(), of.image.1)], of.image)]
    }
}

impl SampleOperations for Interleave {
    fn samples(of: SampleImages) -> Vec<Instance> {
        vec![Instance::of(Interleave, &[of.image], (of.image.0.interleaved(), of.image.1))]
    }
}
