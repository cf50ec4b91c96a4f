//! The edges of a capture: one row for each thing that a tool can do to a directory, with the tree
//! that must come of it, whatever made the directory.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::common::Sandbox;

/// What must come of a row.
pub(crate) enum Wants {
    /// What `git add --all` makes of the same directory.
    Git,
    /// The files of the base with these changes. Here git fails as a whole, or takes what we must not.
    But(&'static [(&'static str, Option<&'static str>)]),
}

/// What happens in a directory.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// Shell scripts, each with a capture after it.
    pub(crate) steps: &'static [&'static str],
    pub(crate) wants: Wants,
    /// The paths that the last capture leaves out, and why.
    pub(crate) left_out: &'static [(&'static str, &'static str)],
    /// A setting for these captures, as `git -c` takes it.
    pub(crate) setting: Option<&'static str>,
    /// Adds to the index of the commit that the row starts from.
    pub(crate) before: Option<&'static str>,
    /// Where it happens.
    pub(crate) place: Place,
}

/// Where a row happens.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In a folder of its own, with the base in it, of a directory that all such rows share.
    Folder,
    /// At the top of that directory; no two of these rows touch the same path.
    Top,
    /// In a directory of its own.
    Alone,
}

const fn git(name: &'static str, steps: &'static [&'static str]) -> Row {
    Row {
        name,
        steps,
        wants: Wants::Git,
        left_out: &[],
        setting: None,
        before: None,
        place: Place::Folder,
    }
}

const fn but(
    name: &'static str,
    steps: &'static [&'static str],
    changes: &'static [(&'static str, Option<&'static str>)],
    left_out: &'static [(&'static str, &'static str)],
) -> Row {
    Row {
        wants: Wants::But(changes),
        left_out,
        ..git(name, steps)
    }
}

const fn alone(row: Row) -> Row {
    Row {
        place: Place::Alone,
        ..row
    }
}

const fn top(row: Row) -> Row {
    Row {
        place: Place::Top,
        ..row
    }
}

/// Writes what the rows start from into the repository.
pub(crate) fn base(sandbox: &Sandbox) {
    base_in(&sandbox.repo());
}

/// Writes what the rows start from into a folder.
pub(crate) fn base_in(folder: &Path) {
    for path in ["f", "g", "d/a", "d/b", "d/deep/c", "run.sh"] {
        let file = folder.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, format!("{path}\n")).unwrap();
    }
    std::os::unix::fs::symlink("d/a", folder.join("l")).unwrap();
    std::os::unix::fs::symlink("/outside", folder.join("old-leaver")).unwrap();
    fs::set_permissions(folder.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
}

/// The limit under which the rows run.
pub(crate) const LIMIT: &str = "relo.workspace.maxFileSize=4k";

