/* lmbench's bw_mem: passes over a buffer of ints. rd, wr, rdwr and cp touch every fourth int and are
 * credited with all, for a line is moved as a whole; frd, fwr and fcp touch all; bzero and bcopy are the C
 * library's.
 *
 * The ints are volatile: each is loaded and stored as one, by every compiler. So this is what a simple loop
 * gets, and not the most that the machine can do; bzero and bcopy come nearer to that. */
#include "workload.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

static volatile uint32_t *from, *to; /* the same, where there is one buffer */
static long ints;
static uint32_t mark, sum; /* the mark is the number of the pass */

#define EVERY(step) _Pragma("GCC unroll 16") for (long i = 0; i < ints; i += (step))

static volatile uint32_t *allocate(void)
{
	void *buffer = mmap(NULL, current->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (buffer == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	return buffer;
}

static void prepare(void)
{
	ints = current->size / sizeof *from;
	from = allocate();
	to = current->count == 2 ? allocate() : from;
	EVERY(1) {
		to[i] = ~i;
		from[i] = i + 1;
	}
}

/* Inlined, so that the step is known and the loop is unrolled. */
#define PASS static inline __attribute__((always_inline)) void

PASS read_pass(long step)
{
	uint32_t total = 0;

	EVERY(step)
		total += from[i];
	sum += total;
}

PASS write_pass(long step)
{
	uint32_t value = ++mark;

	EVERY(step)
		to[i] = value;
}

PASS read_write_pass(long step)
{
	uint32_t value = ++mark, total = 0;

	EVERY(step) {
		total += from[i];
		to[i] = value;
	}
	sum += total;
}

PASS copy_pass(long step)
{
	from[0] = ++mark;
	EVERY(step)
		to[i] = from[i];
}

PASS bzero_pass(void)
{
	void *target = (void *)to;

	to[ints - 1] = ++mark;
	OPAQUE(target);
	memset(target, 0, current->size);
}

PASS bcopy_pass(void)
{
	void *target = (void *)to;

	from[0] = ++mark;
	OPAQUE(target);
	memcpy(target, (void *)from, current->size);
}

/* What every step-th int has to be in the end: the mark, nothing, or what is in the other buffer. */
enum content { MARK, NOTHING, COPY };

static void check_content(uint64_t n, long step, enum content content)
{
	if (mark != (uint32_t)n)
		fail("%u passes were counted", (unsigned)mark);
	EVERY(1) {
		uint32_t untouched = from == to ? i + 1 : ~i, copied = i ? i + 1 : mark;
		uint32_t written = content == COPY ? copied : content == MARK ? mark : 0;

		if (to[i] != (i % step ? untouched : written))
			fail("int %ld of the buffer is %u", i, (unsigned)to[i]);
	}
}

/* The sum of what was there at first, read in so many passes. */
static uint32_t first_sum(long step, uint64_t passes)
{
	uint32_t total = 0;

	EVERY(step)
		total += i + 1;
	return total * passes;
}

static void check_sum(uint32_t expected)
{
	if (sum != expected)
		fail("the sum of the ints is %u, not %u", (unsigned)sum, (unsigned)expected);
}

static void cleanup(void)
{
	if (from)
		munmap((void *)from, current->size);
	if (to && to != from)
		munmap((void *)to, current->size);
}

#define MODE(id, pass, verify)                 \
	static void run_##id(uint64_t n)       \
	{                                      \
		for (; n; n--)                 \
			pass;                  \
	}                                      \
	static void check_##id(uint64_t n)     \
	{                                      \
		verify;                        \
	}

MODE(rd, read_pass(4), check_sum(first_sum(4, n)))
MODE(frd, read_pass(1), check_sum(first_sum(1, n)))
MODE(wr, write_pass(4), check_content(n, 4, MARK))
MODE(fwr, write_pass(1), check_content(n, 1, MARK))
/* The first pass reads what was there, the others the mark of the one before. */
MODE(rdwr, read_write_pass(4),
     check_content(n, 4, MARK); check_sum(first_sum(4, 1) + n * (n - 1) / 2 * (ints / 4)))
MODE(cp, copy_pass(4), check_content(n, 4, COPY))
MODE(fcp, copy_pass(1), check_content(n, 1, COPY))
MODE(bzero, bzero_pass(), check_content(n, 1, NOTHING))
MODE(bcopy, bcopy_pass(), check_content(n, 1, COPY))

#define BUFFER(id, what, buffers, label, bytes)                                                           \
	WORKLOAD(bw_mem_##id##_##label, .name = "bw-mem-" #id "-" #label, .summary = what " of " #label,   \
		 .unit = "MBps", .units_per_op = (bytes) / 1e6, .syscalls_per_op = 0,                      \
		 .source = "lmbench 3 bw_mem " #id, .size = bytes, .count = buffers,                       \
		 .series = "memory bandwidth, " #id, .x = bytes, .x_unit = "bytes", .prepare = prepare,    \
		 .run = run_##id, .check = check_##id, .cleanup = cleanup)

#define BUFFERS(id, what, buffers)                              \
	BUFFER(id, what, buffers, 16k, 16 * 1024);              \
	BUFFER(id, what, buffers, 256k, 256 * 1024);            \
	BUFFER(id, what, buffers, 8m, 8 * 1024 * 1024);         \
	BUFFER(id, what, buffers, 64m, 64 * 1024 * 1024)

BUFFERS(rd, "read every fourth int", 1);
BUFFERS(frd, "read every int", 1);
BUFFERS(wr, "write every fourth int", 1);
BUFFERS(fwr, "write every int", 1);
BUFFERS(rdwr, "read and write every fourth int", 1);
BUFFERS(cp, "copy every fourth int", 2);
BUFFERS(fcp, "copy every int", 2);
BUFFERS(bzero, "memset to 0", 1);
BUFFERS(bcopy, "memcpy", 2);
