# Makes the times that a script prints readings of weigh: `real 1.23`, `user 1.01` and `sys 0.05`, the lines
# of `time -p`, become run1_real, run1_user and so on. weigh reads the last line.
#
# ./bench.sh 2>&1 | awk -f printed-times.awk
$1 ~ /^(real|user|sys)$/ && NF == 2 && $2 ~ /^[0-9.]+$/ {
	name = "run" ++seen[$1] "_" $1
	readings = readings (readings ? "," : "") \
		sprintf("{\"name\":\"%s\",\"value\":%s,\"unit\":\"s\",\"better\":\"lower\"}", name, $2)
	if ($1 == "real")
		total += $2
}
{ print }
END { printf "{\"operations\":%d,\"elapsed_ns\":%.0f,\"readings\":[%s]}\n", seen["real"], total * 1e9, readings }
