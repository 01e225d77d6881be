//! The one parameter of a generated kernel: a C struct, declared in the source and filled in bytes.

use std::fmt::Write as _;

use horus_core::dtype::{DType, Scalar};

use super::Pointer;
use super::cpp::{Expr, name};

/// Most bytes of taps in the parameters; further taps go to the table. Every driver allows 4 KiB of
/// kernel parameters.
const TAP_BYTES: usize = 3200;

/// Builds the struct member by member, with the layout of a C compiler.
#[derive(Debug, Default)]
pub(super) struct KernelParams {
    declaration: String,
    bytes: Vec<u8>,
    pointers: Vec<(usize, Pointer)>,
    taps: usize,
    constants: usize,
    /// Integers that several leaves share: their values and member.
    shared: Vec<([i32; 5], String)>,
}

impl KernelParams {
    fn put(&mut self, ctype: &str, name: &str, align: usize, bytes: &[u8]) -> usize {
        self.bytes.resize(self.bytes.len().next_multiple_of(align), 0);
        let at = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        let _ = match bytes.len() / align {
            1 => writeln!(self.declaration, "    {ctype} {name};"),
            n => writeln!(self.declaration, "    {ctype} {name}[{n}];"),
        };
        at
    }

    /// Reserves bytes of the parameters, which leaves fewer for taps.
    pub(super) fn reserve(&mut self, bytes: usize) {
        self.taps += bytes;
    }

    /// A pointer that the device fills in.
    pub(super) fn pointer(&mut self, ctype: &str, name: &str, what: Pointer) {
        let at = self.put(&format!("{ctype}*"), name, 8, &[0; 8]);
        self.pointers.push((at, what));
    }

    pub(super) fn int(&mut self, name: &str, v: isize) {
        // Extents beyond 2^31 are errors before any code is generated.
        self.put("int", name, 4, &(v as i32).to_ne_bytes());
    }

    pub(super) fn long(&mut self, name: &str, v: i64) {
        self.put("i64", name, 8, &v.to_ne_bytes());
    }

    /// Numbers as an array.
    pub(super) fn doubles(&mut self, member: &str, values: &[f64]) {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_ne_bytes()).collect();
        self.put("f64", member, 8, &bytes);
    }

    fn scalar(&mut self, name: &str, s: Scalar) {
        let mut bytes = Vec::new();
        push_scalar(&mut bytes, s);
        self.put(s.dtype().name(), name, s.dtype().size(), &bytes);
    }

    /// A constant, converted to `dtype`; the expression that reads it.
    pub(super) fn constant(&mut self, s: Scalar, dtype: DType) -> Expr {
        let member = format!("k{}", self.constants);
        self.constants += 1;
        self.scalar(&member, if s.dtype() == dtype { s } else { Scalar::from_f64(dtype, s.to_f64()) });
        name(format_args!("p.{member}"))
    }

    /// Constants, converted to `dtype`; the expression that reads element `k`.
    pub(super) fn constants(&mut self, all: &[Scalar], dtype: DType) -> Expr {
        let bits = |s: &Scalar| {
            let mut bytes = Vec::new();
            push_scalar(&mut bytes, if s.dtype() == dtype { *s } else { Scalar::from_f64(dtype, s.to_f64()) });
            bytes
        };
        if all.iter().all(|s| bits(s) == bits(&all[0])) {
            return self.constant(all[0], dtype);
        }
        let member = format!("k{}", self.constants);
        self.constants += 1;
        let bytes: Vec<u8> = all.iter().flat_map(bits).collect();
        self.put(dtype.name(), &member, dtype.size(), &bytes);
        name(format_args!("p.{member}[k]"))
    }

    /// Integers as an array, shared by all requests for the same values; the expression of the array.
    pub(super) fn shared_ints(&mut self, prefix: &str, values: [i32; 5]) -> Expr {
        let known = self.shared.iter().find(|(v, _)| *v == values).map(|(_, member)| member.clone());
        let member = known.unwrap_or_else(|| {
            let member = format!("{prefix}{}", self.shared.len());
            self.ints(&member, &values);
            self.shared.push((values, member.clone()));
            member
        });
        name(format_args!("p.{member}"))
    }

    /// Integers as an array.
    pub(super) fn ints(&mut self, member: &str, values: &[i32]) {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_ne_bytes()).collect();
        self.put("int", member, 4, &bytes);
    }

    /// Taps as an array, if they fit; the expression of a pointer to them.
    pub(super) fn taps(&mut self, dtype: DType, taps: &[f64]) -> Option<Expr> {
        let size = taps.len() * dtype.size();
        if self.taps + size > TAP_BYTES {
            return None;
        }
        let member = format!("t{}", self.taps);
        self.taps += size;
        let mut bytes = Vec::with_capacity(size);
        taps.iter().for_each(|&t| push_scalar(&mut bytes, Scalar::from_f64(dtype, t)));
        self.put(dtype.name(), &member, dtype.size(), &bytes);
        Some(name(if taps.len() == 1 { format!("&p.{member}") } else { format!("p.{member}") }))
    }

    /// The declaration, the bytes and the offsets of the pointers.
    pub(super) fn finish(mut self) -> (String, Vec<u8>, Vec<(usize, Pointer)>) {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        (format!("struct alignas(8) hs_params {{\n{}}};\n", self.declaration), self.bytes, self.pointers)
    }
}

