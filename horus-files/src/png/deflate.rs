//! A deflater for filtered rows of pictures: Huffman codes fitted to the data, and runs of zeros. A search for repeated
//! strings would take ten times as long and save a few percent.
//!
//! Similar to the crate `fdeflate`, but its blocks can be joined, it is faster, and its codes are fitted to the data
//! (`fdeflate` has one set for all pictures).

mod codes;

use codes::{Code, DeflateBitWriter, DeflateCodes, LIMIT};

/// Literals, the end of the block, and lengths.
const SYMBOLS: usize = 286;
const END: usize = 256;
/// The first symbol of a length.
const LENGTHS: usize = 257;
const LONGEST_RUN: usize = 258;
const SHORTEST_RUN: usize = 3;
/// In longer data, one chunk of `SAMPLE` bytes in `SAMPLED` is counted.
const SAMPLE: usize = 512;
const SAMPLED: usize = 4;
/// Runs are searched if at least one in this many bytes is a repeated zero. For rarer runs, the processor mispredicts
/// their ends, and a literal zero has a short code.
const WORTH_RUNS: usize = 6;

/// Appends blocks of deflated `data`, none of them final, up to a byte boundary. `scratch` is a reusable buffer.
pub(super) fn deflate(data: &[u8], scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
    if data.is_empty() {
        return;
    }
    let counts = SymbolCounts::of(data);
    let codes = DeflateCodes::new(&counts.symbols);
    // Decoding would take time and save little.
    if counts.bits(&codes) / 8 * data.len() as u64 >= (data.len() - data.len() / 64) as u64 * counts.bytes {
        return store(data, out);
    }
    const HEAD: usize = 512;
    let room = HEAD + data.len().div_ceil(8) * LIMIT + data.len() / 8;
    if scratch.len() < room {
        scratch.resize(room, 0);
    }
    let mut bits = DeflateBitWriter::new(scratch);
    codes.describe(&mut bits);
    let mut bits = if counts.runs { with_runs(data, &codes, bits) } else { literally(data, &codes, bits) };
    bits.put(codes.literals[END]);
    // An empty stored block begins on a byte boundary.
    bits.put_bits(0, 3);
    let end = bits.finish();
    if end >= data.len() {
        return store(data, out);
    }
    out.extend_from_slice(&scratch[..end]);
    out.extend_from_slice(&[0, 0, 0xff, 0xff]);
}

/// Appends stored blocks of the data.
fn store(data: &[u8], out: &mut Vec<u8>) {
    for block in data.chunks(usize::from(u16::MAX)) {
        let length = block.len() as u16;
        out.push(0);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&(!length).to_le_bytes());
        out.extend_from_slice(block);
    }
}

/// Consumer of literals and runs of zeros.
trait Tokens {
    fn eight(&mut self, bytes: [u8; 8]);
    fn literal(&mut self, byte: u8);
    /// A zero, and `times` runs of [`LONGEST_RUN`] more.
    fn long_runs(&mut self, times: usize);
    fn run(&mut self, length: usize);
}

/// Cuts data into literals and runs. Only eight zeros at once begin a run: a decision for each byte costs more than it
/// saves.
#[inline(always)]
fn tokens(data: &[u8], to: &mut impl Tokens) {
    let (chunks, rest) = data.as_chunks::<8>();
    let mut i = 0;
    while let Some(chunk) = chunks.get(i) {
        i += 1;
        let word = u64::from_le_bytes(*chunk);
        if word != 0 {
            to.eight(*chunk);
            continue;
        }
        let mut run = 8;
        while chunks
            .get(i..i + 8)
            .is_some_and(|many| many.iter().fold(0, |all, chunk| all | u64::from_le_bytes(*chunk)) == 0)
        {
            run += 64;
            i += 8;
        }
        while chunks.get(i).is_some_and(|chunk| u64::from_le_bytes(*chunk) == 0) {
            run += 8;
            i += 1;
        }
        let ending = chunks.get(i).map_or(0, |chunk| u64::from_le_bytes(*chunk).trailing_zeros() as usize / 8);
        zeros(run + ending, to);
        if let Some(chunk) = chunks.get(i) {
            for byte in &chunk[ending..] {
                to.literal(*byte);
            }
            i += 1;
        }
    }
    for byte in rest {
        to.literal(*byte);
    }
}

// The bit writer is passed by value: otherwise it does not stay in registers.

fn with_runs<'a>(data: &[u8], codes: &DeflateCodes, bits: DeflateBitWriter<'a>) -> DeflateBitWriter<'a> {
    let mut writer = DeflateWriter { bits, codes };
    tokens(data, &mut writer);
    writer.bits
}

/// Encodes all data as literals, without decisions.
fn literally<'a>(data: &[u8], codes: &DeflateCodes, bits: DeflateBitWriter<'a>) -> DeflateBitWriter<'a> {
    let mut writer = DeflateWriter { bits, codes };
    let (chunks, rest) = data.as_chunks::<8>();
    for chunk in chunks {
        writer.eight(*chunk);
    }
    rest.iter().for_each(|byte| writer.literal(*byte));
    writer.bits
}

#[inline(always)]
fn zeros(count: usize, to: &mut impl Tokens) {
    let (times, rest) = ((count - 1) / LONGEST_RUN, (count - 1) % LONGEST_RUN);
    to.literal(0);
    to.long_runs(times);
    if rest >= SHORTEST_RUN {
        to.run(rest);
    } else {
        for _ in 0..rest {
            to.literal(0);
        }
    }
}

