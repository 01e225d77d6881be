//! Hashes that are the same in all processes.

use std::hash::Hasher;

/// A hash (FNV-1a over words) that is the same in every process.
#[derive(Clone, Copy, Debug)]
pub struct Digest(u64);

impl Default for Digest {
    /// The digest of no data.
    fn default() -> Digest {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// Hashes bytes in four chains, which a processor computes in parallel.
    pub fn of(bytes: &[u8]) -> u64 {
        let mut chains = [Digest::default(); 4];
        let (blocks, rest) = bytes.as_chunks::<32>();
        for block in blocks {
            for (chain, word) in chains.iter_mut().zip(block.as_chunks::<8>().0) {
                chain.word(u64::from_le_bytes(*word));
            }
        }
        let mut all = Digest::default();
        all.word(bytes.len() as u64);
        chains.iter().for_each(|chain| all.word(chain.0));
        all.write(rest);
        all.0
    }

    /// Adds a word to the hash.
    #[inline]
    pub fn word(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        self.0 ^= self.0 >> 32; // words are wider than FNV's bytes: mixes upper halves into lower ones
    }
}

impl Hasher for Digest {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }

    // A number is hashed as one word, not byte by byte.
    #[inline]
    fn write_u8(&mut self, word: u8) {
        self.word(u64::from(word));
    }

    #[inline]
    fn write_u32(&mut self, word: u32) {
        self.word(u64::from(word));
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.word(word);
    }

    #[inline]
    fn write_usize(&mut self, word: usize) {
        self.word(word as u64);
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|w| self.word(u64::from_le_bytes(*w)));
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            self.word(u64::from_le_bytes(last));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::hash::Hash;

    use super::*;

    #[test]
    fn numbers_are_their_bytes() {
        let of = |hash: &dyn Fn(&mut Digest)| {
            let mut digest = Digest::default();
            hash(&mut digest);
            digest.finish()
        };
        assert_eq!(of(&|d| 7u8.hash(d)), of(&|d| d.write(&[7])));
        assert_eq!(of(&|d| (-7i32).hash(d)), of(&|d| d.write(&(-7i32).to_le_bytes())));
        assert_eq!(of(&|d| 7usize.hash(d)), of(&|d| d.write(&7u64.to_le_bytes())));
        assert_eq!(of(&|d| (-7i64).hash(d)), of(&|d| d.write(&(-7i64).to_le_bytes())));
    }

    #[test]
    fn every_byte_changes_the_digest() {
        let bytes: Vec<u8> = (0..77).collect();
        for i in 0..bytes.len() {
            let mut other = bytes.clone();
            other[i] ^= 128;
            assert_ne!(Digest::of(&bytes), Digest::of(&other), "byte {i}");
            assert_ne!(Digest::of(&bytes[..i]), Digest::of(&bytes[..=i]), "length {i}");
        }
    }
}
