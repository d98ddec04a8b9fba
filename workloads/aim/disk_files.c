/* Files of blocks, of 1 KiB by default, read and written, at random or in order: as they come from the page
 * cache, synced, with O_SYNC, and with O_DIRECT.
 *
 * Where re-aim starts a shell for sync(1) of every file system there is, its file alone is synced here, by
 * fsync(2): otherwise a user waits for what all others wrote, and for strangers. A file is unlinked while it
 * is open, so what a kill leaves is at most the file of one job, in the scratch directory. */
#include "disk.h"
#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* As O_DIRECT wants it, also where the device's blocks are 4 KiB; those cannot do with blocks of 1 KiB, but
 * with a load's --block-kib. */
static char block[DISK_MOST_BLOCK_KIB * 1024] __attribute__((aligned(4096)));

static void prepare_common(void)
{
	enter_scratch_directory();
	/* As long as the process lives, it is the same. */
	if (access(disk_common_file(), F_OK) < 0)
		make_disk_common_file(disk_common_file());
}

static int open_file(const char *path, int flags)
{
	int file = open(path, flags | O_CLOEXEC, 0600);

	if (file < 0)
		fail("cannot open %s%s: %s", path, flags & O_DIRECT ? " with O_DIRECT" : "", strerror(errno));
	return file;
}

static void close_file(int file)
{
	if (close(file) < 0)
		fail("close: %s", strerror(errno));
}

static void unlink_file(const char *path)
{
	if (unlink(path) < 0)
		fail("cannot remove %s: %s", path, strerror(errno));
}

static void sync_file(int file, bool is_wanted)
{
	if (is_wanted && fsync(file) < 0)
		fail("fsync: %s", strerror(errno));
}

static _Noreturn void fail_transfer(const char *what, long done)
{
	if (done < 0 && errno == EINVAL)
		fail("cannot %s: O_DIRECT in blocks of %ld bytes is not for this device or file system", what,
		     disk_block());
	fail("cannot %s: %s", what, done < 0 ? strerror(errno) : "fewer bytes than asked for");
}

static void write_block(int file, long number)
{
	number_block(block, number);
	long done = write(file, block, disk_block());
	if (done != disk_block())
		fail_transfer("write", done);
	disk_bytes += (uint64_t)disk_block();
}

static void read_block(int file, long number)
{
	long done = read(file, block, disk_block());

	if (done != disk_block())
		fail_transfer("read", done);
	disk_bytes += (uint64_t)disk_block();
	expect_block(block, number);
}

static void seek_block(int file, long number)
{
	if (lseek(file, number * disk_block(), SEEK_SET) != number * disk_block())
		fail("lseek: %s", strerror(errno));
}

static void write_blocks(int file, long count)
{
	for (long i = 0; i < count; i++)
		write_block(file, i);
}

/* A file, written through the page cache and closed, as those need it first that use it afterwards. */
static void make_file(const char *path, long count, bool syncs)
{
	int file = open_file(path, O_WRONLY | O_CREAT | O_TRUNC);

	write_blocks(file, count);
	sync_file(file, syncs);
	close_file(file);
}

static void evict_where_cold(int file, bool is_to_be_read)
{
	if (disk_job_is_cold() && is_to_be_read)
		evict_file(file);
}

/* What all users of a mix read was evicted before they began; one process by itself would find it there from
 * its second operation on. */
static void evict_common_where_cold(int file)
{
	if (current->is_cold)
		evict_file(file);
}

static void use_at_random(const char *name, int flags, bool syncs, bool writes)
{
	const char *path = disk_file(name);
	uint32_t state = 1;

	make_file(path, disk_blocks(), syncs);
	int file = open_file(path, O_RDWR | flags);
	evict_where_cold(file, !writes);
	for (long i = 0; i < disk_blocks(); i++) {
		long number = next_number(&state) % disk_blocks();

		seek_block(file, number);
		writes ? write_block(file, number) : read_block(file, number);
	}
	unlink_file(path);
	sync_file(file, syncs);
	close_file(file);
}

