//! The pixel operations of a kernel as C++ over register arrays `[r][c]`.

use std::collections::HashMap;
use std::fmt::Write as _;

use horus_core::dtype::{DType, Scalar};
use horus_core::error::DeviceError;
use horus_core::ir::kernel::{Instr, InstrOp, MapKernel, Val};
use horus_core::ops::pixel::{PixelKind, PixelOp};

use super::params::Params;
use super::schedule::Group;

/// Emits instructions as soon as their operands exist, so that registers hold few values at a time.
#[derive(Clone, Debug)]
pub(super) struct Code<'a> {
    kernel: &'a MapKernel,
    /// For each leaf, the expression of its element `[r][c]`, once it exists.
    leaves: Vec<Option<String>>,
    done: Vec<bool>,
    /// Arrays of results that are not called `v` and the number.
    names: HashMap<usize, String>,
}

impl<'a> Code<'a> {
    pub(super) fn new(kernel: &'a MapKernel) -> Code<'a> {
        let (leaves, done) = (vec![None; kernel.leaves.len()], vec![false; kernel.code.len()]);
        Code { kernel, leaves, done, names: HashMap::new() }
    }

    /// The instructions that can run after each group in turn, beside those that can before; a `lazy` leaf is there when
    /// it is asked for.
    pub(super) fn sequence(&self, groups: &[Group], lazy: &[bool]) -> Vec<Vec<usize>> {
        let mut trial = self.clone();
        let ready = |trial: &mut Code<'_>| {
            let mut now = Vec::new();
            while let Some((i, missing)) = trial.next_ready(lazy) {
                missing.into_iter().for_each(|l| trial.define(l, ""));
                trial.done[i] = true;
                now.push(i);
            }
            now
        };
        ready(&mut trial);
        let mut after = |group: &Group| {
            group.leaves.iter().for_each(|&l| trial.define(l, ""));
            ready(&mut trial)
        };
        groups.iter().map(&mut after).collect()
    }

    /// Says where a leaf's values are, without the `[r][c]`.
    pub(super) fn define(&mut self, leaf: usize, array: &str) {
        self.leaves[leaf] = Some(format!("{array}[r][c]"));
    }

    /// Whether a leaf's values exist.
    pub(super) fn is_defined(&self, leaf: usize) -> bool {
        self.leaves[leaf].is_some()
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
            self.emit(out, params, &[i], None, (rows, cols));
        }
        Ok(())
    }

    /// Emits the first of `alike` instructions, which differ in constants only: where they do, element `k` of an array.
    /// One operand may be `given`.
    pub(super) fn emit(
        &mut self,
        out: &mut String,
        params: &mut Params,
        alike: &[usize],
        given: Option<(usize, &str)>,
        (rows, cols): (usize, usize),
    ) {
        let i = alike[0];
        let instr = &self.kernel.code[i];
        let operands: Vec<String> = (0..instr.args.len())
            .map(|j| {
                let dtype =
                    if let InstrOp::Pixel(op) = instr.op { op.operand(j, instr.operand) } else { instr.operand };
                self.operand(alike, given, j, dtype, params)
            })
            .collect();
        let to = format!("v{i}[r][c]");
        let _ = writeln!(out, "    {} v{i}[{rows}][{cols}];", instr.result.name());
        match often(instr, given, i) {
            Some(often) => {
                let _ = writeln!(out, "    hs_division d{i};");
                each_pixel(out, rows, cols, &body(instr, &often, &operands, &to));
                let _ = writeln!(out, "    if (d{i}.rare()) {{");
                again(out, instr, &operands, &to, (rows, cols));
                out.push_str("    }\n");
            }
            None => {
                let expression = if let InstrOp::Pixel(op) = instr.op { op.info().cuda } else { "" };
                each_pixel(out, rows, cols, &body(instr, expression, &operands, &to));
            }
        }
        self.done[i] = true;
    }

    /// Says that an instruction has been emitted, in the place of one that is alike.
    pub(super) fn finish(&mut self, i: usize) {
        self.done[i] = true;
    }

    /// Says which array has the result of an instruction.
    pub(super) fn rename(&mut self, i: usize, array: &str) {
        self.names.insert(i, array.to_owned());
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

    /// The expression of a value for pixel `[r][c]`. A leaf that does not exist yet would be a defect of the generator: the
    /// kernel does not compile then, which is an error and not a panic.
    pub(super) fn value(&self, v: Val, dtype: DType, params: &mut Params) -> String {
        match v {
            Val::Leaf(i) => self.leaves[i].clone().unwrap_or_else(|| format!("leaf_{i}_is_read_before_use")),
            Val::Instr(i) => self.names.get(&i).map_or_else(|| format!("v{i}[r][c]"), |name| format!("{name}[r][c]")),
            Val::Const(s) => params.constant(s, dtype),
        }
    }

    /// Operand `j` of the first of `alike` instructions.
    fn operand(
        &self,
        alike: &[usize],
        given: Option<(usize, &str)>,
        j: usize,
        dtype: DType,
        params: &mut Params,
    ) -> String {
        if let Some((_, value)) = given.filter(|g| g.0 == j) {
            return value.to_owned();
        }
        let args = alike.iter().map(|&i| self.kernel.code[i].args[j]);
        let constants: Vec<Scalar> = args.filter_map(|a| if let Val::Const(s) = a { Some(s) } else { None }).collect();
        if constants.len() > 1 {
            return params.constants(&constants, dtype);
        }
        self.value(self.kernel.code[alike[0]].args[j], dtype, params)
    }
}

