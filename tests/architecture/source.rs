//! Modules of a crate as the compiler finds them, without their unit tests, and the paths that they
//! name.
//!
//! Files are parsed, so that comments and strings do not count and every form of `use` is
//! recognised; paths are read from tokens, so that those in macros count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;
use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, File, ImplItem, Item, Meta, Visibility};

/// A file of a crate, without parts that are compiled for tests only.
pub(crate) struct Module {
    pub(crate) file: PathBuf,
    /// Its path in the crate: empty for `lib.rs`.
    pub(crate) path: Vec<String>,
    /// Every path that the module names, from the root of the core's crates (`crate::plan::state`)
    /// or as written (`std::fs`). Each name in a `use` group is a path; a glob ends in `*`.
    pub(crate) paths: BTreeSet<String>,
    /// The words among its tokens.
    words: BTreeSet<String>,
    /// The names of the macros that the module exports, which are at the root of its crate.
    pub(crate) exported_macros: Vec<String>,
    /// The names of the types and traits that the module publishes, including its public inline
    /// modules.
    pub(crate) published_types: Vec<String>,
}

impl Module {
    /// `own` is the name of the module's crate in code.
    fn new(file: &Path, own: &str, path: Vec<String>, parsed: File) -> Module {
        let (mut paths, mut words, mut published_types) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
        published(&parsed.items, &mut published_types);
        let macros = parsed.items.iter().filter_map(|i| if let Item::Macro(m) = i { Some(m) } else { None });
        let exported = macros.filter(|m| m.attrs.iter().any(|a| a.path().is_ident("macro_export")));
        let exported_macros = exported.filter_map(|m| m.ident.as_ref().map(ToString::to_string)).collect();
        let code = parsed.into_token_stream();
        each_word(code.clone(), &mut |word| {
            words.insert(word);
        });
        walk(code, &path, &mut |path| {
            let path = path.join("::");
            let below = ["horus_base", "horus_plan", "horus_host", "horus_cpu", "horus_files"];
            let place = below.iter().find_map(|name| Some((name, path.strip_prefix(name)?.strip_prefix("::")?)));
            paths.insert(match place {
                Some((name, rest)) => in_core(name, rest),
                None => match path.strip_prefix("crate::") {
                    Some(rest) => in_core(own, rest),
                    None => path,
                },
            });
        });
        let room = room_of(own, path.first().map_or("", String::as_str));
        let path = room.map(str::to_owned).into_iter().chain(path).collect();
        Module { file: file.to_owned(), path, paths, words, exported_macros, published_types }
    }

    /// The first of its paths that equals `forbidden`, is inside it or imports it, or is a module
    /// above it.
    pub(crate) fn names(&self, forbidden: &str) -> Option<&String> {
        let forbidden: Vec<&str> = forbidden.split("::").collect();
        self.paths.iter().find(|path| {
            let mut path: Vec<&str> = path.split("::").collect();
            let glob = path.last() == Some(&"*");
            if glob {
                path.pop();
            }
            let whole = path.starts_with(&forbidden);
            // `use std::sync;` or `use std::sync::*;` for `std::sync::Mutex`; `crate` alone is in
            // each `pub(crate)`.
            whole || (forbidden.starts_with(&path) && (glob || path != ["crate"]))
        })
    }

    /// Returns `true` if `word` occurs as a token.
    pub(crate) fn says(&self, word: &str) -> bool {
        self.words.contains(word)
    }
}

/// The room of the core that holds the whole crate `name`, or all of it but `module`: `horus-core` re-exports
/// each of these crates as one module.
fn room_of(name: &str, module: &str) -> Option<&'static str> {
    match (name, module) {
        ("horus_host", "comm" | "device") => None,
        ("horus_host", _) => Some("host"),
        ("horus_cpu", _) => Some("cpu"),
        ("horus_files", _) => Some("files"),
        _ => None,
    }
}

