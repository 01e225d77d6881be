//! Kernels evaluated on the host pixel by pixel, straight from their definitions. Slow; the oracle of the checks.

use horus_core::device::Geometry;
use horus_core::dtype::{Arithmetic, DType, Float, Numeric, Pixel, Scalar};
use horus_core::ir::kernel::{InstrOp, Kernel, Leaf, LeafOp, MapKernel, Source, Val};
use horus_core::ops::geometric::{Affine, Flip, Interpolation, cubic_weights};
use horus_core::ops::neighbourhood::{Combine, Filter, Generalized, Reduce, median_network};
use horus_core::ops::pixel::{PixelKind, PixelOp};
use horus_core::ops::reduce::{Fold, RowReduce, bin_of, fold, fold_planes};
use horus_core::shape::{Border, Window};
use horus_core::{dispatch, pixel_ops};

/// An image on the host: the rows of its window.
#[derive(Clone, Debug)]
pub struct HostImage {
    /// What is held.
    pub geometry: Geometry,
    /// The elements, as the device holds them.
    pub bytes: Vec<u8>,
}

impl HostImage {
    /// An image of zeros.
    pub fn zeroed(geometry: Geometry) -> HostImage {
        HostImage { geometry, bytes: vec![0; geometry.bytes()] }
    }

    /// The image in the rows of `window`: those held, wrapped copies of them, else zeros.
    fn covering(&self, window: Window) -> HostImage {
        let mut out = HostImage::zeroed(Geometry { window, ..self.geometry });
        let Geometry { shape, window: held, .. } = self.geometry;
        for c in 0..shape.channels {
            for y in window.start..window.end {
                let from = if held.contains(y) { y } else { y.rem_euclid(shape.height.cast_signed()) };
                if held.contains(from) {
                    let (to, bytes) = (out.at(c, y, 0), self.at(c, from, 0)..self.at(c, from, shape.width));
                    out.bytes[to..to + bytes.len()].copy_from_slice(&self.bytes[bytes]);
                }
            }
        }
        out
    }

    fn at(&self, c: usize, y: isize, x: usize) -> usize {
        (self.geometry.row(c, y) + x) * self.geometry.dtype.size()
    }

    fn get<T: Pixel>(&self, c: usize, y: isize, x: usize) -> T {
        let at = self.at(c, y, x);
        element(&self.bytes[at..at + size_of::<T>()])
    }

    fn put<T: Pixel>(&mut self, c: usize, y: isize, x: usize, v: T) {
        let at = self.at(c, y, x);
        self.bytes[at..at + size_of::<T>()].copy_from_slice(&bytes_of(v.scalar()));
    }

    /// The pixel read at (`y`, `x`) with a border.
    fn sample<T: Pixel>(&self, c: usize, y: isize, x: isize, by: Border, bx: Border) -> T {
        let constant = |b: Border| b.constant().map_or(T::ZERO, T::from_f64);
        let Some(x) = bx.map(x, self.geometry.shape.width) else { return constant(bx) };
        match self.resolve(y, by) {
            Some(y) => self.get(c, y, x),
            None => constant(by),
        }
    }

    fn resolve(&self, y: isize, border: Border) -> Option<isize> {
        let Geometry { shape, window, .. } = self.geometry;
        if (0..shape.height.cast_signed()).contains(&y) || (border == Border::Wrap && window.contains(y)) {
            return Some(y);
        }
        border.map(y, shape.height).map(usize::cast_signed)
    }
}

/// The bytes of a constant.
pub fn bytes_of(s: Scalar) -> Vec<u8> {
    s.bits().to_ne_bytes()[..s.dtype().size()].to_vec()
}

