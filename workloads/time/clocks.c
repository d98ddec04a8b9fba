/* What time it is, and waiting for a moment that has passed. */
#include "operation.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LONG_NS = 1000000000 };

static struct timespec now, latest;
static const struct timespec zero;

/* Time never goes back: so every answer is checked against the one before. */
static bool goes_on(void)
{
	bool is_later = now.tv_sec > latest.tv_sec ||
			(now.tv_sec == latest.tv_sec && now.tv_nsec >= latest.tv_nsec);

	latest = now;
	return is_later && now.tv_nsec < LONG_NS;
}

static void check(uint64_t n)
{
	struct timespec end;

	(void)n;
	clock_gettime(CLOCK_MONOTONIC, &end);
	if (end.tv_sec - latest.tv_sec > 10)
		fail("the last answer is of %ld s ago", (long)(end.tv_sec - latest.tv_sec));
}

OPERATION(clock_gettime_vdso, "clock_gettime-vdso", 0, clock_gettime(CLOCK_MONOTONIC, &now) == 0 && goes_on(),
	  .summary = "clock_gettime(CLOCK_MONOTONIC) from the vDSO", .source = "vdso(7)", .check = check,
	  .syscalls_note = "1 where the clock source is not one that the vDSO can read");
OPERATION(clock_gettime, "clock_gettime", 1,
	  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now) == 0 && goes_on(),
	  .summary = "clock_gettime(CLOCK_MONOTONIC) as a system call", .source = "clock_gettime(2)",
	  .check = check);
OPERATION(nanosleep, "nanosleep", 1, nanosleep(&zero, NULL) == 0,
	  .summary = "nanosleep(2) for 0 ns: as long as the timer slack", .source = "nanosleep(2)");
OPERATION(clock_nanosleep, "clock_nanosleep", 1,
	  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &zero, NULL) == 0,
	  .summary = "clock_nanosleep(2) until a time that is past", .source = "clock_nanosleep(2)");
