/* lmbench's lat_pagefault: reads pages of a mapped file in random order, each for the first time since they
 * were mapped, while the file is in the page cache.
 *
 * Since 3.15 Linux maps the 64 KiB around a page that is read, so only one page of each 64 KiB is read here:
 * one operation is one fault. check() counts them. */
#include "workload.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { AROUND = 64 * 1024, WINDOWS = 128 };

static char *content;
static int order[WINDOWS], position;
static long first_faults;
static uint64_t sum;

static uint64_t *number_of(int window)
{
	return (uint64_t *)(content + (long)window * AROUND);
}

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

static void unmap_pages(void)
{
	if (madvise(content, (long)WINDOWS * AROUND, MADV_DONTNEED) < 0)
		fail("madvise: %s", strerror(errno));
}

static void prepare(void)
{
	uint32_t random = 1;

	enter_scratch_directory();
	content = mmap(NULL, (long)WINDOWS * AROUND, PROT_READ | PROT_WRITE, MAP_SHARED,
		       create_file("file", (long)WINDOWS * AROUND), 0);
	if (content == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	for (int i = 0; i < WINDOWS; i++) {
		random = random * 1664525 + 1013904223;
		int other = (random >> 16) % (i + 1);
		order[i] = order[other];
		order[other] = i;
		*number_of(i) = i + 1;
	}
	unmap_pages();
	first_faults = faults();
}

static void run(uint64_t n)
{
	for (; n; n--) {
		sum += *number_of(order[position++]);
		if (position == WINDOWS) {
			position = 0;
			unmap_pages();
		}
	}
}

static void check(uint64_t n)
{
	uint64_t found = faults() - first_faults, expected = n / WINDOWS * (WINDOWS * (WINDOWS + 1) / 2);

	for (int i = 0; i < position; i++)
		expected += order[i] + 1;
	if (sum != expected)
		fail("the pages had other numbers than were written");
	if (found < n)
		fail("%llu faults for %llu pages: more than 64 KiB are mapped at a time",
		     (unsigned long long)found, (unsigned long long)n);
}

WORKLOAD(lat_pagefault, .name = "lat-pagefault", .summary = "read a page of a mapped file for the first time",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 1.0 / WINDOWS,
	 .syscalls_note = "no call, but one madvise every 128 operations, so that all can be faulted again",
	 .source = "lmbench 3 lat_pagefault", .prepare = prepare, .run = run, .check = check);
