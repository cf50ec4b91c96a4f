#!/bin/sh

test_description='the test library itself

Each test writes a small script, runs it with this very library, and looks at
what it reports. A library that passes everything would pass every other suite.'

. "$(dirname "$0")/test-lib.sh"

# sub_test <name> [<option>...] <script: what goes between the header and test_done
# Leaves the report in <name>.out and the exit code in <name>.code.
sub_test () {
	name=$1 &&
	shift &&
	mkdir -p sub &&
	cp "$TEST_DIRECTORY/test-lib.sh" "$TEST_DIRECTORY/test-lib-functions.sh" sub/ &&
	{
		echo "#!/bin/sh" &&
		echo "test_description=sub" &&
		echo ". \"\$(dirname \"\$0\")/test-lib.sh\"" &&
		cat &&
		echo "test_done"
	} >"sub/$name.sh" &&
	code=0 &&
	{
		GIT_VWS_BINARY="$binary_" TEST_OUTPUT_DIRECTORY="$TRASH_DIRECTORY/sub/out" \
			sh "sub/$name.sh" "$@" >"$name.out" 2>"$name.err" || code=$?
	} &&
	echo "$code" >"$name.code"
}

# sub_is <name> <code>: the exit code, and the report but for its comments (from stdin)
sub_is () {
	echo "$2" >expect.code &&
	test_cmp expect.code "$1.code" &&
	cat >expect &&
	sed '/^#/d' "$1.out" >actual &&
	test_cmp expect actual
}

test_expect_success 'a good script passes, plans last and leaves nothing' '
	sub_test good <<-\EOF &&
	test_expect_success "one" "true"
	test_expect_success "two" "
		echo noise &&
		echo more >&2
	"
	EOF
	sub_is good 0 <<-\EOF &&
	ok 1 - one
	ok 2 - two
	1..2
	EOF
	test_must_be_empty good.err &&
	test_path_is_missing sub/out/good
'

test_expect_success 'a failing body is reported with its output, and its directory kept' '
	sub_test bad <<-\EOF &&
	test_expect_success "breaks" "
		echo trace-of-it >file &&
		cat file &&
		false
	"
	test_expect_success "goes on" "test -f file"
	EOF
	sub_is bad 1 <<-\EOF &&
	not ok 1 - breaks
	ok 2 - goes on
	1..2
	EOF
	test_grep "^#	trace-of-it" bad.out &&
	test_grep "^# failed 1 of 2" bad.out &&
	test_path_is_file "sub/out/bad/trash directory/file"
'

test_expect_success 'a script without tests fails' '
	sub_test none </dev/null &&
	sub_is none 1 <<-\EOF
	1..0
	EOF
'

test_expect_success 'an exit before test_done is no pass' '
	sub_test early <<-\EOF &&
	test_expect_success "one" "true"
	exit 0
	EOF
	sub_is early 1 <<-\EOF
	ok 1 - one
	Bail out! the script ended with 0 before test_done (test 2)
	EOF
'

test_expect_success 'a body that exits ends the script loudly' '
	sub_test exits <<-\EOF &&
	test_expect_success "one" "exit 0"
	EOF
	sub_is exits 1 <<-\EOF
	Bail out! the script ended with 0 before test_done (test 2)
	EOF
'

test_expect_success 'known breakage: a TODO line; vanished: a failure' '
	sub_test todo <<-\EOF &&
	test_expect_failure "still broken" "false"
	EOF
	sub_is todo 0 <<-\EOF &&
	not ok 1 - still broken # TODO known breakage
	1..1
	EOF
	sub_test vanished <<-\EOF &&
	test_expect_failure "works now" "true"
	EOF
	sub_is vanished 1 <<-\EOF
	not ok 1 - works now (known breakage vanished: make it test_expect_success)
	1..1
	EOF
'

test_expect_success 'a broken && chain fails, wherever the break is' '
	sub_test chain <<-\EOF &&
	test_expect_success "first line" "
		false
		true
	"
	test_expect_success "middle" "
		true &&
		false
		true
	"
	test_expect_success "no sh at all" "if true"
	test_expect_success "whole, with a here-document and a comment" "
		# a comment
		cat >file <<-\\EOF2 &&
		text
		EOF2

		test -s file
	"
	EOF
	sub_is chain 1 <<-\EOF &&
	not ok 1 - first line
	not ok 2 - middle
	not ok 3 - no sh at all
	ok 4 - whole, with a here-document and a comment
	1..4
	EOF
	test_grep "broken && chain" chain.out
'

test_expect_success 'test_must_fail takes git codes and refuses success, panics and signals' '
	test_must_fail sh -c "exit 1" &&
	test_must_fail sh -c "exit 128" &&
	test_must_fail sh -c "exit 129" &&
	for code in 0 101 126 127 130 134 137 139 141 255
	do
		! test_must_fail sh -c "exit $code" 2>err || return 1
		test_grep "^test_must_fail: " err || return 1
	done &&
	! test_must_fail sh -c "kill -9 \$\$" &&
	! test_must_fail no-such-command-here
'

