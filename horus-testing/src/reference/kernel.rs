//! Kernels evaluated pixel by pixel from their definitions: the reference for each launch of a device.
// Long, because it has the definition of each kernel.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::Hash;

use super::geometric::{beyond, sample};
use super::neighbourhood::{correlate_at, order_at};
use super::pixel::{body, holds};
use super::{definition, reads};
use horus_base::dispatch;
use horus_base::dtype::{DType, Pixel, Scalar, convert_pixel};
use horus_base::shape::{Axis, Border, Shape, Window};
use horus_host::device::Geometry;
use horus_plan::ir::kernel::{FilterSource, InstrOp, Kernel, Leaf, LeafOp, MapKernel, Val};
use horus_plan::ops::Whole;
use horus_plan::ops::geometric::Flip;
use horus_plan::ops::pixel::PixelKind;

/// An image on the host: the rows of its window.
#[derive(Clone, Debug)]
pub struct HostImage {
    /// Shape, type and rows of the window.
    pub geometry: Geometry,
    /// The elements, as in device memory.
    pub bytes: Vec<u8>,
}

impl HostImage {
    /// An image of zeros.
    pub fn zeroed(geometry: Geometry) -> HostImage {
        HostImage { geometry, bytes: vec![0; geometry.bytes()] }
    }

    /// Reproducible data of every kind: small and large values, zeros of both signs, and no infinities.
    pub fn random(geometry: Geometry, seed: u64) -> HostImage {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        let count = geometry.plane() * geometry.shape.planes();
        let bytes = (0..count)
            .flat_map(|_| {
                let n = next();
                let v = match n % 23 {
                    0 => 0.0,
                    1 => -0.0,
                    2 => 1e6,
                    _ => (n as f64 / (1u64 << 31) as f64 - 0.3) * if geometry.dtype.is_float() { 2.0 } else { 300.0 },
                };
                bytes_of(Scalar::from_f64(geometry.dtype, v))
            })
            .collect();
        HostImage { geometry, bytes }
    }

    /// The first pixel in which two images of one geometry differ: index, ours, theirs. NaNs are equal, because the
    /// processor chooses the payload of a computed NaN.
    pub fn difference(&self, other: &HostImage) -> Option<(usize, String, String)> {
        let size = self.geometry.dtype.size();
        let show = |b: &[u8]| match self.geometry.dtype {
            DType::F32 => {
                let v = f32::from_ne_bytes(b.try_into().unwrap_or_default());
                (v.is_nan(), format!("{v:e} ({:#x})", v.to_bits()))
            }
            DType::F64 => {
                let v = f64::from_ne_bytes(b.try_into().unwrap_or_default());
                (v.is_nan(), format!("{v:e} ({:#x})", v.to_bits()))
            }
            _ => (false, format!("{b:?}")),
        };
        self.bytes.chunks(size).zip(other.bytes.chunks(size)).enumerate().filter(|(_, (a, b))| a != b).find_map(
            |(i, (a, b))| {
                let ((nan_a, a), (nan_b, b)) = (show(a), show(b));
                (!(nan_a && nan_b)).then_some((i, a, b))
            },
        )
    }

    /// The image in the rows of `window`: rows of this image, wrapped copies of them, or zeros.
    fn covering(&self, window: Window) -> HostImage {
        let mut out = HostImage::zeroed(Geometry { window, ..self.geometry });
        let Geometry { shape, window: held, .. } = self.geometry;
        for c in 0..shape.planes() {
            for y in window.start..window.end {
                let from = if held.contains(y) { y } else { y.rem_euclid(shape.height.cast_signed()) };
                if held.contains(from) {
                    let (to, bytes) = (out.geometry.row_bytes(c, row(y)), self.geometry.row_bytes(c, row(from)));
                    out.bytes[to].copy_from_slice(&self.bytes[bytes]);
                }
            }
        }
        out
    }

    /// The place of a pixel. Kernels treat samples as channels.
    fn at(&self, c: usize, y: isize, x: usize) -> usize {
        let samples = self.geometry.shape.samples;
        let row = self.geometry.row(c / samples, self.held(y));
        (row + x * samples + c % samples) * self.geometry.dtype.size()
    }

