//! Ranks under footprints of several levels. For many pixels at once, the bits of the result are found from the highest
//! on, by counting the pixels under each footprint that are smaller than a candidate.
//!
//! Every pixel is compared once for each bit, regardless of the footprint. Vectors of bytes compare 64 at a time. This
//! is faster than maintaining an order from pixel to pixel, because whole planes of a volume's footprint change at each
//! step.

use std::collections::BTreeMap;

use crate::feed::pad;
use crate::plane::Plane;
use crate::simd::Isa;
use crate::versions::for_each_isa;
use horus_base::dtype::Pixel;
use horus_base::shape::{Border, Shape, Window};
use horus_plan::ops::windowed::{Ranked, ordered};

/// Rows of results whose surrounding keys are in memory together.
const ROWS: usize = 16;

/// An integer that orders pixels.
trait SortKey: bytemuck::Pod + Ord {
    const ZERO: Self;
    const BITS: u32;
    /// The largest number of pixels that a key can count.
    const MOST: usize;
    fn of(key: u64) -> Self;
    fn get(self) -> u64;
    fn with_bit(self, bit: u32) -> Self;
    /// Adds one if the condition is true.
    fn counting(self, condition: bool) -> Self;
}

macro_rules! keys {
    ($($t:ty)*) => {$(
        impl SortKey for $t {
            const ZERO: Self = 0;
            const BITS: u32 = <$t>::BITS;
            const MOST: usize = if <$t>::BITS < usize::BITS { <$t>::MAX as usize } else { usize::MAX };
            #[inline(always)]
            fn of(key: u64) -> Self {
                key as $t
            }
            #[inline(always)]
            fn get(self) -> u64 {
                u64::from(self)
            }
            #[inline(always)]
            fn with_bit(self, bit: u32) -> Self {
                self | 1 << bit
            }
            #[inline(always)]
            fn counting(self, condition: bool) -> Self {
                self.wrapping_add(<$t>::from(condition))
            }
        }
    )*};
}
keys!(u8 u16 u32 u64);

/// The pixel of a type with this key.
#[inline(always)]
fn pixel_of<T: Pixel, K: SortKey>(key: K) -> T {
    let (sign, key) = (1 << (8 * size_of::<T>() - 1), key.get());
    let bits = if T::DTYPE.is_float() && key & sign == 0 {
        !key
    } else if T::DTYPE.is_float() || T::DTYPE.is_signed() {
        key ^ sign
    } else {
        key
    };
    bytemuck::cast(K::of(bits))
}

/// Computes all columns of `rows` of a plane of a volume of `shape`.
pub(super) fn ranks<'a, T: Pixel>(
    isa: Isa,
    planes: &dyn Fn(usize) -> Plane<'a, T>,
    (shape, plane): (Shape, usize),
    (rank, border): (&Ranked, Border),
    rows: Window,
    out: &mut [T],
) {
    // Vectors of four registers.
    match size_of::<T>() {
        1 => ranks_by::<T, u8, 256>(isa, planes, (shape, plane), (rank, border), rows, out),
        2 => ranks_by::<T, u16, 128>(isa, planes, (shape, plane), (rank, border), rows, out),
        4 => ranks_by::<T, u32, 64>(isa, planes, (shape, plane), (rank, border), rows, out),
        _ => ranks_by::<T, u64, 32>(isa, planes, (shape, plane), (rank, border), rows, out),
    }
}

