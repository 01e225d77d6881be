//! Choice of the package: one that the user names, or one installed with the program, which only those may write who
//! may write to the program.

use std::fs::{File, Metadata};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use horus_core::settings::KERNELS;

use super::{NAME, Package};

impl Package {
    /// The package that the environment names or that is installed with the executable, if a driver of the CUDA version
    /// `newest` runs its code. An unusable package is reported by a warning, once per process.
    pub(crate) fn from_environment(newest: i32) -> Option<Package> {
        let (path, opened) = match KERNELS.path() {
            Some(path) if path.as_os_str() == "off" => return None,
            Some(path) => {
                let opened = Package::open(&path);
                (path, opened)
            }
            None => {
                let executable = std::env::current_exe().ok()?;
                let path = installed_paths(&executable).into_iter().find(|p| p.exists())?;
                let opened = installed(&path, &executable);
                (path, opened)
            }
        };
        match opened {
            Ok(package) if package.compiler.0 <= newest => Some(package),
            Ok(package) => {
                let (path, major) = (path.display(), package.compiler.0);
                log::debug!("{path} is of CUDA {major}, and the driver runs at most CUDA {newest}");
                None
            }
            Err(e) => {
                static WARNED: AtomicBool = AtomicBool::new(false);
                if !WARNED.swap(true, Ordering::Relaxed) {
                    horus_core::warn!("the compiled kernels of {} are not used: {e}", path.display());
                }
                None
            }
        }
    }
}

/// The places of a package that is installed with an executable.
fn installed_paths(executable: &Path) -> Vec<PathBuf> {
    let Some(folder) = executable.parent() else { return Vec::new() };
    let library = folder.parent().map(|above| above.join("lib").join("horus").join(NAME));
    std::iter::once(folder.join(NAME)).chain(library).collect()
}

/// The package at `path`, which the user did not name, for this executable.
fn installed(path: &Path, executable: &Path) -> std::io::Result<Package> {
    let file = File::open(path)?;
    trusted(&file.metadata()?, &std::fs::metadata(executable)?)?;
    Package::of(path, file)
}

/// Fails if anyone may write to the package who may not write to the executable: its content is executed.
#[cfg(unix)]
fn trusted(data: &Metadata, program: &Metadata) -> std::io::Result<()> {
    use std::io::{Error, ErrorKind};
    use std::os::unix::fs::MetadataExt as _;

    // SAFETY: asks for a number, and always succeeds.
    let user = unsafe { libc::geteuid() };
    let refused = |why: String| Err(Error::new(ErrorKind::PermissionDenied, why));
    if ![0, user, program.uid()].contains(&data.uid()) {
        return refused(format!("the file belongs to user {}, not to this one ({user}) or the program's", data.uid()));
    }
    let group = if data.gid() == program.gid() { program.mode() & 0o020 } else { 0 };
    if data.mode() & 0o022 & !group != 0 {
        return refused(format!("others may write to it (mode {:o}; `chmod go-w` helps)", data.mode() & 0o7777));
    }
    Ok(())
}

#[cfg(not(unix))]
fn trusted(_: &Metadata, _: &Metadata) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_lie_beside_the_program_or_in_its_library_folder() {
        let places = installed_paths(Path::new("/opt/horus/bin/convrot"));
        let expected = ["/opt/horus/bin/horus-kernels.bin", "/opt/horus/lib/horus/horus-kernels.bin"];
        assert_eq!(places, expected.map(PathBuf::from));
    }

    #[cfg(unix)]
    #[test]
    fn who_may_not_write_the_program_may_not_write_its_package() {
        use std::os::unix::fs::{PermissionsExt as _, chown};
        let folder = tempfile::tempdir().unwrap();
        let (program, path) = (folder.path().join("program"), folder.path().join(NAME));
        for file in [&program, &path] {
            std::fs::write(file, crate::shipped::Packing::new((13, 0)).bytes()).unwrap();
        }
        let modes = |of_program: u32, of_package: u32| {
            for (file, mode) in [(&program, of_program), (&path, of_package)] {
                std::fs::set_permissions(file, std::fs::Permissions::from_mode(mode)).unwrap();
            }
            match installed(&path, &program) {
                Ok(_) => true,
                Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => false,
                Err(e) => panic!("{e}"),
            }
        };
        assert!(modes(0o755, 0o644) && modes(0o755, 0o600) && modes(0o775, 0o664));
        assert!(!modes(0o755, 0o664) && !modes(0o755, 0o646) && !modes(0o777, 0o666));
        // Only root can give files away.
        if chown(&path, Some(12_345), None).is_ok() {
            assert!(!modes(0o755, 0o644), "the package of another user");
            chown(&program, Some(12_345), None).unwrap();
            assert!(modes(0o755, 0o644), "of the user whose program it is");
        }
    }
}
