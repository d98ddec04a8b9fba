/* Sockets made, connected, asked and set, and a descriptor sent through one. */
#include "operation.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BUFFER = 32768 };

static int first_free, listener, ends[2], value, handed;
static socklen_t length;
static struct sockaddr_un address;
static socklen_t address_length = sizeof address;
static ino_t inode;

static void find_first_free(void)
{
	first_free = next_descriptor();
}

static bool open_and_close(int domain, int type)
{
	int fd = socket(domain, type, 0);

	return fd == first_free && close(fd) == 0;
}

static void prepare_pair(void)
{
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
		fail("socketpair: %s", strerror(errno));
}

static void prepare_descriptor(void)
{
	struct stat status;

	prepare_pair();
	handed = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	if (handed < 0 || fstat(handed, &status) < 0)
		fail("cannot open /dev/zero: %s", strerror(errno));
	inode = status.st_ino;
}

static bool get_option(void)
{
	length = sizeof value;
	return getsockopt(ends[0], SOL_SOCKET, SO_TYPE, &value, &length) == 0 && value == SOCK_STREAM;
}

static bool set_option(void)
{
	int size = BUFFER;

	return setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size) == 0;
}

/* The kernel doubles it, for what it keeps beside the data (socket(7)). */
static void check_option(uint64_t n)
{
	(void)n;
	length = sizeof value;
	if (getsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &value, &length) < 0 || value != 2 * BUFFER)
		fail("the buffer has %d bytes, not those that were set", value);
}

/* What is handed over arrives as another descriptor of the same. */
static int pass_descriptor(void)
{
	char byte = 'x', control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8)));
	struct iovec part = {&byte, 1};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
				 .msg_controllen = sizeof control};
	struct cmsghdr *header = (struct cmsghdr *)control;
	int fd = -1;

	header->cmsg_len = CMSG_LEN(sizeof fd);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	memcpy(CMSG_DATA(header), &handed, sizeof fd);
	if (sendmsg(ends[0], &message, 0) != 1 || recvmsg(ends[1], &message, 0) != 1 ||
	    header->cmsg_type != SCM_RIGHTS)
		return -1;
	memcpy(&fd, CMSG_DATA(header), sizeof fd);
	return fd;
}

static bool pass_and_close(void)
{
	int fd = pass_descriptor();

	return fd == handed + 1 && close(fd) == 0;
}

static void check_descriptor(uint64_t n)
{
	struct stat status;
	int fd = pass_descriptor();

	(void)n;
	if (fd < 0 || fstat(fd, &status) < 0 || status.st_ino != inode)
		fail("the descriptor that arrived is of something else than what was sent");
}

/* An address that the kernel chooses, in the abstract namespace: no file (unix(7), autobind). */
static void prepare_listener(void)
{
	struct sockaddr_un none = {.sun_family = AF_UNIX};

	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&none, sizeof(sa_family_t)) < 0 ||
	    listen(listener, 1) < 0 || getsockname(listener, (struct sockaddr *)&address, &address_length) < 0)
		fail("cannot listen on a UNIX socket: %s", strerror(errno));
	first_free = next_descriptor();
}

static bool connect_and_accept(void)
{
	int client = socket(AF_UNIX, SOCK_STREAM, 0), server;

	if (client != first_free || connect(client, (struct sockaddr *)&address, address_length) < 0)
		return false;
	server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	return server == client + 1 && close(server) == 0 && close(client) == 0;
}

OPERATION(unix, "socket-close-unix", 2, open_and_close(AF_UNIX, SOCK_STREAM),
	  .summary = "socket and close, UNIX stream", .source = "will-it-scale socket1", .prepare = find_first_free);
OPERATION(udp, "socket-close-udp", 2, open_and_close(AF_INET, SOCK_DGRAM), .summary = "socket and close, UDP",
	  .source = "will-it-scale socket1", .prepare = find_first_free);
OPERATION(tcp, "socket-close-tcp", 2, open_and_close(AF_INET, SOCK_STREAM), .summary = "socket and close, TCP",
	  .source = "will-it-scale socket1", .prepare = find_first_free);
OPERATION(getsockopt, "getsockopt", 1, get_option(), .summary = "getsockopt(SO_TYPE)",
	  .source = "getsockopt(2)", .prepare = prepare_pair);
OPERATION(setsockopt, "setsockopt", 1, set_option(), .summary = "setsockopt(SO_SNDBUF)",
	  .source = "setsockopt(2)", .prepare = prepare_pair, .check = check_option);
OPERATION(scm_rights, "scm-rights", 3, pass_and_close(),
	  .summary = "a descriptor sent by sendmsg(SCM_RIGHTS), received by recvmsg, and closed", .source = "unix(7)",
	  .prepare = prepare_descriptor, .check = check_descriptor);
OPERATION(accept4, "accept4", 5, connect_and_accept(),
	  .summary = "socket, connect, accept4 and two close by one process, UNIX stream", .source = "accept4(2)",
	  .prepare = prepare_listener);
