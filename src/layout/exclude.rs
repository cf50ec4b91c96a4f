//! Hiding our folder from the user's `git status` and `git add`.
//!
//! One line goes into the common `info/exclude`, once; what is there already stays byte for byte.
//! The user's `.gitignore` is never touched.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use bstr::{BStr, BString, ByteSlice};

use super::directory::path_bytes;
use super::{Error, Result};
use crate::git::Repository;

/// Makes sure that git in the user's working tree does not see `root`, if it lies inside.
///
/// # Errors
/// [`Error::Exposed`] when it cannot be hidden: nothing may be laid out there then.
pub(super) fn hide(repository: &Repository, root: &Path) -> Result<()> {
    let Some(top) = repository.work_dir() else {
        return Ok(());
    };
    let Ok(inside) = root.strip_prefix(top) else {
        return Ok(());
    };
    if root.starts_with(repository.common_dir()) {
        return Ok(());
    }
    let line = pattern(path_bytes(inside));
    let exclude = repository.common_dir().join("info/exclude");
    match add(&exclude, line.as_bstr()) {
        Ok(false) => Ok(()),
        Ok(true) if is_last_word(top, inside) || is_ignored(repository, inside)? => Ok(()),
        // A rule of the user's own, as `!.relo`, goes before ours.
        Ok(true) => Err(exposed(
            top,
            &exclude,
            io::Error::other("another rule shows it again"),
        )),
        Err(_) if is_ignored(repository, inside)? => Ok(()),
        Err(error) => Err(exposed(top, &exclude, error)),
    }
}

fn exposed(top: &Path, exclude: &Path, source: io::Error) -> Error {
    Error::Exposed {
        top: top.to_owned(),
        exclude: exclude.to_owned(),
        source,
    }
}

/// The exclude pattern for a folder: `.relo` as a whole, else the folder itself, anchored.
fn pattern(inside: &BStr) -> BString {
    let mut line = BString::from("/");
    if inside == ".relo" || inside.starts_with(b".relo/") {
        line.extend_from_slice(b".relo/");
        return line;
    }
    for byte in inside.iter() {
        if matches!(byte, b'\\' | b'*' | b'?' | b'[') {
            line.push(b'\\');
        }
        line.push(*byte);
    }
    line.push(b'/');
    line
}

/// Adds a line to the file unless it has it; gives back whether it was missing.
fn add(file: &Path, line: &BStr) -> io::Result<bool> {
    // A link stays one: what it leads to is replaced.
    let file = &fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let (mut bytes, mode) = match fs::read(file) {
        Ok(bytes) => (bytes, fs::metadata(file)?.permissions().mode()),
        Err(error) if error.kind() == ErrorKind::NotFound => (Vec::new(), 0o666),
        Err(error) => return Err(error),
    };
    if bytes
        .lines()
        .any(|have| have.trim_end_with(|c| c == ' ').as_bstr() == line)
    {
        return Ok(false);
    }
    if !bytes.is_empty() && !bytes.ends_with(b"\n") {
        bytes.push(b'\n');
    }
    bytes.extend_from_slice(line);
    bytes.push(b'\n');
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut new = tempfile::Builder::new()
        .permissions(fs::Permissions::from_mode(mode & 0o777))
        .tempfile_in(folder)?;
    new.write_all(&bytes)?;
    new.persist(file).map_err(|error| error.error)?;
    Ok(true)
}

/// Whether nothing in the working tree has a say about a folder. Then our line has: it is the last
/// one of a file that goes before all others.
fn is_last_word(top: &Path, inside: &Path) -> bool {
    let is_link =
        |path: &Path| fs::symlink_metadata(top.join(path)).is_ok_and(|meta| !meta.is_dir());
    // Other characters may be spelled otherwise on disk than in the line.
    let is_plain = path_bytes(inside).iter().all(u8::is_ascii_graphic);
    is_plain
        && !inside.ancestors().any(is_link)
        && !Repository::may_have_rule(top, path_bytes(inside))
}

fn is_ignored(repository: &Repository, inside: &Path) -> Result<bool> {
    // The trailing slash says that it is a folder, whether it is there yet or not.
    let mut path = inside.as_os_str().to_owned();
    path.push("/");
    let done = repository
        .git()
        .args(["check-ignore", "--quiet", "--no-index", "--"])
        .arg(path)
        .run()?;
    match done.code() {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        _ => Err(done.into_error().into()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn after(before: Option<&[u8]>) -> (Vec<u8>, bool) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("info/exclude");
        if let Some(before) = before {
            fs::create_dir(file.parent().unwrap()).unwrap();
            fs::write(&file, before).unwrap();
        }
        let added = add(&file, b"/.relo/".as_bstr()).unwrap();
        let after = fs::read(&file).unwrap();
        assert!(!add(&file, b"/.relo/".as_bstr()).unwrap());
        assert_eq!(fs::read(&file).unwrap(), after);
        (after, added)
    }

    #[test]
    fn a_line_is_added_once_and_the_rest_stays() {
        assert_eq!(after(None), (b"/.relo/\n".to_vec(), true));
        assert_eq!(after(Some(b"")), (b"/.relo/\n".to_vec(), true));
        assert_eq!(after(Some(b"a\r\n\xff")).0, b"a\r\n\xff\n/.relo/\n");
        assert_eq!(after(Some(b"a\n")).0, b"a\n/.relo/\n");
        assert_eq!(after(Some(b"#/.relo/\n")).0, b"#/.relo/\n/.relo/\n");
        assert_eq!(after(Some(b"/.relo/")), (b"/.relo/".to_vec(), false));
    }

    #[test]
    fn the_mode_stays_and_a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().join("real");
        let file = folder.path().join("exclude");
        fs::write(&real, "x\n").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&real, &file).unwrap();
        assert!(add(&file, b"/.relo/".as_bstr()).unwrap());
        assert!(fs::symlink_metadata(&file).unwrap().is_symlink());
        assert_eq!(fs::read(&real).unwrap(), b"x\n/.relo/\n");
        assert_eq!(
            fs::metadata(&real).unwrap().permissions().mode() & 0o777,
            0o640
        );
    }

    #[test]
    fn patterns_are_anchored_and_quoted() {
        assert_eq!(pattern(b".relo/worktrees".as_bstr()), "/.relo/");
        assert_eq!(pattern(b"my [dirs]/a".as_bstr()), "/my \\[dirs]/a/");
    }
}
