//! Loops over the threads of the pool. They are compiled once, not for each kernel: instantiated for each,
//! rayon's functions were a seventh of this crate's code.

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

/// Calls `run` with every item, on the threads of the pool that the caller is in; for one thread or one item on the
/// calling thread. Items are independent: their order is undefined.
pub(crate) fn for_each<Item: Send>(threads: usize, items: Vec<Item>, run: impl Fn(Item) + Sync) {
    if threads <= 1 || items.len() <= 1 {
        return items.into_iter().for_each(run);
    }
    let items: Vec<Mutex<Option<Item>>> = items.into_iter().map(|item| Mutex::new(Some(item))).collect();
    for_each_index(items.len(), &|k| {
        let item = items[k].lock().unwrap_or_else(PoisonError::into_inner).take();
        item.into_iter().for_each(&run);
    });
}

fn for_each_index(count: usize, run: &(dyn Fn(usize) + Sync)) {
    (0..count).into_par_iter().with_max_len(1).for_each(run);
}
