//! Parts of sweeps.

use horus_testing::cases::{cases, covering};

/// Asserts that any two values meet, in at most `most` cases, each once.
fn holds_all_pairs<const N: usize>(lengths: [usize; N], most: usize) {
    let part = covering(lengths);
    assert!(part.is_sorted_by(|a, b| a < b), "{lengths:?}");
    assert!(part.iter().flatten().zip(lengths.iter().cycle()).all(|(value, length)| value < length), "{lengths:?}");
    assert!(cases(0) > 0 || part.len() <= most, "{lengths:?}: {} cases", part.len());
    for (i, j) in (0..N).flat_map(|i| (0..i).map(move |j| (i, j))) {
        for (a, b) in (0..lengths[i]).flat_map(|a| (0..lengths[j]).map(move |b| (a, b))) {
            assert!(part.iter().any(|case| (case[i], case[j]) == (a, b)), "{lengths:?}: {a} of {i} with {b} of {j}");
        }
    }
}

#[test]
fn any_two_values_of_a_sweep_meet_in_its_part() {
    holds_all_pairs([7], 7);
    holds_all_pairs([4, 6], 24);
    holds_all_pairs([40, 9, 6], 360);
    holds_all_pairs([6, 1, 6, 9], 54);
    holds_all_pairs([2, 5, 6, 7], 60);
    holds_all_pairs([9, 5, 1, 4, 3], 81);
    holds_all_pairs([0, 3], 0);
}
