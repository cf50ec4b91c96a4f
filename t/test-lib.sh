# The shell test library of git-vws: POSIX sh, TAP on stdout. t/README.md documents every function.
#
# A script sets test_description, sources this file, calls test_expect_success and ends in test_done.
# Everything here keeps three rules: a test sees nothing of the caller's environment, a test can't
# reach the repository it lives in, and nothing is skipped without a line that says so.

unset CDPATH
TEST_DIRECTORY=$(cd "$(dirname "$0")" && pwd -P) || exit 1
test_name_=$(basename "$0" .sh)

verbose_= immediate_= trace_= run_list_=
for arg_
do
	case $arg_ in
	-v) verbose_=t ;;
	-i) immediate_=t ;;
	-x) trace_=t verbose_=t ;;
	--run=*) run_list_=,${arg_#--run=}, ;;
	*) echo "Bail out! unknown option '$arg_' (known: -v -i -x --run=<n>[,<n>...])"; exit 1 ;;
	esac
done

# What is tested, read before GIT_* goes.
binary_=${GIT_VWS_BINARY:-$TEST_DIRECTORY/../target/debug/git-vws}
if ! test -x "$binary_"
then
	echo "Bail out! no program at '$binary_': run 'cargo build' or set GIT_VWS_BINARY"
	exit 1
fi
binary_dir_=$(cd "$(dirname "$binary_")" && pwd -P) || exit 1
PATH=$binary_dir_:$PATH

# A known environment.
for var_ in $(env | sed -n 's/^\(GIT_[A-Za-z0-9_]*\)=.*/\1/p')
do
	case $var_ in GIT_VWS_TEST_*) ;; *) unset "$var_" ;; esac
done
unset EDITOR VISUAL PAGER EMAIL GREP_OPTIONS XDG_CACHE_HOME XDG_DATA_HOME XDG_STATE_HOME LANGUAGE
umask 022
LC_ALL=C LANG=C TZ=UTC TERM=dumb
export PATH LC_ALL LANG TZ TERM

output_dir_=${TEST_OUTPUT_DIRECTORY:-$TEST_DIRECTORY/trash}
mkdir -p "$output_dir_" && output_dir_=$(cd "$output_dir_" && pwd -P) || exit 1
test_root_=$output_dir_/$test_name_
# The blank is meant: code that forgets to quote fails here first.
TRASH_DIRECTORY="$test_root_/trash directory"

test_remove_root_ () {
	rm -rf "$test_root_" 2>/dev/null && return
	chmod -R u+rwX "$test_root_" 2>/dev/null
	rm -rf "$test_root_"
}
test_remove_root_ || { echo "Bail out! cannot remove '$test_root_'"; exit 1; }
mkdir -p "$TRASH_DIRECTORY" "$test_root_/home/.config" "$test_root_/lib" || exit 1

HOME=$test_root_/home
XDG_CONFIG_HOME=$HOME/.config
GIT_CONFIG_NOSYSTEM=1
GIT_CEILING_DIRECTORIES=$test_root_
GIT_AUTHOR_NAME='A U Thor' GIT_AUTHOR_EMAIL=author@example.com
GIT_COMMITTER_NAME='C O Mitter' GIT_COMMITTER_EMAIL=committer@example.com
GIT_EDITOR=: GIT_TERMINAL_PROMPT=0
export HOME XDG_CONFIG_HOME GIT_CONFIG_NOSYSTEM GIT_CEILING_DIRECTORIES TRASH_DIRECTORY
export GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL
export GIT_EDITOR GIT_TERMINAL_PROMPT
cat >"$HOME/.gitconfig" <<\EOF
[init]
	defaultBranch = main
[protocol "file"]
	allow = always
EOF

test_tick () {
	test_tick_=$((${test_tick_:-1112911933} + 60))
	GIT_AUTHOR_DATE="$test_tick_ +0000" GIT_COMMITTER_DATE="$test_tick_ +0000"
	export GIT_AUTHOR_DATE GIT_COMMITTER_DATE
}
test_tick

# Results.
test_count_=0 test_failures_=0 test_prereqs_=' ' test_lazy_prereqs_=' ' test_over_=

test_exit_ () {
	status_=$?
	test -n "$test_over_" && exit "$status_"
	echo "Bail out! the script ended with $status_ before test_done (test $((test_count_ + 1)))"
	exit 1
}
trap test_exit_ EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

test_bug_ () {
	echo "Bail out! error in the test script: $*"
	test_over_=t
	exit 1
}

test_comment_ () {
	sed 's/^/#	/'
}

# A function of its own, so that a `return` in a body ends the body only.
test_eval_inner_ () {
	eval "$1"
}

# Runs one body in this shell; what it prints goes to $test_root_/lib/output, or to stderr with -v.
test_eval_ () {
	test -z "$trace_" || set -x
	test_eval_inner_ "$1"
	{ test_status_=$?; set +x; } 2>/dev/null
	return "$test_status_"
}

test_redirect_ () {
	if test -n "$verbose_"
	then
		"$@" </dev/null >&2
	else
		"$@" </dev/null >>"$test_root_/lib/output" 2>&1
	fi
}

# A body whose chain is whole stops at its first command: 117 comes through unchanged.
test_chain_probe_ () {
	return 117
}

