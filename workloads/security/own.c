/* Calls by which a program asks for, or gives up, rights of its own. They change nothing that was not so
 * before: the first no_new_privs does, and ends with this process. */
#include "operation.h"

#include <linux/keyctl.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const uint32_t action = SECCOMP_RET_ERRNO;
static long keyring, landlock_version;

static void check_no_new_privs(uint64_t n)
{
	(void)n;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		fail("no_new_privs is not set");
}

/* The process's own keyring: nobody else sees it, and it ends with the process. */
static long process_keyring(int create)
{
	return syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_PROCESS_KEYRING, create);
}

static void make_keyring(void)
{
	keyring = process_keyring(1);
	if (keyring < 0)
		fail("keyctl: %s (is the kernel built without CONFIG_KEYS?)", strerror(errno));
}

static long ask_landlock(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
}

static void find_landlock(void)
{
	landlock_version = ask_landlock();
	if (landlock_version < 0)
		fail("this kernel has no Landlock, or lsm= leaves it out: %s", strerror(errno));
}

OPERATION(no_new_privs, "prctl-no-new-privs", 1, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0,
	  .summary = "prctl(PR_SET_NO_NEW_PRIVS)", .source = "prctl(2)", .check = check_no_new_privs);
OPERATION(seccomp, "seccomp-action-avail", 1, syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0,
	  .summary = "seccomp(SECCOMP_GET_ACTION_AVAIL)", .source = "seccomp(2)");
OPERATION(keyctl, "keyctl", 1, process_keyring(0) == keyring,
	  .summary = "keyctl(KEYCTL_GET_KEYRING_ID) of the process's keyring", .source = "keyctl(2)",
	  .prepare = make_keyring);
OPERATION(landlock, "landlock_create_ruleset", 1, ask_landlock() == landlock_version,
	  .summary = "landlock_create_ruleset(2), asked for its version", .source = "landlock_create_ruleset(2)",
	  .prepare = find_landlock);
