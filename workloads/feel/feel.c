/* How the machine feels to somebody who sits before it: how long a small program takes from the moment when
 * it was to start, and how late a process wakes that sleeps until a moment.
 *
 * Both begin at moments that are fixed beforehand, as people and packets do not wait for each other: who was
 * held up delays those behind it, and that is in their times (from when they were due), and not in what the
 * program took by itself (the service). Waiting for the next moment is no part of the rate. */
#include "workload.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { SPAWNS_APART_NS = 20000000, WAKE_UPS_APART_NS = 1000000 };
enum { DUE, SERVICE };

static posix_spawn_file_actions_t actions;
static uint64_t due_ns;

/* The kernel may add 50 microseconds to a timer, to spare wake-ups. */
static void be_exact(void)
{
	if (prctl(PR_SET_TIMERSLACK, 1) < 0)
		fail("cannot set the timer slack: %s", strerror(errno));
}

static void prepare_spawn(void)
{
	be_exact();
	if (posix_spawn_file_actions_init(&actions) ||
	    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0))
		fail("no memory to start a program");
}

/* The timed part begins when all copies are ready: those that waited for the last are not late for that. */
static void wait_for_next(uint64_t apart_ns)
{
	static bool counted;

	if (counted != times_count())
		due_ns = 0;
	counted = times_count();
	due_ns = due_ns ? due_ns + apart_ns : now_ns();
	wait_until(due_ns);
}

static void run_spawn(uint64_t n)
{
	char *arguments[] = {"uname", "-a", NULL};

	for (; n; n--) {
		pid_t child;

		wait_for_next(SPAWNS_APART_NS);
		uint64_t began = now_ns();
		int error = posix_spawnp(&child, "uname", &actions, NULL, arguments, environ);
		if (error)
			fail("cannot start uname: %s", strerror(error));
		expect_exit(child, 0);
		uint64_t ended = now_ns();
		took(DUE, ended - due_ns);
		took(SERVICE, ended - began);
	}
}

static void run_wake_up(uint64_t n)
{
	for (; n; n--) {
		wait_for_next(WAKE_UPS_APART_NS);
		took(DUE, now_ns() - due_ns);
	}
}

WORKLOAD(spawn, .name = "feel:spawn",
	 .summary = "start `uname -a` and wait for its end, 50 times a second",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 180,
	 .syscalls_note = "approximate: 122 put the child's signals in order, others load uname",
	 .source = "J. Whitcher, Lunar Linux vs. Red Hat (2003): uname -a beside a database",
	 .least_ms = 1000, .only_in_batches = true, .times = {"due", "service"}, .prepare = prepare_spawn,
	 .run = run_spawn);
WORKLOAD(wake_up, .name = "feel:wake-up",
	 .summary = "sleep until a moment and wake, 1000 times a second: how late",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 1, .source = "cyclictest(8), as an ordinary task",
	 .least_ms = 1000, .only_in_batches = true, .times = {"due"}, .prepare = be_exact, .run = run_wake_up);
