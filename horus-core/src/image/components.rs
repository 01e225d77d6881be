//! Connected components.

use crate::ops::Components;

use super::{Image, record};
use crate::dtype::Element;
use crate::error::{Call, Error};
use crate::ir::graph::Op;
use crate::ops::components::{Connectivity, MOST_PIXELS};

impl<T: Element> Image<T> {
    /// Labels the connected components of the pixels that are not 0, or true
    /// (`scipy.ndimage.label`). Each pixel becomes the number of its component: 1, 2, and so on, in
    /// the raster order of the components' first pixels. The background becomes 0. The number of
    /// components is the largest label ([`max_value`](Image::max_value)). A NaN is not 0.
    ///
    /// `neighbours` also applies across the levels of a volume: with [`Connectivity::FACES`] a
    /// pixel has 4 neighbours in an image and 6 in a volume. Every rank labels the whole image, so
    /// several ranks take as long as one. An image of several channels (see
    /// [`channel`](Image::channel)) or of more than 2^31 - 1 pixels is an error.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_slice(&session, (3, 4), &[0u8, 9, 0, 7, 9, 0, 0, 7, 0, 0, 7, 0]).gt(5);
    /// let apart = image.label(Connectivity::FACES);
    /// assert_eq!(apart.to_vec()?, [0, 1, 0, 2, 3, 0, 0, 2, 0, 0, 4, 0]);
    /// let touching = image.label(Connectivity::CORNERS);
    /// assert_eq!(touching.to_vec()?, [0, 1, 0, 2, 1, 0, 0, 2, 0, 0, 2, 0]);
    /// assert_eq!(touching.max_value().get()?, 2);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias = "connectedComponents")]
    #[track_caller]
    pub fn label(&self, neighbours: Connectivity) -> Image<i32> {
        let call @ Call { site, .. } = Call::of("label");
        self.attempt(self.shape(), || {
            let wrong = |message| Err(Error::parameter(call, message));
            let shape = self.shape();
            if shape.channels != 1 {
                return wrong(format!("the image has {} channels; take one (`channel`)", shape.channels));
            }
            if shape.len() > MOST_PIXELS {
                let pixels = shape.len();
                return wrong(format!(
                    "an image of {shape} has {pixels} pixels; labels are i32, the limit is {MOST_PIXELS}"
                ));
            }
            Ok(record(self.session(), Op::from(Components { neighbours }), &[self.handle()], shape, site))
        })
    }
}