/// A path of a crate of the core, from the root of the core.
fn in_core(name: &str, rest: &str) -> String {
    match room_of(name, rest.split("::").next().unwrap_or_default()) {
        Some(room) => format!("crate::{room}::{rest}"),
        None => format!("crate::{rest}"),
    }
}

/// Calls `found` for each word among the tokens.
fn each_word(code: TokenStream, found: &mut impl FnMut(String)) {
    for token in code {
        match token {
            TokenTree::Group(g) => each_word(g.stream(), found),
            TokenTree::Ident(i) => found(i.to_string()),
            _ => {}
        }
    }
}

fn published(items: &[Item], names: &mut Vec<String>) {
    for item in items {
        let (visibility, name) = match item {
            Item::Struct(i) => (&i.vis, &i.ident),
            Item::Enum(i) => (&i.vis, &i.ident),
            Item::Union(i) => (&i.vis, &i.ident),
            Item::Trait(i) => (&i.vis, &i.ident),
            Item::Type(i) => (&i.vis, &i.ident),
            Item::Mod(i) => {
                if let (Visibility::Public(_), Some((_, items))) = (&i.vis, &i.content) {
                    published(items, names);
                }
                continue;
            }
            _ => continue,
        };
        if matches!(visibility, Visibility::Public(_)) {
            names.push(name.to_string());
        }
    }
}

/// Returns `true` if `word` is a token of `code`.
pub(crate) fn occurs(code: TokenStream, word: &str) -> bool {
    code.into_iter().any(|token| match token {
        TokenTree::Group(g) => occurs(g.stream(), word),
        TokenTree::Ident(i) => i == word,
        _ => false,
    })
}

/// The tokens of a whole file.
pub(crate) fn tokens(file: &Path) -> TokenStream {
    text(file).parse().unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

fn text(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

/// The modules of the crate whose `lib.rs` is `root`. It is read once for all tests.
pub(crate) fn modules(root: &Path) -> Vec<Arc<Module>> {
    static READ: Mutex<BTreeMap<PathBuf, Vec<Arc<Module>>>> = Mutex::new(BTreeMap::new());
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    let crate_of = || {
        let mut out = Vec::new();
        let folder = root.parent().expect("a file in a folder");
        let own = folder.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().replace('-', "_"));
        load(root, &own.unwrap_or_default(), Vec::new(), folder, &mut out);
        out
    };
    read.entry(root.to_owned()).or_insert_with(crate_of).clone()
}

fn load(file: &Path, own: &str, path: Vec<String>, folder: &Path, to: &mut Vec<Arc<Module>>) {
    let mut parsed = syn::parse_file(&text(file)).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    TestRemover.visit_file_mut(&mut parsed);
    for item in &parsed.items {
        let Item::Mod(child) = item else { continue };
        if child.content.is_some() {
            continue;
        }
        let name = child.ident.to_string();
        assert!(!child.attrs.iter().any(|a| a.path().is_ident("path")), "{}: {name} has a path", file.display());
        let (flat, deep) = (folder.join(format!("{name}.rs")), folder.join(&name).join("mod.rs"));
        let below = [path.clone(), vec![name.clone()]].concat();
        load(if flat.exists() { &flat } else { &deep }, own, below, &folder.join(&name), to);
    }
    to.push(Arc::new(Module::new(file, own, path, parsed)));
}

/// Returns `true` if an item with these attributes is compiled for tests only.
fn for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|a| match &a.meta {
        Meta::List(l) if l.path.is_ident("cfg") => {
            let condition = l.tokens.to_string();
            condition == "test" || (condition.starts_with("all") && occurs(l.tokens.clone(), "test"))
        }
        _ => false,
    })
}

struct TestRemover;

impl VisitMut for TestRemover {
    fn visit_file_mut(&mut self, file: &mut File) {
        file.items.retain(is_compiled_without_tests);
        visit_mut::visit_file_mut(self, file);
    }

    fn visit_item_mod_mut(&mut self, module: &mut syn::ItemMod) {
        if let Some((_, items)) = &mut module.content {
            items.retain(is_compiled_without_tests);
        }
        visit_mut::visit_item_mod_mut(self, module);
    }

