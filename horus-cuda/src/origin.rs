//! Where a kernel's machine code comes from: the user's cache, the package that ships with a release, the compiler.

use crate::cache::DiskCache;
use crate::shipped::Package;

/// The source of machine code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodeOrigin {
    /// The user's cache; an earlier run compiled it.
    Cache,
    /// The package.
    Package,
    /// The compiler, just now.
    Compiler,
}

/// Everything that machine code depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CodeRequest<'a> {
    pub(crate) source: &'a str,
    pub(crate) options: &'a [&'a str],
    pub(crate) arch: u32,
}

/// The version of a compiler: major and minor.
type Version = (i32, i32);

/// Finds the requested machine code; returns it with its origin.
///
/// The names of cache entries contain the compiler's `version`, which may load the compiler. The function is therefore
/// called only if the package does not have the kernel; before that the cache is searched only if the version is
/// `known`.
///
/// # Errors
/// Errors of `version` and `build`.
pub(crate) fn find<E>(
    request: CodeRequest<'_>,
    cache: &DiskCache,
    package: Option<&Package>,
    known: Option<Version>,
    version: impl FnOnce() -> Result<Version, E>,
    build: impl FnOnce() -> Result<Vec<u8>, E>,
) -> Result<(Vec<u8>, CodeOrigin), E> {
    let CodeRequest { source, options, arch } = request;
    if let Some(package) = package {
        let kept = known.and_then(|version| cache.get(source, options, arch, version, || Err(())).ok());
        if let Some((code, _)) = kept {
            return Ok((code, CodeOrigin::Cache));
        }
        if let Some(code) = package.find(source, options, arch) {
            return Ok((code, CodeOrigin::Package));
        }
    }
    let (code, built) = cache.get(source, options, arch, version()?, build)?;
    Ok((code, if built { CodeOrigin::Compiler } else { CodeOrigin::Cache }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shipped::Packing;

    const REQUEST: CodeRequest<'static> = CodeRequest { source: "kernel", options: &["-x"], arch: 90 };
    const VERSION: Version = (13, 0);

    /// A package that has the kernel for sm_90 alone.
    fn package(folder: &std::path::Path) -> Package {
        let mut packing = Packing::new(VERSION);
        packing.add(REQUEST.source, REQUEST.options, 90, b"shipped".to_vec());
        let path = folder.join("package");
        std::fs::write(&path, packing.bytes()).unwrap();
        Package::open(&path).unwrap()
    }

    fn compiled() -> Result<Vec<u8>, String> {
        Ok(b"compiled".to_vec())
    }

    #[test]
    fn the_cache_comes_before_the_package_and_the_package_before_the_compiler() {
        let folder = tempfile::tempdir().unwrap();
        let package = package(folder.path());
        let cache = DiskCache::at(folder.path().join("cache"));
        let look = |request, package, known| {
            let (code, origin) = find(request, &cache, package, known, || Ok(VERSION), compiled).unwrap();
            (String::from_utf8(code).unwrap(), origin)
        };
        let (shipped, built, kept) = (
            ("shipped".to_owned(), CodeOrigin::Package),
            ("compiled".to_owned(), CodeOrigin::Compiler),
            ("compiled".to_owned(), CodeOrigin::Cache),
        );
        assert_eq!(look(REQUEST, Some(&package), Some(VERSION)), shipped);
        assert_eq!(look(REQUEST, Some(&package), None), shipped, "and is not copied to the cache");
        let other = CodeRequest { arch: 80, ..REQUEST };
        assert_eq!(look(other, Some(&package), None), built, "the package lacks it");
        assert_eq!(look(other, Some(&package), None), kept);
        assert_eq!(look(REQUEST, None, Some(VERSION)), built);
        assert_eq!(look(REQUEST, Some(&package), Some(VERSION)), kept, "the cache has it now");
        assert_eq!(look(REQUEST, Some(&package), Some((12, 9))), shipped, "of another compiler");
    }

    #[test]
    fn what_the_package_has_needs_no_compiler() {
        let folder = tempfile::tempdir().unwrap();
        let package = package(folder.path());
        let cache = DiskCache::at(folder.path().join("cache"));
        let missing = || Err::<Version, _>("no compiler".to_owned());
        let (code, origin) = find(REQUEST, &cache, Some(&package), None, missing, compiled).unwrap();
        assert_eq!((&*code, origin), (&b"shipped"[..], CodeOrigin::Package));
        let other = CodeRequest { source: "another", ..REQUEST };
        assert_eq!(find(other, &cache, Some(&package), None, missing, compiled), Err("no compiler".into()));
    }

    #[test]
    fn damaged_code_is_compiled() {
        let folder = tempfile::tempdir().unwrap();
        let package = package(folder.path());
        let path = folder.path().join("package");
        let mut bytes = std::fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let cache = DiskCache::at(folder.path().join("cache"));
        let (code, origin) = find(REQUEST, &cache, Some(&package), None, || Ok(VERSION), compiled).unwrap();
        assert_eq!((&*code, origin), (&b"compiled"[..], CodeOrigin::Compiler));
    }
}
