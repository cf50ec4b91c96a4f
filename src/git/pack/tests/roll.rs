//! Rolling up, cleaning up, and a collection that runs against both.

use super::*;
use std::fs::File;
use std::time::{Duration, SystemTime};

fn lock_file(repo: &Scratch) -> File {
    File::create(repo.top().join(".git/vws-roll.lock")).unwrap()
}

#[test]
fn thirty_packs_become_one_under_open_readers() {
    for format in FORMATS {
        let repo = Scratch::new(format);
        let mut objects = Objects::new();
        let commits: Vec<ObjectId> = (0..30)
            // Every second pack repeats the objects of the one before.
            .map(|n| publish_small(&repo, &mut objects, n / 2))
            .collect();
        for (n, commit) in commits.iter().enumerate() {
            repo.git(&[
                "update-ref",
                &format!("refs/heads/b{n}"),
                &commit.to_string(),
            ]);
        }
        repo.git(&["update-ref", "refs/heads/main", &commits[0].to_string()]);
        // Git may have put files of its own beside a pack.
        let beside = repo.objects().join("pack").join(&packs(&repo)[0]);
        fs::write(publish::with_suffix(&beside, ".rev"), "").unwrap();
        let lib = git2::Repository::open(repo.top()).unwrap();
        let warm = lib.odb().unwrap().read(commits[0]).unwrap().len();
        assert!(warm > 0);

        let lock = lock_file(&repo);
        let rolled = roll_up(&repo.objects(), format, 31, LAX, &lock).unwrap();
        assert_eq!(rolled, RollUp::default(), "below the threshold");
        let rolled = roll_up(&repo.objects(), format, 24, PackOptions::default(), &lock).unwrap();
        assert_eq!((rolled.merged, rolled.objects), (30, objects.len()));
        assert_eq!(packs(&repo).len(), 1);
        let dir = repo.objects().join("pack");
        let pack = dir.join(format!("{}.pack", packs(&repo)[0]));
        assert_eq!(fs::metadata(&pack).unwrap().len(), rolled.bytes);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 2, "pack and idx only");
        repo.git(&["verify-pack", pack.to_str().unwrap()]);
        assert_healthy(&repo);
        assert_git_has(&repo, &objects);
        // This reader has seen only the old packs.
        for commit in commits {
            assert!(lib.find_commit(commit).is_ok());
        }
    }
}

#[test]
fn a_git_process_that_knows_the_old_packs_reads_on() {
    use std::io::{BufRead, BufReader, Write};
    let repo = Scratch::new(ObjectFormat::Sha1);
    let mut objects = Objects::new();
    let commits: Vec<ObjectId> = (0..30)
        .map(|n| publish_small(&repo, &mut objects, n))
        .collect();
    let mut child = std::process::Command::new("git")
        .args(["cat-file", "--batch-check"])
        .current_dir(repo.top())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut ask = |id: &ObjectId| {
        writeln!(stdin, "{id}").unwrap();
        answers.next().unwrap().unwrap()
    };
    assert!(ask(&commits[3]).contains(" commit "));
    let rolled = roll_up(&repo.objects(), repo.format, 24, LAX, &lock_file(&repo)).unwrap();
    assert_eq!(rolled.merged, 30);
    for commit in &commits {
        assert!(ask(commit).contains(" commit "), "{commit}");
    }
    drop(stdin);
    child.wait().unwrap();
}

