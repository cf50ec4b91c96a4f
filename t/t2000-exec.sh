#!/bin/sh

test_description='exec and run: a command in a directory of its own, through git

What the command sees, what it leaves, how it ends; and that nothing of the user moves.'

. "$(dirname "$0")/test-lib.sh"

# users_side: all that is the user's and must never move
users_side () {
	git for-each-ref --format="%(refname) %(objectname)" refs/heads/main refs/tags refs/stash &&
	git symbolic-ref HEAD &&
	cksum .git/index .git/config one.t two.t &&
	git status --porcelain=v2
}

test_expect_success 'setup' '
	mkdir ../aside &&
	test_commit one &&
	test_commit two &&
	echo dirty >one.t
'

test_expect_success 'the command sees the tree of the workspace, and git works in it' '
	users_side >../aside/expect &&
	git vws overlay create agent >../aside/record &&
	git vws exec --at=own agent -- sh -c "pwd && cat one.t && git status --porcelain && git rev-parse --show-toplevel" \
		>../aside/out &&
	{
		echo "$TRASH_DIRECTORY/.relo/worktrees/agent" &&
		echo dirty &&
		echo "$TRASH_DIRECTORY/.relo/worktrees/agent"
	} >../aside/want &&
	test_cmp ../aside/want ../aside/out &&
	test_path_is_missing .relo/worktrees/agent &&
	users_side >../aside/actual &&
	test_cmp ../aside/expect ../aside/actual
'

test_expect_success 'what it made is the next revision' '
	git vws exec agent -- sh -c "echo made >made && rm two.t && chmod +x one.t" &&
	git vws overlay diff --name-status agent >../aside/actual &&
	printf "M\tone.t\nA\tmade\nD\ttwo.t\n" | sort -k2 >../aside/want &&
	test_cmp ../aside/want ../aside/actual &&
	test_path_is_missing made &&
	test_path_is_file two.t
'

test_expect_success 'the exit code is that of the command, and its work is kept all the same' '
	test_expect_code 7 git vws exec agent -- sh -c "echo seven >seven; exit 7" &&
	git vws overlay read agent seven >../aside/actual &&
	echo seven >../aside/want &&
	test_cmp ../aside/want ../aside/actual &&
	test_expect_code 143 git vws exec agent -- sh -c "echo term >term; kill -TERM \$\$" &&
	git vws overlay read agent term >../aside/actual &&
	test_expect_code 127 git vws exec agent -- ./no-such &&
	test_expect_code 126 git vws exec agent -- ./made &&
	test_expect_code 125 git vws exec nobody -- true
'

test_expect_success 'standard input and output are those of the command, byte for byte' '
	printf "a\0b\377" >../aside/bytes &&
	git vws exec agent -- cat <../aside/bytes >../aside/actual &&
	test_cmp_bin ../aside/bytes ../aside/actual
'

test_expect_success 'an open directory is used, and stays' '
	git vws materialize agent >../aside/record &&
	git vws exec agent -- sh -c "echo again >again" &&
	test_path_is_file .relo/worktrees/agent/again &&
	git vws overlay read agent again >../aside/actual &&
	git vws settle agent >../aside/record &&
	test_path_is_missing .relo/worktrees/agent
'

test_expect_success 'run: from nothing to a proposal, and accepted' '
	git vws run fresh -- sh -c "echo fresh >fresh" >../aside/out 2>../aside/err &&
	echo "proposed A 1 0 fresh 2	fresh" >../aside/want &&
	test_cmp ../aside/want ../aside/out &&
	test_grep "^fresh: proposed 1 change;" ../aside/err &&
	git vws changes fresh >../aside/actual &&
	test_cmp ../aside/want ../aside/actual &&
	test_path_is_missing fresh &&
	git vws accept fresh >../aside/out &&
	echo fresh >../aside/want &&
	test_cmp ../aside/want fresh &&
	git vws undo >../aside/out &&
	test_path_is_missing fresh
'

test_expect_success 'nothing of the user has moved' '
	users_side >../aside/actual &&
	test_cmp ../aside/expect ../aside/actual &&
	git fsck --strict --no-dangling
'

test_done
