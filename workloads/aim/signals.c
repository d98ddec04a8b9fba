/* Signals that a process sends itself, and jumps out of calls. */
#include "job.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { TIMES = 1000, DEPTH = 11 };

/* re-aim's is not volatile: at -O3 its loop waits for ever. */
static volatile sig_atomic_t caught;

static void catch(int number)
{
	signal(number, catch);
	caught++;
}

static void job_signal_test(void)
{
	void (*before)(int) = signal(SIGUSR2, catch);
	pid_t own = getpid();

	if (before == SIG_ERR)
		fail("signal: %s", strerror(errno));
	caught = 0;
	for (int i = 0; i < TIMES; i++)
		if (kill(own, SIGUSR2) < 0)
			fail("kill: %s", strerror(errno));
	signal(SIGUSR2, before);
	if (caught != TIMES)
		fail("%d signals were caught, not %d", (int)caught, TIMES);
}

static jmp_buf start;

SEPARATE static int jump(void)
{
	longjmp(start, DEPTH);
}

/* Every call keeps its frame, for what it would do after the one below. */
SEPARATE static int descend(int depth)
{
	if (depth == 1)
		return jump();
	depth += descend(depth - 1);
	OPAQUE(depth);
	return depth;
}

static void job_jmp_test(void)
{
	for (volatile int i = 0; i < TIMES; i++) {
		int depth = setjmp(start);

		if (depth == 0)
			depth = descend(DEPTH);
		if (depth != DEPTH)
			fail("a jump came back with %d", depth);
	}
}

SUB_TEST(signal_test, job_signal_test(), TIMES, "signals", 3003,
	 .summary = "1000 signals to itself, each caught by a handler that installs itself again");
SUB_TEST(jmp_test, job_jmp_test(), TIMES, "jumps", 0, .summary = "1000 times setjmp, 11 calls deep, and longjmp back");
