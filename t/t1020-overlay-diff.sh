#!/bin/sh

test_description='overlay diff: byte for byte what git diff-tree says of the same trees'

. "$(dirname "$0")/test-lib.sh"

# same_diff <our options> -- <options of git diff-tree>
same_diff () {
	ours=
	while test "$1" != --
	do
		ours="$ours $1"
		shift
	done &&
	shift &&
	git vws overlay diff $ours agent >actual &&
	git diff-tree -r --no-renames "$@" refs/relo/vws/agent/base refs/relo/vws/agent/overlay >expect &&
	test_cmp_bin expect actual
}

every_form () {
	same_diff -- --raw --full-index --no-abbrev &&
	same_diff --raw -- --raw --no-abbrev &&
	same_diff -z -- --raw --no-abbrev -z &&
	same_diff --numstat -- --numstat &&
	same_diff --numstat -z -- --numstat -z &&
	same_diff --name-status -- --name-status &&
	same_diff --name-status -z -- --name-status -z
}

put () {
	git vws overlay write agent -- "$1" >record
}

test_expect_success 'setup' '
	mkdir -p dir/sub &&
	test_commit one &&
	test_commit two dir/two.t &&
	test_commit three dir/sub/three.t &&
	test_commit four dir.t &&
	test_commit five dir-t &&
	git vws overlay create agent --base=HEAD >record
'

test_expect_success 'nothing' '
	git vws overlay diff agent >actual &&
	test_must_be_empty actual &&
	every_form
'

test_expect_success 'changed, added, deleted, mode' '
	echo changed | put one.t &&
	echo added | put dir/added.t &&
	git vws overlay delete agent dir/sub/three.t >record &&
	git vws overlay chmod agent +x dir/two.t >record &&
	every_form &&
	git vws overlay diff agent >actual &&
	test_line_count = 4 actual
'

test_expect_success 'type changes, and a file where a folder was' '
	git vws overlay delete agent dir.t >record &&
	git vws overlay symlink agent dir.t one.t >record &&
	git vws overlay delete -r agent dir >record &&
	echo file | put dir &&
	every_form
'

test_expect_success 'names' '
	for name in "a b" "-x" "q\"" "b\\s" "$(printf "t\tn\nx")" "$(printf "\377\376")" "$(printf "\303\274")"
	do
		echo x | put "$name" || return 1
	done &&
	every_form &&
	git -c core.quotePath=false vws overlay diff --name-status agent >actual &&
	git -c core.quotePath=false diff-tree -r --no-renames --name-status \
		refs/relo/vws/agent/base refs/relo/vws/agent/overlay >expect &&
	test_cmp_bin expect actual
'

test_expect_success 'binary content, no final line end, empty files' '
	printf "a\0b" | put binary &&
	printf "no end" | put one.t &&
	put empty </dev/null &&
	every_form &&
	git vws overlay diff --numstat agent >actual &&
	test_grep "^-	-	binary$" actual
'

test_expect_success 'in a repository with sha256' '
	git init -q --object-format=sha256 other &&
	(
		cd other &&
		test_commit base f &&
		git vws overlay create agent --base=HEAD >record &&
		echo new | git vws overlay write agent g >record &&
		git vws overlay delete agent f >record &&
		git vws overlay diff agent >actual &&
		git diff-tree -r --no-renames --no-abbrev refs/relo/vws/agent/base refs/relo/vws/agent/overlay >expect &&
		test_cmp expect actual
	)
'

test_expect_success 'the user going on changes nothing' '
	git vws overlay diff agent >before &&
	test_commit six &&
	echo dirty >one.t &&
	git vws overlay diff agent >after &&
	test_cmp before after
'

test_done
