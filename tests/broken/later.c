/* Workloads that work at first, or not everywhere, or leave something behind. */
#include "workload.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

static void run(uint64_t n)
{
	while (n--)
		getppid();
}

/* Held up at the first operation, as by a cold file or a full queue: what follows is quick. */
static void run_slowly_at_first(uint64_t n)
{
	static bool has_begun;

	if (!has_begun)
		usleep(200000);
	has_begun = true;
	run(n);
}

/* One launch per arm tries the workload; the two after these are the first pair. */
static void fail_at_the_fifth_launch(void)
{
	int fd = open("launches", O_WRONLY | O_CREAT | O_APPEND, 0600);
	struct stat status;

	if (fd < 0 || write(fd, "x", 1) != 1 || fstat(fd, &status) < 0)
		fail("cannot count the launches");
	if (status.st_size >= 5)
		fail("launch %ld is too much", (long)status.st_size);
}

static void fail_under_a_filter(void)
{
	if (prctl(PR_GET_SECCOMP) != 0)
		fail("not under a filter");
}

/* In another session, with the worker's pipes open: neither its group nor its output tells. */
static void leave_a_child(void)
{
	if (fork() == 0) {
		setsid();
		for (;;)
			pause();
	}
}

static void leave_files(void)
{
	mkdir("left", 0700); /* there already from the second launch on, as is the file */
	close(open("left/behind", O_WRONLY | O_CREAT, 0400));
}

#define LATER(id, how, what)                                                                    \
	WORKLOAD(id, .name = "broken-" how, .summary = how, .unit = "ops/s", .units_per_op = 1,   \
		 .syscalls_per_op = 1, .source = "tests/input/broken_workloads.rs", .run = run, .prepare = what)

LATER(later, "later", fail_at_the_fifth_launch);
LATER(filter, "filter", fail_under_a_filter);
LATER(child, "child", leave_a_child);
LATER(files, "files", leave_files);
WORKLOAD(slow_start, .name = "broken-slow-start", .summary = "slow-start", .unit = "ops/s", .units_per_op = 1,
	 .syscalls_per_op = 1, .source = "tests/input/broken_workloads.rs", .run = run_slowly_at_first);
