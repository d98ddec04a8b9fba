/* Starts a server again, as often as it is killed, on what it left: for who looks at what a crash loses. */
#include "driver.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t start(char **argv)
{
	pid_t child = fork();

	if (child == 0) {
		execv(argv[0], argv);
		perror(argv[0]);
		_exit(127);
	}
	return child;
}

int revive(int argc, char **argv)
{
	if (argc < 2)
		usage_error("revive takes a command");
	/* Nobody else's processes are killed with those of the server. */
	if (getpid() != 1)
		usage_error("revive runs only as the first process of a PID namespace");
	for (;;) {
		int status = 0;
		pid_t child = start(argv + 1), ended;
		if (child < 0)
			return 1;
		do
			ended = waitpid(-1, &status, 0);
		while (ended != child && (ended > 0 || errno == EINTR));
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
		/* Its own children are gone with the machine that crashed. */
		kill(-1, SIGKILL);
		while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
			;
	}
}
