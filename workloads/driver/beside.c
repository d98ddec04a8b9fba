/* What the machine does beside something that is measured: a workload again and again, in several
 * processes, or any command, until it is killed. In the directory where it is started, `ready` appears when
 * all of it is under way, and `done` has when an operation was last done, for whoever wants a proof. */
#include "driver.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
	_Atomic uint64_t *done_at_ns; /* in the file; CLOCK_MONOTONIC */
	_Atomic uint32_t *under_way;
	int ready;
} board;

void open_activity_board(void)
{
	int file = open("done", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int directory = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (file < 0 || ftruncate(file, sizeof *board.done_at_ns) < 0 || directory < 0)
		fail("cannot make the file `done`: %s", strerror(errno));
	board.done_at_ns =
		mmap(NULL, sizeof *board.done_at_ns, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	board.under_way =
		mmap(NULL, sizeof *board.under_way, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (board.done_at_ns == MAP_FAILED || board.under_way == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	board.ready = directory;
	close(file);
}

void tell_activity(void)
{
	atomic_store_explicit(board.done_at_ns, now_ns(), memory_order_relaxed);
}

void activity_is_ready(void)
{
	int file = openat(board.ready, "ready", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (file < 0)
		fail("cannot make the file `ready`: %s", strerror(errno));
	close(file);
}

void begin_activity(int number)
{
	char name[32];

	snprintf(name, sizeof name, "activity-%d", number + 1);
	if (mkdir(name, 0700) < 0 || chdir(name) < 0)
		fail("cannot make the directory %s: %s", name, strerror(errno));
	copy_number = number;
	keep_scratch_directory();
	if (current->prepare)
		current->prepare();
	current->run(1); /* cold caches and files are no part of what is timed */
}

static _Noreturn void go_on(int number, uint32_t copies)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	begin_activity(number);
	if (atomic_fetch_add(board.under_way, 1) + 1 == copies)
		activity_is_ready();
	for (;;) {
		uint64_t wrong = not_done();
		current->run(1);
		if (wrong == not_done())
			tell_activity();
	}
}

static _Noreturn void repeat_command(char **argv, uint32_t copies)
{
	posix_spawn_file_actions_t actions;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (posix_spawn_file_actions_init(&actions) ||
	    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0))
		fail("no memory to start a program");
	if (atomic_fetch_add(board.under_way, 1) + 1 == copies)
		activity_is_ready();
	for (;;) {
		pid_t child;
		int error = posix_spawnp(&child, argv[0], &actions, NULL, argv, environ);
		if (error)
			fail("cannot start %s: %s", argv[0], strerror(error));
		expect_exit(child, 0);
		tell_activity();
	}
}

/* The workload, or the command where there is one. */
static _Noreturn void repeat_in(int copies, char **command)
{
	copy_count = copies;
	if (!command)
		prepare_once();
	for (int i = 0; i < copies; i++) {
		pid_t copy = fork();
		if (copy == 0 && command)
			repeat_command(command, copies);
		if (copy == 0)
			go_on(i, copies);
		if (copy < 0)
			fail("cannot start copy %d: %s", i + 1, strerror(errno));
	}
	/* Whoever ends has failed, and said why. */
	wait(NULL);
	_exit(1);
}

int beside(int argc, char **argv)
{
	static const struct option known[] = {{"copies", required_argument, NULL, 'n'}, {0}};
	static const struct workload command = {.name = "beside"};
	int copies = 1;

	opterr = 0;
	for (int option; (option = getopt_long(argc, argv, "+:", known, NULL)) != -1;) {
		if (option != 'n')
			usage_error("beside [--copies N] NAME, or beside [--copies N] -- COMMAND");
		copies = number("copies", optarg, 1, 1024);
	}
	if (optind == argc)
		usage_error("beside takes the name of a workload, or -- and a command");
	reset_inherited_state();
	own_cleanup();
	if (strcmp(argv[optind - 1], "--") == 0) {
		current = &command;
		open_activity_board();
		repeat_in(copies, argv + optind);
	}
	current = find_workload(argv[optind]);
	if (!current)
		usage_error("unknown workload '%s'; 'weigh-workloads list' lists all workloads", argv[optind]);
	open_activity_board();
	repeat_in(copies, NULL);
}
