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
