/* Messages that one process sends to itself: all of the socket layer, and nothing is scheduled. */
#include "loopback.h"
#include "operation.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

enum { SIZE = 64 };

static int sender, receiver;
static uint64_t count;
static char sent[SIZE], received[SIZE];

static void prepare_pair(void)
{
	int ends[2];

	if (socketpair(AF_UNIX, current->count, 0, ends) < 0)
		fail("socketpair: %s", strerror(errno));
	sender = ends[0], receiver = ends[1];
}

static void prepare_udp(void)
{
	int ends[2];

	connect_udp_pair(ends);
	sender = ends[0], receiver = ends[1];
}

static void prepare_tcp(void)
{
	int ends[2], on = 1;

	connect_tcp_pair(ends);
	sender = ends[0], receiver = ends[1];
	if (setsockopt(sender, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0)
		fail("setsockopt: %s", strerror(errno));
}

static bool send_and_receive(void)
{
	memcpy(sent, &count, sizeof count);
	count++;
	return send(sender, sent, SIZE, 0) == SIZE && recv(receiver, received, SIZE, 0) == SIZE &&
	       memcmp(sent, received, SIZE) == 0;
}

/* All that was sent was received. */
static void check_empty(uint64_t n)
{
	(void)n;
	if (recv(receiver, received, SIZE, MSG_DONTWAIT) >= 0 || errno != EAGAIN)
		fail("something is left to receive");
}

OPERATION(stream, "socketpair-stream", 2, send_and_receive(),
	  .summary = "64 bytes sent and received by one process, UNIX stream", .source = "unix(7)",
	  .count = SOCK_STREAM, .prepare = prepare_pair, .check = check_empty);
OPERATION(dgram, "socketpair-dgram", 2, send_and_receive(),
	  .summary = "64 bytes sent and received by one process, UNIX datagram", .source = "unix(7)",
	  .count = SOCK_DGRAM, .prepare = prepare_pair, .check = check_empty);
OPERATION(seqpacket, "socketpair-seqpacket", 2, send_and_receive(),
	  .summary = "64 bytes sent and received by one process, UNIX sequenced packet", .source = "unix(7)",
	  .count = SOCK_SEQPACKET, .prepare = prepare_pair, .check = check_empty);
OPERATION(udp, "udp-loopback", 2, send_and_receive(),
	  .summary = "64 bytes sent and received by one process, UDP over loopback", .source = "udp(7)",
	  .prepare = prepare_udp, .check = check_empty);
OPERATION(tcp, "tcp-loopback", 2, send_and_receive(),
	  .summary = "64 bytes sent and received by one process, TCP over loopback", .source = "tcp(7)",
	  .prepare = prepare_tcp, .check = check_empty);
