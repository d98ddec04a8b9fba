/* Directories: read, files made in them, second names given and taken. */
#include "job.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* With "." and "..", 100 entries. re-aim reads /bin, as long as it is on that machine. */
enum { ENTRIES = 100, NAMES = ENTRIES - 2, READS = 10000 };

#define DIRECTORY "dir_rtns_1.d"

static void name_entry(char name[32], int i)
{
	snprintf(name, 32, DIRECTORY "/file-%02d", i);
}

/* All are names of one file: quicker to make, and the same to read. */
static void prepare_directory(void)
{
	char first[32], other[32];

	enter_scratch_directory();
	name_entry(first, 0);
	if (mkdir(DIRECTORY, 0700) < 0)
		fail("cannot make a directory: %s", strerror(errno));
	close(create_file(first, 0));
	for (int i = 1; i < NAMES; i++) {
		name_entry(other, i);
		if (link(first, other) < 0)
			fail("cannot make a link: %s", strerror(errno));
	}
}

static void remove_directory(void)
{
	char name[32];

	for (int i = 0; i < NAMES; i++) {
		name_entry(name, i);
		unlink(name);
	}
	rmdir(DIRECTORY);
}

static void job_dir_rtns_1(void)
{
	DIR *directory = opendir(DIRECTORY);
	int ends = 0;

	if (!directory)
		fail("opendir: %s", strerror(errno));
	for (int entries = 0; entries < READS;) {
		if (readdir(directory)) {
			entries++;
		} else {
			ends++;
			rewinddir(directory);
		}
	}
	closedir(directory);
	if (ends != READS / ENTRIES - 1)
		fail("the directory ended %d times", ends);
}

enum { FILES = 1000 };

static void job_creat_clo(void)
{
	for (int i = 0; i < FILES; i++) {
		int file = creat("creat_clo", 0600);

		if (file < 0 || close(file) < 0)
			fail("creat and close: %s", strerror(errno));
	}
	if (unlink("creat_clo") < 0)
		fail("unlink: %s", strerror(errno));
}

enum { LINKS = 7, TURNS = 9 };

#define FILE_NAME "link_test"

static const char *const links[LINKS] = {"link_test.1", "link_test.2", "link_test.3", "link_test.4",
					 "link_test.5", "link_test.6", "link_test.7"};

static void make_link(const char *name)
{
	if (link(FILE_NAME, name) < 0)
		fail("link: %s", strerror(errno));
}

static void take_link(const char *name)
{
	if (unlink(name) < 0)
		fail("unlink: %s", strerror(errno));
}

static void job_link_test(void)
{
	int file = creat(FILE_NAME, 0600);

	if (file < 0)
		fail("creat: %s", strerror(errno));
	for (int i = 0; i < LINKS; i++)
		make_link(links[i]);
	for (int turn = 0; turn < TURNS; turn++)
		for (int i = 0; i < LINKS; i++) {
			take_link(links[i]);
			make_link(links[i]);
		}
	for (int i = 0; i < LINKS; i++)
		take_link(links[i]);
	take_link(FILE_NAME);
	if (close(file) < 0)
		fail("close: %s", strerror(errno));
}

SUB_TEST(dir_rtns_1, job_dir_rtns_1(), READS, "entries", 301, .prepare = prepare_directory,
	 .cleanup = remove_directory, .summary = "10000 entries read of a directory that has 100");
SUB_TEST(creat_clo, job_creat_clo(), FILES, "files", 2001, .prepare = enter_scratch_directory,
	 .summary = "1000 times creat and close of the same file, and one unlink");
SUB_TEST(link_test, job_link_test(), TURNS * LINKS, "links", 143, .prepare = enter_scratch_directory,
	 .summary = "a file made, 7 links, 63 times unlink and link of one of them, and all taken away");
