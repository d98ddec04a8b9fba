/* UnixBench's "Execl Throughput": a process replaces itself by the same program, again and again.
 *
 * What is left to do travels in the arguments. The last one reports how many there were, through a pipe
 * that all of them inherit. One fork per call of run() keeps the driver alive. */
#include "kernel.h"
#include "image.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* The original's image has 8 KiB of bss, so that the kernel has memory to map besides the file's. */
static char bss[8192] __attribute__((used));

static int report[2];

static void prepare(void)
{
	if (pipe(report) < 0 || fcntl(report[0], F_SETFD, FD_CLOEXEC) < 0)
		fail("pipe: %s", strerror(errno));
}

static void replace(unsigned long long left, unsigned long long done, int fd)
{
	char left_text[24], done_text[24], fd_text[12];

	snprintf(left_text, sizeof left_text, "%llu", left - 1);
	snprintf(done_text, sizeof done_text, "%llu", done + 1);
	snprintf(fd_text, sizeof fd_text, "%d", fd);
	execl("/proc/self/exe", "@execl", left_text, done_text, fd_text, (char *)NULL);
	fail("execl: %s", strerror(errno));
}

static int reenter(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	unsigned long long left = strtoull(argv[1], NULL, 10), done = strtoull(argv[2], NULL, 10);
	int fd = atoi(argv[3]);

	if (left)
		replace(left, done, fd);
	return write(fd, &done, sizeof done) == sizeof done ? 0 : 1;
}

static void run(uint64_t n)
{
	unsigned long long done;
	pid_t child = fork();

	if (child < 0)
		fail("fork: %s", strerror(errno));
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* outlives execve: no chain without its driver */
		replace(n, 0, report[1]);
	}
	expect_exit(child, 0);
	if (read(report[0], &done, sizeof done) != sizeof done || done != n)
		fail("%llu programs ran, not %llu", done, (unsigned long long)n);
}

WORKLOAD(execl, .name = "execl", .summary = "a process replaces itself by the same program", .unit = "lps",
	 .units_per_op = 1, .syscalls_per_op = IMAGE_SYSCALLS, .syscalls_note = "approximate: " IMAGE_NOTE,
	 .source = "UnixBench 6.0 execl (Execl Throughput)", .prepare = prepare, .run = run, .reenter = reenter);
