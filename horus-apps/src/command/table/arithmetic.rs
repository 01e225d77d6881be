//! Arithmetic: the library's table of pixel operations, and operations of the command only.

use horus::prelude::*;
use horus_core::image::bindings;
use horus_core::ops::pixel::{PixelKind, PixelOp, TABLE};

use horus_core::ops::describe::{Accepts, Description, OperationGroup, Pattern, description, required};

use super::{CommandOperation, RecordFunction};
use crate::batch::Response;
use crate::command::arguments::{Arguments, exact, with_term};
use crate::command::chain::ChainError;
use crate::command::value::{Current, numbers};
use horus_core::ops::pixel;

/// Operations that are not in the library's table: scalars with operands, masks, and compositions.
const INVERT: Description = description(
    "invert",
    OperationGroup::Arithmetic,
    Pattern::Composition,
    "The negative, white minus `a`; of a mask, its complement",
)
.only_command()
.also(&["negate"])
.example("invert");
const GAMMA: Description = description(
    "gamma",
    OperationGroup::Arithmetic,
    Pattern::Composition,
    "`a` to the power `exponent` on a scale where white is 1; yields `f32`",
)
.only_command()
.takes(&[required("exponent", Accepts::Number, "less than 1 brightens")])
.example("gamma 0.45");

const OWN: &[CommandOperation] = &[
    CommandOperation::picture(&pixel::ABSDIV, |v, a| {
        numbers!(v, image => {
            let eps = exact(image, a.number("eps"))?;
            with_term!(a.term(image, "b", v.white())?, b => v.becomes(image.absdiv(b, eps)))
        })
    }),
    CommandOperation::picture(
        &pixel::CLAMP,
        |v, a| numbers!(v, image => v.becomes(image.clamp(exact(image, a.number("lo"))?, exact(image, a.number("hi"))?))),
    ),
    CommandOperation::picture(&INVERT, |v, _| match &v.pixels {
        Response::Mask(mask) => Ok(v.becomes(!mask)),
        // If white is the maximum, inversion is the difference from white, in every type.
        _ if !v.dtype().is_float() => numbers!(v, image => v.becomes(image.absdiff(exact(image, v.white())?))),
        _ => numbers!(v, image => v.becomes(-image + exact(image, v.white())?)),
    }),
    CommandOperation::picture(&GAMMA, |v, a| Ok(Current::unit(v.to_unit().max(0.0).pow(a.number("exponent") as f32)))),
];

/// All rows.
pub(super) fn rows() -> Vec<CommandOperation> {
    let simple = TABLE.iter().filter(|row| !matches!(row.kind, PixelKind::Ternary | PixelKind::Select));
    let simple =
        simple.map(|row| CommandOperation { described: &row.described, record: RecordFunction::Pixel(row.op) });
    simple.chain(OWN.iter().copied()).collect()
}

/// Records an operation of one or two operands of the library's table.
pub(crate) fn pixel(op: PixelOp, v: &Current, a: &Arguments<'_>) -> Result<Current, ChainError> {
    numbers!(v, image => match op.info().kind {
        PixelKind::Unary => v.becomes(bindings::unary(image, op)),
        PixelKind::Compare => with_term!(a.term(image, "b", v.white())?, b => v.becomes(bindings::compare(image, op, b))),
        _ => with_term!(a.term(image, "b", v.white())?, b => v.becomes(bindings::binary(image, op, b))),
    })
}
