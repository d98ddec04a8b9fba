/* lmbench's lat_ctx: a token goes round a ring of processes, joined by pipes. Who gets it reads its whole
 * footprint before it passes it on.
 *
 * All processes are on one CPU, so every pass is a switch of context. One operation is one pass: a write, a
 * switch, a read, and reading the footprint. lmbench subtracts what that costs without the switch; here that
 * is a workload of its own, the ring of one process, and nothing is subtracted. */
#include "workload.h"
#include "partner.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static uint64_t footprint[64 * 1024 / sizeof(uint64_t)];
static int in, out, first, home[2]; /* home leads to the driver */
static uint64_t driver_turns;

static void write_footprint(void)
{
	for (size_t i = 0; i < current->size / sizeof *footprint; i++)
		footprint[i] = i + 1;
}

static void read_footprint(void)
{
	uint64_t words = current->size / sizeof *footprint, sum = 0;
	const uint64_t *word = footprint;

	OPAQUE(word);
	for (uint64_t i = 0; i < words; i++)
		sum += word[i];
	if (sum != words * (words + 1) / 2)
		fail("the footprint has another sum than before");
}

/* The token says how many passes are left, this one included. The last one goes home, from whoever has it:
 * so n operations are n passes, however many processes there are. */
static void pass(uint64_t left)
{
	if (write(left == 1 ? home[1] : out, &left, sizeof left) != sizeof left)
		fail("cannot pass the token on: %s", strerror(errno));
}

static uint64_t serve(void)
{
	uint64_t left, turns = 0;
	long got;

	close(home[0]);
	close(first);
	write_footprint(); /* not before: it would be the driver's memory, and shared */
	for (; (got = read(in, &left, sizeof left)) == sizeof left; turns++) {
		read_footprint();
		pass(left - 1);
	}
	if (got != 0)
		fail("cannot read the token: %s", strerror(errno));
	return turns;
}

static void make_pipe(int ends[2])
{
	if (pipe(ends) < 0)
		fail("pipe: %s", strerror(errno));
}

/* The driver's first pipe is the end of input of all: when it closes that, one after the other sees it. */
static void prepare(void)
{
	int ends[2];

	make_pipe(home);
	write_footprint();
	if (current->count == 1) {
		place_driver();
		out = dup(home[1]);
		return;
	}
	make_pipe(ends);
	first = ends[1];
	for (long i = 1; i < current->count; i++) {
		in = ends[0];
		if (i == current->count - 1)
			ends[1] = dup(home[1]);
		else
			make_pipe(ends);
		out = ends[1];
		start_partner(serve);
		close(in);
		close(out);
	}
	out = first;
}

static void run(uint64_t n)
{
	for (uint64_t left = n; left; left--) {
		pass(left);
		if (read(home[0], &left, sizeof left) != sizeof left)
			fail("cannot read the token: %s", strerror(errno));
		read_footprint();
		driver_turns++;
	}
}

static void check(uint64_t n)
{
	close(out);
	uint64_t turns = driver_turns + end_partners();
	if (turns != n)
		fail("the token was passed %llu times", (unsigned long long)turns);
}

#define RING(processes, kib)                                                                                \
	WORKLOAD(lat_ctx_##processes##p_##kib##k,                                                          \
		 .only_in_batches = true, .name = "lat-ctx-" #processes "p-" #kib "k",                     \
		 .summary = "one of " #processes " processes in a ring on one CPU passes a token on; each reads " #kib " KiB", \
		 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 2, .source = "lmbench 3 lat_ctx",      \
		 .count = processes, .size = (kib) * 1024, .placement = SAME_CPU,                            \
		 .series = "context switch, " #kib " KiB", .x = processes, .x_unit = "processes",            \
		 .prepare = prepare, .run = run, .check = check, .add_usage = add_partner_usage)

#define RINGS(kib)                                                                                          \
	RING(2, kib); RING(4, kib); RING(8, kib); RING(16, kib); RING(32, kib); RING(64, kib); RING(96, kib)

RINGS(0);
RINGS(16);
RINGS(64);

#define OVERHEAD(kib)                                                                                       \
	WORKLOAD(lat_ctx_overhead_##kib##k, .name = "lat-ctx-overhead-" #kib "k",                            \
		 .summary = "one process passes a token to itself through a pipe, and reads " #kib " KiB",   \
		 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 2, .source = "lmbench 3 lat_ctx, ovr", \
		 .count = 1, .size = (kib) * 1024, .prepare = prepare, .run = run, .check = check)

OVERHEAD(0);
OVERHEAD(16);
OVERHEAD(64);