    /// The pixel of row `y`, which the window has, and column `x` of plane `c`.
    pub fn get<T: Pixel>(&self, c: usize, y: isize, x: usize) -> T {
        reads::record_read(self, [y, x.cast_signed()]);
        let at = self.at(c, y, x);
        bytemuck::pod_read_unaligned(&self.bytes[at..at + size_of::<T>()])
    }

    /// [`HostImage::get`] as a number, which represents all types exactly.
    pub(super) fn number(&self, c: usize, y: isize, x: usize) -> f64 {
        dispatch!(self.geometry.dtype, T => self.get::<T>(c, y, x).to_f64())
    }

    /// Stores a number in the type of the image.
    pub(super) fn put_number(&mut self, c: usize, y: isize, x: usize, v: f64) {
        dispatch!(self.geometry.dtype, T => self.put::<T>(c, y, x, T::from_f64(v)));
    }

    pub(super) fn put<T: Pixel>(&mut self, c: usize, y: isize, x: usize, v: T) {
        reads::record_write([y, x.cast_signed()]);
        let at = self.at(c, y, x);
        self.bytes[at..at + size_of::<T>()].copy_from_slice(&bytes_of(v.scalar()));
    }

    /// The pixel read at (`y`, `x`) with a border.
    pub(super) fn sample<T: Pixel>(&self, c: usize, y: isize, x: isize, border: Border) -> T {
        match (self.resolve(y, border), border.map(x, self.geometry.shape.width)) {
            (Some(y), Some(x)) => self.get(c, y, x),
            _ => border.constant().map_or(T::ZERO, T::from_f64),
        }
    }

    /// [`HostImage::sample`] for pixels of any type, converted to `T`.
    fn converted<T: Pixel>(&self, c: usize, y: isize, x: isize, border: Border) -> T {
        match (self.resolve(y, border), border.map(x, self.geometry.shape.width)) {
            (Some(y), Some(x)) => T::from_f64(self.number(c, y, x)),
            _ => border.constant().map_or(T::ZERO, T::from_f64),
        }
    }

    /// Row `y`, or a copy of it in the window.
    fn held(&self, y: isize) -> isize {
        let Geometry { shape, window, .. } = self.geometry;
        if window.contains(y) || shape.height == 0 {
            return y;
        }
        window.start + (y - window.start).rem_euclid(shape.height.cast_signed())
    }

    fn resolve(&self, y: isize, border: Border) -> Option<isize> {
        let Geometry { shape, window, .. } = self.geometry;
        if (0..shape.height.cast_signed()).contains(&y) || (border == Border::Wrap && window.contains(y)) {
            return Some(y);
        }
        border.map(y, shape.height).map(usize::cast_signed)
    }
}

/// The window of one row.
fn row(y: isize) -> Window {
    Window::new(y, y + 1)
}

fn bytes_of(s: Scalar) -> Vec<u8> {
    s.bits().to_ne_bytes()[..s.dtype().size()].to_vec()
}

/// Evaluates a launch.
pub fn evaluate(kernel: &Kernel, inputs: &[HostImage], output: &mut HostImage, rows: Window) {
    let readable: Vec<Window> = (inputs.iter().enumerate())
        .map(|(i, image)| kernel.readable(i, image.geometry.window, image.geometry.shape.height))
        .collect();
    // Uses images as they are if possible, because reads are recorded by image.
    if inputs.iter().zip(&readable).all(|(image, rows)| image.geometry.window == *rows) {
        return evaluate_readable(kernel, inputs, output, rows);
    }
    let inputs: Vec<HostImage> = inputs.iter().zip(readable).map(|(image, rows)| image.covering(rows)).collect();
    evaluate_readable(kernel, &inputs, output, rows);
}

