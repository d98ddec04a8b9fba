/* Finding and running the programs of the system that some workloads are made of. */
#include "program.h"
#include "workload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What the programs print goes through this pipe, and not into our line of JSON. */
static int output[2] = {-1, -1};

const char *find_program(const char *name, const char *debian_package)
{
	static char path[4096];
	const char *directories = getenv("PATH");

	for (const char *at = directories; at && *at; at += *at == ':') {
		int length = strcspn(at, ":");
		snprintf(path, sizeof path, "%.*s/%s", length, at, name);
		if (length && access(path, X_OK) == 0)
			return path;
		at += length;
	}
	fail("%s is not installed: apt-get install %s", name, debian_package);
}

static void open_output(void)
{
	if (pipe2(output, O_CLOEXEC) < 0 || fcntl(output[0], F_SETFL, O_NONBLOCK) < 0)
		fail("pipe: %s", strerror(errno));
}

void run_program(const char *path, char *const argv[], const char *input, const char *expected)
{
	char printed[1024];
	long size = 0;

	if (output[0] < 0)
		open_output();
	pid_t child = fork();
	if (child < 0)
		fail("fork: %s", strerror(errno));
	if (child == 0) {
		int fd = open(input, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || dup2(fd, STDIN_FILENO) < 0 || dup2(output[1], STDOUT_FILENO) < 0)
			_exit(126);
		execv(path, argv);
		_exit(127);
	}
	expect_exit(child, 0);
	/* It has ended: what it printed is there, or never will be. */
	size = read(output[0], printed, sizeof printed - 1);
	printed[size < 0 ? 0 : size] = 0;
	if (strcmp(printed, expected))
		fail("%s printed '%s', not '%s'", path, printed, expected);
}
