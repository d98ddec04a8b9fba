/* A sample whose timed part takes turns with that of another process, on one CPU, every eighth of a
 * millisecond.
 *
 * What disturbs a machine lasts about a millisecond and more, so it meets both in the same way, and the
 * ratio of two slices that lie next to each other hardly shows it. Both processes map one file, in which
 * the turn is handed over by a futex. Each holds a lock on its own byte of that file for as long as it
 * lives: so one that waits notices that the other is gone, also where that is in another PID namespace. */
#include "driver.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* What the two share: a file of this length, zero at first. */
struct turns {
	_Atomic uint32_t holder; /* whose turn it is */
	_Atomic uint32_t ready[2];
	_Atomic uint32_t cpu;    /* on which both are, from 1; 0 where it is not known */
	_Atomic uint32_t stack;  /* offset of both stacks within a page */
	_Atomic uint32_t slices; /* of each; the first process says how many */
	/* One operation in so many is planted; 0: none. A median would miss work in one slice of three. So
	 * each slice has a multiple of this number, or steps if it is shorter. */
	_Atomic uint32_t multiple;
	_Atomic bool in_steps; /* the first process decides it for both */
};

/* A turn is looked for again after so long, and the other may keep it for so long. */
enum { LOOK_AGAIN_MS = 100, LONGEST_TURN_MS = 60000 };
/* So many slices at least, also where one operation is longer than a slice should be. */
enum { LEAST_SLICES = 8 };
/* A pair has no more slices after so long: a slice that waits for others, such as for room in the kernel's
 * queue of audit records, may take as long as ten thousand that do not. */
enum { LONGEST_PAIR_MS = 2000 };
/* After the other had the CPU, caches and predictors are its own: this share of a slice is not timed. */
enum { WARM_UP_SHARE = 8 };
/* From how much longer a part the length of a slice is told. */
enum { CALIBRATED_SLICES = 16 };
/* From so many operations on, the head of a slice is compared with the rest. */
enum { LEAST_IN_SLICE = 64 };
#define SLICE_NS 125000ull
enum { PAGE_BYTES = 4096 };

static struct turns *turns;
static int file;
static uint32_t side;

static void lock_own_byte(void)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = side, .l_len = 1};

	if (fcntl(file, F_OFD_SETLK, &lock) < 0)
		fail("cannot lock its side of the file of --turns: %s", strerror(errno));
}

static bool other_is_there(void)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = !side, .l_len = 1};

	return fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* Until the word is no longer `value`. Looks whether the other lives where it should have come by now. */
static void wait_while(_Atomic uint32_t *word, uint32_t value, const _Atomic uint32_t *has_come)
{
	const struct timespec look_again = {.tv_nsec = LOOK_AGAIN_MS * 1000000l};
	uint64_t deadline = now_ns() + LONGEST_TURN_MS * 1000000ull;

	while (atomic_load(word) == value) {
		syscall(SYS_futex, word, FUTEX_WAIT, value, &look_again, NULL, 0);
		if (atomic_load(word) != value)
			break;
		if ((!has_come || atomic_load(has_come)) && !other_is_there())
			fail_orphaned("the second process of the pair ended too early");
		if (now_ns() > deadline)
			fail_orphaned("the second process of the pair kept its turn for a minute");
	}
}

/* What the other's turn has taught the branch predictor must not be left in it: its way through the kernel is
 * another, and a process that has to go against that may do so for all of a slice, one misprediction in each
 * system call (docs/statistics.md). So a few thousand branches are taken and not taken by chance. Of the
 * other ways to forget, none is open to every process on every CPU. */
#define BY_CHANCE(r)                                                                                      \
	do {                                                                                              \
		if ((r) & 1) {                                                                            \
			(r) = (r) >> 1 ^ 0xd800000000000000u;                                             \
			/* Or the compiler would do without a branch. */                                  \
			__asm__ volatile("" : "+r"(r));                                                   \
		} else {                                                                                  \
			(r) >>= 1;                                                                        \
			__asm__ volatile("" : "+r"(r));                                                   \
		}                                                                                         \
	} while (0)
#define TIMES_8(what) what; what; what; what; what; what; what; what
static void forget_branches(void)
{
	enum { ROUNDS = 4 };
	static uint64_t chance = 0x9e3779b97f4a7c15u;
	uint64_t r = chance;

	for (int round = 0; round < ROUNDS; round++) {
		TIMES_8(TIMES_8(TIMES_8(TIMES_8(BY_CHANCE(r)))));
	}
	chance = r;
}