test_chain_is_whole_ () {
	(
		eval "test_chain_probe_ && $1"
	) </dev/null >/dev/null 2>&1
	test $? = 117
}

# Says why on the output of the test, and returns whether the body, its cleanup and its manners are good.
test_body_ () {
	: >"$test_root_/lib/output"
	test_cleanup_= test_cleanup_status_=0
	if ! test_chain_is_whole_ "$1"
	then
		test_redirect_ echo "broken && chain (or the body is no valid sh)"
		return 1
	fi
	test_redirect_ test_eval_ "$1"
	body_status_=$?
	test_redirect_ test_eval_ "$test_cleanup_"
	if test "$test_cleanup_status_" != 0
	then
		test_redirect_ echo "the cleanup of test_when_finished failed"
		body_status_=1
	fi
	if test "$PWD" != "$TRASH_DIRECTORY"
	then
		test_redirect_ echo "the body left the trash directory: cd only in a subshell"
		cd "$TRASH_DIRECTORY" || exit 1
		body_status_=1
	fi
	return "$body_status_"
}

# Splits [PREREQ] title body, counts, and prints the skip line; false when the test is not to run.
test_begin_ () {
	case $# in
	2) test_prereq_= ;;
	3) test_prereq_=$1; shift ;;
	*) test_bug_ "a test takes [PREREQ] title body, got $# arguments" ;;
	esac
	test_title_=$1 test_body_=$2
	test_count_=$((test_count_ + 1))
	case $run_list_ in
	'' | *",$test_count_,"*) ;;
	*) echo "ok $test_count_ - $test_title_ # skip not chosen by --run"; return 1 ;;
	esac
	test -z "$test_prereq_" || test_have_prereq "$test_prereq_" || {
		echo "ok $test_count_ - $test_title_ # skip missing $test_missing_"
		return 1
	}
	test -z "$verbose_" || printf '\nexpecting: %s\n%s\n' "$test_title_" "$test_body_" >&2
}

test_failed_ () {
	test_failures_=$((test_failures_ + 1))
	echo "not ok $test_count_ - $1"
	printf '%s\n' "$test_body_" | test_comment_
	echo "# output:"
	test_comment_ <"$test_root_/lib/output"
	test -z "$immediate_" || {
		echo "# stopped by -i; kept: $test_root_"
		test_over_=t
		exit 1
	}
}

test_expect_success () {
	test_begin_ "$@" || return 0
	if test_body_ "$test_body_"
	then
		echo "ok $test_count_ - $test_title_"
	else
		test_failed_ "$test_title_"
	fi
}

# A known breakage. One that has vanished fails the script, so that somebody changes the test.
test_expect_failure () {
	test_begin_ "$@" || return 0
	if test_body_ "$test_body_"
	then
		test_failed_ "$test_title_ (known breakage vanished: make it test_expect_success)"
	else
		echo "not ok $test_count_ - $test_title_ # TODO known breakage"
	fi
}

test_done () {
	test_over_=t
	cd / || exit 1
	if test -n "${skip_all-}" && test "$test_count_" = 0
	then
		echo "1..0 # SKIP $skip_all"
		test_remove_root_
		exit 0
	fi
	echo "1..$test_count_"
	if test "$test_count_" = 0
	then
		echo "# no tests ran"
		exit 1
	fi
	if test "$test_failures_" != 0
	then
		echo "# failed $test_failures_ of $test_count_; kept: $test_root_"
		exit 1
	fi
	test_remove_root_ || { echo "# cannot remove '$test_root_'"; exit 1; }
	exit 0
}

# Prerequisites.
test_set_prereq () {
	test_prereqs_="$test_prereqs_$1 "
}

test_lazy_prereq () {
	test_lazy_prereqs_="$test_lazy_prereqs_$1 "
	eval "test_lazy_${1}_=\$2"
}

test_probe_prereq_ () {
	case $test_lazy_prereqs_ in *" $1 "*) ;; *) return 1 ;; esac
	case $test_lazy_prereqs_ in *" $1=no "*) return 1 ;; esac
	eval "probe_body_=\$test_lazy_${1}_"
	mkdir -p "$test_root_/lib/prereq" || exit 1
	if (cd "$test_root_/lib/prereq" && eval "$probe_body_") </dev/null >/dev/null 2>&1
	then
		test_set_prereq "$1"
	else
		test_lazy_prereqs_="$test_lazy_prereqs_$1=no "
		return 1
	fi
}

# A comma list, `!` before a name negates; the missing ones are left in test_missing_.
test_have_prereq () {
	test_missing_=
	for one_ in $(echo "$1" | tr , ' ')
	do
		name_=${one_#!}
		case $test_prereqs_ in *" $name_ "*) has_=t ;; *) test_probe_prereq_ "$name_" && has_=t || has_= ;; esac
		case $one_,$has_ in
		!*,t | [!!]*,) test_missing_=$test_missing_${test_missing_:+,}$one_ ;;
		esac
	done
	test -z "$test_missing_"
}

. "$TEST_DIRECTORY/test-lib-functions.sh"

cd "$TRASH_DIRECTORY" || exit 1
test -n "${TEST_NO_CREATE_REPO-}" || git init -q . || test_bug_ "git init failed"
