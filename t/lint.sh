#!/bin/sh
# Looks for what makes a shell test pass by mistake. Usage: t/lint.sh [<script>...]; without
# arguments it reads all of t/t*.sh. Prints `<file>:<line>: <what>` and exits 1 if it found anything.
#
# Line based, on logical lines (continuations and open quotes joined, here-documents left out). It
# can't see everything; test-lib.sh probes each body's top-level && chain when it runs, too.

TEST_DIRECTORY=$(cd "$(dirname "$0")" && pwd -P) || exit 1
test $# -gt 0 || set -- "$TEST_DIRECTORY"/t*.sh

found=0
say () {
	echo "$1: $2"
	found=1
}

numbers=' '
for script
do
	name=$(basename "$script")
	case $name in
	test-lib*.sh) continue ;;
	t[0-9][0-9][0-9][0-9]-[a-z]*.sh) ;;
	*) say "$script:1" "the name is not tNNNN-<command>-<detail>.sh" ;;
	esac
	test -f "$script" || { say "$script:1" "no such file"; continue; }
	number=${name%%-*}
	case $numbers in
	*" $number "*) say "$script:1" "the number $number is taken" ;;
	esac
	numbers="$numbers$number "
	test -x "$script" || say "$script:1" "not executable"
	read -r first <"$script"
	test "$first" = '#!/bin/sh' || say "$script:1" "does not start with #!/bin/sh"
	test "$(sed '/^$/d' "$script" | tail -n 1)" = test_done ||
		say "$script:$(wc -l <"$script" | tr -d ' ')" "does not end with test_done"
	sh -n "$script" 2>/dev/null || say "$script:1" "no valid sh"
	awk -v file="$script" -f "$TEST_DIRECTORY/lint.awk" "$script" || found=1
done
exit $found
