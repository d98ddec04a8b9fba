/* The contract between a workload and the driver (driver/): all that a workload's file has to know.
 *
 * A workload is one C file in a directory that names its group. It registers itself with
 * WORKLOAD(), and the build finds it by a wildcard: there is no list to edit. What forks or executes its
 * own image is in its group's small/: it runs in a build of the driver that has little else to copy. What
 * several workloads use is in shared/.
 */
#ifndef WORKLOAD_H
#define WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

/* Where the two processes of a workload run. */
enum placement { ANYWHERE, SAME_CPU, CROSS_CPU };

enum { MOST_TIMES = 4 };

struct workload {
	const char *name;
	const char *summary;       /* what one operation is, in one line */
	const char *unit;          /* what the rate is in: ops/s, lpm, KBps, MWIPS */
	double units_per_op;       /* rate = operations * units_per_op / seconds */
	double syscalls_per_op;    /* of all processes together */
	const char *syscalls_note; /* optional: where that number depends on the machine */
	const char *source;        /* who defined this workload */
	const char *group;         /* set by WORKLOAD() */
	bool is_in_small;          /* runs in the small image; set by WORKLOAD() */

	/* Parameters, for a file that registers several workloads. Read them as current->size. */
	long size;
	long count;

	enum placement placement; /* set by PLACED_WORKLOADS() */

	/* What each operation reads is not in the page cache when it begins; its name ends in @cold. */
	bool is_cold;

	/* Optional: the user may choose the size of the files that it works on, "own" or "common": the
	 * latter where it reads parts of one that is made beforehand for all. */
	const char *files;

	/* run(1) does not do what each of many operations does, so they cannot be timed one by one. */
	bool only_in_batches;

	/* When run() has returned, another process of it may still be at work, and would be in the turn of the
	 * other arm. */
	bool leaves_work;

	/* Its processes run at the same time, on as many CPUs as there are: it is not kept to one. */
	bool parallel;

	/* For a point of a sweep: what the curve is called, and where on it the point lies. Workloads
	 * with the same series are drawn as one curve over x. */
	const char *series; /* e.g. "memory-latency, stride 64 B" */
	double x;           /* e.g. 65536 */
	const char *x_unit; /* e.g. "bytes" */

	/* Optional: the kind of server that it asks, such as "database". It is told the address, and is no
	 * workload of a machine without one. */
	const char *needs;

	/* Optional: kinds of wrong answers, which it counts with count_wrong() and goes on; NULL ends them. With
	 * any there is no result, but what is known of them is told. */
	const char *const *faults;

	/* Optional: what it tells the times of, with took(). */
	const char *times[MOST_TIMES];
	/* Optional: a sample is at least so long, as fewer operations would tell little. */
	long least_ms;

	/* Optional; before everything and before there are copies, whose processes have what it leaves in
	 * memory. */
	void (*prepare_once)(void);
	void (*prepare)(void);     /* optional; before everything, not timed */
	void (*run)(uint64_t n);   /* n operations, and nothing else */
	void (*check)(uint64_t n); /* optional; n is the sum over all calls of run() */
	void (*cleanup)(void);     /* optional; files in the scratch directory need none */

	/* Optional: add what a process that lives on has used; getrusage(2) knows reaped children only. */
	void (*add_usage)(struct rusage *total);

	/* Optional: tells what else it found, by print_reading(). */
	void (*tell)(void);

	/* Optional: main() of this executable, when started with argv[0] = "@name". */
	int (*exec_self)(int argc, char **argv);
};

/* A pointer per workload, in a section of its own: the linker makes the table. */
#define WORKLOAD(id, ...)                                                                \
	static const struct workload workload_##id = {                                   \
		.group = GROUP, .is_in_small = IN_SMALL, __VA_ARGS__};                   \
	static const struct workload *const workload_at_##id                             \
		__attribute__((used, section("workloads"))) = &workload_##id

/* Two workloads of two processes each, NAME@same-cpu and NAME@cross-cpu: placement is a factor, not
 * noise. start_partner() in partner.h pins both. */
#define PLACED_WORKLOADS(id, base, ...)                                                          \
	WORKLOAD(id##_same_cpu, .name = base "@same-cpu", .placement = SAME_CPU, __VA_ARGS__);   \
	WORKLOAD(id##_cross_cpu, .name = base "@cross-cpu", .placement = CROSS_CPU, __VA_ARGS__)

/* The workload that this process runs. */
extern const struct workload *current;

/* Which of several copies this process is, from 0, and how many there are. */
extern int copy_number, copy_count;

/* CLOCK_MONOTONIC */
uint64_t now_ns(void);

/* Waits until a moment of that clock, and gives how long. Until the moment, the time is not the operations':
 * who comes late is. */
uint64_t wait_until(uint64_t moment_ns);

/* So long took one of what times[which] names; it counts if it was in the timed part. */
void took(int which, uint64_t ns);
/* Whether this is the timed part. */
bool times_count(void);

/* Prints "NAME: message", cleans up and exits 1: a workload that went wrong has no rate. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* For workload.tell: a value of this sample. */
void print_reading(const char *name, double value, const char *unit, const char *better);

/* An operation went wrong in this way, one of current->faults; `what` is an example of it. It counts for
 * nothing. */
enum { MOST_FAULTS = 13 };
void count_wrong(int kind, const char *what);
/* So many operations were not done, as the time was over. */
void leave_undone(uint64_t operations);
/* Whether the workload is to go on after wrong answers and without any, until its time is over. */
bool endures(void);
bool time_is_over(void);

/* Makes a new empty directory in the current one and enters it.
 * It is removed, with all that is in it, after the sample and after fail(). Asked for again, a process stays
 * there: several workloads share it. */
void enter_scratch_directory(void);

/* Creates a file of `size` zero bytes; it must not exist. Returns its descriptor. */
int create_file(const char *path, long size);

/* Pins the process that calls it, by the workload's placement; they fail where that cannot be. */
void place_driver(void);
void place_partner(void);

/* Waits for one child and fails unless it exited with `status`. */
void expect_exit(int pid, int status);

/* Keeps a value from the optimiser, which has to assume that it was read and changed here. */
#define OPAQUE(integer) __asm__ volatile("" : "+r"(integer))

/* A call stays a call, as if it were compiled separately. */
#if defined(__has_attribute)
#if __has_attribute(noipa)
#define SEPARATE __attribute__((noipa))
#endif
#endif
#ifndef SEPARATE
#define SEPARATE __attribute__((noinline))
#endif

#endif
