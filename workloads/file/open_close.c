/* open(2) for reading and close(2) of a file in the current directory. */
#include "workload.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static void prepare(void)
{
	enter_scratch_directory();
	close(create_file("open-close", 1234));
}

static void run(uint64_t n)
{
	for (; n; n--) {
		int fd = open("open-close", O_RDONLY);
		if (fd < 0 || close(fd) < 0)
			fail("open or close: %s", strerror(errno));
	}
}

WORKLOAD(open_close, .name = "open-close", .summary = "open(2) and close(2) of a file in the current directory",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 2,
	 .source = "lmbench 3 lat_syscall open, with a file of its own", .prepare = prepare, .run = run);
