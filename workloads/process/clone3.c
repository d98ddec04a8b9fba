/* Processes made and awaited by the system calls of today: clone3, waitid, and descriptors for processes
 * (pidfd). No C library is in between. */
#include "operation.h"

#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STATUS = 7 };

static pid_t own;
static int first_free;

static void prepare(void)
{
	own = getpid();
	first_free = next_descriptor();
}

static bool exited_well(const siginfo_t *end, pid_t child)
{
	return end->si_pid == child && end->si_code == CLD_EXITED && end->si_status == STATUS;
}

/* As fork does it, and with CLONE_PIDFD a descriptor to wait by besides. */
static bool clone_and_wait(bool by_descriptor)
{
	int descriptor = -1;
	struct clone_args arguments = {
		.flags = by_descriptor ? CLONE_PIDFD : 0,
		.pidfd = (uintptr_t)&descriptor,
		.exit_signal = SIGCHLD,
	};
	siginfo_t end = {0};
	pid_t child = syscall(SYS_clone3, &arguments, sizeof arguments);

	if (child == 0)
		syscall(SYS_exit_group, STATUS);
	if (child < 0)
		return false;
	if (!by_descriptor)
		return waitid(P_PID, child, &end, WEXITED) == 0 && exited_well(&end, child);
	return waitid(P_PIDFD, descriptor, &end, WEXITED) == 0 && exited_well(&end, child) &&
	       descriptor == first_free && close(descriptor) == 0;
}

static bool open_and_close_pidfd(void)
{
	int fd = syscall(SYS_pidfd_open, own, 0);

	return fd == first_free && close(fd) == 0;
}

OPERATION(clone3, "clone3", 3, clone_and_wait(false),
	  .summary = "clone3 of a process that exits at once, and waitid for it", .source = "clone(2)");
OPERATION(clone3_pidfd, "clone3-pidfd", 4, clone_and_wait(true),
	  .summary = "clone3(CLONE_PIDFD) of a process that exits at once, waitid(P_PIDFD) for it, and close",
	  .source = "clone(2), waitid(2)", .prepare = prepare);
OPERATION(pidfd_open, "pidfd-open-close", 2, open_and_close_pidfd(),
	  .summary = "pidfd_open(2) of the process itself, and close(2)", .source = "pidfd_open(2)",
	  .prepare = prepare);
