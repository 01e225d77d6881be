//! Completeness and accuracy of the gallery of examples, the table of names and the book.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use horus::comm::{Communicator, ThreadComm};
use horus::prelude::*;
use horus_core::cpu::device::CpuDevice;
use horus_core::ops::described;
use horus_core::ops::pixel::TABLE;
use horus_testing::simulated::SimulatedDevice;

#[path = "../docs/book/code.rs"]
mod book;
// Has a `main`, which is not called here.
#[allow(dead_code)]
#[path = "../examples/tutorial.rs"]
mod tutorial;

const GALLERY: &str = include_str!("../examples/README.md");
const NAMES: &str = include_str!("../docs/names.md");
const OPERATIONS: &str = include_str!("../docs/operations.md");

/// The most lines of an example, and the most bytes of its picture.
const LINES: usize = 45;
const BYTES: u64 = 100 << 10;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn examples() -> Vec<String> {
    let files = fs::read_dir(root().join("examples")).expect("the folder of examples");
    let names = files.map(|f| f.expect("a file").file_name().into_string().expect("a name in UTF-8"));
    let mut names: Vec<String> = names.filter_map(|n| n.strip_suffix(".rs").map(str::to_owned)).collect();
    names.sort();
    names
}

#[test]
fn each_example_is_short_and_has_its_place_in_the_gallery() {
    let names = examples();
    assert!(names.len() >= 15, "{names:?}");
    for name in names {
        let text = fs::read_to_string(root().join(format!("examples/{name}.rs"))).expect("an example");
        assert!(text.lines().count() <= LINES, "{name} has {} lines", text.lines().count());
        assert!(text.contains("use horus::prelude::*;"), "{name} takes the prelude");
        let command = format!("cargo run --release --example {name}");
        assert!(text.contains(&format!("`{command}`")), "{name} says how to run it");
        let row = GALLERY.lines().find(|l| l.contains(&format!("`{command}`")));
        let row = row.unwrap_or_else(|| panic!("examples/README.md does not show {name}"));
        assert!(row.contains(&format!("({name}.rs)")) && row.contains(&format!("(../assets/gallery/{name}.png)")));
        let picture = fs::metadata(root().join(format!("assets/gallery/{name}.png")));
        let bytes = picture.unwrap_or_else(|e| panic!("the picture of {name}: {e}")).len();
        assert!(bytes <= BYTES, "the picture of {name} has {bytes} bytes");
    }
}

/// Returns `true` if every example is newer than the files of the workspace that it was built from.
fn up_to_date(programs: &Path) -> bool {
    let time = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
    examples().into_iter().all(|name| {
        // "PROGRAM: FILE FILE ...", as Cargo writes it.
        let Ok(built) = fs::read_to_string(programs.join(format!("{name}.d"))) else { return false };
        let program = time(&programs.join(&name));
        let mut sources = built.split_whitespace().skip(1);
        program.is_some() && sources.all(|source| time(Path::new(source)).is_some_and(|source| Some(source) <= program))
    })
}

/// Runs each example as a user does, and compares its output.
#[test]
fn the_gallery_shows_what_the_examples_write() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("assets")).expect("a folder");
    fs::copy(root().join("assets/vessels.png"), folder.path().join("assets/vessels.png")).expect("a copy");
    let programs = std::env::current_exe().expect("a path").with_file_name("").join("../examples");
    // `cargo test` has built them; `cargo test --test guide` has not.
    if !up_to_date(&programs) {
        // Built for the whole workspace, like the test: single packages have other features, and everything would be
        // compiled again.
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--workspace", "--examples"]).current_dir(root());
        if !cfg!(feature = "cuda") {
            build.arg("--no-default-features");
        }
        assert!(build.status().expect("cargo").success(), "examples build");
    }

    let session = Session::builder().device("cpu").build().expect("a session on the CPU");
    for name in examples() {
        let run = Command::new(programs.join(&name)).current_dir(folder.path()).output();
        let run = run.unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(run.status.success(), "{name}: {}", String::from_utf8_lossy(&run.stderr));
        let open =
            |path: PathBuf| AnyImage::open(&session, &path).unwrap_or_else(|e| panic!("{name}: {e}")).convert::<i32>();
        let written = open(folder.path().join(format!("{name}.png")));
        let shown = open(root().join(format!("assets/gallery/{name}.png")));
        let difference = written.absdiff(shown).max_value().get().unwrap_or_else(|e| panic!("{name}: {e}"));
        // The platform's mathematical functions may round a pixel the other way.
        assert!(difference <= 1, "{name} writes another picture than the gallery shows, by {difference} levels");
    }
}

