/* What the parts of the driver have of each other, and no workload sees: options, samples, copies. */
#ifndef DRIVER_H
#define DRIVER_H

#include "workload.h"

#include <stdatomic.h>
#include <sys/types.h>

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
	/* Where not 0, operations of all copies begin at so many times in 1000 s, whether those before
	 * are done or not. */
	uint64_t per_1000s, seed;
	/* Goes on after wrong answers and without any, until its time is over. */
	bool endures;
	const char *turns_file; /* what is shared with the process that it takes turns with */
	uint32_t turn_side;     /* 0: it has the first turn */
	bool plants;          /* --planted-ppm was given: print what was planted */
	uint64_t planted_ppm; /* so many millionths of the timed work are done and not reported */
	uint32_t planted_every; /* all of that in one batch, or slice, of so many: a divisor of MAX_SLICES */
};
enum { EXAMPLE_SIZE = 200 };
struct faults {
	uint64_t counts[MOST_FAULTS], first_ns[MOST_FAULTS];
	char examples[MOST_FAULTS][EXAMPLE_SIZE];
	uint64_t not_done; /* operations that were wrong, or left undone */
};
struct sample {
	uint64_t operations, elapsed_ns, total_operations;
	double planted_operations; /* or steps that took as long */
	bool is_planted_in_steps;
	uint64_t unsent; /* that were to begin and could not, as those before were not done */
	double rate;
	int64_t user_ns, system_ns;
	int64_t asked_ns; /* the part of both that workload.add_usage knows */
	struct faults faults;
	int64_t voluntary_switches, involuntary_switches, minor_faults, major_faults;
	double calibration_ms;
};
void take_sample(const struct options *options);
uint64_t time_batch(uint64_t n);
/* How long wait_until() waited for its moments since this was asked last. */
uint64_t time_waited(void);
/* What is there once, before there are copies. */
void prepare_once(void);
void prepare_workload(void);
/* Operations that count for the check and for nothing else. */
void run_untimed(uint64_t n);
/* Returns how many operations a sample takes. */
uint64_t warm_up(const struct options *options, struct sample *sample);
/* Between the two, time_batch() does as much more as the options say; the second fails where that is too
 * little to be exact. */
enum { MILLION = 1000000 };
void begin_planting(const struct options *options);
/* Sorts the numbers. */
double median(double *numbers, size_t count);
/* Returns n plus the extra operations planted with them. */
uint64_t with_planted(uint64_t n);
/* Does the planted steps that with_planted() did not add as operations. The batch of n operations
 * began at start_ns. */
void do_planted_steps(uint64_t n, uint64_t start_ns);
/* From now on, plants steps instead of operations: they take planted_ppm millionths of the time of n
 * operations. Both times are measured, so the error is at most a tenth of the share. */
void plant_in_steps(uint64_t n);
/* Records that `all` operations took elapsed_ns. */
void has_planted(uint64_t all, uint64_t elapsed_ns);
/* How many were planted since. */
double planted_operations(void);
void end_planting(const struct options *options, struct sample *sample);
/* The usage of this process and its children, and of whom it asks. */
struct usage {
	struct rusage all;
	int64_t asked_ns;
};
struct usage usage(void);
/* What was used between the two. */
void record_usage(struct sample *sample, struct usage before, struct usage after);
/* With that, checks the work and cleans up. */
void end_sample(struct sample *sample, struct usage before, struct usage after);
/* All fields but the closing brace. */
void print_sample(const struct options *options, const struct sample *sample);
/* A field of its own behind these: the times of equal parts. */
void print_slices(const uint64_t *slices_ns, uint64_t slices);

/* Those of a sample, and the bracket that ends them. */
void print_readings(const struct sample *sample);

/* faults.c */
void faults_are_timed_from(uint64_t ns);
uint64_t not_done(void);
/* For what prints no faults: fails if there are any. */
void refuse_wrong_answers(void);
void take_faults(struct faults *faults);
void add_faults(struct faults *total, const struct faults *one);
void print_faults(const struct workload *of, const struct faults *faults); /* as JSON, where there are any */

/* poisson.c */
uint64_t draw(uint64_t *state);
/* The next moment of a queue that several processes share: when an operation is due, in ns from its
 * beginning. `last_due_ns` is 0 at first; each moment goes to one process. */
uint64_t take_due_ns(_Atomic uint64_t *last_due_ns, uint64_t per_1000s, uint64_t seed);

/* cleanup.c: what a driver of several processes leaves behind. In the scratch directory, which it removes. */
void start_janitor(void);
/* Processes of this group are killed if the driver ends before it says so of group 0. */
void register_cleanup(pid_t group);
/* In a process that was forked from the driver. */
void part_from_janitor(void);
/* Returns when it has done its work. */
void dismiss_janitor(pid_t group);

