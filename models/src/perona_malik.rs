//! The anisotropic diffusion of Perona and Malik (1990), and its command line.

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;

use clap::{CommandFactory, FromArgMatches, Parser};
use horus::prelude::*;

use crate::loops::{describe_ending, parse_tolerance, positive, until};
use horus_apps::batch::{self, BatchJob, BatchOptions, RunFiles};

/// Approximate multiply-adds of an iteration per pixel: four exponentials.
const WORK: f64 = 60.0;

/// Parameters of the diffusion.
#[derive(Clone, Debug)]
pub struct Diffusion {
    towards: [Filter; 4],
    kappa: f32,
    lambda: f32,
}

impl Diffusion {
    /// Differences much larger than `kappa` reduce diffusion; a `lambda` of up to 0.25 is stable.
    pub fn new(kappa: f32, lambda: f32) -> Diffusion {
        let neighbours = [(-1, 0), (1, 0), (0, -1), (0, 1)];
        let towards = neighbours.map(|to| Filter::sparse([to, (0, 0)], [1.0, -1.0]));
        Diffusion { towards, kappa, lambda }
    }

    /// Records an iteration: `u + lambda * (sum of g(d) d)` over the differences d of the four neighbours, where `g(d)
    /// = exp(-(d / kappa)^2)`. Edge pixels are repeated, so nothing flows across the border.
    pub fn step(&self, u: &Image<f32>) -> Image<f32> {
        let [north, south, west, east] = &self.towards;
        let flow = |to: &Filter| {
            let slope = u.with_border(Border::Replicate).correlate(to);
            (-(&slope / self.kappa).square()).exp() * slope
        };
        u + (flow(north) + flow(south) + flow(west) + flow(east)) * self.lambda
    }

    /// Iterates so many times, or until an iteration changes no pixel by `tolerance`.
    ///
    /// # Errors
    /// See `Session::iterate`.
    pub fn diffused(&self, image: &Image<f32>, steps: usize, tolerance: Option<f64>) -> Result<Iterated<Image<f32>>> {
        image.session().iterate(image.clone(), until(steps, tolerance), |u| self.step(u))
    }
}

/// Smooths pictures by the anisotropic diffusion of Perona and Malik, which removes noise and keeps
/// edges. Pixels are scaled to 0..=1, and channels diffuse separately
#[derive(Parser, Clone, Debug)]
#[command(name = "perona_malik", version, allow_negative_numbers = true)]
struct PeronaMalikArgs {
    /// INPUT OUTPUT: the picture to read (PNG, JPEG, TIFF, PNM, PFM, BMP, QOI, OpenEXR, WebP, JPEG 2000 or npy; float
    /// pictures should be in 0..=1) and the file to write (npy for the exact values), which may be the input; - is
    /// stdin or stdout. With --out-dir, any number of pictures, and of folders with pictures
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Steps to make, at most
    #[arg(long, value_name = "T", default_value = "20")]
    steps: usize,

    /// Difference of neighbours that hinders diffusion: it is multiplied by exp(-(d / K)^2)
    #[arg(long, value_name = "K", default_value = "0.05", value_parser = parse_kappa)]
    kappa: f32,

    /// Rate of a step; up to 0.25 is stable
    #[arg(long, value_name = "L", default_value = "0.2", value_parser = parse_lambda)]
    lambda: f32,

    /// End when a step (every tenth is measured) changes no pixel by as much as E
    #[arg(long, value_name = "E", value_parser = parse_tolerance)]
    tolerance: Option<f64>,

    /// The options of all programs over pictures.
    #[command(flatten)]
    options: BatchOptions,
}

fn parse_kappa(text: &str) -> Result<f32, String> {
    single(text, "a difference")
}

fn parse_lambda(text: &str) -> Result<f32, String> {
    single(text, "a rate")
}

fn single(text: &str, what: &str) -> Result<f32, String> {
    let value = positive(text, what)? as f32;
    if value > 0.0 && value.is_finite() { Ok(value) } else { Err(format!("{what} must be a number of f32")) }
}

/// The program `perona_malik`; see [`batch::run`].
pub fn run() -> ExitCode {
    batch::run(job(std::env::args_os()))
}

fn job(words: impl IntoIterator<Item = OsString>) -> Result<BatchJob, clap::Error> {
    let mut command = PeronaMalikArgs::command();
    let args = PeronaMalikArgs::from_arg_matches(&command.try_get_matches_from_mut(words)?)?;
    let PeronaMalikArgs { paths, steps, kappa, lambda, tolerance, options } = args;
    let work = RunFiles::of(paths, &options).map_err(|e| batch::usage(&mut command, e))?;
    let (diffusion, dry) = (Diffusion::new(kappa, lambda), options.dry_run_ranks.is_some() || options.dry_run);
    let told = Rc::new(RefCell::new(String::new()));
    let about = Rc::clone(&told);
    let operation = move |picture: &AnyImage| {
        let image = picture.to_unit();
        if dry {
            // Computes nothing: the iterations are only recorded.
            return Ok((0..steps).fold(image, |u, _| diffusion.step(&u)).into());
        }
        let done = diffusion.diffused(&image, steps, tolerance)?;
        told.replace(describe_ending(&done, tolerance));
        Ok(done.state.into())
    };
    let about = Box::new(move || about.borrow().clone());
    Ok(BatchJob {
        about,
        steps_per_pixel: WORK * steps as f64,
        ..BatchJob::new("perona_malik", options, work, operation)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(options: &[&str]) -> Result<PeronaMalikArgs, String> {
        let words = ["perona_malik", "in.png", "out.png"].iter().chain(options);
        PeronaMalikArgs::try_parse_from(words).map_err(|e| e.to_string())
    }

    #[test]
    fn the_command_is_well_formed() {
        PeronaMalikArgs::command().debug_assert();
        let args = parse(&["--steps", "3", "--kappa", "0.1", "--lambda=0.25"]).unwrap();
        assert_eq!((args.steps, args.kappa, args.lambda, args.tolerance), (3, 0.1, 0.25, None));
    }

    #[test]
    fn numbers_that_make_no_sense_are_refused() {
        for (name, values) in [
            ("--steps", &["-1", "1.5"][..]),
            ("--kappa", &["0", "-1", "NaN", "1e-60"]),
            ("--lambda", &["inf", "1e39", "x"]),
        ] {
            for value in values {
                assert!(parse(&[name, value]).unwrap_err().contains(name), "{name} {value}");
            }
        }
    }
}
