/* lmbench's lat_sem: two processes take turns by System V semaphores, one semop(2) of two parts each.
 *
 * Semaphores outlive processes, and go at once when they are removed, under those who use them. So they are
 * put into an IPC namespace of our own, which ends with us. Where that is not allowed, the driver removes
 * them, or, when it alone was killed, the partner; of both killed, as by Ctrl-C to weigh, they stay. */
#include "workload.h"
#include "partner.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <unistd.h>

enum { DRIVERS_TURN, PARTNERS_TURN, COUNT };

static int set = -1;
static uint64_t turns;

static void remove_set(void)
{
	if (set >= 0)
		semctl(set, 0, IPC_RMID);
	set = -1;
}

static void remove_set_and_end(int signal)
{
	(void)signal;
	remove_set();
	_exit(1);
}

/* Waits for one semaphore and, in the same call, gives the other. False where they have been removed. */
static bool exchange(int wanted, int given)
{
	struct sembuf both[] = {{.sem_num = wanted, .sem_op = -1}, {.sem_num = given, .sem_op = 1}};

	while (semop(set, both, 2) < 0) {
		if (errno == EIDRM || errno == EINVAL)
			return false;
		if (errno != EINTR)
			fail("semop: %s", strerror(errno));
	}
	return true;
}

static uint64_t serve(void)
{
	pid_t driver = getppid();
	uint64_t taken = 0;

	signal(SIGTERM, remove_set_and_end);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != driver)
		remove_set_and_end(SIGTERM);
	while (exchange(PARTNERS_TURN, DRIVERS_TURN))
		taken++;
	return taken;
}

static void prepare(void)
{
	unsigned short values[COUNT] = {[DRIVERS_TURN] = 1};

	unshare(CLONE_NEWIPC);
	set = semget(IPC_PRIVATE, COUNT, 0600);
	if (set < 0 || semctl(set, 0, SETALL, values) < 0)
		fail("semget or semctl: %s", strerror(errno));
	start_partner(serve);
}

static void run(uint64_t n)
{
	for (turns += n; n; n--)
		if (!exchange(DRIVERS_TURN, PARTNERS_TURN))
			fail("the semaphores are gone");
	exchange(DRIVERS_TURN, DRIVERS_TURN); /* the last turn has come back */
}

static void check(uint64_t n)
{
	remove_set();
	uint64_t taken = end_partners();
	if (taken != n || turns != n)
		fail("the partner had %llu turns", (unsigned long long)taken);
}

PLACED_WORKLOADS(lat_sem, "lat-sem",
	 .summary = "two processes give each other the turn and get it back by System V semaphores",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 2, .source = "lmbench 3 lat_sem",
	 .prepare = prepare, .run = run, .check = check, .cleanup = remove_set, .add_usage = add_partner_usage);
