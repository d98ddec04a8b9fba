/* io_uring: one request is put into the ring, handed to the kernel and waited for, by one system call. By
 * the raw interface, so that no library is needed. seccomp filters and audit see the system call, and not
 * what the request does. */
#include "workload.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ENTRIES = 8, BLOCK = 4096, BLOCKS = 16 };

static int ring, file;
static struct {
	_Atomic uint32_t *tail;
	uint32_t mask, *indices;
	struct io_uring_sqe *entries;
} submission;
static struct {
	_Atomic uint32_t *head, *tail;
	uint32_t mask;
	struct io_uring_cqe *entries;
} completion;
static char buffer[BLOCK];
static uint64_t count;

static char *map(long size, long offset)
{
	char *start = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, offset);

	if (start == MAP_FAILED)
		fail("cannot map the ring: %s", strerror(errno));
	return start;
}

static void prepare_ring(void)
{
	struct io_uring_params parameters = {0};

	ring = syscall(SYS_io_uring_setup, ENTRIES, &parameters);
	if (ring < 0)
		fail("this system does not allow io_uring (see /proc/sys/kernel/io_uring_disabled): %s",
		     strerror(errno));
	char *sq = map(parameters.sq_off.array + parameters.sq_entries * sizeof(uint32_t), IORING_OFF_SQ_RING);
	char *cq = map(parameters.cq_off.cqes + parameters.cq_entries * sizeof *completion.entries,
		       IORING_OFF_CQ_RING);

	submission.tail = (void *)(sq + parameters.sq_off.tail);
	submission.mask = *(uint32_t *)(sq + parameters.sq_off.ring_mask);
	submission.indices = (void *)(sq + parameters.sq_off.array);
	submission.entries =
		(void *)map(parameters.sq_entries * sizeof *submission.entries, IORING_OFF_SQES);
	completion.head = (void *)(cq + parameters.cq_off.head);
	completion.tail = (void *)(cq + parameters.cq_off.tail);
	completion.mask = *(uint32_t *)(cq + parameters.cq_off.ring_mask);
	completion.entries = (void *)(cq + parameters.cq_off.cqes);
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
	uint32_t tail = atomic_load_explicit(submission.tail, memory_order_relaxed);
	uint32_t head = atomic_load_explicit(completion.head, memory_order_relaxed);

	entry.user_data = count;
	submission.entries[tail & submission.mask] = entry;
	submission.indices[tail & submission.mask] = tail & submission.mask;
	atomic_store_explicit(submission.tail, tail + 1, memory_order_release);
	if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1)
		fail("io_uring_enter: %s", strerror(errno));
	if (atomic_load_explicit(completion.tail, memory_order_acquire) != head + 1)
		fail("there is not one answer to one request");

	struct io_uring_cqe answer = completion.entries[head & completion.mask];
	atomic_store_explicit(completion.head, head + 1, memory_order_release);
	if (answer.user_data != count)
		fail("another request was answered");
	if (answer.res != expected)
		fail("the answer is %d, not %d", answer.res, expected);
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
	 .prepare = prepare_ring, .run = run_nop, .check = check);
WORKLOAD(read, .name = "io_uring-read", .summary = "a request to io_uring to read 4 KiB of a file in the page cache",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 1, .source = "io_uring_enter(2)",
	 .prepare = prepare_read, .run = run_read, .check = check);
