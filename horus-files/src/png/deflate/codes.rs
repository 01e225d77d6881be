//! Huffman codes fitted to the data, and the bit writer.

use super::SYMBOLS;

/// Maximum bits of a code: four of them, after less than a byte, fit 64 bits.
pub(super) const LIMIT: usize = 14;

/// A Huffman code, its first bit lowest.
#[derive(Clone, Copy, Default)]
pub(super) struct Code {
    pub(super) code: u16,
    pub(super) bits: u16,
}

/// A code for each literal, the end of the block, and each length.
pub(super) struct DeflateCodes {
    pub(super) literals: [Code; SYMBOLS],
}

impl DeflateCodes {
    /// The shortest codes for symbols of these frequencies, at least two of which occur.
    pub(super) fn new(counts: &[u32; SYMBOLS]) -> DeflateCodes {
        let lengths = code_lengths(counts);
        let mut literals = [Code::default(); SYMBOLS];
        let mut next = 0u16;
        for bits in 1..=LIMIT as u16 {
            for (code, _) in literals.iter_mut().zip(lengths).filter(|(_, l)| u16::from(*l) == bits) {
                *code = Code { code: next.reverse_bits() >> (16 - bits), bits };
                next += 1;
            }
            next <<= 1;
        }
        DeflateCodes { literals }
    }

    /// Writes the head of the block: lengths of codes, encoded in fixed codes.
    pub(super) fn describe(&self, to: &mut DeflateBitWriter<'_>) {
        // In the order of the format; all but the last four, 16 and 17 have 4 bits.
        const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
        const BITS: [u16; 19] = [4, 5, 5, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 0, 5, 5, 4];
        const REPEAT: usize = 16;
        const ZEROS: usize = 17;
        const MANY_ZEROS: usize = 18;
        let code = |symbol: usize| {
            let before = BITS.iter().enumerate().filter(|(s, b)| **b == BITS[symbol] && *s < symbol).count() as u16;
            let fours = BITS.iter().filter(|b| **b == 4).count() as u16;
            let code = if BITS[symbol] == 4 { before } else { fours * 2 + before };
            Code { code: code.reverse_bits() >> (16 - BITS[symbol]), bits: BITS[symbol] }
        };
        to.put_bits(0b100, 3); // not the last block, codes of its own
        to.put_bits(SYMBOLS as u64 - 257, 5);
        to.put_bits(1, 5); // two distances
        to.put_bits(ORDER.len() as u64 - 4, 4);
        ORDER.iter().for_each(|symbol| to.put_bits(u64::from(BITS[*symbol]), 3));
        // Only the first distance is used, but not every decoder accepts a set of one code.
        let lengths: Vec<u16> = self.literals.iter().map(|c| c.bits).chain([1, 1]).collect();
        for same in lengths.chunk_by(|a, b| a == b) {
            let (length, mut left) = (usize::from(same[0]), same.len());
            if length > 0 {
                to.put(code(length));
                left -= 1;
            }
            while left > 0 {
                let (symbol, least, most, bits) = match length {
                    0 if left > 10 => (MANY_ZEROS, 11, 138, 7),
                    0 => (ZEROS, 3, 10, 3),
                    _ => (REPEAT, 3, 6, 2),
                };
                if left < least {
                    to.put(code(length));
                    left -= 1;
                    continue;
                }
                let times = left.min(most);
                to.put(code(symbol));
                to.put_bits((times - least) as u64, bits);
                left -= times;
            }
        }
    }
}

/// Lengths of a Huffman code, at most [`LIMIT`], positive for symbols that occur. At least two symbols occur.
fn code_lengths(counts: &[u32; SYMBOLS]) -> [u8; SYMBOLS] {
    // By falling counts, so that the number of codes of each length determines the rest.
    let mut used: Vec<(u32, u16)> = (0..).zip(counts).filter(|(_, n)| **n > 0).map(|(s, n)| (*n, s)).collect();
    used.sort_unstable();
    let n = used.len();
    // Repeatedly merges the two lightest trees. Merged trees have rising weights: two queues
    // suffice.
    let mut weights: Vec<u64> = used.iter().map(|(count, _)| u64::from(*count)).collect();
    let mut parents = vec![0; 2 * n];
    let (mut leaf, mut tree) = (0, n);
    for made in n..2 * n - 1 {
        let mut lightest = || {
            let take_leaf = leaf < n && (tree == made || weights[leaf] <= weights[tree]);
            let next = if take_leaf { &mut leaf } else { &mut tree };
            *next += 1;
            parents[*next - 1] = made;
            weights[*next - 1]
        };
        let weight = lightest() + lightest();
        weights.push(weight);
    }
    let mut depths = vec![0usize; 2 * n];
    let mut of_length = [0u32; LIMIT + 1];
    for node in (0..(2 * n).saturating_sub(2)).rev() {
        depths[node] = depths[parents[node]] + 1;
        if node < n {
            of_length[depths[node].min(LIMIT)] += 1;
        }
    }
    // Truncated codes take space from others: a shorter code grows by a bit and frees half of its space for one of
    // them.
    let mut room: u32 = (1..=LIMIT).map(|l| of_length[l] << (LIMIT - l)).sum();
    while room > 1 << LIMIT {
        let Some(shorter) = (1..LIMIT).rev().find(|l| of_length[*l] > 0) else { break };
        of_length[LIMIT] -= 1;
        of_length[shorter] -= 1;
        of_length[shorter + 1] += 2;
        room -= 1;
    }
    let mut lengths = [0; SYMBOLS];
    let all = (1..=LIMIT).flat_map(|l| std::iter::repeat_n(l as u8, of_length[l] as usize));
    all.zip(used.iter().rev()).for_each(|(length, (_, symbol))| lengths[usize::from(*symbol)] = length);
    lengths
}

/// A bit writer, lowest bits first.
pub(super) struct DeflateBitWriter<'a> {
    pending: u64,
    count: u32,
    at: usize,
    to: &'a mut [u8],
}

impl<'a> DeflateBitWriter<'a> {
    /// An empty writer. The last eight bytes of `to` are padding.
    pub(super) fn new(to: &'a mut [u8]) -> DeflateBitWriter<'a> {
        DeflateBitWriter { pending: 0, count: 0, at: 0, to }
    }

    /// Writes whole bytes; less than one byte stays.
    #[inline(always)]
    fn flush(&mut self) {
        self.to[self.at..self.at + 8].copy_from_slice(&self.pending.to_le_bytes());
        self.at += (self.count / 8) as usize;
        self.pending >>= self.count & !7;
        self.count &= 7;
    }

    /// Appends at most 56 bits.
    #[inline(always)]
    pub(super) fn put_bits(&mut self, bits: u64, count: u32) {
        self.pending |= bits << self.count;
        self.count += count;
        self.flush();
    }

    #[inline(always)]
    pub(super) fn put(&mut self, code: Code) {
        self.put_bits(u64::from(code.code), u32::from(code.bits));
    }

    /// Number of bytes, including the padded last one.
    pub(super) fn finish(self) -> usize {
        self.at + usize::from(self.count > 0)
    }
}