static void read_in_order(const char *name)
{
	const char *path = disk_file(name);

	make_file(path, disk_blocks(), true);
	int file = open_file(path, O_RDONLY);
	evict_where_cold(file, true);
	seek_block(file, 0);
	for (long i = 0; i < disk_blocks(); i++)
		read_block(file, i);
	sync_file(file, true);
	unlink_file(path);
	close_file(file);
}

static long seek_common(int file)
{
	long start = disk_common_start();

	if (start)
		seek_block(file, start);
	return start;
}

static void read_common(int flags, bool syncs)
{
	int file = open_file(disk_common_file(), O_RDONLY | flags);

	evict_common_where_cold(file);
	long start = seek_common(file);
	for (long i = 0; i < disk_blocks(); i++)
		read_block(file, start + i);
	sync_file(file, syncs);
	close_file(file);
}

static void advise(int file, long from, long blocks, int advice)
{
	int error = posix_fadvise(file, from * disk_block(), blocks * disk_block(), advice);

	if (error)
		fail("posix_fadvise: %s", strerror(error));
}

/* From the device: what is read was taken out of the page cache just before. */
static void read_from_device(bool at_random)
{
	int file = open_file(disk_common_file(), O_RDONLY);
	long start = disk_common_start();
	uint32_t state = 1;

	advise(file, 0, 0, POSIX_FADV_DONTNEED);
	advise(file, 0, 0, at_random ? POSIX_FADV_RANDOM : POSIX_FADV_SEQUENTIAL);
	if (!at_random)
		seek_block(file, start);
	for (long i = 0; i < disk_blocks(); i++) {
		long number = at_random ? next_number(&state) % disk_common_blocks() : start + i;

		if (at_random)
			seek_block(file, number);
		read_block(file, number);
	}
	close_file(file);
}

/* What was written is evicted by none but its writer. */
static void prepare_synced_common(void)
{
	prepare_common();
	int file = open_file(disk_common_file(), O_RDONLY);
	evict_file(file);
	close_file(file);
}

static void write_in_order(const char *name, int flags, bool syncs, long count)
{
	const char *path = disk_file(name);
	int file = open_file(path, O_WRONLY | O_CREAT | O_TRUNC | flags);

	sync_file(file, syncs);
	write_blocks(file, count);
	unlink_file(path);
	sync_file(file, syncs);
	close_file(file);
}

static void copy_common(const char *name, int flags, bool syncs, long count)
{
	const char *path = disk_file(name);
	int from = open_file(disk_common_file(), O_RDONLY | (flags & O_DIRECT));
	int to = open_file(path, O_WRONLY | O_CREAT | O_TRUNC | flags);

	sync_file(to, syncs);
	evict_common_where_cold(from);
	long start = seek_common(from);
	for (long i = 0; i < count; i++) {
		read_block(from, start + i);
		write_block(to, i);
	}
	unlink_file(path);
	sync_file(to, syncs);
	close_file(to);
	close_file(from);
}

static long half(void)
{
	return disk_blocks() > 1 ? disk_blocks() / 2 : 1;
}

static void write_synced_at_random(void)
{
	const char *path = disk_file("sync_disk_rw");
	uint32_t state = 1;

	make_file(path, half(), false);
	int file = open_file(path, O_WRONLY | O_SYNC);
	for (long i = 0; i < half(); i++) {
		long number = next_number(&state) % half();

		seek_block(file, number);
		write_block(file, number);
	}
	unlink_file(path);
	close_file(file);
}

/* A block is read, and the one that follows it written. */
static void update_synced(void)
{
	const char *path = disk_file("sync_disk_update");
	uint32_t state = 1;

	make_file(path, disk_blocks(), false);
	int file = open_file(path, O_RDWR | O_SYNC);
	for (long i = 0; i < half(); i++) {
		long number = disk_blocks() > 1 ? next_number(&state) % (disk_blocks() - 1) : 0;

		seek_block(file, number);
		read_block(file, number);
		write_block(file, number + 1);
	}
	unlink_file(path);
	close_file(file);
}

