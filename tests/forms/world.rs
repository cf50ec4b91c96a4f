//! What the caller's environment, settings and hooks change, and what they must never change.

use std::fs;

use bstr::ByteSlice;

use crate::common::directories_stay;
use crate::job::{Site, field, lines, main_job};
use crate::kinds::skip;

/// Settings that would sign, ask, start something, or print otherwise; `RECORD` is a program that
/// leaves a trace and fails, `HOOKS` a folder of hooks that do.
const HOSTILE: &str = "
[commit]
	gpgSign = true
	status = false
	verbose = true
	cleanup = scissors
	template = RECORD
[tag]
	gpgSign = true
[user]
	useConfigOnly = true
	signingKey = none
[gpg]
	program = RECORD
	format = openpgp
[core]
	hooksPath = HOOKS
	fsmonitor = RECORD
	untrackedCache = true
	editor = RECORD
	pager = RECORD
	askPass = RECORD
	sshCommand = RECORD
	abbrev = 4
	logAllRefUpdates = false
	bigFileThreshold = 1
	compression = 0
	looseCompression = 9
	splitIndex = true
	checkStat = minimal
	trustctime = false
	whitespace = tab-in-indent
	commentChar = auto
	safecrlf = true
	quotePath = false
	preloadIndex = false
	warnAmbiguousRefs = true
	createObject = rename
[feature]
	manyFiles = true
	experimental = true
[index]
	version = 4
	skipHash = true
	sparse = true
	threads = 1
	recordOffsetTable = true
[diff]
	noprefix = true
	mnemonicPrefix = true
	external = RECORD
	renames = copies
	renameLimit = 1
	orderFile = RECORD
	algorithm = histogram
	context = 0
	interHunkContext = 9
	ignoreSubmodules = all
	submodule = log
	relative = true
	colorMoved = zebra
	wsErrorHighlight = all
	indentHeuristic = false
	suppressBlankEmpty = true
	autoRefreshIndex = true
	trustExitCode = true
[color]
	ui = always
	diff = always
	status = always
[column]
	ui = always
[status]
	relativePaths = true
	showUntrackedFiles = no
	submoduleSummary = true
	renames = copies
	short = true
	branch = true
	showStash = true
	displayCommentPrefix = true
[log]
	showSignature = true
	date = relative
	decorate = full
[merge]
	conflictStyle = zdiff3
	renames = false
	verbosity = 5
[apply]
	whitespace = fix
	ignoreWhitespace = change
[checkout]
	workers = 4
	guess = false
[submodule]
	recurse = true
[gc]
	auto = 1
	autoPackLimit = 1
	autoDetach = false
[maintenance]
	auto = true
[pack]
	packSizeLimit = 1m
	writeReverseIndex = true
	useSparse = true
[repack]
	writeBitmaps = true
[worktree]
	guessRemote = true
[advice]
	detachedHead = true
[transfer]
	hideRefs = refs/relo
[trace2]
	eventBrief = true
[alias]
	status = !false
	for-each-ref = !false
	check-attr = !false
	update-ref = !false
";

/// The hooks of internal steps that must never run.
const HOOKS: [&str; 10] = [
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-rewrite",
    "pre-auto-gc",
    "pre-commit",
    "prepare-commit-msg",
];

