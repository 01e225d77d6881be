//! Operations that mix neighbours in pictures with alpha: colours are weighted by alpha.
//!
//! The colour of a transparent pixel must not count when neighbours are mixed. Colours are
//! therefore multiplied by alpha before, and divided by the alpha of the result afterwards. Colours
//! that are stored multiplied by alpha are mixed unchanged.

use super::Image;
use crate::dtype::{Element, Pixel};
use crate::ops::edge::{InsidePixels, WarpEdge};
use crate::session::Attributes;
use crate::shape::{Axis, Border};
use horus_files::Alpha;

/// An operation that mixes neighbours of each plane by weights that do not depend on the pixels.
pub(super) trait Mixing {
    /// The type of the result.
    type Of<P: Pixel>: Pixel;

    /// The result for an image with any channels. `beyond` maps the requested constant beyond the
    /// edge to the constant to use.
    fn of<P: Pixel>(&self, image: &Image<P>, beyond: fn(f64) -> f64) -> Image<Self::Of<P>>;
}

/// The border mode with its constant mapped by `beyond`.
pub(super) fn border_beyond(border: Border, beyond: fn(f64) -> f64) -> Border {
    match border {
        Border::Constant(value) => Border::Constant(beyond(value)),
        other => other,
    }
}

/// The edge with its constant mapped by `beyond`.
pub(super) fn edge_beyond(edge: WarpEdge, beyond: fn(f64) -> f64) -> WarpEdge {
    match edge {
        WarpEdge::Border(border) => WarpEdge::Border(border_beyond(border, beyond)),
        WarpEdge::Inside(inside) => WarpEdge::Inside(InsidePixels { value: beyond(inside.value), ..inside }),
    }
}

impl<T: Pixel> Image<T> {
    /// The result of an operation that mixes neighbours. If the colours of the picture are not
    /// multiplied by alpha, they are weighted by it; where the result is transparent, colours are
    /// 0.
    #[track_caller]
    pub(super) fn by_alpha<M: Mixing>(&self, how: &M) -> Image<M::Of<T>> {
        let plain = how.of(self, |value| value);
        let alpha = Attributes::alpha(self.handle().attributes.as_ref());
        if alpha != Some(Alpha::Unassociated) || self.channels() < 2 {
            return plain;
        }
        // Products of 16-bit integers, and sums of a few of them, are exact in f64.
        match T::TAG.size() {
            1 => self.weighed::<f32, M>(how, plain),
            _ if T::TAG == f32::TAG => self.weighed::<f32, M>(how, plain),
            _ => self.weighed::<f64, M>(how, plain),
        }
    }

    /// The weighted result that replaces `plain`, computed in type `W`.
    #[track_caller]
    fn weighed<W: Pixel, M: Mixing>(&self, how: &M, plain: Image<M::Of<T>>) -> Image<M::Of<T>> {
        let channels = self.unstack(Axis::Channels);
        let Some((alpha, colours)) = channels.split_last() else { return plain };
        let (weight, nothing) = (alpha.convert::<W>(), W::from_f64(0.0));
        let total = how.of(&weight, |value| value);
        let seen = total.gt(<M::Of<W> as Pixel>::from_f64(0.0));
        // A product with a NaN colour is NaN.
        let there = weight.gt(nothing);
        let mix = |colour: &Image<T>| {
            let weighed = there.select(colour.convert::<W>() * &weight, nothing);
            let mixed = how.of(&weighed, |value| value * value);
            seen.select(mixed / &total, <M::Of<W> as Pixel>::from_f64(0.0)).convert::<M::Of<T>>()
        };
        let mut parts: Vec<Image<M::Of<T>>> = colours.iter().map(mix).collect();
        parts.push(plain.channel(plain.channels() - 1));
        let mut found = Image::stack(self.session(), &parts, Axis::Channels);
        // The attributes of the plain result apply to this one.
        found.handle.attributes.clone_from(&plain.handle().attributes);
        found
    }
}