/// The statement that computes one pixel of an instruction from its operands: for a pixel operation, `expression` of them,
/// called as its table does.
fn body(instr: &Instr, expression: &str, operands: &[String], to: &str) -> String {
    let result = instr.result.name();
    match instr.op {
        InstrOp::Convert => format!("{to} = hs_to<{result}>({});", operands[0]),
        InstrOp::Pixel(op) => {
            let names = if op.info().kind == PixelKind::Select { ["m", "b", "c"] } else { ["a", "b", "c"] };
            let mut s = format!("typedef {} T; ", instr.operand.name());
            let mut inner = String::new();
            for (j, (name, value)) in names.into_iter().zip(operands).enumerate() {
                let dtype = op.operand(j, instr.operand).name();
                // Operands are named a, b, c by the table, and c is also the loop's column: bind through o0, o1, o2.
                let _ = write!(s, "const {dtype} o{j} = {value}; ");
                let _ = write!(inner, "const {dtype} {name} = o{j}; ");
            }
            let _ = write!(s, "{result}& to = {to}; {{ {inner}to = ({result}){expression}; }}");
            s
        }
    }
}

/// The expression of a division that is right for all but rare operands; which of those there are, `hs_division` tells.
fn often(instr: &Instr, given: Option<(usize, &str)>, i: usize) -> Option<String> {
    let call = match (instr.op, &instr.args[..]) {
        (InstrOp::Pixel(PixelOp::Div), _) => format!("d{i}.div(a, b)"),
        // The smallest divisor that counts must be the same for all pixels.
        (InstrOp::Pixel(PixelOp::AbsDiv), [.., Val::Const(_)]) if given.is_none_or(|g| g.0 != 2) => {
            format!("d{i}.absdiv(a, b, c)")
        }
        _ => return None,
    };
    (instr.operand == DType::F32).then_some(call)
}

/// A division of every pixel as the processor does it: one, in a loop over copies of the operands. One for each pixel, inline
/// where every register is taken, took a quarter of the time that the kernel of a detector compiles.
fn again(out: &mut String, instr: &Instr, operands: &[String], to: &str, (rows, cols): (usize, usize)) {
    let InstrOp::Pixel(op) = instr.op else { return };
    let (count, at) = (rows * cols, format!("r * {cols} + c"));
    let _ = writeln!(out, "    f32 n[{count}], d[{count}];");
    each_pixel(out, rows, cols, &format!("n[{at}] = {}; d[{at}] = {};", operands[0], operands[1]));
    let copies: Vec<String> =
        ["n[e]", "d[e]"].map(String::from).into_iter().chain(operands.iter().skip(2).cloned()).collect();
    let one = body(instr, op.info().cuda, &copies, "n[e]");
    let _ = writeln!(out, "#pragma unroll 1\n    for (int e = 0; e < {count}; ++e) {{ {one} }}");
    each_pixel(out, rows, cols, &format!("{to} = n[{at}];"));
}

/// Emits `body` for every pixel of the thread's block.
pub(super) fn each_pixel(out: &mut String, rows: usize, cols: usize, body: &str) {
    let _ = writeln!(out, "#pragma unroll\n    for (int r = 0; r < {rows}; ++r) {{\n#pragma unroll");
    let _ = writeln!(out, "        for (int c = 0; c < {cols}; ++c) {{ {body} }}\n    }}");
}
