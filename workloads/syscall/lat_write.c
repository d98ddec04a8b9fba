/* Writes one byte to /dev/null. */
#include "workload.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static int null;

static void prepare(void)
{
	null = open("/dev/null", O_WRONLY);
	if (null < 0)
		fail("cannot open /dev/null: %s", strerror(errno));
}

static void run(uint64_t n)
{
	for (; n; n--)
		if (write(null, "", 1) != 1)
			fail("cannot write to /dev/null: %s", strerror(errno));
}

WORKLOAD(write, .name = "write", .summary = "write(2) of one byte to /dev/null", .unit = "ops/s", .units_per_op = 1,
	 .syscalls_per_op = 1, .source = "lmbench 3 lat_syscall write", .prepare = prepare, .run = run);
