//! Large pages for large memory.

/// Minimum size of a block that gains from large pages: two of them.
const LARGE: usize = 4 << 20;
/// Alignment of the call's addresses, on every processor.
#[cfg(target_os = "linux")]
const PAGE: usize = 64 << 10;

/// Configures the process's allocator to return freed blocks of a MiB and more to the system. By default glibc, once a
/// block of up to 32 MiB was freed, allocates such blocks in a heap with gaps, which use memory that is not counted.
pub(crate) fn return_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        const LARGE: libc::c_int = 1 << 20;
        // SAFETY: sets two numbers under the allocator's lock; blocks in use do not change.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
            libc::mallopt(libc::M_TRIM_THRESHOLD, LARGE);
        }
    }
}

/// Requests large pages for a block that has not been written yet. A page fault for every 2 MiB instead of every 4 KiB
/// makes the first write to an image three times faster. Systems without this request ignore it.
pub(crate) fn prefer_large(memory: *const u8, bytes: usize) {
    if bytes < LARGE {
        return;
    }
    #[cfg(target_os = "linux")]
    {
        let skipped = memory.align_offset(PAGE);
        let whole = bytes.saturating_sub(skipped) / PAGE * PAGE;
        // SAFETY: the advice changes neither contents nor validity of any memory; an unmapped range
        // is refused. A refusal costs speed only.
        unsafe { libc::madvise(memory.wrapping_add(skipped).cast_mut().cast(), whole, libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}
