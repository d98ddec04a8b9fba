/* UnixBench's "System Call Overhead": five cheap system calls, though its unit counts them as one; and
 * two of the modes that its program has besides.
 *
 * The descriptor is the read end of a private pipe (as since UnixBench 6.0): copies that run at the
 * same time then share no file. getpid goes through syscall(2), because a libc may cache it. */
#include "workload.h"

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

static void run_getpid(uint64_t n)
{
	pid_t pid = getpid();

	for (; n; n--)
		if (syscall(SYS_getpid) != pid)
			fail("getpid gave another result than before");
}

static void run_close(uint64_t n)
{
	for (; n; n--) {
		int copy = dup(fd);
		if (copy < 0 || close(copy) < 0)
			fail("dup or close: %s", strerror(errno));
	}
}

static void cleanup(void)
{
	umask(umask_before);
}

WORKLOAD(syscall, .name = "syscall", .summary = "dup, close, getpid, getuid and umask, once each",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 5,
	 .source = "UnixBench 6.0 syscall (System Call Overhead, mix)", .prepare = prepare, .run = run,
	 .cleanup = cleanup);
WORKLOAD(getpid, .name = "syscall-getpid", .summary = "getpid, past the cache that a libc may have",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 1,
	 .source = "UnixBench 6.0 syscall, mode getpid", .prepare = prepare, .run = run_getpid,
	 .cleanup = cleanup);
WORKLOAD(close, .name = "syscall-close", .summary = "dup and close of a descriptor", .unit = "ops/s",
	 .units_per_op = 1, .syscalls_per_op = 2, .source = "UnixBench 6.0 syscall, mode close",
	 .prepare = prepare, .run = run_close, .cleanup = cleanup);
