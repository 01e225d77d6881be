//! Loops over the threads that compute a launch ([`share`]).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use horus_host::workers::share;

/// Calls `run` with every item. Items are independent: their order is undefined.
pub(crate) fn for_each<Item: Send>(threads: usize, items: Vec<Item>, run: impl Fn(Item) + Sync) {
    let items: Vec<Mutex<Option<Item>>> = items.into_iter().map(|item| Mutex::new(Some(item))).collect();
    share(threads, items.len(), &|k| {
        let item = items[k].lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(item) = item {
            run(item);
        }
    });
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

/// Calls `run` with `0..count` and a state of the thread, made by `new`. Returns the states.
pub(crate) fn fold<S: Send>(
    threads: usize,
    count: usize,
    new: impl Fn() -> S + Sync,
    run: impl Fn(&mut S, usize) + Sync,
) -> Vec<S> {
    let (next, states) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let threads = threads.clamp(1, count.max(1));
    share(threads, threads, &|_| {
        let mut state = None;
        loop {
            let k = next.fetch_add(1, Ordering::Relaxed);
            if k >= count {
                break;
            }
            run(state.get_or_insert_with(&new), k);
        }
        states.lock().unwrap_or_else(PoisonError::into_inner).extend(state);
    });
    states.into_inner().unwrap_or_else(PoisonError::into_inner)
}
