/* Memory that a user has and keeps: every page is written in each job, so where there is less memory than all
 * have together, it is fetched from swap, or the kernel kills one of them. */
#include "resident.h"
#include "job.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum { MIB = 1 << 20, PAGE = 4096 };

long resident_mib_option;

static char *memory;
static uint64_t jobs;

static long mib(void)
{
	return resident_mib_option ? resident_mib_option : current->size;
}

static void touch_all(void)
{
	for (long at = 0; at < mib() * MIB; at += PAGE) {
		uint64_t *word = (uint64_t *)(memory + at);

		if (*word != jobs)
			fail("a page does not hold what was written to it");
		*word = jobs + 1;
	}
	jobs++;
}

/* The kernel gives a page when it is first written to: that is no part of a job. */
static void prepare(void)
{
	memory = mmap(NULL, mib() * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		fail("cannot have %ld MiB of memory: %s", mib(), strerror(errno));
	jobs = 0;
	touch_all();
}

static void give_back(void)
{
	if (memory && memory != MAP_FAILED)
		munmap(memory, mib() * MIB);
	memory = NULL;
}

SUB_TEST(resident, touch_all(), 8, "MiB", 0, .size = 8, .prepare = prepare, .cleanup = give_back,
	 .summary = "8 MiB of memory that the process keeps, a word written in every page");
