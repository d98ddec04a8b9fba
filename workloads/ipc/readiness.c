/* Asking which of some descriptors is ready. Of ten pipes the last one is. */
#include "operation.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

enum { PIPES = 10 };

static int queue, reader[PIPES], last, spare;
static struct pollfd polled[PIPES];
static struct epoll_event ready[PIPES];
static const struct timespec at_once;

static void prepare(void)
{
	queue = epoll_create1(EPOLL_CLOEXEC);
	if (queue < 0)
		fail("epoll_create1: %s", strerror(errno));
	for (int i = 0; i < PIPES; i++) {
		int ends[2];
		struct epoll_event wanted = {.events = EPOLLIN, .data.u32 = i};

		if (pipe(ends) < 0 || (i == PIPES - 1 && write(ends[1], "x", 1) != 1))
			fail("pipe: %s", strerror(errno));
		if (epoll_ctl(queue, EPOLL_CTL_ADD, ends[0], &wanted) < 0)
			fail("epoll_ctl: %s", strerror(errno));
		reader[i] = last = ends[0];
		polled[i] = (struct pollfd){.fd = ends[0], .events = POLLIN};
	}
	spare = dup(last);
	if (spare < 0)
		fail("dup: %s", strerror(errno));
}

static bool last_is_polled(int found)
{
	return found == 1 && polled[PIPES - 1].revents == POLLIN && polled[0].revents == 0;
}

static bool select_last(void)
{
	fd_set set;
	struct timeval wait = {0};

	FD_ZERO(&set);
	for (int i = 0; i < PIPES; i++)
		FD_SET(reader[i], &set);
	return select(last + 1, &set, NULL, NULL, &wait) == 1 && FD_ISSET(last, &set);
}

static bool add_and_delete(void)
{
	struct epoll_event wanted = {.events = EPOLLIN};

	return epoll_ctl(queue, EPOLL_CTL_ADD, spare, &wanted) == 0 &&
	       epoll_ctl(queue, EPOLL_CTL_DEL, spare, NULL) == 0;
}

static void check_queue(uint64_t n)
{
	(void)n;
	if (epoll_wait(queue, ready, PIPES, 0) != 1 || ready[0].data.u32 != PIPES - 1)
		fail("epoll waits for other descriptors than before");
}

OPERATION(epoll_wait, "epoll_wait", 1,
	  epoll_wait(queue, ready, PIPES, -1) == 1 && ready[0].data.u32 == PIPES - 1,
	  .summary = "epoll_wait(2) for ten pipes, one of them ready", .source = "epoll_wait(2)",
	  .prepare = prepare);
OPERATION(epoll_ctl, "epoll_ctl-add-del", 2, add_and_delete(),
	  .summary = "epoll_ctl(2): a descriptor added and taken away", .source = "epoll_ctl(2)",
	  .prepare = prepare, .check = check_queue);
OPERATION(poll, "poll", 1, last_is_polled(poll(polled, PIPES, -1)),
	  .summary = "poll(2) of ten pipes, one of them ready", .source = "will-it-scale poll1",
	  .prepare = prepare);
OPERATION(ppoll, "ppoll", 1, last_is_polled(ppoll(polled, PIPES, &at_once, NULL)),
	  .summary = "ppoll(2) of ten pipes, one of them ready", .source = "ppoll(2)", .prepare = prepare);
OPERATION(select, "select", 1, select_last(), .summary = "select(2) of ten pipes, one of them ready",
	  .source = "select(2)", .prepare = prepare);
