/* Messages that one process sends to itself: all of the socket layer, and nothing is scheduled. */
#include "operation.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

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

/* A socket with a free port of the loopback interface, and its address. */
static int bind_loopback(int type, struct sockaddr_in *address)
{
	socklen_t length = sizeof *address;
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	*address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (fd < 0 || bind(fd, (struct sockaddr *)address, length) < 0 ||
	    getsockname(fd, (struct sockaddr *)address, &length) < 0)
		fail("cannot bind a port of 127.0.0.1 (is the interface lo up?): %s", strerror(errno));
	return fd;
}

static int connect_to(int type, const struct sockaddr_in *address)
{
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof *address) < 0)
		fail("connect: %s", strerror(errno));
	return fd;
}

static void prepare_udp(void)
{
	struct sockaddr_in address;

	receiver = bind_loopback(SOCK_DGRAM, &address);
	sender = connect_to(SOCK_DGRAM, &address);
}

static void prepare_tcp(void)
{
	struct sockaddr_in address;
	int listener = bind_loopback(SOCK_STREAM, &address), on = 1;

	if (listen(listener, 1) < 0)
		fail("listen: %s", strerror(errno));
	sender = connect_to(SOCK_STREAM, &address);
	receiver = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (receiver < 0 || setsockopt(sender, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0)
		fail("accept4 or setsockopt: %s", strerror(errno));
	close(listener);
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