/// The names in the first column of the Rust tables, except the first table.
fn named() -> BTreeSet<String> {
    let (_, tables) = NAMES.split_once("## In and out").expect("the tables");
    // The names of Python are tested in test_book.py.
    let (tables, _) = tables.split_once("## From CuPy").expect("the names in Python");
    let cells = tables.lines().filter_map(|l| l.strip_prefix('|')?.split('|').next());
    let code = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>());
    code.collect()
}

/// The names of public functions in the files at or under `path`.
fn functions(path: PathBuf) -> BTreeSet<String> {
    if path.is_dir() {
        return fs::read_dir(path).expect("a folder").flat_map(|f| functions(f.expect("a file").path())).collect();
    }
    let text = fs::read_to_string(path).expect("a file");
    let after = text.lines().filter_map(|l| l.trim().strip_prefix("pub fn "));
    let names = after.map(|l| l.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next().unwrap_or_default());
    names.filter(|n| !n.is_empty()).map(str::to_owned).collect()
}

/// The room `name`, in whichever crate of the library it is.
fn room(name: &str) -> PathBuf {
    let crates = ["horus-core", "horus-files", "horus-plan", "horus-host", "horus-base"];
    if ["files", "host"].contains(&name) {
        return root().join(format!("horus-{name}/src"));
    }
    let mut places = crates.iter().map(|c| root().join(c).join("src").join(name));
    places.find(|place| place.exists()).unwrap_or_else(|| panic!("no crate has {name}"))
}

fn operations() -> BTreeSet<String> {
    let mut all = functions(root().join("horus-core/src/image"));
    all.extend(TABLE.iter().map(|row| row.name.to_owned()));
    all
}

#[test]
fn names_are_of_what_there_is() {
    let mut there_is = operations();
    for place in ["filters", "files", "io", "ops/neighbourhood.rs"] {
        there_is.extend(functions(room(place)));
    }
    for name in named() {
        let method = name.rsplit("::").next().unwrap_or_default();
        assert!(there_is.contains(method), "docs/names.md names `{name}`, which there is not");
    }
    for row in described().filter(|row| !row.method.is_empty()) {
        assert!(there_is.contains(row.method), "`{}` is described as `{}`, which there is not", row.name, row.method);
    }
}

#[test]
fn each_method_is_described_or_named() {
    // Hidden, of other kinds, or without counterparts in other libraries.
    let others = [
        "at",
        "binary",
        "cast",
        "channels",
        "affine_inside",
        "box_variance",
        "check",
        "compare",
        "depth",
        "dtype",
        "forecast",
        "forecast_memory",
        "get",
        "get_all",
        "height",
        "in_place",
        "lower",
        "new",
        "order_digit",
        "rank_at",
        "related",
        "session",
        "shape",
        "to_image",
        "truncated",
        "unary",
        "upper",
        "width",
        "worms",
    ];
    let mut known = named();
    known.extend(described().flat_map(|row| [row.name, row.method]).map(str::to_owned));
    for name in operations() {
        let known = others.contains(&name.as_str()) || known.contains(&name);
        assert!(known, "neither a description nor docs/names.md has `{name}`");
    }
}

/// The documentation lists methods in the order of modules.
#[test]
fn the_page_of_images_begins_with_what_everybody_needs() {
    let at = |file: &str, modules: &[&str]| -> Vec<usize> {
        let text = fs::read_to_string(room(file)).expect("a file");
        let place = |module: &&str| text.find(&format!("mod {module};")).unwrap_or_else(|| panic!("{file}: {module}"));
        modules.iter().map(place).collect()
    };
    assert!(at("lib.rs", &["io", "image"]).is_sorted(), "files");
    assert!(at("io/mod.rs", &["any", "save", "memory"]).is_sorted(), "opening and saving");
    let order =
        ["create", "read", "pixel", "mask", "neighbourhood", "morphology", "geometric", "reduce", "volume", "external"];
    assert!(at("image/mod.rs", &order).is_sorted(), "arithmetic, filters, geometry");
}

