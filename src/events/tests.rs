//! The log under rotation, concurrency, tears and deletion.
#![allow(clippy::unwrap_used)]

use super::read::Follow;
use super::*;

fn event(agent: &str) -> Event<'_> {
    Event {
        time: 7,
        kind: "write",
        agent,
        session: None,
        revision: Revision::FIRST,
        paths: &[],
        path_count: 0,
    }
}

fn all(folder: &Path, since: Option<u64>) -> Vec<u64> {
    let follow = Follow::new(folder.to_owned(), since, || false).unwrap();
    follow.map(|event| event.unwrap().id).collect()
}

#[test]
fn ids_grow_across_rotations_and_since_finds_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut ids = Vec::new();
    for _ in 0..40 {
        ids.push(append_to(folder, &[event("a")], 2000).unwrap());
    }
    assert_eq!(ids[0], 7_000_000);
    assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
    let kept = all(folder, None);
    assert!(kept.len() < ids.len(), "nothing was dropped");
    assert_eq!(kept, ids[ids.len() - kept.len()..]);
    assert!(rotated(folder).exists());
    for (n, id) in kept.iter().enumerate() {
        assert_eq!(all(folder, Some(*id)), kept[n + 1..], "since {id}");
    }
    assert_eq!(all(folder, Some(1)), kept, "before all that is kept");
    // A log that was deleted goes on with higher numbers, and an old `since` shows all of it.
    fs::remove_file(current(folder)).unwrap();
    fs::remove_file(rotated(folder)).unwrap();
    let later = Event {
        time: 8,
        ..event("a")
    };
    let id = append_to(folder, &[later], 2000).unwrap();
    assert!(id > ids[39]);
    assert_eq!(all(folder, Some(ids[39])), [id]);
}

#[test]
fn a_death_between_the_rename_and_the_new_log_keeps_the_numbering() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let first = append_to(folder, &[event("a")], 2000).unwrap();
    let size = fs::metadata(current(folder)).unwrap().len();
    fs::rename(current(folder), rotated(folder)).unwrap();
    assert_eq!(all(folder, None), [first]);
    assert_eq!(
        append_to(folder, &[event("a")], 2000).unwrap(),
        first + size
    );
    assert_eq!(all(folder, None), [first, first + size]);
}

#[test]
fn a_torn_line_costs_only_itself() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let first = append_to(folder, &[event("a")], 2000).unwrap();
    let size = fs::metadata(current(folder)).unwrap().len();
    let torn = OpenOptions::new().append(true).open(current(folder));
    io::Write::write_all(&mut torn.unwrap(), b"{\"v\":1,\"id\":7000").unwrap();
    let next = append_to(folder, &[event("b")], 2000).unwrap();
    assert_eq!(next, first + size + 16 + 1);
    assert_eq!(all(folder, None), [first, next]);
    assert_eq!(all(folder, Some(first)), [next]);
}

#[test]
fn appenders_and_a_follower_lose_nothing_while_the_log_rotates() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // Both files together hold less than all: the follower must keep up with the rotations.
    const EACH: usize = 300;
    let done = std::sync::atomic::AtomicUsize::new(0);
    let seen = std::thread::scope(|scope| {
        for writer in 0..4 {
            let done = &done;
            scope.spawn(move || {
                for n in 0..EACH {
                    let name = format!("w{writer}.{n}");
                    append_to(folder, &[event(&name)], 20_000).unwrap();
                    std::thread::sleep(Duration::from_micros(300));
                }
                done.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            });
        }
        let mut rounds = 0;
        let wait = || {
            sleep(Duration::from_millis(1));
            if done.load(std::sync::atomic::Ordering::SeqCst) == 4 {
                rounds += 1;
            }
            rounds < 3
        };
        let follow = Follow::new(folder.to_owned(), None, wait).unwrap();
        follow.map(|event| event.unwrap()).collect::<Vec<_>>()
    });
    assert!(seen.is_sorted_by(|a, b| a.id < b.id));
    let mut agents: Vec<String> = seen
        .iter()
        .map(|event| {
            let value: serde_json::Value = serde_json::from_slice(&event.line).unwrap();
            assert_eq!(value["id"], event.id);
            value["agent"].as_str().unwrap().to_owned()
        })
        .collect();
    agents.sort();
    agents.dedup();
    assert_eq!(agents.len(), 4 * EACH);
}
