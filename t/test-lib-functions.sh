# What the bodies of tests call, and the prerequisites that are known everywhere. Sourced by
# test-lib.sh; t/README.md documents every function.

test_misused_ () {
	echo "error in the test: $*" >&2
	return 1
}

# Runs $@ and leaves its exit code in test_code_.
test_run_for_code_ () {
	test_code_=0
	"$@" || test_code_=$?
}

# A documented refusal or failure: never success, a panic, a command that is not there, or a signal.
test_must_fail () {
	test_run_for_code_ "$@"
	case $test_code_ in
	0) echo "test_must_fail: succeeded: $*" >&2; return 1 ;;
	101) echo "test_must_fail: panicked (101): $*" >&2; return 1 ;;
	126 | 127) echo "test_must_fail: not a command ($test_code_): $*" >&2; return 1 ;;
	esac
	test "$test_code_" -le 129 || {
		echo "test_must_fail: died or exited with $test_code_: $*" >&2
		return 1
	}
}

test_expect_code () {
	test $# -ge 2 || { test_misused_ "test_expect_code <code> <command>..."; return; }
	test_wanted_=$1
	shift
	test_run_for_code_ "$@"
	test "$test_code_" = "$test_wanted_" || {
		echo "test_expect_code: wanted $test_wanted_, got $test_code_: $*" >&2
		return 1
	}
}

# Expected first, actual second.
test_cmp () {
	test $# = 2 || { test_misused_ "test_cmp <expect> <actual>"; return; }
	diff -u "$1" "$2"
}

test_cmp_bin () {
	test $# = 2 || { test_misused_ "test_cmp_bin <expect> <actual>"; return; }
	cmp "$1" "$2"
}

# The latest registered runs first; all run, whatever the body did, and a failing one fails the test.
test_when_finished () {
	test_cleanup_="{ $*
	} || test_cleanup_status_=1
	$test_cleanup_"
}

# test_commit [-C <dir>] [--no-tag] [--append] <message> [<file> [<contents> [<tag>]]]
test_commit () {
	commit_dir_=. commit_tag_=t commit_append_=
	while :
	do
		case ${1-} in
		-C) commit_dir_=$2; shift ;;
		--no-tag) commit_tag_= ;;
		--append) commit_append_=t ;;
		-*) test_misused_ "test_commit does not know '$1'"; return ;;
		*) break ;;
		esac
		shift
	done
	test $# -ge 1 || { test_misused_ "test_commit takes a message"; return; }
	commit_file_=${2:-$1.t}
	test_tick
	if test -n "$commit_append_"
	then
		printf '%s\n' "${3-$1}" >>"$commit_dir_/$commit_file_"
	else
		printf '%s\n' "${3-$1}" >"$commit_dir_/$commit_file_"
	fi &&
	git -C "$commit_dir_" add -- "$commit_file_" &&
	git -C "$commit_dir_" commit -q -m "$1" &&
	if test -n "$commit_tag_"
	then
		git -C "$commit_dir_" tag "${4:-$1}"
	fi
}

test_path_is_file () {
	test -f "$1" && ! test -h "$1" && return
	echo "not a file: $1" >&2
	return 1
}

test_path_is_dir () {
	test -d "$1" && ! test -h "$1" && return
	echo "not a directory: $1" >&2
	return 1
}

test_path_is_symlink () {
	test -h "$1" && return
	echo "not a symbolic link: $1" >&2
	return 1
}

# A dangling link is not missing.
test_path_is_missing () {
	test -e "$1" || test -h "$1" || return 0
	echo "exists: $1" >&2
	return 1
}

# test_line_count <op> <n> <file>, with an operator of test(1)
test_line_count () {
	test $# = 3 && test -f "$3" || { test_misused_ "test_line_count <op> <n> <file>"; return; }
	lines_=$(wc -l <"$3")
	test "$lines_" "$1" "$2" || {
		echo "test_line_count: $3 has $lines_ lines, wanted $1 $2" >&2
		cat "$3" >&2
		return 1
	}
}

test_must_be_empty () {
	test -f "$1" || { test_misused_ "test_must_be_empty: no file '$1'"; return; }
	test -s "$1" || return 0
	echo "not empty: $1" >&2
	cat "$1" >&2
	return 1
}

# test_grep [!] [<grep option>...] <pattern> <file>
test_grep () {
	grep_not_=
	test "x${1-}" != 'x!' || { grep_not_=t; shift; }
	for grep_file_
	do
		:
	done
	test $# -ge 2 && test -f "$grep_file_" || {
		test_misused_ "test_grep [!] <pattern> <file>, and the file must be there"
		return
	}
	grep_code_=0
	grep "$@" || grep_code_=$?
	case $grep_not_,$grep_code_ in
	,0 | t,1) return 0 ;;
	,1) echo "test_grep: not found: $*; the file holds:" >&2 ;;
	t,0) echo "test_grep: found, and should not be: $*" >&2 ;;
	*) echo "test_grep: grep itself failed with $grep_code_: $*" >&2 ;;
	esac
	cat "$grep_file_" >&2
	return 1
}

test_write_lines () {
	printf '%s\n' "$@"
}

# test_seq [<first>] <last>
test_seq () {
	test $# = 2 || set -- 1 "$1"
	seq_=$1
	while test "$seq_" -le "$2"
	do
		echo "$seq_"
		seq_=$((seq_ + 1))
	done
}

# Prerequisites, each found out by doing the thing.
test_lazy_prereq ROOT 'test "$(id -u)" = 0'
test_lazy_prereq NOT_ROOT 'test "$(id -u)" != 0'
test_lazy_prereq SYMLINKS 'ln -s target link && test -h link'
test_lazy_prereq STRACE 'strace -o strace.out true && test -s strace.out'
test_lazy_prereq USERNS 'unshare --user --map-root-user --mount true'
test_lazy_prereq LOOP '
	dd if=/dev/zero of=loop.img bs=1024 count=0 seek=16384 &&
	mkfs.ext4 -q -F loop.img && mkdir -p loop.mnt &&
	mount -o loop loop.img loop.mnt && umount loop.mnt && rm loop.img
'
