/* Files read and written at random by asynchronous requests, eight at a time, of a block each: by io_submit,
 * as libaio uses it, and by io_uring; from the page cache or with O_DIRECT. By the raw system calls, without
 * a library. */
#include "disk.h"
#include "job.h"
#include "ring.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { DEPTH = 8 };

static char blocks[DEPTH][DISK_MOST_BLOCK_KIB * 1024] __attribute__((aligned(4096)));

static int make_file(const char *path, int flags)
{
	int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | flags, 0600);

	if (file < 0)
		fail("cannot open %s: %s", path, strerror(errno));
	for (long i = 0; i < disk_blocks(); i++) {
		number_block(blocks[0], i);
		if (write(file, blocks[0], disk_block()) != disk_block())
			fail("cannot write blocks of %ld bytes: %s", disk_block(), strerror(errno));
		disk_bytes += (uint64_t)disk_block();
	}
	if (fsync(file) < 0)
		fail("fsync: %s", strerror(errno));
	return file;
}

static void end_file(int file, const char *path)
{
	if (unlink(path) < 0 || fsync(file) < 0 || close(file) < 0)
		fail("cannot sync and remove %s: %s", path, strerror(errno));
}

static void expect_answer(long long result)
{
	if (result < 0)
		fail("a request failed: %s", strerror(-result));
	if (result != disk_block())
		fail("a request moved %lld bytes, not %ld", result, disk_block());
}

static void submit(aio_context_t queue, int file, const long *numbers, int count, bool writes)
{
	struct iocb requests[DEPTH], *pointers[DEPTH];
	struct io_event events[DEPTH];

	for (int i = 0; i < count; i++) {
		if (writes)
			number_block(blocks[i], numbers[i]);
		requests[i] = (struct iocb){.aio_fildes = file,
					    .aio_lio_opcode = writes ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD,
					    .aio_buf = (uintptr_t)blocks[i],
					    .aio_nbytes = disk_block(),
					    .aio_offset = numbers[i] * disk_block()};
		pointers[i] = &requests[i];
	}
	if (syscall(SYS_io_submit, queue, count, pointers) != count)
		fail("io_submit: %s", strerror(errno));
	if (syscall(SYS_io_getevents, queue, count, count, events, NULL) != count)
		fail("io_getevents: %s", strerror(errno));
	for (int i = 0; i < count; i++)
		expect_answer(events[i].res);
	for (int i = 0; i < count && !writes; i++)
		expect_block(blocks[i], numbers[i]);
	disk_bytes += (uint64_t)count * disk_block();
}

static void submit_to_ring(aio_context_t queue, int file, const long *numbers, int count, bool writes)
{
	(void)queue;
	for (int i = 0; i < count; i++) {
		if (writes)
			number_block(blocks[i], numbers[i]);
		put_request((struct io_uring_sqe){.opcode = writes ? IORING_OP_WRITE : IORING_OP_READ,
						  .fd = file,
						  .addr = (uintptr_t)blocks[i],
						  .len = disk_block(),
						  .off = numbers[i] * disk_block()});
	}
	await_answers(count);
	for (int i = 0; i < count; i++) {
		uint64_t number;

		expect_answer(take_answer(&number));
	}
	for (int i = 0; i < count && !writes; i++)
		expect_block(blocks[i], numbers[i]);
	disk_bytes += (uint64_t)count * disk_block();
}

/* All blocks of a file at random, so many at a time. */
static void submit_all(void submit_some(aio_context_t, int, const long *, int, bool), aio_context_t queue,
		       int file, bool writes)
{
	uint32_t state = 1;

	for (long left = disk_blocks(); left > 0; left -= DEPTH) {
		long numbers[DEPTH];
		int count = left < DEPTH ? left : DEPTH;

		for (int i = 0; i < count; i++)
			numbers[i] = next_number(&state) % disk_blocks();
		submit_some(queue, file, numbers, count, writes);
	}
}

static void use_queue(const char *name, int flags, bool writes)
{
	const char *path = disk_file(name);
	int file = make_file(path, flags);
	aio_context_t queue = 0;

	if (!writes && disk_job_is_cold())
		evict_file(file);
	if (syscall(SYS_io_setup, DEPTH, &queue) < 0)
		fail("io_setup: %s; see /proc/sys/fs/aio-max-nr", strerror(errno));
	submit_all(submit, queue, file, writes);
	if (syscall(SYS_io_destroy, queue) < 0)
		fail("io_destroy: %s", strerror(errno));
	end_file(file, path);
}

static void use_ring(const char *name, int flags, bool writes)
{
	const char *path = disk_file(name);
	int file = make_file(path, flags);

	if (!writes && disk_job_is_cold())
		evict_file(file);
	submit_all(submit_to_ring, 0, file, writes);
	end_file(file, path);
}

static void prepare_ring(void)
{
	enter_scratch_directory();
	if (ring < 0)
		open_ring(DEPTH);
}

#define NOTE "with files of 10 KiB"
#define BY(id, job, calls, prepares, cleans, words, how)                                                  \
	SUB_TEST(id, (disk_next_directory(), job), 10, "KiB", calls, .files = "own",                       \
		 .syscalls_note = NOTE, .prepare = prepares, .cleanup = cleans,                            \
		 .summary = "10 KiB written, and 10 times 1 KiB " words " at random by " how ", 8 at a time")
#define QUEUE(id, flags, writes, words)                                                                    \
	BY(id, use_queue(#id, flags, writes), 22, enter_scratch_directory, NULL, words, "io_submit")
#define RING(id, flags, writes, words)                                                                     \
	BY(id, use_ring(#id, flags, writes), 18, prepare_ring, close_ring, words, "io_uring")
#define COLD(id, calls, prepares, cleans, how)                                                             \
	COLD_SUB_TEST(id, 10, "KiB", calls, .files = "own", .syscalls_note = NOTE,                         \
		      .prepare = prepares, .cleanup = cleans,                                              \
		      .summary = "10 KiB written, and 10 times 1 KiB of it read at random by " how TAKEN_OUT)

QUEUE(disk_aio_rr, 0, false, "read");
QUEUE(disk_aio_rw, 0, true, "written");
QUEUE(disk_aiodio_rr, O_DIRECT, false, "read with O_DIRECT");
QUEUE(disk_aiodio_rw, O_DIRECT, true, "written with O_DIRECT");

RING(disk_uring_rr, 0, false, "read");
RING(disk_uring_rw, 0, true, "written");
RING(disk_uringdio_rr, O_DIRECT, false, "read with O_DIRECT");
RING(disk_uringdio_rw, O_DIRECT, true, "written with O_DIRECT");

COLD(disk_aio_rr, 24, enter_scratch_directory, NULL, "io_submit");
COLD(disk_uring_rr, 20, prepare_ring, close_ring, "io_uring");
