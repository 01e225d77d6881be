//! Conversion between planes and interleaved channels.

use super::{CpuOperation, GRAIN, OperationOutput, TypedInput, out, view};
use crate::parallel;
use crate::versions::{for_least_isa, moved};
use horus_base::dtype::Pixel;
use horus_base::error::DeviceError;
use horus_host::device::{LaunchInput, Memory};
use horus_plan::ops::{Deinterleave, Interleave};

impl CpuOperation for Deinterleave {
    fn run(&self, inputs: &[LaunchInput<'_>], output: &mut Memory, to: &OperationOutput) -> Result<(), DeviceError> {
        moved!(to.geometry.dtype, T => deinterleave(view::<T>(inputs, 0)?, out(output)?, to));
        Ok(())
    }
}

impl CpuOperation for Interleave {
    fn run(&self, inputs: &[LaunchInput<'_>], output: &mut Memory, to: &OperationOutput) -> Result<(), DeviceError> {
        moved!(to.geometry.dtype, T => interleave(view::<T>(inputs, 0)?, out(output)?, to));
        Ok(())
    }
}

/// Writes rows `rows` of planes from interleaved samples.
fn deinterleave<T: Pixel>(input: TypedInput<'_, T>, out: &mut [T], to: &OperationOutput) {
    let &OperationOutput { geometry, rows, .. } = to;
    let (channels, n) = (geometry.shape.channels, rows.len() * geometry.shape.width);
    if n == 0 || geometry.shape.is_empty() {
        return;
    }
    let first = geometry.row(0, rows.start);
    let mut planes = out.chunks_mut(geometry.plane()).map(|plane| plane[first..first + n].chunks_mut(GRAIN));
    let mut tasks = Vec::new();
    for level in 0..geometry.shape.depth {
        let from = &input.data[input.geometry.row(level, rows.start)..][..n * channels];
        let mut planes: Vec<_> = planes.by_ref().take(channels).collect();
        for from in from.chunks(GRAIN * channels) {
            let to: Vec<&mut [T]> = planes.iter_mut().filter_map(Iterator::next).collect();
            tasks.push((from, to));
        }
    }
    parallel::for_each(to.threads, tasks, |(from, mut to)| split(from, &mut to));
}

/// Writes rows `rows` of interleaved samples from planes.
fn interleave<T: Pixel>(input: TypedInput<'_, T>, out: &mut [T], to: &OperationOutput) {
    let &OperationOutput { geometry, rows, .. } = to;
    let (channels, n) = (geometry.shape.samples, rows.len() * geometry.shape.width);
    if n == 0 || geometry.shape.is_empty() {
        return;
    }
    let first = geometry.row(0, rows.start);
    let mut tasks = Vec::new();
    for (level, to) in out.chunks_mut(geometry.plane()).enumerate().take(geometry.shape.depth) {
        for (k, to) in to[first..first + n * channels].chunks_mut(GRAIN * channels).enumerate() {
            let at = |c: usize| input.geometry.row(level * channels + c, rows.start) + k * GRAIN;
            let from: Vec<&[T]> = (0..channels).map(|c| &input.data[at(c)..][..to.len() / channels]).collect();
            tasks.push((from, to));
        }
    }
    parallel::for_each(to.threads, tasks, |(from, to)| join(&from, to));
}

for_least_isa! {
    /// Splits pixels into a run for each sample.
    pub(crate) fn split[T: Pixel][T](from: &[T], to: &mut [&mut [T]]) as split_any
}
for_least_isa! {
    /// Interleaves runs of samples to pixels.
    pub(crate) fn join[T: Pixel][T](from: &[&[T]], to: &mut [T]) as join_any
}
for_least_isa! {
    /// Picks one sample of each pixel of `samples` samples, from the first element on.
    pub(crate) fn pick[T: Pixel][T](from: &[T], samples: usize, to: &mut [T]) as pick_any
}

#[inline(always)]
fn pick_any<T: Pixel>(from: &[T], samples: usize, to: &mut [T]) {
    match samples {
        2 => pick_fixed::<T, 2>(from, to),
        3 => pick_fixed::<T, 3>(from, to),
        4 => pick_fixed::<T, 4>(from, to),
        _ => to.iter_mut().zip(from.iter().step_by(samples)).for_each(|(to, from)| *to = *from),
    }
}

#[inline(always)]
fn pick_fixed<T: Pixel, const C: usize>(from: &[T], to: &mut [T]) {
    let n = to.len().min(from.len().div_ceil(C));
    for i in 0..n {
        // SAFETY: each of these pixels has a first element.
        unsafe { *to.get_unchecked_mut(i) = *from.get_unchecked(C * i) }
    }
}

/// Functions for a constant number of channels, each in its own slice, for which the compiler uses shuffles. With a
/// loop over channels, or with bounds checks, it does not.
macro_rules! known {
    ($split:ident $join:ident $count:literal: $($plane:ident $c:literal),*) => {
        #[inline(always)]
        fn $split<T: Pixel>(from: &[T], $($plane: &mut [T]),*) {
            let n = from.len() / $count;
            $(let $plane = &mut $plane[..n];)*
            for i in 0..n {
                // SAFETY: `i` is below the length of each plane, of which `from` has all samples.
                unsafe { $(*$plane.get_unchecked_mut(i) = *from.get_unchecked($count * i + $c);)* }
            }
        }

        #[inline(always)]
        fn $join<T: Pixel>($($plane: &[T],)* to: &mut [T]) {
            let n = to.len() / $count;
            $(let $plane = &$plane[..n];)*
            for i in 0..n {
                // SAFETY: as above.
                unsafe { $(*to.get_unchecked_mut($count * i + $c) = *$plane.get_unchecked(i);)* }
            }
        }
    };
}
known!(split_two join_two 2: a 0, b 1);
known!(split_three join_three 3: a 0, b 1, c 2);
known!(split_four join_four 4: a 0, b 1, c 2, d 3);

#[inline(always)]
fn split_any<T: Pixel>(from: &[T], to: &mut [&mut [T]]) {
    match to {
        [a, b] => split_two(from, a, b),
        [a, b, c] => split_three(from, a, b, c),
        [a, b, c, d] => split_four(from, a, b, c, d),
        planes => {
            let channels = planes.len();
            for (c, plane) in planes.iter_mut().enumerate() {
                plane.iter_mut().zip(from[c..].iter().step_by(channels)).for_each(|(to, from)| *to = *from);
            }
        }
    }
}

#[inline(always)]
fn join_any<T: Pixel>(from: &[&[T]], to: &mut [T]) {
    match *from {
        [a, b] => join_two(a, b, to),
        [a, b, c] => join_three(a, b, c, to),
        [a, b, c, d] => join_four(a, b, c, d, to),
        _ => {
            for (c, plane) in from.iter().enumerate() {
                to[c..].iter_mut().step_by(from.len()).zip(*plane).for_each(|(to, from)| *to = *from);
            }
        }
    }
}
