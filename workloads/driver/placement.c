/* Where the two processes of a workload run: on one CPU, or on two.
 *
 * Left alone, the scheduler decides now so and now otherwise, and the rate differs up to fourfold
 * between runs of the same system (byte-unixbench issue 79): that would measure the placement. */
#include "driver.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

static int driver_cpu, partner_cpu;

static int read_topology(int cpu, const char *what)
{
	char path[96];
	int value = -1;

	snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/%s", cpu, what);
	FILE *file = fopen(path, "re");
	if (!file)
		return -1;
	if (fscanf(file, "%d", &value) != 1)
		value = -1;
	fclose(file);
	return value;
}

/* A core of its own in the same package is best: siblings share one core's caches and units, and
 * between packages the way is longer. */
static int badness(int from, int to)
{
	bool same_package =
		read_topology(from, "physical_package_id") == read_topology(to, "physical_package_id");
	bool same_core = same_package && read_topology(from, "core_id") == read_topology(to, "core_id");

	return same_core ? 2 : !same_package;
}

static int choose_other_cpu(int cpu, const cpu_set_t *allowed)
{
	int best = -1, least = 0;

	for (int other = 0; other < CPU_SETSIZE; other++) {
		if (other == cpu || !CPU_ISSET(other, allowed))
			continue;
		int found = badness(cpu, other);
		if (best < 0 || found < least) {
			best = other;
			least = found;
		}
		if (least == 0)
			break;
	}
	if (best < 0)
		fail("it needs two CPUs, but only one is allowed: use its @same-cpu counterpart");
	return best;
}

void stay_on(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof one, &one) < 0)
		fail("cannot stay on CPU %d: %s", cpu, strerror(errno));
}

void place_driver(void)
{
	cpu_set_t allowed;

	driver_cpu = sched_getcpu(); /* it runs there, so it is allowed there */
	if (driver_cpu < 0 || sched_getaffinity(0, sizeof allowed, &allowed) < 0)
		fail("cannot read the allowed CPUs: %s", strerror(errno));
	partner_cpu = current->placement == CROSS_CPU ? choose_other_cpu(driver_cpu, &allowed) : driver_cpu;
	stay_on(driver_cpu);
}

void place_partner(void)
{
	stay_on(partner_cpu);
}
