//! Connected components, by a search around each pixel of a component.

use horus_plan::ops::components::Connectivity;

/// The labels of an image of `[depth, height, width]` pixels with foreground `there`: the
/// definition.
pub fn components(there: &[bool], extent: [usize; 3], how: Connectivity) -> Vec<i32> {
    let [_, height, width] = extent;
    let mut labels = vec![0; there.len()];
    let mut count = 0;
    for (first, _) in there.iter().enumerate().filter(|(_, there)| **there) {
        if labels[first] != 0 {
            continue;
        }
        count += 1;
        labels[first] = count;
        let mut found = vec![first];
        while let Some(i) = found.pop() {
            let at = [i / width / height, i / width % height, i % width];
            for by in how.neighbours() {
                let [z, y, x] = [0, 1, 2].map(|axis| at[axis].checked_add_signed(by[axis]));
                let (Some(z), Some(y), Some(x)) = (z, y, x) else { continue };
                let inside = z < extent[0] && y < height && x < width;
                let j = (z * height + y) * width + x;
                if inside && there[j] && labels[j] == 0 {
                    labels[j] = count;
                    found.push(j);
                }
            }
        }
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_in_the_order_of_first_pixels() {
        // The second component in raster order starts right of the first, and extends further left
        // below it.
        let there: Vec<bool> = "..#.#\n#...#\n#####".lines().flat_map(|l| l.chars().map(|c| c == '#')).collect();
        let labels = components(&there, [1, 3, 5], Connectivity::FACES);
        assert_eq!(labels, [0, 0, 1, 0, 2, 2, 0, 0, 0, 2, 2, 2, 2, 2, 2]);
    }

    #[test]
    fn levels_are_joined_by_what_touches() {
        // One pixel in each of two levels, at opposite corners of a cube.
        let there = [true, false, false, false, false, false, false, true];
        let count = |how| components(&there, [2, 2, 2], how).into_iter().max();
        let all = [Connectivity::FACES, Connectivity::EDGES, Connectivity::CORNERS].map(count);
        assert_eq!(all, [Some(2), Some(2), Some(1)]);
    }
}
