/* lmbench's lat_mmap: maps a file, writes to one byte in 16 KiB of its first tenth, and unmaps it. */
#include "workload.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum { STEP = 16 * 1024 };

static int fd;
static unsigned char mark;
static char *last;

static char *map(void)
{
	char *content = mmap(NULL, current->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (content == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	return content;
}

static void prepare(void)
{
	enter_scratch_directory();
	fd = create_file("file", current->size);
}

static void run(uint64_t n)
{
	for (; n; n--) {
		char *content = last = map();

		mark++;
		for (long at = 0; at < current->size / 10; at += STEP)
			content[at] = mark;
		if (munmap(content, current->size) < 0)
			fail("munmap: %s", strerror(errno));
	}
}

static void check(uint64_t n)
{
	unsigned char resident;

	if (mincore(last, 1, &resident) == 0)
		fail("the file is still mapped");
	const unsigned char *content = (unsigned char *)map();

	for (long at = 0; at < current->size / 10; at += STEP)
		if (content[at] != (unsigned char)n)
			fail("byte %ld of the file is not what was written last", at);
}

#define MAP(label, bytes)                                                                             \
	WORKLOAD(lat_mmap_##label, .name = "lat-mmap-" #label,                                        \
		 .summary = "mmap " #label " of a file, write to a byte in 16 KiB of its first tenth, munmap", \
		 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 2, .source = "lmbench 3 lat_mmap", \
		 .size = bytes, .series = "mmap and munmap of a file", .x = bytes, .x_unit = "bytes",  \
		 .prepare = prepare, .run = run, .check = check)

MAP(512k, 512 * 1024);
MAP(2m, 2 * 1024 * 1024);
MAP(8m, 8 * 1024 * 1024);
