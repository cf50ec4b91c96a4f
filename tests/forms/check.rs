//! `git vws check`: what a repository is, what is done how, what cannot be done and why.

use std::fs;

use bstr::ByteSlice;
use insta::assert_snapshot;

use crate::common::directories_stay;
use crate::job::Site;
use crate::kinds::skip;

#[test]
fn a_plain_repository() {
    if directories_stay() {
        return skip(
            "a plain repository",
            "what it says of workspaces is another thing",
        );
    }
    let site = Site::committed();
    assert_snapshot!(site.vws(&["check"]), @"
    usable
    git-dir $SANDBOX/repo/.git
    common-dir $SANDBOX/repo/.git
    worktree $SANDBOX/repo
    object-format sha1
    ref-format files
    way workspaces virtual a directory is there only while a tool needs one
    way refs in-process files, and no hook has a say in a transaction
    way objects in-process all of them are here
    way content in-process git stores files as they lie on disk
    way packs rolled-up at two dozen they become one
    way ignore-rules check-ignore git is asked
    way working-tree status the user's index is git's to read

    exit: 0
    ");
    assert_snapshot!(site.vws(&["check", "--json"]), @r#"
    {"v":1,"usable":true,"gitDir":"$SANDBOX/repo/.git","commonDir":"$SANDBOX/repo/.git","worktree":"$SANDBOX/repo","objectFormat":"sha1","refFormat":"files","forms":[],"ways":[{"what":"workspaces","how":"virtual","why":"a directory is there only while a tool needs one"},{"what":"refs","how":"in-process","why":"files, and no hook has a say in a transaction"},{"what":"objects","how":"in-process","why":"all of them are here"},{"what":"content","how":"in-process","why":"git stores files as they lie on disk"},{"what":"packs","how":"rolled-up","why":"at two dozen they become one"},{"what":"ignore-rules","how":"check-ignore","why":"git is asked"},{"what":"working-tree","how":"status","why":"the user's index is git's to read"}],"limits":[]}
    exit: 0
    "#);
    assert!(!site.top.join(".git/relo").exists(), "it changes nothing");
}

#[test]
fn a_bare_partial_one_has_limits() {
    if directories_stay() {
        return skip(
            "a bare partial one has limits",
            "what it says of workspaces is another thing",
        );
    }
    let mut site = Site::committed();
    site.git(&["config", "uploadpack.allowFilter", "true"]);
    let url = crate::kinds::url(&site);
    site.git(&[
        "clone",
        "-q",
        "--bare",
        "--filter=blob:none",
        &url,
        "../b.git",
    ]);
    site.top = site.sandbox.root().join("b.git");
    site.cwd = site.top.clone();
    assert_snapshot!(site.vws(&["check"]), @"
    usable
    git-dir $SANDBOX/b.git
    common-dir $SANDBOX/b.git
    object-format sha1
    ref-format files
    form bare
    form partial-clone
    way workspaces virtual a directory is there only while a tool needs one
    way refs in-process files, and no hook has a say in a transaction
    way objects cat-file git fetches what is missing
    way content in-process git stores files as they lie on disk
    way packs rolled-up at two dozen they become one
    way ignore-rules check-ignore git is asked
    limit create-without-base unsupported there is no working tree
    limit base unsupported there is no working tree
    limit accept unsupported there is no working tree
    limit undo unsupported there is no working tree

    exit: 0
    ");
}

#[test]
fn everything_at_once() {
    let site = Site::committed();
    site.write("c", "base\n");
    site.write(".gitattributes", "*.bin filter=vault\n");
    site.git(&["clone", "-q", ".", "../lib"]);
    site.git(&["submodule", "--quiet", "add", "../lib", "sub"]);
    site.commit("base");
    site.git(&["checkout", "-q", "-b", "side"]);
    site.write("c", "side\n");
    site.commit("side");
    site.git(&["checkout", "-q", "main"]);
    site.write("c", "main\n");
    site.commit("main");
    site.git(&["config", "core.repositoryFormatVersion", "1"]);
    site.git(&["config", "extensions.preciousObjects", "true"]);
    site.git(&["sparse-checkout", "set", "--no-cone", "/*", "!/out/"]);
    site.git(&["config", "filter.vault.required", "true"]);
    site.git(&["config", "core.ignoreCase", "true"]);
    site.git(&["config", "core.fileMode", "false"]);
    site.git(&["config", "relo.workspace.rewriting", "fallback"]);
    assert!(!site.git_can(&["merge", "side"]));
    site.script(&site.top.join(".git/hooks/reference-transaction"), "exit 0");
    assert_snapshot!(site.vws(&["check"]), @"
    git-dir $SANDBOX/repo/.git
    common-dir $SANDBOX/repo/.git
    worktree $SANDBOX/repo
    object-format sha1
    ref-format files
    form sparse-patterns
    form precious-objects
    form no-file-mode
    form ignore-case
    form merge-under-way
    way workspaces worktree '.gitattributes' speaks of it
    way refs update-ref the 'reference-transaction' hook has a say
    way objects in-process all of them are here
    way content filters '.gitattributes' speaks of it
    way packs kept 'extensions.preciousObjects' is set
    way ignore-rules check-ignore git is asked
    way working-tree status the user's index is git's to read
    limit create unsupported the required filter 'vault' has no 'clean' command
    limit accept-unmerged unmerged 1 paths are unmerged in the index
    limit accept-sparse unsupported what a sparse checkout leaves out has no file to merge into
    limit accept-submodule nested_repository where 1 submodules stand is for their own repositories to say

    exit: 1
    ");
}

#[test]
fn where_no_workspace_can_be_made_it_says_no() {
    let site = Site::committed();
    site.git(&["branch", "relo"]);
    let outcome = site.vws(&["check"]);
    assert_eq!(outcome.code(), Some(1), "{outcome}");
    let says = "limit create unsupported the ref 'refs/heads/relo' leaves no room";
    assert!(outcome.stdout().contains_str(says), "{outcome}");
    assert_ne!(site.vws(&["overlay", "create", "a"]).code(), Some(0));
    site.git(&["branch", "-D", "relo"]);
    let head = site.top.join(".git/HEAD");
    let text = fs::read(&head).unwrap();
    assert_eq!(site.vws(&["check"]).code(), Some(0));
    assert_eq!(fs::read(&head).unwrap(), text);
}
