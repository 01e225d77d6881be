//! A cache of filters: a program recorded again requests the same filters, whose taps take longer to compute
//! than the recording. Cached filters share their taps, so a filter also quickly compares equal to itself.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::ops::neighbourhood::Filter;
use horus_base::digest::Digest;
use horus_base::error::Result;

/// Maximum number of cached taps: 16 MiB with their offsets. An `LruCache` would limit the number of filters
/// instead.
const MOST: usize = 1 << 20;

/// The key of a filter: its function, the bits of its real parameters, and its orders.
pub(super) type FilterKey = (&'static str, [u64; 3], [u32; 2]);

#[derive(Default)]
struct FilterCache {
    filters: HashMap<FilterKey, (Filter, Filter), BuildHasherDefault<Digest>>,
    taps: usize,
}

/// Makes the key of a function and its parameters.
pub(super) fn key(op: &'static str, theta: f64, u: f64, v: f64, orders: [u32; 2]) -> FilterKey {
    (op, [theta, u, v].map(f64::to_bits), orders)
}

/// The two filters of this key, from the cache if possible. Failures are not cached.
pub(super) fn cached_filters(
    key: FilterKey,
    make: impl FnOnce() -> Result<(Filter, Filter)>,
) -> Result<(Filter, Filter)> {
    static KEPT: LazyLock<Mutex<FilterCache>> = LazyLock::new(Mutex::default);
    let lock = || KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = lock().filters.get(&key).cloned() {
        return Ok(found);
    }
    let made = make()?;
    let taps = made.0.taps().len() + made.1.taps().len();
    if taps <= MOST {
        let mut kept = lock();
        if kept.taps + taps > MOST {
            *kept = FilterCache::default();
        }
        kept.taps += taps;
        kept.filters.insert(key, made.clone());
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::{gauss_2d, gauss_uv, gauss_xy};

    #[test]
    fn filters_that_are_kept_are_those_of_their_parameters() {
        for _ in 0..2 {
            for theta in [0.0, -0.0, 30.0, 90.0] {
                for (u, v, orders) in [(3.0, 1.0, (0, 2)), (1.0, 3.0, (0, 2)), (3.0, 1.0, (2, 0)), (3.0, 1.0, (0, 0))] {
                    let (along, across) = gauss_uv(theta, u, v, orders.0, orders.1);
                    let dense = gauss_2d(theta, u, v, orders.0, orders.1);
                    // Taps of other parameters differ in number or in value; the sums equal those of the
                    // kernels.
                    let sum = |f: &Filter| f.taps().iter().sum::<f64>();
                    let smooth = orders == (0, 0);
                    assert_eq!(smooth, (sum(&along) * sum(&across) - 1.0).abs() < 0.05, "{theta} {u} {v} {orders:?}");
                    assert_eq!(smooth, (sum(&dense) - 1.0).abs() < 0.05, "{theta} {u} {v} {orders:?}");
                    let (row, column) = gauss_xy(u, v, orders.0, orders.1);
                    assert_eq!(gauss_uv(0.0, u, v, orders.0, orders.1), (row, column));
                }
            }
        }
        assert!(gauss_uv(30.0, -1.0, 1.0, 0, 0).0.fault().is_some());
        assert!(gauss_uv(30.0, -1.0, 1.0, 0, 0).0.fault().is_some(), "a failure is told each time");
    }

    #[test]
    fn no_more_are_kept_than_there_is_room_for() {
        for i in 0..20 {
            let sigma = 60.0 + f64::from(i);
            assert_eq!(gauss_2d(10.0, sigma, 1.0, 0, 0), gauss_2d(10.0, sigma, 1.0, 0, 0));
        }
        assert_eq!(gauss_2d(10.0, 60.0, 1.0, 0, 0).taps().len(), 361 * 361);
    }
}
