/* UnixBench's "System Call Overhead": five cheap system calls, though its unit counts them as one.
 *
 * The descriptor is the read end of a private pipe (as since UnixBench 6.0): copies that run at the
 * same time then share no file. getpid goes through syscall(2), because a libc may cache it. */
#include "kernel.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int fd;
static mode_t umask_before;

static void prepare(void)
{
	int ends[2];

	if (pipe(ends) < 0)
		fail("pipe: %s", strerror(errno));
	close(ends[1]);
	fd = ends[0];
	umask_before = umask(022);
}

static void run(uint64_t n)
{
	pid_t pid = getpid();
	uid_t uid = getuid();

	for (; n; n--) {
		int copy = dup(fd);
		if (copy < 0 || close(copy) < 0)
			fail("dup or close: %s", strerror(errno));
		if (syscall(SYS_getpid) != pid || getuid() != uid || umask(022) != 022)
			fail("getpid, getuid or umask gave another result than before");
	}
}

static void cleanup(void)
{
	umask(umask_before);
}

WORKLOAD(syscall, .name = "syscall", .summary = "dup, close, getpid, getuid and umask, once each",
	 .unit = "lps", .units_per_op = 1, .syscalls_per_op = 5,
	 .source = "UnixBench 6.0 syscall (System Call Overhead, mix)", .prepare = prepare, .run = run,
	 .cleanup = cleanup);
