#!/bin/sh

test_description='exit codes, through git: 0, 1, 128, 129, 141

	0	done
	1	the command says no, and nothing has changed
	128	a failure
	129	usage
	141	whoever read the output went away'

. "$(dirname "$0")/test-lib.sh"

test_expect_success 'setup' '
	test_commit one &&
	git vws overlay create agent --base=HEAD >record &&
	test_grep "^revision 1$" record
'

test_expect_success '0: done, and help that was asked for' '
	git vws overlay list >out &&
	git vws -h >out &&
	test_grep "^usage: git vws" out &&
	git vws overlay write -h >out &&
	test_grep "^usage: git vws overlay write" out &&
	git vws version >out &&
	test_grep "^git-vws [0-9]" out
'

test_expect_success '1: a refusal names its kind, on stderr only' '
	test_expect_code 1 git vws overlay write agent ../out >out 2>err &&
	test_must_be_empty out &&
	test_grep "^error: .*\[escapes\]$" err &&
	test_expect_code 1 git vws overlay write --expect=7 agent f >out 2>err &&
	test_must_be_empty out &&
	test_grep "\[stale\]" err &&
	test_grep "^hint: " err
'

test_expect_success '1: what is not there differs from what could not be looked at' '
	test_expect_code 1 git vws overlay read agent nope >out 2>err &&
	test_must_be_empty out &&
	test_grep "^error: path .nope. does not exist" err &&
	test_expect_code 128 git vws overlay read nobody one.t >out 2>err &&
	test_must_be_empty out &&
	test_grep "^fatal: no workspace .nobody." err
'

test_expect_success '128: no repository' '
	mkdir empty &&
	(
		cd empty &&
		GIT_CEILING_DIRECTORIES=$(dirname "$(pwd)") &&
		export GIT_CEILING_DIRECTORIES &&
		test_expect_code 128 git vws overlay list 2>../err
	) &&
	test_grep "^fatal: not a git repository" err &&
	GIT_DIR=nowhere test_expect_code 128 git vws base 2>err &&
	test_grep "^fatal: not a git repository" err
'

test_expect_success '128: a bad revision and a damaged workspace' '
	test_expect_code 128 git vws overlay create other --base=nope 2>err &&
	test_grep "^fatal: not a valid revision: .nope." err &&
	test_when_finished "git update-ref -d refs/relo/vws/broken/overlay" &&
	git update-ref refs/relo/vws/broken/overlay HEAD &&
	test_expect_code 128 git vws overlay show broken 2>err &&
	test_grep "^fatal: .*\[damaged\]$" err &&
	git vws overlay list >out &&
	test_grep "^damaged " out
'

test_expect_success '129: usage, with the synopsis and without output' '
	for args in "nosuch" "overlay nosuch" "overlay create" "overlay create a..b" \
		"overlay list --nosuch" "overlay write agent f --expect=x" "snap"
	do
		test_expect_code 129 git vws $args >out 2>err &&
		test_must_be_empty out &&
		test_grep "^fatal: " err &&
		test_grep "^usage: git vws" err || return 1
	done
'

test_expect_success '129: a command that was left out is told what there is' '
	test_expect_code 129 git vws >out 2>err &&
	test_grep "^usage: git vws" out &&
	test_must_be_empty err
'

test_expect_success '128: a full disk' '
	test_expect_code 128 git vws overlay ls agent >/dev/full 2>err &&
	test_grep "^fatal: cannot write to standard output: " err
'

test_expect_success '141: a closed pipe is quiet' '
	for i in $(test_seq 300)
	do
		echo "$i" >"file-with-a-name-that-fills-a-pipe-soon-$i" || return 1
	done &&
	mkdir -p d1/d2 && cp file-with* d1 && cp file-with* d1/d2 &&
	git add . &&
	git commit -q -m many &&
	git vws overlay create many --base=HEAD >record &&
	rm -f code &&
	{ test_run_for_code_ git vws overlay ls -r many 2>err; echo "$test_code_" >code; } | head -n 1 >out &&
	echo 141 >expect &&
	test_cmp expect code &&
	test_must_be_empty err &&
	test_line_count = 1 out
'

test_expect_success 'a setting without sense is said before anything is done' '
	git rev-parse refs/relo/vws/agent/overlay >expect &&
	test_expect_code 128 git -c core.quotePath=maybe vws overlay write agent f 2>err &&
	test_grep "core.quotepath" err &&
	git rev-parse refs/relo/vws/agent/overlay >actual &&
	test_cmp expect actual
'

test_expect_success 'git says which repository' '
	git vws overlay show agent >expect &&
	mkdir -p sub/dir &&
	git -C sub/dir vws overlay show agent >actual &&
	test_cmp expect actual &&
	git --git-dir=.git vws overlay show agent >actual &&
	test_cmp expect actual &&
	(cd / && GIT_DIR=$TRASH_DIRECTORY/.git git vws overlay show agent) >actual &&
	test_cmp expect actual
'

test_expect_success 'a relative GIT_WORK_TREE starts at the current directory, as for git' '
	mkdir elsewhere &&
	echo only >elsewhere/only &&
	(cd elsewhere && GIT_DIR=../.git GIT_WORK_TREE=. git vws overlay create elsewhere) >record &&
	git vws overlay ls elsewhere >actual &&
	test_line_count = 1 actual &&
	test_grep "	only$" actual
'

test_done
