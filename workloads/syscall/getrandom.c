/* Random bytes from the kernel, by the system call: newer C libraries may take them from the vDSO. */
#include "workload.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST = 256 };

static unsigned char bytes[MOST], before[MOST];

static void run(uint64_t n)
{
	for (; n; n--)
		if (syscall(SYS_getrandom, bytes, current->size, 0) != current->size)
			fail("getrandom: %s", strerror(errno));
}

/* Two equal answers of 16 random bytes or more: that does not happen. */
static void check(uint64_t n)
{
	(void)n;
	memcpy(before, bytes, sizeof before);
	run(1);
	if (memcmp(before, bytes, current->size) == 0)
		fail("the bytes are not random: they are those of the call before");
}

#define GETRANDOM(bytes)                                                                           \
	WORKLOAD(getrandom_##bytes, .name = "getrandom-" #bytes, .unit = "ops/s", .units_per_op = 1, \
		 .summary = "getrandom(2) of " #bytes " bytes", .syscalls_per_op = 1,              \
		 .source = "getrandom(2)", .size = bytes, .run = run, .check = check)

GETRANDOM(16);
GETRANDOM(256);
