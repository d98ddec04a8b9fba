/* Processes: forked; made to execute `true`; shells that execute a script, which starts a program.
 *
 * re-aim's exec_test executes a script named true that runs ls, and its shell_rtns_2 sleeps for 5 seconds.
 * Here the one does what it is called, and the other what its neighbours do. */
#include "../job.h"
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FORKS = 100, EXECS = 5 };

static pid_t fork_or_fail(void)
{
	pid_t child = fork();

	if (child < 0)
		fail("fork: %s", strerror(errno));
	return child;
}

static void job_fork_test(void)
{
	for (int i = 0; i < FORKS; i++) {
		pid_t child = fork_or_fail(), ended;
		int status, children = 0;

		if (child == 0)
			exit(0);
		while ((ended = wait(&status)) > 0) {
			children++;
			if (ended != child || status != 0)
				fail("the child did not exit with status 0");
		}
		if (children != 1 || errno != ECHILD)
			fail("%d children ended, and wait: %s", children, strerror(errno));
	}
}

static char path_of_true[4096];

static void prepare_exec(void)
{
	const char *found = find_program("true", "coreutils");

	if (strlen(found) >= sizeof path_of_true)
		fail("the path of `true` is too long");
	strcpy(path_of_true, found);
}

static void job_exec_test(void)
{
	for (int i = 0; i < EXECS; i++) {
		pid_t child = fork_or_fail();

		if (child == 0) {
			execl(path_of_true, "true", (char *)NULL);
			_exit(127);
		}
		expect_exit(child, 0);
	}
}

/* The scripts are alone in a directory of their own, so what they list is always as much. */
#define DIRECTORY "shell_rtns.d"
#define SCRIPT "script.sh"

static const char script[] = "#!/bin/sh\nls -l >/dev/null\n";

static void prepare_shell(void)
{
	enter_scratch_directory();
	/* shell_rtns_1, 2 and 3 may share it. */
	if (mkdir(DIRECTORY, 0700) < 0 && errno != EEXIST)
		fail("cannot make a directory: %s", strerror(errno));
	int file = open(DIRECTORY "/" SCRIPT, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
	if (file < 0 || write(file, script, sizeof script - 1) != sizeof script - 1 || close(file) < 0)
		fail("cannot write a script: %s", strerror(errno));
}

static void job_shell(void)
{
	pid_t child = fork_or_fail();

	if (child == 0) {
		if (chdir(DIRECTORY) < 0)
			_exit(126);
		int status = system("./" SCRIPT " 9");
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 125);
	}
	expect_exit(child, 0);
}

#define SHELL(id)                                                                                       \
	SUB_TEST(id, job_shell(), 1, "scripts", 389,                                                    \
		 .syscalls_note = "approximate: with dash 0.5.12, coreutils 9.1 and glibc 2.36",        \
		 .summary = "fork a process that has a shell execute a script, which runs ls -l", .prepare = prepare_shell)

SUB_TEST(fork_test, job_fork_test(), FORKS, "forks", 500,
	 .summary = "100 times fork of a process that exits at once, and wait until there is no child");
SUB_TEST(exec_test, job_exec_test(), EXECS, "execs", 165,
	 .syscalls_note = "approximate: with coreutils 9.1 and glibc 2.36",
	 .summary = "5 times fork of a process that executes `true`, and wait for it", .prepare = prepare_exec);
SHELL(shell_rtns_1);
SHELL(shell_rtns_2);
SHELL(shell_rtns_3);
