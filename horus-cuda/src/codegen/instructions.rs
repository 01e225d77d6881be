//! The pixel operations of a kernel as statements over register arrays `[r][c]`.

use std::collections::HashMap;

use horus_core::dtype::{DType, Scalar};
use horus_core::error::DeviceError;
use horus_core::ir::kernel::{Instr, InstrOp, MapKernel, Val};
use horus_core::ops::pixel::PixelOp;
use horus_core::shape::{Axis, Shape};

use super::cpp::{CppCall, Expr, Operator, PixelStmt, Stmt, args, name, pixel, template};
use super::defect;
use super::params::KernelParams;
use super::schedule::LeafGroup;

/// Emits leaves that are read on demand, and takes constants.
pub(super) trait Leaves {
    /// The parameters that receive constants.
    fn params(&mut self) -> &mut KernelParams;

    /// Emits leaf `l` and returns the array of its values.
    ///
    /// # Errors
    /// If it cannot be read.
    fn read(&mut self, l: usize, out: &mut Vec<Stmt>) -> Result<String, DeviceError>;
}

/// Leaves that all exist before the first instruction.
impl Leaves for KernelParams {
    fn params(&mut self) -> &mut KernelParams {
        self
    }

    fn read(&mut self, l: usize, _: &mut Vec<Stmt>) -> Result<String, DeviceError> {
        Err(defect(format_args!("leaf {l} is read late")))
    }
}

/// A value for each pixel.
#[derive(Clone, Debug)]
pub(super) enum PixelValue {
    /// The element `[r][c]` of this array of the thread.
    Array(String),
    /// One value for all pixels, or one computed from the position of `[r][c]`.
    Uniform(Expr),
}

impl PixelValue {
    /// The expression for pixel `[r][c]`.
    pub(super) fn expr(self) -> Expr {
        match self {
            PixelValue::Array(array) => pixel(array),
            PixelValue::Uniform(value) => value,
        }
    }
}

/// An operand that a loop passes from iteration to iteration: its number, and its array.
pub(super) type LoopOperand<'a> = Option<(usize, &'a str)>;

/// Emits instructions as soon as their operands exist, so that registers hold few values at a time.
#[derive(Clone, Debug)]
pub(super) struct Instructions<'a> {
    kernel: &'a MapKernel,
    /// For each leaf, the array of its values, once it exists.
    leaves: Vec<Option<String>>,
    done: Vec<bool>,
    /// Arrays of results with names other than `v` and the number.
    names: HashMap<usize, String>,
    /// Rows and columns of the arrays.
    extents: (usize, usize),
    /// The row and the column of pixel `[r][c]`.
    place: (Expr, Expr),
}

impl<'a> Instructions<'a> {
    /// The instructions of a kernel, for `rows` times `cols` pixels per thread.
    pub(super) fn new(kernel: &'a MapKernel, rows: usize, cols: usize) -> Instructions<'a> {
        let (leaves, done) = (vec![None; kernel.leaves.len()], vec![false; kernel.code.len()]);
        let place = (name("y") + "r", name("x") + "c");
        Instructions { kernel, leaves, done, names: HashMap::new(), extents: (rows, cols), place }
    }

    /// [`Instructions::new`] for pixels `[r][c]` at other rows and columns than `y + r` and `x + c`.
    pub(super) fn at(self, row: Expr, column: Expr) -> Instructions<'a> {
        Instructions { place: (row, column), ..self }
    }