#[test]
fn settings_change_nothing_and_start_nothing() {
    let mut site = Site::committed();
    site.soil();
    let root = site.sandbox.root().to_owned();
    let (record, hooks) = (root.join("record"), root.join("hooks"));
    let trace = root.join("was-run");
    let text = format!("echo \"$0 $*\" >>'{}'\nexit 1", trace.display());
    site.script(&record, &text);
    for hook in HOOKS {
        site.script(&hooks.join(hook), &text);
    }
    let config = HOSTILE
        .replace("RECORD", record.to_str().unwrap())
        .replace("HOOKS", hooks.to_str().unwrap());
    let global = root.join("hostile");
    fs::write(&global, config).unwrap();
    site.set("GIT_CONFIG_GLOBAL", &global);
    for name in [
        "GIT_EXTERNAL_DIFF",
        "GIT_PAGER",
        "GIT_EDITOR",
        "GIT_SEQUENCE_EDITOR",
        "GIT_ASKPASS",
    ] {
        site.set(name, &record);
    }
    for (name, value) in [
        ("LC_ALL", "de_DE.UTF-8"),
        ("LANGUAGE", "de"),
        ("GIT_LITERAL_PATHSPECS", "1"),
        ("GIT_DIFF_OPTS", "--unified=0"),
        ("GIT_DEFAULT_HASH", "sha256"),
        ("GIT_OPTIONAL_LOCKS", "1"),
        ("GIT_TRACE", "1"),
        ("GIT_FLUSH", "0"),
        ("GIT_PAGER_IN_USE", "1"),
        ("GIT_NAMESPACE", "elsewhere"),
        ("GIT_AUTHOR_NAME", ""),
        ("GIT_AUTHOR_DATE", "never"),
        ("GIT_COMMITTER_DATE", "never"),
    ] {
        site.set(name, value);
    }
    main_job(&mut site);
    let ran = fs::read(&trace).unwrap_or_default();
    assert!(ran.is_empty(), "{}", ran.as_bstr());
    // Nothing of ours is below the namespace.
    assert_eq!(site.git(&["for-each-ref", "refs/namespaces"]), "");
    let author = site.git(&[
        "log",
        "-1",
        "--format=%an %ae %cn",
        "refs/relo/vws/keep/overlay",
    ]);
    assert_eq!(author, "git-vws git-vws@localhost git-vws\n");
}

#[test]
fn the_repository_is_named_by_variables() {
    let mut site = Site::committed();
    site.soil();
    let top = site.top.clone();
    let git = top.join(".git");
    let (git_dir, top_dir) = (git.to_str().unwrap(), top.to_str().unwrap());
    let cases: [(&str, &[(&str, &str)]); 6] = [
        ("", &[("GIT_DIR", git_dir)]),
        ("", &[("GIT_DIR", ".git"), ("GIT_WORK_TREE", ".")]),
        ("in", &[("GIT_DIR", "../.git"), ("GIT_WORK_TREE", "..")]),
        ("in", &[("GIT_DIR", git_dir), ("GIT_WORK_TREE", top_dir)]),
        (
            "in",
            &[
                ("GIT_DIR", git_dir),
                ("GIT_WORK_TREE", ".."),
                ("GIT_COMMON_DIR", git_dir),
            ],
        ),
        (
            "../home",
            &[("GIT_DIR", git_dir), ("GIT_WORK_TREE", "../repo")],
        ),
    ];
    for (cwd, variables) in cases {
        eprintln!("case: {cwd} {variables:?}");
        site.cwd = top.join(cwd);
        site.world.clear();
        for (name, value) in variables {
            site.set(name, value);
        }
        main_job(&mut site);
        site.ok(&["overlay", "dispose", "--force", "keep"]);
    }
}

#[test]
fn the_git_dir_of_a_linked_worktree_by_name() {
    let mut site = Site::committed();
    site.git(&["worktree", "add", "-q", "../w"]);
    let main = site.top.clone();
    site.top = site.sandbox.root().join("w");
    site.cwd = site.top.clone();
    site.soil();
    site.set("GIT_DIR", main.join(".git/worktrees/w"));
    main_job(&mut site);
    assert_eq!(site.git_in(&main, &["config", "core.bare"]), "false\n");
    assert_eq!(site.git_in(&main, &["status", "--porcelain"]), "");
}

#[test]
fn a_git_dir_alone_means_that_the_tree_is_here() {
    let mut site = Site::committed();
    site.cwd = site.top.join("in");
    site.set("GIT_DIR", site.top.join(".git"));
    let record = site.ok(&["base"]);
    assert_eq!(
        site.git(&["ls-tree", "-r", "--name-only", &field(&record, "tree")]),
        "g\n"
    );
    let mut elsewhere = Site::committed();
    fs::create_dir(elsewhere.sandbox.root().join("tree")).unwrap();
    fs::write(elsewhere.sandbox.root().join("tree/only"), "only\n").unwrap();
    elsewhere.git(&["config", "core.worktree", "../../tree"]);
    elsewhere.cwd = elsewhere.sandbox.home();
    elsewhere.set("GIT_DIR", elsewhere.top.join(".git"));
    let record = elsewhere.ok(&["base"]);
    let tree = field(&record, "tree");
    let mut command = elsewhere.command("git");
    command.arg("--git-dir").arg(elsewhere.top.join(".git"));
    let listed = command
        .args(["ls-tree", "-r", "--name-only", &tree])
        .output()
        .unwrap();
    assert_eq!(listed.stdout.as_bstr(), "only\n");
}