static void set(_Atomic uint32_t *word, uint32_t value)
{
	atomic_store(word, value);
	syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void wait_for_turn(void)
{
	wait_while(&turns->holder, !side, NULL);
}

static void hand_over(void)
{
	set(&turns->holder, !side);
}

/* What this process uses in its partner's turns, where its own slices do not show it. */
static struct {
	uint64_t cpu_ns;
	uint64_t handing_over_ns; /* of that, what the calls themselves take at each hand-over */
	uint32_t tasks;           /* the most at any hand-over; 0 where they cannot be known */
	bool is_unknown;
} outside;

/* Measures the CPU time of a hand-over's calls, which a filter or audit rules make slower: the least of some
 * tries, on a separate word for which nobody waits. */
static void measure_handing_over(void)
{
	enum { TRIES = 16 };
	static _Atomic uint32_t word;

	outside.handing_over_ns = UINT64_MAX;
	for (int i = 0; i < TRIES; i++) {
		uint64_t before = whole_cpu_ns_before();
		set(&word, 1);
		syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0);
		uint64_t used = whole_cpu_ns_after() - before;
		if (used < outside.handing_over_ns)
			outside.handing_over_ns = used;
	}
}

/* Hands over and waits for the next turn. */
static void stand_by(void)
{
	uint32_t tasks = count_tasks();
	uint64_t before = whole_cpu_ns_before();

	hand_over();
	wait_for_turn();
	uint64_t after = whole_cpu_ns_after();
	/* A task that ended unreaped takes its time with it, so `after` may be less. */
	if (after > before + outside.handing_over_ns)
		outside.cpu_ns += after - before - outside.handing_over_ns;
	outside.is_unknown |= !tasks;
	if (tasks > outside.tasks)
		outside.tasks = tasks;
}

static uint32_t offset_in_page(const void *address)
{
	return (uintptr_t)address % PAGE_BYTES;
}

