/* UnixBench's "Pipe Throughput": one process writes 512 bytes to a pipe and reads them back.
 * No other process is involved, so nothing is scheduled. */
#include "workload.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { SIZE = 512 };

static int ends[2];
static char buffer[SIZE], expected[SIZE];

static void prepare(void)
{
	if (pipe(ends) < 0)
		fail("pipe: %s", strerror(errno));
	for (int i = 0; i < SIZE; i++)
		buffer[i] = expected[i] = i * 7;
}

static void run(uint64_t n)
{
	for (; n; n--)
		if (write(ends[1], buffer, SIZE) != SIZE || read(ends[0], buffer, SIZE) != SIZE)
			fail("write or read: %s", strerror(errno));
}

static void check(uint64_t n)
{
	(void)n;
	if (memcmp(buffer, expected, SIZE) != 0)
		fail("the pipe gave other bytes than were written");
}

WORKLOAD(pipe, .name = "pipe", .summary = "write 512 bytes to a pipe and read them back", .unit = "ops/s",
	 .units_per_op = 1, .syscalls_per_op = 2, .source = "UnixBench 6.0 pipe (Pipe Throughput)",
	 .prepare = prepare, .run = run, .check = check);
