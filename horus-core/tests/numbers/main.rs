//! Functions of `f32` on every instruction set, and a fixed corpus of programs, against hashes that are kept: a change of bits is
//! seen, and told in CHANGELOG.md.

mod corpus;
mod on_session;

use horus_core::cpu::device::CpuDevice;
use horus_core::cpu::simd::Isa;
use horus_core::session::Session;
use horus_testing::cases::cases;
use horus_testing::numbers::{FUNCTIONS, GOLDEN_ROWS, GoldenRow, Sample, Worst};

/// Pixels of an image of arguments, as a power of two.
const PIXELS: u32 = 20;

/// A session for each instruction set of this machine.
fn sessions() -> Vec<(Isa, Session)> {
    let session = |isa| Session::on(Box::new(CpuDevice::new(None).unwrap().with_isa(isa))).build().unwrap();
    Isa::available().into_iter().map(|isa| (isa, session(isa))).collect()
}

/// The hashes of all functions' results, the same of scalar Rust and of every instruction set, and the largest errors, within their
/// bounds.
fn examined(sample: Sample) -> Vec<(u64, Worst)> {
    let mut worst = [Worst::NONE; FUNCTIONS.len()];
    let mut found: Option<Vec<u64>> = None;
    for (isa, session) in sessions() {
        let look = |number: usize, arguments: &[(f32, f32)], results: &[f32]| {
            // Once: other instruction sets have these bits.
            if found.is_some() {
                return;
            }
            let function = &FUNCTIONS[number];
            let defined = function.of(arguments);
            let differs = |(a, b): (&f32, &f32)| a.to_bits() != b.to_bits() && !(a.is_nan() && b.is_nan());
            if let Some(i) = defined.iter().zip(results).position(differs) {
                let (at, name) = (arguments[i], function.name);
                panic!("{name} of {at:?} is {:e} with {isa:?}, {:e} in scalar Rust", results[i], defined[i]);
            }
            worst[number] = worst[number].or(function.worst(arguments, results));
        };
        let hashes = on_session::hashes(&session, sample, PIXELS, look).unwrap();
        let first = found.get_or_insert_with(|| hashes.clone());
        assert_eq!(hashes, *first, "bits with {isa:?} differ from those with {:?}", Isa::available()[0]);
    }
    for (function, Worst { ulp, at }) in FUNCTIONS.iter().zip(worst) {
        let (name, bound) = (function.name, function.bound);
        assert!(ulp <= bound, "{name} of {at:?} is {ulp} ulp beside the exact result; the bound is {bound}");
    }
    found.expect("an instruction set").into_iter().zip(worst).collect()
}

/// Compares the hashes of a sample with those kept.
fn unchanged(sample: Sample) {
    for (function, (hash, _)) in FUNCTIONS.iter().zip(examined(sample)) {
        let kept = GoldenRow::find(function).hashes[sample as usize];
        assert_eq!(format!("{hash:016x}"), format!("{kept:016x}"), "bits of {} changed", function.name);
    }
}

/// 2^20 arguments of each, or as many as `HORUS_CASES` says: 2^24 (`scripts/aarch64.sh` runs them emulated), or all.
#[test]
fn functions_have_the_bits_that_are_kept() {
    match cases(0) {
        u32::MAX => all_arguments(),
        0..0x100_0000 => unchanged(Sample::Quick),
        _ => unchanged(Sample::Part),
    }
}

/// Every `f32`, and 2^26 pairs: prints the rows of `tests/goldens/numbers.txt`.
fn all_arguments() {
    let samples = Sample::ALL.map(examined);
    let mut changed = Vec::new();
    for (i, function) in FUNCTIONS.iter().enumerate() {
        let hashes = [0, 1, 2].map(|s| samples[s][i].0);
        let row =
            GoldenRow { name: function.name.to_owned(), worst: GoldenRow::text(function, samples[0][i].1), hashes };
        println!("{row}");
        if row != GoldenRow::find(function) {
            changed.push(row.name);
        }
    }
    assert!(changed.is_empty(), "rows of {changed:?} are not those kept");
}

#[test]
fn the_corpus_has_the_bits_that_are_kept() {
    for (isa, session) in sessions() {
        let rows = corpus::rows(&session).unwrap();
        if let Err(changed) = corpus::compared(&rows) {
            panic!("with {isa:?}: {changed}\nThe rows of tests/goldens/corpus.txt:\n{}", rows.join("\n"));
        }
    }
}

#[test]
fn the_page_shows_the_table() {
    let page = include_str!("../../../docs/book/src/promises.md");
    for line in GOLDEN_ROWS.lines() {
        assert!(page.lines().any(|l| l == line), "docs/book/src/promises.md lacks the line {line}");
    }
}
