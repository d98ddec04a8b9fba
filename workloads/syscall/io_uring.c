/* io_uring: one request is put into the ring, handed to the kernel and waited for, by one system call. By
 * the raw interface, so that no library is needed. seccomp filters and audit see the system call, and not
 * what the request does. */
#include "ring.h"

enum { ENTRIES = 8, BLOCK = 4096, BLOCKS = 16 };

static int file;
static char buffer[BLOCK];
static uint64_t count;

static void prepare_ring(void)
{
	open_ring(ENTRIES);
}

static char content(uint64_t block)
{
	return block * 7 + 1;
}

static void prepare_read(void)
{
	enter_scratch_directory();
	file = create_file("content", BLOCKS * BLOCK);
	for (int i = 0; i < BLOCKS; i++) {
		memset(buffer, content(i), BLOCK);
		if (pwrite(file, buffer, BLOCK, i * BLOCK) != BLOCK)
			fail("pwrite: %s", strerror(errno));
	}
	prepare_ring();
}

/* The answer carries the request's number. */
static void request(struct io_uring_sqe entry, int expected)
{
	entry.user_data = count;
	put_request(entry);
	await_answers(1);

	uint64_t number;
	int answer = take_answer(&number);
	if (number != count)
		fail("another request was answered");
	if (answer != expected)
		fail("the answer is %d, not %d", answer, expected);
	count++;
}

static void run_nop(uint64_t n)
{
	for (; n; n--)
		request((struct io_uring_sqe){.opcode = IORING_OP_NOP, .fd = -1}, 0);
}

static void run_read(uint64_t n)
{
	for (; n; n--) {
		uint64_t block = count % BLOCKS;

		request((struct io_uring_sqe){.opcode = IORING_OP_READ, .fd = file, .addr = (uintptr_t)buffer,
					      .len = BLOCK, .off = block * BLOCK},
			BLOCK);
		if (buffer[0] != content(block) || buffer[BLOCK - 1] != content(block))
			fail("other bytes were read than block %d of the file holds", (int)block);
	}
}

static void check(uint64_t n)
{
	if (count != n)
		fail("%llu requests were answered", (unsigned long long)count);
}

WORKLOAD(nop, .name = "io_uring-nop", .summary = "a request to io_uring that does nothing: io_uring_enter",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 1, .source = "io_uring_enter(2)",
	 .prepare = prepare_ring, .run = run_nop, .check = check, .cleanup = close_ring);
WORKLOAD(read, .name = "io_uring-read", .summary = "a request to io_uring to read 4 KiB of a file in the page cache",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 1, .source = "io_uring_enter(2)",
	 .prepare = prepare_read, .run = run_read, .check = check, .cleanup = close_ring);
