/* A tree of 24 directories and 321 files that is searched, and in which files are made and removed; a tree
 * that was given is searched in its place. */
#include "disk.h"
#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TREE "disk_src.d"

enum { LOOKS = 57, FILES = 43, STEPS = LOOKS + FILES };

static void prepare_tree(void)
{
	enter_scratch_directory();
	/* As long as the process lives, it is the same. */
	if (!disk_tree && access(TREE, F_OK) < 0)
		make_disk_tree(TREE);
}

static void look_at(int i)
{
	char name[64];
	struct stat found;
	int file = i * 5 % TREE_FILES;

	name_in_tree(name, file % TREE_DIRECTORIES, file);
	if (stat(name, &found) < 0 || !S_ISREG(found.st_mode))
		fail("cannot find %s in the tree: %s", name, strerror(errno));
}

static void look_in_given_tree(uint32_t number)
{
	const char *name = disk_tree_names[number % disk_tree_name_count];
	struct stat found;

	/* A tree may be in use: its files may go. */
	if (stat(name, &found) < 0 && errno != ENOENT)
		fail("cannot look at %s: %s", name, strerror(errno));
}

/* Users may share the tree, so the files are named after the process. */
static void make_and_remove(int i, int process)
{
	char name[64];

	snprintf(name, sizeof name, "directory-%02d/new-%d", i % TREE_DIRECTORIES, process);
	int file = creat(name, 0600);
	if (file < 0 || close(file) < 0 || unlink(name) < 0)
		fail("cannot make and remove %s: %s", name, strerror(errno));
}

static void job_disk_src(void)
{
	int order[STEPS], home = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int process = getpid();
	uint32_t state = 1;
	/* Other files in each job, or a few would be known by then. */
	static uint32_t places = 1;

	if (home < 0 || chdir(disk_tree ? disk_tree : TREE) < 0)
		fail("cannot enter the tree: %s", strerror(errno));
	for (int i = 0; i < STEPS; i++)
		order[i] = i;
	for (int i = 0; i < 5 * STEPS; i++) {
		int other = next_number(&state) % STEPS, kept = order[i % STEPS];
		order[i % STEPS] = order[other];
		order[other] = kept;
	}
	for (int i = 0; i < STEPS; i++)
		if (order[i] >= LOOKS)
			make_and_remove(order[i], process);
		else if (disk_tree_name_count)
			look_in_given_tree(next_number(&places));
		else
			look_at(order[i]);
	if (fchdir(home) < 0)
		fail("cannot leave the tree: %s", strerror(errno));
	close(home);
}

SUB_TEST(disk_src, job_disk_src(), 75, "files", 191, .prepare = prepare_tree,
	 .summary = "57 stat and 43 times creat, close and unlink, in no order in a tree of 24 directories");