#[test]
fn what_a_roll_up_leaves_alone() {
    let repo = Scratch::new(ObjectFormat::Sha1);
    let mut objects = Objects::new();
    let commits: Vec<ObjectId> = (0..3)
        .map(|n| publish_small(&repo, &mut objects, n))
        .collect();
    repo.git(&["multi-pack-index", "write", "--no-progress"]);
    let in_midx = packs(&repo);
    assert_eq!(in_midx.len(), 3);
    for n in 3..8 {
        publish_small(&repo, &mut objects, n);
    }
    let mut writer = PackWriter::new(repo.format);
    small(&mut writer, &mut objects, 8);
    let held = writer.publish(&repo.objects(), LAX).unwrap().unwrap();
    let held_name = held
        .path()
        .file_stem()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();

    // One more whose last entry says that it is a delta, with checksums that fit.
    let damaged = damage(&repo, &mut objects);

    let busy = lock_file(&repo);
    rustix::fs::flock(&busy, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let rolled = roll_up(&repo.objects(), repo.format, 2, LAX, &lock_file(&repo)).unwrap();
    assert_eq!(rolled, RollUp::default(), "another one runs");
    drop(busy);

    let rolled = roll_up(&repo.objects(), repo.format, 2, LAX, &lock_file(&repo)).unwrap();
    assert_eq!((rolled.merged, rolled.objects), (5, 15));
    let after = packs(&repo);
    assert_eq!(after.len(), 3 + 1 + 1 + 1);
    for name in in_midx.iter().chain([&held_name, &damaged]) {
        assert!(after.contains(name), "{name}");
    }
    assert!(repo.has(commits[0]));

    fs::set_permissions(
        repo.objects().join("pack/multi-pack-index"),
        fs::Permissions::from_mode(0o644),
    )
    .unwrap();
    fs::write(repo.objects().join("pack/multi-pack-index"), b"MIDX").unwrap();
    let rolled = roll_up(&repo.objects(), repo.format, 1, LAX, &lock_file(&repo)).unwrap();
    assert_eq!(
        rolled,
        RollUp::default(),
        "an unreadable list may name any pack"
    );
}

/// A pack of ours that is sound but for one entry of a kind that we never write.
fn damage(repo: &Scratch, objects: &mut Objects) -> String {
    let mut writer = PackWriter::new(repo.format);
    small(&mut writer, objects, 99);
    let mut entry = PackEntry::new(repo.format, ObjectKind::Blob, b"delta").unwrap();
    entry.body[0] = (entry.body[0] & 0x8f) | (6 << 4);
    entry.crc = entry::crc32(&entry.body);
    writer.push(entry);
    let held = writer.publish(&repo.objects(), LAX).unwrap().unwrap();
    let name = held
        .path()
        .file_stem()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    held.release().unwrap();
    name
}

#[test]
fn a_rolled_up_pack_rolls_up_again() {
    let repo = Scratch::new(ObjectFormat::Sha256);
    let mut objects = Objects::new();
    let lock = lock_file(&repo);
    for n in 0..20 {
        publish_small(&repo, &mut objects, n);
        roll_up(&repo.objects(), repo.format, 4, LAX, &lock).unwrap();
        assert!(packs(&repo).len() < 4);
    }
    assert_git_has(&repo, &objects);
}

#[test]
fn leftovers_of_dead_writers_go_and_those_of_living_ones_stay() {
    let repo = Scratch::new(ObjectFormat::Sha1);
    let dir = repo.objects().join("pack");
    let mut objects = Objects::new();
    let commit = publish_small(&repo, &mut objects, 1);
    let complete = dir.join(&packs(&repo)[0]);
    let mut writer = PackWriter::new(repo.format);
    let alive = small(&mut writer, &mut objects, 2);
    let held = writer.publish(&repo.objects(), LAX).unwrap().unwrap();
    repo.git(&["update-ref", "refs/heads/main", &commit.to_string()]);

    // Killed before the index was renamed, killed before the ref moved, and one the user keeps.
    let stem = |n: u8| dir.join(format!("pack-{MAGIC}{}", format!("{n:x}").repeat(32)));
    let write = |stem: &Path, suffix: &str, text: &str| {
        fs::write(publish::with_suffix(stem, suffix), text).unwrap();
    };
    for n in [1, 2] {
        write(
            &stem(n),
            ".keep",
            if n == 1 { "git-vws pid 1\n" } else { "" },
        );
        write(&stem(n), ".pack", "PACK");
        write(&stem(n), ".idx.tmp", "half");
    }
    write(&stem(3), ".idx.tmp", "half");
    write(&complete, ".keep", "git-vws pid 1\n");
    write(&dir.join("pack-1234"), ".keep", "not ours");

    let never = clean_leftovers(&repo.objects(), SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(never, Cleaned::default(), "all are newer than that");
    // Git's own cleaning in between takes nothing that a living writer needs.
    repo.git(&["prune", "--expire=now"]);
    assert!(publish::with_suffix(&stem(1), ".idx.tmp").exists());

    let later = SystemTime::now() + Duration::from_secs(60);
    let cleaned = clean_leftovers(&repo.objects(), later).unwrap();
    let wanted = Cleaned {
        released: 1,
        removed: 3,
    };
    assert_eq!(cleaned, wanted);
    assert!(held.path().with_extension("keep").exists());
    assert!(dir.join("pack-1234.keep").exists());
    fs::remove_file(dir.join("pack-1234.keep")).unwrap();
    assert_eq!(packs(&repo).len(), 2);
    assert!(repo.has(commit) && repo.has(alive));
    assert_healthy(&repo);

    // What the user holds stays held.
    for text in ["", "precious\n"] {
        write(&complete, ".keep", text);
        let cleaned = clean_leftovers(&repo.objects(), later).unwrap();
        assert_eq!(cleaned, Cleaned::default());
        assert!(publish::with_suffix(&complete, ".keep").exists());
    }
}

#[test]
fn no_ref_loses_objects_to_a_collection_that_runs_all_the_time() {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
    let repo = Scratch::new(ObjectFormat::Sha1);
    let first = publish_small(&repo, &mut Objects::new(), 1000);
    repo.git(&["update-ref", "refs/heads/main", &first.to_string()]);
    /// Ends the threads of the test, also when it fails.
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Relaxed);
        }
    }
    let done = AtomicBool::new(false);
    let rounds = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Relaxed) {
                // Whether it succeeds is its own affair: packs may vanish under any collector.
                repo.succeeds(&["gc", "-q", "--prune=now"]);
                rounds.fetch_add(1, Relaxed);
            }
        });
        let roller = scope.spawn(|| {
            let lock = lock_file(&repo);
            let mut merged = 0;
            while !done.load(Relaxed) {
                merged += roll_up(&repo.objects(), repo.format, 3, LAX, &lock)
                    .unwrap()
                    .merged;
                std::thread::sleep(Duration::from_millis(2));
            }
            merged
        });
        let stop = Stop(&done);
        let lib = git2::Repository::open(repo.top()).unwrap();
        for n in 0..150 {
            let mut writer = PackWriter::new(repo.format);
            let commit = small(&mut writer, &mut Objects::new(), n);
            let held = writer.publish(&repo.objects(), LAX).unwrap().unwrap();
            // Now and then a whole collection runs between the pack and its ref.
            let until = rounds.load(Relaxed) + if n % 30 == 0 { 2 } else { 0 };
            while rounds.load(Relaxed) < until {
                std::thread::sleep(Duration::from_millis(1));
            }
            lib.reference(&format!("refs/heads/p{n}"), commit, false, "")
                .unwrap();
            held.release().unwrap();
        }
        drop(stop);
        assert!(roller.join().unwrap() > 3);
    });
    assert_healthy(&repo);
    let commits = repo.line(&["rev-list", "--all", "--objects"]);
    assert_eq!(commits.lines().count(), 151 * 3);
}
