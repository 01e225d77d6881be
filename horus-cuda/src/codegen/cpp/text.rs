//! Prints statements as text: the only module that knows the syntax of C++.

use std::fmt::{self, Display, Formatter, Write as _};

use horus_core::dtype::{Conversion, DType};
use horus_core::ir::kernel::InstrOp;
use horus_core::ops::pixel::{PixelKind, PixelOp};

use super::{CppCall, Expr, Operator, PixelStmt, SharedRowFilters, Stmt};

impl Operator {
    fn text(self) -> &'static str {
        match self {
            Operator::And => "&&",
            Operator::Equal => "==",
            Operator::Less => "<",
            Operator::LessOrEqual => "<=",
            Operator::Add => "+",
            Operator::Subtract => "-",
            Operator::Multiply => "*",
            Operator::Divide => "/",
            Operator::Remainder => "%",
        }
    }

    /// Precedence of the operator.
    fn rank(self) -> usize {
        match self {
            Operator::And => 0,
            Operator::Equal => 1,
            Operator::Less | Operator::LessOrEqual => 2,
            Operator::Add | Operator::Subtract => 3,
            Operator::Multiply | Operator::Divide | Operator::Remainder => 4,
        }
    }
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Expr::Name(name) => f.write_str(name),
            Expr::Pixel(array) => write!(f, "{array}[r][c]"),
            Expr::Element(array, at) => {
                operand(f, array, usize::MAX)?;
                write!(f, "[{at}]")
            }
            Expr::Conditional(parts) => {
                let [condition, value, otherwise] = &**parts;
                operand(f, condition, 0)?;
                write!(f, " ? {value} : {otherwise}")
            }
            Expr::Binary(left, operator, right) => {
                operand(f, left, operator.rank())?;
                write!(f, " {} ", operator.text())?;
                // Operators of equal precedence are evaluated from the left; for conditions the order does not matter.
                operand(f, right, operator.rank() + usize::from(*operator != Operator::And))
            }
            Expr::Shared(dtype, byte) => write!(f, "reinterpret_cast<{}*>(hs_smem + {byte})", dtype.name()),
            Expr::Table(element, at) => write!(f, "reinterpret_cast<const {element}*>(p.table + {at})"),
            Expr::Returned(call) => write!(f, "{call}"),
            Expr::Members(ctype, members) => {
                f.write_str(ctype.as_deref().unwrap_or_default())?;
                f.write_str("{")?;
                list(f, members)?;
                f.write_str("}")
            }
        }
    }
}

/// An operand, in parentheses if its own operator has a lower precedence than `rank`.
fn operand(f: &mut Formatter<'_>, e: &Expr, rank: usize) -> fmt::Result {
    match e {
        Expr::Binary(_, inner, _) if inner.rank() < rank => write!(f, "({e})"),
        Expr::Conditional(_) => write!(f, "({e})"),
        _ => write!(f, "{e}"),
    }
}

fn list(f: &mut Formatter<'_>, all: &[impl Display]) -> fmt::Result {
    for (i, one) in all.iter().enumerate() {
        write!(f, "{}{one}", if i == 0 { "" } else { ", " })?;
    }
    Ok(())
}

impl Display for CppCall {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.name, if self.shared { "_called" } else { "" })?;
        if !self.template.is_empty() {
            f.write_str("<")?;
            list(f, &self.template)?;
            f.write_str(">")?;
        }
        f.write_str("(")?;
        list(f, &self.args)?;
        f.write_str(")")
    }
}

/// The text of statements, as the body of a function.
pub(in crate::codegen) fn text(body: &[Stmt]) -> String {
    let mut w = CppWriter { out: String::new(), depth: 1 };
    w.all(body);
    w.out
}

struct CppWriter {
    out: String,
    depth: usize,
}

impl CppWriter {
    fn line(&mut self, line: impl Display) {
        let _ = writeln!(self.out, "{:w$}{line}", "", w = 4 * self.depth);
    }

    /// A directive to the compiler.
    fn pragma(&mut self, directive: &str) {
        let _ = writeln!(self.out, "#pragma {directive}");
    }

    fn all(&mut self, body: &[Stmt]) {
        body.iter().for_each(|stmt| self.stmt(stmt));
    }

