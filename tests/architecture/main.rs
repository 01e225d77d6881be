//! The rules that keep the layers apart, checked on the source text.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// All Rust files at or under `path`.
fn sources(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let entries = fs::read_dir(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut out: Vec<PathBuf> = entries.flat_map(|e| sources(&e.unwrap().path())).collect();
    out.retain(|p| p.extension().is_some_and(|e| e == "rs"));
    out
}

/// The code of a file without comments and without its unit tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    text.lines().filter(|l| !l.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

fn forbid(layer: &[&str], words: &[&str]) {
    for place in layer {
        for file in sources(&root().join("horus-core/src").join(place)) {
            let code = code(&file);
            for word in words {
                assert!(!code.contains(word), "{} must not know `{word}`", file.display());
            }
        }
    }
}

const PLANNING: &[&str] = &["record", "ops", "ir", "optimize", "plan"];

#[test]
fn planning_touches_no_device_file_clock_or_thread() {
    let world = ["std::fs", "std::io", "std::time", "std::thread", "std::sync::Mutex", "rayon", "std::env"];
    let layers = ["crate::device", "crate::comm", "crate::execute", "crate::session", "crate::cpu", "crate::image"];
    forbid(PLANNING, &world);
    forbid(PLANNING, &layers);
}

#[test]
fn kernels_know_neither_images_nor_graphs_nor_states_nor_ranks() {
    let words =
        ["crate::image", "crate::ir::graph", "crate::plan::state", "crate::plan", "crate::session", "crate::comm"];
    forbid(&["cpu"], &words);
}

#[test]
fn devices_and_communicators_decide_no_transfer() {
    forbid(&["device", "comm", "host"], &["crate::plan"]);
    let decisions = ["crate::plan::state", "crate::plan::partition", "crate::plan::{", "crate::plan::plan"];
    forbid(&["execute/transfer.rs", "execute/peers.rs", "execute/routes.rs"], &decisions);
}

#[test]
fn only_planning_execution_and_the_session_ask_where_an_image_is() {
    let core = root().join("horus-core/src");
    let allowed = ["plan", "execute", "session", "lib.rs"].map(|p| core.join(p));
    for file in sources(&core) {
        if !allowed.iter().any(|a| file.starts_with(a)) {
            let code = code(&file);
            assert!(
                !code.contains("Residency") && !code.contains("Placement"),
                "{} asks where an image is",
                file.display()
            );
        }
    }
}

#[test]
fn the_core_names_no_backend() {
    let manifest = fs::read_to_string(root().join("horus-core/Cargo.toml")).unwrap();
    for word in ["horus-cuda", "horus-mpi", "cudarc", "\nmpi"] {
        assert!(!manifest.contains(word), "horus-core depends on {word}");
    }
    for file in sources(&root().join("horus-core/src")) {
        assert!(!code(&file).contains("cudarc"), "{} names cudarc", file.display());
    }
}

#[test]
fn backends_know_the_core_alone() {
    for backend in ["horus-cuda", "horus-mpi"] {
        let manifest = fs::read_to_string(root().join(backend).join("Cargo.toml")).unwrap();
        let names = manifest.lines().filter_map(|l| l.split(['.', ' ', '=']).next());
        let others: Vec<&str> = names.filter(|n| n.starts_with("horus") && *n != "horus-core").collect();
        assert!(others.is_empty(), "{backend} depends on {others:?}");
    }
}

#[test]
fn unsafe_code_stays_where_it_may_be() {
    for file in sources(&root().join("horus-core/src")).into_iter().chain(sources(&root().join("src"))) {
        let rooms = ["cpu", "host"].map(|room| root().join("horus-core/src").join(room));
        let in_kernels = rooms.iter().any(|room| file.starts_with(room));
        assert!(in_kernels || !code(&file).contains("unsafe {"), "unsafe code in {}", file.display());
    }
}