test_expect_success 'test_expect_code wants exactly its code' '
	test_expect_code 0 true &&
	test_expect_code 141 sh -c "exit 141" &&
	test_expect_code 141 sh -c "kill -PIPE \$\$" &&
	! test_expect_code 1 true &&
	! test_expect_code 0 false &&
	! test_expect_code 1
'

test_expect_success 'prerequisites: a missing one skips visibly, and says which' '
	sub_test prereq <<-\EOF &&
	test_set_prereq HAVE
	test_lazy_prereq LAZY "echo x >>\"$TRASH_DIRECTORY/asked\""
	test_lazy_prereq LAZYNO "echo x >>\"$TRASH_DIRECTORY/asked\" && false"
	test_expect_success HAVE "runs" "true"
	test_expect_success NONE "skips" "false"
	test_expect_success HAVE,NONE,NEITHER "names all that miss" "false"
	test_expect_success !NONE "negated" "true"
	test_expect_success !HAVE "negated, missing" "false"
	test_expect_success LAZY "lazy" "true"
	test_expect_success LAZY "lazy again" "true"
	test_expect_success LAZYNO "lazy, missing" "false"
	test_expect_success LAZYNO "lazy, missing again" "false"
	test_expect_success "asked once each" "test_line_count = 2 asked"
	EOF
	sub_is prereq 0 <<-\EOF
	ok 1 - runs
	ok 2 - skips # skip missing NONE
	ok 3 - names all that miss # skip missing NONE,NEITHER
	ok 4 - negated
	ok 5 - negated, missing # skip missing !HAVE
	ok 6 - lazy
	ok 7 - lazy again
	ok 8 - lazy, missing # skip missing LAZYNO
	ok 9 - lazy, missing again # skip missing LAZYNO
	ok 10 - asked once each
	1..10
	EOF
'

test_expect_success 'exactly one of ROOT and NOT_ROOT holds' '
	if test_have_prereq ROOT
	then
		! test_have_prereq NOT_ROOT
	else
		test_have_prereq NOT_ROOT
	fi
'

test_expect_success 'skip_all skips the script and says why' '
	sub_test all <<-\EOF &&
	skip_all="no such thing here"
	EOF
	sub_is all 0 <<-\EOF
	1..0 # SKIP no such thing here
	EOF
'

test_expect_success 'test_when_finished runs after success and failure, latest first' '
	sub_test finished <<-\EOF &&
	test_expect_success "good" "
		test_when_finished \"echo first >>log\" &&
		test_when_finished \"echo second >>log\"
	"
	test_expect_success "bad" "
		test_when_finished \"echo third >>log\" &&
		false
	"
	test_expect_success "its own failure counts, and the others still run" "
		test_when_finished \"echo fourth >>log\" &&
		test_when_finished false
	"
	test_expect_success "gone by the next test" "
		test_write_lines second first third fourth >expect &&
		test_cmp expect log
	"
	EOF
	sub_is finished 1 <<-\EOF
	ok 1 - good
	not ok 2 - bad
	not ok 3 - its own failure counts, and the others still run
	ok 4 - gone by the next test
	1..4
	EOF
'

test_expect_success 'a body that moves away fails, and the next starts at home' '
	sub_test moves <<-\EOF &&
	test_expect_success "moves" "cd .."
	test_expect_success "at home" "test \"\$PWD\" = \"\$TRASH_DIRECTORY\""
	EOF
	sub_is moves 1 <<-\EOF
	not ok 1 - moves
	ok 2 - at home
	1..2
	EOF
'

test_expect_success '-i stops at the first failure' '
	sub_test stop -i <<-\EOF &&
	test_expect_success "one" "false"
	test_expect_success "two" "true"
	EOF
	sub_is stop 1 <<-\EOF
	not ok 1 - one
	EOF
'

test_expect_success '--run chooses, visibly' '
	sub_test run --run=1,3 <<-\EOF &&
	test_expect_success "one" "true"
	test_expect_success "two" "false"
	test_expect_success "three" "true"
	EOF
	sub_is run 0 <<-\EOF
	ok 1 - one
	ok 2 - two # skip not chosen by --run
	ok 3 - three
	1..3
	EOF
'

test_expect_success '-v and -x show bodies on stderr and keep stdout TAP' '
	sub_test loud -x <<-\EOF &&
	test_expect_success "one" "echo said-it && return 0"
	EOF
	sub_is loud 0 <<-\EOF &&
	ok 1 - one
	1..1
	EOF
	test_grep "^said-it" loud.err &&
	test_grep "^+ echo said-it" loud.err
'

test_expect_success 'an unknown option is refused' '
	sub_test option --nonsense <<-\EOF &&
	test_expect_success "one" "true"
	EOF
	echo 1 >expect &&
	test_cmp expect option.code &&
	test_grep "^Bail out! unknown option" option.out
'

test_expect_success 'a missing binary is said at once' '
	mkdir -p sub &&
	cp "$TEST_DIRECTORY"/test-lib*.sh sub/ &&
	echo ". \"\$(dirname \"\$0\")/test-lib.sh\"" >sub/nobin.sh &&
	test_expect_code 1 env GIT_VWS_BINARY=/nonexistent/git-vws sh sub/nobin.sh >out &&
	test_grep "^Bail out! no program at" out
