//! What is read along one axis of an image.

use horus_base::shape::{Border, Window};

/// The pixels of a line of `n` that must be there so that reading `window` with `border` gives what it gives of the whole line: those
/// that are read, and the edges beyond which something is read, so that the edge mode finds them. All of them where it goes round,
/// or back and forth.
pub(super) fn read(border: Border, window: Window, n: usize) -> Window {
    let (inside, whole) = (window.clipped(n), Window::whole(n));
    if window.is_empty() {
        return Window::new(0, 0);
    }
    if inside == window {
        return inside;
    }
    let (len, last) = (n.cast_signed(), window.end - 1);
    let (before, after) = (window.start < 0, last >= len);
    match border {
        Border::Constant(_) => inside,
        Border::Wrap => whole,
        Border::Replicate => {
            let first = if before { Window::new(0, 1) } else { inside };
            let end = if after { Window::new(len - 1, len) } else { inside };
            inside.union(first).union(end)
        }
        // Turned once, so that only the edge at which it is turned matters.
        Border::Reflect | Border::Reflect101 if window.start > -len && last < 2 * len - 1 => {
            let turned = |i: isize| border.map(i, n).map_or(0, usize::cast_signed);
            let first = if before { Window::new(0, turned(window.start) + 1) } else { inside };
            let end = if after { Window::new(turned(last), len) } else { inside };
            inside.union(first).union(end)
        }
        Border::Reflect | Border::Reflect101 => whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BORDERS: [Border; 5] =
        [Border::Reflect101, Border::Reflect, Border::Replicate, Border::Wrap, Border::Constant(0.0)];

    #[test]
    fn what_is_read_of_a_part_is_what_is_read_of_the_whole() {
        let mut cut = 0;
        for border in BORDERS {
            for n in 1..8usize {
                for start in -20..20isize {
                    for end in start + 1..21 {
                        let part = read(border, Window::new(start, end), n);
                        assert!(Window::whole(n).covers(part));
                        cut += usize::from(part.len() < n);
                        for i in start..end {
                            let whole = border.map(i, n);
                            // Nothing of the line may be read at all.
                            let in_part = if part.is_empty() { None } else { border.map(i - part.start, part.len()) };
                            let in_part = in_part.map(|k| k + part.start.cast_unsigned());
                            assert_eq!(in_part, whole, "{border}, {n} pixels, {start}..{end} at {i}: {part}");
                        }
                    }
                }
            }
        }
        assert!(cut > 1000, "{cut}");
    }
}
