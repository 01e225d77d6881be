//! Loops whose ranks do not wait for each other: chaotic relaxation (Chazan and Miranker, 1969,
//! Linear Algebra Appl. 2, 199-222), with bounds on how old the rows of neighbours may be.
//!
//! Each rank repeats the step on its own rows and sends those at its edges after every round. It goes
//! on with the rows that its neighbours sent `age` rounds before, and so waits only for messages that
//! take longer than that. As the age is a number and not what happens to have arrived, a loop yields
//! the same bits in every run on as many ranks, whatever the links; on another number of ranks it
//! yields others. The variants of Venkatasubramanian (MSc thesis, chapter 5) are settings of
//! [`Relaxed`]: [`Relaxed::variant`].

use std::collections::VecDeque;

use horus::core::comm::{CommError, Communicator, gather_bytes};
use horus::core::host::buffer::HostBuffer;
use horus::prelude::*;

/// Steps between two measurements of the change.
const MEASURED: usize = 10;

/// How far ranks may be apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relaxed {
    /// Rounds by which the rows of neighbours are old: 0 waits for each.
    pub age: usize,
    /// Steps of a round, between which no rows are sent.
    pub inner: usize,
    /// Parts of a rank's rows, which are computed one after the other and see each other's results.
    pub parts: usize,
}

impl Relaxed {
    /// The variants `Async 0` to `Async 3` for an async factor: 0 sends all rows and is one step behind;
    /// 1 is up to `factor` steps behind; 2 makes `factor` steps between messages and waits for these; 3
    /// is 1 in place.
    ///
    /// # Errors
    /// Another variant, or the factor 0.
    pub fn variant(number: usize, factor: usize) -> Result<Relaxed> {
        let how = |age, inner, parts| Ok(Relaxed { age, inner, parts });
        match (number, factor) {
            (_, 0) => Err(Error::Config("an async factor is 1 or more".into())),
            (0, _) => how(1, 1, 1),
            (1, _) => how(factor, 1, 1),
            (2, _) => how(0, factor, 1),
            (3, _) => how(factor, 1, 2),
            _ => Err(Error::Config(format!("variants of relaxation are 0 to 3, not {number}"))),
        }
    }
}

/// Fails unless relaxed loops with this filter converge, whatever the order: the absolute taps, which
/// bound the largest difference that a step leaves, sum to less than 1; or to 1, if numbers beyond the
/// edges stay 0, from where the sums of some pixels are less and each pixel depends on these.
///
/// # Errors
/// A filter of which that is not known.
pub fn certify(filter: &Filter, border: Border) -> Result<()> {
    let sum: f64 = filter.taps().iter().map(|tap| tap.abs()).sum();
    let moves = filter.taps().iter().zip(filter.offsets()).any(|(tap, at)| *tap != 0.0 && at != (0, 0));
    let drains = matches!(border, Border::Constant(0.0)) && moves;
    if sum < 1.0 || sum == 1.0 && drains {
        return Ok(());
    }
    let said = format!("the absolute taps of a step sum to {sum}, with pixels beyond the edges by {border:?}");
    Err(Error::Config(format!("{said}: nothing shows that a relaxed loop converges")))
}

/// The rows of a rank.
fn rows(height: usize, rank: usize, ranks: usize) -> std::ops::Range<usize> {
    rank * height / ranks..(rank + 1) * height / ranks
}

