//! The programs under a limit of memory.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::Write;

use crate::promise::{ExpectedEnd, MemoryPromise};

#[test]
fn programs_take_no_more_memory_than_they_are_allowed() {
    const POP: &str = env!("CARGO_BIN_EXE_pop");
    const PERONA_MALIK: &str = env!("CARGO_BIN_EXE_perona_malik");
    const JACOBI: &str = env!("CARGO_BIN_EXE_jacobi");
    let promise = MemoryPromise::new(PERONA_MALIK, &[]);
    let at = |name: &str| promise.folder.path().join(name);
    // 24 MB of bytes, 96 MB of floats.
    crate::files::picture(&at("a.pgm"), (4000, 6000), 3);
    for (name, first) in [("t.npy", 20.0), ("s.npy", 35.0f64)] {
        let mut file = std::io::BufWriter::new(fs::File::create(at(name)).unwrap());
        let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (4, 500, 1000), }";
        file.write_all(b"\x93NUMPY\x01\0").unwrap();
        file.write_all(&118u16.to_le_bytes()).unwrap();
        writeln!(file, "{header:117}").unwrap();
        (0..4 * 500 * 1000).for_each(|i| file.write_all(&(first - f64::from(i) * 1e-6).to_le_bytes()).unwrap());
    }
    let pop = ["state", "t.npy", "s.npy", "--depths", "5,15,25,35", "--out-dir", "."];
    for row in [
        (POP, "24M", &pop[..], None, ExpectedEnd::Done),
        (PERONA_MALIK, "48M", &["a.pgm", "o.tif", "--steps", "3"][..], None, ExpectedEnd::Done),
        (PERONA_MALIK, "400M", &["a.pgm", "o.tif", "--steps", "3"][..], None, ExpectedEnd::Done),
        (JACOBI, "24M", &["--size", "4000", "--steps", "3", "--out", "o.npy"][..], None, ExpectedEnd::Done),
        (JACOBI, "400M", &["--size", "4000", "--steps", "3", "--out", "o.npy"][..], None, ExpectedEnd::Done),
    ] {
        promise.check(row);
    }
}
