/* A process that outlives the driver, whatever ends that: it kills what the driver had started, and removes
 * its files. */
#include "driver.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t cleaner;
static int to_cleaner[2] = {-1, -1};

static _Noreturn void tidy_up_at_the_end(void)
{
	pid_t left = 0;

	prctl(PR_SET_NAME, "weigh-cleanup");
	setpgid(0, 0); /* a signal to the driver's group is none for us */
	close(to_cleaner[1]);
	while (read(to_cleaner[0], &left, sizeof left) == sizeof left)
		;
	if (left)
		kill(-left, SIGKILL);
	remove_scratch_directory();
	_exit(0);
}

void start_janitor(void)
{
	/* No pipe: writing to one whose reader was killed would be a signal, and ignoring that a habit that
	 * workloads inherit. */
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, to_cleaner) < 0 || (cleaner = fork()) < 0)
		fail("socketpair or fork: %s", strerror(errno));
	if (cleaner == 0)
		tidy_up_at_the_end();
	close(to_cleaner[0]);
}

void register_cleanup(pid_t group)
{
	if (send(to_cleaner[1], &group, sizeof group, MSG_NOSIGNAL) == sizeof group)
		return;
	int error = errno;
	if (group)
		kill(-group, SIGKILL);
	fail("cannot reach the process that removes files: %s", strerror(error));
}

void part_from_janitor(void)
{
	close(to_cleaner[1]);
}

void dismiss_janitor(pid_t group)
{
	int status;

	close(to_cleaner[1]);
	bool was_killed = waitpid(cleaner, &status, 0) != cleaner || status;
	if (was_killed && group)
		kill(-group, SIGKILL);
	while (group && waitpid(-group, NULL, 0) > 0)
		;
	/* Then its work is ours. */
	if (was_killed)
		remove_scratch_directory();
}
