# bash splits a word at `:`, `=` and `@` (COMP_WORDBREAKS). These functions join its parts for weigh, and give bash
# the rest of the last part only.
_weigh() {
	local line=${COMP_LINE:0:COMP_POINT} words=() word at plain quote done_before candidate
	for word in "${COMP_WORDS[@]:0:COMP_CWORD}"; do
		_weigh_add "$word"
		line=${line#"$word"}
	done
	_weigh_add "${line#"${line%%[![:space:]]*}"}"
	for at in "${!words[@]}"; do
		_weigh_unquote "${words[at]}"
		words[at]=$plain
	done
	COMPREPLY=()
	while IFS=$'\t' read -r candidate _; do
		candidate=${candidate#"$done_before"}
		_weigh_quote
		COMPREPLY+=("$candidate")
	done < <(command weigh __complete -- "${words[@]:1}" 2>/dev/null)
	[[ ${#COMPREPLY[@]} -ne 1 || ${COMPREPLY[0]} != *[=:/] ]] || compopt -o nospace 2>/dev/null
}

# Sets `plain` to a word as the shell reads it, `quote` to the quote that is still open, and `done_before` to
# the text that bash has already split off: up to the last break, or the open quote.
_weigh_unquote() {
	local rest=$1 char
	plain= quote= done_before=
	while [[ -n $rest ]]; do
		char=${rest:0:1} rest=${rest:1}
		case $quote$char in
		\'\' | \"\") quote= ;;
		\' | \") quote=$char done_before=$plain ;;
		\\) plain+=${rest:0:1} rest=${rest:1} ;;
		\"\\)
			[[ ${rest:0:1} == [\\\"\$\`] ]] || plain+=\\
			plain+=${rest:0:1} rest=${rest:1}
			;;
		*)
			plain+=$char
			[[ -n $quote || $COMP_WORDBREAKS != *"$char"* ]] || done_before=$plain
			;;
		esac
	done
}

# A name of a file is text, whatever is in it: bash inserts it as it is, and Enter would execute $(…).
_weigh_quote() {
	local special
	case $quote in
	\') candidate=${candidate//\'/\'\\\'\'} ;;
	\")
		for special in '\' '"' '$' '`'; do
			candidate=${candidate//"$special"/"\\$special"}
		done
		;;
	*)
		printf -v candidate %q "$candidate"
		# Commas and a first tilde are as they were.
		candidate=${candidate//\\,/,}
		[[ $candidate != '\~/'* ]] || candidate=${candidate:1}
		;;
	esac
}

# Adds a part to the words: to the last one, unless a blank of the line comes before it.
_weigh_add() {
	if [[ ${#words[@]} -gt 0 && $line != [[:space:]]* ]]; then
		words[${#words[@]} - 1]+=$1
	else
		line=${line#"${line%%[![:space:]]*}"}
		words+=("$1")
	fi
}

# Before 4.4, bash does not know `nosort`.
complete -o bashdefault -o default -o nosort -F _weigh weigh 2>/dev/null ||
	complete -o bashdefault -o default -F _weigh weigh
