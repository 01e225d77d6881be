//! The watershed transform.

use super::Image;
use crate::dtype::Pixel;
use crate::error::{Call, Error, Result};
use crate::ops::components::{Connectivity, MOST_PIXELS};
use crate::shape::Shape;
use horus_base::position_map::Relation;

/// Divides an image or volume among markers by flooding, the lowest pixels first (scikit-image's
/// `segmentation.watershed`, with the same result). Each pixel gets the label of the marker that
/// reaches it. Markers are the pixels of `markers` that are not 0. With a `mask`, pixels outside it
/// are not flooded. Pixels that no marker reaches get 0.
///
/// Water that has reached a level does not sink again. At one level, pixels are flooded in the
/// order in which they were found, so that a plateau divides halfway between markers. Markers count
/// in raster order; if several start from equal pixels, the order is as in scikit-image's heap. As
/// in scikit-image, a NaN is flooded when the heap happens to yield it.
///
/// Flooding is sequential, so it is not recorded: the images are read, and one thread of each rank
/// floods them on the host. All ranks call it and get the same image, of the size of `image`.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let image = Image::from_slice(&session, (1, 8), &[1u8, 0, 2, 7, 3, 1, 1, 4]);
/// let markers = Image::from_slice(&session, (1, 8), &[0, 5, 0, 0, 0, 0, 9, 0]);
/// let basins = watershed(&image, &markers, Connectivity::FACES, None)?;
/// assert_eq!(basins.to_vec()?, [5, 5, 5, 5, 9, 9, 9, 9]);
/// let low = image.lt(7);
/// let apart = watershed(&image, &markers, Connectivity::FACES, Some(&low))?;
/// assert_eq!(apart.to_vec()?, [5, 5, 5, 0, 9, 9, 9, 9]);
/// # Ok::<(), horus_core::error::Error>(())
/// ```
///
/// # Errors
/// If the images differ in size or session, have several channels, or more than 2^31 - 1 pixels;
/// the error that an image carries; also if the evaluation fails.
#[track_caller]
pub fn watershed<T: Pixel>(
    image: &Image<T>,
    markers: &Image<i32>,
    neighbours: Connectivity,
    mask: Option<&Image<bool>>,
) -> Result<Image<i32>> {
    let call = Call::of("watershed");
    image.look()?;
    markers.look()?;
    mask.map_or(Ok(()), Image::look)?;
    let (session, shape) = (image.session(), image.shape());
    if !session.same(markers.session()) || !mask.is_none_or(|mask| session.same(mask.session())) {
        return Err(Error::ForeignImage { op: call.op, site: call.site });
    }
    let wrong = |message| session.refused(Error::parameter(call, message));
    if shape.channels != 1 {
        return wrong(format!("the image has {} channels; take one (`channel`)", shape.channels));
    }
    if shape != markers.shape() {
        return wrong(format!("markers of {} for an image of {shape}; their shapes must be equal", markers.shape()));
    }
    if let Some(mask) = mask.filter(|mask| mask.shape() != shape) {
        return wrong(format!("a mask of {} for an image of {shape}; their shapes must be equal", mask.shape()));
    }
    if shape.len() > MOST_PIXELS {
        return wrong(format!("an image of {shape} has {} pixels; the limit is {MOST_PIXELS}", shape.len()));
    }
    let n = shape.len();
    let (mut pixels, mut labels, mut inside) = (vec![T::ZERO; n], vec![0; n], vec![true; n]);
    let read = ((image, &mut pixels), (markers, &mut labels));
    match mask {
        None => session.read_into(read)?,
        Some(mask) => session.read_into((read.0, read.1, (mask, &mut inside)))?,
    }
    flood(shape, &pixels, &mut labels, inside, neighbours);
    let inputs = [image.handle(), markers.handle()].into_iter().chain(mask.map(Image::handle));
    let inputs: Vec<_> = inputs.map(|input| (input, Relation::identity())).collect();
    Ok(Image::from_slice(session, shape, &labels).related(call.op, &inputs))
}

/// A pixel that has a label, waiting to pass it on.
#[derive(Clone, Copy)]
struct FloodedPixel {
    /// The water level.
    level: f64,
    /// 0 for markers, else the position in the order of labelling.
    age: u32,
    at: u32,
}

impl FloodedPixel {
    /// Strictly before; `false` for equal pixels and NaN.
    fn before(&self, other: &FloodedPixel) -> bool {
        self.level < other.level || (self.level == other.level && self.age < other.age)
    }
}

