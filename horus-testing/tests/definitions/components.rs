//! Connected components.

use horus_plan::ops::components::Connectivity;
use horus_testing::reference::components::components;

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
