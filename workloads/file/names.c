/* Names: entries of a directory made, moved and removed, and the directory that names begin in. What an
 * operation makes it removes, so that the directory stays as small as it was. */
#include "operation.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ENTRIES = 100 };

static char before[PATH_MAX], path[PATH_MAX];
static char entries[16384] __attribute__((aligned(8)));
static int directory;

static void prepare(void)
{
	enter_scratch_directory();
	close(create_file("file", 0));
}

/* Nothing but the file, by its own name. */
static void check(uint64_t n)
{
	DIR *here = opendir(".");
	int count = 0;

	(void)n;
	while (here && readdir(here))
		count++;
	if (here)
		closedir(here);
	if (count != 3 || access("file", F_OK) < 0)
		fail("the directory holds something else than the file");
}

static void remember_directory(void)
{
	enter_scratch_directory();
	if (!getcwd(before, sizeof before))
		fail("getcwd: %s", strerror(errno));
}

static void check_directory(uint64_t n)
{
	(void)n;
	if (!getcwd(path, sizeof path) || strcmp(path, before))
		fail("the current directory is another than before");
}

static void fill_directory(void)
{
	enter_scratch_directory();
	for (int i = 0; i < ENTRIES; i++) {
		char name[] = {'e', '0' + i / 10, '0' + i % 10, 0};
		close(create_file(name, 0));
	}
	directory = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory < 0)
		fail("cannot open the directory: %s", strerror(errno));
}

/* An entry's length is at its byte 16 (getdents64(2)). The kernel may add what "." and ".." are. */
static int count_entries(long bytes)
{
	int count = 0;

	for (long at = 0; at < bytes; count++)
		at += *(unsigned short *)(entries + at + 16);
	return count;
}

/* Once more at the end, for the answer that there is no more. */
static bool read_directory(void)
{
	long bytes = syscall(SYS_getdents64, directory, entries, sizeof entries);

	return bytes > 0 && count_entries(bytes) == ENTRIES + 2 &&
	       syscall(SYS_getdents64, directory, entries, sizeof entries) == 0 &&
	       lseek(directory, 0, SEEK_SET) == 0;
}

OPERATION(rename, "rename", 2, rename("file", "moved") == 0 && rename("moved", "file") == 0,
	  .summary = "rename(2) of a file within its directory, there and back", .source = "rename(2)",
	  .prepare = prepare, .check = check);
OPERATION(link_unlink, "link-unlink", 2, link("file", "second") == 0 && unlink("second") == 0,
	  .summary = "link(2) and unlink(2) of a second name", .source = "link(2)", .prepare = prepare,
	  .check = check);
OPERATION(symlink_unlink, "symlink-unlink", 2, symlink("file", "symbolic") == 0 && unlink("symbolic") == 0,
	  .summary = "symlink(2) and unlink(2)", .source = "symlink(2)", .prepare = prepare, .check = check);
OPERATION(mkdir_rmdir, "mkdir-rmdir", 2, mkdir("below", 0700) == 0 && rmdir("below") == 0,
	  .summary = "mkdir(2) and rmdir(2)", .source = "mkdir(2)", .prepare = prepare, .check = check);
OPERATION(getcwd, "getcwd", 1, syscall(SYS_getcwd, path, sizeof path) == (long)strlen(before) + 1,
	  .summary = "getcwd(2)", .source = "getcwd(2)", .prepare = remember_directory, .check = check_directory);
OPERATION(chdir, "chdir", 1, chdir(before) == 0, .summary = "chdir(2) to the current directory, by its whole path",
	  .source = "chdir(2)", .prepare = remember_directory, .check = check_directory);
OPERATION(getdents64, "getdents64", 3, read_directory(),
	  .summary = "a directory of 100 files read: getdents64 to the end, and lseek to the start",
	  .source = "getdents64(2)", .prepare = fill_directory);
