/* lmbench's lat_select: asks of many descriptors whether they can be written to; all can. All are the same
 * open file, or the same connected TCP socket. poll(2) is asked too: it is what programs use today. */
#include "workload.h"
#include "loopback.h"

#include <poll.h>
#include <sys/select.h>
#include <unistd.h>

static fd_set wanted;
static struct pollfd polled[500];
static int highest;

static void copy_descriptor(int fd)
{
	for (long i = 0; i < current->count; i++) {
		highest = dup(fd);
		if (highest < 0) {
			close(fd); /* cleaning up takes one */
			fail("cannot have %ld descriptors: `ulimit -n` limits them", current->count);
		}
		if (highest >= FD_SETSIZE)
			fail("descriptor %d is beyond what select takes; start it with fewer open", highest);
		FD_SET(highest, &wanted);
		polled[i] = (struct pollfd){.fd = highest, .events = POLLOUT};
	}
}

static void prepare_file(void)
{
	enter_scratch_directory();
	copy_descriptor(create_file("file", 0));
}

static void prepare_tcp(void)
{
	int pair[2];

	connect_tcp_pair(pair);
	copy_descriptor(pair[0]);
}

static void run_select(uint64_t n)
{
	for (; n; n--) {
		fd_set ready = wanted;
		struct timeval at_once = {0};

		if (select(highest + 1, NULL, &ready, NULL, &at_once) != current->count)
			fail("not every descriptor is ready");
	}
}

static void run_poll(uint64_t n)
{
	for (; n; n--)
		if (poll(polled, current->count, 0) != current->count)
			fail("not every descriptor is ready");
}

#define ASK(call, kind, descriptors)                                                                  \
	WORKLOAD(lat_##call##_##kind##_##descriptors, .name = "lat-" #call "-" #kind "-" #descriptors, \
		 .summary = #call "(2) of " #descriptors " descriptors of a " #kind ", all ready", .unit = "ops/s", \
		 .units_per_op = 1, .syscalls_per_op = 1, .source = "lmbench 3 lat_select " #kind,      \
		 .count = descriptors, .series = #call ", " #kind, .x = descriptors,                    \
		 .x_unit = "descriptors", .prepare = prepare_##kind, .run = run_##call)

#define ASK_MANY(call, kind) \
	ASK(call, kind, 10); ASK(call, kind, 100); ASK(call, kind, 250); ASK(call, kind, 500)

ASK_MANY(select, file);
ASK_MANY(select, tcp);
ASK_MANY(poll, file);
ASK_MANY(poll, tcp);
