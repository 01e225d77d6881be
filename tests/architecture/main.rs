//! The rules that keep the layers apart, checked on the source text.

mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use source::{Module, modules, occurs, tokens};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// All Rust files at or under `path`.
fn files(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let entries = fs::read_dir(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut out: Vec<PathBuf> = entries.flat_map(|e| files(&e.unwrap().path())).collect();
    out.retain(|p| p.extension().is_some_and(|e| e == "rs"));
    out
}

/// The crates whose modules are the rooms of the core. Each depends on those before it alone.
const CORE: [&str; 6] = ["horus-base", "horus-plan", "horus-host", "horus-cpu", "horus-files", "horus-core"];

/// The other crates of the workspace.
const BESIDE: [&str; 11] = [
    "horus-testing",
    "horus-cuda",
    "kernels",
    "horus-mpi",
    "horus-apps",
    "horus-partition",
    "horus-zarr",
    "horus-python",
    "models",
    "tools",
    "xtask",
];

/// Those of them that have a library.
fn libraries() -> impl Iterator<Item = &'static str> {
    BESIDE.into_iter().filter(|name| *name != "xtask")
}

fn core() -> Vec<Arc<Module>> {
    let all: Vec<Arc<Module>> = CORE.iter().flat_map(|name| modules(&root().join(name).join("src/lib.rs"))).collect();
    assert!(all.len() > 100, "{} modules", all.len());
    all
}

/// The modules at and under `places`, paths from the root of the core.
fn layer(places: &[&str]) -> Vec<Arc<Module>> {
    let mut all = core();
    for place in places {
        let place: Vec<&str> = place.split("::").collect();
        assert!(all.iter().any(|m| m.path == place), "there is no {place:?}");
    }
    let inside = |m: &Arc<Module>| places.iter().any(|p| m.path.join("::").strip_prefix(p).is_some_and(at_a_name));
    all.retain(inside);
    all
}

/// Returns `true` if the text after a module's path is empty, or names a module below.
fn at_a_name(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with("::")
}

fn forbid(places: &[&str], names: &[&str]) {
    for module in layer(places) {
        for name in names {
            if let Some(path) = module.names(name) {
                panic!("{} must not know `{name}`: it names `{path}`", module.file.display());
            }
        }
    }
}

const PLANNING: &[&str] = &["record", "region", "ops", "ir", "optimize", "plan"];
const WORLD: [&str; 8] = [
    "std::fs",
    "std::io",
    "std::time::Instant",
    "std::time::SystemTime",
    "std::thread",
    "std::sync::Mutex",
    "rayon",
    "std::env",
];
const LAYERS: [&str; 6] =
    ["crate::device", "crate::comm", "crate::execute", "crate::session", "crate::cpu", "crate::image"];

#[test]
fn planning_touches_no_device_file_clock_or_thread() {
    forbid(PLANNING, &WORLD);
    forbid(PLANNING, &LAYERS);
    forbid(PLANNING, &["crate::machine::here", "crate::machine::measure"]);
}

#[test]
fn costs_are_predicted_without_a_look_at_the_machine() {
    let pure = ["cost", "link", "profile", "set", "shipped", "table"].map(|m| format!("machine::{m}"));
    let pure: Vec<&str> = pure.iter().map(String::as_str).collect();
    forbid(&pure, &WORLD);
    forbid(&pure, &LAYERS);
    forbid(&pure, &["crate::plan", "crate::optimize"]);
}

#[test]
fn kernels_know_neither_images_nor_graphs_nor_states_nor_ranks() {
    forbid(&["cpu"], &["crate::image", "crate::ir::graph", "crate::plan", "crate::session", "crate::comm"]);
}

#[test]
fn devices_and_communicators_decide_no_transfer() {
    forbid(&["device", "comm", "host"], &["crate::plan"]);
    let decisions = ["crate::plan::state", "crate::plan::partition", "crate::plan::plan", "crate::plan::Plan"];
    forbid(&["execute::transfer", "execute::peers", "execute::routes"], &decisions);
}

#[test]
fn only_planning_execution_and_the_session_ask_where_an_image_is() {
    for module in core() {
        let room = module.path.first().map_or("", String::as_str);
        let may = ["plan", "execute", "session"].contains(&room);
        let asks = module.says("Residency") || module.says("Placement");
        assert!(may || !asks, "{} asks where an image is", module.file.display());
    }
}

/// The rooms that each room names, with the files in which it does.
fn knowledge(modules: &[Arc<Module>]) -> BTreeMap<String, BTreeMap<String, BTreeSet<PathBuf>>> {
    let room = |m: &Arc<Module>| m.path.first().cloned();
    let mut rooms: BTreeMap<String, BTreeMap<String, BTreeSet<PathBuf>>> =
        modules.iter().filter_map(room).map(|r| (r, BTreeMap::new())).collect();
    // Macros are at the root of the crate wherever they are defined.
    let macros: BTreeMap<String, String> =
        modules.iter().flat_map(|m| m.exported_macros.iter().map(move |n| (n.clone(), m.path[0].clone()))).collect();
    for module in modules {
        let Some(own) = room(module) else { continue };
        for path in &module.paths {
            let Some(name) = path.strip_prefix("crate::").and_then(|p| p.split("::").next()) else { continue };
            let known = macros.get(name).map_or(name, String::as_str);
            let file = module.file.display();
            assert!(rooms.contains_key(known), "{file} names `{path}`, which is in no room");
            if known != own {
                let files = rooms.entry(own.clone()).or_default().entry(known.to_owned()).or_default();
                files.insert(module.file.clone());
            }
        }
    }
    rooms
}

