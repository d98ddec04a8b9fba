/* COMM: connections between W_test and its peers, and what else W_test does meanwhile; one cell of a grid.
 *
 * Each connection and each copy of the activity is a process. All prepare, and wait; then one futex
 * releases them. Who sends is done when the receiver has acknowledged the last byte, who receives when
 * that has come. What ends first goes on with an unscored copy of its work until the other ends too, so
 * that each is timed beside the other from its beginning to its end. */
#include "comm.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct workload cell = {.name = "comm"};
static struct comm_board *board;
static pid_t driver, group;

/* Who failed has said why, unless it could not. */
static _Noreturn void give_up(const char *problem)
{
	if (problem)
		fprintf(stderr, "comm: %s\n", problem);
	dismiss_janitor(group);
	_exit(1);
}

static void start(const struct comm_options *options, int number)
{
	pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != driver)
			_exit(1); /* it died before that line */
		part_from_janitor();
		setpgid(0, group);
		if (number < options->count)
			be_connection(options, board, number);
		be_activity(&options->beside, board, number - options->count);
	}
	if (child < 0)
		give_up("cannot start one more process: see `ulimit -u`");
	if (!group)
		group = child;
	if (number < options->count)
		board->transfers[number].pid = child;
	/* Here too, or a process could be in no group yet when the next one is to join it. */
	setpgid(child, group);
	if (child == group)
		register_cleanup(group);
}

/* One has ended: well, or all is lost. */
static void hear_of_end(int status)
{
	char problem[100];

	if (WIFSIGNALED(status)) {
		snprintf(problem, sizeof problem, "one of its processes was killed by signal %d", WTERMSIG(status));
		give_up(problem);
	}
	if (status)
		give_up(NULL);
}

static void wait_until_ready(uint32_t processes)
{
	int status;

	while (atomic_load(&board->ready) < processes) {
		if (waitpid(-group, &status, WNOHANG) > 0) {
			hear_of_end(status);
			give_up("one of its processes ended before the transfer began");
		}
		poll(NULL, 0, 1);
	}
}

/* Activities and probes end by themselves, and have checked their work then. Where there are activities,
 * connections may be in a round that nobody scores, which has no end of its own. */
static void wait_until_over(const struct comm_options *options, int copies, int probes)
{
	int status, own_ends = 0;

	for (int ended = 0; copies ? own_ends < copies + probes : ended < options->count; ended++) {
		pid_t pid = waitpid(-group, &status, 0);
		if (pid < 0)
			fail("waitpid: %s", strerror(errno));
		hear_of_end(status);
		bool has_own_end = true;
		for (int i = 0; i < options->count; i++)
			has_own_end &= board->transfers[i].pid != pid || options->connections[i].is_probe;
		own_ends += has_own_end;
	}
	register_cleanup(0);
	kill(-group, SIGKILL);
	while (waitpid(-group, &status, 0) > 0)
		;
}

void take_comm(const struct comm_options *options)
{
	const struct beside *beside = &options->beside;
	int copies = beside->activity ? beside->copies : 0, probes = 0;
	size_t bytes = sizeof *board + copies * sizeof *board->activity_ns;

	current = &cell;
	own_cleanup();
	driver = getpid();
	board = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (board == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	prepare_payload();
	for (int i = 0; i < options->count; i++)
		probes += options->connections[i].is_probe;
	atomic_store(&board->transfers_left, options->count - probes);
	atomic_store(&board->activities_left, copies);
	enter_scratch_directory();
	start_janitor();
	for (int i = 0; i < options->count + copies; i++)
		start(options, i);
	wait_until_ready(options->count + copies);
	board->opened_ns = now_ns();
	open_gate(&board->gate);
	wait_until_over(options, copies, probes);
	dismiss_janitor(0);
	print_cell(options, board);
}
