/* UnixBench's "Pipe Throughput": one process writes 512 bytes to a pipe and reads them back; or so often that
 * 1 MiB has passed, as Nitzberg (1994) describes the test.
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
	for (n *= (uint64_t)current->count; n; n--)
		if (write(ends[1], buffer, SIZE) != SIZE || read(ends[0], buffer, SIZE) != SIZE)
			fail("write or read: %s", strerror(errno));
}

static void check(uint64_t n)
{
	(void)n;
	if (memcmp(buffer, expected, SIZE) != 0)
		fail("the pipe gave other bytes than were written");
}

#define PIPE(id, key, times, words)                                                                       \
	WORKLOAD(id, .name = key, .summary = words, .unit = "ops/s", .units_per_op = 1, .count = times,  \
		 .syscalls_per_op = 2 * (times), .source = "UnixBench 6.0 pipe (Pipe Throughput)",        \
		 .prepare = prepare, .run = run, .check = check)

PIPE(pipe, "pipe", 1, "write 512 bytes to a pipe and read them back");
PIPE(pipe_1m, "pipe-1m", 2048, "pass 1 MiB through a pipe, 512 bytes at a time, to and from one process");
