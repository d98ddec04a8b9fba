/* The I/O activity of BTU (Maly, Gupta and Mynam, 1996): reads a large file and copies it into another,
 * again and again.
 *
 * Beyond the cache: what was copied is written to the disk at once, and then neither file is kept in
 * memory. So it is the same on any file system, where O_DIRECT is not; a file system in memory has no disk
 * to wait for. */
#include "workload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 64 * 1024, AT_ONCE = 4 * PIECE, SIZE = 4 * 1024 * 1024 };

static int source, copy;
static long position;
static char *buffer, *expected;

/* Each word tells its place. */
static void fill(char *piece, long offset)
{
	for (long i = 0; i < PIECE; i += sizeof(uint32_t)) {
		uint32_t word = (uint32_t)(offset + i) * 2654435761u;
		memcpy(piece + i, &word, sizeof word);
	}
}

static void leave_the_cache(int file)
{
	if (fdatasync(file) < 0)
		fail("fdatasync: %s", strerror(errno));
	posix_fadvise(file, position, AT_ONCE, POSIX_FADV_DONTNEED);
}

static void prepare(void)
{
	enter_scratch_directory();
	buffer = malloc(PIECE), expected = malloc(PIECE);
	if (!buffer || !expected)
		fail("no memory for the buffers");
	source = create_file("source", 0);
	copy = create_file("copy", 0);
	for (long offset = 0; offset < SIZE; offset += PIECE) {
		fill(buffer, offset);
		if (pwrite(source, buffer, PIECE, offset) != PIECE)
			fail("cannot write the file to copy: %s", strerror(errno));
	}
	if (fdatasync(source) < 0 || posix_fadvise(source, 0, SIZE, POSIX_FADV_DONTNEED))
		fail("fdatasync: %s", strerror(errno));
}

static void run(uint64_t n)
{
	while (n--) {
		for (long offset = position; offset < position + AT_ONCE; offset += PIECE)
			if (pread(source, buffer, PIECE, offset) != PIECE ||
			    pwrite(copy, buffer, PIECE, offset) != PIECE)
				fail("cannot copy: %s", strerror(errno));
		leave_the_cache(copy);
		posix_fadvise(source, position, AT_ONCE, POSIX_FADV_DONTNEED);
		position = (position + AT_ONCE) % SIZE;
	}
}

static void check(uint64_t n)
{
	uint64_t pieces = n * (AT_ONCE / PIECE);

	for (long offset = 0; offset < SIZE && (uint64_t)(offset / PIECE) < pieces; offset += PIECE) {
		fill(expected, offset);
		if (pread(copy, buffer, PIECE, offset) != PIECE || memcmp(buffer, expected, PIECE))
			fail("the copy differs from the file in the %d bytes from %ld on", PIECE, offset);
	}
}

WORKLOAD(activity_copy, .name = "activity-copy",
	 .summary = "256 KiB of a file of 4 MiB copied into another, to the disk and out of the cache",
	 .unit = "KBps", .units_per_op = AT_ONCE / 1024.0, .syscalls_per_op = 11,
	 .syscalls_note = "8 to copy, fdatasync, and two fadvise64", .source = "BTU, I/O activity (Maly 1996, 4.2)",
	 .prepare = prepare, .run = run, .check = check);