/// The aliases of functions in the files at or under `path`.
fn aliases(path: PathBuf) -> BTreeSet<String> {
    if path.is_dir() {
        return fs::read_dir(path).expect("a folder").flat_map(|f| aliases(f.expect("a file").path())).collect();
    }
    let text = fs::read_to_string(path).expect("a file");
    let lines = text.lines().filter_map(|l| l.trim().strip_prefix("#[doc(alias"));
    lines.flat_map(|l| l.split('"').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// Searching the documentation for a function of SciPy or OpenCV finds the operation that is like it.
#[test]
fn the_documentation_is_searched_by_the_names_of_scipy_and_opencv() {
    let mut found = operations();
    for place in ["image", "io", "filters"] {
        found.extend(aliases(room(place)));
    }
    // Rows of pixel operations have theirs after the method.
    let rows = fs::read_to_string(room("ops/pixel.rs")).expect("a file");
    let words = rows.split(" alias ").skip(1).filter_map(|rest| rest.split(',').next());
    found.extend(words.flat_map(|words| words.split('"').skip(1).step_by(2)).map(str::to_owned));
    let rows = described().filter(|row| !row.method.is_empty());
    let mut count = 0;
    for name in rows.flat_map(|row| row.elsewhere) {
        let name = name.strip_prefix("cv.").or_else(|| name.strip_prefix("ndi.")).unwrap_or_default();
        if !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            assert!(found.contains(name), "no function has `{name}` as an alias");
            count += 1;
        }
    }
    assert!(count > 60, "{count} names");
}

/// Examples compile for users of `horus` who import its prelude: the core has the same prelude,
/// under the same name in hidden lines.
#[test]
fn examples_of_the_documentation_are_those_of_a_user() {
    let (mut blocks, mut wrong) = (0, Vec::new());
    let mut folders: Vec<PathBuf> =
        ["dtype", "filters", "host", "image", "io", "series", "session", "settings"].map(room).into();
    folders.push(root().join("src"));
    while let Some(path) = folders.pop() {
        if path.is_dir() {
            folders.extend(fs::read_dir(path).expect("a folder").map(|f| f.expect("a file").path()));
            continue;
        }
        // Of the command and the Python package.
        if path.ends_with("image/bindings.rs") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a file");
        let mut inside = false;
        for line in text.lines().filter_map(|l| l.trim().strip_prefix("//")) {
            let Some(line) = line.strip_prefix(['/', '!']).map(str::trim) else { continue };
            if line.starts_with("```") {
                inside = !inside;
                blocks += usize::from(inside);
            } else if inside && line.contains("horus_core") {
                let hidden = line.strip_prefix("# ").unwrap_or_default();
                let ours = ["Ok::<", "mod horus ", "use std::"].iter().any(|begin| hidden.starts_with(begin));
                if !(ours || hidden.starts_with("use horus_core::") && hidden.contains("prelude::*")) {
                    wrong.push(format!("{}: {line}", path.display()));
                }
            }
        }
    }
    assert!(blocks > 150, "{blocks} examples");
    assert!(wrong.is_empty(), "these lines are no user's: {wrong:#?}");
}

/// Functions called in other libraries, each of which must be beside an operation, in the table of names or in the list
/// of missing ones.
const LOOKED_FOR: &str = include_str!("looked_for.txt");
const MISSING: &str = include_str!("../docs/missing.md");

/// The identifiers in code.
fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    let code = text.lines().flat_map(|l| l.split('`').skip(1).step_by(2));
    code.flat_map(|c| c.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))).filter(|name| !name.is_empty())
}

#[test]
fn what_people_look_for_is_in_the_table_of_names_or_said_to_be_missing() {
    let told: BTreeSet<&str> = [NAMES, OPERATIONS, MISSING].into_iter().flat_map(identifiers).collect();
    let mut count = 0;
    for line in LOOKED_FOR.lines().filter(|l| !l.starts_with('#')) {
        let (library, names) = line.split_once(": ").expect("a library and its names");
        for name in names.split(' ') {
            assert!(told.contains(name), "no operation, docs/names.md or docs/missing.md has `{name}` of {library}");
            count += 1;
        }
    }
    assert!(count > 750, "{count} names");
}

