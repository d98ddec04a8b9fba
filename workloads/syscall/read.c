/* Reads one byte from /dev/zero: a system call that goes through the file layer and its access checks. */
#include "workload.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static int zero;

static void prepare(void)
{
	zero = open("/dev/zero", O_RDONLY);
	if (zero < 0)
		fail("cannot open /dev/zero: %s", strerror(errno));
}

static void run(uint64_t n)
{
	char byte = 1;

	for (; n; n--)
		if (read(zero, &byte, 1) != 1)
			fail("cannot read /dev/zero: %s", strerror(errno));
	if (byte)
		fail("/dev/zero gave %d", byte);
}

WORKLOAD(read, .name = "read", .summary = "read(2) of one byte from /dev/zero", .unit = "ops/s",
	 .units_per_op = 1, .syscalls_per_op = 1, .source = "lmbench 3 lat_syscall read",
	 .prepare = prepare, .run = run);
