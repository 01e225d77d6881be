//! Functions for templates that a kernel instantiates more than once: each is compiled once.
//!
//! A call hides the assignment of registers from the compiler, and a row filter reads its taps from memory instead of
//! using them as operands. Only kernels that take long to compile have calls (see
//! [`REPEATED`](super::super::cost::REPEATED)).

use std::collections::BTreeMap;

use super::super::cost::CALL;
use super::{CppCall, Stmt};

/// Replaces repeated instances in `body` by calls; returns the approximate number of instructions
/// saved.
pub(in crate::codegen) fn share(body: &mut [Stmt]) -> usize {
    let mut counts: BTreeMap<(String, Vec<String>), usize> = BTreeMap::new();
    each(body, &mut |call| {
        if call.inline_cost.is_some() {
            *counts.entry((call.name.clone(), call.template.clone())).or_default() += 1;
        }
    });
    let mut inline = 0;
    let mut shared: BTreeMap<(String, Vec<String>), usize> = BTreeMap::new();
    each(body, &mut |call| {
        let instance = (call.name.clone(), call.template.clone());
        if let (Some(cost), Some(&count)) = (call.inline_cost, counts.get(&instance))
            && cost + count * CALL < count * cost
        {
            call.shared = true;
            inline += cost;
            shared.insert(instance, cost + count * CALL);
        }
    });
    inline - shared.values().sum::<usize>()
}

/// Visits every call that is a statement, at any depth.
fn each(body: &mut [Stmt], seen: &mut impl FnMut(&mut CppCall)) {
    for stmt in body {
        match stmt {
            Stmt::Call(call) => seen(call),
            Stmt::EachPixel { body, .. } | Stmt::For { body, .. } => each(body, seen),
            Stmt::If { then, otherwise, .. } => {
                each(then, seen);
                each(otherwise, seen);
            }
            Stmt::Switch { cases, .. } => cases.iter_mut().for_each(|(_, body)| each(body, seen)),
            Stmt::Array { .. }
            | Stmt::Let { .. }
            | Stmt::Assign { .. }
            | Stmt::Pixel(_)
            | Stmt::Divide { .. }
            | Stmt::Synchronize
            | Stmt::AwaitCopies
            | Stmt::RowPasses(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{args, template, text};
    use super::*;

    #[test]
    fn what_is_repeated_is_called_where_that_saves_code() {
        let call =
            |name, size: usize, arg, cost| Stmt::from(CppCall::new(name, template![size], args![arg]).shareable(cost));
        let looped = Stmt::iterations(3, 1, vec![call("hs_stage", 19, "c", 500)]);
        let mut body = vec![
            call("hs_stage", 19, "a", 500),
            call("hs_stage", 21, "a", 500),
            call("hs_column", 19, "b", 300),
            looped,
            call("hs_dense", 1, "d", 50),
            call("hs_dense", 1, "e", 50),
        ];
        assert_eq!(share(&mut body), 500 - 2 * CALL);
        let text = text(&body);
        assert_eq!(text.matches("hs_stage_called<19>(").count(), 2, "{text}");
        assert_eq!(text.matches("_called").count(), 2, "{text}");
    }
}