/// Repeats a step on rows of an image of which each rank computes its own, in a session of its own;
/// 0 lies above and below. `step` makes the step of some rows: of the first of them, counted with a row
/// of 0 above the image, and their number. It returns as many rows, of which the first and the last are
/// not used, as the step reads a row above and below. Ends after `steps`, or when one (every tenth round
/// is measured) changes no pixel by `tolerance`. The state is that of the rank's own rows.
///
/// # Errors
/// Ranks or parts without rows, rounds of no step, and the errors of evaluations, which end all ranks.
pub fn relaxed<T: Float, S: Fn(&Image<T>) -> Image<T>>(
    comm: &dyn Communicator,
    begin: &Image<T>,
    how: Relaxed,
    (steps, tolerance): (usize, Option<f64>),
    step: impl Fn(usize, usize) -> S,
) -> Result<Iterated<Image<T>>> {
    let (ranks, height) = (comm.size(), begin.height());
    if how.inner == 0 || how.parts == 0 || height / ranks < how.parts {
        let said = format!("{height} rows on {ranks} ranks, each in {} parts, cannot be", how.parts);
        return Err(Error::Config(format!("a relaxed loop of {} steps a round: {said}", how.inner)));
    }
    let rows = rows(height, comm.rank(), ranks);
    let parts = (0..how.parts).map(|part| {
        let part = self::rows(rows.len(), part, how.parts);
        Part::new(begin, rows.start + part.start, part.len(), &step)
    });
    let parts = parts.collect::<Vec<_>>();
    begin.session().evaluate()?;
    let mut rank = Rank { comm, how, parts, beyond: [0, 1].map(|_| Image::zeros(begin.session(), (1, begin.width()))) };
    if comm.rank() > 0 {
        rank.beyond[0] = begin.crop(rows.start - 1, 0, 1, begin.width());
    }
    if comm.rank() + 1 < ranks {
        rank.beyond[1] = begin.crop(rows.end, 0, 1, begin.width());
    }
    rank.repeated(steps, tolerance).inspect_err(|e| comm.abort(&e.to_string()))
}

/// Rows that are computed together, between a row above and a row below.
struct Part<T: Float, S> {
    all: Image<T>,
    /// Masks of these two.
    ends: [Image<bool>; 2],
    step: S,
}

impl<T: Float, S: Fn(&Image<T>) -> Image<T>> Part<T, S> {
    fn new(begin: &Image<T>, first: usize, rows: usize, step: impl Fn(usize, usize) -> S) -> Part<T, S> {
        let (rows, width) = (rows + 2, begin.width());
        let padded = begin.with_border(Border::Constant(0.0)).pad(1, 1, 0, 0);
        let index = Image::<f64>::index(begin.session(), Shape::new(rows, 1, 1), Axis::Rows);
        let ends = [index.eq(0.0), index.eq(rows as f64 - 1.0)];
        Part { all: padded.crop(first, 0, rows, width), ends, step: step(first, rows) }
    }

    fn rows(&self) -> usize {
        self.all.height() - 2
    }

    /// The uppermost, or the lowest, row of its own.
    fn edge(&self, upper: bool) -> Image<T> {
        self.all.crop(if upper { 1 } else { self.rows() }, 0, 1, self.all.width())
    }

    /// Its own rows after a step.
    fn next(&self, [above, below]: [&Image<T>; 2]) -> Image<T> {
        let [first, last] = &self.ends;
        (self.step)(&first.select(above, last.select(below, &self.all)))
    }
}

/// A rank of a relaxed loop.
struct Rank<'a, T: Float, S> {
    comm: &'a dyn Communicator,
    how: Relaxed,
    parts: Vec<Part<T, S>>,
    /// Rows of the neighbours above and below.
    beyond: [Image<T>; 2],
}

