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
		_weigh_quote
		COMPREPLY+=("$candidate")
	done < <(command weigh __complete -- "${words[@]:1}" 2>/dev/null)
	[[ ${#COMPREPLY[@]} -ne 1 || ${COMPREPLY[0]} != *[=:/] ]] || compopt -o nospace 2>/dev/null
}

# A name of a file is text, whatever is in it: bash inserts it as it is, and Enter would execute $(…).
_weigh_quote() {
	local special
	case $current in
	\'*) candidate=${candidate//\'/\'\\\'\'} ;;
	\"*)
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