/// The symbol and the extra bits of each length.
const RUNS: [(u16, u8, u8); LONGEST_RUN + 1] = {
    let mut runs = [(0, 0, 0); LONGEST_RUN + 1];
    let mut length = SHORTEST_RUN;
    while length < LONGEST_RUN {
        let from = (length - SHORTEST_RUN) as u16;
        runs[length] = if from < 8 {
            (LENGTHS as u16 + from, 0, 0)
        } else {
            // Four symbols for each power of two.
            let extra = from.ilog2() as u16 - 2;
            (LENGTHS as u16 + 4 * extra + (from >> extra), (from & ((1 << extra) - 1)) as u8, extra as u8)
        };
        length += 1;
    }
    runs[LONGEST_RUN] = (SYMBOLS as u16 - 1, 0, 0);
    runs
};

/// Frequencies of symbols.
struct SymbolCounts {
    symbols: [u32; SYMBOLS],
    /// Number of counted bytes.
    bytes: u64,
    /// Runs are searched.
    runs: bool,
}

/// Counts literals in four tables, so that an increment does not wait for the previous one.
struct Counter {
    literals: [[u32; 256]; 4],
    lengths: [u32; SYMBOLS],
    /// Bytes encoded as lengths.
    repeated: usize,
    bytes: usize,
}

impl Tokens for Counter {
    #[inline(always)]
    fn eight(&mut self, bytes: [u8; 8]) {
        for (i, byte) in bytes.into_iter().enumerate() {
            self.literals[i % 4][usize::from(byte)] += 1;
        }
    }
    #[inline(always)]
    fn literal(&mut self, byte: u8) {
        self.literals[0][usize::from(byte)] += 1;
    }
    #[inline(always)]
    fn long_runs(&mut self, times: usize) {
        self.lengths[SYMBOLS - 1] += times as u32;
        self.repeated += times * LONGEST_RUN;
    }
    #[inline(always)]
    fn run(&mut self, length: usize) {
        self.lengths[usize::from(RUNS[length].0)] += 1;
        self.repeated += length;
    }
}

impl SymbolCounts {
    fn of(data: &[u8]) -> SymbolCounts {
        if data.len() < 2 * SAMPLE * SAMPLED {
            return Counter::over([data]).counts();
        }
        let counter = Counter::over(data.chunks(SAMPLE * SAMPLED).map(|chunk| &chunk[..chunk.len().min(SAMPLE)]));
        let mut counts = counter.counts();
        // Long runs are counted fast, and have few symbols.
        if counter.repeated as u64 > counts.bytes / 8 * 7 {
            return Counter::over([data]).counts();
        }
        // Every symbol may occur.
        let may = if counts.runs { SYMBOLS } else { END };
        counts.symbols[..may].iter_mut().for_each(|count| *count = *count * SAMPLED as u32 + 1);
        counts.symbols[END] = 1;
        counts.bytes *= SAMPLED as u64;
        counts
    }

    /// Encoded bits of the counted symbols.
    fn bits(&self, codes: &DeflateCodes) -> u64 {
        let bits = |(count, code): (&u32, &Code)| u64::from(*count) * u64::from(code.bits);
        self.symbols.iter().zip(&codes.literals).map(bits).sum()
    }
}

impl Counter {
    fn over<'a>(data: impl IntoIterator<Item = &'a [u8]>) -> Counter {
        let mut counter = Counter { literals: [[0; 256]; 4], lengths: [0; SYMBOLS], repeated: 0, bytes: 0 };
        for part in data {
            counter.bytes += part.len();
            tokens(part, &mut counter);
        }
        counter
    }

    fn counts(&self) -> SymbolCounts {
        let runs = self.repeated > self.bytes / WORTH_RUNS;
        let literals = |s: usize| self.literals.iter().map(|counts| counts[s]).sum();
        let mut symbols = std::array::from_fn(|s| match s {
            0..END => literals(s),
            END => 1,
            _ if runs => self.lengths[s],
            _ => 0,
        });
        if !runs {
            symbols[0] += self.repeated as u32;
        }
        SymbolCounts { symbols, bytes: self.bytes as u64, runs }
    }
}

struct DeflateWriter<'a, 'b> {
    bits: DeflateBitWriter<'b>,
    codes: &'a DeflateCodes,
}

impl Tokens for DeflateWriter<'_, '_> {
    #[inline(always)]
    fn eight(&mut self, bytes: [u8; 8]) {
        for four in bytes.as_chunks::<4>().0 {
            let [a, b, c, d] = four.map(|byte| self.codes.literals[usize::from(byte)]);
            let two = |a: Code, b: Code| {
                (u64::from(a.code) | u64::from(b.code) << a.bits, u32::from(a.bits) + u32::from(b.bits))
            };
            let ((ab, ab_bits), (cd, cd_bits)) = (two(a, b), two(c, d));
            self.bits.put_bits(ab | cd << ab_bits, ab_bits + cd_bits);
        }
    }
    #[inline(always)]
    fn literal(&mut self, byte: u8) {
        self.bits.put(self.codes.literals[usize::from(byte)]);
    }
    #[inline(always)]
    fn long_runs(&mut self, times: usize) {
        let Code { code, bits } = self.codes.literals[SYMBOLS - 1];
        // The code of the distance is a zero bit.
        for _ in 0..times {
            self.bits.put_bits(u64::from(code), u32::from(bits) + 1);
        }
    }
    #[inline(always)]
    fn run(&mut self, length: usize) {
        let (symbol, rest, extra) = RUNS[length];
        let Code { code, bits } = self.codes.literals[usize::from(symbol)];
        let bits = u32::from(bits);
        self.bits.put_bits(u64::from(code) | u64::from(rest) << bits, bits + u32::from(extra) + 1);
    }
}
