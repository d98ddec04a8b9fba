/* Dhrystone with register variables. */
#define REG register
#include "dhrystone.h"

WORKLOAD(dhry2reg, .name = "dhry2reg", .summary = "one pass of Dhrystone 2.1 with register variables",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 0,
	 .source = "Weicker, Dhrystone 2.1 (1988); UnixBench 6.0 dhry2reg", .prepare = prepare, .run = run,
	 .check = check);
