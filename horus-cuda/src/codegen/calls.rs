//! Templates that a kernel instantiates more than once, as functions that it calls: they are compiled once.
//!
//! A call hides from the compiler which registers hold what, and a row pass reads its taps from memory instead of having them
//! as operands. So only kernels that would take long to compile have calls (see [`super::cost::REPEATED`]).

use super::cost::CALL;

/// The instances of templates in a body.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// The text up to the arguments, about how many instructions it is, and how often it is there.
    instances: Vec<(String, usize, usize)>,
}

impl Calls {
    /// Another instance, `hs_stage<...>(`, of a template for which there is a function `hs_stage_called`.
    pub(super) fn add(&mut self, text: String, cost: usize) {
        match self.instances.iter_mut().find(|i| i.0 == text) {
            Some(known) => known.2 += 1,
            None => self.instances.push((text, cost, 1)),
        }
    }

    /// Makes calls of the instances that are repeated in `body`; how many instructions, about, this saves.
    pub(super) fn share(&self, body: &mut String) -> usize {
        let mut saved = 0;
        for (text, cost, count) in &self.instances {
            let (before, after) = (count * cost, cost + count * CALL);
            if after < before {
                *body = body.replace(text, &text.replacen('<', "_called<", 1));
                saved += before - after;
            }
        }
        saved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_repeated_is_called_where_that_saves_code() {
        let mut calls = Calls::default();
        for (text, cost) in
            [("hs_stage<19>(", 500), ("hs_column<19>(", 300), ("hs_stage<19>(", 500), ("hs_dense<1>(", 50)]
        {
            calls.add(text.into(), cost);
        }
        calls.add("hs_dense<1>(".into(), 50);
        let mut body =
            String::from("hs_stage<19>(a); hs_column<19>(b); hs_stage<19>(c); hs_dense<1>(d); hs_dense<1>(e);");
        assert_eq!(calls.share(&mut body), 500 - 2 * CALL);
        let expected =
            "hs_stage_called<19>(a); hs_column<19>(b); hs_stage_called<19>(c); hs_dense<1>(d); hs_dense<1>(e);";
        assert_eq!(body, expected);
    }
}
