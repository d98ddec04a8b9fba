/* lmbench's lat_fs: creates a file of some size, closes it and removes it. Each half has times of its own. */
#include "workload.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static char content[10 * 1024], found[sizeof content];

enum { CREATE, DELETE };

static void prepare(void)
{
	enter_scratch_directory();
	for (size_t i = 0; i < sizeof content; i++)
		content[i] = i * 7 + i / 256;
}

static void create(void)
{
	int fd = open("file", O_WRONLY | O_CREAT | O_EXCL, 0600);

	if (fd < 0 || (current->size && write(fd, content, current->size) != current->size) || close(fd) < 0)
		fail("open, write or close: %s", strerror(errno));
}

static void run(uint64_t n)
{
	for (; n; n--) {
		uint64_t begin = now_ns();
		create();
		uint64_t created = now_ns();
		took(CREATE, created - begin);
		if (unlink("file") < 0)
			fail("unlink: %s", strerror(errno));
		took(DELETE, now_ns() - created);
	}
}

static void check(uint64_t n)
{
	(void)n;
	create(); /* fails where the last one was not removed */
	int fd = open("file", O_RDONLY);
	if (fd < 0 || read(fd, found, sizeof found) != current->size || memcmp(found, content, current->size))
		fail("the file has not the content that it was given");
	close(fd);
}

#define FILE_OF(kib, what, calls, ...)                                                                \
	WORKLOAD(lat_fs_##kib##k, .name = "lat-fs-" #kib "k",                                         \
		 .summary = "open(O_CREAT|O_EXCL)" what ", close and unlink of a file",                \
		 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = calls,                          \
		 .source = "lmbench 3 lat_fs, in pairs", .size = (kib) * 1024,                        \
		 .times = {"create", "delete"}, .prepare = prepare, .run = run, .check = check, __VA_ARGS__)
#define WRITTEN(kib)                                                                                   \
	FILE_OF(kib, ", write of " #kib " KiB", 4, .series = "file creation and removal",              \
		.x = (kib) * 1024, .x_unit = "bytes")

/* create-unlink does the same without the times, which take three looks at the clock. */
FILE_OF(0, "", 3, .x = 0);
WRITTEN(1);
WRITTEN(4);
WRITTEN(10);