/// Evaluates a launch that may read all rows of its inputs.
fn evaluate_readable(kernel: &Kernel, inputs: &[HostImage], output: &mut HostImage, rows: Window) {
    let out = output.geometry;
    match kernel {
        Kernel::Map(m) if !m.chains.is_empty() && m.chains.iter().all(|c| c.is_pointwise() && c.chains.is_empty()) => {
            let (m, inputs) = without_chains(m, inputs, out);
            evaluate_readable(&Kernel::Map(m), &inputs, output, rows);
        }
        Kernel::Map(m) if m.woven => {
            let shape = Shape { samples: 1, ..out.shape };
            for (sample, value) in m.results().enumerate() {
                let one = MapKernel { result: Some(value), additional_results: Vec::new(), woven: false, ..m.clone() };
                let mut values = HostImage::zeroed(Geometry { shape, ..out });
                evaluate_readable(&Kernel::Map(one), inputs, &mut values, rows);
                for c in 0..shape.planes() {
                    for y in rows.start..rows.end {
                        for x in 0..shape.width {
                            let at = c * out.shape.samples + sample;
                            dispatch!(out.dtype, T => output.put::<T>(at, y, x, values.get(c, y, x)));
                        }
                    }
                }
            }
        }
        Kernel::Map(m) => {
            let (map, planes) = (MapEvaluation::of(m), out.shape.planar());
            for c in 0..planes.planes() {
                for y in rows.start..rows.end {
                    for x in 0..planes.width {
                        let v = map.pixel(inputs, Geometry { shape: planes, ..out }, (c, y, x));
                        dispatch!(out.dtype, T => output.put::<T>(c, y, x, T::from_scalar(v)));
                    }
                }
            }
        }
        Kernel::Repeat(repeat) => {
            let step = Kernel::Map(repeat.body.clone());
            let mut inputs = inputs.to_vec();
            for window in repeat.windows(rows, out.shape) {
                // Intermediate results consist only of the rows that later steps read.
                let mut next = HostImage::zeroed(Geometry { window, ..out });
                evaluate_readable(&step, &inputs, &mut next, window);
                inputs[repeat.state] = next;
            }
            let last = &inputs[repeat.state];
            for c in 0..out.shape.planes() {
                for y in rows.start..rows.end {
                    let from = &last.bytes[last.geometry.row_bytes(c, row(y))];
                    output.bytes[out.row_bytes(c, row(y))].copy_from_slice(from);
                }
            }
        }
        Kernel::MapReduce(map, how) => {
            let shape = Shape { width: inputs[0].geometry.shape.width, ..out.shape };
            let geometry = Geometry { shape, dtype: map.result_type(), window: rows };
            let mut values = HostImage::zeroed(geometry);
            evaluate_readable(&Kernel::Map(map.clone()), &inputs[..map.inputs], &mut values, rows);
            let all: Vec<HostImage> = std::iter::once(values).chain(inputs[map.inputs..].iter().cloned()).collect();
            evaluate_readable(&Kernel::from(*how), &all, output, rows);
        }
        Kernel::Whole(operation) => evaluate_whole(operation, inputs, output, rows),
        Kernel::Source(_) => {}
    }
}

/// The planes, rows and columns of the pixels that a launch computes.
pub(super) fn places(out: Geometry, rows: Window) -> impl Iterator<Item = (usize, isize, usize)> {
    let of_plane = move |c| (rows.start..rows.end).flat_map(move |y| (0..out.shape.width).map(move |x| (c, y, x)));
    (0..out.shape.planes()).flat_map(of_plane)
}

/// Evaluates a whole-image operation.
fn evaluate_whole(operation: &Whole, inputs: &[HostImage], output: &mut HostImage, rows: Window) {
    let out = Geometry { shape: output.geometry.shape.planar(), ..output.geometry };
    definition(operation).of_launch(inputs, output, out, rows);
}

