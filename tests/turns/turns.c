/* All sub-tests of AIM in one process, which take turns: as users of a load do it. Each is prepared
 * once, runs between the others, and leaves the process as it was. */
#include "workload.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern const struct workload *const __start_workloads[], *const __stop_workloads[];

enum { ROUNDS = 3 };

static const struct workload *own;

/* Every count-th of them, from the first-th on: so that each comes after every other. */
static void for_each(void (*act)(uint64_t turn), uint64_t turn)
{
	for (const struct workload *const *w = __start_workloads; w < __stop_workloads; w++) {
		current = *w;
		bool needs_root = strncmp(current->name, "disk_raw", 8) == 0;
		if (strcmp(current->group, "aim") == 0 && (!needs_root || geteuid() == 0))
			act(turn);
	}
	current = own;
}

static void prepare_one(uint64_t turn)
{
	(void)turn;
	if (current->prepare)
		current->prepare();
}

static void run_one(uint64_t turn)
{
	/* Half of them in one turn, the other half in the next. */
	if ((current->name[strlen(current->name) - 1] + turn) % 2)
		current->run(1 + turn % 2);
}

static void end_one(uint64_t operations)
{
	if (current->check)
		current->check(operations);
	if (current->cleanup)
		current->cleanup();
}

static int next_descriptor(void)
{
	int fd = dup(STDERR_FILENO);

	close(fd);
	return fd;
}

static void expect_nothing_left(int descriptor)
{
	if (next_descriptor() != descriptor)
		fail("descriptor %d is left open", descriptor);
	if (waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD)
		fail("a child is left");
	for (int number = 1; number < 32; number++) {
		struct sigaction now;

		if (sigaction(number, NULL, &now) == 0 && now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN)
			fail("a handler of signal %d is left", number);
	}
}

static void run(uint64_t n)
{
	own = current;
	enter_scratch_directory();
	for (; n; n--) {
		int descriptor = next_descriptor();

		for_each(prepare_one, 0);
		for (uint64_t turn = 0; turn < ROUNDS; turn++)
			for_each(run_one, turn);
		for_each(end_one, ROUNDS);
		expect_nothing_left(descriptor);
	}
}

WORKLOAD(turns, .name = "turns", .summary = "all sub-tests of AIM in turns", .unit = "ops/s", .units_per_op = 1,
	 .source = "this test", .run = run);
