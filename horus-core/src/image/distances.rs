//! Distances to the background.

use super::{Image, record};
use crate::dtype::{Element, Float, Pixel};
use crate::error::{Call, Error, Site};
use crate::ir::graph::Op;
use crate::ops::distance::{JoinedOffsets, Metric, NONE, NearestOnLine, NearestPixel, NearestResult, Spacing};
use crate::shape::Axis;

/// Distances of an image's pixels to its background. See [`Image::distances`].
#[derive(Clone, Debug)]
pub struct Distances {
    /// Offsets to the nearest background row of each column; for volumes, to the nearest level.
    first: Image<i32>,
    offsets: JoinedOffsets,
    spacing: [f64; 3],
}

impl<T: Element> Image<T> {
    /// The distances of pixels to their nearest background pixel, which is 0 or false (SciPy's
    /// `distance_transform_edt` and `distance_transform_cdt`). They are exact, computed for each
    /// channel separately, and across all levels of a volume. A volume whose offsets exceed `i32`,
    /// such as 20,000 levels of 20,000 rows, is an error.
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
        let offsets = JoinedOffsets::of(self.shape());
        let first = self.attempt(self.shape(), || {
            if offsets.is_none() {
                let message = format!("{} levels of {} rows are too many", self.depth(), self.shape().height);
                return Err(Error::parameter(call, message));
            }
            let along = if self.depth() > 1 { Axis::Depth } else { Axis::Rows };
            let how = NearestOnLine { along };
            Ok(record(self.session(), Op::from(how), &[self.handle()], self.shape(), site))
        });
        Distances { first, offsets: offsets.unwrap_or(JoinedOffsets::ROWS), spacing: [1.0; 3] }
    }
}

impl Distances {
    /// Sets the height and width of a pixel, both above 0, for [`euclidean`](Self::euclidean)
    /// distances.
    #[must_use]
    pub fn spaced(self, rows: f64, columns: f64) -> Distances {
        let [levels, ..] = self.spacing;
        Distances { spacing: [levels, rows, columns], ..self }
    }

    /// Sets the distance between levels, like [`spaced`](Self::spaced).
    #[must_use]
    pub fn spaced_levels(self, levels: f64) -> Distances {
        let [_, rows, columns] = self.spacing;
        Distances { spacing: [levels, rows, columns], ..self }
    }

    /// The length of the straight line to the nearest background pixel; infinite without
    /// background. It is the square root, rounded to `F`, of a sum of squares in `f64`, which is
    /// exact unless pixels are [spaced](Self::spaced).
    #[track_caller]
    pub fn euclidean<F: Float>(&self) -> Image<F> {
        self.found(self.lengths(), NearestResult::Distance, Call::of("euclidean").site)
    }

    /// The smallest number of steps along rows, columns and levels to a background pixel; -1
    /// without background.
    #[track_caller]
    pub fn taxicab(&self) -> Image<i32> {
        self.found(Metric::Taxicab, NearestResult::Distance, Call::of("taxicab").site)
    }

    /// The smallest number of steps to a background pixel, diagonal steps included; -1 without
    /// background.
    #[track_caller]
    pub fn chessboard(&self) -> Image<i32> {
        self.found(Metric::Chessboard, NearestResult::Distance, Call::of("chessboard").site)
    }

    /// The row and the column of the background pixel with the smallest
    /// [`euclidean`](Self::euclidean) distance; -1 without background. On a tie, the first column
    /// wins, then the first row, then the first level, as in SciPy.
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
        let site = Call::of("nearest").site;
        [self.place(NearestResult::Row, Axis::Rows, site), self.place(NearestResult::Column, Axis::Columns, site)]
    }

    /// The level of the background pixel of a volume whose row and column are
    /// [`nearest`](Self::nearest).
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let volume = Image::from_volume_fn(&session, 3, 1, 2, |z, _, x| u8::from((z, x) != (2, 0)));
    /// let away = volume.distances().spaced_levels(5.0);
    /// assert_eq!(away.nearest_level().to_vec()?, [2; 6]);
    /// assert_eq!(away.euclidean::<f32>().to_vec()?[..3], [10.0, 101f32.sqrt(), 5.0]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[track_caller]
    pub fn nearest_level(&self) -> Image<i32> {
        self.place(NearestResult::Level, Axis::Depth, Call::of("nearest_level").site)
    }

    fn lengths(&self) -> Metric {
        Metric::Euclidean(Spacing::new(self.spacing))
    }

    fn place(&self, found: NearestResult, axis: Axis, site: Site) -> Image<i32> {
        let by: Image<i32> = self.found(self.lengths(), found, site);
        let place = Image::index(by.session(), by.shape(), axis) + &by;
        by.eq(NONE).select(-1, place)
    }

    fn found<R: Pixel>(&self, metric: Metric, found: NearestResult, site: Site) -> Image<R> {
        let shape = self.first.shape();
        self.first.attempt(shape, || {
            if !self.spacing.iter().all(|v| *v > 0.0 && v.is_finite()) {
                let [levels, rows, columns] = self.spacing;
                let levels = if shape.depth > 1 { format!("{levels} x ") } else { String::new() };
                let message = format!("pixels of {levels}{rows} x {columns}; sizes must be positive and finite");
                return Err(Error::parameter(Call { op: "distances", site }, message));
            }
            let session = self.first.session();
            let pass = |along: Axis, found: NearestResult| {
                Op::from(NearestPixel { along, offsets: self.offsets, metric, found })
            };
            let last = pass(Axis::Columns, found);
            if shape.depth <= 1 {
                return Ok(record(session, last, &[self.first.handle()], shape, site));
            }
            let joined: Image<i32> =
                record(session, pass(Axis::Rows, NearestResult::Joined), &[self.first.handle()], shape, site);
            Ok(record(session, last, &[joined.handle()], shape, site))
        })
    }
}
