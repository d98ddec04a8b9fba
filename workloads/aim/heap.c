/* The end of the heap moved by brk(2), 64 KiB down and up again by 4 KiB each, and the pages written that
 * come with it. Nothing is allocated meanwhile, so the heap of malloc(3) stays as it was below. */
#include "job.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { MIB = 1 << 20, STEPS = 16, STEP = 4096, STRIDE = 128 };

static char *move(intptr_t by)
{
	char *before = sbrk(by);

	if (before == (void *)-1)
		fail("cannot move the end of the heap by %ld bytes: %s", (long)by, strerror(errno));
	return before;
}

/* A page that the process gave back comes back as zeros. */
static void write_page(volatile char *page)
{
	page[0] = 1;
	if (page[STEP - STRIDE] != 0)
		fail("a page of the heap is not new");
	for (int i = STRIDE; i < STEP; i += STRIDE)
		page[i] = 1;
}

static void move_heap(int rounds, bool writes)
{
	char *end = move(MIB);

	for (int round = 0; round < rounds; round++) {
		move(-STEPS * STEP);
		for (int i = 0; i < STEPS; i++) {
			char *page = move(STEP);
			if (writes)
				write_page(page);
		}
	}
	if (move(-MIB) != end + MIB)
		fail("the heap did not end where it was left");
}

SUB_TEST(brk_test, move_heap(1000, false), 17000, "calls", 17002,
	 .summary = "1000 times the heap shrunk by 64 KiB and grown by 16 times 4 KiB, not touched");
SUB_TEST(page_test, move_heap(100, true), 1700, "calls", 1702, .summary = "100 times the heap shrunk by 64 KiB and grown by 16 times 4 KiB, each page written");
