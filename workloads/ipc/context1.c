/* UnixBench's "Pipe-based Context Switching": two processes send a growing number back and forth through
 * two pipes, and each compares it with its own count. One round trip is two switches.
 * Only on one CPU is each of them sure to be a switch of context.
 *
 * lmbench's lat_pipe is the same with one byte. */
#include "partner.h"
#include "token.h"
#include "workload.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static void prepare(void)
{
	int there[2], back[2];

	if (pipe(there) < 0 || pipe(back) < 0)
		fail("pipe: %s", strerror(errno));
	start_token((struct ends){back[0], there[1]}, (struct ends){there[0], back[1]});
}

PLACED_WORKLOADS(context1, "context1",
	 .summary = "two processes pass a number there and back through two pipes", .unit = "ops/s",
	 .units_per_op = 1, .syscalls_per_op = 4, .source = "UnixBench 6.0 context1 (Pipe-based Context Switching)",
	 .size = 8, .prepare = prepare, .run = run_token, .check = check_token,
	 .add_usage = add_partner_usage);
PLACED_WORKLOADS(lat_pipe, "lat-pipe", .summary = "two processes pass a byte there and back through two pipes",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 4, .source = "lmbench 3 lat_pipe", .size = 1,
	 .prepare = prepare, .run = run_token, .check = check_token, .add_usage = add_partner_usage);
