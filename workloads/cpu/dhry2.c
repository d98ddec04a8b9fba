/* Dhrystone without register variables. An optimising compiler places variables as it likes, so that both
 * give much the same rate; in 1991 they did not. */
#define REG
#include "dhrystone.h"

WORKLOAD(dhry2, .name = "dhry2", .summary = "one pass of Dhrystone 2.1 without register variables",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 0,
	 .source = "Weicker, Dhrystone 2.1 (1988); UnixBench 3.11 dhry2", .prepare = prepare, .run = run,
	 .check = check);
