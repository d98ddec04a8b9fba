/* What a process may use and has used: priority, limits, CPUs, times. What is set is what was there
 * before. */
#include "operation.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/times.h>
#include <unistd.h>

static long priority;
static struct rlimit files, found;
static struct rusage used;
static struct tms ticks;
static clock_t latest;
static cpu_set_t cpus;

/* The system call gives 20 - nice, which is never negative; the C library turns it round. */
static long kernel_priority(void)
{
	return syscall(SYS_getpriority, PRIO_PROCESS, 0);
}

/* In ticks since a moment before the start of the system: never less than before, nor 0. */
static bool tell_times(void)
{
	clock_t before = latest;

	latest = times(&ticks);
	return latest > 0 && latest >= before;
}

static void prepare(void)
{
	priority = kernel_priority();
	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || sched_getaffinity(0, sizeof cpus, &cpus) < 0)
		fail("getrlimit or sched_getaffinity: %s", strerror(errno));
}

OPERATION(getpriority, "getpriority", 1, kernel_priority() == priority,
	  .summary = "getpriority(2) of the process itself", .source = "getpriority(2)", .prepare = prepare);
OPERATION(prlimit, "prlimit", 1,
	  prlimit(0, RLIMIT_NOFILE, NULL, &found) == 0 && found.rlim_cur == files.rlim_cur,
	  .summary = "prlimit(2): reads the limit of open files", .source = "prlimit(2)", .prepare = prepare);
OPERATION(sched_setaffinity, "sched_setaffinity", 1, sched_setaffinity(0, sizeof cpus, &cpus) == 0,
	  .summary = "sched_setaffinity(2) to the CPUs that are allowed already",
	  .source = "sched_setaffinity(2)", .prepare = prepare);
OPERATION(sched_yield, "sched_yield", 1, sched_yield() == 0, .summary = "sched_yield(2) with nobody waiting",
	  .source = "will-it-scale sched_yield");
OPERATION(getrusage, "getrusage", 1, getrusage(RUSAGE_SELF, &used) == 0 && used.ru_maxrss > 0,
	  .summary = "getrusage(2) of the process itself", .source = "getrusage(2)");
OPERATION(times, "times", 1, tell_times(), .summary = "times(2)", .source = "times(2)");
