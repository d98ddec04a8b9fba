#compdef weigh

_weigh() {
	local -a closed open
	local line value help
	for line in ${(f)"$(command weigh __complete -- ${(Q)words[2,CURRENT-1]} "${(Q)PREFIX}" 2>/dev/null)"}; do
		value=${line%%$'\t'*}
		help=${line#*$'\t'}
		# A word that ends so goes on.
		case $value in
		*[=:/]) open+=("${value//:/\\:}${help:+:$help}") ;;
		*) closed+=("${value//:/\\:}${help:+:$help}") ;;
		esac
	done
	((${#closed} + ${#open})) || { _files; return; }
	_describe -V weigh closed
	_describe -V weigh open -S ''
}

if [[ $funcstack[1] == _weigh ]]; then
	_weigh "$@"
else
	compdef _weigh weigh
fi
