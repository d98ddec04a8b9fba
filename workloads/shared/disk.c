/* What the sub-tests of disks share: where they work, on how much, and what their files hold. */
#include "disk.h"
#include "workload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

long disk_kib_option;
const char *disk_common_file, *disk_tree;

long disk_kib(void)
{
	return disk_kib_option ? disk_kib_option : DISK_DEFAULT_KIB;
}

const char *disk_file(const char *name)
{
	static char path[64];

	snprintf(path, sizeof path, "weigh-%d.%s", (int)getpid(), name);
	return path;
}

void number_block(char *block, long number)
{
	memcpy(block, &number, sizeof number);
}

void expect_block(const char *block, long number)
{
	if (memcmp(block, &number, sizeof number))
		fail("block %ld of a file does not hold what was written to it", number);
}

void make_disk_common_file(const char *path)
{
	char block[DISK_BLOCK] = {0};
	int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (file < 0)
		fail("cannot create %s: %s", path, strerror(errno));
	for (long i = 0; i < disk_kib(); i++) {
		number_block(block, i);
		if (write(file, block, sizeof block) != sizeof block)
			fail("cannot write %s: %s", path, strerror(errno));
	}
	close(file);
}

void name_in_tree(char name[64], int directory, int file)
{
	if (file < 0)
		snprintf(name, 64, "directory-%02d", directory);
	else
		snprintf(name, 64, "directory-%02d/file-%03d", directory, file);
}

void make_disk_tree(const char *path)
{
	char name[64], whole[4096];

	if (mkdir(path, 0755) < 0)
		fail("cannot make %s: %s", path, strerror(errno));
	for (int i = 0; i < TREE_DIRECTORIES + TREE_FILES; i++) {
		int file = i - TREE_DIRECTORIES;

		name_in_tree(name, i % TREE_DIRECTORIES, file < 0 ? -1 : file);
		snprintf(whole, sizeof whole, "%s/%s", path, name);
		int made = file < 0 ? mkdir(whole, 0777) : creat(whole, 0644);
		if (made < 0)
			fail("cannot make %s: %s", whole, strerror(errno));
		if (file >= 0)
			close(made);
	}
}
