//! States of loops.

use super::Image;
use crate::dtype::Element;
use crate::session::Handle;

/// The state of a loop: an image, or a tuple, array or `Vec` of states.
pub trait LoopState: Sized {
    /// The images, in a fixed order.
    #[doc(hidden)]
    fn handles<'a>(&'a self, to: &mut Vec<&'a Handle>);

    /// The same state with other images of the same types.
    #[doc(hidden)]
    fn with(&self, from: &mut dyn Iterator<Item = Handle>) -> Self;
}

impl<T: Element> LoopState for Image<T> {
    fn handles<'a>(&'a self, to: &mut Vec<&'a Handle>) {
        to.push(self.handle());
    }

    fn with(&self, from: &mut dyn Iterator<Item = Handle>) -> Image<T> {
        Image::from_handle(from.next().expect("an image for each of the state"))
    }
}

impl<S: LoopState> LoopState for Vec<S> {
    fn handles<'a>(&'a self, to: &mut Vec<&'a Handle>) {
        self.iter().for_each(|s| s.handles(to));
    }

    fn with(&self, from: &mut dyn Iterator<Item = Handle>) -> Vec<S> {
        self.iter().map(|s| s.with(from)).collect()
    }
}

impl<S: LoopState, const N: usize> LoopState for [S; N] {
    fn handles<'a>(&'a self, to: &mut Vec<&'a Handle>) {
        self.iter().for_each(|s| s.handles(to));
    }

    fn with(&self, from: &mut dyn Iterator<Item = Handle>) -> [S; N] {
        std::array::from_fn(|i| self[i].with(from))
    }
}

macro_rules! tuples {
    ($($name:ident)+) => {
        impl<$($name: LoopState),+> LoopState for ($($name,)+) {
            #[allow(non_snake_case)]
            fn handles<'a>(&'a self, to: &mut Vec<&'a Handle>) {
                let ($($name,)+) = self;
                $($name.handles(to);)+
            }

            #[allow(non_snake_case)]
            fn with(&self, from: &mut dyn Iterator<Item = Handle>) -> Self {
                let ($($name,)+) = self;
                ($($name.with(from),)+)
            }
        }
    };
}
tuples!(A);
tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D E);
tuples!(A B C D E F);
