//! Ranks under any footprint of the plane, for any type. The pixels of a tile and around it are sorted once; a window
//! is the set of their places in that order, as bits (J. Suomela, *Median filtering is equivalent to sorting*, 2014).
//!
//! The window traverses the tile row by row, back and forth. Each step sets some bits and clears others; the search for
//! the word with the result's bit starts at its previous position. The cost of a pixel grows with the edge of the
//! footprint, not with its area.

use crate::patch::Patch;
use crate::plane::Plane;
use horus_base::dtype::Pixel;
use horus_base::shape::{Border, Window};
use horus_plan::ops::windowed::{Ranked, ordered};

/// Computes all columns of `rows`; `out` is the memory of these rows.
pub(super) fn ranks<T: Pixel>(plane: &Plane<'_, T>, rank: &Ranked, border: Border, rows: Window, out: &mut [T]) {
    let (width, reach) = (plane.width, rank.reach());
    let steps = WindowChanges::of(rank);
    // Tiles span several windows, so that few pixels are sorted twice, but few words are empty.
    let side = |n: usize| (2 * n).clamp(64, 512);
    let (tall, wide) = (side(reach.up + reach.down), side(reach.left + reach.right));
    let mut scratch = Vec::new();
    let mut set = WindowSet::default();
    for (k, out) in out.chunks_mut(tall * width).enumerate() {
        let start = rows.start + (k * tall).cast_signed();
        let rows = Window::new(start, start + (out.len() / width).cast_signed());
        for x in (0..width).step_by(wide) {
            let cols = x..width.min(x + wide);
            let patch = Patch::around(plane, rows, &cols, reach, border, &mut scratch);
            let around = SortedRectangle {
                rows: rows.grown(reach.up, reach.down),
                left: cols.start.cast_signed() - reach.left.cast_signed(),
                width: cols.len() + reach.left + reach.right,
            };
            let pixels = set.sort(&patch, &around);
            let centre = reach.up * around.width + reach.left;
            let extent = (rows.len(), cols.len());
            set.traverse(&steps.at(around.width), centre, around.width, extent, rank.place, |y, i, found| {
                out[y * width + cols.start + i] = pixels(found);
            });
        }
    }
}

/// The rectangle around a tile whose pixels are sorted.
struct SortedRectangle {
    rows: Window,
    left: isize,
    width: usize,
}

/// Offsets `(dy, dx)` that leave and enter a window.
#[derive(Default)]
struct WindowChange<T> {
    leave: Vec<T>,
    enter: Vec<T>,
}

/// Offsets of each kind of step, and of the whole footprint, relative to the previous centre.
struct WindowChanges<T> {
    all: Vec<T>,
    right: WindowChange<T>,
    left: WindowChange<T>,
    down: WindowChange<T>,
}

type PixelOffset = (i32, i32);

impl WindowChanges<PixelOffset> {
    fn of(rank: &Ranked) -> WindowChanges<PixelOffset> {
        let mut steps = WindowChanges {
            all: Vec::new(),
            right: WindowChange::default(),
            left: WindowChange::default(),
            down: WindowChange::default(),
        };
        for s in rank.spans.iter() {
            steps.all.extend((s.from..s.to).map(|x| (s.y, x)));
            steps.right.leave.push((s.y, s.from));
            steps.right.enter.push((s.y, s.to));
            steps.left.leave.push((s.y, s.to - 1));
            steps.left.enter.push((s.y, s.from - 1));
        }
        // For each column of the footprint, the top leaves and the pixel below the bottom enters.
        let mut columns = steps.all.clone();
        columns.sort_unstable_by_key(|&(y, x)| (x, y));
        for (i, &(y, x)) in columns.iter().enumerate() {
            if i == 0 || columns[i - 1] != (y - 1, x) {
                steps.down.leave.push((y, x));
            }
            if columns.get(i + 1) != Some(&(y + 1, x)) {
                steps.down.enter.push((y + 1, x));
            }
        }
        steps
    }

    /// The steps as distances in memory, for an image of a given number of columns.
    fn at(&self, width: usize) -> WindowChanges<isize> {
        let all = |list: &[PixelOffset]| {
            list.iter().map(|&(y, x)| y as isize * width.cast_signed() + x as isize).collect::<Vec<_>>()
        };
        let step = |s: &WindowChange<PixelOffset>| WindowChange { leave: all(&s.leave), enter: all(&s.enter) };
        WindowChanges { all: all(&self.all), right: step(&self.right), left: step(&self.left), down: step(&self.down) }
    }
}

