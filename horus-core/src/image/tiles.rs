//! Reductions of tiles and windows to images.

use crate::ops::Tiled;

use super::{Image, record};
use crate::dtype::{Element, Pixel};
use crate::error::{Call, Error, Site};
use crate::ir::graph::Op;
use crate::ops::tiles::{Grid, TileReduce};
use crate::shape::{Axis, Shape};

/// The tiles or windows of an image. See [`Image::tiles`] and [`Image::windows`]. Each reduction is
/// an image with one pixel per tile or window, channel by channel.
#[derive(Clone, Debug)]
pub struct Tiles<T: Element> {
    image: Image<T>,
    grid: Grid,
    shape: Shape,
}

/// Division into tiles or windows that are reduced separately.
impl<T: Pixel> Image<T> {
    /// Divides the image into adjacent tiles of `height x width` pixels, from the upper left corner
    /// on. Tiles at the lower and right edges may be smaller. A size of 0 is an error. A tile
    /// larger than the image is the image.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_slice(&session, (2, 5), &[1u8, 3, 5, 7, 20, 2, 4, 6, 8, 22]);
    /// let tiles = image.tiles(2, 2);
    /// assert_eq!(tiles.mean().to_vec()?, [2.5, 6.5, 21.0]);
    /// assert_eq!(tiles.max().to_vec()?, [4, 8, 22]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias = "block_reduce")]
    #[track_caller]
    pub fn tiles(&self, height: usize, width: usize) -> Tiles<T> {
        let grid = Grid { height, width, down: height, across: width };
        let count = |extent: usize, step: usize| if step == 0 { 0 } else { extent.div_ceil(step) };
        let Shape { height: h, width: w, .. } = self.shape();
        let shape = Shape { height: count(h, height), width: count(w, width), ..self.shape() };
        self.partial(Call::of("tiles"), grid, shape)
    }

    /// Selects the windows of `height x width` pixels that lie in the image, from the upper left
    /// corner on, every `down` rows and `across` columns
    /// (`numpy.lib.stride_tricks.sliding_window_view`, with steps). It is an error if a size or a
    /// step is zero, or the image smaller than a window.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_slice(&session, (1, 6), &[1.0f32, 2.0, 3.0, 4.0, 5.0, 60.0]);
    /// assert_eq!(image.windows((1, 3), (1, 2)).sum().to_vec()?, [6.0, 12.0]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias = "sliding_window_view")]
    #[track_caller]
    pub fn windows(&self, (height, width): (usize, usize), (down, across): (usize, usize)) -> Tiles<T> {
        let grid = Grid { height, width, down, across };
        let count = |extent: usize, size: usize, step: usize| match extent.checked_sub(size) {
            Some(rest) if step > 0 && size > 0 => rest / step + 1,
            _ => 0,
        };
        let Shape { height: h, width: w, .. } = self.shape();
        let shape = Shape { height: count(h, height, down), width: count(w, width, across), ..self.shape() };
        self.partial(Call::of("windows"), grid, shape)
    }

    fn partial(&self, call: Call, grid: Grid, shape: Shape) -> Tiles<T> {
        // An image that carries an error has a result of one pixel.
        let none = shape.is_empty();
        let shape = if none { Shape { height: 1, width: 1, ..shape } } else { shape };
        let image = self.attempt(self.shape(), || {
            let Grid { height, width, down, across } = grid;
            if none {
                let of =
                    if call.op == "tiles" { String::new() } else { format!(" every {down} rows and {across} columns") };
                let message = format!("an image of {} has no {} of {height}x{width} pixels{of}", self.shape(), call.op);
                return Err(Error::parameter(call, message));
            }
            Ok(self.clone())
        });
        Tiles { image, grid, shape }
    }
}

/// Statistics of each tile or window. The order is fixed ([`ops::tiles`](crate::ops::tiles)), so
/// the bits are the same on all devices and any number of ranks. A rank computes the tiles that
/// begin in its rows.
impl<T: Pixel> Tiles<T> {
    fn reduced<R: Pixel>(&self, how: TileReduce, site: Site) -> Image<R> {
        record(
            self.image.session(),
            Op::from(Tiled { grid: self.grid, reduce: how }),
            &[self.image.handle()],
            self.shape,
            site,
        )
    }

    /// The sum of each tile or window, in `f64`.
    #[track_caller]
    pub fn sum(&self) -> Image<f64> {
        self.reduced(TileReduce::Sum, Call::of("sum").site)
    }

    /// The mean of each tile or window.
    #[track_caller]
    pub fn mean(&self) -> Image<f64> {
        let site = Call::of("mean").site;
        self.per_pixel(self.reduced(TileReduce::Sum, site))
    }

    /// The population variance of each tile or window: the mean of the squared deviation from its
    /// mean, which is computed first.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_slice(&session, (1, 5), &[1.0f32, 3.0, 10.0, 10.0, 7.0]);
    /// assert_eq!(image.tiles(1, 2).variance().to_vec()?, [1.0, 0.0, 0.0]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[track_caller]
    pub fn variance(&self) -> Image<f64> {
        let site = Call::of("variance").site;
        self.per_pixel(self.reduced(TileReduce::SquaredDeviation, site))
    }

    /// The smallest pixel of each tile or window, ignoring NaN (infinity if there is nothing else).
    #[track_caller]
    pub fn min(&self) -> Image<T> {
        self.reduced(TileReduce::Min, Call::of("min").site)
    }

    /// The largest pixel of each tile or window, ignoring NaN (minus infinity if there is nothing
    /// else).
    #[track_caller]
    pub fn max(&self) -> Image<T> {
        self.reduced(TileReduce::Max, Call::of("max").site)
    }

    /// Divides totals by the numbers of pixels, which depend on the position.
    #[track_caller]
    fn per_pixel(&self, total: Image<f64>) -> Image<f64> {
        let (image, grid) = (self.image.shape(), self.grid);
        let (rows, columns) = grid.rectangle(image, self.shape.height - 1, self.shape.width - 1);
        if (rows.len(), columns.len()) == (grid.height, grid.width) {
            return total / (grid.height * grid.width) as f64;
        }
        let count = |axis, extent: usize, step: usize, size: usize| {
            let first = Image::<f64>::index(self.image.session(), self.shape, axis) * step as f64;
            (extent as f64 - first).min(size as f64)
        };
        let rows = count(Axis::Rows, image.height, grid.down, grid.height);
        total / (rows * count(Axis::Columns, image.width, grid.across, grid.width))
    }
}
