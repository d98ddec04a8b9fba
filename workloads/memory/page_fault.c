/* Page faults, one per operation: memory is touched for the first time, a page or a window after the
 * other, and the whole area is given back when its end is reached. check() compares with the kernel's
 * own count of faults. */
#include "workload.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	PAGE = 4096,
	HUGE = 2 << 20,
	STEPS = 512, /* operations per area */
	/* The kernel maps what is cached around a fault as well, in aligned windows of 64 KiB
	 * (fault_around_bytes in mm/memory.c). */
	WINDOW = 65536,
};

static char *area;
static long step;
static long faults_before;

static long count_faults(void)
{
	struct rusage used;

	getrusage(RUSAGE_SELF, &used);
	return used.ru_minflt + used.ru_majflt;
}

/* Aligned to a huge page, so that the kernel is free to use one, or not. */
static char *map(long size, int flags, int fd)
{
	char *start = mmap(NULL, size + HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *aligned = (char *)(((uintptr_t)start + HUGE - 1) & ~(uintptr_t)(HUGE - 1));

	if (start == MAP_FAILED ||
	    mmap(aligned, size, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0) == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	return aligned;
}

static void give_back(long size)
{
	if (madvise(area, size, MADV_DONTNEED) < 0)
		fail("madvise: %s", strerror(errno));
}

static void prepare_anonymous(void)
{
	area = map(STEPS * PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	madvise(area, STEPS * PAGE, MADV_NOHUGEPAGE); /* fails where there are none anyway */
	faults_before = count_faults();
}

/* Writes first, as a read would map the page of zeros, and the write fault again. The second byte is
 * then still zero, unless the page is an old one. */
static void touch(char *page)
{
	volatile char *bytes = page;

	bytes[0] = 1;
	if (bytes[1])
		fail("a new page is not zero");
	bytes[1] = 1;
}

static void run_anonymous(uint64_t n)
{
	for (; n; n--) {
		touch(area + step * PAGE);
		if (++step == STEPS) {
			give_back(STEPS * PAGE);
			step = 0;
		}
	}
}

static char content(long window)
{
	return window * 7 + 1;
}

static void prepare_file(void)
{
	enter_scratch_directory();
	int fd = create_file("pages", (long)STEPS * WINDOW);

	for (long i = 0; i < STEPS; i++) {
		char byte = content(i);
		if (pwrite(fd, &byte, 1, i * WINDOW) != 1)
			fail("pwrite: %s", strerror(errno));
	}
	area = map((long)STEPS * WINDOW, MAP_SHARED, fd);
	close(fd);
	faults_before = count_faults();
}

static void run_file(uint64_t n)
{
	for (; n; n--) {
		if (*(volatile char *)(area + step * WINDOW) != content(step))
			fail("window %ld has another content than the file", step);
		if (++step == STEPS) {
			give_back((long)STEPS * WINDOW);
			step = 0;
		}
	}
}

static void prepare_huge(void)
{
	area = map(HUGE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	if (madvise(area, HUGE, MADV_HUGEPAGE) < 0)
		fail("this kernel has no transparent huge pages: %s", strerror(errno));
	faults_before = count_faults();
}

/* At the start and at the end: one fault if it is one huge page. */
static void run_huge(uint64_t n)
{
	for (; n; n--) {
		touch(area);
		touch(area + HUGE - PAGE);
		give_back(HUGE);
	}
}

/* The rest of the process faults now and then as well. */
static void check(uint64_t n)
{
	uint64_t faults = count_faults() - faults_before;

	if (faults < n)
		fail("%llu page faults, fewer than operations", (unsigned long long)faults);
	if (faults > n + n / 100 + 20)
		fail("%llu page faults for %llu operations%s", (unsigned long long)faults, (unsigned long long)n,
		     current->run == run_huge ? ": no huge page was free, or "
						"/sys/kernel/mm/transparent_hugepage/enabled is 'never'"
					      : "");
}

WORKLOAD(anonymous, .name = "page-fault", .summary = "the first write to a page of anonymous memory",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 1.0 / STEPS,
	 .syscalls_note = "madvise every 512 operations", .source = "will-it-scale page_fault1",
	 .prepare = prepare_anonymous, .run = run_anonymous, .check = check);
WORKLOAD(file, .name = "page-fault-file", .summary = "the first read of 64 KiB of a mapped file in the page cache",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 1.0 / STEPS,
	 .syscalls_note = "madvise every 512 operations", .source = "will-it-scale page_fault3, reading",
	 .prepare = prepare_file, .run = run_file, .check = check);
WORKLOAD(huge, .name = "page-fault-huge", .summary = "the first write to a huge page of 2 MiB, and giving it back",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 1,
	 .source = "will-it-scale page_fault1_thp", .prepare = prepare_huge, .run = run_huge, .check = check);
