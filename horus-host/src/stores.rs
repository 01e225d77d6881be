//! Copies that bypass the caches.

/// Store instructions of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stores {
    /// Ordinary stores: the target's lines are read into a cache and written there. For data that is soon read again.
    Cached,
    /// Non-temporal stores: the target's lines are not read first, which saves a third of the traffic of a large copy.
    /// For memory larger than the caches. Processors without such stores use ordinary ones.
    Streamed,
}

/// Copies `bytes` bytes.
///
/// # Safety
/// As [`std::ptr::copy_nonoverlapping`].
pub(super) unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize, stores: Stores) {
    match stores {
        // SAFETY: promised by the caller.
        Stores::Streamed => unsafe { streamed(from, to, bytes) },
        // SAFETY: promised by the caller.
        Stores::Cached => unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) },
    }
}

#[cfg(target_arch = "x86_64")]
unsafe fn streamed(from: *const u8, to: *mut u8, bytes: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    /// A cache line, stored in whole words: full lines leave the processor at once.
    const LINE: usize = 64;
    const WORDS: usize = LINE / size_of::<__m128i>();
    let head = to.align_offset(LINE).min(bytes);
    let lines = (bytes - head) / LINE;
    let tail = head + lines * LINE;
    // SAFETY: the caller's promise, for parts of both ranges; every processor of this kind has SSE2. Lines are aligned
    // in the target. These stores are weakly ordered, so the fence precedes any notification that the bytes have
    // arrived.
    unsafe {
        std::ptr::copy_nonoverlapping(from, to, head);
        let (source, target): (*const __m128i, *mut __m128i) = (from.add(head).cast(), to.add(head).cast());
        for line in 0..lines {
            let words: [__m128i; WORDS] = std::array::from_fn(|i| _mm_loadu_si128(source.add(line * WORDS + i)));
            words.into_iter().enumerate().for_each(|(i, word)| _mm_stream_si128(target.add(line * WORDS + i), word));
        }
        std::ptr::copy_nonoverlapping(from.add(tail), to.add(tail), bytes - tail);
        _mm_sfence();
    }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn streamed(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: promised by the caller.
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_are_copied_and_no_others() {
        let from: Vec<u8> = (0..1000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for stores in [Stores::Cached, Stores::Streamed] {
            for (at, to, bytes) in
                [(0, 0, 0), (3, 5, 1), (1, 2, 63), (0, 7, 64), (9, 1, 129), (0, 64, 900), (5, 0, 995)]
            {
                let mut got = vec![0xaa; 1000];
                // SAFETY: both ranges lie in their vectors.
                unsafe { copy(from.as_ptr().add(at), got.as_mut_ptr().add(to), bytes, stores) };
                let mut want = vec![0xaa; 1000];
                want[to..to + bytes].copy_from_slice(&from[at..at + bytes]);
                assert!(got == want, "{stores:?}, {bytes} bytes from {at} to {to}");
            }
        }
    }
}
