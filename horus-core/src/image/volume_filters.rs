//! Filters across the levels of a volume. The order of summation is fixed: in the plane as in
//! [`Image::correlate`], along the depth from the first tap to the last. For an image, the border
//! mode supplies all levels except its own.

use std::collections::HashSet;

use super::argument::{ArgumentTerm, pixel};
use super::neighbourhood::check_filter;
use super::{Image, PerAxis};
use crate::dtype::{Element, Pixel};
use crate::error::{Call, Error, Site};
use crate::filters::{self, Footprint, tolerance};
use crate::ir::graph::Op;
use crate::ops::Fourier;
use crate::ops::fourier::EXTENTS;
use crate::ops::neighbourhood::{Filter, Reduce};
use crate::ops::pixel::PixelOp;
use crate::shape::{Border, Shape};

impl<T: Pixel> Image<T> {
    #[track_caller]
    pub(super) fn gauss_zyx(&self, op: &'static str, sigma: PerAxis<f64>, order: PerAxis<u32>) -> Image<T::Linear> {
        let call = Call::of(op);
        let plane = matches!(sigma, PerAxis::Plane(..)) || matches!(order, PerAxis::Plane(..));
        let volume = matches!(sigma, PerAxis::Volume(..)) || matches!(order, PerAxis::Volume(..));
        if plane && volume {
            let error = Error::parameter(call, "sigma and order must both be (y, x), or both (z, y, x)");
            return self.attempt(self.shape(), || Err(error));
        }
        let deep = volume || !plane && self.depth() > 1;
        let depth = if deep { 2 } else { 1 };
        let ([sz, sy, sx], [oz, oy, ox]) = (sigma.zyx(depth, 0.0), order.zyx(depth, 0));
        let (row, column) = match sy.to_bits() == sx.to_bits() {
            true => filters::gauss(sx, oy, ox),
            false => (filters::gauss(sx, 0, ox).0, filters::gauss(sy, oy, 0).1),
        };
        let flat = self.separable(&row, &column);
        match deep {
            true => flat.along_depth(call, &filters::gauss(sz, oz, 0).1, self.border(), false),
            false => flat,
        }
    }

    /// Correlates along the depth with the taps of a filter of one column.
    pub(super) fn along_depth(&self, call: Call, column: &Filter, border: Border, turned: bool) -> Image<T::Linear> {
        self.attempt(self.shape(), || {
            check_filter(call, column)?;
            let (linear, anchor) = (self.linear(call.site), (column.taps().len() / 2).cast_signed());
            let mut sum: Option<Image<T::Linear>> = None;
            for (tap, on) in column.taps().iter().zip(-anchor..) {
                let level = linear.levels(self.depth(), 1, if turned { -on } else { on }, border, call.site);
                let tap = ArgumentTerm::scalar(T::Linear::from_f64(*tap).scalar());
                let before = sum.as_ref().map_or(ArgumentTerm::scalar(T::Linear::ZERO.scalar()), ArgumentTerm::image);
                sum = Some(pixel(PixelOp::MulAdd, [ArgumentTerm::image(&level), tap, before], call.site));
            }
            sum.ok_or(Error::Empty { op: call.op, shape: Shape::volume(0, 1, 1, 1), site: call.site })
        })
    }

    /// Correlates with the parts of a filter, each with the level that it reads, relative to that of the pixel.
    pub(super) fn parts(&self, call: Call, parts: &[(Filter, isize)], border: Border) -> Image<T::Linear> {
        self.attempt(self.shape(), || {
            parts.iter().try_for_each(|(filter, _)| check_filter(call, filter))?;
            let linear = self.linear(call.site);
            if let Some(tiles) = self.tolerance.and_then(|t| self.transforms(parts, border, t)) {
                return Ok(linear.node(Op::from(tiles), call.site));
            }
            let responses = parts.iter().map(|(filter, on)| {
                let level = linear.levels(self.depth(), 1, *on, border, call.site);
                level.response(filter, border, (T::TAG, self.tolerance), call.site)
            });
            let sum =
                responses.reduce(|sum: Image<T::Linear>, response| together(PixelOp::Add, &sum, &response, call.site));
            sum.ok_or(Error::Empty { op: call.op, shape: Shape::volume(0, 1, 1, 1), site: call.site })
        })
    }

    /// The transforms for a filter across levels, if they cost less than its parts.
    fn transforms(&self, parts: &[(Filter, isize)], border: Border, t: f64) -> Option<Fourier> {
        let on = || parts.iter().map(|(_, on)| *on).chain([0]);
        let (first, last) = (on().min()?, on().max()?);
        let distinct = parts.iter().map(|(_, on)| on).collect::<HashSet<_>>().len() == parts.len();
        if !distinct || first == last || last.checked_sub(first)? >= EXTENTS[1].cast_signed() {
            return None;
        }
        let part =
            |on| parts.iter().find(|part| part.1 == on).map_or_else(|| Filter::sparse([], []), |part| part.0.clone());
        let filters: Vec<Filter> = (first..=last).map(part).collect();
        tolerance::across(&filters, first.unsigned_abs(), border, T::TAG, self.shape(), t)
    }
}

impl<T: Element> Image<T> {
    /// The minimum or maximum under a footprint for each level. If all footprints are equal, the
    /// plane and the depth are reduced one after the other.
    pub(super) fn extreme_across(
        &self,
        call: Call,
        footprints: &[Footprint],
        border: Border,
        reduce: Reduce,
    ) -> Image<T> {
        self.attempt(self.shape(), || {
            if footprints.len().is_multiple_of(2) {
                let message = format!("the footprint has {} levels; their number must be odd", footprints.len());
                return Err(Error::parameter(call, message));
            }
            let dilates = reduce == Reduce::Max;
            let op = if dilates { PixelOp::Max } else { PixelOp::Min };
            let anchor = (footprints.len() / 2).cast_signed();
            let level = |image: &Image<T>, on: isize| {
                image.levels(self.depth(), 1, if dilates { -on } else { on }, border, call.site)
            };
            let alike = footprints.windows(2).all(|pair| pair[0] == pair[1]);
            let flat = if alike { Some(self.extreme_under(&footprints[0], border, reduce, call.site)) } else { None };
            let extremes = footprints.iter().zip(-anchor..).map(|(footprint, on)| match &flat {
                Some(flat) => level(flat, on),
                None => level(self, on).extreme_under(footprint, border, reduce, call.site),
            });
            let extreme = extremes.reduce(|all, next| together(op, &all, &next, call.site));
            extreme.ok_or(Error::Empty { op: call.op, shape: Shape::volume(0, 1, 1, 1), site: call.site })
        })
    }
}

pub(super) fn together<T: Element>(op: PixelOp, a: &Image<T>, b: &Image<T>, site: Site) -> Image<T> {
    pixel(op, [ArgumentTerm::image(a), ArgumentTerm::image(b)], site)
}
