/* lmbench's bw_file_rd and bw_mmap_rd: a file in the page cache is read and summed up, through a buffer of
 * 64 KiB or through a mapping; opened once before, or opened and closed each time. */
#include "workload.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WORDS = 64 * 1024 / 8, SIZE = WORDS * 8 };

static uint64_t buffer[WORDS], expected, sum;
static int fd;
static const uint64_t *mapping;

static const uint64_t *map(int protection)
{
	void *address = mmap(NULL, current->size, protection, MAP_SHARED, fd, 0);

	if (address == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	return address;
}

static void prepare(void)
{
	enter_scratch_directory();
	fd = create_file("file", 0);
	for (long position = 0; position < current->size; position += SIZE) {
		for (long i = 0; i < WORDS; i++)
			expected += buffer[i] = position + i * 3;
		if (write(fd, buffer, SIZE) != SIZE)
			fail("write: %s", strerror(errno));
	}
	mapping = map(PROT_READ);
}

static void open_file(void)
{
	fd = open("file", O_RDONLY);
	if (fd < 0)
		fail("open: %s", strerror(errno));
}

static void add_up(const uint64_t *words, long bytes)
{
	OPAQUE(words); /* else a mapping that does not change would be read once */
	for (long i = 0; i < bytes / 8; i++)
		sum += words[i];
}

static void read_file(void)
{
	for (long position = 0; position < current->size; position += SIZE) {
		if (read(fd, buffer, SIZE) != SIZE)
			fail("read: %s", strerror(errno));
		add_up(buffer, SIZE);
	}
}

static void run_read_only(uint64_t n)
{
	for (; n; n--) {
		if (lseek(fd, 0, SEEK_SET) != 0)
			fail("lseek: %s", strerror(errno));
		read_file();
	}
}

static void run_read_open(uint64_t n)
{
	for (; n; n--) {
		open_file();
		read_file();
		close(fd);
	}
}

static void run_mmap_only(uint64_t n)
{
	for (; n; n--)
		add_up(mapping, current->size);
}

static void run_mmap_open(uint64_t n)
{
	for (; n; n--) {
		open_file();
		const uint64_t *words = map(PROT_READ);
		add_up(words, current->size);
		munmap((void *)words, current->size);
		close(fd);
	}
}

static void check(uint64_t n)
{
	if (sum != n * expected)
		fail("the sum of what was read is wrong");
}

#define READ(id, base, what, bytes, label, calls, curve, origin, function)                              \
	WORKLOAD(id, .name = base "-" label, .summary = what " a file of " label " in the page cache, and add it up", \
		 .unit = "MBps", .units_per_op = (bytes) / 1e6, .syscalls_per_op = calls,                \
		 .source = "lmbench 3 " origin, .size = bytes, .series = curve, .x = bytes, .x_unit = "bytes", \
		 .prepare = prepare, .run = function, .check = check)

#define READ_ALL_WAYS(label, bytes)                                                                         \
	READ(bw_file_rd_##label, "bw-file-rd", "read", bytes, #label, 1 + (bytes) / SIZE,                    \
	     "file read", "bw_file_rd io_only", run_read_only);                                              \
	READ(bw_file_rd_open_##label, "bw-file-rd-open", "open, read and close", bytes, #label,              \
	     2 + (bytes) / SIZE, "file read, opened each time", "bw_file_rd open2close", run_read_open);     \
	READ(bw_mmap_rd_##label, "bw-mmap-rd", "read the mapping of", bytes, #label, 0, "mapped file read",  \
	     "bw_mmap_rd mmap_only", run_mmap_only);                                                         \
	READ(bw_mmap_rd_open_##label, "bw-mmap-rd-open", "open, map, read, unmap and close", bytes, #label,  \
	     4, "mapped file read, mapped each time", "bw_mmap_rd open2close", run_mmap_open)

READ_ALL_WAYS(256k, 256 * 1024);
READ_ALL_WAYS(2m, 2 * 1024 * 1024);
READ_ALL_WAYS(8m, 8 * 1024 * 1024);
