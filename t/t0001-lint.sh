#!/bin/sh

test_description='lint.sh finds what it is for, and leaves good scripts alone'

. "$(dirname "$0")/test-lib.sh"

# script <name> <lines from stdin>: a good frame around a body
script () {
	{
		echo "#!/bin/sh" &&
		echo "test_expect_success 'title' '" &&
		cat &&
		echo "'" &&
		echo "test_done"
	} >"$1" &&
	chmod +x "$1"
}

lint () {
	"$TEST_DIRECTORY/lint.sh" "$@"
}

# finds <what>: the body on stdin is refused for <what>, at line 4 (the second of the body)
finds () {
	script t1000-x.sh &&
	test_expect_code 1 lint t1000-x.sh >out &&
	test_line_count = 1 out &&
	test_grep "^t1000-x.sh:4: .*$1" out
}

test_expect_success 'good bodies pass' '
	script t1000-good.sh <<-\EOF &&
		# a comment
		git init one &&
		(
			cd one &&
			echo "cd two | git x" >file &&
			git add file
		) &&
		(cd one && git status) &&
		cat >expect <<-\EOF2 &&
		cd nowhere
		git log | cat
		EOF2
		for x in a b
		do
			echo $x &&
			test -n "$x" || return 1
		done &&
		if test -f one
		then
			echo "two
			lines"
		else
			git log --format=%s \
				-1
		fi &&
		case $x in
		a)
			echo a
			;;
		b | c) echo b ;;
		esac &&
		echo cd one &&
		echo $(cd one && pwd) | sort &&
		git log 2>&1 &&
		git log || git show &&
		! grep x file >out &&
		echo x | git hash-object --stdin &&
		test_must_fail git log &&
		{
			echo x &&
			echo y
		} >file
	EOF
	lint t1000-good.sh >out &&
	test_must_be_empty out
'

test_expect_success 'a broken && chain' '
	finds "broken && chain" <<-\EOF &&
		git init one &&
		git init two
		git init three
	EOF
	finds "broken && chain" <<-\EOF &&
		git init one &&
		(cd one && git status)
		git init three
	EOF
	finds "broken && chain" <<-\EOF &&
		(
			git init two
			git init three
		)
	EOF
	finds "broken && chain" <<-\EOF &&
		git init one &&
		git init two;
		git init three
	EOF
	finds "broken && chain" <<-\EOF
		git init one &&
		cat >x <<-\EOF2
		text &&
		EOF2
		git init three
	EOF
'

test_expect_success 'cd outside a subshell' '
	finds "cd outside a subshell" <<-\EOF &&
		git init one &&
		cd one &&
		git status
	EOF
	finds "cd outside a subshell" <<-\EOF &&
		(cd one && git status) &&
		(git status) && cd one &&
		git status
	EOF
	finds "cd outside a subshell" <<-\EOF &&
		(cd one && git status) &&
		if cd one; then git status; fi &&
		git status
	EOF
	cat >t1000-top.sh <<-\EOF &&
	#!/bin/sh
	cd somewhere
	test_done
	EOF
	chmod +x t1000-top.sh &&
	test_expect_code 1 lint t1000-top.sh >out &&
	test_grep "^t1000-top.sh:2: cd outside" out
'

test_expect_success 'a pipe after git' '
	finds "a pipe hides" <<-\EOF &&
		git init one &&
		git log | sort >actual &&
		true
	EOF
	finds "a pipe hides" <<-\EOF &&
		git init one &&
		git log 2>&1 | sort >actual
	EOF
	finds "a pipe hides" <<-\EOF
		git init one &&
		git vws overlay list |
		sort >actual
	EOF
'

test_expect_success 'a bare ! git, and a bare grep' '
	finds "use test_must_fail" <<-\EOF &&
		git init one &&
		! git log &&
		true
	EOF
	finds "use test_must_fail" <<-\EOF &&
		git init one &&
		! env FOO=bar git log &&
		true
	EOF
	finds "use test_grep" <<-\EOF
		git init one &&
		grep x file &&
		true
	EOF
'

test_expect_success 'the frame: name, number, mode, first and last line' '
	script t1000-a.sh <t1000-top.sh &&
	echo true | script t1000-b.sh &&
	echo true | script t1000-c.sh &&
	test_expect_code 1 lint t1000-b.sh t1000-c.sh >out &&
	test_grep "^t1000-c.sh:1: the number t1000 is taken" out &&
	echo true | script odd.sh &&
	test_expect_code 1 lint odd.sh >out &&
	test_grep "the name is not" out &&
	chmod -x t1000-b.sh &&
	test_expect_code 1 lint t1000-b.sh >out &&
	test_grep "not executable" out &&
	sed "s,/bin/sh,/bin/bash," t1000-c.sh >t1001-d.sh &&
	sed "/^test_done/d" t1000-c.sh >t1002-e.sh &&
	echo "if" >>t1002-e.sh &&
	test_expect_code 1 lint t1001-d.sh t1002-e.sh >out &&
	test_grep "^t1001-d.sh:1: does not start" out &&
	test_grep "^t1002-e.sh:[0-9]*: does not end" out &&
	test_grep "^t1002-e.sh:1: no valid sh" out &&
	test_expect_code 1 lint t1003-none.sh >out &&
	test_grep "no such file" out
'

test_done
