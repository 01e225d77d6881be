//! Distances to the background.

use std::panic::Location;

use super::{Image, record};
use crate::dtype::{Element, Float, Pixel};
use crate::error::{Call, Error, Site};
use crate::ir::graph::Op;
use crate::ops::distance::{Metric, NONE, NearestPixel, NearestRow, Sought, Spacing};
use crate::shape::Axis;

/// Distances of an image's pixels to its background: see [`Image::distances`].
#[derive(Clone, Debug)]
pub struct Distances {
    /// Offsets of the nearest background row of each column.
    rows: Image<i32>,
    spacing: Spacing,
}

impl<T: Element> Image<T> {
    /// The distances of pixels to their nearest background pixel, one that is 0 or false (SciPy's
    /// `distance_transform_edt` and `distance_transform_cdt`): exact, of each channel apart. A
    /// volume is an error: its levels are [slices](Image::slice).
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let cell = Image::from_slice(&session, (3, 4), &[1u8, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1]).gt(0);
    /// let away = cell.distances();
    /// let round = away.euclidean::<f32>().to_vec()?;
    /// assert_eq!(round[..3], [1.0, 2.0f32.sqrt(), 5.0f32.sqrt()]);
    /// assert_eq!(away.taxicab().to_vec()?, [1, 2, 3, 4, 0, 1, 2, 3, 1, 2, 3, 4]);
    /// assert_eq!(away.chessboard().to_vec()?, [1, 1, 2, 3, 0, 1, 2, 3, 1, 1, 2, 3]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias("distance_transform_edt", "distance_transform_cdt", "distanceTransform"))]
    #[track_caller]
    pub fn distances(&self) -> Distances {
        let call @ Call { site, .. } = Call::of("distances");
        let rows = self.attempt(self.shape(), || {
            if self.depth() != 1 {
                let message = format!("the image has {} levels; look at each slice", self.depth());
                return Err(Error::parameter(call, message));
            }
            Ok(record(self.session(), Op::from(NearestRow), &[self.handle()], self.shape(), site))
        });
        Distances { rows, spacing: Spacing::UNIT }
    }
}

impl Distances {
    /// The same of pixels that are `rows` high and `columns` wide: sizes above 0, by which
    /// [`euclidean`](Self::euclidean) distances count.
    #[must_use]
    pub fn spaced(self, rows: f64, columns: f64) -> Distances {
        Distances { spacing: Spacing::new(rows, columns), ..self }
    }

    /// The length of the straight line to the nearest background pixel, infinite without
    /// background: the root, rounded to `F`, of a sum of squares in `f64`, which is exact unless
    /// pixels are [spaced](Self::spaced).
    #[track_caller]
    pub fn euclidean<F: Float>(&self) -> Image<F> {
        self.found(Metric::Euclidean(self.spacing), Sought::Distance, Location::caller())
    }

    /// The fewest steps along rows and columns to a background pixel; -1 without background.
    #[track_caller]
    pub fn taxicab(&self) -> Image<i32> {
        self.found(Metric::Taxicab, Sought::Distance, Location::caller())
    }

    /// The fewest steps to a background pixel, also to pixels that share a corner; -1 without
    /// background.
    #[track_caller]
    pub fn chessboard(&self) -> Image<i32> {
        self.found(Metric::Chessboard, Sought::Distance, Location::caller())
    }

    /// The row and the column of the background pixel with the smallest
    /// [`euclidean`](Self::euclidean) distance; -1 without background. Of several it is that of the
    /// first column, and in it the upper one, as in SciPy.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_slice(&session, (2, 3), &[1u8, 1, 1, 0, 1, 0]);
    /// let [rows, columns] = image.distances().nearest();
    /// assert_eq!((rows.to_vec()?, columns.to_vec()?), (vec![1; 6], vec![0, 0, 2, 0, 0, 2]));
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[track_caller]
    pub fn nearest(&self) -> [Image<i32>; 2] {
        let site = Location::caller();
        [(Sought::Row, Axis::Rows), (Sought::Column, Axis::Columns)].map(|(found, axis)| {
            let by: Image<i32> = self.found(Metric::Euclidean(self.spacing), found, site);
            let place = Image::index(by.session(), by.shape(), axis) + &by;
            by.eq(NONE).select(-1, place)
        })
    }

    fn found<R: Pixel>(&self, metric: Metric, found: Sought, site: Site) -> Image<R> {
        let shape = self.rows.shape();
        self.rows.attempt(shape, || {
            if !self.spacing.get().iter().all(|v| *v > 0.0 && v.is_finite()) {
                let [rows, columns] = self.spacing.get();
                let message = format!("pixels of {rows} x {columns}; sizes are finite and above 0");
                return Err(Error::parameter(Call { op: "distances", site }, message));
            }
            let how = NearestPixel { metric, found };
            Ok(record(self.rows.session(), Op::from(how), &[self.rows.handle()], shape, site))
        })
    }
}
