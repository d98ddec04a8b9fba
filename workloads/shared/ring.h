/* io_uring by its raw interface: requests are put into a ring, handed to the kernel and waited for by one
 * system call. Here and not in a file of its own, so that it is inlined into what is timed. */
#ifndef RING_H
#define RING_H

#include "workload.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int ring = -1;
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

static char *map_of_ring(long size, long offset)
{
	char *start = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, offset);

	if (start == MAP_FAILED)
		fail("cannot map the ring: %s", strerror(errno));
	return start;
}

static inline void open_ring(unsigned entries)
{
	struct io_uring_params parameters = {0};

	ring = syscall(SYS_io_uring_setup, entries, &parameters);
	if (ring < 0)
		fail("this system does not allow io_uring (see /proc/sys/kernel/io_uring_disabled): %s",
		     strerror(errno));
	char *sq = map_of_ring(parameters.sq_off.array + parameters.sq_entries * sizeof(uint32_t),
			       IORING_OFF_SQ_RING);
	char *cq = map_of_ring(parameters.cq_off.cqes + parameters.cq_entries * sizeof *completion.entries,
			       IORING_OFF_CQ_RING);

	submission.tail = (void *)(sq + parameters.sq_off.tail);
	submission.mask = *(uint32_t *)(sq + parameters.sq_off.ring_mask);
	submission.indices = (void *)(sq + parameters.sq_off.array);
	submission.entries = (void *)map_of_ring(parameters.sq_entries * sizeof *submission.entries,
						 IORING_OFF_SQES);
	completion.head = (void *)(cq + parameters.cq_off.head);
	completion.tail = (void *)(cq + parameters.cq_off.tail);
	completion.mask = *(uint32_t *)(cq + parameters.cq_off.ring_mask);
	completion.entries = (void *)(cq + parameters.cq_off.cqes);
}

/* Its memory goes with the process. */
static inline void close_ring(void)
{
	if (ring >= 0)
		close(ring);
	ring = -1;
}

static inline void put_request(struct io_uring_sqe entry)
{
	uint32_t tail = atomic_load_explicit(submission.tail, memory_order_relaxed);

	submission.entries[tail & submission.mask] = entry;
	submission.indices[tail & submission.mask] = tail & submission.mask;
	atomic_store_explicit(submission.tail, tail + 1, memory_order_release);
}

/* Hands all `count` requests to the kernel, and waits for their answers. */
static inline void await_answers(uint32_t count)
{
	uint32_t head = atomic_load_explicit(completion.head, memory_order_relaxed);

	if (syscall(SYS_io_uring_enter, ring, count, count, IORING_ENTER_GETEVENTS, NULL, 0) != count)
		fail("io_uring_enter: %s", strerror(errno));
	if (atomic_load_explicit(completion.tail, memory_order_acquire) != head + count)
		fail("there is not one answer to one request");
}

/* The result of the next one, and the number that its request had. */
static inline int take_answer(uint64_t *number)
{
	uint32_t head = atomic_load_explicit(completion.head, memory_order_relaxed);
	const struct io_uring_cqe *answer = &completion.entries[head & completion.mask];
	int result = answer->res;

	*number = answer->user_data;
	atomic_store_explicit(completion.head, head + 1, memory_order_release);
	return result;
}

#endif