impl<T: Float, S: Fn(&Image<T>) -> Image<T>> Rank<'_, T, S> {
    /// A step of all parts, each with what the others have by then.
    fn sweep(&mut self) {
        for i in 0..self.parts.len() {
            let above = if i == 0 { self.beyond[0].clone() } else { self.parts[i - 1].edge(false) };
            let below = self.parts.get(i + 1).map_or_else(|| self.beyond[1].clone(), |part| part.edge(true));
            self.parts[i].all = self.parts[i].next([&above, &below]);
        }
    }

    fn repeated(mut self, steps: usize, tolerance: Option<f64>) -> Result<Iterated<Image<T>>> {
        let (comm, how) = (self.comm, self.how);
        let (session, width) = (self.beyond[0].session().clone(), self.beyond[0].width());
        let failed = |e: CommError| e.during(comm.rank(), "a relaxed loop");
        let upper = (comm.rank() > 0).then(|| (comm.rank() - 1, 0));
        let lower = (comm.rank() + 1 < comm.size()).then(|| (comm.rank() + 1, 1));
        let neighbours: Vec<(usize, usize)> = upper.into_iter().chain(lower).collect();
        let mut late = VecDeque::new();
        let (mut done, mut round, mut change, mut ending) = (0, 0, None, Ending::Steps);
        while done < steps {
            let inner = how.inner.min(steps - done);
            (1..inner).for_each(|_| self.sweep());
            let before: Vec<Image<T>> = self.parts.iter().map(|part| part.all.clone()).collect();
            self.sweep();
            (done, round) = (done + inner, round + 1);
            let mut sends = Vec::new();
            for (to, side) in &neighbours {
                let edge = if *side == 0 { self.parts.first() } else { self.parts.last() };
                let edge = edge.map(|part| part.edge(*side == 0).to_vec()).transpose()?.unwrap_or_default();
                sends.push((*to, HostBuffer::from_slice(&edge)));
            }
            let receives = neighbours.iter().map(|(from, _)| (*from, HostBuffer::zeroed(width * size_of::<T>())));
            late.push_back(comm.begin(sends, receives.collect()).map_err(failed)?);
            if late.len() > how.age
                && let Some(oldest) = late.pop_front()
            {
                for ((_, side), (_, pixels)) in neighbours.iter().zip(oldest.finish().map_err(failed)?) {
                    self.beyond[*side] = Image::from_slice(&session, (1, width), pixels.as_slice::<T>());
                }
            }
            if done == steps || tolerance.is_some() && round % MEASURED == 0 {
                let own = self.change(&before)?;
                let each = comm.gather(own.to_bits()).map_err(failed)?;
                let most = each.into_iter().map(f64::from_bits).fold(0.0, f64::max);
                change = Some(most);
                ending = match tolerance {
                    _ if !most.is_finite() => Ending::Diverged,
                    Some(tolerance) if most < tolerance => Ending::Converged,
                    _ => continue,
                };
                break;
            }
        }
        for pending in late {
            pending.finish().map_err(failed)?;
        }
        Ok(Iterated { state: self.own(), steps: done, change, ending })
    }

    /// The largest change of a pixel.
    fn change(&self, before: &[Image<T>]) -> Result<f64> {
        let each = self.parts.iter().zip(before).map(|(part, before)| {
            let own = |all: &Image<T>| all.crop(1, 0, part.rows(), all.width());
            let d = own(&part.all).absdiff(own(before));
            // A NaN must not be ignored.
            Ok(d.le(T::HIGHEST).select(&d, T::from_f64(f64::INFINITY)).max_value().get()?.to_f64())
        });
        each.collect::<Result<Vec<f64>>>().map(|each| each.into_iter().fold(0.0, f64::max))
    }

    /// The rank's own rows.
    fn own(&self) -> Image<T> {
        let (rows, width) = (self.parts.iter().map(Part::rows).sum(), self.beyond[0].width());
        let begin = (Image::zeros(self.beyond[0].session(), (rows, width)), 0);
        let joined = self.parts.iter().fold(begin, |(whole, at), part| {
            (whole.paste(&part.all.crop(1, 0, part.rows(), width), at as isize, 0), at + part.rows())
        });
        joined.0
    }
}

/// The rows of all ranks on the first one, `None` on others.
///
/// # Errors
/// Those of the evaluation, or if another rank fails.
pub fn gathered<T: Float>(comm: &dyn Communicator, own: &Image<T>) -> Result<Option<Image<T>>> {
    let bytes = HostBuffer::from_slice(&own.to_vec()?);
    let all = gather_bytes(comm, bytes.bytes()).map_err(|e| e.during(comm.rank(), "gathering a relaxed loop"))?;
    Ok(all.map(|parts| {
        let mut whole = HostBuffer::zeroed(parts.iter().map(Vec::len).sum());
        whole.bytes_mut().copy_from_slice(&parts.concat());
        let pixels = whole.as_slice::<T>();
        Image::from_slice(own.session(), (pixels.len() / own.width(), own.width()), pixels)
    }))
}
