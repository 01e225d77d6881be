//! Conversion between colour spaces of three channels.

use super::Image;
use crate::error::{Call, Error, Site};
use crate::shape::Axis;

/// Red, green and blue of sRGB to X, Y and Z, and the white of D65 (IEC 61966-2-1; the numbers of scikit-image).
const TO_XYZ: [[f32; 3]; 3] =
    [[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]];
/// The inverse of [`TO_XYZ`].
const FROM_XYZ: [[f32; 3]; 3] = [
    [3.240_481_3, -1.537_151_5, -0.498_536_3],
    [-0.969_255, 1.875_99, 0.041_555_93],
    [0.055_646_64, -0.204_041_34, 1.057_311],
];
/// X, Y and Z of white.
const WHITE: [f32; 3] = [0.950_47, 1.0, 1.088_83];
/// Below this, the cube root of Lab is a line.
const DARK: f32 = 0.008856;
/// Slope and intercept of that line.
const LINE: (f32, f32) = (7.787, 16.0 / 116.0);

/// Colour spaces of three channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Colour {
    /// Red, green and blue of sRGB, in `0..=1`.
    Rgb,
    /// Hue, saturation and value, in `0..=1`; a hue of 1 is 360 degrees. Hues outside wrap around.
    Hsv,
    /// CIE L*a*b* of sRGB under D65 (2 degrees): L in `0..=100`, a and b around 0.
    Lab,
    /// Luma and colour differences of JPEG (JFIF; the full range of ITU-R BT.601): Y in `0..=1`, Cb and Cr around 0.5.
    YCbCr,
}

