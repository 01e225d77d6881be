//! The command line of the detectors.

use std::path::PathBuf;

use clap::Parser;
use horus::prelude::DType;
use horus_core::filters::tolerance;

use crate::batch::BatchOptions;
use crate::detectors::Params;
use crate::report::count;

/// The finest step between orientations, in degrees.
const FINEST_STEP: f64 = 0.01;

/// Finds lines in a picture.
#[derive(Parser, Clone, Debug)]
#[command(version, allow_negative_numbers = true)]
pub struct DetectorArgs {
    /// INPUT OUTPUT: the picture to read (PNG, JPEG, TIFF, PNM, PFM, BMP, QOI, OpenEXR, WebP, JPEG 2000 or npy; colour is
    /// reduced to luminance; float pictures should be in 0..=1) and the file to write (png, jpg, tif, pgm or
    /// bmp, scaled to the range of the response; npy for the exact values), which may be the input,
    /// as it is replaced when all is computed; - is stdin or stdout. With --out-dir, any number of
    /// pictures, and of folders with pictures
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,

    /// Angle between orientations
    #[arg(long, value_name = "DEG", default_value = "15", value_parser = parse_step)]
    pub theta_step: f64,

    /// Scales along the line, in pixels
    #[arg(long, value_name = "LIST", default_value = "3,5,7", value_delimiter = ',', value_parser = parse_sigma)]
    pub sigma_u: Vec<f64>,

    /// Scales across the line, in pixels
    #[arg(long, value_name = "LIST", default_value = "1,2,3", value_delimiter = ',', value_parser = parse_sigma)]
    pub sigma_v: Vec<f64>,

    /// Let filters of the picture be inexact to be faster: no response of a filter differs from the
    /// exact one by more than T times the largest pixel and the sum of absolute taps. The same bits
    /// on all devices and ranks; --explain names algorithms and bounds
    #[arg(long, value_name = "T", value_parser = parse_tolerance)]
    pub within: Option<f64>,

    /// The options of all programs over pictures.
    #[command(flatten)]
    pub options: BatchOptions,
}

impl DetectorArgs {
    /// The parameters of the detector.
    pub fn params(&self) -> Params {
        Params { theta_step: self.theta_step, sigma_u: self.sigma_u.clone(), sigma_v: self.sigma_v.clone() }
    }

    /// A short description of the search.
    pub fn about(&self) -> String {
        let params = self.params();
        let list = |values: &[f64]| values.iter().map(f64::to_string).collect::<Vec<_>>().join(",");
        format!(
            "{}, {} ({} along x {} across)",
            count(params.orientations().count(), "orientation"),
            count(params.scales().count(), "scale"),
            list(&self.sigma_u),
            list(&self.sigma_v)
        )
    }
}

pub(crate) fn parse_step(text: &str) -> Result<f64, String> {
    let step: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (FINEST_STEP..=180.0).contains(&step) {
        return Ok(step);
    }
    Err(format!("the step must be at least {FINEST_STEP} degrees and at most 180"))
}

fn parse_tolerance(text: &str) -> Result<f64, String> {
    let t: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    let least = tolerance::smallest(DType::F32);
    if !(t > 0.0 && t.is_finite()) {
        return Err("a tolerance must be positive and finite".to_owned());
    }
    if t < least {
        return Err(format!("the smallest tolerance of f32 is {:.2e}", least * (1.0 + 1e-3)));
    }
    Ok(t)
}

pub(crate) fn parse_sigma(text: &str) -> Result<f64, String> {
    let sigma: f64 = text.trim().parse().map_err(|_| "not a number".to_owned())?;
    if sigma > 0.0 && sigma.is_finite() {
        return Ok(sigma);
    }
    Err("a scale must be positive and finite".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(options: &[&str]) -> Result<DetectorArgs, String> {
        let words = ["convrot", "in.png", "out.png"].iter().chain(options);
        DetectorArgs::try_parse_from(words).map_err(|e| e.to_string())
    }

    #[test]
    fn the_command_is_well_formed() {
        DetectorArgs::command().debug_assert();
    }

    #[test]
    fn defaults_are_those_of_the_thesis() {
        let args = parse(&[]).unwrap();
        assert_eq!(args.params(), Params::default());
        assert_eq!(args.about(), "12 orientations, 9 scales (3,5,7 along x 1,2,3 across)");
    }

    #[test]
    fn lists_are_parsed() {
        let args = parse(&["--sigma-u", "2.5, 4", "--sigma-v=1", "--mode", "lazy"]).unwrap();
        assert_eq!((args.sigma_u.as_slice(), args.sigma_v.as_slice()), ([2.5, 4.0].as_slice(), [1.0].as_slice()));
        assert_eq!(args.paths, ["in.png", "out.png"].map(PathBuf::from));
    }

    #[test]
    fn tolerances_are_positive_and_hold_in_single_precision() {
        assert_eq!((parse(&[]).unwrap().within, parse(&["--within", "1e-4"]).unwrap().within), (None, Some(1e-4)));
        for t in ["0", "-1", "NaN", "inf"] {
            assert!(parse(&["--within", t]).unwrap_err().contains("must be positive and finite"), "{t}");
        }
        assert!(parse(&["--within", "1e-8"]).unwrap_err().contains("the smallest tolerance of f32 is 5.97e-8"));
    }

    #[test]
    fn numbers_that_make_no_sense_are_refused_with_a_reason() {
        for step in ["0", "-15", "NaN", "inf", "0.001", "200", "x"] {
            assert!(parse(&["--theta-step", step]).is_err(), "{step}");
        }
        for sigma in ["0", "-1", "NaN", "inf", "3,,5", ""] {
            assert!(parse(&["--sigma-u", sigma]).unwrap_err().contains("--sigma-u"), "{sigma}");
        }
        assert!(parse(&["--theta-step", "-15"]).unwrap_err().contains("at least 0.01 degrees"));
    }
}
