//! Poisson's equation on a square or in a box, and Jacobi's relaxation.

use std::f64::consts::PI;

use clap::ValueEnum;
use horus::prelude::*;
use horus_core::image::Checkpoints;
use horus_core::session::Session as CoreSession;

use crate::loops::{iterate, until};

/// Representation of the right-hand side while the loop runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rhs {
    /// A column times a row, multiplied where it is read.
    Broadcast,
    /// An image.
    Image,
}

/// `-(u_xx + u_yy) = f` on the unit square with `f = 2 pi^2 sin(pi x) sin(pi y)`, and u = 0 around
/// it; `u = sin(pi x) sin(pi y)` solves it. N x N interior points: x = (column + 1) h and y = (row +
/// 1) h with h = 1 / (N + 1).
///
/// In space `-(u_xx + u_yy + u_zz) = f` with `f = 3 pi^2 sin(pi x) sin(pi y) sin(pi z)` on D
/// levels, z = (level + 1) h.
#[derive(Clone, Debug)]
pub struct Poisson<T: Pixel> {
    session: CoreSession,
    size: usize,
    depth: Option<usize>,
    neighbours: Filter,
    source: PoissonSource<T>,
}

/// `h^2 f / 4`, in space `h^2 f / 6`.
#[derive(Clone, Debug)]
enum PoissonSource<T: Pixel> {
    /// The product of a column (in space one for each level) and a row.
    Factors(Image<T>, Image<T>),
    Image(Image<T>),
}

impl<T: Float> Poisson<T> {
    /// The problem, evaluated.
    ///
    /// # Errors
    /// If the images are too large, or the evaluation fails.
    pub fn new(session: &CoreSession, size: usize, rhs: Rhs) -> Result<Poisson<T>> {
        Poisson::of(session, None, size, rhs)
    }

    /// The problem in space, on so many levels, evaluated.
    ///
    /// # Errors
    /// Errors of [`Poisson::new`].
    pub fn in_space(session: &CoreSession, depth: usize, size: usize, rhs: Rhs) -> Result<Poisson<T>> {
        Poisson::of(session, Some(depth), size, rhs)
    }

    fn of(session: &CoreSession, depth: Option<usize>, size: usize, rhs: Rhs) -> Result<Poisson<T>> {
        zeros::<T>(session, depth, size).check()?;
        let h = 1.0 / (size as f64 + 1.0);
        let angle = |shape, axis| (Image::<f64>::index(session, shape, axis) + 1.0) * (PI * h);
        // Horus's sine has the same bits on every machine.
        let row = angle(Shape::new(1, size, 1), Axis::Columns).sin();
        let column = angle(Shape::new(size, 1, 1), Axis::Rows).sin();
        let column = match depth {
            None => column,
            Some(depth) => column * angle(Shape::volume(depth, 1, 1, 1), Axis::Depth).sin(),
        };
        // 2 pi^2 / 4 and 3 pi^2 / 6 are the same.
        let scale = h * h * PI.powi(2) / 2.0;
        let (row, column) = ((row * scale).convert::<T>(), column.convert::<T>());
        let source = match rhs {
            Rhs::Broadcast => PoissonSource::Factors(column, row),
            Rhs::Image => PoissonSource::Image(column * row),
        };
        session.evaluate()?;
        let weight = if depth.is_some() { 1.0 } else { 0.25 };
        let neighbours = Filter::sparse([(-1, 0), (0, -1), (0, 1), (1, 0)], [weight; 4]);
        Ok(Poisson { session: session.clone(), size, depth, neighbours, source })
    }

    /// The initial state: 0.
    pub fn begin(&self) -> Image<T> {
        zeros(&self.session, self.depth, self.size)
    }

    /// Records an iteration: each point becomes (the sum of its four neighbours `+ h^2 f`) / 4, in space (the sum of
    /// its six neighbours `+ h^2 f`) / 6.
    pub fn step(&self, u: &Image<T>) -> Image<T> {
        let outside = Border::Constant(0.0);
        let around = u.with_border(outside).correlate(&self.neighbours);
        let source = match &self.source {
            PoissonSource::Factors(column, row) => &(column * row),
            PoissonSource::Image(image) => image,
        };
        match self.depth {
            None => around + source,
            Some(_) => {
                let ends = u.with_border(outside).shift(1, 0, 0) + u.with_border(outside).shift(-1, 0, 0);
                (around + ends).mul_add(T::from_f64(1.0 / 6.0), source)
            }
        }
    }

    /// Iterates so many times from 0, or until an iteration changes no point by `tolerance`.
    ///
    /// # Errors
    /// See `Session::iterate_checkpointed`.
    pub fn relaxed(
        &self,
        steps: usize,
        tolerance: Option<f64>,
        checkpoints: Option<&Checkpoints>,
    ) -> Result<Iterated<Image<T>>> {
        iterate(&self.session, self.begin(), until(steps, tolerance), |u| self.step(u), checkpoints)
    }
}

/// 0 at every point.
fn zeros<T: Pixel>(session: &CoreSession, depth: Option<usize>, size: usize) -> Image<T> {
    match depth {
        None => Image::zeros(session, (size, size)),
        Some(depth) => Image::constant(session, (depth, size, size), T::ZERO),
    }
}