impl Image<f32> {
    /// Converts colours from one space to another. sRGB computed from L*a*b* is clamped to `0..=1`.
    /// An image without exactly three channels is an error.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let orange = Image::stack(&session, [1.0, 0.5, 0.0].map(|v| Image::constant(&session, (1, 1), v)), Axis::Channels);
    /// let hsv = orange.convert_colour(Colour::Rgb, Colour::Hsv);
    /// assert_eq!(hsv.to_vec()?, [30.0 / 360.0, 1.0, 1.0]);
    /// // Half as saturated:
    /// let paler = (hsv * [1.0, 0.5, 1.0]).convert_colour(Colour::Hsv, Colour::Rgb);
    /// assert_eq!(paler.to_vec()?, [1.0, 0.75, 0.5]);
    /// let lab = orange.over(Axis::Channels).max().convert_colour(Colour::Rgb, Colour::Lab);
    /// assert!(lab.check().is_err(), "one channel");
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias("cvtColor", "convert_colorspace", "rgb2hsv", "hsv2rgb", "rgb2lab", "lab2rgb", "rgb2ycbcr"))]
    #[track_caller]
    pub fn convert_colour(&self, from: Colour, to: Colour) -> Image<f32> {
        let site = Call::of("convert_colour").site;
        let rgb = match from {
            Colour::Rgb => self.plain(),
            Colour::Hsv => self.hsv_to_rgb(site),
            Colour::Lab => self.lab_to_rgb(site),
            Colour::YCbCr => self.ycbcr_to_rgb(site),
        };
        match to {
            _ if from == to => self.plain(),
            Colour::Rgb => rgb,
            Colour::Hsv => rgb.rgb_to_hsv(site),
            Colour::Lab => rgb.rgb_to_lab(site),
            Colour::YCbCr => rgb.rgb_to_ycbcr(site),
        }
    }

    fn rgb_to_hsv(&self, site: Site) -> Image<f32> {
        self.mixed(site, |[r, g, b]| {
            let (value, least) = (r.max(&g).max(&b), r.min(&g).min(&b));
            let chroma = &value - least;
            // Grey has hue 0, without a division by 0.
            let divisor = chroma.eq(0.0).select(1.0, &chroma);
            let turned = |a: &Image<f32>, b: &Image<f32>, turn: f32| (a - b) / &divisor + turn;
            let hue = g.eq(&value).select(turned(&b, &r, 2.0), turned(&r, &g, 4.0));
            let hue = r.eq(&value).select(turned(&g, &b, 0.0), hue) / 6.0;
            let hue = &hue - hue.floor();
            let saturation = value.eq(0.0).select(0.0, &chroma / value.eq(0.0).select(1.0, &value));
            [hue, saturation, value]
        })
    }

    fn hsv_to_rgb(&self, site: Site) -> Image<f32> {
        self.mixed(site, |[h, s, v]| {
            let sixths = (&h - h.floor()) * 6.0;
            // Each channel is largest around its own hue, and falls and rises linearly.
            let part = |offset: f32| {
                let k = &sixths + offset;
                let k = k.ge(6.0).select(&k - 6.0, &k);
                &v - &v * &s * k.min(4.0 - &k).min(1.0).max(0.0)
            };
            [part(5.0), part(3.0), part(1.0)]
        })
    }

    fn rgb_to_lab(&self, site: Site) -> Image<f32> {
        self.mixed(site, |rgb| {
            let linear = rgb.map(|c| c.gt(0.04045).select(((&c + 0.055) / 1.055).pow(2.4), &c / 12.92));
            let xyz = matrix(&TO_XYZ, &linear);
            let f = |c: &Image<f32>, white: f32| {
                let c = c / white;
                c.gt(DARK).select(c.pow(1.0 / 3.0), &c * LINE.0 + LINE.1)
            };
            let [x, y, z] = [f(&xyz[0], WHITE[0]), f(&xyz[1], WHITE[1]), f(&xyz[2], WHITE[2])];
            [&y * 116.0 - 16.0, (x - &y) * 500.0, (y - z) * 200.0]
        })
    }

    fn lab_to_rgb(&self, site: Site) -> Image<f32> {
        self.mixed(site, |[l, a, b]| {
            let y = (l + 16.0) / 116.0;
            let (x, z) = (a / 500.0 + &y, (&y - b / 200.0).max(0.0));
            let cube = |c: &Image<f32>, white: f32| {
                let above = &c.square() * c;
                c.gt(0.206_896_6).select(above, (c - LINE.1) / LINE.0) * white
            };
            let rgb = matrix(&FROM_XYZ, &[cube(&x, WHITE[0]), cube(&y, WHITE[1]), cube(&z, WHITE[2])]);
            rgb.map(|c| c.gt(0.0031308).select(c.pow(1.0 / 2.4) * 1.055 - 0.055, &c * 12.92).clamp(0.0, 1.0))
        })
    }

    fn rgb_to_ycbcr(&self, site: Site) -> Image<f32> {
        self.mixed(site, |rgb| {
            let y = &rgb[0] * 0.299 + &rgb[1] * 0.587 + &rgb[2] * 0.114;
            let [r, _, b] = rgb;
            [y.clone(), (b - &y) * (0.5 / 0.886) + 0.5, (r - y) * (0.5 / 0.701) + 0.5]
        })
    }

    fn ycbcr_to_rgb(&self, site: Site) -> Image<f32> {
        self.mixed(site, |[y, cb, cr]| {
            let (b, r) = ((cb - 0.5) * 1.772, (cr - 0.5) * 1.402);
            let green = &y - &b * (0.114 / 0.587) - &r * (0.299 / 0.587);
            [&y + r, green, y + b]
        })
    }

    /// Computes three channels from three.
    fn mixed(&self, site: Site, mix: impl FnOnce([Image<f32>; 3]) -> [Image<f32>; 3]) -> Image<f32> {
        self.attempt(self.shape(), || match <[Image<f32>; 3]>::try_from(self.unstack(Axis::Channels)) {
            Ok(channels) => Ok(Image::stack(self.session(), mix(channels), Axis::Channels)),
            Err(_) => Err(Error::parameter(
                Call { op: "convert_colour", site },
                format!("the image has {} channels; it must have 3", self.channels()),
            )),
        })
    }
}

fn matrix(rows: &[[f32; 3]; 3], v: &[Image<f32>; 3]) -> [Image<f32>; 3] {
    rows.map(|row| &v[0] * row[0] + &v[1] * row[1] + &v[2] * row[2])
}
