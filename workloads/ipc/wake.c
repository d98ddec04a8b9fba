/* Two processes that wake each other: by a futex, by an eventfd that is read, and by one that epoll waits
 * for before it is read. */
#include "pingpong.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* For the futex: numbers lie in shared memory, and `filled` tells that there is a new one. */
static struct mailbox {
	_Atomic uint32_t filled; /* how often, modulo 2^32 */
	uint64_t number;
} *boxes; /* one for each side */
static uint32_t taken; /* how often this side has */

static int event[2], queue[2];

static bool pass_by_futex(enum side to, uint64_t number)
{
	boxes[to].number = number;
	atomic_fetch_add(&boxes[to].filled, 1);
	return syscall(SYS_futex, &boxes[to].filled, FUTEX_WAKE, 1, NULL, NULL, 0) >= 0;
}

/* Waits also for what is there already, which the kernel tells with EAGAIN: so the number of system calls
 * does not depend on who was first. */
static bool take_by_futex(enum side own, uint64_t *number)
{
	do {
		if (syscall(SYS_futex, &boxes[own].filled, FUTEX_WAIT, taken, NULL, NULL, 0) < 0 &&
		    errno != EAGAIN && errno != EINTR)
			return false;
	} while (atomic_load(&boxes[own].filled) == taken);
	taken++;
	*number = boxes[own].number;
	return true;
}

static void prepare_futex(void)
{
	static const struct way way = {pass_by_futex, take_by_futex};

	boxes = mmap(NULL, 2 * sizeof *boxes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (boxes == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	start_pingpong(&way);
}

/* A counter of 0 is none yet, so it is one more than the number. */
static bool pass_by_event(enum side to, uint64_t number)
{
	number++;
	return write(event[to], &number, sizeof number) == sizeof number;
}

static bool take_by_event(enum side own, uint64_t *number)
{
	if (read(event[own], number, sizeof *number) != sizeof *number)
		return false;
	--*number;
	return true;
}

static bool take_by_epoll(enum side own, uint64_t *number)
{
	struct epoll_event ready;
	int found;

	do
		found = epoll_wait(queue[own], &ready, 1, -1); /* which a signal always ends */
	while (found < 0 && errno == EINTR);
	return found == 1 && ready.data.fd == event[own] && take_by_event(own, number);
}

static void open_events(void)
{
	for (int side = DRIVER; side <= PARTNER; side++) {
		event[side] = eventfd(0, EFD_CLOEXEC);
		if (event[side] < 0)
			fail("eventfd: %s", strerror(errno));
	}
}

static void prepare_event(void)
{
	static const struct way way = {pass_by_event, take_by_event};

	open_events();
	start_pingpong(&way);
}

static void prepare_epoll(void)
{
	static const struct way way = {pass_by_event, take_by_epoll};

	open_events();
	for (int side = DRIVER; side <= PARTNER; side++) {
		struct epoll_event wanted = {.events = EPOLLIN, .data.fd = event[side]};

		queue[side] = epoll_create1(EPOLL_CLOEXEC);
		if (queue[side] < 0 || epoll_ctl(queue[side], EPOLL_CTL_ADD, event[side], &wanted) < 0)
			fail("epoll: %s", strerror(errno));
	}
	start_pingpong(&way);
}

PLACED_WORKLOADS(futex, "futex-ping-pong", .summary = "two processes wake each other by a futex",
		 .syscalls_per_op = 4, .syscalls_note = "now and then one more, when a wake-up comes late",
		 .source = "futex(2); perf bench futex as the idea", .prepare = prepare_futex, PINGPONG);
PLACED_WORKLOADS(event, "eventfd-ping-pong", .summary = "two processes pass a number there and back by eventfds",
		 .syscalls_per_op = 4, .source = "eventfd(2)", .prepare = prepare_event, PINGPONG);
PLACED_WORKLOADS(epoll, "epoll-ping-pong", .summary = "two processes pass a number there and back by eventfds that epoll_wait waits for",
		 .syscalls_per_op = 6, .source = "epoll(7)", .prepare = prepare_epoll, PINGPONG);
