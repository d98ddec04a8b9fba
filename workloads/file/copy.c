/* UnixBench's file copies: read one buffer, write one buffer, and rewind both files at the end.
 *
 * They copy within the page cache, on purpose: no sync, no O_DIRECT. The copy is given its blocks before
 * the clock runs, so that every timed operation overwrites. Every block of the source is different, so
 * that a block in the wrong place is found. */
#include "kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int source, copy;
static long position; /* in buffers, of both files */
static char *buffer;

static void fill(char *block, long number)
{
	uint32_t state = number;

	for (long i = 0; i < current->size; i++) {
		state = state * 1664525 + 1013904223;
		block[i] = state >> 24;
	}
}

/* Filling and checking go through memory: the system calls of a sample are those of its operations, but
 * for a number that does not depend on how many there were. */
static char *map(int fd)
{
	char *content = mmap(NULL, current->size * current->count, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (content == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	return content;
}

static void prepare(void)
{
	long bytes = current->size * current->count;
	char *content;

	enter_scratch_directory();
	buffer = malloc(current->size);
	source = create_file("source", bytes);
	copy = create_file("copy", bytes);
	content = map(source);
	for (long i = 0; i < current->count; i++)
		fill(content + i * current->size, i);
	munmap(content, bytes);
	position = current->count;
}

static void run(uint64_t n)
{
	long size = current->size;

	for (; n; n--) {
		if (position == current->count) {
			if (lseek(source, 0, SEEK_SET) || lseek(copy, 0, SEEK_SET))
				fail("lseek: %s", strerror(errno));
			position = 0;
		}
		if (read(source, buffer, size) != size || write(copy, buffer, size) != size)
			fail("read or write: %s", strerror(errno));
		position++;
	}
}

static void check(uint64_t n)
{
	long bytes = current->size * current->count;
	char *content;

	if (lseek(copy, 0, SEEK_END) != bytes)
		fail("the copy has not the size of the source");
	content = map(copy);
	for (long i = 0; i < current->count && (uint64_t)i < n; i++) {
		fill(buffer, i);
		if (memcmp(content + i * current->size, buffer, current->size))
			fail("block %ld of the copy differs from the source", i);
	}
	munmap(content, bytes);
}

static void cleanup(void)
{
	free(buffer);
	buffer = NULL;
}

#define COPY(id, bytes, kib)                                                                        \
	WORKLOAD(id, .name = #id, .summary = "read and write " #bytes " bytes of a file of " #kib " KiB", \
		 .unit = "KBps", .units_per_op = (bytes) / 1024.0, .syscalls_per_op = 2 + 2.0 / 2000,  \
		 .syscalls_note = "read, write, and two lseek every 2000 operations",                  \
		 .source = "UnixBench 6.0 " #id " (File Copy " #bytes " bufsize)", .size = bytes,      \
		 .count = (kib) * 1024L / (bytes), .prepare = prepare, .run = run, .check = check,     \
		 .cleanup = cleanup)

COPY(fstime, 1024, 2000);
COPY(fsbuffer, 256, 500);
COPY(fsdisk, 4096, 8000);
