/* A job that is a program: started, waited for, and successful. */
#include "driver.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

char **command_argv;

static void run_command(uint64_t n)
{
	posix_spawn_file_actions_t files;

	/* What it prints is nobody's, and no file is left open in it. */
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
	for (; n; n--) {
		pid_t child;
		int status, error = posix_spawnp(&child, command_argv[0], &files, NULL, command_argv, environ);

		if (error)
			fail("cannot run `%s`: %s", command_argv[0], strerror(error));
		while (waitpid(child, &status, 0) < 0)
			if (errno != EINTR)
				fail("waitpid: %s", strerror(errno));
		if (WIFSIGNALED(status))
			fail("`%s` was killed by signal %d", command_argv[0], WTERMSIG(status));
		if (status)
			fail("`%s` exited with status %d", command_argv[0], WEXITSTATUS(status));
	}
	posix_spawn_file_actions_destroy(&files);
}

/* Not registered: it is a part of loads alone. */
const struct workload command_job = {
	.name = "command", .unit = "runs/s", .units_per_op = 1, .run = run_command};
