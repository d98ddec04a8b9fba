/* What the sub-tests of disks share: where they work, on how much, and what their files hold. */
#include "disk.h"
#include "workload.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

long disk_kib_option, disk_common_kib_option, disk_block_kib_option;
bool disk_is_cold;
const char *disk_tree;
char **disk_tree_names;
uint32_t disk_tree_name_count;
const char *disk_directories[DISK_MOST_DIRECTORIES], *disk_common_files[DISK_MOST_DIRECTORIES];
int disk_directory_count;
uint64_t disk_bytes;

static int directory; /* of the job */
static uint64_t jobs;

bool disk_job_is_cold(void)
{
	return disk_is_cold || current->is_cold;
}

static long block_kib(void)
{
	return disk_block_kib_option ? disk_block_kib_option : 1;
}

static long whole_blocks(long kib)
{
	return (kib + block_kib() - 1) / block_kib();
}

long disk_block(void)
{
	return block_kib() * 1024;
}

long disk_blocks(void)
{
	return whole_blocks(disk_kib_option ? disk_kib_option : DISK_DEFAULT_KIB);
}

long disk_common_blocks(void)
{
	long blocks = whole_blocks(disk_common_kib_option);

	return blocks > disk_blocks() ? blocks : disk_blocks();
}

long disk_common_start(void)
{
	/* Fibonacci hashing: far from where the job before began, and the same in every run. */
	uint64_t spread = ++jobs * 0x9e3779b97f4a7c15ull + (uint64_t)directory;

	return (spread >> 20) % (uint64_t)(disk_common_blocks() - disk_blocks() + 1);
}

void disk_begin_with_directory(int number)
{
	directory = disk_directory_count ? number % disk_directory_count : 0;
	jobs = (uint64_t)number << 32;
}

void disk_next_directory(void)
{
	if (disk_directory_count)
		directory = (directory + 1) % disk_directory_count;
}

const char *disk_file(const char *name)
{
	static char path[4096];
	const char *where = disk_directory_count ? disk_directories[directory] : NULL;

	snprintf(path, sizeof path, "%s%sweigh-%d.%s", where ? where : "", where ? "/" : "", (int)getpid(), name);
	return path;
}

const char *disk_common_file(void)
{
	const char *file = disk_common_files[directory];

	return file ? file : "tmpa.common";
}

void number_block(char *block, long number)
{
	memcpy(block, &number, sizeof number);
}

void expect_block(const char *block, long number)
{
	if (memcmp(block, &number, sizeof number))
		fail("block %ld of a file differs from what was written", number);
}

void make_disk_common_file(const char *path)
{
	char *block = calloc(1, (size_t)disk_block());
	int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (file < 0)
		fail("cannot create %s: %s", path, strerror(errno));
	if (!block)
		fail("no memory for a block of %ld bytes", disk_block());
	for (long i = 0; i < disk_common_blocks(); i++) {
		number_block(block, i);
		if (write(file, block, (size_t)disk_block()) != disk_block())
			fail("cannot write %s: %s", path, strerror(errno));
	}
	free(block);
	if (disk_is_cold)
		evict_file(file);
	close(file);
}

/* Some file systems have their files nowhere else. What others read meanwhile comes back, so not every page
 * need be gone. */
static void expect_evicted(int file)
{
	struct stat status;
	long page = sysconf(_SC_PAGESIZE);

	if (fstat(file, &status) < 0 || status.st_size == 0)
		return;
	size_t pages = (size_t)((status.st_size + page - 1) / page);
	unsigned char *resident = malloc(pages);
	void *map = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, file, 0);
	size_t left = 0;

	if (!resident || map == MAP_FAILED || mincore(map, (size_t)status.st_size, resident) < 0)
		fail("cannot find out which pages of a file are in the page cache: %s", strerror(errno));
	for (size_t i = 0; i < pages; i++)
		left += resident[i] & 1;
	if (left == pages)
		fail("a file cannot be dropped from the page cache, as on a file system in memory: nothing is "
		     "cold there");
	munmap(map, (size_t)status.st_size);
	free(resident);
}

void evict_file(int file)
{
	static bool is_known_to_work[DISK_MOST_DIRECTORIES];

	if (fsync(file) < 0)
		fail("fsync: %s", strerror(errno));
	int error = posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
	if (error)
		fail("posix_fadvise: %s", strerror(error));
	/* Once in each directory, as each may be on another device: it takes system calls of its own. */
	if (!is_known_to_work[directory])
		expect_evicted(file);
	is_known_to_work[directory] = true;
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

enum { MOST_NAMES = 100000, DESCRIPTORS = 20 };

static int keep_name(const char *path, const struct stat *status, int kind, struct FTW *place)
{
	(void)status, (void)place;
	if (kind == FTW_F) {
		disk_tree_names[disk_tree_name_count] = strdup(path);
		if (!disk_tree_names[disk_tree_name_count++])
			fail("no memory for the names of the tree");
	}
	return disk_tree_name_count == MOST_NAMES;
}

void read_disk_tree(const char *path)
{
	disk_tree_names = malloc(MOST_NAMES * sizeof *disk_tree_names);
	if (!disk_tree_names || nftw(path, keep_name, DESCRIPTORS, FTW_PHYS) < 0)
		fail("cannot read the tree %s: %s", path, strerror(errno));
	if (disk_tree_name_count == 0)
		fail("the tree %s has no files", path);
}
