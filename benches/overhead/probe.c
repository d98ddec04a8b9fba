/* Preloaded into the workload `getppid`: says on stderr when its first operation begins. That is the
 * second call of getppid, for the workload prepares with the first. */
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

pid_t getppid(void)
{
	static int calls;

	if (++calls == 2) {
		struct timespec now;

		clock_gettime(CLOCK_MONOTONIC, &now);
		dprintf(STDERR_FILENO, "first %lld\n", now.tv_sec * 1000000000ll + now.tv_nsec);
	}
	return syscall(SYS_getppid);
}