    /// A head, a body in braces, and the text after the closing brace.
    fn block(&mut self, head: impl Display, tail: &str, body: impl FnOnce(&mut CppWriter)) {
        self.line(format_args!("{head}{{"));
        self.depth += 1;
        body(self);
        self.depth -= 1;
        self.line(format_args!("}}{tail}"));
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Array { dtype, name, extents } => {
                let extents: String = extents.iter().map(|n| format!("[{n}]")).collect();
                self.line(format_args!("{} {name}{extents};", dtype.name()));
            }
            Stmt::Let { ctype, name, value } => self.line(format_args!("{ctype} {name} = {value};")),
            Stmt::Assign { to, value } => self.line(format_args!("{to} = {value};")),
            Stmt::Call(call) => self.line(format_args!("{call};")),
            Stmt::EachPixel { rows, cols, body } => self.each_pixel(*rows, *cols, |w| w.all(body)),
            Stmt::Pixel(p) => self.pixel(p, &format!("{}[r][c]", p.to), &p.values, p.expression()),
            Stmt::Divide { id, rows, cols, one, quotient } => self.divide(*id, (*rows, *cols), *one, quotient),
            Stmt::If { condition, then, otherwise } => {
                if let ([Stmt::Assign { to, value }], []) = (&then[..], &otherwise[..]) {
                    self.line(format_args!("if ({condition}) {to} = {value};"));
                    return;
                }
                self.block(format_args!("if ({condition}) "), if otherwise.is_empty() { "" } else { " else {" }, |w| {
                    w.all(then);
                });
                if !otherwise.is_empty() {
                    self.depth += 1;
                    self.all(otherwise);
                    self.depth -= 1;
                    self.line("}");
                }
            }
            Stmt::For { variable, first, end, step, body } => {
                let next = if *step == 1 { format!("++{variable}") } else { format!("{variable} += {step}") };
                self.pragma("unroll 1");
                let head = format!("for (int {variable} = {first}; {variable} < {end}; {next}) ");
                self.block(head, "", |w| w.all(body));
            }
            Stmt::Switch { over, cases } => self.block(format_args!("switch ({over}) "), "", |w| {
                for (n, body) in cases {
                    w.block(format_args!("case {n}: "), " break;", |w| w.all(body));
                }
                w.line("default: break;");
            }),
            Stmt::Synchronize => self.line("__syncthreads();"),
            Stmt::AwaitCopies => {
                self.line("hs_commit();");
                self.line("hs_wait<0>();");
                self.line("__syncthreads();");
            }
            Stmt::RowPasses(passes) => self.row_passes(passes),
        }
    }

    fn each_pixel(&mut self, rows: usize, cols: usize, body: impl FnOnce(&mut CppWriter)) {
        self.pragma("unroll");
        self.block(format_args!("for (int r = 0; r < {rows}; ++r) "), "", |w| {
            w.pragma("unroll");
            w.block(format_args!("for (int c = 0; c < {cols}; ++c) "), "", body);
        });
    }

    /// One pixel: `expression` with the operands named as in the table of operations.
    fn pixel(&mut self, p: &PixelStmt, to: &str, values: &[impl Display], expression: &str) {
        let result = p.result.name();
        // Results of comparisons, and masks, which are bytes here.
        let compared = match p.op {
            InstrOp::Pixel(op) => op == PixelOp::Threshold,
            InstrOp::Convert(_) => p.operand == DType::U8,
        };
        let hidden = if compared && p.result.is_float() { "hs_opaque" } else { "" };
        let op = match p.op {
            InstrOp::Pixel(op) => op,
            InstrOp::Convert(rule) => {
                let function = match rule {
                    Conversion::Nearest => "hs_to",
                    Conversion::Cast => "hs_cast",
                };
                let all = values.iter().take(1);
                all.for_each(|v| self.line(format_args!("{to} = {hidden}({function}<{result}>({v}));")));
                return;
            }
        };
        let names = if op.info().kind == PixelKind::Select { ["m", "b", "c"] } else { ["a", "b", "c"] };
        let (mut outer, mut inner) = (String::new(), String::new());
        for (j, (name, value)) in names.into_iter().zip(values).enumerate() {
            let dtype = op.operand(j, p.operand).name();
            // The table names operands a, b, c, and c is also the loop's column: o0, o1, o2 are bound first.
            let _ = write!(outer, "const {dtype} o{j} = {value}; ");
            let _ = write!(inner, "const {dtype} {name} = o{j}; ");
        }
        self.line(format_args!(
            "typedef {} T; {outer}{result}& to = {to}; {{ {inner}to = {hidden}(({result}){expression}); }}",
            p.operand.name()
        ));
    }

    /// A division of every pixel that is correct except for rare operands, which `hs_division` detects. If there are
    /// any, a loop over copies of the operands divides all pixels again as the processor does it. Inlining this
    /// division for each pixel, where every register is taken, took a quarter of the compile time of a detector's
    /// kernel.
    fn divide(&mut self, id: usize, (rows, cols): (usize, usize), one: bool, q: &PixelStmt) {
        let quick = match q.op {
            InstrOp::Pixel(PixelOp::AbsDiv) => format!("d{id}.absdiv(a, b, c)"),
            _ if one => format!("d{id}.over(a, b)"),
            _ => format!("d{id}.div(a, b)"),
        };
        let to = format!("{}[r][c]", q.to);
        let (count, at) = (rows * cols, format!("r * {cols} + c"));
        self.line(format_args!("hs_division d{id};"));
        self.each_pixel(rows, cols, |w| w.pixel(q, &to, &q.values, &quick));
        self.block(format_args!("if (d{id}.rare()) "), "", |w| {
            w.line(format_args!("f32 n[{count}], d[{count}];"));
            let mut copies: Vec<String> = q.values.iter().map(Expr::to_string).collect();
            w.each_pixel(rows, cols, |w| {
                for (copy, value) in ["n", "d"].into_iter().zip(&mut copies) {
                    w.line(format_args!("{copy}[{at}] = {value};"));
                    *value = format!("{copy}[e]");
                }
            });
            w.pragma("unroll 1");
            w.block(format_args!("for (int e = 0; e < {count}; ++e) "), "", |w| {
                w.pixel(q, "n[e]", &copies, q.expression());
            });
            w.each_pixel(rows, cols, |w| w.line(format_args!("{to} = n[{at}];")));
        });
    }

    fn row_passes(&mut self, all: &SharedRowFilters) {
        let Some(first) = all.passes.first() else { return };
        let t = all.dtype.name();
        self.block("", "", |w| {
            let variables: String = first.extents.iter().map(|(name, _)| format!(", {name} = 0")).collect();
            w.line(format_args!("int pass = -1{variables};"));
            w.block("switch (k) ", "", |w| {
                for (n, pass) in all.passes.iter().enumerate() {
                    let values: String = pass.extents.iter().map(|(name, v)| format!(", {name} = {v}")).collect();
                    w.line(format_args!("case {}: pass = {n}{values}; break;", pass.iteration));
                }
                w.line("default: break;");
            });
            w.block("if (pass >= 0) ", "", |w| {
                w.line("__syncthreads();");
                let head =
                    format!("const auto row_pass = [&](const {t}* in, {t}* out) __attribute__((always_inline)) ");
                w.block(head, ";", |w| {
                    w.block("switch (pass) ", "", |w| {
                        for (n, pass) in all.passes.iter().enumerate() {
                            w.line(format_args!("case {n}: {}; break;", pass.pass));
                        }
                        w.line("default: break;");
                    });
                });
                w.line(format_args!("{};", all.stage));
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Operator, name, pixel};
    use super::*;

    #[test]
    fn parentheses_stand_where_they_are_needed() {
        let sum = || name("a") + 1;
        assert_eq!((sum() * 2 + 3).to_string(), "(a + 1) * 2 + 3");
        assert_eq!((name("b") - sum()).to_string(), "b - (a + 1)");
        assert_eq!((name("b") + sum() * sum()).to_string(), "b + (a + 1) * (a + 1)");
        assert_eq!((sum() - 1 - 2).to_string(), "a + 1 - 1 - 2");
        let inside = sum().with(Operator::Less, "n").with(Operator::And, name("x").with(Operator::LessOrEqual, "m"));
        assert_eq!(inside.to_string(), "a + 1 < n && x <= m");
        let half = (sum().with(Operator::Remainder, 2)).with(Operator::Equal, name("b").with(Operator::Divide, sum()));
        assert_eq!(half.to_string(), "(a + 1) % 2 == b / (a + 1)");
        let chosen = || sum().with(Operator::Less, "n").choose(name("v").element(sum()), 0);
        assert_eq!(chosen().to_string(), "a + 1 < n ? v[a + 1] : 0");
        assert_eq!((chosen() + 1).to_string(), "(a + 1 < n ? v[a + 1] : 0) + 1");
        assert_eq!(chosen().choose(chosen(), sum().element(2)).to_string().matches('(').count(), 2);
    }

    #[test]
    fn a_condition_of_one_assignment_takes_one_line() {
        let stmt = Stmt::If {
            condition: name("a"),
            then: vec![Stmt::Assign { to: pixel("v"), value: name("1") }],
            otherwise: vec![],
        };
        assert_eq!(text(&[stmt]), "    if (a) v[r][c] = 1;\n");
    }
}
