//! Files that replace others.

use std::fs;
use std::path::Path;

use horus_files::{FileTarget, Sink, cause, same_file};

#[test]
fn a_failure_leaves_the_old_file_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.png");
    fs::write(&path, "old").unwrap();
    let half = |to: &mut dyn Sink| {
        to.write_all(b"half").unwrap();
        Err("no space".to_owned())
    };
    assert_eq!(FileTarget::new(&path).unwrap().fill(half), Err("no space".into()));
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_file_is_made_when_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let target = FileTarget::new(&folder.path().join("a.png")).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    target.fill(|to| to.write_all(b"all").map_err(cause)).unwrap();
    assert_eq!(fs::read(folder.path().join("a.png")).unwrap(), b"all");
}

#[test]
fn errors_do_not_name_the_temporary_file() {
    let folder = tempfile::tempdir().unwrap();
    let none = folder.path().join("none");
    let error = FileTarget::new(&none.join("a.png")).err().unwrap();
    let reason = error.strip_prefix(&format!("cannot create a file in {}: ", none.display()));
    assert!(reason.is_some_and(|reason| !reason.contains("none")), "{error}");
    assert_eq!(FileTarget::new(folder.path()).err().unwrap(), "it is a folder");
}

#[cfg(unix)]
#[test]
fn links_are_followed() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("far")).unwrap();
    symlink("far/b.png", at("middle.png")).unwrap();
    symlink(at("middle.png"), at("a.png")).unwrap();
    symlink("ring.png", at("ring.png")).unwrap();
    for text in ["new", "replaced"] {
        let write = |to: &mut dyn Sink| to.write_all(text.as_bytes()).map_err(cause);
        FileTarget::new(&at("a.png")).unwrap().fill(write).unwrap();
        assert_eq!(fs::read_to_string(at("far/b.png")).unwrap(), text);
        assert!(at("a.png").is_symlink() && at("middle.png").is_symlink());
    }
    assert_eq!(FileTarget::new(&at("ring.png")).err().unwrap(), "too many links");
}

#[cfg(unix)]
#[test]
fn files_are_as_readable_as_any_other() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let mode = |p: &Path| fs::metadata(p).unwrap().permissions().mode();
    let (ours, other) = (folder.path().join("a"), folder.path().join("b"));
    FileTarget::new(&ours).unwrap().fill(|_| Ok(())).unwrap();
    fs::write(&other, "").unwrap();
    assert_eq!(mode(&ours), mode(&other));
    fs::set_permissions(&ours, fs::Permissions::from_mode(0o640)).unwrap();
    FileTarget::new(&ours).unwrap().fill(|_| Ok(())).unwrap();
    assert_eq!(mode(&ours) & 0o777, 0o640);
}

#[cfg(unix)]
#[test]
fn one_file_is_recognised_by_any_of_its_names() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("in")).unwrap();
    fs::write(at("a"), "").unwrap();
    fs::write(at("b"), "").unwrap();
    fs::hard_link(at("a"), at("hard")).unwrap();
    std::os::unix::fs::symlink("a", at("soft")).unwrap();
    std::os::unix::fs::symlink("in/new", at("coming")).unwrap();
    for same in ["./a", "in/../a", "hard", "soft"] {
        assert!(same_file(&at("a"), &at(same)), "{same}");
    }
    assert!(same_file(&at("new"), &at("in/.././new")) && same_file(&at("coming"), &at("in/new")));
    assert!(!same_file(&at("a"), &at("b")) && !same_file(&at("a"), &at("new")));
    assert!(!same_file(&at("new"), &at("in/new")));
    assert!(!same_file(Path::new("/dev/null"), Path::new("/dev/null")));
}
