//! The form of an entry, there and back.

#![allow(clippy::unwrap_used)]
use super::form::{read, subject, write};
use super::*;
use crate::git::{ObjectFormat, ObjectId};
use crate::model::{AgentId, RepoPath, Revision};
use bstr::BString;
use serde_json::Map;

fn id() -> ObjectId {
    ObjectId::from_str_ext(&"1".repeat(40), ObjectFormat::Sha1).unwrap()
}

fn back(text: &[u8]) -> Result<Entry, String> {
    read(text, id(), ObjectFormat::Sha1)
}

fn sample() -> Entry {
    let path = |bytes: &[u8]| RepoPath::new(bytes).unwrap();
    let mut file = FileState::new(0o100_755, id());
    file.permissions = Some(0o2750);
    let link = FileState::new(0o120_000, id());
    let outcomes = [
        Outcome::Pending,
        Outcome::Written,
        Outcome::Identical,
        Outcome::Refused(crate::model::Refusal::TypeChange),
        Outcome::Failed("no \"room\"\n".to_owned()),
        Outcome::RolledBack,
        Outcome::Overtaken,
    ];
    let steps = outcomes.into_iter().enumerate().map(|(n, outcome)| {
        let name = [b"d/\xff\n", n.to_string().as_bytes()].concat();
        let mut step = Step::new(path(&name), Some(file), (n > 0).then_some(link));
        step.group = n as u32;
        step.agent = AgentId::new("a").ok();
        step.proposal = Revision::new(7);
        step.undone = JournalId::new(n as u64);
        step.outcome = outcome;
        step.extra.insert("from".to_owned(), "old".into());
        step
    });
    Entry {
        id: JournalId::new(9).unwrap(),
        commit: id(),
        kind: Kind::Undo {
            of: JournalId::new(8).unwrap(),
        },
        state: State::Open,
        worktree: Some(BString::from(&b"w\xfe"[..])),
        time: -5,
        steps: steps.collect(),
        folders: vec![Folder {
            path: "d".into(),
            existed: false,
            permissions: Some(0o700),
            prune: true,
        }],
        extra: Map::new(),
    }
}

#[test]
fn an_entry_reads_back_as_written() {
    let entry = sample();
    assert_eq!(back(&write(&entry)).unwrap(), entry);
    assert_eq!(subject(&entry), "vws journal 9: undo of 8, 7 paths, open\n");
}

#[test]
fn unknown_keys_survive_and_a_higher_format_is_refused() {
    let text = String::from_utf8(write(&sample())).unwrap();
    let newer = text.replace("\"outcome\"", "\"colour\":[1],\"outcome\"");
    let newer = newer.replace("\"state\"", "\"later\":{\"x\":2},\"state\"");
    let again = String::from_utf8(write(&back(newer.as_bytes()).unwrap())).unwrap();
    assert_eq!(again.matches("\"colour\":[1]").count(), 7);
    assert!(again.contains("\"later\":{\"x\":2}"));
    let higher = text.replace("\"format\":1", "\"format\":2");
    assert!(back(higher.as_bytes()).unwrap_err().contains("format is 2"));
}

#[test]
fn what_makes_no_sense_is_an_error() {
    let text = String::from_utf8(write(&sample())).unwrap();
    for (from, to) in [
        ("\"id\":9", "\"id\":0"),
        ("\"undo\"", "\"redo\""),
        ("\"open\"", "\"ajar\""),
        ("120000", "160000"),
        ("\"2750\"", "\"x\""),
        ("\"steps\":[", "\"steps\":[7,"),
        ("\"path\":\"d\"", "\"path\":\"../d\""),
        ("type_change", "type-change"),
        ("\"blob\":\"1", "\"blob\":\"g"),
    ] {
        assert!(text.contains(from), "{from}");
        assert!(back(text.replace(from, to).as_bytes()).is_err(), "{to}");
    }
    for bad in ["", "[]", "{}", "{\"format\":1}"] {
        assert!(back(bad.as_bytes()).is_err(), "{bad}");
    }
}
