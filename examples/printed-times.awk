# Converts the output of `time -p` into a line of JSON for weigh. `real 1.23` becomes the reading run1_real,
# `user 1.01` run1_user, `sys 0.05` run1_sys; the next times become run2_real and so on.
#
# bash -o pipefail -c './bench.sh 2>&1 | awk -f printed-times.awk', as a script that fails has no result
$1 ~ /^(real|user|sys)$/ && NF == 2 && $2 ~ /^[0-9.]+$/ {
	name = "run" ++seen[$1] "_" $1
	readings = readings (readings ? "," : "") \
		sprintf("{\"name\":\"%s\",\"value\":%s,\"unit\":\"s\",\"better\":\"lower\"}", name, $2)
	if ($1 == "real")
		total += $2
}
{ print }
END { printf "{\"operations\":%d,\"elapsed_ns\":%.0f,\"readings\":[%s]}\n", seen["real"], total * 1e9, readings }
