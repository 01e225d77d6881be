//! The number of cases of long tests: `HORUS_CASES`.

use std::collections::HashSet;

/// `HORUS_CASES`, the number of cases of each randomised test. If it is set, sweeps are complete.
fn asked() -> Option<u32> {
    let value = std::env::var_os("HORUS_CASES").filter(|v| !v.is_empty())?;
    Some(value.to_str().and_then(|v| v.parse().ok()).unwrap_or_else(|| panic!("HORUS_CASES={value:?}: not a number")))
}

/// Number of cases of a randomised test: `HORUS_CASES`, or `default`.
pub fn cases(default: u32) -> u32 {
    asked().unwrap_or(default)
}

/// A part of a sweep, or all of it with `HORUS_CASES`.
pub fn part<T>(all: Vec<T>, some: impl FnOnce(Vec<T>) -> Vec<T>) -> Vec<T> {
    if asked().is_some() { all } else { some(all) }
}

/// The cases of a sweep over several choices with so many values each: all of them with `HORUS_CASES`, else a part in
/// which any two values of different choices occur together (a covering array of strength 2). The part has about as
/// many cases as the product of the two longest choices: `covering([7, 3, 5])` yields 35 of 105 cases, as `[operation,
/// type, border]`.
pub fn covering<const N: usize>(lengths: [usize; N]) -> Vec<[usize; N]> {
    let case = |mut number: usize| {
        let mut values = [0; N];
        for (value, length) in values.iter_mut().zip(lengths).rev() {
            (*value, number) = (number % length, number / length);
        }
        values
    };
    part((0..lengths.iter().product()).map(case).collect(), |mut all| {
        // Latin squares: cases with equal sums modulo a length have all pairs of longer choices once.
        let mut moduli: Vec<usize> = lengths.into_iter().filter(|n| *n > 1).collect();
        moduli.sort_unstable();
        moduli.dedup();
        moduli.truncate(N.saturating_sub(2).max(1));
        all.sort_by_cached_key(|case| {
            let sum = |k: usize| case.iter().enumerate().map(|(i, value)| value * (i * k + 1)).sum::<usize>();
            moduli.iter().enumerate().map(|(k, modulus)| sum(k) % modulus).collect::<Vec<_>>()
        });
        let mut seen = HashSet::new();
        all.retain(|case| {
            let pairs = (0..N).flat_map(|i| (0..i).map(move |j| (i, j)));
            let new = pairs.filter(|&(i, j)| seen.insert((i, j, case[i], case[j]))).count();
            new > 0 || N < 2
        });
        all.sort_unstable();
        all
    })
}
