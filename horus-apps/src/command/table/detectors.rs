//! The detectors of lines and edges as operations.

use super::CommandOperation;
use crate::cli::{parse_sigma, parse_step};
use crate::command::arguments::Arguments;
use crate::command::chain::ChainError;
use crate::command::value::Current;
use crate::detectors::{self, Detector, Params};
use horus::prelude::*;
use horus_core::ops::composed;
use horus_core::ops::describe::{Accepts, Description, OperationGroup, Parameter, Pattern, description, optional};

const PARAMETERS: &[Parameter] = &[
    optional("theta_step", Accepts::Number, "15", "degrees between orientations"),
    optional("sigma_u", Accepts::Numbers, "3,5,7", "scales along the line, in pixels"),
    optional("sigma_v", Accepts::Numbers, "1,2,3", "scales across the line, in pixels"),
];

macro_rules! detector {
    ($name:ident, $summary:literal) => {{
        const DESCRIBED: Description =
            description(stringify!($name), OperationGroup::Detectors, Pattern::Composition, $summary)
                .only_command()
                .takes(PARAMETERS)
                .example(concat!(stringify!($name), " theta_step=90 sigma_u=2 sigma_v=1 normalize"));
        CommandOperation::picture(&DESCRIBED, |v, a| detected(v, a, detectors::$name))
    }};
}

pub(super) const ROWS: &[CommandOperation] = &[
    CommandOperation::picture(&composed::CANNY, |v, a| {
        Ok(v.becomes(canny(&v.luminance(), a.number("sigma"), a.number("low"), a.number("high"))))
    }),
    detector!(convrot, "Lines, by rotating the luminance and filtering along its axes"),
    detector!(conv2d, "Lines, by filtering the luminance with rotated two-dimensional kernels"),
    detector!(convuv, "Lines, by filtering the luminance along and across each orientation"),
];

fn detected(v: &Current, a: &Arguments<'_>, detector: Detector) -> Result<Current, ChainError> {
    let scales = |name: &str| {
        let values = a.numbers(name).into_iter().map(|v| parse_sigma(&v.to_string()));
        values.collect::<Result<Vec<f64>, _>>().map_err(|e| ChainError::Message(format!("{name}: {e}")))
    };
    let step = parse_step(&a.number("theta_step").to_string()).map_err(ChainError::Message)?;
    let params = Params { theta_step: step, sigma_u: scales("sigma_u")?, sigma_v: scales("sigma_v")? };
    Ok(Current::unit(detector(&v.luminance(), &params)))
}
