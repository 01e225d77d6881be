//! Statements and expressions of CUDA C++.
//!
//! The generator builds a kernel from them, counts them and rewrites them (see [`calls`]). [`text`] prints them at the
//! end; the text is never parsed.

pub(super) mod calls;
mod text;

use std::ops::{Add, Mul, Sub};

use horus_core::dtype::DType;
use horus_core::ir::kernel::InstrOp;

pub(super) use text::text;

/// Operators, ordered by precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operator {
    And,
    Equal,
    Less,
    LessOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expr {
    /// A name, a number, or a member or element of something named.
    Name(String),
    /// Pixel `[r][c]` of an array of the thread.
    Pixel(String),
    /// An element of an array.
    Element(Box<Expr>, Box<Expr>),
    /// A binary operation.
    Binary(Box<Expr>, Operator, Box<Expr>),
    /// The second expression if the first is true, else the third.
    Conditional(Box<[Expr; 3]>),
    /// The address of a byte of shared memory, as a pointer to this type.
    Shared(DType, usize),
    /// The address of a byte of the constant table, as a pointer to this type.
    Table(String, Box<Expr>),
    /// The result of a call.
    Returned(Box<CppCall>),
    /// A structure of these members, with its type unless the context implies it.
    Members(Option<String>, Vec<Expr>),
}

/// A call of a function of the headers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CppCall {
    /// The function.
    pub(super) name: String,
    /// Its template arguments.
    pub(super) template: Vec<String>,
    /// Its arguments.
    pub(super) args: Vec<Expr>,
    /// If the function has a variant `_called` that is compiled once: approximate instructions of
    /// the inlined function.
    pub(super) inline_cost: Option<usize>,
    /// `true` if that variant is called.
    pub(super) shared: bool,
}

/// An operation on one pixel.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PixelStmt {
    /// The operation or conversion.
    pub(super) op: InstrOp,
    /// The type in which the operation is computed.
    pub(super) operand: DType,
    /// The type of its result.
    pub(super) result: DType,
    /// Its operands.
    pub(super) values: Vec<Expr>,
    /// The array of its results.
    pub(super) to: String,
}

impl PixelStmt {
    /// The expression of a pixel operation.
    fn expression(&self) -> &'static str {
        match self.op {
            InstrOp::Pixel(op) => op.info().cuda,
            InstrOp::Convert(_) => "",
        }
    }
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Stmt {
    /// Declares an array of the thread.
    Array { dtype: DType, name: String, extents: Vec<usize> },
    /// Declares a variable of a type.
    Let { ctype: String, name: String, value: Expr },
    /// Assigns a value.
    Assign { to: Expr, value: Expr },
    /// Calls a function for its effect.
    Call(CppCall),
    /// Runs the body for every pixel `[r][c]` of the thread.
    EachPixel { rows: usize, cols: usize, body: Vec<Stmt> },
    /// Computes one pixel.
    Pixel(PixelStmt),
    /// Divides every pixel of the thread: quickly, and again exactly if the variable `d{id}` reports `rare` operands.
    /// The divisor may be `one` of all pixels.
    Divide { id: usize, rows: usize, cols: usize, one: bool, quotient: PixelStmt },
    /// A conditional statement.
    If { condition: Expr, then: Vec<Stmt>, otherwise: Vec<Stmt> },
    /// A loop that is not unrolled, over a variable from `first` to below `end`.
    For { variable: &'static str, first: Expr, end: Expr, step: usize, body: Vec<Stmt> },
    /// A selection by number.
    Switch { over: Expr, cases: Vec<(usize, Vec<Stmt>)> },
    /// Waits for all threads of the block.
    Synchronize,
    /// Waits for the copies to shared memory that this block has begun.
    AwaitCopies,
    /// In a loop over `k`: at most one row filter per iteration, of several that share the code that loads their input.
    RowPasses(SharedRowFilters),
}

/// Row filters of several sizes that one loop runs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SharedRowFilters {
    /// The type of elements.
    pub(super) dtype: DType,
    /// The row filters, by iteration.
    pub(super) passes: Vec<SharedRowFilter>,
    /// The code that loads the input and calls the row filter for each chunk of it.
    pub(super) stage: CppCall,
}

