//! Upper limits of the pixels in a file of a given size. A file that declares more is corrupt, or made to exhaust
//! memory.

use super::OpenOptions;
use horus_base::error::Audience;

/// Maximum bytes of a file, and of its decoded pixels: enough for large scans, and a limit on claims of headers.
pub(super) const MEMORY_LIMIT: u64 = 8 << 30;

/// Maximum bytes that a byte of deflated data encodes: two bits, the shortest codes of a length and a distance, repeat
/// 258 bytes.
pub(super) const DEFLATE: u64 = 1032;

/// Rejects pictures larger than the user allows.
pub(super) fn check_size(height: u64, width: u64, options: &OpenOptions) -> Result<(), String> {
    let most = options.max_pixels;
    if height.checked_mul(width).is_none_or(|pixels| pixels > most) {
        let limit = Audience::now().select_wording("OpenOptions::max_pixels", "--max-pixels", "max_pixels=");
        return Err(format!("{width}x{height} pixels exceed the limit of {most} ({limit})"));
    }
    Ok(())
}

/// Rejects files that declare more pixels than their bytes can encode: `most`, or `None` for no limit.
pub(super) fn check_capacity(height: u64, width: u64, most: Option<u64>, size: u64) -> Result<(), String> {
    let claimed = height.checked_mul(width);
    if most.is_some_and(|most| claimed.is_none_or(|pixels| pixels > most)) {
        return Err(format!("the file declares {width}x{height} pixels, more than its {size} bytes can hold"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_compared_without_overflow() {
        let options = OpenOptions { max_pixels: 100, ..OpenOptions::default() };
        assert!(check_size(10, 10, &options).is_ok());
        assert!(check_size(10, 11, &options).unwrap_err().contains("11x10 pixels exceed the limit of 100"));
        assert!(check_size(u64::MAX, 2, &options).is_err());
        assert!(check_capacity(u64::MAX, 2, Some(u64::MAX), 0).is_err());
        assert!(check_capacity(u64::MAX, 2, None, 0).is_ok());
    }
}
