#!/bin/sh

test_description='overlay write, delete, rename, chmod, symlink: one revision each, held against git'

. "$(dirname "$0")/test-lib.sh"

# Does to a worktree of the user's what is done to the workspace, and compares the trees.
same_tree () {
	git -C mirror add --all &&
	git -C mirror write-tree >expect &&
	git rev-parse "refs/relo/vws/agent/overlay^{tree}" >actual &&
	test_cmp expect actual
}

write_and_tell () {
	echo "$1" >"in.$1"
	test_run_for_code_ git vws overlay write agent "at-once/$1" <"in.$1" >"record.$1" 2>"err.$1"
	echo "$test_code_" >"code.$1"
}

put () {
	git vws overlay write agent "$1" >record
}

test_expect_success 'setup' '
	mkdir -p dir/deep &&
	test_commit one &&
	test_commit two dir/deep/two.t &&
	test_commit three dir/three.t &&
	git worktree add -q --detach mirror &&
	git -C mirror config core.protectNTFS false &&
	git vws overlay create agent --base=HEAD >record
'

test_expect_success 'write: new, changed, deep, empty, binary' '
	echo new >mirror/new.t && put new.t <mirror/new.t &&
	echo changed >mirror/one.t && put one.t <mirror/one.t &&
	mkdir -p mirror/a/b/c && echo deep >mirror/a/b/c/d && put a/b/c/d <mirror/a/b/c/d &&
	: >mirror/empty && put empty <mirror/empty &&
	printf "a\0b\r\n\377" >mirror/binary && put binary <mirror/binary &&
	same_tree &&
	git vws overlay read agent binary >actual &&
	test_cmp_bin mirror/binary actual &&
	test_grep "^revision 6$" record
'

test_expect_success 'the same bytes again are no revision' '
	git rev-parse refs/relo/vws/agent/overlay >expect &&
	put binary <mirror/binary &&
	test_grep "^unchanged$" record &&
	git rev-parse refs/relo/vws/agent/overlay >actual &&
	test_cmp expect actual
'

test_expect_success 'chmod, and a write keeps the bit' '
	chmod +x mirror/one.t &&
	git vws overlay chmod agent +x one.t >record &&
	same_tree &&
	echo again >mirror/one.t && put one.t <mirror/one.t &&
	same_tree &&
	chmod -x mirror/one.t &&
	git vws overlay chmod agent -x one.t >record &&
	echo "#!/bin/sh" >mirror/tool && chmod +x mirror/tool &&
	git vws overlay write --chmod=+x agent tool <mirror/tool >record &&
	same_tree
'

test_expect_success SYMLINKS 'symlink, read through, never written through' '
	(cd mirror && ln -s dir/three.t link && ln -s a/b down && ln -s ../one.t dir/up) &&
	git vws overlay symlink agent link dir/three.t >record &&
	git vws overlay symlink agent down a/b >record &&
	git vws overlay symlink agent dir/up ../one.t >record &&
	same_tree &&
	git vws overlay read agent down/c/d >actual &&
	test_cmp mirror/a/b/c/d actual &&
	git vws overlay read agent dir/up >actual &&
	test_cmp mirror/one.t actual &&
	test_expect_code 1 git vws overlay write agent down/x <mirror/one.t 2>err &&
	test_grep "\[escapes\]" err &&
	test_expect_code 1 git vws overlay symlink agent out ../x 2>err &&
	test_grep "\[escapes\]" err &&
	same_tree
'

test_expect_success 'rename a file, a folder, over a file' '
	mv mirror/new.t mirror/renamed.t &&
	git vws overlay rename agent new.t renamed.t >record &&
	mv mirror/dir mirror/folder &&
	git vws overlay rename agent dir folder >record &&
	same_tree &&
	test_expect_code 1 git vws overlay rename agent renamed.t one.t 2>err &&
	mv mirror/renamed.t mirror/one.t &&
	git vws overlay rename -f agent renamed.t one.t >record &&
	same_tree
'

test_expect_success 'delete files and folders; what is empty is gone' '
	rm mirror/a/b/c/d mirror/empty &&
	git vws overlay delete agent a/b/c/d empty >record &&
	same_tree &&
	test_expect_code 1 git vws overlay stat agent a &&
	test_expect_code 1 git vws overlay delete agent folder 2>err &&
	test_grep "\[type_change\]" err &&
	rm -r mirror/folder &&
	git vws overlay delete -r agent folder/ >record &&
	same_tree
'

test_expect_success 'a file where a folder was, and back' '
	echo file >mirror/folder && put folder <mirror/folder &&
	same_tree &&
	rm mirror/folder && git vws overlay delete agent folder >record &&
	mkdir mirror/folder && echo in >mirror/folder/in && put folder/in <mirror/folder/in &&
	same_tree
'

test_expect_success 'names that only bytes can tell' '
	odd=$(printf "tab\t nl\n. \377 \"q\" \\ -x") &&
	echo odd >"mirror/$odd" &&
	git vws overlay write agent -- "$odd" <"mirror/$odd" >record &&
	echo dash >mirror/-rf &&
	git vws overlay write agent -- -rf <mirror/-rf >record &&
	same_tree &&
	git vws overlay ls -z agent >actual &&
	git ls-tree -z refs/relo/vws/agent/overlay >expect &&
	test_cmp_bin expect actual &&
	git vws overlay ls -r agent >actual &&
	git ls-tree -r refs/relo/vws/agent/overlay >expect &&
	test_cmp expect actual
'

test_expect_success '--expect holds writers apart' '
	git vws overlay show agent >record &&
	revision=$(sed -n "s/^revision //p" record) &&
	echo x | git vws overlay write --expect="$revision" agent one.t >record &&
	test_expect_code 1 git vws overlay delete --expect="$revision" agent one.t 2>err &&
	test_grep "\[stale\]" err &&
	git vws overlay read agent one.t >actual &&
	echo x >expect &&
	test_cmp expect actual
'

test_expect_success 'the history is in git' '
	git log --format=%s refs/relo/vws/agent/overlay >log &&
	test_grep "^vws agent r2: write new.t$" log &&
	git reflog refs/relo/vws/agent/overlay >reflog &&
	test_grep "vws agent r2: write new.t" reflog &&
	git fsck --strict --no-dangling
'

test_expect_success 'two writers at once lose nothing' '
	for i in $(test_seq 8)
	do
		{ write_and_tell "$i" & } || return 1
	done &&
	wait &&
	for i in $(test_seq 8)
	do
		echo 0 >expect && test_cmp expect "code.$i" || return 1
	done &&
	git vws overlay ls agent at-once >actual &&
	test_line_count = 8 actual
'

test_done
