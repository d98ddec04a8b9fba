/* McCalpin's STREAM, as lmbench's stream: passes over arrays of 32 MiB. Each byte that the source text loads
 * or stores counts once; where a store makes the processor load the line first, that does not count.
 *
 * The elements are volatile for the reason given in bw_mem.c. */
#include "workload.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum { ELEMENTS = 4 * 1024 * 1024, BYTES = ELEMENTS * 8 };

static volatile double *a, *b, *c;
static double scalar = 3;

#define EACH _Pragma("GCC unroll 8") for (long i = 0; i < ELEMENTS; i++)

static volatile double *allocate(void)
{
	void *array = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (array == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	return array;
}

static void prepare(void)
{
	a = allocate();
	b = allocate();
	c = allocate();
	EACH {
		a[i] = i;
		b[i] = 2 * i + 1;
		c[i] = -1;
	}
}

static void cleanup(void)
{
	volatile double **arrays[] = {&a, &b, &c};

	for (int i = 0; i < 3; i++) {
		if (*arrays[i])
			munmap((void *)*arrays[i], BYTES);
		*arrays[i] = NULL;
	}
}

#define STREAM(id, arrays, formula)                                                                      \
	static void run_##id(uint64_t n)                                                                  \
	{                                                                                                 \
		for (; n; n--)                                                                            \
			EACH                                                                              \
				c[i] = formula;                                                           \
	}                                                                                                 \
	static void check_##id(uint64_t n)                                                                \
	{                                                                                                 \
		(void)n;                                                                                  \
		EACH                                                                                      \
			if (c[i] != formula)                                                              \
				fail("element %ld is %g, not %g", i, c[i], formula);                      \
	}                                                                                                 \
	WORKLOAD(stream_##id, .name = "stream-" #id, .summary = "c = " #formula ", of arrays of 32 MiB",  \
		 .unit = "MBps", .units_per_op = (arrays) * (BYTES / 1e6), .syscalls_per_op = 0,          \
		 .source = "lmbench 3 stream (STREAM, McCalpin 1995) " #id, .prepare = prepare,           \
		 .run = run_##id, .check = check_##id, .cleanup = cleanup)

STREAM(copy, 2, a[i]);
STREAM(scale, 2, scalar * a[i]);
STREAM(add, 3, a[i] + b[i]);
STREAM(triad, 3, a[i] + scalar * b[i]);
