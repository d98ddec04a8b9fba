/* Processes: forked; made to execute `true`; shells that execute a script.
 *
 * re-aim's exec_test executes a script named true that runs ls; here it does what it is called. AIM's three
 * shell_rtns ran one script, the shortest. Here only the first does: the second pipes between programs, and
 * the third starts none. re-aim's second sleeps for 5 seconds. */
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
#define SCRIPT "script.sh"

/* Each ends with 0 only where its result is right. */
#define LISTS "#!/bin/sh\nls -l >/dev/null\n"
#define PIPES "#!/bin/sh\ntest \"$(sort " SCRIPT " | grep sort | wc -l)\" -eq 1\n"
#define COUNTS                                                                                           \
	"#!/bin/sh\ni=0 sum=0\n"                                                                        \
	"while [ $i -lt 100 ]; do i=$((i + 1)); case $i in *7) sum=$((sum + i)) ;; esac; done\n"         \
	"[ $sum -eq 520 ]\n"

static void make_script(const char *directory, const char *script)
{
	ssize_t length = (ssize_t)strlen(script);
	char path[64];

	enter_scratch_directory();
	snprintf(path, sizeof path, "%s/" SCRIPT, directory);
	if (mkdir(directory, 0700) < 0 && errno != EEXIST)
		fail("cannot make a directory: %s", strerror(errno));
	int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
	if (file < 0 || write(file, script, length) != length || close(file) < 0)
		fail("cannot write a script: %s", strerror(errno));
}

static void job_shell(const char *directory)
{
	pid_t child = fork_or_fail();

	if (child == 0) {
		if (chdir(directory) < 0)
			_exit(126);
		int status = system("./" SCRIPT " 9");
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 125);
	}
	expect_exit(child, 0);
}

#define SHELL(id, script, calls, words)                                                                 \
	static void prepare_##id(void)                                                                  \
	{                                                                                               \
		make_script(#id ".d", script);                                                          \
	}                                                                                               \
	SUB_TEST(id, job_shell(#id ".d"), 1, "scripts", calls,                                          \
		 .syscalls_note = "approximate: with dash 0.5.12, coreutils 9.1, grep 3.8 and glibc 2.36", \
		 .summary = "fork a process that has a shell execute a script, which " words,           \
		 .prepare = prepare_##id)

SUB_TEST(fork_test, job_fork_test(), FORKS, "forks", 500,
	 .summary = "100 times fork of a process that exits at once, and wait until there is no child");
SUB_TEST(exec_test, job_exec_test(), EXECS, "execs", 165,
	 .syscalls_note = "approximate: with coreutils 9.1 and glibc 2.36",
	 .summary = "5 times fork of a process that executes `true`, and wait for it", .prepare = prepare_exec);
SHELL(shell_rtns_1, LISTS, 389, "runs ls -l");
SHELL(shell_rtns_2, PIPES, 505, "pipes itself through sort, grep and wc");
SHELL(shell_rtns_3, COUNTS, 248, "counts to 100 and starts no program");
