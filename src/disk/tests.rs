#![allow(clippy::unwrap_used)]
use super::*;
use std::os::unix::fs::symlink;

#[test]
fn links_are_read_and_never_followed() {
    let top = tempfile::tempdir().unwrap();
    let top = top.path();
    std::fs::create_dir(top.join("d")).unwrap();
    std::fs::write(top.join("d/f"), "x").unwrap();
    symlink("d", top.join("l")).unwrap();
    symlink("d/f", top.join("m")).unwrap();
    assert_eq!(read(top, "d/f".into(), 9).unwrap(), b"x");
    assert_eq!(read(top, "m".into(), 9).unwrap(), b"d/f");
    assert!(matches!(read(top, "l/f".into(), 9), Err(Unread::Gone)));
    assert!(matches!(read(top, "d".into(), 9), Err(Unread::Gone)));
    assert!(matches!(read(top, "d/f/g".into(), 9), Err(Unread::Gone)));
    assert!(matches!(read(top, "d/f".into(), 0), Err(Unread::TooLarge)));
    assert_eq!(mode(top, "m".into(), true), Some(LINK));
    assert_eq!(mode(top, "d".into(), true), None);
}

#[test]
fn a_fifo_is_never_opened() {
    let top = tempfile::tempdir().unwrap();
    let path = top.path().join("p");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        FileType::Fifo,
        Mode::RUSR | Mode::WUSR,
        0,
    )
    .unwrap();
    assert!(matches!(
        read(top.path(), "p".into(), 9),
        Err(Unread::Special)
    ));
}
