/* A workload in a line: its operation is a condition that must hold each time.
 *
 * For one or a few system calls whose results tell whether they did their work. What it failed at is
 * then the condition itself, as it is written in the source. */
#ifndef OPERATION_H
#define OPERATION_H

#include "workload.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define OPERATION(id, title, calls, condition, ...)                                             \
	static void run_##id(uint64_t n)                                                        \
	{                                                                                       \
		for (; n; n--)                                                                  \
			if (!(condition))                                                       \
				fail("%s does not hold: %s", #condition, strerror(errno));      \
	}                                                                                       \
	WORKLOAD(id, .name = title, .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = calls, \
		 .run = run_##id, __VA_ARGS__)

/* The number that the next descriptor gets. An operation that opens and closes gets it each time, unless
 * it left one open. */
static inline int next_descriptor(void)
{
	int fd = dup(STDERR_FILENO);

	if (fd < 0)
		fail("dup: %s", strerror(errno));
	close(fd);
	return fd;
}

#endif
