//! Medians of small windows: compare-exchange networks as straight-line code over vector registers.
//!
//! A loop over [`MedianSize::network`] keeps its values
//! in memory, as registers cannot be indexed, and waits for every store. Unrolled, most values stay
//! in registers.

use super::vector::*;
use crate::cpu::patch::for_each_block;
use crate::cpu::plane::{Plane, Tile};
use crate::cpu::simd::Isa;
use horus_base::dtype::{DType, Pixel};
use horus_base::shape::Border;
use horus_plan::ops::neighbourhood::MedianSize;

/// Computes the median of the window around each pixel of `tile`: its values in row-major order,
/// passed through [`MedianSize::network`].
pub(crate) fn median<T: Pixel>(
    plane: &Plane<'_, T>,
    size: MedianSize,
    border: Border,
    tile: &mut Tile<'_, T>,
    isa: Isa,
) {
    let order = Order::of(T::DTYPE, false);
    for_each_block(plane, size.reach(), border, tile, |patch, block| {
        let (rows, n) = (block.rows.len(), block.cols.len());
        let (image, out) = (View::around(patch, block, size.reach()), View::of(block));
        let job = Medians { image, out, rows, bytes: n * size_of::<T>(), order: &order };
        // SAFETY: the patch holds the pixels around the tile; the device checked the instruction
        // set.
        unsafe { medians(isa, T::DTYPE, size, job) }
    });
}

/// A network over `N` values.
trait Network<const N: usize> {
    /// The median of `v`.
    ///
    /// # Safety
    /// As for [`Vector`].
    unsafe fn median<V: Vector>(v: [V; N]) -> V;
}

/// Defines a network as code, and as data for the test.
macro_rules! networks {
    ($($name:ident $n:literal: $(($i:literal $j:literal))*;)*) => {$(
        struct $name;

        impl Network<$n> for $name {
            #[inline(always)]
            unsafe fn median<V: Vector>(mut v: [V; $n]) -> V {
                $(
                    // SAFETY: the caller has the instruction set.
                    (v[$i], v[$j]) = unsafe { (V::min(v[$i], v[$j]), V::max(v[$j], v[$i])) };
                )*
                v[$n / 2]
            }
        }

        #[cfg(test)]
        impl $name {
            const EXCHANGES: &[(usize, usize)] = &[$(($i, $j)),*];
        }
    )*};
}

#[rustfmt::skip]
networks! {
    Three 9:
        (0 3) (1 4) (2 5) (3 6) (4 7) (5 8) (0 3) (1 4) (2 5) (0 1) (1 2) (7 8) (6 7) (3 4) (4 5) (3 4) (2 4)
        (4 6) (2 4);
    Five 25:
        (0 1) (3 4) (2 4) (2 3) (6 7) (5 7) (5 6) (9 10) (8 10) (8 9) (12 13) (11 13) (11 12) (15 16) (14 16)
        (14 15) (18 19) (17 19) (17 18) (21 22) (20 22) (20 21) (23 24) (2 5) (3 6) (0 6) (0 3) (4 7) (1 7)
        (1 4) (11 14) (8 14) (8 11) (12 15) (9 15) (9 12) (13 16) (10 16) (10 13) (20 23) (17 23) (17 20)
        (21 24) (18 24) (18 21) (19 22) (8 17) (9 18) (0 18) (0 9) (10 19) (1 19) (1 10) (11 20) (2 20) (2 11)
        (12 21) (3 21) (3 12) (13 22) (4 22) (4 13) (14 23) (5 23) (5 14) (15 24) (6 24) (6 15) (7 16) (7 19)
        (13 21) (15 23) (7 13) (7 15) (1 9) (3 11) (5 17) (11 17) (9 17) (4 10) (6 12) (7 14) (4 6) (4 7)
        (12 14) (10 14) (6 7) (10 12) (6 10) (6 17) (12 17) (7 17) (7 10) (12 18) (7 12) (10 18) (12 20)
        (10 20) (10 12);
}

/// Medians of `rows` rows of `bytes` bytes.
struct Medians<'a> {
    /// From the upper left corner of the first window on.
    image: View,
    out: View,
    rows: usize,
    bytes: usize,
    order: &'a Order,
}

/// # Safety
/// The output has these rows, of pixels of type `dtype`, and the image the pixels around them. The
/// machine has the instruction set.
unsafe fn medians(isa: Isa, dtype: DType, size: MedianSize, job: Medians<'_>) {
    macro_rules! run {
        ($compiled:ident, $v:ty, $t:ident) => {
            // SAFETY: the caller's.
            unsafe {
                match size {
                    MedianSize::Three => $compiled::<$v, Single<$t>, Three, 9>(job),
                    MedianSize::Five => $compiled::<$v, Single<$t>, Five, 25>(job),
                }
            }
        };
    }
    with_vectors!(isa, dtype, run);
}

