//! Arithmetic: the library's table of pixel operations, and operations beyond it.

use horus::core::ops::pixel::{PixelKind, PixelOp, TABLE};
use horus::prelude::*;

use super::{Family, Operation, Record};
use crate::batch::Response;
use crate::command::arguments::{Arguments, exact, with_term};
use crate::command::chain::Fault;
use crate::command::parameter::{Kind, Parameter, required};
use crate::command::value::{Current, numbers};

const B: &[Parameter] = &[required("b", Kind::Operand, "")];

/// Operations beyond the library's table: scalars beside operands, masks, and compositions.
const OWN: &[Operation] = &[
    Operation {
        name: "absdiv",
        aliases: &[],
        family: Family::Arithmetic,
        parameters: &[
            required("b", Kind::Operand, ""),
            required("eps", Kind::Number, "where `|b|` is less, the result is 0"),
        ],
        help: "`|a / b|`, 0 where `|b| < eps`",
        example: "luminance absdiv @in 0.001",
        record: Record::Picture(|v, a| {
            numbers!(v, image => {
                let eps = exact(image, a.number("eps"))?;
                with_term!(a.term(image, "b", v.white())?, b => v.becomes(image.absdiv(b, eps)))
            })
        }),
    },
    Operation {
        name: "clamp",
        aliases: &["clip"],
        family: Family::Arithmetic,
        parameters: &[required("lo", Kind::Number, ""), required("hi", Kind::Number, "")],
        help: "`a` limited to `lo..=hi`; NaN becomes `lo`",
        example: "luminance clamp 0.2 0.8",
        record: Record::Picture(
            |v, a| numbers!(v, image => v.becomes(image.clamp(exact(image, a.number("lo"))?, exact(image, a.number("hi"))?))),
        ),
    },
    Operation {
        name: "invert",
        aliases: &["negate"],
        family: Family::Arithmetic,
        parameters: &[],
        help: "The negative, white minus `a`; of a mask, its complement",
        example: "invert",
        record: Record::Picture(|v, _| match &v.pixels {
            Response::Mask(mask) => Ok(v.becomes(!mask)),
            // If white is the maximum, inversion is the difference from white, in every type.
            _ if !v.dtype().is_float() => numbers!(v, image => v.becomes(image.absdiff(exact(image, v.white())?))),
            _ => numbers!(v, image => v.becomes(-image + exact(image, v.white())?)),
        }),
    },
    Operation {
        name: "gamma",
        aliases: &[],
        family: Family::Arithmetic,
        parameters: &[required("exponent", Kind::Number, "less than 1 brightens")],
        help: "`a` to the power `exponent` on a scale where white is 1; yields `f32`",
        example: "gamma 0.45",
        record: Record::Picture(|v, a| Ok(Current::unit(v.to_unit().max(0.0).pow(a.number("exponent") as f32)))),
    },
];

/// All rows.
pub(super) fn rows() -> Vec<Operation> {
    let simple = TABLE.iter().filter(|row| !matches!(row.kind, PixelKind::Ternary | PixelKind::Select));
    let simple = simple.map(|row| Operation {
        name: row.name,
        aliases: &[],
        family: if row.kind == PixelKind::Compare { Family::Thresholds } else { Family::Arithmetic },
        parameters: if row.kind == PixelKind::Unary { &[] } else { B },
        help: row.doc,
        example: "",
        record: Record::Pixel(row.op),
    });
    simple.chain(OWN.iter().copied()).collect()
}

/// Records an operation of one or two operands of the library's table.
pub(crate) fn pixel(op: PixelOp, v: &Current, a: &Arguments<'_>) -> Result<Current, Fault> {
    numbers!(v, image => match op.info().kind {
        PixelKind::Unary => v.becomes(image.unary(op)),
        PixelKind::Compare => with_term!(a.term(image, "b", v.white())?, b => v.becomes(image.compare(op, b))),
        _ => with_term!(a.term(image, "b", v.white())?, b => v.becomes(image.binary(op, b))),
    })
}
