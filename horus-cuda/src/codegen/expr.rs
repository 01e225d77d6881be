//! The pixel operations of a kernel as C++ over register arrays `[r][c]`.

use std::fmt::Write as _;

use horus_core::dtype::DType;
use horus_core::error::DeviceError;
use horus_core::kernel::{Instr, InstrOp, MapKernel, Val};
use horus_core::ops::pixel::PixelKind;

use super::params::Params;

/// Emits instructions as soon as their operands exist, so that registers hold few values at a time.
#[derive(Debug)]
pub(super) struct Code<'a> {
    kernel: &'a MapKernel,
    /// For each leaf, the expression of its element `[r][c]`, once it exists.
    leaves: Vec<Option<String>>,
    done: Vec<bool>,
}

impl<'a> Code<'a> {
    pub(super) fn new(kernel: &'a MapKernel) -> Code<'a> {
        Code { kernel, leaves: vec![None; kernel.leaves.len()], done: vec![false; kernel.code.len()] }
    }

    /// Says where a leaf's values are, without the `[r][c]`.
    pub(super) fn define(&mut self, leaf: usize, array: &str) {
        self.leaves[leaf] = Some(format!("{array}[r][c]"));
    }

    /// Leaves that the kernel uses, in the order in which its code first needs them.
    pub(super) fn order(&self) -> Vec<usize> {
        let mut seen_instr = vec![false; self.kernel.code.len()];
        let mut order = Vec::new();
        // An explicit stack: chains of a thousand operations are legal.
        let mut stack: Vec<Val> = self.kernel.result.into_iter().collect();
        while let Some(v) = stack.pop() {
            match v {
                Val::Leaf(i) if !order.contains(&i) => order.push(i),
                Val::Instr(i) if !seen_instr[i] => {
                    seen_instr[i] = true;
                    stack.extend(self.kernel.code[i].args.iter().rev());
                }
                _ => {}
            }
        }
        order
    }

    /// Instructions that can run once the `lazy` leaves they read do; with those leaves.
    fn next_ready(&self, lazy: &[bool]) -> Option<(usize, Vec<usize>)> {
        self.kernel.code.iter().enumerate().filter(|(i, _)| !self.done[*i]).find_map(|(i, instr)| {
            let mut missing = Vec::new();
            for a in &instr.args {
                match *a {
                    Val::Leaf(l) if self.leaves[l].is_none() && lazy[l] => missing.push(l),
                    Val::Leaf(l) if self.leaves[l].is_none() => return None,
                    Val::Instr(j) if !self.done[j] => return None,
                    _ => {}
                }
            }
            missing.dedup();
            Some((i, missing))
        })
    }

    /// Emits every instruction that can run. `read` emits a leaf marked in `lazy` and returns its array.
    pub(super) fn advance(
        &mut self,
        out: &mut String,
        params: &mut Params,
        rows: usize,
        cols: usize,
        lazy: &[bool],
        mut read: impl FnMut(usize, &mut String, &mut Params) -> Result<String, DeviceError>,
    ) -> Result<(), DeviceError> {
        while let Some((i, missing)) = self.next_ready(lazy) {
            for l in missing {
                if self.leaves[l].is_none() {
                    let array = read(l, out, params)?;
                    self.define(l, &array);
                }
            }
            let instr = &self.kernel.code[i];
            let body = self.body(i, instr, params);
            let _ = writeln!(out, "    {} v{i}[{rows}][{cols}];", instr.result.name());
            each_pixel(out, rows, cols, &body);
            self.done[i] = true;
        }
        Ok(())
    }

    /// Emits the result as an array and returns its name.
    pub(super) fn result(
        &mut self,
        out: &mut String,
        params: &mut Params,
        dtype: DType,
        rows: usize,
        cols: usize,
    ) -> String {
        let value = self.kernel.result.map_or_else(|| "0".into(), |v| self.value(v, dtype, params));
        if let Some(array) = value.strip_suffix("[r][c]") {
            return array.to_owned();
        }
        let _ = writeln!(out, "    {} result[{rows}][{cols}];", dtype.name());
        each_pixel(out, rows, cols, &format!("result[r][c] = {value};"));
        "result".into()
    }

    fn value(&self, v: Val, dtype: DType, params: &mut Params) -> String {
        match v {
            Val::Leaf(i) => self.leaves[i].clone().unwrap_or_else(|| unreachable!("leaf {i} is read before use")),
            Val::Instr(i) => format!("v{i}[r][c]"),
            Val::Const(s) => params.constant(s, dtype),
        }
    }

    fn body(&self, i: usize, instr: &Instr, params: &mut Params) -> String {
        let result = instr.result.name();
        match instr.op {
            InstrOp::Convert => {
                format!("v{i}[r][c] = hs_to<{result}>({});", self.value(instr.args[0], instr.operand, params))
            }
            InstrOp::Pixel(op) => {
                let info = op.info();
                let names = if info.kind == PixelKind::Select { ["m", "b", "c"] } else { ["a", "b", "c"] };
                let mut s = format!("typedef {} T; ", instr.operand.name());
                let mut inner = String::new();
                for (j, (&arg, name)) in instr.args.iter().zip(names).enumerate() {
                    let dtype = op.operand(j, instr.operand);
                    let value = self.value(arg, dtype, params);
                    // Operands are named a, b, c by the table, and c is also the loop's column: bind through o0, o1, o2.
                    let _ = write!(s, "const {0} o{j} = {value}; ", dtype.name());
                    let _ = write!(inner, "const {} {name} = o{j}; ", dtype.name());
                }
                let _ = write!(s, "{result}& to = v{i}[r][c]; {{ {inner}to = ({result}){}; }}", info.cuda);
                s
            }
        }
    }
}

/// Emits `body` for every pixel of the thread's block.
pub(super) fn each_pixel(out: &mut String, rows: usize, cols: usize, body: &str) {
    let _ = writeln!(out, "#pragma unroll\n    for (int r = 0; r < {rows}; ++r) {{\n#pragma unroll");
    let _ = writeln!(out, "        for (int c = 0; c < {cols}; ++c) {{ {body} }}\n    }}");
}
