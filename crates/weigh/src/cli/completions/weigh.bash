# bash splits a word at `:`, `=` and `@` (COMP_WORDBREAKS). These functions join its parts for weigh, and give bash
# the rest of the last part only.
_weigh() {
	local line=${COMP_LINE:0:COMP_POINT} words=() word current done_before candidate
	for word in "${COMP_WORDS[@]:0:COMP_CWORD}"; do
		_weigh_add "$word"
		line=${line#"$word"}
	done
	_weigh_add "${line#"${line%%[![:space:]]*}"}"
	current=${words[${#words[@]} - 1]}
	done_before=
	case $current in
	[\'\"]*) words[${#words[@]} - 1]=${current:1} ;;
	*) done_before=${current%"${current##*["$COMP_WORDBREAKS"]}"} ;;
	esac
	COMPREPLY=()
	while IFS=$'\t' read -r candidate _; do
		candidate=${candidate#"$done_before"}
		[[ $current == [\'\"]* ]] || candidate=${candidate// /\\ }
		COMPREPLY+=("$candidate")
	done < <("$1" __complete -- "${words[@]:1}" 2>/dev/null)
	[[ ${#COMPREPLY[@]} -ne 1 || ${COMPREPLY[0]} != *[=:/] ]] || compopt -o nospace 2>/dev/null
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