/// A window as a set of places in the sorted order of the pixels around a tile.
#[derive(Default)]
struct WindowSet {
    /// The place of each pixel.
    places: Vec<u32>,
    /// One bit per place: the pixel is in the window.
    words: Vec<u64>,
    /// The current word, and the number of window pixels in the words before it.
    word: usize,
    before: usize,
    /// Sort keys of the pixels.
    sorted: Vec<u64>,
    long: Vec<(u64, u32)>,
}

impl WindowSet {
    /// Sorts the pixels around a tile; returns a function from place to pixel.
    fn sort<'p, T: Pixel>(
        &mut self,
        patch: &'p Patch<'p, T>,
        around: &'p SortedRectangle,
    ) -> impl Fn(usize) -> T + use<'p, T> {
        let SortedRectangle { rows, left, width } = *around;
        let count = rows.len() * width;
        let lines = (rows.start..rows.end).map(|y| patch.line(y, left, width));
        let pixels = lines.flatten().enumerate();
        self.places.clear();
        self.places.resize(count, 0);
        let mut from: Vec<u32> = vec![0; count];
        // A patch has fewer pixels than 2^32.
        if size_of::<T>() == 8 {
            self.long.clear();
            self.long.extend(pixels.map(|(i, v)| (ordered(v.scalar()), i as u32)));
            self.long.sort_unstable();
            self.long.iter().zip(&mut from).for_each(|(&(_, i), from)| *from = i);
        } else {
            self.sorted.clear();
            self.sorted.extend(pixels.map(|(i, v)| ordered(v.scalar()) << 32 | i as u64));
            self.sorted.sort_unstable();
            self.sorted.iter().zip(&mut from).for_each(|(&key, from)| *from = key as u32);
        }
        for (place, &i) in from.iter().enumerate() {
            self.places[i as usize] = place as u32;
        }
        self.words.clear();
        self.words.resize(count.div_ceil(64), 0);
        (self.word, self.before) = (0, 0);
        move |place| {
            let i = from[place] as usize;
            patch.line(rows.start + (i / width).cast_signed(), left + (i % width).cast_signed(), 1)[0]
        }
    }

    #[inline(always)]
    fn flip(&mut self, pixel: usize) -> usize {
        let place = self.places[pixel] as usize;
        self.words[place / 64] ^= 1 << (place % 64);
        usize::from(place / 64 < self.word)
    }

    fn change(&mut self, step: &WindowChange<isize>, centre: usize) {
        for (leave, enter) in step.leave.iter().zip(&step.enter) {
            self.before -= self.flip(centre.wrapping_add_signed(*leave));
            self.before += self.flip(centre.wrapping_add_signed(*enter));
        }
    }

    /// The place of the pixel of rank `rank` in the window.
    fn select(&mut self, rank: usize) -> usize {
        while self.before > rank {
            self.word -= 1;
            self.before -= self.words[self.word].count_ones() as usize;
        }
        loop {
            let here = self.words[self.word].count_ones() as usize;
            if self.before + here > rank {
                break;
            }
            self.before += here;
            self.word += 1;
        }
        let mut bits = self.words[self.word];
        for _ in self.before..rank {
            bits &= bits - 1;
        }
        64 * self.word + bits.trailing_zeros() as usize
    }

    /// Traverses a tile of `extent` whose first pixel is `first`, in an image of `width` columns,
    /// and reports the place found at each row and column.
    fn traverse(
        &mut self,
        steps: &WindowChanges<isize>,
        first: usize,
        width: usize,
        (height, columns): (usize, usize),
        rank: usize,
        mut found: impl FnMut(usize, usize, usize),
    ) {
        let mut centre = first;
        for pixel in &steps.all {
            self.flip(centre.wrapping_add_signed(*pixel));
        }
        for y in 0..height {
            let back = y % 2 == 1;
            for i in 0..columns {
                if i > 0 {
                    self.change(if back { &steps.left } else { &steps.right }, centre);
                    centre = if back { centre - 1 } else { centre + 1 };
                }
                let place = self.select(rank);
                found(y, if back { columns - 1 - i } else { i }, place);
            }
            if y + 1 < height {
                self.change(&steps.down, centre);
                centre += width;
            }
        }
    }
}
