//! Pictures with alpha: what mixes neighbours weighs their colours by it.
//!
//! A transparent pixel has a colour that nobody sees. Where neighbours are mixed it must not count, so colours are multiplied by
//! alpha before, and divided by the alpha of the result after. Colours that are stored multiplied are mixed as they are.

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

    /// The result for an image of any channels. `beyond` tells the constant that is read or stored beyond the edge, from the one that was
    /// asked for.
    fn of<P: Pixel>(&self, image: &Image<P>, beyond: fn(f64) -> f64) -> Image<Self::Of<P>>;
}

/// The border mode with another constant.
pub(super) fn border_beyond(border: Border, beyond: fn(f64) -> f64) -> Border {
    match border {
        Border::Constant(value) => Border::Constant(beyond(value)),
        other => other,
    }
}

/// The edge with another constant.
pub(super) fn edge_beyond(edge: WarpEdge, beyond: fn(f64) -> f64) -> WarpEdge {
    match edge {
        WarpEdge::Border(border) => WarpEdge::Border(border_beyond(border, beyond)),
        WarpEdge::Inside(inside) => WarpEdge::Inside(InsidePixels { value: beyond(inside.value), ..inside }),
    }
}

impl<T: Pixel> Image<T> {
    /// The result of an operation that mixes neighbours; of a picture whose colours are not multiplied by its alpha, of weighed colours.
    /// Where nothing is seen colours are 0.
    #[track_caller]
    pub(super) fn by_alpha<M: Mixing>(&self, how: &M) -> Image<M::Of<T>> {
        let plain = how.of(self, |value| value);
        let alpha = Attributes::alpha(self.handle().attributes.as_ref());
        if alpha != Some(Alpha::Unassociated) || self.channels() < 2 {
            return plain;
        }
        // Products of numbers of 16 bits are whole in f64, as sums of few of them.
        match T::TAG.size() {
            1 => self.weighed::<f32, M>(how, plain),
            _ if T::TAG == f32::TAG => self.weighed::<f32, M>(how, plain),
            _ => self.weighed::<f64, M>(how, plain),
        }
    }

    /// The weighed result in the place of the plain one, computed in type `W`.
    #[track_caller]
    fn weighed<W: Pixel, M: Mixing>(&self, how: &M, plain: Image<M::Of<T>>) -> Image<M::Of<T>> {
        let channels = self.unstack(Axis::Channels);
        let Some((alpha, colours)) = channels.split_last() else { return plain };
        let (weight, nothing) = (alpha.convert::<W>(), W::from_f64(0.0));
        let total = how.of(&weight, |value| value);
        let seen = total.gt(<M::Of<W> as Pixel>::from_f64(0.0));
        // Products with a colour that is no number are no number either.
        let there = weight.gt(nothing);
        let mix = |colour: &Image<T>| {
            let weighed = there.select(colour.convert::<W>() * &weight, nothing);
            let mixed = how.of(&weighed, |value| value * value);
            seen.select(mixed / &total, <M::Of<W> as Pixel>::from_f64(0.0)).convert::<M::Of<T>>()
        };
        let mut parts: Vec<Image<M::Of<T>>> = colours.iter().map(mix).collect();
        parts.push(plain.channel(plain.channels() - 1));
        let mut found = Image::stack(self.session(), &parts, Axis::Channels);
        // All that is known of the plain result is true of this one.
        found.handle.attributes.clone_from(&plain.handle().attributes);
        found
    }
}
