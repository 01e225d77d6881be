//! Reads of other planes: a block reads one plane of an input, the same for all of its threads.

use horus_core::dtype::{DType, Scalar};
use horus_core::ops::planes::PlaneMap;

use super::border_name;
use super::cpp::{CppCall, Expr, Operator, Stmt, args, name, template};
use super::params::KernelParams;

/// The plane of an input that a leaf reads.
pub(super) struct PlaneRead {
    /// Its number: a parameter, or a variable of the block.
    pub(super) plane: Expr,
    /// The value read if the number is below 0, where that is possible.
    pub(super) outside: Option<Expr>,
}

impl PlaneRead {
    /// The plane that `map` reads for the plane of the block; `label` makes names unique.
    pub(super) fn new(
        map: &PlaneMap,
        dtype: DType,
        label: &str,
        params: &mut KernelParams,
        out: &mut Vec<Stmt>,
    ) -> PlaneRead {
        if let Some(plane) = map.fixed() {
            params.int(&format!("plane_of{label}"), plane.cast_signed());
            return PlaneRead { plane: name(format_args!("p.plane_of{label}")), outside: None };
        }
        // Adjacent levels differ in their offset only.
        let channel = map.channel.map_or(-1, usize::cast_signed);
        let fields = [map.channels as i32, map.depth as i32, map.stride as i32, channel as i32, map.step];
        let fields = params.shared_ints("levels", fields);
        params.int(&format!("offset{label}"), map.offset as isize);
        let read = CppCall::new(
            "hs_plane_read",
            template![border_name(map.border)],
            args!["plane", fields, format!("p.offset{label}")],
        );
        let plane = format!("plane_of{label}");
        out.push(Stmt::constant("int", &plane, read));
        let outside = map.border.constant().map(|v| params.constant(Scalar::from_f64(dtype, v), dtype));
        PlaneRead { plane: name(plane), outside }
    }

    /// `read` if the plane exists; else the constant, for every pixel of the array.
    pub(super) fn guarded(self, extents: (usize, usize), array: &str, read: Stmt) -> Stmt {
        match self.outside {
            None => read,
            Some(value) => Stmt::If {
                condition: self.plane.with(Operator::Less, 0),
                then: vec![Stmt::fill(extents, array, value)],
                otherwise: vec![read],
            },
        }
    }
}
