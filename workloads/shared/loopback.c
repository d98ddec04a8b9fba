/* Sockets on 127.0.0.1, with ports that the kernel chooses. */
#include "loopback.h"
#include "workload.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int bind_on_loopback(int type, struct sockaddr_in *address)
{
	socklen_t length = sizeof *address;
	int fd = socket(AF_INET, type, 0);

	*address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (fd < 0 || bind(fd, (struct sockaddr *)address, length) < 0 ||
	    getsockname(fd, (struct sockaddr *)address, &length) < 0)
		fail("cannot open a port on 127.0.0.1: %s", strerror(errno));
	return fd;
}

static void connect_to(int fd, const struct sockaddr_in *address)
{
	if (connect(fd, (const struct sockaddr *)address, sizeof *address) < 0)
		fail("cannot connect on 127.0.0.1: %s; is the interface `lo` up?", strerror(errno));
}

void reset_when_closed(int fd)
{
	struct linger linger = {.l_onoff = 1, .l_linger = 0};

	if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger) < 0)
		fail("SO_LINGER: %s", strerror(errno));
}

int listen_on_loopback(struct sockaddr_in *address)
{
	int fd = bind_on_loopback(SOCK_STREAM, address);

	reset_when_closed(fd);
	if (listen(fd, 16) < 0)
		fail("listen: %s", strerror(errno));
	return fd;
}

void connect_tcp_pair(int pair[2])
{
	struct sockaddr_in address;
	int listener = listen_on_loopback(&address);

	pair[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (pair[0] < 0)
		fail("socket: %s", strerror(errno));
	reset_when_closed(pair[0]);
	connect_to(pair[0], &address);
	pair[1] = accept(listener, NULL, NULL);
	if (pair[1] < 0)
		fail("accept: %s", strerror(errno));
	close(listener);
}

void connect_udp_pair(int pair[2])
{
	struct sockaddr_in addresses[2];

	for (int i = 0; i < 2; i++)
		pair[i] = bind_on_loopback(SOCK_DGRAM, &addresses[i]);
	for (int i = 0; i < 2; i++)
		connect_to(pair[i], &addresses[!i]);
}
