//! Sessions: where images live and programs are recorded.

use std::sync::Arc;

use crate::buffer::HostBuffer;
use crate::comm::Communicator;
use crate::dtype::DType;
use crate::error::{Result, Site};
use crate::graph::Op;
use crate::shape::Shape;

/// Who needs a value on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// Rank 0 alone (saving).
    Root,
    /// Every rank (reading back).
    Everyone,
}

/// A session: a device, a communicator, and the images and programs recorded on them. Cheap to clone.
#[derive(Clone)]
pub struct Session {}

/// A recorded value that somebody can still observe. Dropping the last clone makes it unobservable.
#[derive(Clone)]
pub(crate) struct Handle {
    pub(crate) session: Session,
    pub(crate) shape: Shape,
    pub(crate) dtype: DType,
}

impl Session {
    /// Whether both are the same session.
    pub(crate) fn same(&self, _other: &Session) -> bool {
        unreachable!()
    }

    /// Appends an operation to the program. Inputs must belong to this session. Cheap; never evaluates more than the
    /// flush policy asks for, hence the result.
    pub(crate) fn record(&self, _op: Op, _inputs: &[&Handle], _shape: Shape, _dtype: DType, _site: Site) -> Handle {
        unreachable!()
    }

    /// An image whose pixels every rank has (planes one after the other, row-major).
    pub(crate) fn source(&self, _shape: Shape, _dtype: DType, _pixels: HostBuffer, _site: Site) -> Handle {
        unreachable!()
    }

    /// An image whose pixels rank 0 has; other ranks pass `None` and must agree on shape and type.
    pub(crate) fn source_on_root(
        &self,
        _shape: Shape,
        _dtype: DType,
        _pixels: Option<HostBuffer>,
        _site: Site,
    ) -> Handle {
        unreachable!()
    }

    /// Evaluates a value and brings its pixels to the host: on rank 0, or everywhere (then always `Some`). Planes one
    /// after the other, row-major.
    pub(crate) fn fetch(&self, _value: &Handle, _want: Want) -> Result<Option<Arc<HostBuffer>>> {
        unreachable!()
    }

    /// The communicator.
    pub(crate) fn comm(&self) -> &dyn Communicator {
        unreachable!()
    }
}
