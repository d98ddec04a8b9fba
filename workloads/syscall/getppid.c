/* The cheapest system call there is: what entering and leaving the kernel costs. */
#include "workload.h"

#include <unistd.h>

static pid_t parent;

static void prepare(void)
{
	parent = getppid();
}

static void run(uint64_t n)
{
	for (; n; n--)
		if (getppid() != parent)
			fail("getppid gave another parent than before");
}

WORKLOAD(getppid, .name = "getppid", .summary = "getppid(2)", .unit = "ops/s", .units_per_op = 1,
	 .syscalls_per_op = 1, .source = "lmbench 3 lat_syscall null", .prepare = prepare, .run = run);