/// The kernel with its chains evaluated and appended to its inputs. Chains are evaluated in all rows of an input's
/// window; for another input such a row is the same row, a wrapped copy of it, or a row that is never read.
fn without_chains(m: &MapKernel, inputs: &[HostImage], out: Geometry) -> (MapKernel, Vec<HostImage>) {
    let (mut m, mut inputs) = (m.clone(), inputs.to_vec());
    let held = inputs.iter().map(|i| i.geometry.window).reduce(Window::union).unwrap_or(out.window);
    let first = inputs.len();
    let covering: Vec<HostImage> = inputs.iter().map(|i| i.covering(held)).collect();
    for chain in std::mem::take(&mut m.chains) {
        let geometry = Geometry { dtype: chain.result_type(), window: held, ..out };
        let mut values = HostImage::zeroed(geometry);
        evaluate_readable(&Kernel::Map(chain), &covering, &mut values, held);
        inputs.push(values);
    }
    let input = |s: &mut FilterSource| {
        if let FilterSource::Chain(c) = *s {
            *s = FilterSource::Input(first + c);
        }
    };
    m.stages.iter_mut().for_each(|s| input(&mut s.source));
    for leaf in &mut m.leaves {
        if let LeafOp::Correlate(source, ..) | LeafOp::Shift(source, ..) = &mut leaf.op {
            input(source);
        }
    }
    (m, inputs)
}

/// A map kernel, and intermediate results that many pixels read, each computed once.
struct MapEvaluation<'a> {
    kernel: &'a MapKernel,
    /// Results of each row filter, and the pixels of a chain.
    passes: Vec<PixelCache<(usize, isize, isize), f64>>,
    pixels: PixelCache<(usize, isize, usize), Scalar>,
    chains: Vec<MapEvaluation<'a>>,
}

type PixelCache<At, V> = RefCell<HashMap<At, V>>;

/// The value at a place, computed if it is not cached. Recorded reads are those of each pixel alone.
fn get_or_compute<At: Eq + Hash, V: Copy>(known: &PixelCache<At, V>, at: At, compute: impl FnOnce() -> V) -> V {
    if reads::is_recording() {
        return compute();
    }
    if let Some(v) = known.borrow().get(&at) {
        return *v;
    }
    let v = compute();
    known.borrow_mut().insert(at, v);
    v
}