/// One of [`SharedRowFilters`].
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SharedRowFilter {
    /// The iteration that runs it.
    pub(super) iteration: usize,
    /// The variables of the stage: chunks, first element, rows above, columns to the left, columns.
    pub(super) extents: [(&'static str, usize); 5],
    /// The computation of one chunk.
    pub(super) pass: CppCall,
}

/// A name or a number.
pub(super) fn name(text: impl ToString) -> Expr {
    Expr::Name(text.to_string())
}

/// Pixel `[r][c]` of an array.
pub(super) fn pixel(array: impl ToString) -> Expr {
    Expr::Pixel(array.to_string())
}

impl From<usize> for Expr {
    fn from(v: usize) -> Expr {
        name(v)
    }
}

impl From<&str> for Expr {
    fn from(v: &str) -> Expr {
        name(v)
    }
}

impl From<String> for Expr {
    fn from(v: String) -> Expr {
        Expr::Name(v)
    }
}

impl Expr {
    /// Element `at` of this array.
    pub(super) fn element(self, at: impl Into<Expr>) -> Expr {
        Expr::Element(Box::new(self), Box::new(at.into()))
    }

    /// `value` if this is true, else `otherwise`.
    pub(super) fn choose(self, value: impl Into<Expr>, otherwise: impl Into<Expr>) -> Expr {
        Expr::Conditional(Box::new([self, value.into(), otherwise.into()]))
    }

    /// `self` and `other`, joined by an operator.
    pub(super) fn with(self, operator: Operator, other: impl Into<Expr>) -> Expr {
        Expr::Binary(Box::new(self), operator, Box::new(other.into()))
    }
}

impl<E: Into<Expr>> Add<E> for Expr {
    type Output = Expr;
    fn add(self, other: E) -> Expr {
        self.with(Operator::Add, other)
    }
}

impl<E: Into<Expr>> Sub<E> for Expr {
    type Output = Expr;
    fn sub(self, other: E) -> Expr {
        self.with(Operator::Subtract, other)
    }
}

impl<E: Into<Expr>> Mul<E> for Expr {
    type Output = Expr;
    fn mul(self, other: E) -> Expr {
        self.with(Operator::Multiply, other)
    }
}

impl CppCall {
    /// A call that is always inline.
    pub(super) fn new(name: impl ToString, template: Vec<String>, args: Vec<Expr>) -> CppCall {
        CppCall { name: name.to_string(), template, args, inline_cost: None, shared: false }
    }

    /// A call that may use the variant that is compiled once.
    pub(super) fn shareable(self, inline_cost: usize) -> CppCall {
        CppCall { inline_cost: Some(inline_cost), ..self }
    }
}

impl From<CppCall> for Stmt {
    fn from(call: CppCall) -> Stmt {
        Stmt::Call(call)
    }
}

impl From<CppCall> for Expr {
    fn from(call: CppCall) -> Expr {
        Expr::Returned(Box::new(call))
    }
}

impl Stmt {
    /// `body` for every pixel of the thread.
    pub(super) fn each_pixel((rows, cols): (usize, usize), body: Stmt) -> Stmt {
        Stmt::EachPixel { rows, cols, body: vec![body] }
    }

    /// Iterations `k` of a loop that is not unrolled.
    pub(super) fn iterations(end: usize, step: usize, body: Vec<Stmt>) -> Stmt {
        Stmt::For { variable: "k", first: 0.into(), end: end.into(), step, body }
    }

    /// A constant of this type.
    pub(super) fn constant(ctype: &str, name: &str, value: impl Into<Expr>) -> Stmt {
        Stmt::Let { ctype: format!("const {ctype}"), name: name.to_owned(), value: value.into() }
    }

    /// `value` for every pixel of an array.
    pub(super) fn fill(extents: (usize, usize), array: &str, value: Expr) -> Stmt {
        Stmt::each_pixel(extents, Stmt::Assign { to: pixel(array), value })
    }
}

/// Template arguments of any types.
macro_rules! template {
    ($($argument:expr),* $(,)?) => { vec![$($argument.to_string()),*] };
}
/// Arguments of a call, from anything that converts to an expression.
macro_rules! args {
    ($($argument:expr),* $(,)?) => { vec![$($crate::codegen::cpp::Expr::from($argument)),*] };
}
pub(super) use {args, template};
