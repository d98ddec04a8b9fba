/* Counters of the PMU: perf_event_open(2). */
#include "counter.h"
#include "driver.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct counter open_counter(bool is_wanted, enum counted what)
{
	struct perf_event_attr attributes = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof attributes,
		.config = what == CYCLES ? PERF_COUNT_HW_CPU_CYCLES : PERF_COUNT_HW_INSTRUCTIONS,
		.disabled = 1,
		.inherit = 1,
		.exclude_user = what == KERNEL_INSTRUCTIONS,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};
	struct counter counter = {.fd = -1};

	if (is_wanted)
		counter.fd = syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return counter;
}

void start_counter(struct counter *counter)
{
	if (counter->fd >= 0 && ioctl(counter->fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
		fail("cannot start a counter of the PMU: %s", strerror(errno));
}

void stop_counter(struct counter *counter)
{
	struct {
		uint64_t value, enabled_ns, running_ns;
	} counted;

	if (counter->fd < 0)
		return;
	ioctl(counter->fd, PERF_EVENT_IOC_DISABLE, 0);
	if (read(counter->fd, &counted, sizeof counted) != sizeof counted)
		fail("cannot read a counter of the PMU");
	close(counter->fd);
	counter->value = counted.value;
	/* Others had the PMU for part of the time: then this is part of a count, and none. */
	if (counted.running_ns < counted.enabled_ns)
		counter->fd = -1;
}

void print_counter(const char *name, const struct counter *counter)
{
	if (counter->fd >= 0)
		printf(",\"%s\":%llu", name, (unsigned long long)counter->value);
	else
		printf(",\"%s\":null", name);
}
