/* UnixBench's "Execl Throughput": a process replaces itself by the same program, again and again.
 *
 * What is left to do travels in the arguments. The last one reports how many there were, and waits for the
 * next order: a fork for each would be timed too. */
#include "workload.h"
#include "image.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <unistd.h>

/* The original's image has 8 KiB of bss, so that the kernel has memory to map besides the file's. */
static char bss[8192] __attribute__((used));

struct report {
	unsigned long long done;
	struct rusage usage; /* since its start: an exec is no new process */
};

static int orders[2], reports[2];
static pid_t chain;
static struct report last;

/* By its path, as the original: a look at /proc in every program would be timed too. */
static void replace(unsigned long long left, unsigned long long done, int from, int to)
{
	char left_text[24], done_text[24], from_text[12], to_text[12];

	snprintf(left_text, sizeof left_text, "%llu", left - 1);
	snprintf(done_text, sizeof done_text, "%llu", done + 1);
	snprintf(from_text, sizeof from_text, "%d", from);
	snprintf(to_text, sizeof to_text, "%d", to);
	execl((const char *)getauxval(AT_EXECFN), "@execl", left_text, done_text, from_text, to_text,
	      (char *)NULL);
	fail("execl: %s", strerror(errno));
}

/* Ends with the driver, which closes the pipe. */
static void obey(int from, int to)
{
	unsigned long long left;

	if (read(from, &left, sizeof left) != sizeof left)
		_exit(0);
	replace(left, 0, from, to);
}

static int exec_self(int argc, char **argv)
{
	struct report report;

	if (argc != 5)
		return 2;
	unsigned long long left = strtoull(argv[1], NULL, 10), done = strtoull(argv[2], NULL, 10);
	int from = atoi(argv[3]), to = atoi(argv[4]);

	if (left)
		replace(left, done, from, to);
	report.done = done;
	getrusage(RUSAGE_SELF, &report.usage);
	if (write(to, &report, sizeof report) != sizeof report)
		return 1;
	obey(from, to);
	return 1;
}

static void prepare(void)
{
	if (pipe(orders) < 0 || pipe(reports) < 0 || fcntl(orders[1], F_SETFD, FD_CLOEXEC) < 0 ||
	    fcntl(reports[0], F_SETFD, FD_CLOEXEC) < 0)
		fail("pipe: %s", strerror(errno));
	chain = fork();
	if (chain < 0)
		fail("fork: %s", strerror(errno));
	if (chain == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* outlives execve: no chain without its driver */
		close(orders[1]);
		close(reports[0]);
		obey(orders[0], reports[1]);
	}
	signal(SIGPIPE, SIG_IGN); /* a dead chain shall be an error, not a death without words */
	close(orders[0]);
	close(reports[1]);
}

static void run(uint64_t n)
{
	unsigned long long order = n;

	if (write(orders[1], &order, sizeof order) != sizeof order ||
	    read(reports[0], &last, sizeof last) != sizeof last)
		fail("the programs ended before they were told to");
	if (last.done != n)
		fail("%llu programs ran, not %llu", last.done, (unsigned long long)n);
}

static void check(uint64_t n)
{
	(void)n;
	close(orders[1]);
	expect_exit(chain, 0);
}

static void add_usage(struct rusage *total)
{
	timeradd(&total->ru_utime, &last.usage.ru_utime, &total->ru_utime);
	timeradd(&total->ru_stime, &last.usage.ru_stime, &total->ru_stime);
	total->ru_nvcsw += last.usage.ru_nvcsw;
	total->ru_nivcsw += last.usage.ru_nivcsw;
	total->ru_minflt += last.usage.ru_minflt;
	total->ru_majflt += last.usage.ru_majflt;
}

WORKLOAD(execl, .name = "execl", .summary = "a process replaces itself by the same program", .unit = "ops/s",
	 .units_per_op = 1, .syscalls_per_op = IMAGE_SYSCALLS, .syscalls_note = "approximate: " IMAGE_NOTE,
	 .source = "UnixBench 6.0 execl (Execl Throughput)", .prepare = prepare, .run = run, .check = check,
	 .add_usage = add_usage, .exec_self = exec_self);