#[test]
fn the_search_stops_at_a_ceiling() {
    let mut site = Site::committed();
    site.cwd = site.top.join("in");
    site.ok(&["overlay", "list"]);
    site.set("GIT_CEILING_DIRECTORIES", site.top.clone());
    site.refused(&["overlay", "list"], 128, "not a git repository");
}

#[test]
fn an_index_of_the_callers_own() {
    let mut site = Site::committed();
    let index = site.sandbox.root().join("index");
    fs::copy(site.top.join(".git/index"), &index).unwrap();
    // Untracked, ignored and on disk: by this index, and by no other, it is not there.
    let mut command = site.command("git");
    command
        .env("GIT_INDEX_FILE", &index)
        .args(["rm", "-q", "--cached", "bin"]);
    assert!(command.status().unwrap().success());
    site.write(".git/info/exclude", "bin\n");
    site.set("GIT_INDEX_FILE", &index);
    let before = fs::read(&index).unwrap();
    let record = site.ok(&["overlay", "create", "a"]);
    let listed = site.git(&["ls-tree", "-r", "--name-only", &field(&record, "tree")]);
    assert!(!listed.contains_str("bin"), "{listed}");
    assert_eq!(
        site.ok(&["exec", "a", "--", "git", "status", "--porcelain"]),
        ""
    );
    assert_eq!(fs::read(&index).unwrap(), before);
    site.world.clear();
    let record = site.ok(&["overlay", "create", "b"]);
    let listed = site.git(&["ls-tree", "-r", "--name-only", &field(&record, "tree")]);
    assert!(listed.contains_str("bin"), "{listed}");
}

#[test]
fn objects_go_where_the_caller_says() {
    let mut site = Site::committed();
    let objects = site.sandbox.root().join("objects");
    fs::create_dir(&objects).unwrap();
    let own = site.top.join(".git/objects");
    let count = || fs::read_dir(own.join("pack")).unwrap().count();
    let before = count();
    site.cwd = site.top.join("in");
    site.set("GIT_OBJECT_DIRECTORY", "../../objects");
    site.set("GIT_ALTERNATE_OBJECT_DIRECTORIES", &own);
    site.soil();
    site.ok(&["overlay", "create", "a"]);
    site.ok_with(&["overlay", "write", "a", "f"], b"there\n");
    assert_eq!(site.ok(&["exec", "a", "--", "cat", "f"]), "there\n");
    assert_eq!(count(), before);
    assert!(fs::read_dir(objects.join("pack")).unwrap().count() > 0);
}

#[test]
fn a_quarantine_is_read_and_no_ref_is_moved_to_what_it_holds() {
    if directories_stay() {
        return skip(
            "a quarantine is read and no ref is moved to what it holds",
            "it is about a workspace without a directory",
        );
    }
    let mut site = Site::committed();
    site.ok(&["overlay", "create", "a"]);
    let objects = site.sandbox.root().join("objects");
    fs::create_dir(&objects).unwrap();
    let refs = site.git(&["for-each-ref"]);
    site.set("GIT_OBJECT_DIRECTORY", &objects);
    site.set(
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        site.top.join(".git/objects"),
    );
    site.set("GIT_QUARANTINE_PATH", &objects);
    assert_eq!(site.ok(&["overlay", "read", "a", "f"]), lines(&[]));
    for args in [
        &["overlay", "create", "b"][..],
        &["overlay", "write", "a", "f"],
        &["exec", "a", "--", "true"],
    ] {
        let code = if args[0] == "exec" { 125 } else { 128 };
        site.refused(args, code, "quarantine");
    }
    assert_eq!(site.git(&["for-each-ref"]), refs);
    assert!(!site.top.join(".relo/worktrees/a").exists());
}

