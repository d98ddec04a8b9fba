/* UnixBench's file copies: read one buffer, write one buffer, and rewind both files at the end; and its
 * tests of reading and of writing alone.
 *
 * They stay within the page cache, on purpose: no sync, no O_DIRECT. What is written to has its blocks
 * before the clock runs, so that every timed operation overwrites. Every block is different, so that one
 * in the wrong place is found.
 *
 * As NAME@cold, the worst case: an operation is one pass over the file, which begins with nothing of it in
 * the page cache and ends when all that was written is on the device. */
#include "disk.h"
#include "workload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int source = -1, copy = -1;
static long position; /* in buffers, of the files that are open */
/* As the original's: 16 bytes off the boundary of a word of 32, a copy takes up to 8 % longer. */
static char buffer[4096] __attribute__((aligned(32)));

/* By words: of fsdisk's 32 MiB this was half of what a launch takes. */
static void fill(char *block, long number)
{
	uint32_t state = number;

	for (long i = 0; i < current->size; i += sizeof state) {
		state = state * 1664525 + 1013904223;
		memcpy(block + i, &state, sizeof state);
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

static void prepare(bool reads, bool writes)
{
	long bytes = current->size * current->count;

	enter_scratch_directory();
	fill(buffer, current->count);
	if (writes)
		copy = create_file("copy", bytes);
	if (reads) {
		source = create_file("source", bytes);
		char *content = map(source);
		for (long i = 0; i < current->count; i++)
			fill(content + i * current->size, i);
		munmap(content, bytes);
	}
	position = current->count;
	if (current->is_cold && writes)
		evict_file(copy);
}

static void prepare_copy(void)
{
	prepare(true, true);
}

static void prepare_read(void)
{
	prepare(true, false);
}

static void prepare_write(void)
{
	prepare(false, true);
}

static inline void rewind_at_end(int fd)
{
	if (position == current->count && lseek(fd, 0, SEEK_SET))
		fail("lseek: %s", strerror(errno));
}

static inline void step(void)
{
	position = position == current->count ? 1 : position + 1;
}

static void run_copy(uint64_t n)
{
	long size = current->size;

	for (; n; n--) {
		rewind_at_end(source);
		rewind_at_end(copy);
		if (read(source, buffer, size) != size || write(copy, buffer, size) != size)
			fail("read or write: %s", strerror(errno));
		step();
	}
}

static void run_read(uint64_t n)
{
	long size = current->size;

	for (; n; n--) {
		rewind_at_end(source);
		if (read(source, buffer, size) != size)
			fail("read: %s", strerror(errno));
		step();
	}
}

/* Every block begins with its number. */
static void run_write(uint64_t n)
{
	long size = current->size;

	for (; n; n--) {
		rewind_at_end(copy);
		step();
		memcpy(buffer, &position, sizeof position);
		if (write(copy, buffer, size) != size)
			fail("write: %s", strerror(errno));
	}
}

/* What is read leaves the page cache before, what is written after: it is not there the next time either. */
static void pass(bool reads, bool writes, void blocks(uint64_t), uint64_t n)
{
	for (; n; n--) {
		if (reads)
			evict_file(source);
		blocks(current->count);
		if (writes)
			evict_file(copy);
	}
}

static void pass_copy(uint64_t n)
{
	pass(true, true, run_copy, n);
}

static void pass_read(uint64_t n)
{
	pass(true, false, run_read, n);
}

static void pass_write(uint64_t n)
{
	pass(false, true, run_write, n);
}

static void check_copy(uint64_t n)
{
	long bytes = current->size * current->count;
	char *content;

	n *= current->is_cold ? current->count : 1;
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

static void check_read(uint64_t n)
{
	char *last = malloc(current->size);

	n *= current->is_cold ? current->count : 1;
	if (position != (long)((n - 1) % current->count) + 1 ||
	    lseek(source, 0, SEEK_CUR) != position * current->size)
		fail("%llu reads do not end at block %ld", (unsigned long long)n, position);
	fill(last, position - 1);
	if (memcmp(buffer, last, current->size))
		fail("block %ld was not read as it is", position - 1);
	free(last);
}

static void check_write(uint64_t n)
{
	long bytes = current->size * current->count;
	char *content;

	n *= current->is_cold ? current->count : 1;
	if (lseek(copy, 0, SEEK_END) != bytes)
		fail("the file has not the size that was written");
	content = map(copy);
	for (long i = 0; i < current->count && (uint64_t)i < n; i++) {
		long number = i + 1;
		memcpy(buffer, &number, sizeof number);
		if (memcmp(content + i * current->size, buffer, current->size))
			fail("block %ld is not what was written", i);
	}
	munmap(content, bytes);
}

#define FILES(id, key, what, words, calls, each, bytes, kib)                                             \
	WORKLOAD(id##_##what, .name = key, .summary = words " " #bytes " bytes of a file of " #kib " KiB", \
		 .unit = "KBps", .units_per_op = (bytes) / 1024.0,                                       \
		 .syscalls_per_op = (calls) + (calls) / 2000.0, .syscalls_note = each " every 2000 operations", \
		 .source = "UnixBench 6.0 " key, .size = bytes, .count = (kib) * 1024L / (bytes),        \
		 .prepare = prepare_##what, .run = run_##what, .check = check_##what);                   \
	WORKLOAD(id##_##what##_cold, .name = key "@cold",                                                \
		 .summary = words " a file of " #kib " KiB once, " #bytes " bytes at a time, outside of the page cache", \
		 .unit = "KBps", .units_per_op = kib, .is_cold = true,                                   \
		 .syscalls_per_op = (calls) * ((kib) * 1024.0 / (bytes) + 1) + 2 * (calls),         \
		 .source = "UnixBench 6.0 " key, .size = bytes, .count = (kib) * 1024L / (bytes),        \
		 .prepare = prepare_##what, .run = pass_##what, .check = check_##what)

#define COPY_READ_WRITE(id, bytes, kib)                                                                  \
	FILES(id, #id, copy, "read and write", 2, "read, write, and two lseek", bytes, kib);             \
	FILES(id, #id "-r", read, "read", 1, "read, and an lseek", bytes, kib);                          \
	FILES(id, #id "-w", write, "write", 1, "write, and an lseek", bytes, kib)

COPY_READ_WRITE(fstime, 1024, 2000);
COPY_READ_WRITE(fsbuffer, 256, 500);
COPY_READ_WRITE(fsdisk, 4096, 8000);
