# The line rules of lint.sh. Reads one script, prints `<file>:<line>: <what>`, exits 1 if any.

function say(what) {
	print file ":" start ": " what
	bad = 1
}

# The text without what stands in double quotes, but with the quotes: rules look at commands only.
function unquoted(s,    out, i, c, inside) {
	out = ""
	inside = 0
	for (i = 1; i <= length(s); i++) {
		c = substr(s, i, 1)
		if (c == "\\") {
			if (!inside) out = out c substr(s, i + 1, 1)
			i++
		} else if (c == "\"") {
			inside = !inside
			out = out c
		} else if (!inside)
			out = out c
	}
	open_quote = inside
	return out
}

# How many subshells are open after s, and whether a cd stood in none (left in stray_cd).
function scan_subshells(s,    i, c, word, command) {
	stray_cd = 0
	command = 1
	word = ""
	for (i = 1; i <= length(s) + 1; i++) {
		c = i <= length(s) ? substr(s, i, 1) : " "
		if (c ~ /[A-Za-z0-9_.\/$=-]/) {
			word = word c
			continue
		}
		if (word != "") {
			if (command && word == "cd" && depth == 0) stray_cd = 1
			command = (word ~ /^(then|do|else|elif|if|while|until)$/)
			word = ""
		}
		if (c == "(") { depth++; command = 1 }
		else if (c == ")") { if (depth > 0) depth--; command = 1 }
		else if (c ~ /[;&|{!]/) command = 1
		else if (c !~ /[ \t]/) command = 0
	}
}

function check_chain(    closer) {
	if (pending == "") return
	# What stands last in a block is the block's own result.
	closer = (bare ~ /^[ \t]*(\)|\}|fi|done|esac|elif|else|then|do|;;)/)
	if (!closer) {
		print file ":" pending_line ": broken && chain: " pending
		bad = 1
	}
	pending = ""
}

function logical(line,    text) {
	bare = unquoted(line)
	sub(/(^|[ \t])#.*$/, "", bare)
	if (bare ~ /^[ \t]*$/) return

	text = bare
	gsub(/[0-9]*[<>]&[0-9-]/, "", text)
	if (text ~ /(^|[^A-Za-z0-9_.\/-])git [^|&;]*\|([^|]|$)/)
		say("a pipe hides the exit code of git: write to a file first")
	if (text ~ /(^|[ \t(;&|{])![ \t]+(env[ \t]+)?([A-Z_]+=[^ ]*[ \t]+)*git([ \t]|$)/)
		say("'! git' passes on a crash: use test_must_fail")
	if (in_body && text ~ /^[ \t]*(![ \t]+)?grep[ \t]/ && text !~ />/)
		say("a bare grep fails without a word: use test_grep")

	if (text ~ /(^|[ \t;])case[ \t].*[ \t]in([ \t]|$)/) cases++
	pattern = cases > 0 && text ~ /^[^()]+\)/
	if (pattern) sub(/^[^()]+\)/, "", text)
	scan_subshells(text)
	if (stray_cd) say("cd outside a subshell")

	if (in_body) {
		check_chain()
		if (bare !~ /\|\|[ \t]+(return|exit)([ \t]+[0-9]+)?[ \t]*$/ &&
		    bare !~ /(&&|\|\||\||\{|\(|;;|(^|[ \t;])(then|do|else|in))[ \t]*$/ &&
		    !(pattern && text ~ /^[ \t]*$/) && bare !~ /\(\)[ \t]*$/) {
			pending = line
			sub(/^[ \t]+/, "", pending)
			sub(/\n.*/, " ...", pending)
			pending_line = start
		}
	}
	if (text ~ /(^|[ \t;])esac([ \t;)&]|$)/ && cases > 0) cases--
}

function body_ends() {
	# The last line of a body need not chain.
	pending = ""
	depth = cases = 0
	in_body = 0
	held = ""
}

{
	if (heredoc != "") {
		text = $0
		if (heredoc_tabs) sub(/^\t+/, "", text)
		if (text == heredoc) heredoc = ""
		next
	}
	line = $0
	if (held == "") start = NR

	if (!in_body && held == "" && line ~ /^(test_expect_(success|failure)|test_lazy_prereq)[ \t].*'$/) {
		quotes = gsub(/'/, "'", line)
		# An odd number: the last one opens the body.
		if (quotes % 2) { in_body = 1; depth = 0 }
		next
	}
	if (!in_body && held == "" && line ~ /^test_description=/) {
		quotes = gsub(/'/, "'", line)
		if (quotes == 1) skipping = 1
		next
	}
	if (skipping) {
		if (line ~ /'/) skipping = 0
		next
	}
	if (in_body && line ~ /^'/) { body_ends(); next }

	if (held == "" && line ~ /^[ \t]*#/) next
	held = held == "" ? line : held "\n" line
	if (line ~ /\\$/) { sub(/\\$/, "", held); next }
	unquoted(held)
	if (open_quote) next

	if (match(line, /<<-?[ ]*\\?['"]?[A-Za-z_][A-Za-z0-9_]*/)) {
		heredoc = substr(line, RSTART, RLENGTH)
		heredoc_tabs = heredoc ~ /^<<-/
		sub(/^<<-?[ ]*\\?['"]?/, "", heredoc)
	}
	logical(held)
	held = ""
}

END { exit bad }
