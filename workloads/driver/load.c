/* Many users at the same time, each of whom does the jobs of a mix in an order of its own: the multi-user
 * load of AIM's Suite VII and re-aim (docs/load.md). A job is one operation of a workload.
 *
 * A user is a process with a directory of its own. It prepares all that it will need, and waits; then one
 * futex releases all users. Jobs are timed one by one. What a user does besides its jobs is the driver's, and
 * printed. */
#include "disk.h"
#include "driver.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What a user leaves on the board. */
struct user {
	uint64_t finished_ns; /* after the gate was opened */
	uint64_t besides_ns;  /* of its time on the way, that it spent in no job */
	long jobs;
	double job_ns; /* of all of them together */
	struct sample used;
};

/* In memory that all users share. */
static struct board {
	_Atomic uint32_t gate, ready, all_done, finished;
	uint64_t opened_ns;
	uint64_t user_memory; /* of the first one, after its jobs */
	_Atomic uint64_t disk_bytes;
	_Atomic uint64_t last_due_ns; /* of all users together: whoever is free takes the next one */
	_Atomic uint64_t buckets[HISTOGRAM_BUCKETS];
	struct user users[];
} *board;

static const struct workload load = {.name = "load", .unit = "jobs/min", .units_per_op = 60};
static pid_t driver, group;

static long jobs_per_user(const struct load_options *options)
{
	long total = 0;

	for (int i = 0; i < options->tests; i++)
		total += options->jobs[i].count;
	return total;
}

/* The numbers of the tests, each as often as it has jobs, in an order that is this user's. */
int *shuffle_jobs(const struct load_options *options, int number)
{
	long total = jobs_per_user(options), n = 0;
	int *order = malloc(total * sizeof *order);
	uint64_t state = options->seed ^ (uint64_t)number << 32;

	if (!order)
		fail("no memory for the order of %ld jobs", total);
	for (int i = 0; i < options->tests; i++)
		for (long k = 0; k < options->jobs[i].count; k++)
			order[n++] = i;
	for (long i = total - 1; i > 0; i--) {
		long k = draw(&state) % (uint64_t)(i + 1);
		int other = order[k];
		order[k] = order[i];
		order[i] = other;
	}
	return order;
}

/* Each test is prepared once per user, in the user's directory, and may enter one of its own. */
int *prepare_jobs(const struct load_options *options)
{
	int home = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int *directories = malloc(options->tests * sizeof *directories);

	if (home < 0 || !directories)
		fail("cannot prepare: %s", strerror(errno));
	for (int i = 0; i < options->tests; i++) {
		current = options->jobs[i].test;
		if (current->prepare)
			current->prepare();
		keep_scratch_directory();
		directories[i] = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (directories[i] < 0 || fchdir(home) < 0)
			fail("cannot open its directory: %s", strerror(errno));
	}
	return directories;
}

static void check_all(const struct load_options *options, const int *directories, const long *done)
{
	for (int i = 0; i < options->tests; i++) {
		current = options->jobs[i].test;
		if (fchdir(directories[i]) < 0)
			fail("cannot enter its directory: %s", strerror(errno));
		if (current->check)
			current->check(done[i]);
		refuse_wrong_answers();
		if (current->cleanup)
			current->cleanup();
	}
}

/* In bytes, what of a user's memory no other process has; 0 where the kernel does not say. */
static uint64_t own_memory(void)
{
	FILE *file = fopen("/proc/self/smaps_rollup", "re");
	char line[200];
	unsigned long kib;
	uint64_t bytes = 0;

	while (file && fgets(line, sizeof line, file))
		if (sscanf(line, "Private_Clean: %lu", &kib) == 1 || sscanf(line, "Private_Dirty: %lu", &kib) == 1)
			bytes += kib * 1024;
	if (file)
		fclose(file);
	return bytes;
}

/* Whether a user who has done so many jobs by now has another to do. */
static bool goes_on(const struct load_options *options, long done, long total, uint64_t now)
{
	return options->period_ns ? done == 0 || now < board->opened_ns + options->period_ns : done < total;
}

