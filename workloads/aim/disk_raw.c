/* Blocks of a device without a file system, with O_DIRECT: a loop device over a file in the scratch
 * directory, which is read and written without the page cache too, where its file system can. It ends with
 * the process, whatever ends that (LO_FLAGS_AUTOCLEAR). Needs root. */
#include "disk.h"
#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { TRIES = 1000 };

static char block[DISK_MOST_BLOCK_KIB * 1024] __attribute__((aligned(4096)));
static int device = -1;
static pid_t owner;

static int make_backing_file(void)
{
	const char *path = disk_file("disk_raw");
	int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (file < 0 || unlink(path) < 0)
		fail("cannot make %s: %s", path, strerror(errno));
	for (long i = 0; i < disk_blocks(); i++) {
		number_block(block, i);
		if (write(file, block, disk_block()) != disk_block())
			fail("cannot write %s: %s", path, strerror(errno));
	}
	/* Whole pages: a device of less than one has no blocks. */
	if (ftruncate(file, (disk_blocks() * disk_block() + 4095) / 4096 * 4096) < 0 || fsync(file) < 0)
		fail("cannot write %s to the disk: %s", path, strerror(errno));
	return file;
}

/* Another process may take the free one in between. */
static int open_free_device(int control, int backing)
{
	struct loop_config config = {.fd = backing, .info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO};

	for (int tries = 0; tries < TRIES; tries++) {
		char path[32];
		int number = ioctl(control, LOOP_CTL_GET_FREE);

		if (number < 0)
			fail("there is no free loop device: %s", strerror(errno));
		snprintf(path, sizeof path, "/dev/loop%d", number);
		int found = open(path, O_RDWR | O_CLOEXEC | O_DIRECT);
		if (found < 0)
			fail("cannot open %s: %s", path, strerror(errno));
		if (ioctl(found, LOOP_CONFIGURE, &config) == 0)
			return found;
		if (errno != EBUSY)
			fail("cannot set up %s: %s (Linux 5.8 or newer)", path, strerror(errno));
		close(found);
	}
	fail("all loop devices are in use");
}

static void prepare_device(void)
{
	enter_scratch_directory();
	if (owner == getpid())
		return;
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	if (control < 0)
		fail("a raw device is a loop device, which needs root and /dev/loop-control: %s", strerror(errno));
	int backing = make_backing_file();
	device = open_free_device(control, backing);
	close(backing);
	close(control);
	owner = getpid();
}

static void end_device(void)
{
	if (device >= 0)
		close(device);
	device = -1;
	owner = 0;
}

static void seek_block(long number)
{
	if (lseek(device, number * disk_block(), SEEK_SET) != number * disk_block())
		fail("lseek: %s", strerror(errno));
}

static void use_block(long number, bool writes)
{
	if (writes)
		number_block(block, number);
	long size = disk_block();
	if ((writes ? write(device, block, size) : read(device, block, size)) != size)
		fail("cannot %s block %ld of the device: %s", writes ? "write" : "read", number, strerror(errno));
	if (!writes)
		expect_block(block, number);
	disk_bytes += (uint64_t)disk_block();
}

static void use_raw(bool at_random, bool writes)
{
	uint32_t state = 1;

	if (!at_random)
		seek_block(0);
	for (long i = 0; i < disk_blocks(); i++) {
		long number = at_random ? next_number(&state) % disk_blocks() : i;

		if (at_random)
			seek_block(number);
		use_block(number, writes);
	}
	if (writes && fsync(device) < 0)
		fail("fsync: %s", strerror(errno));
}

#define RAW(id, at_random, writes, calls, words)                                                           \
	SUB_TEST(id, use_raw(at_random, writes), 10, "KiB", calls, .files = "own",                       \
		 .prepare = prepare_device,                                                                \
		 .cleanup = end_device, .syscalls_note = "with files of 10 KiB",                           \
		 .summary = "10 KiB of a loop device " words " by 1 KiB, with O_DIRECT")

RAW(disk_raw_rr, true, false, 20, "read at random");
RAW(disk_raw_rw, true, true, 21, "written at random, with fsync,");
RAW(disk_raw_rd, false, false, 11, "read in order");
RAW(disk_raw_wrt, false, true, 12, "written in order, with fsync,");
