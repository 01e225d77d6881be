//! Options for reading and saving.

use std::fmt;
use std::str::FromStr;

use super::{Compression, Orientation};
use horus_base::shape::Region;

/// Options for reading a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    /// The page of a TIFF file, counted from 0. By default the first, with a warning if there are others.
    pub page: Option<usize>,
    /// The copy of a TIFF page to read, counted from 0, the page itself. Pyramids have smaller copies, as pages marked
    /// as such or listed in the page; slides of Aperio and Hamamatsu as other pages, which then do not count as pages.
    pub level: usize,
    /// The region of the picture to read; by default all of it. For TIFF files, only the strips or tiles that contain
    /// it are read; for npy and PNM files, only its rows. Other files are decoded as a whole.
    pub region: Option<Region>,
    /// Maximum number of pixels (rows times columns times levels) of a picture, or of the region to read; 2^32 by
    /// default. More is an error before memory is allocated.
    pub max_pixels: u64,
    /// Reads the file as a volume: all pages of a TIFF file are levels or, if the file describes them (OME-XML, ImageJ,
    /// tifffile), levels and channels of the time selected by the page; the first of three axes of an npy array is the
    /// depth. By default, a file is an image, and only an npy array of four axes, `(depth, height, width, channels)`,
    /// is a volume.
    pub volume: bool,
    /// Use of the orientation stored in the file; by default it is applied.
    pub orientation: Orientation,
    /// Reads pixels on demand, and only the required regions, instead of now. By default, this applies to TIFF, npy and
    /// PNM files of at least 64 MiB of pixels. Other files are always read at once. A file that is read on demand must
    /// not be changed in place until then; it can be replaced, as saving does.
    pub on_demand: Option<bool>,
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions {
            page: None,
            level: 0,
            region: None,
            max_pixels: 1 << 32,
            volume: false,
            orientation: Orientation::Apply,
            on_demand: None,
        }
    }
}

/// The type of a file's samples. NumPy files always keep the image's own type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Depth {
    /// The image's type: `u8` in 8 bits, `u16` in 16, `u32`, `i8`, `i16` and `i32` unchanged (TIFF
    /// only), masks in 8 bits, in PBM in one. Floats are stored unchanged in TIFF, in 32 bits in PFM and
    /// OpenEXR, in 8 bits elsewhere. With [`Scaling::Unit`] or [`Scaling::Range`], these and floats take 8 bits in
    /// every format. The default.
    #[default]
    Auto,
    /// 8-bit integers.
    Eight,
    /// 16-bit integers (PNG, TIFF, PNM).
    Sixteen,
    /// 32-bit floats, never scaled (TIFF, PFM, OpenEXR).
    Float,
}

/// Conversion of values to 8-bit or 16-bit integers. After scaling, values are rounded to nearest even and saturated;
/// NaN becomes 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scaling {
    /// [`Scaling::Unit`] for floating-point images, [`Scaling::None`] for integers. The default.
    #[default]
    Auto,
    /// Values are not scaled.
    None,
    /// `0..=1` becomes the full range of the file, as `Image::to_unit` and `AnyImage::open` read it: 0.5 is mid-grey.
    /// For integer images, `0..=MAX` becomes the full range.
    Unit,
    /// The smallest finite value becomes 0, and the largest the largest integer. An image of one value becomes 0.
    Range,
}

/// Treatment of values that clipping changes: values outside the range of the file by half a step or more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Clipping {
    /// Logs a warning with their number. The default.
    #[default]
    Warn,
    /// Saving fails, and no file is written.
    Refuse,
    /// Neither counts nor reports them.
    Allow,
}

/// Computes a pixel of a smaller size from a block of two rows and two columns (fewer at an odd edge). Names are
/// GDAL's.
///
/// ```
/// # use horus_files::Downsampling;
/// assert_eq!("mode".parse(), Ok(Downsampling::Mode));
/// assert_eq!("best".parse::<Downsampling>(), Err("average, mode or nearest".to_owned()));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Downsampling {
    /// The mean; without missing pixels, if a value stands for them.
    Average,
    /// The most frequent value, the first of several: labels stay labels.
    Mode,
    /// The first pixel. It keeps its position, while other methods place pixels at the centres of blocks.
    Nearest,
}

/// Parses the name in lower case.
impl FromStr for Downsampling {
    type Err = String;

    fn from_str(name: &str) -> Result<Downsampling, String> {
        match name {
            "average" => Ok(Downsampling::Average),
            "mode" => Ok(Downsampling::Mode),
            "nearest" => Ok(Downsampling::Nearest),
            _ => Err("average, mode or nearest".to_owned()),
        }
    }
}

/// Options for saving an image.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SaveOptions {
    /// Type of the stored samples.
    pub depth: Depth,
    /// Conversion of values to integers.
    pub scaling: Scaling,
    /// Rows and columns of the tiles of a TIFF file, multiples of 16. By default the tiles of the file from which the
    /// picture was read, if it was tiled and is larger than one tile, otherwise strips. Programs that show regions of
    /// large pictures read only the tiles that they show.
    pub tile: Option<(usize, usize)>,
    /// Compression of a TIFF file. (PNG and JPEG files are always compressed.)
    pub compression: Compression,
    /// Quality of a JPEG file, 1 to 100; 95 by default. Below 90, colours have half the rows and
    /// columns of the brightness.
    pub quality: Option<u8>,
    /// Treatment of values outside the range of the file.
    pub clipping: Clipping,
    /// Number of sizes of a TIFF file; 1 by default. Each size is half as high and wide as the one before, rounded up,
    /// with a pixel for each block of two rows and two columns, counted from the first. An axis of one pixel stays.
    /// With several sizes, the file is a cloud optimized GeoTIFF in tiles (of 512x512 pixels by default): smaller sizes
    /// are its overviews.
    pub sizes: usize,
    /// Method for the pixels of smaller sizes. By default [`Downsampling::Mode`] for masks, for images of `i32` and
    /// `u32`, which are usually labels, and for indices of a colour table; [`Downsampling::Average`] for others.
    pub resampling: Option<Downsampling>,
    /// The sample of a TIFF file that stands for missing pixels (GDAL's nodata tag); by default the value of the
    /// picture from which the image was computed. It is a sample of the file: with scaled values, a scaled one. Smaller
    /// sizes leave such pixels out.
    pub nodata: Option<f64>,
}

impl Default for SaveOptions {
    fn default() -> SaveOptions {
        SaveOptions {
            depth: Depth::default(),
            scaling: Scaling::default(),
            tile: None,
            compression: Compression::default(),
            quality: None,
            clipping: Clipping::default(),
            sizes: 1,
            resampling: None,
            nodata: None,
        }
    }
}

/// The scale of a saved image: `low` was stored as 0 and `high` as `full`, linearly in between.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// The value stored as 0.
    pub low: f64,
    /// The value stored as `full`.
    pub high: f64,
    /// The largest integer of the file.
    pub full: u16,
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The shortest digits that identify the value: most images are f32.
        let exact = |v: f64| if f64::from(v as f32) == v { (v as f32).to_string() } else { v.to_string() };
        write!(f, "{}..{} -> 0..{}", exact(self.low), exact(self.high), self.full)
    }
}
