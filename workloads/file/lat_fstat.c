/* fstat(2) of an open file: stat(2) without the walk along a path. */
#include "workload.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum { SIZE = 1234 };

static int fd;

static void prepare(void)
{
	enter_scratch_directory();
	fd = create_file("fstat", SIZE);
}

static void run(uint64_t n)
{
	struct stat status;

	for (; n; n--) {
		if (fstat(fd, &status) < 0)
			fail("fstat: %s", strerror(errno));
		if (status.st_size != SIZE)
			fail("the file has %lld bytes, not %d", (long long)status.st_size, SIZE);
	}
}

WORKLOAD(fstat, .name = "fstat", .summary = "fstat(2) of an open file", .unit = "ops/s", .units_per_op = 1,
	 .syscalls_per_op = 1, .source = "lmbench 3 lat_syscall fstat, with a file of its own", .prepare = prepare,
	 .run = run);