#define NOTE "with files of 10 KiB"
#define OWN .files = "own", .prepare = enter_scratch_directory
#define COMMON .files = "common", .prepare = prepare_common
#define DISK(id, job, units, calls, ...) \
	SUB_TEST(id, (disk_next_directory(), job), units, "KiB", calls, .syscalls_note = NOTE, __VA_ARGS__)

#define FAMILY(prefix, flags, syncs, how, twice)                                                    \
	DISK(prefix##rr, use_at_random(#prefix "rr", flags, syncs, false), 10, 36 + twice, OWN,     \
	     .summary = "10 KiB written, and 10 times 1 KiB read at random" how);                   \
	DISK(prefix##rw, use_at_random(#prefix "rw", flags, syncs, true), 10, 36 + twice, OWN,      \
	     .summary = "10 KiB written, and 10 times 1 KiB written at random" how);                \
	DISK(prefix##wrt, write_in_order(#prefix "wrt", flags, syncs, disk_blocks()), 10, 14 + twice, \
	     OWN, .summary = "10 KiB written by 1 KiB" how);                                        \
	DISK(prefix##cp, copy_common(#prefix "cp", flags, syncs, disk_blocks()), 10, 26 + twice,    \
	     COMMON, .summary = "10 KiB copied by 1 KiB" how ", of a file made before")

FAMILY(disk_, 0, true, ", with fsync", 2);
FAMILY(disk_b, 0, false, ", in the page cache", 0);
FAMILY(disk_dio_, O_DIRECT, true, ", with O_DIRECT", 2);

DISK(disk_rd, read_in_order("disk_rd"), 10, 29, OWN,
     .summary = "10 KiB written, and read in order by 1 KiB, with fsync");
DISK(disk_brd, read_common(0, false), 10, 12, COMMON,
     .summary = "10 KiB read in order by 1 KiB, of a file made before");
DISK(disk_ahead, read_from_device(false), 10, 15, .files = "common", .prepare = prepare_synced_common,
     .summary = "10 KiB read in order by 1 KiB, with read-ahead, of a file that is not in the page cache");
DISK(disk_random, read_from_device(true), 10, 24, .files = "common", .prepare = prepare_synced_common,
     .summary = "10 times 1 KiB read at random, without read-ahead, of a file that is not in the page cache");
DISK(disk_dio_rd, read_common(O_DIRECT, true), 10, 13, COMMON,
     .summary = "10 KiB read in order by 1 KiB, with O_DIRECT, of a file made before");

#define COLD(id, units, calls, files, words) \
	COLD_SUB_TEST(id, units, "KiB", calls, .syscalls_note = NOTE, files, .summary = words TAKEN_OUT)

COLD(disk_rr, 10, 40, OWN, "10 KiB written, and 10 times 1 KiB of it read at random");
COLD(disk_rd, 10, 31, OWN, "10 KiB written, and read in order by 1 KiB");
COLD(disk_cp, 10, 30, COMMON, "10 KiB copied by 1 KiB, with fsync, of a file made before");
COLD(disk_brr, 10, 38, OWN,
     "10 KiB written, and 10 times 1 KiB of it read at random, without further fsync");
COLD(disk_brd, 10, 14, COMMON, "10 KiB read in order by 1 KiB, of a file made before");
COLD(disk_bcp, 10, 28, COMMON, "10 KiB copied by 1 KiB, of a file made before");

DISK(sync_disk_rw, write_synced_at_random(), 5, 21, OWN,
     .summary = "5 KiB written, and 5 times 1 KiB written at random with O_SYNC");
DISK(sync_disk_wrt, write_in_order("sync_disk_wrt", O_SYNC, false, half()), 5, 9, OWN,
     .summary = "5 KiB written by 1 KiB, with O_SYNC");
DISK(sync_disk_cp, copy_common("sync_disk_cp", O_SYNC, false, half()), 5, 16, COMMON,
     .summary = "5 KiB copied by 1 KiB, of a file made before, with O_SYNC");
COLD(sync_disk_cp, 5, 18, COMMON, "5 KiB copied by 1 KiB with O_SYNC, of a file made before");
DISK(sync_disk_update, update_synced(), 5, 31, OWN,
     .summary = "10 KiB written, and 5 times 1 KiB read at random and the next one written with O_SYNC");
