/* The contract between the driver (main.c, sample.c) and a workload.
 *
 * A workload is one C file in a directory that names its group. It registers itself with
 * WORKLOAD(), and the build finds it by a wildcard: there is no list to edit. What forks or executes its
 * own image is in process/small/: it runs in a build of the driver that has little else to copy.
 */
#ifndef KERNEL_H
#define KERNEL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

/* Where the two processes of a workload run. */
enum placement { ANYWHERE, SAME_CPU, CROSS_CPU };

struct workload {
	const char *name;
	const char *summary;       /* what one operation is, in one line */
	const char *unit;          /* what the rate is in: lps, lpm, KBps, MWIPS */
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

	/* run(1) does not do what each of many operations does, so they cannot be timed one by one. */
	bool only_in_batches;

	/* For a point of a sweep: what the curve is called, and where on it the point lies. Workloads
	 * with the same series are drawn as one curve over x. */
	const char *series; /* e.g. "memory-latency, stride 64 B" */
	double x;           /* e.g. 65536 */
	const char *x_unit; /* e.g. "bytes" */

	void (*prepare)(void);     /* optional; before everything, not timed */
	void (*run)(uint64_t n);   /* n operations, and nothing else */
	void (*check)(uint64_t n); /* optional; n is the sum over all calls of run() */
	void (*cleanup)(void);     /* optional; files in the scratch directory need none */

	/* Optional: add what a process that lives on has used; getrusage(2) knows reaped children only. */
	void (*add_usage)(struct rusage *total);

	/* Optional: main() of this executable, when started with argv[0] = "@name". */
	int (*reenter)(int argc, char **argv);
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

/* Prints "NAME: message", cleans up and exits 1: a workload that went wrong has no rate. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Makes a new empty directory in the current one and enters it.
 * It is removed, with all that is in it, after the sample and after fail(). */
void enter_scratch_directory(void);

/* Creates a file of `size` zero bytes; it must not exist. Returns its descriptor. */
int create_file(const char *path, long size);

/* placement.c: pins the process that calls it; they fail where that cannot be. */
void stay_on(int cpu);
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

/* sample.c */
enum { MAX_SLICES = 100 };
struct options {
	uint64_t target_ns;
	uint64_t operations; /* 0: calibrate */
	uint64_t warm_up_ns; /* how long that lasts at least */
	bool slices;         /* print the times of the timed part's batches, the first MAX_SLICES */
	bool count_instructions;
	bool latencies;
	int copies;
	bool plants;          /* --planted-ppm was given: print what was planted */
	uint64_t planted_ppm; /* so many millionths of the timed work are done and not reported */
};
struct sample {
	uint64_t operations, elapsed_ns, total_operations, planted_operations;
	double rate;
	int64_t user_ns, system_ns;
	int64_t voluntary_switches, involuntary_switches, minor_faults, major_faults;
	double calibration_ms;
};
void take_sample(const struct options *options);
uint64_t now_ns(void);
uint64_t time_batch(uint64_t n);
/* Prepares, and returns how many operations a sample takes. */
uint64_t warm_up(const struct options *options, struct sample *sample);
/* Between the two, time_batch() does as much more as the options say; the second fails where that is too
 * little to be exact. */
void begin_planting(const struct options *options);
void end_planting(const struct options *options, struct sample *sample);
/* The usage of this process and its children. */
struct rusage usage(void);
/* With what was used between the two, checks the work and cleans up. */
void end_sample(struct sample *sample, struct rusage before, struct rusage after);
/* All fields but the closing brace. */
void print_sample(const struct options *options, const struct sample *sample);

/* copies.c */
void take_copies(const struct options *options);

/* main.c */
/* What there is to clean up is this process's from now on. */
void take_charge(void);
void remove_scratch_directory(void);

/* histogram.c */
void histogram_add(uint64_t ns);
void histogram_print(void); /* as JSON: [lower end of a bucket, count], the empty ones left out */

#endif