/// A cycle through `from`, if there is one: its rooms, beginning with `from`.
fn circle(from: &str, knows: &BTreeMap<String, BTreeMap<String, BTreeSet<PathBuf>>>) -> Option<Vec<String>> {
    let mut ways = vec![vec![from.to_owned()]];
    let mut seen = BTreeSet::new();
    while !ways.is_empty() {
        let mut longer = Vec::new();
        for way in ways {
            let last = way.last().expect("a way begins");
            for next in knows[last].keys() {
                if next == from {
                    return Some(way);
                }
                if seen.insert(next.clone()) {
                    longer.push([way.clone(), vec![next.clone()]].concat());
                }
            }
        }
        ways = longer;
    }
    None
}

#[test]
fn no_circle_leads_through_two_rooms() {
    let knows = knowledge(&core());
    assert!(knows["plan"].contains_key("ir") && knows["cpu"].contains_key("device"), "nothing is read: {knows:#?}");
    assert!(knows["ops"].contains_key("dtype"), "the crates below count: {knows:#?}");
    for room in knows.keys() {
        let Some(way) = circle(room, &knows) else { continue };
        let steps = way.iter().zip(way.iter().cycle().skip(1));
        let told: Vec<String> = steps.map(|(a, b)| format!("{a} knows {b} in {:?}", knows[a][b])).collect();
        panic!("rooms know each other in a circle:\n{}", told.join("\n"));
    }
}

/// The rooms of the session, each of which names the ones before it only.
const SESSION: [&str; 8] = ["devices", "blocks", "cache", "images", "state", "compile", "engine", "forecast"];

#[test]
fn the_rooms_of_the_session_know_each_other_one_way() {
    let mut found = 0;
    for module in core().iter().filter(|m| m.path.first().is_some_and(|room| room == "session")) {
        let Some(own) = module.path.get(1).and_then(|room| SESSION.iter().position(|name| name == room)) else {
            continue;
        };
        found += 1;
        for path in &module.paths {
            let Some(name) = path.strip_prefix("crate::session::").and_then(|p| p.split("::").next()) else { continue };
            let known = SESSION.iter().position(|room| *room == name);
            assert!(known.is_none_or(|known| known <= own), "{} names `{path}`", module.file.display());
        }
    }
    assert!(found > 20, "{found} files were read");
}

#[test]
fn no_circle_leads_through_two_files_of_the_session() {
    let core = core();
    let modules = core.iter().filter(|m| m.path.first().is_some_and(|room| room == "session") && m.path.len() > 1);
    let files: Vec<(String, &Arc<Module>)> = modules.map(|m| (m.path.join("::"), m)).collect();
    let mut knows: BTreeMap<String, BTreeMap<String, BTreeSet<PathBuf>>> =
        files.iter().map(|(own, _)| (own.clone(), BTreeMap::new())).collect();
    for (own, module) in &files {
        for path in module.paths.iter().filter_map(|path| path.strip_prefix("crate::")) {
            let named = files.iter().filter(|(name, _)| path.starts_with(&format!("{name}::")));
            let Some((known, _)) = named.max_by_key(|(name, _)| name.len()).filter(|(name, _)| name != own) else {
                continue;
            };
            knows.entry(own.clone()).or_default().entry(known.clone()).or_default().insert(module.file.clone());
        }
    }
    assert!(knows["session::engine::run"].contains_key("session::images::image"), "nothing is read: {knows:#?}");
    for file in knows.keys() {
        assert_eq!(circle(file, &knows), None, "files know each other in a circle");
    }
}

#[test]
fn a_circle_over_three_rooms_is_found() {
    let knows = |pairs: &[(&str, &str)]| {
        let mut all: BTreeMap<String, BTreeMap<String, BTreeSet<PathBuf>>> = BTreeMap::new();
        for (a, b) in pairs {
            all.entry(b.to_string()).or_default();
            all.entry(a.to_string()).or_default().insert(b.to_string(), BTreeSet::new());
        }
        all
    };
    let open = knows(&[("a", "b"), ("b", "c"), ("a", "c")]);
    assert!(open.keys().all(|room| circle(room, &open).is_none()));
    let closed = knows(&[("a", "b"), ("b", "c"), ("c", "a"), ("d", "a")]);
    assert_eq!(circle("a", &closed), Some(["a", "b", "c"].map(str::to_owned).to_vec()));
    assert_eq!(circle("d", &closed), None);
}

#[test]
fn the_core_names_no_backend() {
    for name in CORE {
        let manifest = fs::read_to_string(root().join(name).join("Cargo.toml")).unwrap();
        for word in ["horus-cuda", "horus-mpi", "cudarc", "\nmpi"] {
            assert!(!manifest.contains(word), "{name} depends on {word}");
        }
    }
    for module in core() {
        assert!(!module.says("cudarc"), "{} names cudarc", module.file.display());
    }
}

