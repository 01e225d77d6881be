//! Medians of small windows by a compare-exchange network, many pixels at a time.

use crate::cpu::patch::{Patch, for_each_block};
use crate::cpu::plane::{Plane, Tile};
use crate::cpu::simd::Isa;
use crate::cpu::versions::for_each_isa;
use horus_base::dtype::Pixel;
use horus_base::shape::Border;
use horus_plan::ops::neighbourhood::{MedianSize, median_network};

/// Pixels processed by the network together.
const LANES: usize = 64;
/// Values of the largest window.
const WIRES: usize = 25;

/// Computes the median of the window around each pixel of `tile`: its values in row-major order,
/// passed through [`median_network`].
pub(crate) fn median<T: Pixel>(
    plane: &Plane<'_, T>,
    size: MedianSize,
    border: Border,
    tile: &mut Tile<'_, T>,
    isa: Isa,
) {
    let side = 2 * size.radius() + 1;
    let network = median_network(side * side);
    for_each_block(plane, size.reach(), border, tile, |patch, block| {
        let run = |y: isize, x: usize, out: &mut [T]| exchange(isa, patch, size.radius(), &network, y, x, out);
        #[cfg(target_arch = "x86_64")]
        if super::network::medians(isa, patch, size, block, run) {
            return;
        }
        for y in block.rows.start..block.rows.end {
            run(y, block.cols.start, block.row_mut(y));
        }
    });
}

for_each_isa! {
    /// Medians of the pixels from column `x` of row `y` on, NaNs included.
    fn exchange[T: Pixel][T](
        patch: &Patch<'_, T>, radius: usize, network: &[(usize, usize)], y: isize, x: usize, out: &mut [T]
    ) as exchange_lanes
}

#[inline(always)]
fn exchange_lanes<T: Pixel>(
    _: Isa,
    patch: &Patch<'_, T>,
    radius: usize,
    network: &[(usize, usize)],
    y: isize,
    x: usize,
    out: &mut [T],
) {
    let (r, side) = (radius.cast_signed(), 2 * radius + 1);
    let mut wires = [[T::ZERO; LANES]; WIRES];
    for (x, out) in (x.cast_signed() - r..).step_by(LANES).zip(out.chunks_mut(LANES)) {
        let n = out.len();
        for (i, wire) in wires[..side * side].iter_mut().enumerate() {
            let (dy, dx) = ((i / side).cast_signed(), (i % side).cast_signed());
            wire[..n].copy_from_slice(patch.line(y - r + dy, x + dx, n));
        }
        for &(i, j) in network {
            let (upper, lower) = wires.split_at_mut(j);
            for (a, b) in upper[i].iter_mut().zip(&mut lower[0]) {
                (*a, *b) = (a.min(*b), b.max(*a));
            }
        }
        out.copy_from_slice(&wires[side * side / 2][..n]);
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
        for (i, j) in median_network(v.len()) {
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
