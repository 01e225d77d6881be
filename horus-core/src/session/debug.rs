//! Warns of builds without optimisation.

use std::sync::Once;

/// Advice to a program whose kernels were compiled at this optimisation level.
fn advice(level: &str) -> Option<&'static str> {
    (level == "0").then_some(
        "horus-cpu was compiled without optimisation, which makes it some 75 times slower: build with `--release`, or \
         add to Cargo.toml: [profile.dev.package.\"*\"] opt-level = 3",
    )
}

/// Warns once in a process if this build is not optimised.
pub(crate) fn warn_of_slow_build() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if let Some(advice) = advice(horus_cpu::OPT_LEVEL) {
            crate::warn!("{advice}");
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_that_are_not_optimised_are_told_the_remedy() {
        let told = advice("0").expect("advice");
        assert!(told.contains("--release") && told.contains("[profile.dev.package.\"*\"] opt-level = 3"));
        assert!(!told.contains('\n') && !told.contains("  "), "one line");
        assert!(["1", "2", "3", "s", "z"].iter().all(|level| advice(level).is_none()));
        assert!(!horus_cpu::OPT_LEVEL.is_empty(), "the build tells");
    }
}
