# Runs one of the small programs below so many times, and prints what it gave:
#
#     sh bench.sh NAME --operations N
#     sh bench.sh --describe
#
# A shell has no clock of its own, so who starts it takes the time. No other program is executed.

fib() {
	if [ "$1" -lt 2 ]; then
		result=$1
		return
	fi
	# The values of the callers are in the positional parameters: POSIX has no local variables.
	set -- "$1" $(($1 - 1)) $(($1 - 2))
	fib "$2"
	set -- "$1" "$2" "$3" "$result"
	fib "$3"
	result=$(($4 + result))
}

program_fib() { fib 12; }

program_loop() {
	result=0
	while [ $result -lt 2000 ]; do
		result=$((result + 1))
	done
}

prepare_wordcount() {
	text='' state=1 n=0
	while [ $n -lt 500 ]; do
		state=$(((state * 1664525 + 1013904223) % 4294967296))
		case $((state / 65536 % 7)) in
		0) text="$text the" ;;
		1) text="$text boar" ;;
		2) text="$text cask" ;;
		3) text="$text elm" ;;
		*) text="$text oak" ;;
		esac
		n=$((n + 1))
	done
}

program_wordcount() {
	words=0 the=0 oak=0
	for word in $text; do
		case $word in
		the) the=$((the + 1)) ;;
		oak) oak=$((oak + 1)) ;;
		esac
		words=$((words + 1))
	done
	result="$words words, the $the, oak $oak"
}

program_string() {
	string='' n=0
	while [ $n -lt 400 ]; do
		string=$string$n,
		n=$((n + 1))
	done
	parts=0 rest=$string
	while [ -n "$rest" ]; do
		part=${rest%%,*}
		rest=${rest#*,}
		parts=$((parts + 1))
	done
	result="${#string} $parts $part"
}

prepare_read() {
	file=read.$$
	trap 'rm -f "$file"' EXIT
	n=0
	while [ $n -lt 500 ]; do
		echo "line $n of the file"
		n=$((n + 1))
	done >"$file"
}

program_read() {
	lines=0 found=0
	while read -r word number rest; do
		case $number in
		*7*) found=$((found + 1)) ;;
		esac
		lines=$((lines + 1))
	done <"$file"
	result="$lines lines, $found found"
}

program_function() {
	n=0 result=0
	while [ $n -lt 1000 ]; do
		add $n 3
		n=$((n + 1))
	done
}

add() { result=$((result + $1 * $2)); }

if [ "$1" = --describe ]; then
	path=$(readlink /proc/$$/exe)
	printf '{"path":"%s","version":"%s"}\n' "$path" "${BASH_VERSION:-not told}"
	exit
fi
case $1 in
wordcount | read) "prepare_$1" ;;
esac
left=$3
while [ "$left" -gt 0 ]; do
	"program_$1"
	left=$((left - 1))
done
echo "$result"
