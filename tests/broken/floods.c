/* Workloads that print 2 GiB: on stdout, on stderr, and before a sample that looks good. */
#include "workload.h"

#include <string.h>
#include <unistd.h>

/* A line for ever, and not one that a terminal should see. */
static void flood(int fd)
{
	static char chunk[64 << 10];

	memset(chunk, '\033', sizeof chunk);
	for (long left = 2l << 30; left > 0;) {
		ssize_t written = write(fd, chunk, sizeof chunk);

		if (written < 0)
			fail("write");
		left -= written;
	}
}

static void run(uint64_t n)
{
	while (n--)
		getppid();
}

static void flood_stdout(void)
{
	flood(STDOUT_FILENO);
	_exit(0);
}

static void flood_stderr(void)
{
	flood(STDERR_FILENO);
	_exit(4);
}

static void flood_before_the_sample(void)
{
	flood(STDERR_FILENO);
}

#define FLOODS(id, how, what)                                                                   \
	WORKLOAD(id, .name = "broken-" how, .summary = how, .unit = "ops/s", .units_per_op = 1,   \
		 .syscalls_per_op = 1, .source = "tests/input/broken_workloads.rs", .run = run, .prepare = what)

FLOODS(stdout, "stdout", flood_stdout);
FLOODS(stderr, "stderr", flood_stderr);
FLOODS(chatter, "chatter", flood_before_the_sample);
