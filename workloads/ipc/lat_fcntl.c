/* lmbench's lat_fcntl: two processes take turns by nothing but record locks.
 *
 * There are three locks, and whose turn it is holds two of them. To give the turn away, a process lets go of
 * the lock that the other waits for, and waits for the one that the other holds. With two locks a process
 * could take back the lock that it has just released, before the other wakes up. */
#include "workload.h"
#include "partner.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int file, ready[2];
static uint64_t turns;
static volatile bool *is_over; /* shared */

static void lock(short type, int number)
{
	struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = number, .l_len = 1};

	if (fcntl(file, F_SETLKW, &range) < 0)
		fail("fcntl: %s", strerror(errno));
}

/* At turn t the driver lets go of given(t), for which the partner waits, and waits for returned(t). At the
 * start it holds 0 and 2. */
static int given(uint64_t turn)
{
	return (3 - turn % 3) % 3;
}

static int returned(uint64_t turn)
{
	return (given(turn) + 1) % 3;
}

static uint64_t serve(void)
{
	uint64_t taken = 0;

	lock(F_WRLCK, returned(0));
	if (write(ready[1], "", 1) != 1)
		fail("write: %s", strerror(errno));
	for (;; taken++) {
		lock(F_WRLCK, given(taken));
		if (*is_over)
			return taken;
		lock(F_UNLCK, returned(taken));
	}
}

static void prepare(void)
{
	char byte;

	enter_scratch_directory();
	file = create_file("locks", 0);
	is_over = mmap(NULL, sizeof *is_over, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (is_over == MAP_FAILED || pipe(ready) < 0)
		fail("mmap or pipe: %s", strerror(errno));
	lock(F_WRLCK, 0);
	lock(F_WRLCK, 2);
	start_partner(serve);
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		fail("the partner did not start");
}

static void run(uint64_t n)
{
	for (; n; n--) {
		lock(F_UNLCK, given(turns));
		lock(F_WRLCK, returned(turns));
		turns++;
	}
}

static void check(uint64_t n)
{
	*is_over = true;
	lock(F_UNLCK, given(turns));
	uint64_t taken = end_partners();
	if (taken != n)
		fail("the partner had %llu turns", (unsigned long long)taken);
}

PLACED_WORKLOADS(lat_fcntl, "lat-fcntl",
	 .summary = "two processes give each other the turn and get it back by record locks of a file",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 4, .source = "lmbench 3 lat_fcntl",
	 .prepare = prepare, .run = run, .check = check, .add_usage = add_partner_usage);
