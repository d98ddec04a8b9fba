/* Reading, writing and sizing a file that is in the page cache. */
#include "operation.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { BLOCK = 4096, BLOCKS = 16, PARTS = 4 };

static int file;
static uint64_t number;
static char written[BLOCK], found[BLOCK];
static struct iovec parts[PARTS];

static void fill(uint64_t seed)
{
	for (int i = 0; i < BLOCK; i++)
		written[i] = seed * 31 + i * 7 + 1;
}

static void split(char *block)
{
	for (int i = 0; i < PARTS; i++)
		parts[i] = (struct iovec){block + i * BLOCK / PARTS, BLOCK / PARTS};
}

static off_t place(void)
{
	return number++ % BLOCKS * BLOCK;
}

/* All blocks are the same: for what reads, each is right; for what writes, other ones come. */
static void prepare_reading(void)
{
	enter_scratch_directory();
	file = create_file("content", BLOCKS * BLOCK);
	fill(1);
	for (int i = 0; i < BLOCKS; i++)
		if (pwrite(file, written, BLOCK, i * BLOCK) != BLOCK)
			fail("pwrite: %s", strerror(errno));
	split(found);
}

static void prepare_writing(void)
{
	prepare_reading();
	fill(2);
	split(written);
}

static void check_read(uint64_t n)
{
	(void)n;
	if (memcmp(found, written, BLOCK))
		fail("other bytes were read than the file holds");
}

static void check_written(uint64_t n)
{
	for (uint64_t i = 0; i < BLOCKS && i < n; i++)
		if (pread(file, found, BLOCK, i * BLOCK) != BLOCK || memcmp(found, written, BLOCK))
			fail("block %d of the file is not what was written", (int)i);
}

static void check_size(uint64_t n)
{
	struct stat status;

	(void)n;
	if (fstat(file, &status) < 0 || status.st_size != BLOCK || status.st_blocks == 0)
		fail("the file has not the size that it was given");
}

static void check_fallocate(uint64_t n)
{
	struct stat status;

	check_size(n);
	if (fallocate(file, 0, BLOCK, BLOCK) < 0 || fstat(file, &status) < 0 || status.st_size != 2 * BLOCK)
		fail("fallocate did not make the file longer");
}

static void prepare_fallocate(void)
{
	prepare_reading();
	if (ftruncate(file, 0) < 0)
		fail("ftruncate: %s", strerror(errno));
	if (fallocate(file, 0, 0, BLOCK) < 0)
		fail("the file system of this directory cannot allocate ahead: %s", strerror(errno));
}

OPERATION(pread, "pread", 1, pread(file, found, BLOCK, place()) == BLOCK, .summary = "pread(2) of 4 KiB",
	  .source = "will-it-scale pread1", .prepare = prepare_reading, .check = check_read);
OPERATION(pwrite, "pwrite", 1, pwrite(file, written, BLOCK, place()) == BLOCK, .summary = "pwrite(2) of 4 KiB",
	  .source = "will-it-scale pwrite1", .prepare = prepare_writing, .check = check_written);
OPERATION(preadv, "preadv", 1, preadv(file, parts, PARTS, place()) == BLOCK,
	  .summary = "preadv(2) of 4 KiB into four buffers", .source = "will-it-scale readseek1, vectored",
	  .prepare = prepare_reading, .check = check_read);
OPERATION(pwritev, "pwritev", 1, pwritev(file, parts, PARTS, place()) == BLOCK,
	  .summary = "pwritev(2) of 4 KiB from four buffers", .source = "will-it-scale writeseek1, vectored",
	  .prepare = prepare_writing, .check = check_written);
OPERATION(lseek, "lseek", 1, lseek(file, BLOCK, SEEK_SET) == BLOCK, .summary = "lseek(2)",
	  .source = "will-it-scale lseek1", .prepare = prepare_reading);
OPERATION(ftruncate, "ftruncate", 2,
	  ftruncate(file, 2 * BLOCK) == 0 && ftruncate(file, BLOCK) == 0,
	  .summary = "ftruncate(2) to a block more, without content, and back", .source = "will-it-scale ftruncate1",
	  .prepare = prepare_reading, .check = check_size);
OPERATION(fallocate, "fallocate", 2,
	  fallocate(file, 0, BLOCK, BLOCK) == 0 && ftruncate(file, BLOCK) == 0,
	  .summary = "fallocate(2) of a block, and ftruncate to take it away", .source = "will-it-scale fallocate1",
	  .prepare = prepare_fallocate, .check = check_fallocate);
OPERATION(fsync, "pwrite-fsync", 2, pwrite(file, written, BLOCK, place()) == BLOCK && fsync(file) == 0,
	  .summary = "pwrite(2) of 4 KiB and fsync(2): as fast as the disk", .source = "fsync(2)",
	  .prepare = prepare_writing, .check = check_written);
OPERATION(fdatasync, "pwrite-fdatasync", 2,
	  pwrite(file, written, BLOCK, place()) == BLOCK && fdatasync(file) == 0,
	  .summary = "pwrite(2) of 4 KiB and fdatasync(2): as fast as the disk", .source = "fdatasync(2)",
	  .prepare = prepare_writing, .check = check_written);