/* Does the jobs, and counts those of each test; gives the time that was spent in them or in waiting. */
static uint64_t do_jobs(const struct load_options *options, const int *order, const int *directories,
			int number, long *done)
{
	uint64_t spent_ns = 0, arrives = board->opened_ns, ended = board->opened_ns;
	long total = jobs_per_user(options), i = 0;
	int last = -1;

	for (; goes_on(options, i, total, ended); i++) {
		int test = order[i % total];
		if (test != last && fchdir(directories[test]) < 0)
			fail("cannot enter a directory of user %d: %s", number + 1, strerror(errno));
		last = test;
		current = options->jobs[test].test;
		command_argv = options->jobs[test].argv;
		if (options->jobs_per_1000s) {
			arrives = board->opened_ns +
				  take_due_ns(&board->last_due_ns, options->jobs_per_1000s, ~options->seed);
			spent_ns += wait_until(arrives);
		}
		uint64_t began = now_ns(), wrong = not_done();
		current->run(1);
		ended = now_ns();
		done[test]++;
		/* A job that could not begin when it was to waited meanwhile, as whoever wants it does. */
		uint64_t took_ns = ended - (options->jobs_per_1000s ? arrives : began);
		histogram_add(took_ns);
		board->users[number].job_ns += took_ns;
		spent_ns += ended - began;
		if (options->is_endless && wrong == not_done())
			tell_activity();
		if (options->think_ns)
			spent_ns += wait_until(ended + options->think_ns);
	}
	board->users[number].jobs = i;
	return spent_ns;
}

/* Where memory ends, the kernel is to kill a user, of whom that is told, and no other program. */
static void be_first_to_die(void)
{
	int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	/* Where that cannot be, the kernel chooses as it does. */
	if (file >= 0 && write(file, "1000", 4) < 0)
		errno = 0;
	if (file >= 0)
		close(file);
}

static _Noreturn void be_user(int number, const struct load_options *options)
{
	struct user *self = &board->users[number];
	char name[32];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != driver)
		_exit(1); /* it died before that line */
	part_from_janitor();
	setpgid(0, group);
	be_first_to_die();
	keep_scratch_directory();
	snprintf(name, sizeof name, "user-%d", number + 1);
	if (mkdir(name, 0700) < 0 || chdir(name) < 0)
		fail("cannot make the directory of user %d: %s", number + 1, strerror(errno));
	disk_begin_with_directory(number);
	int *order = shuffle_jobs(options, number), *directories = prepare_jobs(options);
	long *done = calloc(options->tests, sizeof *done);
	if (!done)
		fail("no memory for the counts of %d tests", options->tests);

	atomic_fetch_add(&board->ready, 1);
	wait_at_gate(&board->gate);
	while (options->is_endless)
		do_jobs(options, order, directories, number, done);
	struct usage before = usage();
	disk_bytes = 0; /* what was prepared is no job's */
	uint64_t woke_ns = now_ns(), spent_ns = do_jobs(options, order, directories, number, done);
	uint64_t finished_ns = now_ns();
	self->finished_ns = finished_ns - board->opened_ns;
	self->besides_ns = finished_ns - woke_ns - spent_ns;
	record_usage(&self->used, before, usage());
	/* Checks and cleaning up would be work beside that of users who are not done yet. */
	if (atomic_fetch_add(&board->finished, 1) + 1 == (uint32_t)options->users)
		open_gate(&board->all_done);
	wait_at_gate(&board->all_done);
	if (number == 0)
		board->user_memory = own_memory();
	check_all(options, directories, done);
	atomic_fetch_add(&board->disk_bytes, disk_bytes);
	histogram_share(board->buckets);
	_exit(0);
}

/* The user that failed has said why, unless it could not. */
static _Noreturn void give_up(const char *problem)
{
	if (problem)
		fprintf(stderr, "load: %s\n", problem);
	dismiss_janitor(group);
	_exit(1);
}

static void start_users(const struct load_options *options)
{
	char problem[200];

	for (int i = 0; i < options->users; i++) {
		pid_t user = fork();
		if (user == 0)
			be_user(i, options);
		if (user < 0) {
			snprintf(problem, sizeof problem,
				 "this machine refuses user %d of %d: %s (limits of processes or memory)", i + 1,
				 options->users, strerror(errno));
			give_up(problem);
		}
		if (!group)
			group = user;
		/* Here too, or a user could be in no group yet when the next one is to join it. */
		setpgid(user, group);
		if (user == group)
			register_cleanup(group);
	}
}

