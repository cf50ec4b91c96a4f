//! Reading and writing on real folders, with and without the exchange of names.

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

fn go(_: Point) -> std::ops::ControlFlow<()> {
    std::ops::ControlFlow::Continue(())
}

fn names(top: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(top).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Runs a check with and without the exchange of names.
fn both(check: impl Fn(&Path, WorkTree<'_>)) {
    for exchange in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path();
        std::fs::write(top.join("f"), "old").unwrap();
        let tree = WorkTree::new(top, true);
        match exchange {
            true => check(top, tree),
            false => check(top, tree.without_exchange()),
        }
    }
}

fn spot() -> Spot<'static> {
    Spot {
        path: "f".into(),
        tag: "1-0",
    }
}

fn new(bytes: &[u8]) -> New<'_> {
    New {
        mode: REGULAR,
        permissions: Some(0o640),
        bytes,
    }
}

#[test]
fn a_swap_holds_the_old_content_until_settled() {
    both(|top, tree| {
        let old = tree.state(spot().path).unwrap().unwrap().seal();
        let ours = tree.prepare(spot(), new(b"new"), true).unwrap();
        assert_eq!(names(top), [".vws-1-0.new", "f"]);
        let swapped = tree.swap(spot(), Some(&old), &ours, &mut go).unwrap();
        assert_eq!(swapped, Swap::Done);
        assert_eq!(tree.held(spot()).unwrap().unwrap().bytes, b"old");
        assert_eq!(tree.state(spot().path).unwrap().unwrap().seal(), ours);
        let settled = tree
            .settle(spot(), Some(&old), Some(&ours), &mut go)
            .unwrap();
        assert_eq!((settled, names(top)), (Swap::Done, vec!["f".to_owned()]));
    });
}

#[test]
fn what_is_not_expected_is_put_back() {
    both(|top, tree| {
        let old = tree.state(spot().path).unwrap().unwrap().seal();
        for when in [None, Some(Point::Staged)] {
            let ours = tree.prepare(spot(), new(b"new"), false).unwrap();
            if when.is_none() {
                std::fs::write(top.join("f"), "saved").unwrap();
            } else {
                std::fs::write(top.join("f"), "old").unwrap();
            }
            let mut at = |point| {
                if Some(point) == when {
                    std::fs::write(top.join("f"), "saved").unwrap();
                }
                go(point)
            };
            let swapped = tree.swap(spot(), Some(&old), &ours, &mut at).unwrap();
            assert_eq!((swapped, names(top)), (Swap::Changed, vec!["f".to_owned()]));
            assert_eq!(std::fs::read(top.join("f")).unwrap(), b"saved");
        }
    });
}

#[test]
fn a_late_write_is_put_back_at_the_settling() {
    both(|top, tree| {
        let old = tree.state(spot().path).unwrap().unwrap().seal();
        let ours = tree.prepare(spot(), new(b"new"), false).unwrap();
        tree.swap(spot(), Some(&old), &ours, &mut go).unwrap();
        std::fs::write(top.join(".vws-1-0.tmp"), "late").unwrap();
        let settled = tree
            .settle(spot(), Some(&old), Some(&ours), &mut go)
            .unwrap();
        assert_eq!((settled, names(top)), (Swap::Changed, vec!["f".to_owned()]));
        assert_eq!(std::fs::read(top.join("f")).unwrap(), b"late");
    });
}

#[test]
fn the_newest_save_wins_over_the_one_that_was_swapped_out() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path();
    std::fs::write(top.join("f"), "old").unwrap();
    let tree = WorkTree::new(top, true);
    let old = tree.state(spot().path).unwrap().unwrap().seal();
    let ours = tree.prepare(spot(), new(b"new"), false).unwrap();
    let save = |text: &str| {
        std::fs::write(top.join("saving"), text).unwrap();
        std::fs::rename(top.join("saving"), top.join("f")).unwrap();
    };
    let mut at = |point| {
        match point {
            Point::Staged => save("first"),
            Point::Swapped => save("second"),
            _ => {}
        }
        go(point)
    };
    let swapped = tree.swap(spot(), Some(&old), &ours, &mut at).unwrap();
    assert_eq!((swapped, names(top)), (Swap::Changed, vec!["f".to_owned()]));
    assert_eq!(std::fs::read(top.join("f")).unwrap(), b"second");
}

#[test]
fn the_execute_bit_follows_the_read_bits() {
    for (bits, mode, expected) in [
        (0o644, EXECUTABLE, 0o755),
        (0o600, EXECUTABLE, 0o700),
        (0o2640, EXECUTABLE, 0o2750),
        (0o754, EXECUTABLE, 0o754),
        (0o755, REGULAR, 0o644),
        (0o600, REGULAR, 0o600),
    ] {
        assert_eq!(with_execute_bit(bits, mode), expected, "{bits:o}");
    }
}

#[test]
fn what_was_prepared_is_flushed_together_and_a_missing_one_is_told() {
    let top = tempfile::tempdir().unwrap();
    std::fs::create_dir(top.path().join("d")).unwrap();
    let tree = WorkTree::new(top.path(), true);
    let spot = |path: &'static str, tag| Spot {
        path: path.into(),
        tag,
    };
    let (file, link) = (spot("d/f", "1"), spot("l", "2"));
    tree.prepare(file, new(b"text"), false).unwrap();
    let target = New {
        mode: LINK,
        permissions: None,
        bytes: b"d/f",
    };
    tree.prepare(link, target, false).unwrap();
    for volume in [None, Volume::of(top.path(), top.path())] {
        let flushed = |spots: &[Spot<'_>]| {
            let changing = spots.iter().map(|spot| spot.path);
            tree.flush_prepared(spots, Vec::new(), (changing, volume))
        };
        flushed(&[file, link]).unwrap();
        let missing = flushed(&[file, spot("d/g", "3"), link]);
        assert!(matches!(missing, Err(Fault::Failed { .. })));
    }
    // Each folder once, and none that is gone.
    let paths = ["d/f", "d/g", "gone/h", "l", "m"];
    let folders = tree.folders_of(paths.into_iter().map(Into::into));
    assert_eq!(folders.len(), 2);
    flush(&folders).unwrap();
    flush(&folders[..0]).unwrap();
}
