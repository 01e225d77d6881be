//! Loops over the threads of the pool. They are compiled once, not for each kernel: instantiated for each,
//! rayon's functions were a seventh of this crate's code.

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

/// Calls `run` with every item, on the threads of the pool that the caller is in; for one thread or one item on the
/// calling thread. Items are independent: their order is undefined.
pub(crate) fn for_each<Item: Send>(threads: usize, items: Vec<Item>, run: impl Fn(Item) + Sync) {
    let items: Vec<Mutex<Option<Item>>> = items.into_iter().map(|item| Mutex::new(Some(item))).collect();
    for_each_index(threads, items.len(), &|k| {
        let item = items[k].lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(item) = item {
            run(item);
        }
    });
}

fn for_each_index(threads: usize, count: usize, run: &(dyn Fn(usize) + Sync)) {
    if threads <= 1 || count <= 1 {
        return (0..count).for_each(run);
    }
    (0..count).into_par_iter().with_max_len(1).for_each(run);
}
