/* What memory costs a fork: the page tables of all that was touched are copied for the child, which ends
 * at once. In pages of 4 KiB: with huge ones there is little to copy. */
#include "workload.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, MIB = 1 << 20 };

static char *memory;

static void prepare(void)
{
	memory = mmap(NULL, current->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		fail("cannot map %ld bytes: %s", current->size, strerror(errno));
	madvise(memory, current->size, MADV_NOHUGEPAGE); /* fails where there are none anyway */
	for (long i = 0; i < current->size; i += PAGE)
		memory[i] = 1;
}

/* The child sees the parent's last page, so it was given all of them. */
static void run(uint64_t n)
{
	for (; n; n--) {
		pid_t child = fork();

		if (child < 0)
			fail("fork: %s", strerror(errno));
		if (child == 0)
			_exit(memory[current->size - PAGE]);
		expect_exit(child, 1);
	}
}

#define FORK_MEMORY(mib)                                                                             \
	WORKLOAD(fork_##mib, .name = "fork-" #mib "mib", .unit = "ops/s", .units_per_op = 1,           \
		 .summary = "fork with " #mib " MiB of memory in use; the child exits at once",      \
		 .syscalls_per_op = 4,                                                               \
		 .syscalls_note = "clone, exit_group, wait4, and glibc's set_robust_list in the child", \
		 .source = "own; after Baumann and others, A fork() in the road, HotOS 2019",           \
		 .series = "fork, memory in use", .x = mib, .x_unit = "MiB", .size = mib##L * MIB,   \
		 .prepare = prepare, .run = run)

FORK_MEMORY(1);
FORK_MEMORY(10);
FORK_MEMORY(100);
