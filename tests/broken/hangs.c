/* Workloads that do not end: asleep without a pipe to tell, stopped, or busy in a process elsewhere. */
#include "workload.h"

#include <signal.h>
#include <unistd.h>

static void run(uint64_t n)
{
	while (n--)
		getppid();
}

static void sleep_silently(void)
{
	for (int signal = 1; signal < NSIG; signal++)
		sigaction(signal, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	close(STDOUT_FILENO);
	close(STDERR_FILENO);
	for (;;)
		pause();
}

static void stop(void)
{
	raise(SIGSTOP);
}

/* The worker waits for a process of another session, which works for ever. */
static void wait_for_another(void)
{
	if (fork() == 0) {
		setsid();
		for (;;)
			getppid();
	}
	for (;;)
		pause();
}

#define HANGS(id, how, what)                                                                    \
	WORKLOAD(id, .name = "broken-" how, .summary = how, .unit = "ops/s", .units_per_op = 1,   \
		 .syscalls_per_op = 1, .source = "tests/input/broken_workloads.rs", .run = run, .prepare = what)

HANGS(hang, "hang", sleep_silently);
HANGS(stop, "stop", stop);
HANGS(session, "session", wait_for_another);
