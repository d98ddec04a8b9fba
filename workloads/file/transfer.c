/* Copies that stay in the kernel: 64 KiB from a file to another file, or to a pipe. */
#include "operation.h"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <unistd.h>

enum { SIZE = 65536 };

static int source, target, ends[2];
static char content[SIZE], found[SIZE + 1];

static void prepare_source(void)
{
	enter_scratch_directory();
	source = create_file("source", 0);
	for (int i = 0; i < SIZE; i++)
		content[i] = i * 7 + i / 256;
	if (pwrite(source, content, SIZE, 0) != SIZE)
		fail("pwrite: %s", strerror(errno));
}

static void prepare_file(void)
{
	prepare_source();
	target = create_file("target", SIZE);
}

static void prepare_pipe(void)
{
	prepare_source();
	if (pipe(ends) < 0 || fcntl(ends[1], F_SETPIPE_SZ, SIZE) < SIZE)
		fail("cannot have a pipe of %d bytes: %s", SIZE, strerror(errno));
	target = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (target < 0)
		fail("cannot open /dev/null: %s", strerror(errno));
}

static bool copy(void)
{
	off_t from = 0, to = 0;

	return copy_file_range(source, &from, target, &to, SIZE, 0) == SIZE && to == SIZE;
}

/* Sent to a file, the bytes go to its position. */
static bool send_to_file(void)
{
	off_t from = 0;

	return lseek(target, 0, SEEK_SET) == 0 && sendfile(target, source, &from, SIZE) == SIZE &&
	       from == SIZE;
}

static bool splice_to_nowhere(void)
{
	off_t from = 0;

	return splice(source, &from, ends[1], NULL, SIZE, 0) == SIZE &&
	       splice(ends[0], NULL, target, NULL, SIZE, 0) == SIZE;
}

static void check_file(uint64_t n)
{
	(void)n;
	if (pread(target, found, sizeof found, 0) != SIZE || memcmp(found, content, SIZE))
		fail("the copy differs from the source");
}

/* /dev/null shows nothing, so once more, to be read from the pipe. */
static void check_pipe(uint64_t n)
{
	off_t from = 0;

	(void)n;
	if (splice(source, &from, ends[1], NULL, SIZE, 0) != SIZE || read(ends[0], found, SIZE) != SIZE ||
	    memcmp(found, content, SIZE))
		fail("other bytes came through the pipe than the file holds");
}

OPERATION(sendfile, "sendfile", 2, send_to_file(),
	  .summary = "lseek to the start of a file, and sendfile(2) of 64 KiB from another", .source = "sendfile(2)",
	  .prepare = prepare_file, .check = check_file);
OPERATION(copy_file_range, "copy_file_range", 1, copy(),
	  .summary = "copy_file_range(2) of 64 KiB from a file to a file", .source = "copy_file_range(2)",
	  .prepare = prepare_file, .check = check_file);
OPERATION(splice, "splice", 2, splice_to_nowhere(),
	  .summary = "splice(2) of 64 KiB from a file to a pipe, and from there to /dev/null", .source = "splice(2)",
	  .prepare = prepare_pipe, .check = check_pipe);
