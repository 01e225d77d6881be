//! The surface of an ocean: conjugate gradients of a five-point operator on a masked sea, the implicit part of a
//! barotropic model. Choices: `docs/design/models.md`.

use std::ops::ControlFlow;

use horus::prelude::*;

use crate::ocean::OceanField;

/// The operator `A x = f x - div(H grad x)` on the cells of a sea whose coasts let nothing through, in units of a cell:
/// each cell exchanges with its four neighbours at a rate of the depth between them, the smaller of both.
#[derive(Clone, Debug)]
pub struct SeaSurface {
    /// Depths between each cell and the next in its row and in its column; 0 at coasts.
    east: OceanField,
    south: OceanField,
    /// `f` in the sea, 0 on land.
    own: OceanField,
    /// The inverse of the diagonal, 0 on land.
    inverse: OceanField,
}

/// A state of the solver: the solution so far, its residual, the direction of the next step, and the square of the
/// residual's norm with respect to the inverse of the diagonal.
type Solution = (OceanField, OceanField, OceanField, OceanField);

/// The solution of a system.
#[derive(Clone, Debug)]
pub struct Solved {
    /// The solution, 0 on land.
    pub solution: OceanField,
    /// Number of steps.
    pub steps: usize,
    /// The norm of the residual by that of the right-hand side; NaN if the latter is not a number.
    pub residual: f64,
}

impl SeaSurface {
    /// The operator of a sea of these depths, which are 0 on land; `own` (`f`) must be positive.
    pub fn new(depth: &OceanField, own: f64) -> SeaSurface {
        let next = |dy, dx| neighbour(depth, dy, dx).min(depth);
        let (east, south) = (next(0, 1), next(1, 0));
        let sea = depth.gt(0.0);
        let own = sea.select(own, 0.0);
        let diagonal = &own + &east + neighbour(&east, 0, -1) + &south + neighbour(&south, -1, 0);
        let inverse = sea.select(1.0 / diagonal, 0.0);
        SeaSurface { east, south, own, inverse }
    }

    /// Records the operator.
    pub fn apply(&self, x: &OceanField) -> OceanField {
        let flow = |rate: &OceanField, dy, dx| rate * (neighbour(x, dy, dx) - x);
        let (east, south) = (flow(&self.east, 0, 1), flow(&self.south, 1, 0));
        let divergence = &east - neighbour(&east, 0, -1) + &south - neighbour(&south, -1, 0);
        x * &self.own - divergence
    }

    /// Solves `A x = b` by conjugate gradients, preconditioned by the diagonal, from 0: until the norm of the residual
    /// is less than `tolerance` times that of `b`, which is looked at after every tenth step, or for so many steps.
    ///
    /// # Errors
    /// See `Session::iterate_watched`.
    pub fn solve(&self, b: &OceanField, tolerance: f64, steps: usize) -> Result<Solved> {
        let session = b.session();
        let residual = self.own.gt(0.0).select(b, 0.0);
        let direction = &residual * &self.inverse;
        let norm = (&residual * &direction).sum().to_image();
        let first = (&residual * 0.0, residual, direction, norm);
        let norm_of = |residual: &OceanField| Ok((residual * residual).sum().get()?.sqrt());
        let whole: f64 = norm_of(&first.1)?;
        let watch = |_: usize, (_, residual, ..): &Solution| {
            let small = norm_of(residual)? / whole < tolerance;
            Ok(if small { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        };
        let steps = if whole > 0.0 { steps } else { 0 };
        let done = session.iterate_watched(first, steps, |now| self.step(now), 10, watch)?;
        let residual = if whole == 0.0 { 0.0 } else { norm_of(&done.state.1)? / whole };
        Ok(Solved { solution: done.state.0, steps: done.steps, residual })
    }

    /// Records a step.
    fn step(&self, (x, residual, direction, norm): &Solution) -> Solution {
        let along = self.apply(direction);
        let curvature = (direction * &along).sum().to_image();
        // Exactly solved, both are 0.
        let far = curvature.gt(0.0).select(norm / &curvature, 0.0);
        let x = x + direction * &far;
        let residual = residual - along * far;
        let preconditioned = &residual * &self.inverse;
        let next = (&residual * &preconditioned).sum().to_image();
        let keep = norm.gt(0.0).select(&next / norm, 0.0);
        (x, residual, preconditioned + direction * keep, next)
    }
}

/// The values of neighbours `dy` rows down and `dx` columns to the right; 0 beyond the edges.
fn neighbour(of: &OceanField, dy: isize, dx: isize) -> OceanField {
    of.with_border(Border::Constant(0.0)).shift(0, -dy, -dx)
}
