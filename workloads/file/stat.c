/* stat(2) of a file in the current directory: a path walk of one component and its access checks. */
#include "workload.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SIZE = 1234 };

static void prepare(void)
{
	enter_scratch_directory();
	close(create_file("stat", SIZE));
}

static void run(uint64_t n)
{
	struct stat status;

	for (; n; n--) {
		if (stat("stat", &status) < 0)
			fail("stat: %s", strerror(errno));
		if (status.st_size != SIZE)
			fail("the file has %lld bytes, not %d", (long long)status.st_size, SIZE);
	}
}

WORKLOAD(stat, .name = "stat", .summary = "stat(2) of a file in the current directory", .unit = "ops/s",
	 .units_per_op = 1, .syscalls_per_op = 1, .source = "lmbench 3 lat_syscall stat, with a file of its own",
	 .prepare = prepare, .run = run);
