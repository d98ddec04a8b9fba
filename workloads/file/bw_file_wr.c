/* lmdd with fsync=1: writes 4 MiB, 64 KiB at a time, and waits until the device has them. */
#include "workload.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WORDS = 64 * 1024 / 8, SIZE = WORDS * 8, PIECES = 64 };

static int fd;
static uint64_t piece[WORDS], passes;

static void prepare(void)
{
	enter_scratch_directory();
	fd = create_file("file", (long)SIZE * PIECES);
	memset(piece, 0x5a, sizeof piece);
}

static void run(uint64_t n)
{
	for (; n; n--) {
		passes++;
		for (long i = 0; i < PIECES; i++) {
			piece[0] = passes * PIECES + i;
			if (pwrite(fd, piece, SIZE, i * SIZE) != SIZE)
				fail("pwrite: %s", strerror(errno));
		}
		if (fsync(fd) < 0)
			fail("fsync: %s", strerror(errno));
	}
}

static void check(uint64_t n)
{
	const uint64_t *words = mmap(NULL, (long)SIZE * PIECES, PROT_READ, MAP_SHARED, fd, 0);

	if (words == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	for (long i = 0; i < PIECES; i++)
		if (words[i * WORDS] != n * PIECES + i || words[(i + 1) * WORDS - 1] != piece[WORDS - 1])
			fail("piece %ld of the file is not what was written last", i);
}

WORKLOAD(bw_file_wr, .name = "bw-file-wr", .summary = "write 4 MiB of a file, 64 KiB at a time, and fsync",
	 .unit = "MBps", .units_per_op = SIZE * PIECES / 1e6, .syscalls_per_op = PIECES + 1,
	 .source = "lmbench 3 lmdd with fsync=1", .prepare = prepare, .run = run, .check = check);