/// All of them.
pub(crate) const ROWS: &[Row] = &[
    git("nothing", &[""]),
    git("edited", &["echo new > f"]),
    git("touched only", &["touch f d/a"]),
    git("same content, new file", &["cp f t; rm f; mv t f"]),
    git("deleted", &["rm f d/a"]),
    git("folder deleted", &["rm -r d"]),
    git("everything deleted", &["rm -r d f g l run.sh old-leaver"]),
    git("new", &["mkdir -p n/m; echo 1 > n/m/x; echo 2 > y"]),
    git("empty file", &[": > empty; : > f"]),
    git("empty folder", &["mkdir -p e/f"]),
    git("renamed", &["mv f h; mv d e"]),
    git("bit set", &["chmod +x f"]),
    git("bit cleared", &["chmod -x run.sh"]),
    git("bit and content", &["chmod +x f; echo new > f"]),
    git("group's bit", &["chmod 654 f"]),
    git("file to link", &["rm f; ln -s g f"]),
    git("link to file", &["rm l; echo text > l"]),
    git("link elsewhere", &["rm l; ln -s g l"]),
    git("link to nowhere", &["ln -s no/where n"]),
    git("link to a folder", &["ln -s d n"]),
    git("link up, inside", &["ln -s ../f d/up"]),
    git(
        "link loops",
        &["ln -s u u; ln -s y x; ln -s x y; ln -s .. d/up"],
    ),
    git("file to folder", &["rm f; mkdir f; echo 1 > f/x"]),
    git("file to empty folder", &["rm f; mkdir f"]),
    git("folder to file", &["rm -r d; echo 1 > d"]),
    git("folder to link", &["rm -r d; ln -s f d"]),
    git("swapped", &["mv f t; mv d f; mv t d"]),
    git(
        "sorts around a slash",
        &["echo > d.x; echo > d-x; echo > d0"],
    ),
    git(
        "hostile names",
        &["echo > ':(top)x'; echo > '*'; echo > '-n'; mkdir '?[a]'; \
           echo > '?[a]/ '; echo > \"$(printf 'n\\nl')\"; echo > \"$(printf '\\377')\"; \
           echo > '\"'; echo > ':!x'; echo > '!bang'; echo > '#hash'"],
    ),
    git("long name", &["echo > $(printf 'x%.0s' $(seq 255))"]),
    git("time set back", &["echo F > f; touch -r g f"]),
    git("same size", &["printf 'F\\n' > f"]),
    top(git(
        "our own folder",
        &[
            "mkdir -p .relo/x sub/.relo; echo > .relo/x/y; echo > sub/.relo/y; \
           rm -r .relo",
        ],
    )),
    but("fifo", &["mkfifo p"], &[], &[("p", "special_file")]),
    but(
        "file to fifo",
        &["rm f; mkfifo f"],
        &[],
        &[("f", "special_file")],
    ),
    but(
        "folder to fifo",
        &["rm -r d; mkfifo d"],
        &[],
        &[("d", "special_file")],
    ),
    but(
        "fifo in a new folder",
        &["mkdir n; mkfifo n/p; echo 1 > n/x"],
        &[("n/x", Some("1\n"))],
        &[("n/p", "special_file")],
    ),
    top(but(
        "leaving link",
        &["ln -s ../out x; ln -s /etc d/y"],
        &[],
        &[("d/y", "escapes"), ("x", "escapes")],
    )),
    but(
        "file to leaving link",
        &["rm f; ln -s /etc/passwd f"],
        &[],
        &[("f", "escapes")],
    ),
    but(
        "folder to leaving link",
        &["rm -r d; ln -s /etc d"],
        &[],
        &[("d", "escapes")],
    ),
    but(
        "old leaving link moved on",
        &["rm old-leaver; ln -s /other old-leaver"],
        &[],
        &[("old-leaver", "escapes")],
    ),
    but(
        "old leaving link made anew",
        &["rm old-leaver; ln -s /outside old-leaver"],
        &[],
        &[],
    ),
    top(but(
        "gitmodules as a link",
        &["ln -s f .gitmodules"],
        &[],
        &[(".gitmodules", "protected_path")],
    )),
    top(but(
        "protected",
        &["mkdir n; echo > n/.GIT; echo > 'git~1'; echo > .Relo; mkdir -p .relo/x"],
        &[],
        &[
            (".Relo", "protected_path"),
            ("git~1", "protected_path"),
            ("n/.GIT", "protected_path"),
        ],
    )),
    but(
        "too large",
        &["head -c 5000 /dev/zero > big; mkdir n; cp big n/big"],
        &[],
        &[("big", "too_large"), ("n/big", "too_large")],
    ),
    but(
        "grown too large",
        &["head -c 5000 /dev/zero > f"],
        &[],
        &[("f", "too_large")],
    ),
    but(
        "nested repository",
        &["git init -q app; echo 1 > app/x; git init -q n/app; echo 2 > n/y"],
        &[("n/y", Some("2\n"))],
        &[("app", "nested_repository"), ("n/app", "nested_repository")],
    ),
    but(
        "nested, named by a file",
        &["mkdir app; echo gitdir: /x > app/.git; echo > app/y"],
        &[],
        &[("app", "nested_repository")],
    ),
    but(
        "nested over a file",
        &["rm f; git init -q f; echo 1 > f/x"],
        &[],
        &[("f", "nested_repository")],
    ),
    but(
        "nested over a folder",
        &["rm -r d; git init -q d; echo 1 > d/a"],
        &[],
        &[("d", "nested_repository")],
    ),
    but(
        "deletions beside",
        &["rm f; mkfifo p"],
        &[("f", None)],
        &[("p", "special_file")],
    ),
    but(
        "nothing under a gitignored fifo",
        &["echo p > .gitignore; mkfifo p"],
        &[(".gitignore", Some("p\n"))],
        &[],
    ),
    but(
        "socket",
        &["perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Local => q(s), Listen => 1) or die'"],
        &[],
        &[("s", "special_file")],
    ),
    git(
        "racy edits of one size",
        &["printf A > f", "printf B > f", "printf C > f; printf D > g"],
    ),
    git(
        "taken back",
        &["echo x > f; mkdir n; echo x > n/x", "echo f > f; rm -r n"],
    ),
    but(
        "ignored after it was captured",
        &[
            "echo 1 > kept.log",
            "echo '*.log' > .gitignore; echo 2 > kept.log; echo 3 > new.log",
        ],
        &[(".gitignore", Some("*.log\n")), ("kept.log", Some("2\n"))],
        &[],
    ),
    alone(git(
        "a commit inside",
        &["echo 1 > f; git commit -q -a -m x; echo 2 > n"],
    )),
    alone(git(
        "a switch inside",
        &[
            "git checkout -q -b switched; echo 1 > f; git commit -q -a -m y; \
           git checkout -q --detach HEAD~1; echo 3 > g",
        ],
    )),
    alone(git(
        "a reset inside",
        &["echo 1 > f; git commit -q -a -m x; echo 2 > n; git reset -q --hard HEAD~1; echo 3 > g"],
    )),
    alone(but(
        "the git file gone",
        &["rm .git; echo 1 > f"],
        &[("f", Some("1\n"))],
        &[],
    )),
    git(
        "a long path",
        &[
            "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do mkdir $(printf 'x%.0s' $(seq 240)); \
           cd $(printf 'x%.0s' $(seq 240)); done; echo 1 > f",
        ],
    ),
    git(
        "names that differ in case",
        &["echo 1 > F; mkdir D; echo 2 > D/a; echo 3 > L"],
    ),
    Row {
        place: Place::Alone,
        setting: Some("core.fileMode=false"),
        ..git(
            "modes that do not count",
            &["echo edited > run.sh; chmod -x run.sh; chmod +x f; echo 1 > new; chmod +x new"],
        )
    },
    Row {
        place: Place::Alone,
        before: Some(
            "for path in sub d/sub gone; do git update-index --add --cacheinfo \
             160000,$(git rev-parse main),$path; done",
        ),
        ..but(
            "submodules",
            &["git init -q sub; echo 1 > sub/x; echo 2 > d/sub/y; rmdir gone; rm f"],
            &[("f", None)],
            &[("gone", "nested_repository")],
        )
    },
    but(
        "unreadable",
        &[
            "mkdir n; echo 1 > n/x",
            "chmod 000 f; echo 1 > locked; chmod 000 locked; chmod 000 d; echo 2 > n/x; \
             chmod 000 n; mkdir m; chmod 000 m; echo edited > run.sh",
        ],
        &[("n/x", Some("1\n")), ("run.sh", Some("edited\n"))],
        &[
            ("d", "unreadable"),
            ("f", "unreadable"),
            ("locked", "unreadable"),
            ("m", "unreadable"),
            ("n", "unreadable"),
        ],
    ),
];