macro_rules! compiled {
    ($name:ident $(, $features:literal)?) => {
        /// # Safety
        /// As for [`medians`]; the vectors are of this instruction set.
        $(#[target_feature(enable = $features)])?
        unsafe fn $name<V: Vector, P: Vector, S: Network<N>, const N: usize>(job: Medians<'_>) {
            // SAFETY: the caller's.
            unsafe { all_rows::<V, P, S, N>(job) }
        }
    };
}
#[cfg(target_arch = "x86_64")]
compiled!(avx512, "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma");
#[cfg(target_arch = "x86_64")]
compiled!(avx2, "avx2,fma");
#[cfg(not(target_arch = "x86_64"))]
compiled!(portable);

/// # Safety
/// As for [`medians`].
#[inline(always)]
unsafe fn all_rows<V: Vector, P: Vector, S: Network<N>, const N: usize>(job: Medians<'_>) {
    let Medians { mut image, mut out, rows, bytes, order } = job;
    for _ in 0..rows {
        for x in (0..bytes).step_by(V::BYTES) {
            // SAFETY: the caller's; vectors end within the row.
            unsafe {
                if bytes < V::BYTES {
                    singles::<P, S, N>(image, out, 0..bytes, order);
                    break;
                }
                // The last vector overlaps the one before.
                let x = x.min(bytes - V::BYTES);
                let wires = window::<V, P, N>(image.from(0, x), order);
                let mut nan = V::any_nan(wires[N - 1], wires[N - 1]);
                for i in (1..N).step_by(2) {
                    nan |= V::any_nan(wires[i - 1], wires[i]);
                }
                if nan {
                    singles::<P, S, N>(image, out, x..x + V::BYTES, order);
                } else {
                    V::xor(S::median(wires), V::load(order.flip())).store(out.at.add(x));
                }
            }
        }
        (image, out) = (image.from(1, 0), out.from(1, 0));
    }
}

/// The pixels under windows, which are as high as wide; `P` is a single pixel.
///
/// # Safety
/// They can be read.
#[inline(always)]
unsafe fn window<V: Vector, P: Vector, const N: usize>(image: View, order: &Order) -> [V; N] {
    let side = N.isqrt();
    std::array::from_fn(|i| {
        let at = image.from(i / side, i % side * P::BYTES).at;
        // SAFETY: the caller's.
        unsafe { V::xor(V::load(at), V::load(order.flip())) }
    })
}

/// Medians one by one, NaNs included, of the bytes `cols` of a row.
///
/// # Safety
/// As for [`medians`].
#[inline(never)]
unsafe fn singles<P: Vector, S: Network<N>, const N: usize>(
    image: View,
    out: View,
    cols: std::ops::Range<usize>,
    order: &Order,
) {
    for x in cols.step_by(P::BYTES) {
        // SAFETY: the caller's.
        unsafe {
            let found = S::median(window::<P, P, N>(image.from(0, x), order));
            P::xor(found, P::load(order.flip())).store(out.at.add(x));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::plane::whole;
    use horus_base::shape::Window;
    use horus_testing::for_each_type;
    use horus_testing::pixels::{SIZES, assert_same, borders, noise, rows_of};

    /// One pixel, from the definition.
    fn oracle<T: Pixel>(plane: &Plane<'_, T>, size: MedianSize, border: Border, y: usize, x: usize) -> T {
        let r = size.radius() as isize;
        let mut v: Vec<T> = (-r..=r)
            .flat_map(|dy| (-r..=r).map(move |dx| (dy, dx)))
            .map(|(dy, dx)| plane.pixel(y as isize + dy, x as isize + dx, border))
            .collect();
        for &(i, j) in size.network() {
            (v[i], v[j]) = (v[i].min(v[j]), v[j].max(v[i]));
        }
        v[v.len() / 2]
    }

    fn medians_follow_the_network<T: Pixel>() {
        for (n, &(h, w)) in SIZES.iter().chain(&[(70, 530)]).enumerate() {
            let image = noise::<T>(h * w, n as u64, n % 2 == 0);
            let plane = whole(&image, h, w);
            for size in [MedianSize::Three, MedianSize::Five] {
                for border in borders() {
                    let want: Vec<T> = (0..h * w).map(|i| oracle(&plane, size, border, i / w, i % w)).collect();
                    for isa in Isa::available() {
                        let mut out = vec![T::ONE; h * w];
                        let mut tile = Tile { out: &mut out, stride: w, rows: Window::whole(h), cols: 0..w };
                        median(&plane, size, border, &mut tile, isa);
                        assert_same(&out, &want, &format!("{} {h}x{w} {size:?} {border} {isa:?}", T::DTYPE));
                    }
                }
            }
        }
    }

    #[test]
    fn the_written_networks_are_the_defined_ones() {
        assert_eq!(Three::EXCHANGES, MedianSize::Three.network());
        assert_eq!(Five::EXCHANGES, MedianSize::Five.network());
    }

    #[test]
    fn medians_follow_the_network_for_every_type() {
        for_each_type!(medians_follow_the_network);
    }

    #[test]
    fn a_tile_over_the_rows_it_needs_equals_the_whole() {
        let (h, w) = (31, 90);
        let image = noise::<u16>(h * w, 4, false);
        let (rows, cols) = (Window::new(0, 6), 17..81);
        for border in [Border::Reflect, Border::Wrap] {
            let mut all = vec![0; h * w];
            let mut tile = Tile { out: &mut all, stride: w, rows: Window::whole(h), cols: 0..w };
            median(&whole(&image, h, w), MedianSize::Five, border, &mut tile, Isa::detect().unwrap());
            let window = if border == Border::Wrap { rows.grown(2, 2) } else { rows.grown(2, 2).clipped(h) };
            let held = rows_of(&image, h, w, window);
            let mut part = vec![0; 6 * 64];
            let mut tile = Tile { out: &mut part, stride: 64, rows, cols: cols.clone() };
            median(&Plane::new(&held, h, w, window), MedianSize::Five, border, &mut tile, Isa::detect().unwrap());
            for (part, all) in part.chunks(64).zip(all.chunks(w)) {
                assert_eq!(part, &all[cols.clone()]);
            }
        }
    }
}
