/* What a process asks about itself, its user, its terminal and its system.
 *
 * Users and groups are looked up in /etc/passwd and /etc/group themselves: through getpwnam(3) it would be
 * whatever this machine's name service is made of, which a benchmark cannot know. */
#include "job.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/times.h>
#include <sys/utsname.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 10 };

static FILE *open_table(const char *path)
{
	FILE *table = fopen(path, "re");

	if (!table)
		fail("cannot read %s: %s", path, strerror(errno));
	return table;
}

/* By name, or by number where that is NULL; false if there is none. */
static bool find_user(const char *name, uid_t number)
{
	FILE *table = open_table("/etc/passwd");
	const struct passwd *user;

	do
		user = fgetpwent(table);
	while (user && (name ? strcmp(user->pw_name, name) != 0 : user->pw_uid != number));
	fclose(table);
	return user;
}

static bool find_group(gid_t number)
{
	FILE *table = open_table("/etc/group");
	const struct group *group;

	do
		group = fgetgrent(table);
	while (group && group->gr_gid != number);
	fclose(table);
	return group;
}

static void ask_for_identity(void)
{
	gid_t groups[1024];

	if (getuid() != geteuid() || getgid() != getegid())
		fail("the process has another user or group than it had at first");
	if (getgroups(1024, groups) < 0 || getpgrp() <= 0 || getppid() == getpid())
		fail("getgroups, getpgrp or getppid: %s", strerror(errno));
	if (!find_user("root", 0))
		fail("there is no root in /etc/passwd");
	/* A user or a group need not be in the table. */
	find_user(NULL, getuid());
	find_group(getgid());
}

static void ask_for_surroundings(void)
{
	char path[4096], terminal[L_ctermid];
	struct termios speeds = {0};
	struct tms used;
	struct utsname names;
	const char *home = getenv("HOME"); /* need not be there */

	OPAQUE(home);
	cfsetispeed(&speeds, B9600), cfsetospeed(&speeds, B9600);
	OPAQUE_MEMORY();
	if (cfgetispeed(&speeds) != B9600 || cfgetospeed(&speeds) != B9600)
		fail("a terminal has another speed than was set");
	if (clock() == -1 || times(&used) == (clock_t)-1 || !ctermid(terminal) || !getcwd(path, sizeof path) ||
	    uname(&names) < 0)
		fail("clock, times, ctermid, getcwd or uname: %s", strerror(errno));
	if (isatty(STDIN_FILENO) != (ttyname(STDIN_FILENO) != NULL))
		fail("standard input is a terminal, or is none");
}

static void job_misc_rtns_1(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		ask_for_identity();
		ask_for_surroundings();
	}
}

SUB_TEST(misc_rtns_1, job_misc_rtns_1(), ROUNDS, "rounds", 340,
	 .syscalls_note = "approximate: with glibc 2.36, and up to 4 KiB each of /etc/passwd and /etc/group",
	 .summary = "10 rounds of questions about the process, its user, its terminal and its system");
