/* Who a process is: user, group, capabilities, name. Small calls that read or write its credentials or
 * its task. What is set is what was there before, so that the process stays who it is. */
#include "operation.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static uid_t uid;
static pid_t group;
static mode_t mask;
static const char new_name[] = "weighed";

static struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
static struct __user_cap_data_struct held[_LINUX_CAPABILITY_U32S_3], found[_LINUX_CAPABILITY_U32S_3];

static void prepare(void)
{
	uid = getuid();
	group = getpgrp();
	mask = umask(022);
	if (syscall(SYS_capget, &header, held) < 0)
		fail("capget: %s", strerror(errno));
}

static void restore_mask(void)
{
	umask(mask);
}

static void set_name(void)
{
	prctl(PR_SET_NAME, new_name);
}

/* PR_GET_NAME writes 16 bytes, PR_SET_NAME reads up to 16. */
static bool has_new_name(void)
{
	char name[16];

	return prctl(PR_GET_NAME, name) == 0 && strcmp(name, new_name) == 0;
}

static void check_name(uint64_t n)
{
	(void)n;
	if (!has_new_name())
		fail("the process has not the name that was set");
}

OPERATION(getuid, "getuid", 1, getuid() == uid, .summary = "getuid(2)", .source = "getuid(2)", .prepare = prepare);
OPERATION(setuid, "setuid", 1, syscall(SYS_setuid, uid) == 0,
	  .summary = "setuid(2) to the user that it is: new credentials are made, checked and installed",
	  .source = "setuid(2)", .prepare = prepare);
OPERATION(getpgid, "getpgid", 1, getpgid(0) == group, .summary = "getpgid(2) of the process itself",
	  .source = "getpgid(2)", .prepare = prepare);
OPERATION(setpgid, "setpgid", 1, setpgid(0, group) == 0, .summary = "setpgid(2) into the group that it is in",
	  .source = "setpgid(2)", .prepare = prepare);
OPERATION(umask, "umask", 1, umask(022) == 022, .summary = "umask(2)", .source = "umask(2)",
	  .prepare = prepare, .cleanup = restore_mask);
OPERATION(capget, "capget", 1,
	  syscall(SYS_capget, &header, found) == 0 && memcmp(found, held, sizeof held) == 0,
	  .summary = "capget(2) of the process itself", .source = "capget(2)", .prepare = prepare);
OPERATION(prctl_get_name, "prctl-get-name", 1, has_new_name(), .summary = "prctl(PR_GET_NAME)",
	  .source = "prctl(2)", .prepare = set_name);
OPERATION(prctl_set_name, "prctl-set-name", 1, prctl(PR_SET_NAME, new_name) == 0,
	  .summary = "prctl(PR_SET_NAME)", .source = "prctl(2)", .check = check_name);