/* start_barrier.c: in memory that all share, 0 at first */
void open_gate(_Atomic uint32_t *gate);
void wait_at_gate(_Atomic uint32_t *gate);

/* machine.c: whether the kernel has killed a process for its memory since that was remembered */
void remember_killed(void);
bool was_out_of_memory(void);
/* While a load runs, from when it is counted first */
void count_machine(void);
/* Several times meanwhile. */
void look_at_machine(void);
void count_machine_again(void);
void print_machine(void);
/* Of so many operations, which read and wrote so much of files: what the device had to. */
void print_disk_bytes(uint64_t moved_bytes, uint64_t operations);

/* command_job.c: what it executes */
extern char **command_argv;
extern const struct workload command_job;

/* load.c */
struct job {
	const struct workload *test;
	long count;  /* per user */
	char **argv; /* of a command */
};
struct load_options {
	int users, tests;
	struct job *jobs; /* of each test */
	uint64_t seed;
	uint64_t think_ns; /* how long a user waits between two jobs */
	/* Where not 0, jobs of all users begin at so many times in 1000 s, whether those before are done or
	 * not: at moments of chance, a Poisson process. */
	uint64_t jobs_per_1000s;
	bool is_endless; /* until it is killed: see beside.c */
	/* Where not 0, each user does jobs for so long, round and round, instead of each once. */
	uint64_t period_ns;
	/* Where disk jobs work besides or instead of the current directory, and a tree of the user's. */
	const char *disk_places[255];
	int disk_place_count;
	const char *disk_tree;
};
void take_load(const struct load_options *options);
/* The numbers of the tests, each as often as it has jobs, in an order of this user's own. */
int *shuffle_jobs(const struct load_options *options, int number);
/* Each test once, in the directory that it then works in. */
int *prepare_jobs(const struct load_options *options);

/* beside.c: the command `beside`, and what others that go on for ever have of it */
int beside(int argc, char **argv);
/* In the current directory. */
void open_activity_board(void);
void activity_is_ready(void);
/* One more was done, and rightly. */
void tell_activity(void);
/* Does the first operation of the workload, as copy `number`, in a directory of its own. */
void begin_activity(int number);

/* ask.c: the command `ask` */
int ask(int argc, char **argv);

/* restart_server.c: the command `revive` */
int revive(int argc, char **argv);

/* delegate.c: who does the work where this variable names its socket */
#define CLIENT "WEIGH_CLIENT"
int delegate(const char *path);

/* load_options.c: the command `load` */
int load_command(int argc, char **argv);

/* comm_options.c: the commands `comm` and `comm-peer` */
int comm(int argc, char **argv);
int comm_peer(int argc, char **argv);

/* copies.c */
void take_copies(const struct options *options);

/* turns.c */
void take_turns(const struct options *options);

/* whole.c */
/* Call this before the next three. */
void watch_whole_process(void);
/* The number of threads of this process, its descendants, and their orphans; 0 if unknown. */
uint32_t count_tasks(void);
/* The CPU time of the tasks that were counted last, ended children included: call one right before the
 * measured code, the other right after it. */
uint64_t whole_cpu_ns_before(void);
uint64_t whole_cpu_ns_after(void);

/* help.c */
extern const char help[];

/* main.c */
/* As fail(), with an exit status that tells that it is not to blame. */
_Noreturn void fail_orphaned(const char *message);
_Noreturn void usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The value of an option. */
uint64_t number(const char *option, const char *text, uint64_t least, uint64_t most);
const struct workload *find_workload(const char *name);
/* A parent's habits must not reach the workload. */
void reset_inherited_state(void);
/* What there is to clean up is this process's from now on. */
void own_cleanup(void);
void remove_scratch_directory(void);
/* One more, in another place; removed with the first. Gives its path. */
const char *make_further_scratch_directory(const char *place);
/* What was entered last stays: it is inside of what another process removes. */
void keep_scratch_directory(void);

/* histogram.c */
uint64_t histogram_bucket(uint64_t ns);
void histogram_add(uint64_t ns);
void histogram_print(void); /* as JSON: [lower end of a bucket, count], the empty ones left out */
enum { HISTOGRAM_BUCKETS = (64 - 6 + 1) * 64 };
void histogram_share(_Atomic uint64_t buckets[HISTOGRAM_BUCKETS]); /* adds this process's counts */
void histogram_take(_Atomic uint64_t buckets[HISTOGRAM_BUCKETS]);  /* in place of its own */

/* times.c: what parts of the operations took, of all copies together */
void make_times(void); /* before there are copies */
/* From now on, or no longer. */
void keep_times(bool are);
void print_times(void); /* the sample's field `times`, where there are any; replaces the histogram */

/* placement.c: pins the process that calls it; fails where that cannot be. */
void stay_on(int cpu);

#endif