/// Appends the bytes of a constant.
pub(super) fn push_scalar(out: &mut Vec<u8>, s: Scalar) {
    // Hosts of GPUs are little-endian.
    out.extend(&s.bits().to_le_bytes()[..s.dtype().size()]);
}

/// Constant data too large for a kernel's parameters: uploaded once, cached by content.
#[derive(Debug, Default)]
pub(super) struct ConstantTable {
    pub(super) bytes: Vec<u8>,
}

impl ConstantTable {
    fn align(&mut self) -> usize {
        self.bytes.resize(self.bytes.len().next_multiple_of(16), 0);
        self.bytes.len()
    }

    /// Adds rows of taps, each padded with unused zeros to `pitch`; returns their offset.
    pub(super) fn rows(&mut self, dtype: DType, width: usize, pitch: usize, taps: &[f64]) -> usize {
        let at = self.align();
        for row in taps.chunks(width) {
            row.iter().for_each(|&t| push_scalar(&mut self.bytes, Scalar::from_f64(dtype, t)));
            self.bytes.resize(self.bytes.len() + (pitch - row.len()) * dtype.size(), 0);
        }
        at
    }

    /// Adds words; returns their offset.
    pub(super) fn words(&mut self, words: impl Iterator<Item = u32>) -> usize {
        let at = self.align();
        words.for_each(|word| self.bytes.extend(word.to_le_bytes()));
        at
    }

    /// Adds taps with `N` integers each, as a C struct of the weight and the integers; returns their offset.
    pub(super) fn offsets<const N: usize>(
        &mut self,
        dtype: DType,
        taps: &[f64],
        offsets: impl Iterator<Item = [i32; N]>,
    ) -> usize {
        let at = self.align();
        let align = dtype.size().max(4);
        for (&t, o) in taps.iter().zip(offsets) {
            push_scalar(&mut self.bytes, Scalar::from_f64(dtype, t));
            self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
            o.iter().for_each(|v| self.bytes.extend(v.to_ne_bytes()));
            self.bytes.resize(self.bytes.len().next_multiple_of(align), 0);
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_lie_where_a_c_compiler_puts_them() {
        let mut p = KernelParams::default();
        p.int("a", 7);
        p.pointer("const f32", "in0", Pointer::Input { index: 0, offset: 0 });
        assert_eq!(p.constant(Scalar::U8(3), DType::U8).to_string(), "p.k0");
        assert_eq!(p.taps(DType::F32, &[1.0, 2.0]), Some(name("p.t0")));
        let (text, bytes, pointers) = p.finish();
        assert_eq!(pointers, [(8, Pointer::Input { index: 0, offset: 0 })]);
        assert_eq!(bytes.len(), 32); // 4 + pad, 8, 1 + pad, 2 * 4, pad
        assert_eq!(f32::from_ne_bytes(bytes[20..24].try_into().unwrap()), 1.0);
        assert!(text.contains("f32 t0[2];"));
    }

    #[test]
    fn too_many_taps_go_elsewhere() {
        let mut p = KernelParams::default();
        assert!(p.taps(DType::F64, &[0.0; 500]).is_none());
    }
}
