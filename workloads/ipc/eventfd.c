/* A counter that the kernel keeps: write adds to it, read takes it away. */
#include "workload.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static int counter;
static uint64_t total;

static void prepare(void)
{
	counter = eventfd(0, EFD_CLOEXEC);
	if (counter < 0)
		fail("eventfd: %s", strerror(errno));
}

static void run(uint64_t n)
{
	while (n--) {
		uint64_t value = 1;
		if (write(counter, &value, sizeof value) != sizeof value ||
		    read(counter, &value, sizeof value) != sizeof value)
			fail("the counter: %s", strerror(errno));
		total += value;
	}
}

static void check(uint64_t n)
{
	if (total != n)
		fail("%llu of %llu came back", (unsigned long long)total, (unsigned long long)n);
}

WORKLOAD(eventfd,
	.name = "eventfd",
	.summary = "write and read of an eventfd",
	.unit = "ops/s",
	.units_per_op = 1,
	.syscalls_per_op = 2,
	.source = "eventfd(2)",
	.prepare = prepare,
	.run = run,
	.check = check);
