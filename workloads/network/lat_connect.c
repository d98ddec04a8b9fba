/* lmbench's lat_connect and lat_unix_connect: connections that are made and closed.
 *
 * The server greets with a byte. Without it a client that is faster than the server would fill the queue of
 * the listening socket, and TCP would wait a second before it tries again. */
#include "workload.h"
#include "loopback.h"
#include "partner.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int listener;
static union {
	struct sockaddr any;
	struct sockaddr_in inet;
	struct sockaddr_un local;
} address;
static socklen_t address_length;
static uint64_t connections;

static uint64_t greet(void)
{
	uint64_t turns = 0;

	for (int fd; (fd = accept(listener, NULL, NULL)) >= 0; close(fd)) {
		unsigned char greeting = turns++, none;

		if (write(fd, &greeting, 1) != 1)
			fail("the server cannot greet: %s", strerror(errno));
		long got = read(fd, &none, 1);
		if (got > 0 || (got < 0 && errno != ECONNRESET))
			fail("the server did not see the end of the connection");
	}
	if (errno != EINVAL) /* the driver shut the listening socket down */
		fail("accept: %s", strerror(errno));
	return turns;
}

static void prepare_tcp(void)
{
	listener = listen_on_loopback(&address.inet);
	address_length = sizeof address.inet;
	start_partner(greet);
}

static void prepare_unix(void)
{
	enter_scratch_directory();
	address.local = (struct sockaddr_un){.sun_family = AF_UNIX, .sun_path = "socket"};
	address_length = sizeof address.local;
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	if (listener < 0 || bind(listener, &address.any, address_length) < 0 || listen(listener, 16) < 0)
		fail("cannot listen on a socket in this directory: %s", strerror(errno));
	start_partner(greet);
}

static void run(uint64_t n)
{
	for (; n; n--) {
		unsigned char greeting;
		int fd = socket(address.any.sa_family, SOCK_STREAM, 0);

		if (fd >= 0 && address.any.sa_family == AF_INET)
			reset_when_closed(fd);
		if (fd < 0 || connect(fd, &address.any, address_length) < 0)
			fail("cannot connect: %s", strerror(errno));
		if (read(fd, &greeting, 1) != 1 || greeting != (unsigned char)connections++)
			fail("the server did not greet as expected");
		close(fd);
	}
}

static void check(uint64_t n)
{
	shutdown(listener, SHUT_RDWR);
	if (end_partners() != n)
		fail("the server did not accept every connection");
}

PLACED_WORKLOADS(lat_connect, "lat-connect",
	 .summary = "connect to another process over TCP on 127.0.0.1, read its greeting, close", .unit = "ops/s",
	 .units_per_op = 1, .syscalls_per_op = 9, .source = "lmbench 3 lat_connect", .prepare = prepare_tcp,
	 .run = run, .check = check, .add_usage = add_partner_usage);
PLACED_WORKLOADS(lat_unix_connect, "lat-unix-connect",
	 .summary = "connect to another process over an AF_UNIX socket file, read its greeting, close",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 8, .source = "lmbench 3 lat_unix_connect",
	 .prepare = prepare_unix, .run = run, .check = check, .add_usage = add_partner_usage);
