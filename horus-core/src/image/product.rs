//! Matrix products.

use super::{Image, check_shape, record};
use crate::dtype::Float;
use crate::error::{Call, Error};
use crate::ir::graph::Op;
use crate::ops::MatrixProduct;
use crate::shape::Shape;

/// Products of images as matrices. Each rank computes its own rows, from its rows of the first
/// factor and all of the second.
impl<T: Float> Image<T> {
    /// The matrix product of each plane with the plane of `other` (`numpy.matmul`). `other` has as
    /// many rows as this image has columns, and the same levels and channels. The terms of a pixel
    /// are added in order, by fused multiply-adds.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let a = Image::from_slice(&session, (2, 3), &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    /// assert_eq!(a.matmul(&a.transpose()).to_vec()?, [14.0, 32.0, 32.0, 77.0]);
    /// let message = a.matmul(&a).to_vec().unwrap_err().to_string();
    /// assert!(message.starts_with("matmul: 2x3 times 2x3; "), "{message}");
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias = "gemm")]
    #[track_caller]
    pub fn matmul(&self, other: &Image<T>) -> Image<T> {
        let site = Call::of("matmul").site;
        let call = Call { op: "matmul", site };
        let (a, b) = (self.shape(), other.shape());
        let shape = Shape { width: b.width, ..a };
        self.attempt(shape, || {
            other.check()?;
            if !self.session().same(other.session()) {
                return Err(Error::ForeignImage { op: call.op, site });
            }
            if a.width != b.height || (a.depth, a.channels) != (b.depth, b.channels) {
                let message = format!("{a} times {b}; columns of the first must equal rows of the second, levels and channels those of the second");
                return Err(Error::parameter(call, message));
            }
            check_shape(call, shape, T::DTYPE)?;
            Ok(record(self.session(), Op::from(MatrixProduct), &[self.handle(), other.handle()], shape, site))
        })
    }
}