/* Both go to the CPU that the first is on, before they start processes of their own, which stay there too. */
static void share_cpu(const struct options *options)
{
	side = options->turn_side;
	file = open(options->turns_file, O_RDWR | O_CLOEXEC);
	if (file < 0)
		fail("cannot open %s: %s", options->turns_file, strerror(errno));
	if (lseek(file, 0, SEEK_END) < (off_t)sizeof *turns)
		fail("%s is shorter than the %zu bytes that --turns needs", options->turns_file, sizeof *turns);
	turns = mmap(NULL, sizeof *turns, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (turns == MAP_FAILED)
		fail("cannot map %s: %s", options->turns_file, strerror(errno));
	lock_own_byte();
	if (options->plants && options->planted_ppm)
		turns->multiple = MILLION / options->planted_ppm;
	if (side == 0) {
		turns->stack = offset_in_page(__builtin_frame_address(0));
		set(&turns->cpu, (uint32_t)sched_getcpu() + 1);
	} else
		wait_while(&turns->cpu, 0, &turns->cpu);
	stay_on((int)turns->cpu - 1);
}

/* Both are prepared. */
static void meet(void)
{
	set(&turns->ready[side], 1);
	wait_while(&turns->ready[!side], 0, &turns->ready[!side]);
}

static void add_usage(struct rusage *sum, const struct rusage *before, const struct rusage *after)
{
	struct timeval used;

	timersub(&after->ru_utime, &before->ru_utime, &used);
	timeradd(&sum->ru_utime, &used, &sum->ru_utime);
	timersub(&after->ru_stime, &before->ru_stime, &used);
	timeradd(&sum->ru_stime, &used, &sum->ru_stime);
	sum->ru_nvcsw += after->ru_nvcsw - before->ru_nvcsw;
	sum->ru_nivcsw += after->ru_nivcsw - before->ru_nivcsw;
	sum->ru_minflt += after->ru_minflt - before->ru_minflt;
	sum->ru_majflt += after->ru_majflt - before->ru_majflt;
}

/* By how much more CPU time than its share of the slice the untimed head of each slice took. */
static struct {
	double excess_ns[MAX_SLICES];
	uint32_t count;
} heads;

/* The median, as one operation of a head may be a long one. Where a slice has few operations, that is the
 * rule, and what is done once after 200 us is done in the timed part as well. */
static double head_excess_ns(uint64_t n)
{
	if (n < LEAST_IN_SLICE)
		return 0;
	return median(heads.excess_ns, heads.count);
}

/* Times a slice after its untimed head. Work that is done once after the partner's turn (a clock is
 * looked at, a cache is flushed) falls into the head. */
static uint64_t time_slice(uint64_t n, struct usage *used)
{
	uint64_t head = n / WARM_UP_SHARE + 1, start = whole_cpu_ns_before();

	run_untimed(head);
	uint64_t head_ns = whole_cpu_ns_after() - start;
	double planted = planted_operations();
	struct usage before = usage();
	start = whole_cpu_ns_before();
	keep_times(true);
	uint64_t elapsed_ns = time_batch(n);
	keep_times(false);
	uint64_t slice_cpu_ns = whole_cpu_ns_after() - start;
	struct usage after = usage();
	add_usage(&used->all, &before.all, &after.all);
	/* Nothing is planted in a head. */
	double all = n + planted_operations() - planted;
	heads.excess_ns[heads.count++] = head_ns - (double)slice_cpu_ns * head / all;
	return elapsed_ns;
}

/* Per slice, beside the CPU time of a slice itself. */
static void print_outside(const struct sample *sample, uint32_t slices)
{
	double cpu_ns = (double)(sample->user_ns + sample->system_ns) / slices;
	double outside_ns = (double)outside.cpu_ns / slices + head_excess_ns(sample->operations / slices);

	printf(",\"outside\":{\"ns_per_slice\":%.1f,\"slice_cpu_ns\":%.1f,\"tasks\":%u}",
	       outside_ns > 0 ? outside_ns : 0, cpu_ns,
	       outside.is_unknown ? 0 : outside.tasks);
}

/* How many operations a slice has, told in the first turn. */
static uint64_t first_turn(const struct options *options, struct sample *sample)
{
	struct options calibrated = *options;

	calibrated.target_ns = CALIBRATED_SLICES * SLICE_NS;
	uint64_t n = warm_up(&calibrated, sample) / CALIBRATED_SLICES;
	if (side == 0)
		turns->in_steps = n < turns->multiple;
	if (turns->in_steps)
		plant_in_steps(n ? n : 1);
	uint64_t multiple = turns->multiple && !turns->in_steps ? turns->multiple : 1;
	return n > multiple ? (n + multiple - 1) / multiple * multiple : multiple;
}

/* As many as fill the target with slices of this length, and whole periods of what is planted. */
static uint32_t choose_slices(const struct options *options, uint64_t slice_ns)
{
	uint64_t slices = options->target_ns / (slice_ns ? slice_ns : 1);

	slices = slices < LEAST_SLICES ? LEAST_SLICES : slices > MAX_SLICES ? MAX_SLICES : slices;
	return (uint32_t)(slices + (MAX_SLICES - slices) % options->planted_every);
}

/* All slices of this process. True if the other, which has the last slice, ended the pair before all that
 * were chosen: it is this one's turn then, and the other waits for none. */
static bool time_slices(const struct options *options, uint64_t n, uint64_t *slice_ns, struct usage *used)
{
	const uint64_t end = now_ns() + LONGEST_PAIR_MS * 1000000ull;

	for (uint32_t slice = 0; slice < turns->slices; slice++) {
		if (slice)
			stand_by();
		if (slice >= turns->slices)
			return true;
		forget_branches();
		slice_ns[slice] = time_slice(n, used);
		if (side == 1 && now_ns() > end && slice + 1 >= LEAST_SLICES &&
		    (slice + 1) % options->planted_every == 0)
			turns->slices = slice + 1;
	}
	return false;
}

__attribute__((noinline)) static void take_turns_here(const struct options *options)
{
	uint64_t slice_ns[MAX_SLICES], n;
	struct usage used = {0};
	struct sample sample = {0};

	prepare_workload();
	watch_whole_process();
	meet();
	wait_for_turn();
	n = first_turn(options, &sample);
	measure_handing_over();
	if (side == 0)
		turns->slices = choose_slices(options, time_batch(n));
	hand_over();
	begin_planting(options);
	wait_for_turn();
	if (!time_slices(options, n, slice_ns, &used)) {
		hand_over();
		/* What follows is not to run beside the last slice of the other. */
		if (side == 0)
			wait_for_turn();
	}
	for (uint32_t slice = 0; slice < turns->slices; slice++)
		sample.elapsed_ns += slice_ns[slice];
	sample.operations = turns->slices * n;
	end_planting(options, &sample);
	end_sample(&sample, (struct usage){0}, used);
	print_sample(options, &sample);
	print_slices(slice_ns, turns->slices);
	print_outside(&sample, turns->slices);
	print_times();
	printf("}\n");
	if (fflush(stdout) != 0)
		fail("cannot write the result: %s", strerror(errno));
	if (side == 0)
		hand_over();
}

/* The kernel draws a random stack offset for each process. The offset decides which cache lines a buffer on
 * the stack shares with other data. This alone makes two processes of `stat` differ by 0.5 %. So both
 * processes of a pair use the offset of the first one; each pair has a new one. */
void take_turns(const struct options *options)
{
	prepare_once();
	share_cpu(options);
	uint32_t too_high = offset_in_page(__builtin_frame_address(0)) - turns->stack;
	volatile char *unused = __builtin_alloca(PAGE_BYTES + too_high % PAGE_BYTES);
	*unused = 0;
	take_turns_here(options);
	/* Or a compiler may end this frame before the call. */
	__asm__ volatile("" : : "r"(unused) : "memory");
}
