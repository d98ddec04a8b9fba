/* A thread that starts, adds one and ends, and is joined: by the C library, as programs do it.
 *
 * All on one CPU: so the thread runs while its creator waits for it, and the number of system calls does
 * not depend on which of the two was faster. */
#include "workload.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

static uint64_t started;

static void *add_one(void *unused)
{
	(void)unused;
	started++;
	return &started;
}

static void run(uint64_t n)
{
	for (; n; n--) {
		pthread_t thread;
		void *result;
		int error = pthread_create(&thread, NULL, add_one, NULL);

		if (error || (error = pthread_join(thread, &result)))
			fail("pthread_create or pthread_join: %s", strerror(error));
		if (result != &started)
			fail("the thread ended with another result");
	}
}

static void check(uint64_t n)
{
	if (started != n)
		fail("%llu threads ran, not %llu", (unsigned long long)started, (unsigned long long)n);
}

WORKLOAD(thread, .name = "thread", .summary = "pthread_create and pthread_join of a thread that ends at once",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 10,
	 .syscalls_note = "with glibc 2.36", .source = "will-it-scale pthread_mutex; pthread_create(3)",
	 .prepare = place_driver, .run = run, .check = check);