    fn visit_item_impl_mut(&mut self, item: &mut syn::ItemImpl) {
        item.items.retain(|i| match i {
            ImplItem::Fn(f) => !for_tests(&f.attrs),
            ImplItem::Const(c) => !for_tests(&c.attrs),
            _ => true,
        });
    }
}

fn is_compiled_without_tests(item: &Item) -> bool {
    let attributes = match item {
        Item::Mod(i) => &i.attrs,
        Item::Use(i) => &i.attrs,
        Item::Fn(i) => &i.attrs,
        Item::Impl(i) => &i.attrs,
        Item::Struct(i) => &i.attrs,
        Item::Enum(i) => &i.attrs,
        Item::Const(i) => &i.attrs,
        Item::Static(i) => &i.attrs,
        Item::Trait(i) => &i.attrs,
        Item::Macro(i) => &i.attrs,
        Item::Type(i) => &i.attrs,
        _ => return true,
    };
    !for_tests(attributes)
}

/// Words that may precede a path and are not part of it.
const KEYWORDS: [&str; 14] =
    ["use", "as", "in", "dyn", "impl", "for", "mut", "const", "return", "break", "match", "if", "while", "else"];

/// Calls `found` for each path in `tokens`, which are in the module `here`.
fn walk(tokens: TokenStream, here: &[String], found: &mut impl FnMut(&[String])) {
    let mut rest: &[TokenTree] = &tokens.into_iter().collect::<Vec<_>>();
    while let Some(token) = rest.first() {
        match (token, rest) {
            // In an inline module, `super` is the surrounding one.
            (TokenTree::Ident(word), [_, TokenTree::Ident(name), TokenTree::Group(body), ..]) if word == "mod" => {
                walk(body.stream(), &[here, &[name.to_string()]].concat(), found);
                rest = &rest[3..];
            }
            // A new path begins after these, possibly with `::`.
            (TokenTree::Ident(word), _) if KEYWORDS.iter().any(|k| word == k) => rest = &rest[1..],
            (TokenTree::Ident(_), _) => rest = path(rest, &[], here, found),
            (TokenTree::Group(group), _) => {
                walk(group.stream(), here, found);
                rest = &rest[1..];
            }
            _ => rest = &rest[1..],
        }
    }
}

/// The path, or the paths of the group, at the beginning of `rest`, after `prefix`; and the
/// remaining tokens.
fn path<'a>(
    mut rest: &'a [TokenTree],
    prefix: &[String],
    here: &[String],
    found: &mut impl FnMut(&[String]),
) -> &'a [TokenTree] {
    let mut names = prefix.to_vec();
    loop {
        match rest.first() {
            Some(TokenTree::Ident(name)) => names.push(name.to_string().trim_start_matches("r#").to_owned()),
            Some(TokenTree::Punct(p)) if p.as_char() == '*' && !names.is_empty() => names.push("*".into()),
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace && !names.is_empty() => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                for one in inner.split(|t| matches!(t, TokenTree::Punct(p) if p.as_char() == ',')) {
                    path(one, &names, here, found);
                }
                return &rest[1..];
            }
            _ => break,
        }
        rest = &rest[1..];
        match rest {
            [TokenTree::Punct(a), TokenTree::Punct(b), next, ..]
                if a.as_char() == ':' && b.as_char() == ':' && goes_on(next) =>
            {
                rest = &rest[2..];
            }
            _ => break,
        }
    }
    // `use crate as all;`
    if names == ["crate"] && matches!(rest.first(), Some(TokenTree::Ident(i)) if i == "as") {
        names.push("*".into());
    }
    if names.len() > prefix.len() {
        found(&absolute(names, here));
    }
    rest
}

fn goes_on(token: &TokenTree) -> bool {
    match token {
        TokenTree::Ident(_) => true,
        TokenTree::Punct(p) => p.as_char() == '*',
        TokenTree::Group(g) => g.delimiter() == Delimiter::Brace,
        TokenTree::Literal(_) => false,
    }
}

