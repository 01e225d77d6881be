//! Tells the crate how its kernels are optimised.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let level = std::env::var("OPT_LEVEL").unwrap_or_default();
    println!("cargo:rustc-env=BUILT_WITH_OPT_LEVEL={level}");
}
