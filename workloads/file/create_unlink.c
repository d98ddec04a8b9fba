/* Creates an empty file, closes it and removes its name.
 *
 * lmbench times creating many files and removing them as two separate figures; here a file is removed
 * before the next one is created, so that the size of the directory does not depend on how fast it went. */
#include "workload.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static void run(uint64_t n)
{
	for (; n; n--) {
		int fd = open("create-unlink", O_WRONLY | O_CREAT | O_EXCL, 0600);
		if (fd < 0 || close(fd) < 0 || unlink("create-unlink") < 0)
			fail("open, close or unlink: %s", strerror(errno));
	}
}

static void check(uint64_t n)
{
	(void)n;
	if (access("create-unlink", F_OK) == 0)
		fail("the file is still there");
}

WORKLOAD(create_unlink, .name = "create-unlink", .summary = "open(O_CREAT|O_EXCL), close and unlink of an empty file",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 3, .source = "lmbench 3 lat_fs, size 0, in pairs",
	 .prepare = enter_scratch_directory, .run = run, .check = check);