fn element<T: Pixel>(bytes: &[u8]) -> T {
    let mut bits = [0u8; 8];
    bits[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_ne_bytes(bits);
    T::from_scalar(match T::DTYPE.numeric() {
        Numeric::U8 => Scalar::U8(bits as u8),
        Numeric::U16 => Scalar::U16(bits as u16),
        Numeric::I32 => Scalar::I32(bits as i32),
        Numeric::F32 => Scalar::F32(f32::from_bits(bits as u32)),
        Numeric::F64 => Scalar::F64(f64::from_bits(bits)),
    })
}

macro_rules! interpreter {
    (unary { $($u:ident $un:literal |$ua:ident| $ub:expr, $uc:literal, $ud:literal;)* }
     binary { $($b:ident $bn:literal |$ba:ident, $bb:ident| $bx:expr, $bc:literal, $bd:literal;)* }
     compare { $($c:ident $cn:literal |$ca:ident, $cb:ident| $cx:expr, $cc:literal, $cd:literal;)* }
     ternary { $($t:ident $tn:literal |$ta:ident, $tb:ident, $tc:ident| $tx:expr, $tcu:literal, $td:literal;)* }
     select { $($s:ident $sn:literal $sc:literal, $sd:literal;)* }) => {
        fn apply<T: Pixel>(op: PixelOp, a: T, b: T, c: T) -> T {
            match op {
                $(PixelOp::$u => { let $ua = a; $ub })*
                $(PixelOp::$b => { let ($ba, $bb) = (a, b); $bx })*
                $(PixelOp::$t => { let ($ta, $tb, $tc) = (a, b, c); $tx })*
                _ => T::ZERO,
            }
        }
        fn compare<T: Pixel>(op: PixelOp, a: T, b: T) -> bool {
            match op {
                $(PixelOp::$c => { let ($ca, $cb) = (a, b); $cx })*
                _ => false,
            }
        }
    };
}
pixel_ops!(interpreter);

/// Evaluates a launch.
pub fn evaluate(kernel: &Kernel, inputs: &[HostImage], output: &mut HostImage, rows: Window) {
    let out = output.geometry;
    match kernel {
        Kernel::Map(m) if !m.chains.is_empty() => {
            let (m, inputs) = without_chains(m, inputs, out);
            evaluate(&Kernel::Map(m), &inputs, output, rows);
        }
        Kernel::Map(m) => dispatch!(out.dtype, T => {
            for c in 0..out.shape.channels {
                for y in rows.start..rows.end {
                    for x in 0..out.shape.width {
                        let v = map_pixel(m, inputs, out.dtype, c, y, x);
                        output.put::<T>(c, y, x, T::from_scalar(v));
                    }
                }
            }
        }),
        Kernel::Merge => dispatch!(out.dtype, T => {
            for (c, input) in inputs.iter().enumerate() {
                for y in rows.start..rows.end {
                    (0..out.shape.width).for_each(|x| output.put::<T>(c, y, x, input.get(0, y, x)));
                }
            }
        }),
        Kernel::Lookup => dispatch!(out.dtype, T => dispatch!(inputs[0].geometry.dtype, S => {
            for c in 0..out.shape.channels {
                for y in rows.start..rows.end {
                    for x in 0..out.shape.width {
                        let entry = inputs[0].get::<S>(c, y, x).to_f64() as usize;
                        output.put::<T>(c, y, x, inputs[1].get(0, 0, entry));
                    }
                }
            }
        })),
        Kernel::Transpose => dispatch!(out.dtype, T => {
            for c in 0..out.shape.channels {
                for y in rows.start..rows.end {
                    for x in 0..out.shape.width {
                        output.put::<T>(c, y, x, inputs[0].get(c, x.cast_signed(), y.cast_unsigned()));
                    }
                }
            }
        }),
        Kernel::RowReduce(how) => dispatch!(inputs[0].geometry.dtype, T => {
            let mean = inputs.get(1).map_or(0.0, |m| m.get::<f64>(0, 0, 0));
            let width = inputs[0].geometry.shape.width;
            for c in 0..out.shape.channels {
                for y in rows.start..rows.end {
                    let line = (0..width).map(|x| inputs[0].get::<T>(c, y, x));
                    match how {
                        RowReduce::Sum => {
                            output.put(c, y, 0, fold(Fold::Sum, line.map(Pixel::to_f64)));
                        }
                        RowReduce::SquaredDeviation => {
                            let square = line.map(|v| { let d = v.to_f64() - mean; d * d });
                            output.put(c, y, 0, fold(Fold::Sum, square));
                        }
                        RowReduce::Min | RowReduce::Max => output.put::<T>(c, y, 0, fold(how.fold(), line)),
                    }
                }
            }
        }),
        Kernel::MapReduce(map, how) => {
            let shape = horus_core::shape::Shape { width: inputs[0].geometry.shape.width, ..out.shape };
            let geometry = Geometry { shape, dtype: map.result_type(), window: rows };
            let mut values = HostImage::zeroed(geometry);
            evaluate(&Kernel::Map(map.clone()), &inputs[..map.inputs], &mut values, rows);
            let all: Vec<HostImage> = std::iter::once(values).chain(inputs[map.inputs..].iter().cloned()).collect();
            evaluate(&Kernel::RowReduce(*how), &all, output, rows);
        }
        Kernel::Fold(how) => dispatch!(out.dtype, T => {
            let g = inputs[0].geometry;
            let plane = |c| (0..g.shape.height).flat_map(move |y| (0..g.shape.width).map(move |x| (c, y, x)));
            let planes = (0..g.shape.channels).map(|c| plane(c).map(move |(c, y, x)| inputs[0].get::<T>(c, y.cast_signed(), x)));
            let v = fold_planes(*how, planes);
            output.put::<T>(0, 0, 0, v);
        }),
        &Kernel::Histogram { bins, lo, hi } => dispatch!(inputs[0].geometry.dtype, T => {
            let mut counts = vec![0.0; bins];
            for c in 0..inputs[0].geometry.shape.channels {
                for y in rows.start..rows.end {
                    for x in 0..inputs[0].geometry.shape.width {
                        if let Some(b) = bin_of(inputs[0].get::<T>(c, y, x).to_f64(), lo, hi, bins) {
                            counts[b] += 1.0;
                        }
                    }
                }
            }
            counts.into_iter().enumerate().for_each(|(b, n)| output.put::<f64>(0, 0, b, n));
        }),
        Kernel::Source(_) => {}
    }
}

/// The kernel with its chains evaluated: inputs after the others. Chains are evaluated in all rows that an input holds;
/// of another input that is the same row, a wrapped copy of it, or one that nobody needs.
fn without_chains(m: &MapKernel, inputs: &[HostImage], out: Geometry) -> (MapKernel, Vec<HostImage>) {
    let (mut m, mut inputs) = (m.clone(), inputs.to_vec());
    let held = inputs.iter().map(|i| i.geometry.window).reduce(Window::union).unwrap_or(out.window);
    let first = inputs.len();
    let covering: Vec<HostImage> = inputs.iter().map(|i| i.covering(held)).collect();
    for chain in std::mem::take(&mut m.chains) {
        let geometry = Geometry { dtype: chain.result_type(), window: held, ..out };
        let mut values = HostImage::zeroed(geometry);
        evaluate(&Kernel::Map(chain), &covering, &mut values, held);
        inputs.push(values);
    }
    let input = |s: &mut Source| {
        if let Source::Chain(c) = *s {
            *s = Source::Input(first + c);
        }
    };
    m.stages.iter_mut().for_each(|s| input(&mut s.source));
    for leaf in &mut m.leaves {
        if let LeafOp::Correlate(source, ..) = &mut leaf.op {
            input(source);
        }
    }
    (m, inputs)
}

fn map_pixel(m: &MapKernel, inputs: &[HostImage], out: DType, c: usize, y: isize, x: usize) -> Scalar {
    let leaves: Vec<Scalar> = m
        .leaves
        .iter()
        .map(|l| dispatch!(l.dtype, T => leaf::<T>(m, l, inputs, c, y, x.cast_signed()).scalar()))
        .collect();
    let mut results: Vec<Scalar> = Vec::new();
    let value = |v: Val, results: &[Scalar]| match v {
        Val::Leaf(i) => leaves[i],
        Val::Instr(i) => results[i],
        Val::Const(s) => s,
    };
    for i in &m.code {
        let args: Vec<Scalar> = i.args.iter().map(|&a| value(a, &results)).collect();
        let v = match i.op {
            InstrOp::Convert => Scalar::from_f64(i.result, args[0].to_f64()),
            InstrOp::Pixel(op) => dispatch!(i.operand, T => {
                let arg = |k: usize| args.get(k).map_or(T::ZERO, |&s| T::from_scalar(s));
                match op.info().kind {
                    PixelKind::Compare => Scalar::U8(compare(op, arg(0), arg(1)) as u8),
                    PixelKind::Select => if args[0].to_f64() != 0.0 { args[1] } else { args[2] },
                    _ => apply(op, arg(0), arg(1), arg(2)).scalar(),
                }
            }),
        };
        results.push(v);
    }
    m.result.map_or(Scalar::from_f64(out, 0.0), |v| value(v, &results))
}

fn leaf<T: Pixel>(m: &MapKernel, l: &Leaf, inputs: &[HostImage], c: usize, y: isize, x: isize) -> T {
    match &l.op {
        LeafOp::Load(i) => inputs[*i].get(c, y, x.cast_unsigned()),
        LeafOp::LoadChannel(i, k) => inputs[*i].get(*k, y, x.cast_unsigned()),
        LeafOp::Correlate(Source::Input(i), f, b) => {
            let at = |y, x| inputs[*i].sample::<T>(c, y, x, *b, *b);
            T::from_f64(correlate::<T::Linear>(f, y, x, |y, x| at(y, x).to_linear()).to_f64())
        }
        LeafOp::Correlate(Source::Chain(_), ..) => unreachable!("chains are evaluated before"),
        LeafOp::Correlate(Source::Stage(s), f, b) => {
            let stage = &m.stages[*s];
            let Source::Input(i) = stage.source else { unreachable!("chains are evaluated before") };
            let image = &inputs[i];
            let row = |y: isize, x: isize| -> T::Linear {
                // A column filter reads row-pass results; beyond the image those of the mapped row, or the constant.
                let Some(y) = image.resolve(y, *b) else {
                    return b.constant().map_or(T::Linear::ZERO, T::Linear::from_f64);
                };
                correlate(&stage.filter, y, x, |y, x| {
                    image.sample::<T>(c, y, x, stage.border, stage.border).to_linear()
                })
            };
            T::from_f64(correlate::<T::Linear>(f, y, x, row).to_f64())
        }
        LeafOp::Generalized(i, g, b) => generalized(g, y, x, |y, x| inputs[*i].sample(c, y, x, *b, *b)),
        LeafOp::Median(i, size, b) => {
            let r = size.radius().cast_signed();
            let offsets = (-r..=r).flat_map(|dy| (-r..=r).map(move |dx| (dy, dx)));
            let mut v: Vec<T> = offsets.map(|(dy, dx)| inputs[*i].sample(c, y + dy, x + dx, *b, *b)).collect();
            for (i, j) in median_network(v.len()) {
                (v[i], v[j]) = (v[i].min(v[j]), v[j].max(v[i]));
            }
            v[v.len() / 2]
        }
        LeafOp::Warp(i, map, how, b) => {
            let (py, px) = map.at(y as i64, x as i64);
            warp(*how, py, px, |y, x| inputs[*i].sample::<T>(c, y, x, *b, *b))
        }
        LeafOp::Flip(i, flip) => {
            let s = inputs[*i].geometry.shape;
            let y = if flip.rows() { s.height.cast_signed() - 1 - y } else { y };
            let x = if matches!(flip, Flip::Vertical) { x } else { s.width.cast_signed() - 1 - x };
            inputs[*i].get(c, y, x.cast_unsigned())
        }
    }
}

fn correlate<F: Float>(f: &Filter, y: isize, x: isize, at: impl Fn(isize, isize) -> F) -> F {
    let taps = f.taps().iter().zip(f.offsets());
    taps.fold(F::ZERO, |acc, (&t, (dy, dx))| F::from_f64(t).fma(at(y + dy, x + dx), acc))
}

fn generalized<T: Pixel>(g: &Generalized, y: isize, x: isize, at: impl Fn(isize, isize) -> T) -> T {
    let start = match g.reduce {
        Reduce::Sum => T::ZERO,
        Reduce::Product => T::ONE,
        Reduce::Min => T::HIGHEST,
        Reduce::Max => T::LOWEST,
    };
    g.window.taps().iter().zip(g.window.offsets()).fold(start, |acc, (&t, (dy, dx))| {
        let (v, w) = (at(y + dy, x + dx), T::from_f64(t));
        let v = match g.combine {
            Combine::Pixel => v,
            Combine::Add => v.add(w),
            Combine::Sub => v.sub(w),
            Combine::Mul => v.mul(w),
            Combine::Min => v.min(w),
            Combine::Max => v.max(w),
        };
        match g.reduce {
            Reduce::Sum => acc.add(v),
            Reduce::Product => acc.mul(v),
            Reduce::Min => acc.min(v),
            Reduce::Max => acc.max(v),
        }
    })
}

fn warp<T: Pixel>(how: Interpolation, py: i64, px: i64, at: impl Fn(isize, isize) -> T) -> T {
    let whole = |p: i64| (p >> 32) as isize;
    let (y, x) = (whole(py), whole(px));
    let (ty, tx) = (T::Interp::from_fraction(py as u32), T::Interp::from_fraction(px as u32));
    match how {
        Interpolation::Nearest => at(whole(py + (1 << 31)), whole(px + (1 << 31))),
        Interpolation::Bilinear => {
            let lerp = |a: T::Interp, b: T::Interp, t: T::Interp| t.fma(b.sub(a), a);
            let line = |y| lerp(at(y, x).to_interp(), at(y, x + 1).to_interp(), tx);
            T::from_interp(lerp(line(y), line(y + 1), ty))
        }
        Interpolation::Bicubic => {
            let (wx, wy) = (cubic_weights(tx), cubic_weights(ty));
            let line = |y: isize| {
                (0..4).fold(T::Interp::ZERO, |acc, i| wx[i].fma(at(y, x - 1 + i.cast_signed()).to_interp(), acc))
            };
            T::from_interp((0..4).fold(T::Interp::ZERO, |acc, j| wy[j].fma(line(y - 1 + j.cast_signed()), acc)))
        }
        other => unreachable!("cases have no {}", other.name()),
    }
}

/// The affine map of a rotation, for cases.
pub(super) fn turned(degrees: f64, shape: horus_core::shape::Shape) -> Affine {
    Affine::new(horus_core::ops::geometric::rotation(degrees, shape), shape).unwrap_or(Affine::IDENTITY)
}