    /// For each group, the instructions that can run after it and not before; a `lazy` leaf is available on demand.
    pub(super) fn sequence(&self, groups: &[LeafGroup], lazy: &[bool]) -> Vec<Vec<usize>> {
        let mut trial = self.clone();
        let ready = |trial: &mut Instructions<'_>| {
            let mut now = Vec::new();
            while let Some((i, missing)) = trial.next_ready(lazy) {
                missing.into_iter().for_each(|l| trial.define(l, ""));
                trial.done[i] = true;
                now.push(i);
            }
            now
        };
        ready(&mut trial);
        let mut after = |group: &LeafGroup| {
            group.leaves.iter().for_each(|&l| trial.define(l, ""));
            ready(&mut trial)
        };
        groups.iter().map(&mut after).collect()
    }

    /// Registers the array of a leaf's values.
    pub(super) fn define(&mut self, leaf: usize, array: &str) {
        self.leaves[leaf] = Some(array.to_owned());
    }

    /// Returns `true` if a leaf's values exist.
    pub(super) fn is_defined(&self, leaf: usize) -> bool {
        self.leaves[leaf].is_some()
    }

    /// Leaves that the kernel uses, in the order in which its code first needs them.
    pub(super) fn order(&self) -> Vec<usize> {
        let mut seen_instr = vec![false; self.kernel.code.len()];
        let mut order = Vec::new();
        // An explicit stack: chains of a thousand operations are legal.
        let mut stack: Vec<Val> = self.kernel.results().rev().collect();
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

    /// The next instruction that can run once its `lazy` leaves are read, with these leaves.
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

    /// Emits every instruction that can run, and the `lazy` leaves that they read.
    ///
    /// # Errors
    /// If a leaf cannot be read.
    pub(super) fn advance(
        &mut self,
        out: &mut Vec<Stmt>,
        reader: &mut impl Leaves,
        lazy: &[bool],
    ) -> Result<(), DeviceError> {
        while let Some((i, missing)) = self.next_ready(lazy) {
            for l in missing {
                if self.leaves[l].is_none() {
                    let array = reader.read(l, out)?;
                    self.define(l, &array);
                }
            }
            self.emit(out, reader.params(), &[i], None)?;
        }
        Ok(())
    }

    /// Emits the first of `similar` instructions, which differ in constants only; a differing constant is element `k`
    /// of an array.
    ///
    /// # Errors
    /// If an operand does not exist yet.
    pub(super) fn emit(
        &mut self,
        out: &mut Vec<Stmt>,
        params: &mut KernelParams,
        similar: &[usize],
        carried: LoopOperand<'_>,
    ) -> Result<(), DeviceError> {
        let i = similar[0];
        let instr = &self.kernel.code[i];
        let op = if let InstrOp::Pixel(op) = instr.op { Some(op) } else { None };
        let mut values = Vec::with_capacity(instr.args.len());
        for j in 0..instr.args.len() {
            let dtype = op.map_or(instr.operand, |op| op.operand(j, instr.operand));
            values.push(self.operand(similar, carried, j, dtype, params)?);
        }
        let (rows, cols) = self.extents;
        let to = format!("v{i}");
        out.push(Stmt::Array { dtype: instr.result, name: to.clone(), extents: vec![rows, cols] });
        let one = PixelStmt { op: instr.op, operand: instr.operand, result: instr.result, values, to };
        out.push(if divides(instr, carried) {
            let common = similar.len() == 1 && carried.is_none() && matches!(instr.args[1], Val::Const(_));
            Stmt::Divide { id: i, rows, cols, one: common, quotient: one }
        } else {
            Stmt::each_pixel(self.extents, Stmt::Pixel(one))
        });
        self.done[i] = true;
        Ok(())
    }

    /// Marks an instruction as emitted, because a similar one computes it.
    pub(super) fn finish(&mut self, i: usize) {
        self.done[i] = true;
    }

    /// Names the array of an instruction's result.
    pub(super) fn rename(&mut self, i: usize, array: &str) {
        self.names.insert(i, array.to_owned());
    }

    /// Emits the result as an array and returns its name.
    ///
    /// # Errors
    /// If it does not exist yet.
    pub(super) fn result(
        &mut self,
        out: &mut Vec<Stmt>,
        params: &mut KernelParams,
        dtype: DType,
    ) -> Result<String, DeviceError> {
        match self.kernel.result {
            Some(v) => self.array(v, dtype, "result", out, params),
            None => Ok(self.uniform("0".into(), dtype, "result", out)),
        }
    }

    /// Emits all results as arrays and returns their names.
    ///
    /// # Errors
    /// If one does not exist yet.
    pub(super) fn results(
        &mut self,
        out: &mut Vec<Stmt>,
        params: &mut KernelParams,
    ) -> Result<Vec<String>, DeviceError> {
        let mut arrays = vec![self.result(out, params, self.kernel.result_type())?];
        for (k, v) in self.kernel.additional_results.iter().enumerate() {
            arrays.push(self.array(*v, self.kernel.type_of(*v), &format!("result{}", k + 1), out, params)?);
        }
        Ok(arrays)
    }

    /// The array of a value; a value without one is emitted as `name`.
    fn array(
        &self,
        v: Val,
        dtype: DType,
        name: &str,
        out: &mut Vec<Stmt>,
        params: &mut KernelParams,
    ) -> Result<String, DeviceError> {
        Ok(match self.value(v, dtype, params)? {
            PixelValue::Array(array) => array,
            PixelValue::Uniform(value) => self.uniform(value, dtype, name, out),
        })
    }

    /// Emits a value that is the same for all pixels, or depends on their position only.
    fn uniform(&self, value: Expr, dtype: DType, name: &str, out: &mut Vec<Stmt>) -> String {
        let (rows, cols) = self.extents;
        out.push(Stmt::Array { dtype, name: name.to_owned(), extents: vec![rows, cols] });
        out.push(Stmt::fill(self.extents, name, value));
        name.to_owned()
    }

    /// An operand of the code.
    ///
    /// # Errors
    /// If it is a leaf that does not exist yet.
    pub(super) fn value(&self, v: Val, dtype: DType, params: &mut KernelParams) -> Result<PixelValue, DeviceError> {
        Ok(match v {
            Val::Leaf(i) => {
                let array = self.leaves[i].clone();
                PixelValue::Array(array.ok_or_else(|| defect(format_args!("leaf {i} is used before it is read")))?)
            }
            Val::Instr(i) => PixelValue::Array(self.names.get(&i).cloned().unwrap_or_else(|| format!("v{i}"))),
            Val::Const(s) => PixelValue::Uniform(params.constant(s, dtype)),
            Val::Index(axis, dtype) => PixelValue::Uniform(self.index(axis, dtype)),
        })
    }

    /// The position of pixel `[r][c]`; see [`declare_extent`].
    fn index(&self, axis: Axis, dtype: DType) -> Expr {
        let at = match axis {
            Axis::Rows => CppCall::new("hs_row_of", template![], args![self.place.0.clone(), name("p.rows")]).into(),
            Axis::Columns => self.place.1.clone(),
            Axis::Channels => name("plane").with(Operator::Remainder, "p.channels"),
            Axis::Depth => name("plane").with(Operator::Divide, "p.channels"),
        };
        CppCall::new(dtype.name(), template![], args![at]).into()
    }

    /// Operand `j` of the first of `similar` instructions.
    fn operand(
        &self,
        similar: &[usize],
        carried: LoopOperand<'_>,
        j: usize,
        dtype: DType,
        params: &mut KernelParams,
    ) -> Result<Expr, DeviceError> {
        if let Some((_, array)) = carried.filter(|c| c.0 == j) {
            return Ok(pixel(array));
        }
        let args = similar.iter().map(|&i| self.kernel.code[i].args[j]);
        let constants: Vec<Scalar> = args.filter_map(|a| if let Val::Const(s) = a { Some(s) } else { None }).collect();
        if constants.len() > 1 {
            return Ok(params.constants(&constants, dtype));
        }
        Ok(self.value(self.kernel.code[similar[0]].args[j], dtype, params)?.expr())
    }
}

/// Parameters for kernels that use pixel positions: the rows and the channels of the image.
pub(super) fn declare_extent(kernel: &MapKernel, params: &mut KernelParams, shape: Shape) {
    if kernel.has_index() {
        params.int("rows", shape.height.cast_signed());
        params.int("channels", shape.channels.cast_signed());
    }
}

/// Returns `true` for a division that is computed quickly, except for rare operands.
fn divides(instr: &Instr, carried: LoopOperand<'_>) -> bool {
    instr.operand == DType::F32
        && match (instr.op, &instr.args[..]) {
            (InstrOp::Pixel(PixelOp::Div), _) => true,
            // The constant, the least divisor that is used, must be the same for all pixels.
            (InstrOp::Pixel(PixelOp::AbsDiv), [.., Val::Const(_)]) => carried.is_none_or(|c| c.0 != 2),
            _ => false,
        }
}