/// A binary heap. Markers are equal if their pixels are equal. The order of equal entries is part
/// of the result: as in scikit-image's heap, an entry moves only past entries that are not equal,
/// and the left of two equal children is preferred.
struct Heap(Vec<FloodedPixel>);

impl Heap {
    fn push(&mut self, new: FloodedPixel) {
        let mut hole = self.0.len();
        self.0.push(new);
        while hole > 0 {
            let parent = (hole - 1) / 2;
            if !new.before(&self.0[parent]) {
                break;
            }
            self.0[hole] = self.0[parent];
            hole = parent;
        }
        self.0[hole] = new;
    }

    fn pop(&mut self) -> Option<FloodedPixel> {
        let last = self.0.pop()?;
        let Some(&first) = self.0.first() else { return Some(last) };
        let mut hole = 0;
        loop {
            let (left, right) = (2 * hole + 1, 2 * hole + 2);
            let Some(child) = self.0.get(left) else { break };
            let (mut least, mut to) = (last, hole);
            if child.before(&least) {
                (least, to) = (*child, left);
            }
            if let Some(child) = self.0.get(right).filter(|child| child.before(&least)) {
                (least, to) = (*child, right);
            }
            if to == hole {
                break;
            }
            self.0[hole] = least;
            hole = to;
        }
        self.0[hole] = last;
        Some(first)
    }
}

/// A pixel that the water has not reached.
const DRY: u8 = 1;
/// A pixel with neighbours outside the image.
const EDGE: u8 = 2;

/// Extends `labels` that are not 0 to all pixels `inside` that they reach.
fn flood<T: Pixel>(shape: Shape, pixels: &[T], labels: &mut [i32], inside: Vec<bool>, neighbours: Connectivity) {
    let Shape { depth, height, width, .. } = shape;
    let steps = steps(neighbours, depth == 1);
    let to = |[z, y, x]: [isize; 3]| z * (height * width).cast_signed() + y * width.cast_signed() + x;
    let offsets: Vec<isize> = steps.iter().copied().map(to).collect();
    let mut states: Vec<u8> = inside.into_iter().map(|inside| if inside { DRY } else { 0 }).collect();
    for (row, states) in states.chunks_exact_mut(width).enumerate() {
        let (z, y) = (row / height, row % height);
        let within = (depth == 1 || (z > 0 && z + 1 < depth)) && y > 0 && y + 1 < height;
        let edges = if within { &[0, width - 1][..] } else { &[] };
        edges.iter().for_each(|x| states[*x] |= EDGE);
        if !within {
            states.iter_mut().for_each(|state| *state |= EDGE);
        }
    }
    let mut heap = Heap(Vec::new());
    for (at, (label, state)) in labels.iter_mut().zip(&mut states).enumerate() {
        if *state & DRY == 0 {
            *label = 0;
        } else if *label != 0 {
            *state &= !DRY;
            heap.push(FloodedPixel { level: pixels[at].to_f64(), age: 0, at: at as u32 });
        }
    }
    let mut age = 0;
    while let Some(wet) = heap.pop() {
        let at = wet.at as usize;
        let (label, edge) = (labels[at], states[at] & EDGE != 0);
        let mut wets = |to: usize| {
            if states[to] & DRY != 0 {
                states[to] &= !DRY;
                labels[to] = label;
                age += 1;
                let level = pixels[to].to_f64();
                // Not `max`: NaN stays.
                let level = if level < wet.level { wet.level } else { level };
                heap.push(FloodedPixel { level, age, at: to as u32 });
            }
        };
        if !edge {
            offsets.iter().for_each(|by| wets(at.wrapping_add_signed(*by)));
            continue;
        }
        let place = [at / width / height, at / width % height, at % width];
        for (step, by) in steps.iter().zip(&offsets) {
            let extents = [depth, height, width];
            let there = (0..3).all(|k| place[k].checked_add_signed(step[k]).is_some_and(|to| to < extents[k]));
            if there {
                wets(at.wrapping_add_signed(*by));
            }
        }
    }
}

/// The neighbours in order: the nearest first, then in raster order.
fn steps(neighbours: Connectivity, flat: bool) -> Vec<[isize; 3]> {
    let mut steps: Vec<_> = neighbours.neighbours().filter(|by| !flat || by[0] == 0).collect();
    steps.sort_by_key(|by| (by.iter().map(|d| d * d).sum::<isize>(), *by));
    steps
}
