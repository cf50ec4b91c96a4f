//! Edges that the table of [`crate::rows`] cannot hold: several captures of one directory, and forged
//! times.

use crate::lay::Laid;
use crate::rows::base;

#[test]
fn no_object_is_written_for_what_is_too_large() {
    let laid = Laid::new(base);
    laid.sandbox
        .git(&["config", "relo.workspace.maxFileSize", "4k"]);
    for round in 0..3 {
        laid.write("big", vec![b'0' + round; 5000]);
        laid.write("f", format!("{round}\n"));
        let captured = laid.capture();
        assert!(captured.changed && captured.left_out.len() == 1);
        let big = laid.git(&["hash-object", "big"]);
        let repository = laid.repository();
        assert!(
            !repository
                .objects()
                .unwrap()
                .exists(crate::lay::id(&laid, &big))
        );
    }
    // The raised limit takes effect at once.
    laid.sandbox
        .git(&["config", "relo.workspace.maxFileSize", "6k"]);
    laid.expect(&[]);
    assert!(laid.overlay().contains_key(bstr::BStr::new("big")));
}

#[test]
fn without_links_a_file_at_a_links_path_stays_one() {
    let laid = Laid::new(base);
    laid.sandbox.git(&["config", "core.symlinks", "false"]);
    laid.sh("rm l old-leaver; printf d/a > l; printf /outside > old-leaver");
    assert!(!laid.capture().changed);
    laid.sh("printf d/b > l");
    laid.expect(&[]);
    assert!(laid.overlay()[bstr::BStr::new("l")].starts_with("120000"));
    laid.sh("printf ../out > l");
    let captured = laid.capture();
    assert_eq!(captured.left_out.len(), 1);
    assert_eq!(captured.left_out[0].kind.as_str(), "escapes");
}

/// Same-size edits, one after the other without a pause.
#[test]
fn edits_of_the_same_size_are_found() {
    let laid = Laid::new(base);
    for round in 0..100 {
        let before = std::fs::read(laid.path("f")).unwrap();
        laid.write("f", format!("{}\n", round % 2));
        let after = std::fs::read(laid.path("f")).unwrap();
        let captured = laid.capture();
        assert_eq!(captured.changed, before != after, "round {round}");
    }
}

/// An edit in the very tick of the clock in which the manifest was written: the stat data are
/// equal, and only the racy rule finds it. `f` has another content, `g` another mode and an old time.
#[test]
fn edits_in_the_tick_of_the_manifest_are_found() {
    for (path, script) in [
        ("f", "echo F > f"),
        ("g", "chmod +x g; touch -d 2001-01-01 g"),
    ] {
        let laid = Laid::new(base);
        laid.sh(script);
        crate::lay::write_manifest(&laid.repository(), &laid.directory);
        let manifest = laid.directory.manifest_path();
        let file = std::fs::File::options().write(true).open(manifest).unwrap();
        let stat = rustix::fs::lstat(laid.path(path)).unwrap();
        // A second later it would be taken at its word, as it must be to be of any use.
        let tick = std::time::Duration::new(stat.st_ctime as u64, stat.st_ctime_nsec as u32);
        let tick = std::time::UNIX_EPOCH + tick;
        file.set_modified(tick + std::time::Duration::from_secs(1))
            .unwrap();
        assert!(!laid.capture().changed, "{path}");
        file.set_modified(tick).unwrap();
        laid.expect(&[]);
        assert_ne!(laid.current().tree, laid.directory.cut.tree, "{path}");
    }
}
