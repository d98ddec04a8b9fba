/* What locks are made of: waking nobody, and a semaphore that is free. */
#include "operation.h"

#include <linux/futex.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint32_t word;
static sem_t semaphore;

static void prepare(void)
{
	if (sem_init(&semaphore, 0, 1) < 0)
		fail("sem_init: %s", strerror(errno));
}

static void check(uint64_t n)
{
	int value;

	(void)n;
	if (sem_getvalue(&semaphore, &value) < 0 || value != 1)
		fail("the semaphore has another value than at the start");
}

OPERATION(futex_wake, "futex-wake", 1, syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 0,
	  .summary = "futex(FUTEX_WAKE) with no waiter", .source = "will-it-scale futex1");
OPERATION(futex_wait, "futex-wait", 1,
	  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0) == -1 && errno == EAGAIN,
	  .summary = "futex(FUTEX_WAIT) for a value that has changed already", .source = "will-it-scale futex2");
OPERATION(semaphore, "semaphore", 0, sem_wait(&semaphore) == 0 && sem_post(&semaphore) == 0,
	  .summary = "sem_wait and sem_post of a POSIX semaphore that is free: no system call",
	  .source = "sem_overview(7)", .prepare = prepare, .check = check);
