/* Descriptors: opened, doubled, asked, locked, watched. */
#include "operation.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

static int file, first_free, watcher;

static void prepare(void)
{
	enter_scratch_directory();
	file = create_file("file", 4096);
	first_free = next_descriptor();
}

static bool closes(int fd)
{
	return fd == first_free && close(fd) == 0;
}

static int open_beneath(void)
{
	static const struct open_how how = {.flags = O_RDONLY | O_CLOEXEC, .resolve = RESOLVE_BENEATH};

	return syscall(SYS_openat2, AT_FDCWD, "file", &how, sizeof how);
}

static bool lock(int type)
{
	return fcntl(file, F_SETLK, &(struct flock){.l_type = type}) == 0;
}

/* Locked once more, the file is found locked by who opens it again. */
static void check_lock(uint64_t n)
{
	struct flock found = {.l_type = F_RDLCK}; /* would it get that? */
	int other = open("file", O_RDWR | O_CLOEXEC);

	(void)n;
	if (!lock(F_WRLCK) || fcntl(other, F_OFD_GETLK, &found) < 0 || found.l_type != F_WRLCK)
		fail("the lock does not lock");
}

static void check_flock(uint64_t n)
{
	int other = open("file", O_RDWR | O_CLOEXEC);

	(void)n;
	if (flock(file, LOCK_EX) < 0 || flock(other, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
		fail("the lock does not lock");
}

static void prepare_watcher(void)
{
	prepare();
	watcher = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (watcher < 0)
		fail("inotify_init1: %s", strerror(errno));
}

/* Each watch that is removed makes one event, which is read: else the queue would fill. */
static bool watch_and_forget(void)
{
	struct inotify_event event;
	int watch = inotify_add_watch(watcher, "file", IN_MODIFY);

	return watch > 0 && inotify_rm_watch(watcher, watch) == 0 &&
	       read(watcher, &event, sizeof event) == sizeof event && event.wd == watch &&
	       event.mask == IN_IGNORED;
}

OPERATION(openat2, "openat2-close", 2, closes(open_beneath()),
	  .summary = "openat2(RESOLVE_BENEATH) and close of a file in the current directory",
	  .source = "openat2(2)", .prepare = prepare);
OPERATION(dup_close, "dup-close", 2, closes(dup(file)), .summary = "dup(2) and close(2)",
	  .source = "will-it-scale dup1", .prepare = prepare);
OPERATION(fcntl, "fcntl", 1, (fcntl(file, F_GETFL) & O_ACCMODE) == O_RDWR, .summary = "fcntl(F_GETFL)",
	  .source = "fcntl(2)", .prepare = prepare);
OPERATION(lock, "fcntl-lock", 2, lock(F_WRLCK) && lock(F_UNLCK),
	  .summary = "fcntl(F_SETLK): a whole file locked and unlocked", .source = "will-it-scale lock1",
	  .prepare = prepare, .check = check_lock);
OPERATION(flock, "flock", 2, flock(file, LOCK_EX) == 0 && flock(file, LOCK_UN) == 0,
	  .summary = "flock(2): locked and unlocked", .source = "flock(2)", .prepare = prepare, .check = check_flock);
OPERATION(inotify, "inotify", 3, watch_and_forget(),
	  .summary = "inotify_add_watch, inotify_rm_watch, and read of the event that it makes",
	  .source = "inotify(7)", .prepare = prepare_watcher);
