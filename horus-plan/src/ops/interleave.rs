//! The two orders of samples of several channels: in planes, one channel after the other, and interleaved, pixel after
//! pixel, as arrays and files have them.

use super::footprint::{Access, Reading, Rect};
use super::operation::{Effort, Extent, Family, ImageOperation, Instance, Sampled, Sizes, images, makes, stays};
use horus_base::placed::Placed;
use horus_base::shape::Shape;

/// A plane for each sample of interleaved pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Deinterleave;

/// Pixels that have the samples of all channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Interleave;

macro_rules! order {
    ($operation:ident, $kind:literal, $made:ident, $from:ident) => {
        impl ImageOperation for $operation {
            fn kind(&self) -> &'static str {
                $kind
            }

            fn check(&self, inputs: &[Extent], output: Extent) -> Result<(), String> {
                let [(shape, dtype)] = images(inputs)?;
                if shape.$made().$from() != shape {
                    return Err(format!("{shape} has both orders of samples"));
                }
                makes((shape.$made(), dtype), output)
            }

            fn reads(&self, _: usize, need: Rect, _: Shape) -> Reading {
                Reading::inside(need)
            }

            fn access(&self, _: usize) -> Access {
                Access::IN_PLACE
            }

            fn placed(&self, _: usize, from: Shape, to: Shape) -> Option<Placed> {
                stays(from, to)
            }

            fn in_place(&self, _: usize) -> bool {
                true
            }

            fn by_levels(&self, _: usize) -> bool {
                true
            }

            fn knows_samples(&self) -> bool {
                true
            }

            fn effort(&self, _: &[Extent], output: Extent, rows: usize) -> Effort {
                Effort::of_rows(Family::Pixel, output.0, rows, 0.0)
            }
        }
    };
}
order!(Deinterleave, "deinterleave", deinterleaved, interleaved);
order!(Interleave, "interleave", interleaved, deinterleaved);

impl Sampled for Deinterleave {
    fn samples(of: Sizes) -> Vec<Instance> {
        vec![Instance::of(Deinterleave, &[(of.image.0.interleaved(), of.image.1)], of.image)]
    }
}

impl Sampled for Interleave {
    fn samples(of: Sizes) -> Vec<Instance> {
        vec![Instance::of(Interleave, &[of.image], (of.image.0.interleaved(), of.image.1))]
    }
}
