/* Two processes that send each other messages through a UNIX socket pair: datagrams, sequenced packets.
 * (lmbench's lat_unix has the stream.) */
#include "pingpong.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

static int ends[2];

static bool pass(enum side to, uint64_t number)
{
	return send(ends[!to], &number, sizeof number, 0) == sizeof number;
}

static bool take(enum side own, uint64_t *number)
{
	return recv(ends[own], number, sizeof *number, 0) == sizeof *number;
}

static void prepare(void)
{
	static const struct way way = {pass, take};

	if (socketpair(AF_UNIX, current->count, 0, ends) < 0)
		fail("socketpair: %s", strerror(errno));
	start_pingpong(&way);
}

PLACED_WORKLOADS(dgram, "unix-dgram", .summary = "two processes pass a number there and back by UNIX datagrams",
		 .syscalls_per_op = 4, .source = "unix(7)", .count = SOCK_DGRAM, .prepare = prepare, PINGPONG);
PLACED_WORKLOADS(seqpacket, "unix-seqpacket", .summary = "two processes pass a number there and back by UNIX sequenced packets",
		 .syscalls_per_op = 4, .source = "unix(7)", .count = SOCK_SEQPACKET, .prepare = prepare, PINGPONG);
