/* lmbench's bw_pipe, bw_unix and bw_tcp: another process writes, the driver reads, 64 KiB at a time.
 *
 * The driver orders how much it wants, so that nothing is on its way when the clock starts or stops. Every
 * piece carries its number at both ends. */
#include "workload.h"
#include "loopback.h"
#include "partner.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WORDS = 64 * 1024 / 8, SIZE = WORDS * 8 };

static uint64_t piece[WORDS], pieces;
static int reader, writer, orders[2];

static uint64_t serve(void)
{
	uint64_t ordered;
	long got;

	close(reader);
	close(orders[1]);
	memset(piece, 0x5a, sizeof piece);
	while ((got = read(orders[0], &ordered, sizeof ordered)) == sizeof ordered)
		for (; ordered; ordered--) {
			piece[0] = piece[WORDS - 1] = pieces++;
			if (write(writer, piece, SIZE) != SIZE)
				fail("the writer cannot write: %s", strerror(errno));
		}
	if (got != 0)
		fail("the writer gets no orders: %s", strerror(errno));
	return pieces;
}

static void start_writer(const int ends[2])
{
	reader = ends[0];
	writer = ends[1];
	if (pipe(orders) < 0)
		fail("pipe: %s", strerror(errno));
	start_partner(serve);
	close(writer);
	close(orders[0]);
}

static void prepare_pipe(void)
{
	int ends[2];

	if (pipe(ends) < 0)
		fail("pipe: %s", strerror(errno));
	start_writer(ends);
}

static void prepare_unix(void)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		fail("socketpair: %s", strerror(errno));
	start_writer(pair);
}

static void prepare_tcp(void)
{
	int pair[2];

	connect_tcp_pair(pair);
	start_writer(pair);
}

static void run(uint64_t n)
{
	if (write(orders[1], &n, sizeof n) != sizeof n)
		fail("cannot order: %s", strerror(errno));
	for (; n; n--) {
		for (long have = 0, got; have < SIZE; have += got) {
			got = read(reader, (char *)piece + have, SIZE - have);
			if (got <= 0)
				fail("the writer wrote too little: %s", strerror(errno));
		}
		if (piece[0] != pieces || piece[WORDS - 1] != pieces)
			fail("a piece came out of order");
		pieces++;
	}
}

static void check(uint64_t n)
{
	for (long i = 1; i < WORDS - 1; i++)
		if (piece[i] != 0x5a5a5a5a5a5a5a5a)
			fail("other bytes came than were written");
	close(orders[1]);
	if (end_partners() != n || pieces != n)
		fail("%llu pieces came", (unsigned long long)pieces);
}

#define STREAM(kind, what)                                                                                   \
	PLACED_WORKLOADS(bw_##kind, "bw-" #kind,                                                              \
		 .summary = "another process writes 64 KiB to " what ", and this one reads them", .unit = "MBps", \
		 .units_per_op = SIZE / 1e6, .syscalls_per_op = 2,                                            \
		 .syscalls_note = "at least: a read takes what there is, so there may be several",            \
		 .source = "lmbench 3 bw_" #kind, .leaves_work = true, .prepare = prepare_##kind, .run = run, .check = check,      \
		 .add_usage = add_partner_usage)

STREAM(pipe, "a pipe");
STREAM(unix, "an AF_UNIX stream socket");
STREAM(tcp, "a TCP connection on 127.0.0.1");
