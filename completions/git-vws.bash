# Completion of 'git vws' and 'git-vws' for bash. Git's own completion finds _git_vws by its name,
# and loads this file when it lies in a bash-completion folder as 'git-vws'.

# Completes the words after 'vws'; the last is the one at the cursor.
__git_vws_complete ()
{
	local git=git line candidate cut="" cur="${*: -1}"
	# Git's completion knows which repository -C and --git-dir mean.
	declare -F __git >/dev/null && git=__git
	# Bash takes '=' for the end of a word: only what follows it is replaced.
	case "$cur" in
	--*=*) cut="${cur%%=*}=" ;;
	esac
	COMPREPLY=()
	while IFS= read -r line; do
		candidate="${line%%$'\t'*}"
		case "$candidate" in
		:files)
			compopt -o filenames 2>/dev/null
			while IFS= read -r candidate; do
				COMPREPLY+=("$candidate")
			done < <(compgen -f -- "${cur#"$cut"}")
			return
			;;
		:command)
			while IFS= read -r candidate; do
				COMPREPLY+=("$candidate ")
			done < <(compgen -c -- "$cur")
			return
			;;
		esac
		candidate="${candidate#"$cut"}"
		case "$candidate" in
		*/ | *=) COMPREPLY+=("$(printf '%q' "$candidate")") ;;
		*) COMPREPLY+=("$(printf '%q' "$candidate") ") ;;
		esac
	done < <($git vws __complete -- "$@" 2>/dev/null)
	compopt -o nospace 2>/dev/null
}

# Called by git's completion, which has 'cword' and 'words', and in newer versions '__git_cmd_idx'.
_git_vws ()
{
	local at="${__git_cmd_idx-}"
	if [ -z "$at" ]; then
		for ((at = 1; at < cword; at++)); do
			[ "${words[at]}" = vws ] && break
		done
	fi
	__git_vws_complete "${words[@]:at+1:cword-at}"
}

# Called by bash for 'git-vws' itself.
__git_vws_main ()
{
	local word all=() i
	# What bash has split at '=' belongs together.
	for ((i = 1; i <= COMP_CWORD; i++)); do
		word="${COMP_WORDS[i]}"
		if [ "$word" = = ] && [ ${#all[@]} -gt 0 ]; then
			all[-1]+="="
		elif [ ${#all[@]} -gt 0 ] && [[ "${all[-1]}" == --*= ]] && [ "${COMP_WORDS[i - 1]}" = = ]; then
			all[-1]+="$word"
		else
			all+=("$word")
		fi
	done
	__git_vws_complete "${all[@]}"
}
complete -o bashdefault -o nospace -F __git_vws_main git-vws
