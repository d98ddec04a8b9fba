/* What is known about a file, by its name, read and set. */
#include "operation.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { SIZE = 1234, MODE = 0640, LONG_AGO = 1000000000 };

static struct statx found;
static struct statfs system_found;
static char text[64];
static const char name[] = "user.weigh", value[] = "twelve bytes";
static const struct timespec then[2] = {{.tv_sec = LONG_AGO}, {.tv_sec = LONG_AGO}};

static void prepare(void)
{
	enter_scratch_directory();
	close(create_file("file", SIZE));
}

static void prepare_link(void)
{
	enter_scratch_directory();
	if (symlink("elsewhere", "link") < 0)
		fail("symlink: %s", strerror(errno));
}

static bool set_attribute(void)
{
	return setxattr("file", name, value, sizeof value, 0) == 0;
}

static bool has_attribute(void)
{
	return getxattr("file", name, text, sizeof text) == sizeof value &&
	       memcmp(text, value, sizeof value) == 0;
}

static void prepare_attribute(void)
{
	prepare();
	if (!set_attribute())
		fail("the file system of this directory takes no user.* attribute: %s", strerror(errno));
}

static void try_attribute(void)
{
	prepare_attribute();
	removexattr("file", name);
}

static void check_attribute(uint64_t n)
{
	(void)n;
	if (!has_attribute())
		fail("the attribute has not the value that was set");
}

static void check_mode(uint64_t n)
{
	struct stat status;

	(void)n;
	if (stat("file", &status) < 0 || (status.st_mode & 07777) != MODE)
		fail("the file has not the mode that was set");
}

static void check_times(uint64_t n)
{
	struct stat status;

	(void)n;
	if (stat("file", &status) < 0 || status.st_mtim.tv_sec != LONG_AGO)
		fail("the file has not the time that was set");
}

OPERATION(statx, "statx", 1,
	  statx(AT_FDCWD, "file", 0, STATX_BASIC_STATS, &found) == 0 && found.stx_size == SIZE,
	  .summary = "statx(2) of a file in the current directory", .source = "statx(2)", .prepare = prepare);
OPERATION(access, "access", 1, access("file", R_OK) == 0,
	  .summary = "access(2) of a file in the current directory", .source = "access(2)", .prepare = prepare);
OPERATION(readlink, "readlink", 1,
	  readlink("link", text, sizeof text) == 9 && memcmp(text, "elsewhere", 9) == 0,
	  .summary = "readlink(2) in the current directory", .source = "readlink(2)", .prepare = prepare_link);
OPERATION(statfs, "statfs", 1, statfs("file", &system_found) == 0 && system_found.f_namelen > 0,
	  .summary = "statfs(2) of a file in the current directory", .source = "statfs(2)", .prepare = prepare);
OPERATION(chmod, "chmod", 1, chmod("file", MODE) == 0,
	  .summary = "chmod(2) of a file in the current directory", .source = "chmod(2)", .prepare = prepare,
	  .check = check_mode);
OPERATION(utimensat, "utimensat", 1, utimensat(AT_FDCWD, "file", then, 0) == 0,
	  .summary = "utimensat(2) of a file in the current directory", .source = "utimensat(2)",
	  .prepare = prepare, .check = check_times);
OPERATION(setxattr, "setxattr", 1, set_attribute(), .summary = "setxattr(2) of a user.* attribute, 13 bytes",
	  .source = "setxattr(2)", .prepare = try_attribute, .check = check_attribute);
OPERATION(getxattr, "getxattr", 1, has_attribute(), .summary = "getxattr(2) of a user.* attribute, 13 bytes",
	  .source = "getxattr(2)", .prepare = prepare_attribute);
