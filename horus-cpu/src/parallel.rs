//! Loops over the threads that compute a launch ([`share`]).

use std::sync::{Mutex, PoisonError};

use horus_host::workers::share;
pub(crate) use horus_host::workers::share_items as fold;

/// Calls `run` with every item. Items are independent: their order is undefined.
pub(crate) fn for_each<Item: Send>(threads: usize, items: Vec<Item>, run: impl Fn(Item) + Sync) {
    fold(threads, items, || (), |(), item| run(item));
}

/// Calls `run` with `0..count` until one call fails.
pub(crate) fn try_for_each<E: Send>(
    threads: usize,
    count: usize,
    run: impl Fn(usize) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let failure = Mutex::new(None);
    let failed = || failure.lock().unwrap_or_else(PoisonError::into_inner);
    share(threads, count, &|k| {
        if failed().is_none()
            && let Err(error) = run(k)
        {
            failed().get_or_insert(error);
        }
    });
    failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// The results of `run` for `0..count`.
pub(crate) fn map<R: Send>(threads: usize, count: usize, run: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let results: Vec<Mutex<Option<R>>> = (0..count).map(|_| Mutex::new(None)).collect();
    share(threads, count, &|k| {
        let result = run(k);
        *results[k].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
    });
    results.into_iter().filter_map(|result| result.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}