#[test]
fn settings_of_one_call() {
    let site = Site::committed();
    site.write("new", "new\n");
    site.write("junk", "junk\n");
    site.write("../rules", "junk\n");
    let with = |settings: &[&str]| {
        let mut command = site.command("git");
        for setting in settings {
            command.args(["-c", setting]);
        }
        command.args(["vws", "base"]);
        site.sandbox.outcome(command, b"").success().to_string()
    };
    assert!(with(&[]).contains("untracked junk\nuntracked new\n"));
    assert!(with(&["core.excludesFile=../rules"]).contains("\nuntracked new\n"));
    assert!(!with(&["core.excludesFile=../rules"]).contains("junk"));
    assert!(with(&["relo.workspace.maxUntracked=1"]).contains("untracked-left-out 2\n"));
    let mut command = site.command("git");
    command
        .args(["vws", "base"])
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "relo.workspace.maxUntracked")
        .env("GIT_CONFIG_VALUE_0", "1");
    let counted = site.sandbox.outcome(command, b"").success().to_string();
    assert!(counted.contains("untracked-left-out 2\n"), "{counted}");
}

#[test]
fn a_commit_whose_hooks_call_us_holds_what_was_staged() {
    for args in [
        &["commit", "-q", "-m", "by hook"][..],
        &["commit", "-q", "-a", "-m", "all"],
        &["commit", "-q", "-m", "some", "f"],
        &["commit", "-q", "--amend", "-m", "again"],
    ] {
        let made = |hooks: bool| {
            let site = Site::committed();
            site.soil();
            for (hook, agent) in [("pre-commit", "pre"), ("post-commit", "post")] {
                let script = format!(
                    "set -e
                    git vws base >/dev/null
                    git vws run -q {agent} -- sh -c 'echo hook >>run.sh; echo x >made; git add -A; git status' >/dev/null
                    git vws accept {agent} -- made >/dev/null
                    git vws undo >/dev/null
                    echo ran >>../ran"
                );
                if hooks {
                    site.script(&site.top.join(".git/hooks").join(hook), &script);
                }
            }
            site.git(args);
            if hooks {
                assert_eq!(
                    fs::read(site.sandbox.root().join("ran")).unwrap(),
                    b"ran\nran\n"
                );
            }
            // The repository as a whole, our own refs apart.
            let refs = site.git(&["for-each-ref", "refs/heads/main"]);
            let tree = site.git(&["rev-parse", "HEAD^{tree}"]);
            (
                refs,
                tree,
                site.git(&["status", "--porcelain=v2"]),
                site.git(&["ls-files", "-s"]),
            )
        };
        assert_eq!(made(true), made(false), "{args:?}");
    }
}

#[test]
fn a_hook_that_vetoes_our_refs_is_named() {
    if directories_stay() {
        return skip(
            "a hook that vetoes our refs is named",
            "it is about a workspace without a directory",
        );
    }
    for options in [&[][..], &["--ref-format=reftable"]] {
        let mut site = Site::with_init(options);
        site.fill();
        site.commit("first");
        site.ok(&["overlay", "create", "a"]);
        let hook = site.top.join(".git/hooks/reference-transaction");
        site.script(
            &hook,
            "test \"$1\" = prepared && grep -q refs/relo && exit 1; exit 0",
        );
        let refs = site.git(&["for-each-ref"]);
        for args in [
            &["overlay", "write", "a", "f"][..],
            &["overlay", "create", "b"],
            &["snap", "a"],
            &["materialize", "a"],
            &["overlay", "dispose", "--force", "a"],
        ] {
            site.refused(args, 128, "'reference-transaction' hook");
        }
        assert_eq!(site.git(&["for-each-ref"]), refs);
        assert_eq!(site.ok(&["overlay", "read", "a", "f"]), lines(&[]));
        assert!(!site.top.join(".relo/worktrees/a").exists());
        // One that agrees sees every transaction, and the job goes on.
        site.script(&hook, "cat >>../seen; exit 0");
        site.soil();
        site.ok(&["overlay", "dispose", "--force", "a"]);
        main_job(&mut site);
        let seen = fs::read(site.sandbox.root().join("seen")).unwrap();
        assert!(seen.contains_str("refs/relo/vws/a/overlay"));
    }
}