/* Waits for one user to end, or, where `options` say so, looks whether one has. */
static bool reap(int options)
{
	char problem[200];
	int status;
	pid_t ended = waitpid(-group, &status, options);

	if (ended < 0)
		fail("waitpid: %s", strerror(errno));
	if (ended == 0)
		return false;
	if (WIFSIGNALED(status)) {
		bool is_for_memory = WTERMSIG(status) == SIGKILL && was_out_of_memory();
		snprintf(problem, sizeof problem, "a user was killed by signal %d%s", WTERMSIG(status),
			 is_for_memory ? ": the memory that there may be is used up" : "");
		give_up(problem);
	}
	if (status)
		give_up(NULL);
	return true;
}

/* A user that ends before the gate opens has failed. */
static void wait_until_ready(int users)
{
	while (atomic_load(&board->ready) < (uint32_t)users) {
		if (reap(WNOHANG))
			give_up("a user's process ended before its first job");
		poll(NULL, 0, 1);
	}
}

static struct sample sum(const struct load_options *options)
{
	struct sample total = {.operations = 0};

	for (int i = 0; i < options->users; i++) {
		const struct user *user = &board->users[i];
		total.operations += user->jobs;
		if (total.elapsed_ns < user->finished_ns)
			total.elapsed_ns = user->finished_ns;
		total.user_ns += user->used.user_ns;
		total.system_ns += user->used.system_ns;
		total.voluntary_switches += user->used.voluntary_switches;
		total.involuntary_switches += user->used.involuntary_switches;
		total.minor_faults += user->used.minor_faults;
		total.major_faults += user->used.major_faults;
	}
	total.total_operations = total.operations;
	/* 60 J U / real time (classic-suites.md, 3.2). */
	total.rate = total.operations * load.units_per_op * 1e9 / total.elapsed_ns;
	return total;
}

/* How far the users' times differ: re-aim's standard deviation, and its job timing index, 100 where all take
 * the same. */
static void print_spread(const struct load_options *options, const struct sample *total)
{
	double mean = 0, square = 0, besides = 0, jobs_ns = 0, users = options->users, first = INFINITY;

	for (int i = 0; i < options->users; i++) {
		mean += board->users[i].finished_ns / users;
		first = fmin(first, board->users[i].finished_ns);
	}
	for (int i = 0; i < options->users; i++) {
		double from_mean = board->users[i].finished_ns - mean;
		square += from_mean * from_mean / users;
		besides += board->users[i].besides_ns;
		jobs_ns += board->users[i].job_ns;
	}
	double deviation = sqrt(square);

	print_reading("finish_deviation", deviation, "ns", "lower");
	print_reading("first_finish", first, "ns", "lower");
	print_reading("job_timing_index", fmax(0, 100 * (1 - deviation / mean)), "%", "higher");
	print_reading("mean_job_time", jobs_ns / total->operations, "ns", "lower");
	print_reading("driver_time", besides / total->operations, "ns/job", "lower");
	if (board->user_memory)
		print_reading("user_memory", board->user_memory, "B", "lower");
	print_machine();
	if (board->disk_bytes)
		print_disk_bytes(board->disk_bytes, total->operations);
}

/* When users were done, of the first so many: what the readings above are made of. */
static void print_finishes(int users)
{
	for (int i = 0; i < users && i < MAX_SLICES; i++)
		printf("%s%llu", i ? "," : ",\"finishes_ns\":[", (unsigned long long)board->users[i].finished_ns);
	putchar(']');
}

/* Of the scratch directory, from wherever a user works. */
static char *absolute(const char *name)
{
	char *directory = get_current_dir_name(), *path = NULL;

	if (!directory || asprintf(&path, "%s/%s", directory, name) < 0)
		fail("cannot find the scratch directory: %s", strerror(errno));
	free(directory);
	return path;
}

/* Where disk jobs work, and what all users read. It is made once, in scratch directories of the driver's. */
static void make_places(const struct load_options *options)
{
	disk_directory_count = options->disk_place_count;
	for (int i = 0; i < disk_directory_count; i++)
		disk_directories[i] = make_further_scratch_directory(options->disk_places[i]);
}

/* The files of the users who work in one of the directories. */
static uint64_t bytes_in_one_directory(const struct load_options *options)
{
	int directories = disk_directory_count ? disk_directory_count : 1;
	uint64_t users = 0;

	for (int i = 0; i < options->tests && !users; i++)
		if (options->jobs[i].test && options->jobs[i].test->files)
			users = (options->users + directories - 1) / directories;
	return (uint64_t)disk_block() * ((uint64_t)disk_common_blocks() + users * (uint64_t)disk_blocks());
}

