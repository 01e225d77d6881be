//! A deflater for filtered rows of pictures: Huffman codes made for the data, and runs of zeros. What else deflate could
//! find in them, repeated strings, costs ten times the time and saves a few percent.
//!
//! As the `fdeflate` crate, but the codes follow the data (it has one set for all pictures), blocks can be joined, and it
//! takes less time.

/// Literals, the end of the block, and lengths.
const SYMBOLS: usize = 286;
const END: usize = 256;
/// The first symbol of a length.
const LENGTHS: usize = 257;
const LONGEST_RUN: usize = 258;
const SHORTEST_RUN: usize = 3;
/// Bits of a code at most: four of them, behind less than a byte, fit 64 bits.
const LIMIT: usize = 14;
/// Of longer data, one chunk of `SAMPLE` bytes in `SAMPLED` is counted.
const SAMPLE: usize = 512;
const SAMPLED: usize = 4;
/// Where less than one byte in so many repeats a zero, runs are not looked for: the processor guesses wrongly where they
/// begin and end, and a literal zero has a short code.
const WORTH_RUNS: usize = 6;

/// Appends blocks of deflated `data`, none of them the last, up to a byte's end. `scratch` is memory to be used again.
pub(super) fn deflate(data: &[u8], scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
    if data.is_empty() {
        return;
    }
    let counts = Counts::of(data);
    let codes = Codes::new(&counts.symbols);
    // Not worth the time of who reads it.
    if counts.bits(&codes) / 8 * data.len() as u64 >= (data.len() - data.len() / 64) as u64 * counts.bytes {
        return store(data, out);
    }
    const HEAD: usize = 512;
    let room = HEAD + data.len().div_ceil(8) * LIMIT + data.len() / 8;
    if scratch.len() < room {
        scratch.resize(room, 0);
    }
    let mut bits = Bits { pending: 0, count: 0, at: 0, to: scratch };
    codes.describe(&mut bits);
    let mut bits = if counts.runs { with_runs(data, &codes, bits) } else { literally(data, &codes, bits) };
    bits.put(codes.literals[END]);
    // An empty block of stored bytes begins on a byte.
    bits.put_bits(0, 3);
    let end = bits.finish();
    if end >= data.len() {
        return store(data, out);
    }
    out.extend_from_slice(&scratch[..end]);
    out.extend_from_slice(&[0, 0, 0xff, 0xff]);
}

/// Appends blocks of the data as they are.
fn store(data: &[u8], out: &mut Vec<u8>) {
    for block in data.chunks(usize::from(u16::MAX)) {
        let length = block.len() as u16;
        out.push(0);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&(!length).to_le_bytes());
        out.extend_from_slice(block);
    }
}

/// What is done with literals and runs of zeros.
trait Tokens {
    fn eight(&mut self, bytes: [u8; 8]);
    fn literal(&mut self, byte: u8);
    /// A zero, and `times` runs of [`LONGEST_RUN`] more.
    fn long_runs(&mut self, times: usize);
    fn run(&mut self, length: usize);
}

/// Cuts data into literals and runs. Only eight zeros at once begin a run: what is decided for each byte costs more than
/// it saves.
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

// The writer of bits goes in and out by value: only so is it kept in registers.

fn with_runs<'a>(data: &[u8], codes: &Codes, bits: Bits<'a>) -> Bits<'a> {
    let mut writer = Writer { bits, codes };
    tokens(data, &mut writer);
    writer.bits
}

/// All data as literals, without a decision.
fn literally<'a>(data: &[u8], codes: &Codes, bits: Bits<'a>) -> Bits<'a> {
    let mut writer = Writer { bits, codes };
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

/// The symbol of each length, and the bits that follow it.
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

/// How often symbols occur.
struct Counts {
    symbols: [u32; SYMBOLS],
    /// Of so many bytes.
    bytes: u64,
    /// Whether runs are looked for.
    runs: bool,
}

/// Counts literals in four tables: what has just been counted is not waited for.
struct Counter {
    literals: [[u32; 256]; 4],
    lengths: [u32; SYMBOLS],
    /// Bytes that lengths stand for.
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

impl Counts {
    fn of(data: &[u8]) -> Counts {
        if data.len() < 2 * SAMPLE * SAMPLED {
            return Counter::over([data]).counts();
        }
        let counter = Counter::over(data.chunks(SAMPLE * SAMPLED).map(|chunk| &chunk[..chunk.len().min(SAMPLE)]));
        let mut counts = counter.counts();
        // Long runs are counted fast, and need codes for few symbols.
        if counter.repeated as u64 > counts.bytes / 8 * 7 {
            return Counter::over([data]).counts();
        }
        // All may occur.
        let may = if counts.runs { SYMBOLS } else { END };
        counts.symbols[..may].iter_mut().for_each(|count| *count = *count * SAMPLED as u32 + 1);
        counts.symbols[END] = 1;
        counts.bytes *= SAMPLED as u64;
        counts
    }

    /// Bits that the counted symbols take.
    fn bits(&self, codes: &Codes) -> u64 {
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

    fn counts(&self) -> Counts {
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
        Counts { symbols, bytes: self.bytes as u64, runs }
    }
}

/// A code, its first bit lowest.
#[derive(Clone, Copy, Default)]
struct Code {
    code: u16,
    bits: u16,
}

struct Codes {
    literals: [Code; SYMBOLS],
}

impl Codes {
    fn new(counts: &[u32; SYMBOLS]) -> Codes {
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
        Codes { literals }
    }

    /// The head of the block: lengths of codes, in codes of their own, which are always the same.
    fn describe(&self, to: &mut Bits<'_>) {
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
        // Of the distances only the first is used; a set of one code is not every decoder's.
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

/// Lengths of a Huffman code, none above [`LIMIT`] nor, of a symbol that occurs, 0. At least two symbols occur.
fn code_lengths(counts: &[u32; SYMBOLS]) -> [u8; SYMBOLS] {
    // By falling counts, so that the rest follows from how many codes each length has.
    let mut used: Vec<(u32, u16)> = (0..).zip(counts).filter(|(_, n)| **n > 0).map(|(s, n)| (*n, s)).collect();
    used.sort_unstable();
    let n = used.len();
    // The lightest two trees become one, until one is left. Trees are made by rising weights: two queues are enough.
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
    // Codes that were cut take room of others: a shorter one grows by a bit and leaves half of its room to one of them.
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

/// Bits on their way to bytes, the lowest first.
struct Bits<'a> {
    pending: u64,
    count: u32,
    at: usize,
    to: &'a mut [u8],
}

impl Bits<'_> {
    /// Whole bytes leave; less than one stays.
    #[inline(always)]
    fn flush(&mut self) {
        self.to[self.at..self.at + 8].copy_from_slice(&self.pending.to_le_bytes());
        self.at += (self.count / 8) as usize;
        self.pending >>= self.count & !7;
        self.count &= 7;
    }

    /// At most 56 bits.
    #[inline(always)]
    fn put_bits(&mut self, bits: u64, count: u32) {
        self.pending |= bits << self.count;
        self.count += count;
        self.flush();
    }

    #[inline(always)]
    fn put(&mut self, code: Code) {
        self.put_bits(u64::from(code.code), u32::from(code.bits));
    }

    /// How many bytes there are, the last one filled up.
    fn finish(self) -> usize {
        self.at + usize::from(self.count > 0)
    }
}

struct Writer<'a, 'b> {
    bits: Bits<'b>,
    codes: &'a Codes,
}

impl Tokens for Writer<'_, '_> {
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
        // The distance's code is a zero.
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
