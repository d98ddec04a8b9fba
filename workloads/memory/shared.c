/* Memory that is shared: a file without a name, and a barrier for all threads of a process. */
#include "operation.h"

#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int first_free;

static void find_first_free(void)
{
	first_free = next_descriptor();
}

static bool create_and_close(void)
{
	int fd = memfd_create("weigh", MFD_CLOEXEC);

	return fd == first_free && close(fd) == 0;
}

static long barrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0);
}

static void register_barrier(void)
{
	if (barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) < 0)
		fail("membarrier: %s (is the kernel built without CONFIG_MEMBARRIER?)", strerror(errno));
}

OPERATION(memfd_create, "memfd-create-close", 2, create_and_close(), .summary = "memfd_create(2) and close(2)",
	  .source = "memfd_create(2)", .prepare = find_first_free);
OPERATION(membarrier, "membarrier", 1, barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0,
	  .summary = "membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) of a process of one thread",
	  .source = "membarrier(2)", .prepare = register_barrier);
