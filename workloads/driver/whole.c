/* The CPU time of a whole process: its threads, its descendants, and orphans that its launcher inherited.
 *
 * A turn hands over one thread. Whatever else belongs to the process may work in the turn of the other
 * process of its pair, and the slices of neither would show whose work that was (docs/statistics.md). */
#include "driver.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A workload has a handful. */
enum { MOST_PROCESSES = 256, PATH_SIZE = 64 };

/* Kept open, so that a look at a process of one thread opens no file: rules of auditing may count that. */
static int own_tasks = -1, own_children = -1, siblings = -1;
static bool is_visible;
/* The tree below this process and its launcher at the last count, without this process. */
static pid_t others[MOST_PROCESSES];
static int other_count;

static int open_children(pid_t process, pid_t thread)
{
	char path[PATH_SIZE];

	snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)process, (int)thread);
	return open(path, O_RDONLY | O_CLOEXEC);
}

void watch_whole_process(void)
{
	/* In a namespace of its own a process may have a parent that it cannot see; then the first process
	 * there gets what others leave. */
	pid_t parent = getppid() ? getppid() : 1;

	own_tasks = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	own_children = open_children(getpid(), getpid());
	siblings = open_children(parent, parent);
	is_visible = own_tasks >= 0 && own_children >= 0 && siblings >= 0;
}

/* How many threads a directory /proc/PID/task has; 0 where the process is gone. */
static uint32_t threads_of(const struct stat *task)
{
	return task->st_nlink > 2 ? (uint32_t)task->st_nlink - 2 : 0;
}

/* Adds the processes that a file `children` names. Returns false where they cannot all be known. */
static bool add_children(int file)
{
	char text[MOST_PROCESSES * 12];
	ssize_t length = pread(file, text, sizeof text - 1, 0);

	if (length < 0)
		return errno == ESRCH; /* it ended meanwhile */
	if (length == sizeof text - 1)
		return false;
	text[length] = 0;
	for (char *at = text, *end;; at = end) {
		pid_t process = (pid_t)strtol(at, &end, 10);
		if (end == at)
			return true;
		if (process == getpid())
			continue;
		if (other_count == MOST_PROCESSES)
			return false;
		others[other_count++] = process;
	}
}

/* Adds the children of each thread of a process but the first one's. */
static bool add_children_of_threads(pid_t process)
{
	char path[PATH_SIZE];
	bool are_known = true;

	snprintf(path, sizeof path, "/proc/%d/task", (int)process);
	DIR *tasks = opendir(path);
	if (!tasks)
		return errno == ENOENT;
	for (struct dirent *entry; are_known && (entry = readdir(tasks));) {
		pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);
		if (thread <= 0 || thread == process)
			continue;
		int children = open_children(process, thread);
		are_known = children >= 0 ? add_children(children) : errno == ENOENT;
		if (children >= 0)
			close(children);
	}
	closedir(tasks);
	return are_known;
}

/* Counts the threads of one of `others`, and adds its children to them. */
static bool count_other(pid_t process, uint32_t *tasks)
{
	char path[PATH_SIZE];
	struct stat task;

	snprintf(path, sizeof path, "/proc/%d/task", (int)process);
	if (stat(path, &task) < 0)
		return errno == ENOENT;
	uint32_t threads = threads_of(&task);
	*tasks += threads;
	int children = open_children(process, process);
	if (children < 0)
		return errno == ENOENT;
	bool are_known = add_children(children);
	close(children);
	return are_known && (threads <= 1 || add_children_of_threads(process));
}

uint32_t count_tasks(void)
{
	struct stat task;

	other_count = 0;
	if (!is_visible || fstat(own_tasks, &task) < 0)
		return 0;
	uint32_t tasks = threads_of(&task);
	bool are_known = add_children(own_children) && add_children(siblings);
	if (tasks > 1)
		are_known = are_known && add_children_of_threads(getpid());
	/* The list grows while it is walked. */
	for (int i = 0; are_known && i < other_count; i++)
		are_known = count_other(others[i], &tasks);
	return are_known ? tasks : 0;
}

/* The CPU time of a process with all its threads: clock_getcpuclockid(3) without its checks. */
static uint64_t process_ns(pid_t process)
{
	struct timespec used;
	clockid_t clock = (clockid_t)(~(unsigned)process << 3 | 2);

	/* The time of an ended process is in the usage of the process that waited for it. */
	return clock_gettime(clock, &used) < 0 ? 0 : used.tv_sec * 1000000000ull + used.tv_nsec;
}

static uint64_t timeval_ns(struct timeval time)
{
	return time.tv_sec * 1000000000ull + time.tv_usec * 1000ull;
}

/* The CPU time of all other processes, reaped children included. */
static uint64_t others_ns(void)
{
	struct rusage children;

	getrusage(RUSAGE_CHILDREN, &children);
	uint64_t all = timeval_ns(children.ru_utime) + timeval_ns(children.ru_stime);
	for (int i = 0; i < other_count; i++)
		all += process_ns(others[i]);
	return all;
}

static uint64_t own_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return used.tv_sec * 1000000000ull + used.tv_nsec;
}

/* The own clock is read last before and first after the measured code, so reading the others is excluded. */
uint64_t whole_cpu_ns_before(void)
{
	uint64_t others = others_ns();

	return others + own_ns();
}

uint64_t whole_cpu_ns_after(void)
{
	uint64_t own = own_ns();

	return others_ns() + own;
}