impl<'a> MapEvaluation<'a> {
    fn of(kernel: &'a MapKernel) -> MapEvaluation<'a> {
        let passes = kernel.stages.iter().map(|_| PixelCache::default()).collect();
        MapEvaluation {
            kernel,
            passes,
            pixels: PixelCache::default(),
            chains: kernel.chains.iter().map(MapEvaluation::of).collect(),
        }
    }

    fn pixel(&self, inputs: &[HostImage], out: Geometry, (c, y, x): (usize, isize, usize)) -> Scalar {
        let m = self.kernel;
        let leaves: Vec<Scalar> = m
            .leaves
            .iter()
            .map(|l| dispatch!(l.dtype, T => self.leaf::<T>(l, inputs, out, (c, y, x.cast_signed())).scalar()))
            .collect();
        let mut results: Vec<Scalar> = Vec::new();
        let value = |v: Val, results: &[Scalar]| match v {
            Val::Leaf(i) => leaves[i],
            Val::Instr(i) => results[i],
            Val::Const(s) => s,
            Val::Index(axis, dtype) => {
                let at = match axis {
                    Axis::Rows => y.rem_euclid(out.shape.height.cast_signed()).cast_unsigned(),
                    Axis::Columns => x,
                    Axis::Channels => c % out.shape.channels,
                    Axis::Depth => c / out.shape.channels,
                };
                Scalar::from_f64(dtype, at as f64)
            }
        };
        for i in &m.code {
            let args: Vec<Scalar> = i.args.iter().map(|&a| value(a, &results)).collect();
            let v = match i.op {
                InstrOp::Convert(rule) => {
                    dispatch!(i.result, D => convert_pixel::<f64, D>(args[0].to_f64(), rule).scalar())
                }
                InstrOp::Pixel(op) => dispatch!(i.operand, T => match op.info().kind {
                    PixelKind::Select => if args[0].to_f64() != 0.0 { args[1] } else { args[2] },
                    kind => {
                        let args: Vec<T> = args.iter().map(|&a| T::from_scalar(a)).collect();
                        if kind == PixelKind::Compare { Scalar::U8(holds(op, &args).into()) } else { body(op, &args).scalar() }
                    }
                }),
            };
            results.push(v);
        }
        m.result.map_or(Scalar::from_f64(out.dtype, 0.0), |v| value(v, &results))
    }

    /// The pixel that a filter reads at row `y` and column `x` of an input, or of a chain, which is an image of the
    /// extent of `out`.
    fn read<T: Pixel>(
        &self,
        source: FilterSource,
        inputs: &[HostImage],
        out: Geometry,
        (c, y, x): (usize, isize, isize),
        border: Border,
    ) -> T {
        let chain = match source {
            FilterSource::Input(i) => return inputs[i].sample(c, y, x, border),
            FilterSource::Chain(chain) => &self.chains[chain],
            FilterSource::Stage(_) => unreachable!("a row pass is no image"),
        };
        match (border.map(y, out.shape.height), border.map(x, out.shape.width)) {
            (Some(y), Some(x)) => {
                let at = (c, y.cast_signed(), x);
                T::from_scalar(get_or_compute(&chain.pixels, at, || chain.pixel(inputs, out, at)))
            }
            _ => border.constant().map_or(T::ZERO, T::from_f64),
        }
    }

    fn leaf<T: Pixel>(&self, l: &Leaf, inputs: &[HostImage], out: Geometry, at: (usize, isize, isize)) -> T {
        let (c, y, x) = at;
        match &l.op {
            LeafOp::Load(i) => inputs[*i].get(c, y, x.cast_unsigned()),
            LeafOp::LoadPlane(i, map) => match map.at(c) {
                Some(plane) => inputs[*i].get(plane, y, x.cast_unsigned()),
                None => map.border.constant().map_or(T::ZERO, T::from_f64),
            },
            LeafOp::Shift(source, [dy, dx], b) => self.read(*source, inputs, out, (c, y + dy, x + dx), *b),
            LeafOp::Correlate(FilterSource::Stage(s), f, b) => {
                let stage = &self.kernel.stages[*s];
                let row = |dy: isize, _| -> T::Linear {
                    // A column filter reads results of row filters; beyond the image, the mapped row's results, or the
                    // constant.
                    let y = match stage.source {
                        FilterSource::Input(i) => inputs[i].resolve(y + dy, *b),
                        _ => b.map(y + dy, out.shape.height).map(usize::cast_signed),
                    };
                    let Some(y) = y else {
                        return b.constant().map_or(T::Linear::ZERO, T::Linear::from_f64);
                    };
                    let at = |dy, dx| self.read::<T>(stage.source, inputs, out, (c, y + dy, x + dx), stage.border);
                    let sum = || correlate_at(&stage.filter, |dy, dx| at(dy, dx).to_linear()).to_f64();
                    T::Linear::from_f64(get_or_compute(&self.passes[*s], (c, y, x), sum))
                };
                T::from_f64(correlate_at::<T::Linear>(f, row).to_f64())
            }
            LeafOp::Correlate(source, f, b) => {
                let at = |dy, dx| self.read::<T>(*source, inputs, out, (c, y + dy, x + dx), *b).to_linear();
                T::from_f64(correlate_at::<T::Linear>(f, at).to_f64())
            }
            LeafOp::OrderFilter(i, filter, b) => {
                order_at(filter, c, *b, |c, dy, dx| inputs[*i].sample(c, y + dy, x + dx, *b))
            }
            LeafOp::Warp(i, map, how, edge) => {
                let (py, px) = map.at(y as i64, x as i64);
                let read = |y, x| inputs[*i].converted::<T>(c, y, x, edge.border());
                beyond(edge, y, x).unwrap_or_else(|| sample(*how, py, px, read))
            }
            LeafOp::Flip(i, flip) => {
                let s = inputs[*i].geometry.shape;
                let y = if flip.rows() { s.height.cast_signed() - 1 - y } else { y };
                let x = if matches!(flip, Flip::Vertical) { x } else { s.width.cast_signed() - 1 - x };
                inputs[*i].get(c, y, x.cast_unsigned())
            }
        }
    }
}