/// The manifest of a crate, up to what only its tests depend on.
fn shipped(name: &str) -> String {
    let manifest = fs::read_to_string(root().join(name).join("Cargo.toml")).unwrap();
    manifest.split("[dev-dependencies]").next().unwrap_or_default().to_owned()
}

#[test]
fn backends_know_the_core_alone() {
    for backend in ["horus-cuda", "horus-mpi", "horus-zarr"] {
        let manifest = shipped(backend);
        let names = manifest.lines().filter_map(|l| l.split(['.', ' ', '=']).next());
        let others: Vec<&str> =
            names.filter(|n| n.starts_with("horus") && !["horus-core", "horus-cuda-kernels"].contains(n)).collect();
        assert!(others.is_empty(), "{backend} depends on {others:?}");
    }
}

#[test]
fn the_oracle_is_of_tests_alone() {
    for name in [""].into_iter().chain(CORE).chain(BESIDE).filter(|name| *name != "horus-testing") {
        let dependencies = shipped(name).split_once("[dependencies]").map(|(_, rest)| rest.to_owned());
        let all = dependencies.unwrap_or_default();
        assert!(!all.contains("horus-testing"), "{name} ships the oracle");
    }
}

/// Folders of the workspace with Rust in them.
fn folders() -> Vec<PathBuf> {
    let crates = [""].into_iter().chain(CORE).chain(BESIDE);
    let all = crates.flat_map(|c| ["src", "tests", "examples", "benches"].map(|f| root().join(c).join(f)));
    all.filter(|f| f.exists()).collect()
}

#[test]
fn unsafe_code_stays_where_it_may_be() {
    // The compiler denies unsafe code (`unsafe_code` in Cargo.toml); these places allow it.
    let places = ["horus-cpu/src", "horus-host/src", "horus-cuda", "horus-mpi", "horus-python/src/foreign"]
        .map(|p| root().join(p));
    let mut seen = 0;
    for file in folders().iter().flat_map(|f| files(f)) {
        let code = tokens(&file);
        let allowed = places.iter().any(|p| file.starts_with(p));
        let (uses, allows) = (occurs(code.clone(), "unsafe"), occurs(code, "unsafe_code"));
        assert!(allowed || !(uses || allows), "unsafe code in {}", file.display());
        seen += usize::from(uses);
    }
    assert!(seen > 10, "unsafe code is found in {seen} files");
    assert!(!occurs(tokens(&root().join("horus-core/src/lib.rs")), "unsafe"));
}

/// Names of two published types each, and the reason.
const SHARED: &[(&str, &str)] =
    &[("Session", "the user's session is the core's with a choice among this machine's devices")];

#[test]
fn no_two_published_types_share_a_name() {
    let mut types: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for library in [""].into_iter().chain(CORE).chain(libraries()) {
        for module in modules(&root().join(library).join("src/lib.rs")) {
            for name in &module.published_types {
                types.entry(name.clone()).or_default().push(module.file.clone());
            }
        }
    }
    assert!(types.len() > 150, "{} types", types.len());
    let excepted = |name: &str| SHARED.iter().any(|(shared, _)| *shared == name);
    let found: Vec<_> = types.iter().filter(|(name, files)| files.len() > 1 && !excepted(name)).collect();
    assert!(found.is_empty(), "give each a name of its own, or a reason: {found:#?}");
    for (name, _) in SHARED {
        assert!(types.get(*name).is_some_and(|files| files.len() > 1), "{name} is one type, and needs no reason");
    }
}

/// Modules that name one operation of each kind, tests and the command's table of pages apart:
/// about as many files are touched to add another. Goals: 2 for a pixel operation, 7 for a leaf, a
/// reduction and an operation on whole images, 6 for a border mode, 10 for a pixel type. The
/// numbers may only go down.
const TOUCHED: &[(&str, usize)] = &[
    // A pixel operation.
    ("Hypot", 1),
    // Operations on whole images.
    ("Lookup", 6),
    ("Remap", 6),
    ("RunningDepth", 6),
    ("NearestOnLine", 7),
    ("Tiled", 6),
    ("Components", 7),
    ("Sliding", 7),
    ("Reconstruction", 9),
    ("LabelReduce", 6),
    // A leaf.
    ("Median", 6),
    // A reduction.
    ("Moments", 5),
    // A border mode.
    ("Reflect101", 5),
    // A pixel type.
    ("I16", 8),
];

#[test]
fn few_modules_name_an_operation() {
    let all = [""].into_iter().chain(CORE).chain(libraries());
    let all: Vec<Arc<Module>> = all.flat_map(|l| modules(&root().join(l).join("src/lib.rs"))).collect();
    let count = |word: &str| all.iter().filter(|m| m.says(word)).count();
    let found: Vec<(&str, usize)> = TOUCHED.iter().map(|(word, _)| (*word, count(word))).collect();
    assert_eq!(found, TOUCHED, "modules that name each");
}