fn ranks_by<'a, T: Pixel, K: SortKey, const N: usize>(
    isa: Isa,
    planes: &dyn Fn(usize) -> Plane<'a, T>,
    (shape, plane): (Shape, usize),
    (rank, border): (&Ranked, Border),
    rows: Window,
    out: &mut [T],
) {
    let (width, reach) = (shape.width, rank.reach());
    let (level, channel) = ((plane / shape.channels).cast_signed(), plane % shape.channels);
    let mut line = vec![T::ZERO; reach.left + width + reach.right];
    let length = reach.left + width.next_multiple_of(N) + reach.right;
    let (mut keys, mut starts, mut taps) = (Vec::new(), BTreeMap::new(), Vec::with_capacity(rank.count()));
    let mut found = [K::ZERO; N];
    for (k, out) in out.chunks_mut(ROWS * width).enumerate() {
        let first = rows.start + (k * ROWS).cast_signed();
        keys.clear();
        starts.clear();
        for (y, out) in (first..).zip(out.chunks_mut(width)) {
            taps.clear();
            for span in rank.spans.iter() {
                let start = *starts.entry((span.z, y + span.y as isize)).or_insert_with_key(|(z, y)| {
                    let plane =
                        border.map(level + *z as isize, shape.depth).map(|z| planes(z * shape.channels + channel));
                    let row = plane.and_then(|plane| plane.resolve(*y, border).map(|y| plane.row(y)));
                    match row {
                        Some(row) => pad(row, -reach.left.cast_signed(), (border, 1), &mut line),
                        None => line.fill(border.constant().map_or(T::ZERO, T::from_f64)),
                    }
                    let start = keys.len();
                    keys.extend(line.iter().map(|v| K::of(ordered(v.scalar()))));
                    keys.resize(start + length, K::ZERO);
                    start
                });
                taps.extend((span.from..span.to).map(|x| (start + reach.left).wrapping_add_signed(x as isize)));
            }
            for (k, out) in out.chunks_mut(N).enumerate() {
                select(isa, &keys, &taps, k * N, rank.place as u64, &mut found);
                out.iter_mut().zip(&found).for_each(|(out, key)| *out = pixel_of(*key));
            }
        }
    }
}

for_each_isa! {
    fn select[K: SortKey, const N: usize][K, N](keys: &[K], taps: &[usize], x: usize, place: u64, found: &mut [K; N])
    as select_body
}

/// The keys of rank `place` among the keys at `taps`, for pixels from `x` on: the largest keys with at most `place`
/// smaller ones.
#[inline(always)]
fn select_body<K: SortKey, const N: usize>(
    _: Isa,
    keys: &[K],
    taps: &[usize],
    x: usize,
    place: u64,
    found: &mut [K; N],
) {
    let mut least = [K::ZERO; N];
    let mut below = [0u64; N];
    for bit in (0..K::BITS).rev() {
        let candidates = least.map(|key| key.with_bit(bit));
        let smaller = smaller(keys, taps, x, &candidates);
        let mut settled = true;
        for i in 0..N {
            let taken = smaller[i] <= place;
            least[i] = if taken { candidates[i] } else { least[i] };
            below[i] = if taken { smaller[i] } else { below[i] };
            settled &= below[i] == place;
        }
        if settled {
            // As many others as the rank are smaller: the result is the smallest remaining key.
            *found = smallest_key_from(keys, taps, x, &least);
            return;
        }
    }
    *found = least;
}

/// The number of keys at `taps` that are smaller than a candidate for each pixel.
#[inline(always)]
fn smaller<K: SortKey, const N: usize>(keys: &[K], taps: &[usize], x: usize, candidates: &[K; N]) -> [u64; N] {
    let mut total = [0; N];
    for taps in taps.chunks(K::MOST) {
        let mut counts = [K::ZERO; N];
        for at in taps {
            let row = &keys[at + x..][..N];
            for i in 0..N {
                counts[i] = counts[i].counting(row[i] < candidates[i]);
            }
        }
        for i in 0..N {
            total[i] += counts[i].get();
        }
    }
    total
}

/// The smallest key at `taps` that is not below the given one, for each pixel.
#[inline(always)]
fn smallest_key_from<K: SortKey, const N: usize>(keys: &[K], taps: &[usize], x: usize, from: &[K; N]) -> [K; N] {
    let mut best = [K::of(u64::MAX); N];
    for at in taps {
        let row = &keys[at + x..][..N];
        for i in 0..N {
            let (key, kept) = (row[i], best[i]);
            best[i] = if key >= from[i] && key < kept { key } else { kept };
        }
    }
    best
}