#[test]
fn what_is_said_to_be_missing_is() {
    let there_is = operations();
    let rows = MISSING.lines().filter(|l| l.starts_with("| `"));
    let missing: Vec<&str> = rows.flat_map(|l| identifiers(l.split(" | ").next().unwrap_or_default())).collect();
    assert!(missing.len() > 300, "{} names", missing.len());
    for name in missing {
        assert!(!there_is.contains(name), "docs/missing.md says there is no `{name}`");
    }
}

/// Markdown files: those of the book, those that link to it, and those that it includes.
fn pages() -> Vec<(PathBuf, String)> {
    let chapters = fs::read_dir(root().join("docs/book/src")).expect("the book").map(|f| f.expect("a file").path());
    let mut pages: Vec<PathBuf> = chapters.filter(|path| path.extension().is_some_and(|e| e == "md")).collect();
    assert!(pages.len() >= 14, "{pages:?}");
    let beside = fs::read_dir(root().join("docs")).expect("a folder").map(|f| f.expect("a file").path());
    pages.extend(beside.filter(|path| path.extension().is_some_and(|e| e == "md")));
    pages.extend(["README.md", "examples/README.md", "horus-python/README.md"].map(|name| root().join(name)));
    let text = |path: &PathBuf| fs::read_to_string(path).expect("a page");
    pages.iter().map(|path| (path.clone(), text(path))).collect()
}

/// The fenced blocks of a page: their languages and their lines.
fn fenced(page: &str) -> Vec<(&str, Vec<&str>)> {
    let (mut found, mut open): (Vec<(&str, Vec<&str>)>, bool) = (Vec::new(), false);
    for line in page.lines() {
        match line.strip_prefix("```") {
            Some(name) if !open => {
                found.push((name, Vec::new()));
                open = true;
            }
            Some(_) => open = false,
            None if open => found.last_mut().expect("a block").1.push(line.trim()),
            None => {}
        }
    }
    found
}

/// The lines of fenced blocks of a language.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<Vec<&'a str>> {
    fenced(page).into_iter().filter(|(name, _)| *name == language).map(|(_, lines)| lines).collect()
}

#[test]
fn the_rust_code_of_the_book_is_code_that_runs() {
    let mut sources = vec![fs::read_to_string(root().join("docs/book/code.rs")).expect("the code of the book")];
    let example = |name: &String| fs::read_to_string(root().join(format!("examples/{name}.rs"))).expect("an example");
    sources.extend(examples().iter().map(example));
    sources.push(fs::read_to_string(root().join("models/examples/ocean.rs")).expect("an ocean"));
    let sources: Vec<Vec<&str>> = sources.iter().map(|s| s.lines().map(str::trim).collect()).collect();
    let mut count = 0;
    for (path, page) in pages().iter().filter(|(path, _)| path.starts_with(root().join("docs/book"))) {
        for block in blocks(page, "rust") {
            let stands = sources.iter().any(|lines| lines.windows(block.len()).any(|part| part == &block[..]));
            assert!(stands, "{} has code that docs/book/code.rs has not:\n{}", path.display(), block.join("\n"));
            count += 1;
        }
    }
    assert!(count >= 25, "{count} blocks");

    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("assets")).expect("a folder");
    for name in ["vessels.png", "small.png"] {
        fs::copy(root().join("assets").join(name), folder.path().join("assets").join(name)).expect("a copy");
    }
    // No other test here uses the working directory.
    std::env::set_current_dir(folder.path()).expect("the folder");
    for (chapter, run) in book::CHAPTERS {
        run().unwrap_or_else(|e| panic!("{chapter}: {e}"));
    }
    assert!(folder.path().join("sharp.png").exists(), "the first program writes its picture");
}

/// The device or the number of ranks of a step of the tutorial, for the process that runs the step.
const STEP: &str = "STEP_OF_THE_TUTORIAL";

