/* What parts of the operations took: as many histograms as the workload has names in `times`, in memory that
 * all copies share, and of each the longest with the time of day when it had ended. */
#include "driver.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static struct times {
	_Atomic uint64_t buckets[HISTOGRAM_BUCKETS], longest_ns;
	_Atomic int64_t longest_at_ms; /* since 1970 */
} *times;

static bool are_kept;

void make_times(void)
{
	if (!current->times[0])
		return;
	times = mmap(NULL, MOST_TIMES * sizeof *times, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (times == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
}

void keep_times(bool are)
{
	are_kept = are;
}

bool times_count(void)
{
	return are_kept;
}

static int64_t time_of_day_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000ll + now.tv_nsec / 1000000;
}

void took(int which, uint64_t ns)
{
	if (!are_kept || !times)
		return;
	struct times *of_it = &times[which];
	uint64_t longest = atomic_load(&of_it->longest_ns);

	atomic_fetch_add_explicit(&of_it->buckets[histogram_bucket(ns)], 1, memory_order_relaxed);
	while (ns > longest)
		if (atomic_compare_exchange_weak(&of_it->longest_ns, &longest, ns)) {
			atomic_store(&of_it->longest_at_ms, time_of_day_ms());
			break;
		}
}

void print_times(void)
{
	const char *separator = ",\"times\":[";

	if (!times)
		return;
	for (int i = 0; i < MOST_TIMES && current->times[i]; i++) {
		printf("%s{\"name\":\"%s\",\"longest_ns\":%llu,\"longest_at_ms\":%lld,\"buckets\":", separator,
		       current->times[i], (unsigned long long)times[i].longest_ns,
		       (long long)times[i].longest_at_ms);
		histogram_take(times[i].buckets);
		histogram_print();
		putchar('}');
		separator = ",";
	}
	putchar(']');
}
