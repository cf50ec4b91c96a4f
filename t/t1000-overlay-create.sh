#!/bin/sh

test_description='overlay create: what a workspace starts from, and what it leaves alone'

. "$(dirname "$0")/test-lib.sh"

# What a test writes while it looks at the working tree goes to ../aside.

# attribute <key> <record>: the value of a line of a record
attribute () {
	sed -n "s/^$1 //p" "$2"
}

# users_side: all that is the user's and must never move
users_side () {
	git for-each-ref --format="%(refname) %(objectname)" refs/heads refs/tags refs/stash &&
	git symbolic-ref HEAD &&
	cksum .git/index .git/config &&
	git status --porcelain=v2
}

test_expect_success 'setup' '
	mkdir -p dir ../aside &&
	test_commit one &&
	test_commit two dir/two.t &&
	echo "*.o" >.gitignore &&
	git add .gitignore &&
	git commit -q -m ignore &&
	git update-index --refresh
'

test_expect_success 'from a commit: its tree, pinned' '
	echo edited >one.t &&
	test_when_finished "git checkout -q one.t" &&
	git vws overlay create commit --base=HEAD~1 >record &&
	git rev-parse HEAD~1 "HEAD~1^{tree}" HEAD~1 "HEAD~1^{tree}" >expect &&
	attribute base record >actual &&
	attribute tree record >>actual &&
	git rev-parse refs/relo/vws/commit/base "refs/relo/vws/commit/overlay^{tree}" >>actual &&
	test_cmp expect actual &&
	attribute commit record >expect &&
	git rev-parse refs/relo/vws/commit/overlay >actual &&
	test_cmp expect actual
'

test_expect_success 'from the working tree: what git add --all would take, and nothing of the user moves' '
	test_when_finished "git reset -q --hard && rm -f new.t x.o" &&
	echo edited >one.t &&
	echo staged >staged.t &&
	git add staged.t &&
	rm dir/two.t &&
	echo new >new.t &&
	echo object >x.o &&
	users_side >../aside/expect &&
	git vws overlay create dirty >../aside/record &&
	users_side >../aside/actual &&
	test_cmp ../aside/expect ../aside/actual &&
	cp .git/index ../aside/index &&
	GIT_INDEX_FILE=../aside/index git add --all &&
	GIT_INDEX_FILE=../aside/index git write-tree >../aside/expect &&
	attribute tree ../aside/record >../aside/actual &&
	test_cmp ../aside/expect ../aside/actual &&
	test_grep "^uncommitted 3$" ../aside/record
'

test_expect_success 'the same working tree on the same HEAD is the same base' '
	echo edited >one.t &&
	test_when_finished "git checkout -q one.t" &&
	git vws overlay create same1 >../aside/1 &&
	git vws overlay create same2 >../aside/2 &&
	git vws base >../aside/3 &&
	attribute base ../aside/1 >expect &&
	attribute base ../aside/2 >actual &&
	test_cmp expect actual &&
	attribute commit ../aside/3 >actual &&
	test_cmp expect actual
'

test_expect_success 'a clean working tree is HEAD itself' '
	git stash -q --include-untracked &&
	test_when_finished "git stash pop -q" &&
	git vws base >../aside/clean &&
	git rev-parse HEAD >../aside/expect &&
	attribute commit ../aside/clean >../aside/actual &&
	test_cmp ../aside/expect ../aside/actual
'

test_expect_success 'from another workspace' '
	git vws overlay create parent --base=HEAD >record &&
	echo text >text &&
	git vws overlay write parent made.t <text >record &&
	git vws overlay create child --from=parent >record &&
	git vws overlay read child made.t >actual &&
	test_cmp text actual &&
	git vws overlay create earlier --from=parent@1 >record &&
	test_expect_code 1 git vws overlay read earlier made.t
'

test_expect_success 'an id is taken once, whatever its case' '
	test_expect_code 128 git vws overlay create parent --base=HEAD 2>err &&
	test_grep "exists already" err &&
	test_expect_code 128 git vws overlay create PARENT --base=HEAD 2>err &&
	test_grep "exists already" err
'

test_expect_success 'an id outside of the grammar is a usage error' '
	for id in "" -a .a a..b a. a.lock A.LOCK HEAD a/b "a b" "$(printf "a\tb")"
	do
		test_expect_code 129 git vws overlay create --base=HEAD -- "$id" 2>err &&
		test_grep "^fatal: agent id" err || return 1
	done &&
	git for-each-ref refs/relo/vws >refs &&
	test_grep ! "lock" refs
'

test_expect_success 'a branch of the user that is in the way is named' '
	git branch relo/taken/by-user &&
	test_when_finished "git branch -q -D relo/taken/by-user" &&
	test_expect_code 128 git vws overlay create taken --base=HEAD 2>err &&
	test_grep "refs/heads/relo/taken/by-user" err &&
	test_expect_code 128 git vws overlay show taken
'

test_expect_success 'on an unborn branch' '
	git init -q unborn &&
	echo first >unborn/f &&
	git -C unborn vws overlay create a >record &&
	git -C unborn vws overlay read a f >actual &&
	test_cmp unborn/f actual &&
	test_must_fail git -C unborn rev-parse --verify -q HEAD
'

test_expect_success 'in a bare repository only from a commit' '
	git clone -q --bare . bare.git &&
	test_expect_code 128 git -C bare.git vws overlay create a 2>err &&
	test_grep "work tree" err &&
	git -C bare.git vws overlay create a --base=HEAD >record &&
	git -C bare.git vws overlay ls a >actual &&
	git ls-tree HEAD >expect &&
	test_cmp expect actual
'

test_expect_success 'what a workspace needs survives a collection' '
	git vws overlay create kept --base=HEAD >record &&
	echo kept >text &&
	git vws overlay write kept kept.t <text >record &&
	git -c gc.reflogExpire=now -c gc.reflogExpireUnreachable=now gc -q --prune=now &&
	git vws overlay read kept kept.t >actual &&
	test_cmp text actual &&
	git fsck --strict --no-dangling
'

test_done