/// The path from the root of the crate if it begins with `self` or `super`.
fn absolute(mut names: Vec<String>, here: &[String]) -> Vec<String> {
    if names.len() > 1 && names.last().is_some_and(|n| n == "self") {
        names.pop();
    }
    let ups = names.iter().take_while(|n| *n == "super" || *n == "self").filter(|n| *n == "super").count();
    let relative = names.first().is_some_and(|n| n == "super" || (n == "self" && names.len() > 1));
    if !relative {
        return names;
    }
    let base = &here[..here.len().saturating_sub(ups)];
    let tail = names.into_iter().skip_while(|n| n == "super" || n == "self");
    ["crate".to_owned()].into_iter().chain(base.iter().cloned()).chain(tail).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(text: &str) -> Module {
        let mut parsed = syn::parse_file(text).expect("Rust");
        TestRemover.visit_file_mut(&mut parsed);
        let path = ["plan", "state"].map(str::to_owned).to_vec();
        Module::new(Path::new("test"), "horus_plan", path, parsed)
    }

    #[test]
    fn every_way_to_name_a_module_is_seen() {
        let ways = [
            "use crate::device::Device;",
            "use crate::{device::{self, Device}, shape::Shape};",
            "use crate::{shape, device as machine};",
            "use crate::device as machine;",
            "use crate::*;",
            "use crate as all;",
            "use super::super::device::Device;",
            "use self::super::super::{device};",
            "mod inner { use super::super::super::device; }",
            "fn f(d: &dyn crate::device::Device) {}",
            "fn f() { dispatch!(t, T => crate::device::open::<T>()) }",
            "macro_rules! m { () => { $crate::device::open() } }",
            "impl X { fn f() { let x = Vec::<crate::device::Device>::new(); } }",
            "pub(in crate::device) struct X;",
            "pub use crate::device::*;",
            "use crate::r#device::Device;",
        ];
        for way in ways {
            assert!(module(way).names("crate::device").is_some(), "{way}");
        }
        for way in
            ["use std::sync::{Arc, Mutex};", "use std::sync;", "use std::{sync::*};", "use ::std::sync::Mutex as M;"]
        {
            assert!(module(way).names("std::sync::Mutex").is_some(), "{way}");
        }
    }

    #[test]
    fn what_is_no_use_of_a_module_is_none() {
        let others = [
            "pub(crate) struct X { device: u8 }",
            "// crate::device\nfn f() {}",
            "/// [`crate::device`]\nfn f() -> &'static str { \"crate::device\" }",
            "use crate::devices::Device;",
            "use super::device;",
            "#[cfg(test)] mod tests { use crate::device::Device; }",
            "#[cfg(test)] use crate::device::Device;",
            "impl X { #[cfg(all(test, unix))] fn f() { crate::device::open() } }",
        ];
        for other in others {
            assert_eq!(module(other).names("crate::device"), None, "{other}");
        }
        assert_eq!(module("use std::sync::Arc;").names("std::sync::Mutex"), None);
    }

    #[test]
    fn published_types_are_those_that_others_can_name() {
        let own = "pub struct A; pub(crate) struct B; enum C {} pub enum D {} pub trait E {} pub type F = A; fn f() {}";
        let inner = "pub mod open { pub struct G; struct H; } mod sealed { pub trait I {} } #[cfg(test)] pub struct J;";
        assert_eq!(module(&[own, inner].concat()).published_types, ["A", "D", "E", "F", "G"]);
    }

    #[test]
    fn unsafe_code_is_seen_in_every_form() {
        for code in
            ["unsafe impl Send for X {}", "unsafe fn f() {}", "fn f() { unsafe{ g() } }", "m! { unsafe { g() } }"]
        {
            assert!(module(code).says("unsafe"), "{code}");
        }
        assert!(!module("#![deny(unsafe_code)] // unsafe\nconst A: &str = \"unsafe\";").says("unsafe"));
    }
}