'

test_expect_success 'the environment of the caller does not come in' '
	cat >body <<-\EOF &&
	test_expect_success "clean" "
		test -z \"\${GIT_DIR-}\${GIT_CONFIG_COUNT-}\${GIT_VWS_BINARY-}\${EDITOR-}\" &&
		test \"\$GIT_VWS_TEST_KEPT\" = kept &&
		test \"\$TZ,\$LC_ALL,\$(umask)\" = UTC,C,0022 &&
		test \"\$GIT_CONFIG_NOSYSTEM\" = 1 &&
		git config init.defaultBranch >actual &&
		echo main >expect &&
		test_cmp expect actual
	"
	EOF
	(
		GIT_DIR=/nonexistent GIT_CONFIG_COUNT=1 GIT_VWS_TEST_KEPT=kept EDITOR=vi TZ=Asia/Tokyo &&
		export GIT_DIR GIT_CONFIG_COUNT GIT_VWS_TEST_KEPT EDITOR TZ &&
		umask 077 &&
		sub_test env <body
	) &&
	sub_is env 0 <<-\EOF
	ok 1 - clean
	1..1
	EOF
'

test_expect_success 'the trash directory is a repository of its own, and nothing escapes it' '
	git rev-parse --show-toplevel >actual &&
	echo "$TRASH_DIRECTORY" >expect &&
	test_cmp expect actual &&
	TEST_NO_CREATE_REPO=t &&
	export TEST_NO_CREATE_REPO &&
	test_when_finished "unset TEST_NO_CREATE_REPO" &&
	sub_test norepo <<-\EOF &&
	test_expect_success "no repository, though one surrounds it" "
		test_must_fail git rev-parse --git-dir
	"
	EOF
	sub_is norepo 0 <<-\EOF
	ok 1 - no repository, though one surrounds it
	1..1
	EOF
'

test_expect_success 'git finds the binary under test' '
	command -v git-vws >actual &&
	echo "$binary_dir_/git-vws" >expect &&
	test_cmp expect actual
'

test_expect_success 'test_commit: file, message, contents and tag, at known dates' '
	test_commit first &&
	test_commit --no-tag second file.txt "two words" &&
	test_commit --append third file.txt more tag-3 &&
	test_write_lines "two words" more >expect &&
	test_cmp expect file.txt &&
	test_path_is_file first.t &&
	git tag >actual &&
	test_write_lines first tag-3 >expect &&
	test_cmp expect actual &&
	git log --format="%s %an %cn %at" >actual &&
	cat >expect <<-\EOF &&
	third A U Thor C O Mitter 1112912173
	second A U Thor C O Mitter 1112912113
	first A U Thor C O Mitter 1112912053
	EOF
	test_cmp expect actual &&
	! test_commit --nonsense x 2>err &&
	test_grep nonsense err
'

test_expect_success 'test_commit -C commits elsewhere' '
	git init -q other &&
	test_commit -C other elsewhere &&
	test_path_is_file other/elsewhere.t &&
	git -C other rev-parse --verify -q elsewhere
'

test_expect_success 'test_cmp shows the difference and refuses a missing file' '
	echo a >a &&
	echo b >b &&
	! test_cmp a b >out &&
	test_grep "^-a" out &&
	! test_cmp a no-such-file &&
	! test_cmp a &&
	printf "a\0b" >z1 &&
	printf "a\0c" >z2 &&
	test_cmp_bin z1 z1 &&
	! test_cmp_bin z1 z2
'

test_expect_success SYMLINKS 'the path tests tell files, directories, links and nothing apart' '
	mkdir dir &&
	>plain &&
	ln -s plain link &&
	ln -s nowhere dangling &&
	test_path_is_file plain &&
	! test_path_is_file link &&
	! test_path_is_file dir &&
	test_path_is_dir dir &&
	! test_path_is_dir plain &&
	test_path_is_symlink dangling &&
	! test_path_is_symlink plain &&
	test_path_is_missing nowhere &&
	! test_path_is_missing plain &&
	! test_path_is_missing dangling
'

test_expect_success 'test_line_count, test_must_be_empty, test_seq' '
	test_seq 3 >three &&
	test_seq 2 3 >two &&
	test_write_lines 2 3 >expect &&
	test_cmp expect two &&
	test_line_count = 3 three &&
	test_line_count -gt 1 two &&
	! test_line_count = 2 three &&
	! test_line_count = 0 no-such-file &&
	>empty &&
	test_must_be_empty empty &&
	! test_must_be_empty three &&
	! test_must_be_empty no-such-file
'

test_expect_success 'test_grep, its negation, and a missing file is a failure either way' '
	echo "some text" >file &&
	test_grep text file &&
	test_grep -i TEXT file &&
	! test_grep other file &&
	test_grep ! other file &&
	! test_grep ! text file &&
	! test_grep text no-such-file &&
	! test_grep ! text no-such-file &&
	! test_grep ! "\\(" file
'

test_done