/// Runs a step of the tutorial in this process and prints its plans: on threads in place of ranks, on a simulated device
/// in place of a GPU.
fn step_of_the_tutorial(step: &str) -> Result<()> {
    let print = |plan: &str| println!("{plan}");
    let Ok(ranks) = step.parse() else {
        let device = SimulatedDevice::new(CpuDevice::new(None).expect("a CPU"), 1 << 30).with_mapping();
        let session = horus_core::session::Session::on(Box::new(device)).explain(print).build()?;
        let vessels = tutorial::vessels(session.open("assets/vessels.png")?.luminance());
        vessels.count().get()?;
        vessels.save("tutorial.png")?;
        return Ok(());
    };
    let run = |comm: ThreadComm| {
        let prints = comm.rank() == 0;
        let builder = Session::builder().communicator(Arc::new(comm));
        tutorial::mark(&if prints { builder.explain(print) } else { builder }.build()?)
    };
    ThreadComm::run(ranks, run).into_iter().collect()
}

/// Each command of the chapter, and what the chapter shows of its output: lines in this order, perhaps with others between;
/// a line that ends with `...` goes on.
#[test]
fn the_tutorial_shows_what_its_program_prints() {
    const NAME: &str = "the_tutorial_shows_what_its_program_prints";
    if let Ok(step) = std::env::var(STEP) {
        return step_of_the_tutorial(&step).expect("the step runs");
    }
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("assets")).expect("a folder");
    fs::copy(root().join("assets/vessels.png"), folder.path().join("assets/vessels.png")).expect("a copy");
    let page = fs::read_to_string(root().join("docs/book/src/tutorial.md")).expect("the chapter");
    let (mut count, mut pictures) = (0, BTreeSet::new());
    for pair in fenced(&page).windows(2) {
        let [("sh", commands), ("text", shown)] = pair else { continue };
        let command = commands.last().expect("a command");
        let ranks = command.split_once("mpirun -n ").and_then(|(_, rest)| rest.split(' ').next());
        let step = if command.contains("cuda") { "a simulated GPU" } else { ranks.unwrap_or("1") };
        let mut process = Command::new(std::env::current_exe().expect("a path"));
        process.args([NAME, "--exact", "--nocapture"]).current_dir(folder.path()).env(STEP, step);
        // The settings of the chapter, not those of this machine.
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("HORUS_")) {
            process.env_remove(name);
        }
        let words = commands.iter().flat_map(|line| line.split(' ')).filter_map(|word| word.split_once('='));
        process.envs([("HORUS_DEVICE", "cpu"), ("HORUS_PROFILE", "default"), ("HORUS_THREADS", "2")]).envs(words);
        let run = process.output().expect("a process");
        let (printed, told) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
        assert!(run.status.success(), "{command}: {printed}{told}");
        let mut rest = printed.lines().map(str::trim);
        for line in shown.iter().filter(|line| **line != "...") {
            let found = rest.any(|l| match line.strip_suffix("...") {
                Some(begin) => l.starts_with(begin.trim_end()),
                // The call of the program follows a launch.
                None => l.split("    [asked for").next() == Some(line),
            });
            assert!(found, "{command} does not print `{line}` there, but\n{printed}");
        }
        pictures.insert(fs::read(folder.path().join("tutorial.png")).expect("the picture"));
        count += 1;
    }
    assert!(count >= 6, "{count} commands");
    assert_eq!(pictures.len(), 1, "each step gives the same picture");
}

#[test]
fn links_of_the_book_lead_somewhere() {
    let mut count = 0;
    for (path, page) in pages() {
        let folder = path.parent().expect("a folder");
        // A directive of the book's program is not text when the repository is browsed;
        // `scripts/book.sh` replaces links.
        assert!(!page.contains("{{#"), "{} has a directive", path.display());
        for link in page.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            // A reference is included elsewhere in the book; its links lead to chapters there, and
            // to pages beside it here.
            let there = folder.join(target).exists();
            assert!(there, "{} leads to {link}, which there is not", path.display());
            count += 1;
        }
    }
    assert!(count > 100, "{count} links");
    let summary = fs::read_to_string(root().join("docs/book/src/SUMMARY.md")).expect("the contents");
    for (path, _) in pages().iter().filter(|(path, _)| path.parent() == Some(&root().join("docs/book/src"))) {
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        assert!(name == "SUMMARY.md" || summary.contains(&format!("({name})")), "SUMMARY.md does not list {name}");
    }
}