/* A size may come from another's configuration, and must not fill the disk. A twentieth stays free. Several
 * of the directories may be on one file system. */
static void expect_room(const struct load_options *options)
{
	uint64_t each = bytes_in_one_directory(options);
	struct stat own, other;
	struct statvfs system;

	for (int i = 0; i == 0 || i < disk_directory_count; i++) {
		const char *directory = disk_directory_count ? disk_directories[i] : ".";
		uint64_t needed = disk_directory_count ? 0 : each;

		if (stat(directory, &own) < 0 || statvfs(directory, &system) < 0)
			fail("cannot look at %s: %s", directory, strerror(errno));
		for (int k = 0; k < disk_directory_count; k++) {
			if (stat(disk_directories[k], &other) < 0)
				fail("cannot look at %s: %s", disk_directories[k], strerror(errno));
			if (other.st_dev == own.st_dev)
				needed += each;
		}
		/* Some file systems in memory report no size. */
		uint64_t room = (uint64_t)system.f_bavail * system.f_frsize / 20 * 19;
		if (system.f_blocks && needed > room)
			fail("the users' files need %llu MiB, but %s has room for %llu MiB: choose a smaller "
			     "--file-size or --pool-size, fewer users, or a different --disk-dir",
			     (unsigned long long)(needed >> 20), directory, (unsigned long long)(room >> 20));
	}
}

static void prepare_disks(const struct load_options *options)
{
	expect_room(options);
	disk_common_files[0] = absolute("common");
	for (int i = 0; i < disk_directory_count; i++)
		if (asprintf((char **)&disk_common_files[i], "%s/common", disk_directories[i]) < 0)
			fail("no memory for the names of %d directories", disk_directory_count);
	for (int i = 0; i == 0 || i < disk_directory_count; i++)
		make_disk_common_file(disk_common_files[i]);
	disk_tree = absolute("tree");
	make_disk_tree(disk_tree);
	if (options->disk_tree)
		read_disk_tree(options->disk_tree);
}

/* Until all users have ended, with a look at the machine now and then. A signal that is blocked is kept, even
 * one that would be ignored; so none comes between looking for who has ended and waiting. */
static void await_users(int left)
{
	static const struct timespec between_looks = {.tv_nsec = 100 * 1000000};
	sigset_t ended;

	sigemptyset(&ended);
	sigaddset(&ended, SIGCHLD);
	sigprocmask(SIG_BLOCK, &ended, NULL);
	while (left > 0)
		if (reap(WNOHANG))
			left--;
		else if (sigtimedwait(&ended, NULL, &between_looks) < 0)
			look_at_machine();
}

/* What this process alone has used of the CPUs. */
static uint64_t own_cpu_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return used.tv_sec * 1000000000ull + used.tv_nsec;
}

void take_load(const struct load_options *options)
{
	static const struct options as_it_is;
	size_t bytes = sizeof *board + options->users * sizeof *board->users;

	current = &load;
	own_cleanup();
	driver = getpid();
	uint64_t began = now_ns();
	board = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (board == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	if (options->is_endless)
		open_activity_board();
	enter_scratch_directory();
	make_places(options);
	start_janitor();
	remember_killed();
	prepare_disks(options);
	start_users(options);
	wait_until_ready(options->users);
	uint64_t ready = now_ns();
	count_machine();
	uint64_t used_ns = own_cpu_ns();
	board->opened_ns = now_ns();
	open_gate(&board->gate);
	if (options->is_endless)
		activity_is_ready();
	await_users(options->users);
	used_ns = own_cpu_ns() - used_ns;
	count_machine_again();
	register_cleanup(0);
	dismiss_janitor(group);

	struct sample total = sum(options);
	total.calibration_ms = (ready - began) / 1e6;
	print_sample(&as_it_is, &total);
	print_finishes(options->users);
	printf(",\"users\":%d,\"latencies\":{\"clock_ns\":0,\"buckets\":", options->users);
	histogram_take(board->buckets);
	histogram_print();
	putchar('}');
	print_spread(options, &total);
	print_reading("driver_cpu", 100.0 * used_ns / (used_ns + total.user_ns + total.system_ns), "%", "lower");
	print_readings(&total);
	printf("}\n");
	if (fflush(stdout) != 0)
		fail("cannot write the result: %s", strerror(errno));
}
