/* A worker whose work is done by another process, which is exempt from what is weighed: it asks for that at a
 * Unix socket, waits, prints what the other printed, and ends with its status. All that the treatment meets
 * of it is this. The other side is weigh's (crates/weigh-station/src/client.rs). */
#include "driver.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* No workload was chosen yet that could fail. */
static _Noreturn void give_up(const char *what, const char *why)
{
	fprintf(stderr, "weigh-workloads: %s: %s\n", what, why);
	exit(1);
}

static int connect_to(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (strlen(path) >= sizeof address.sun_path)
		give_up("the path of the client's socket is too long", path);
	strcpy(address.sun_path, path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
		give_up("cannot connect to the client that does the work", strerror(errno));
	return fd;
}

/* As much as is there, up to that. */
static size_t read_some(int fd, void *bytes, size_t size)
{
	ssize_t got;

	while ((got = read(fd, bytes, size)) < 0 && errno == EINTR)
		;
	if (got <= 0)
		give_up("the client that does the work has ended",
			got < 0 ? strerror(errno) : "it closed the connection");
	return got;
}

static void copy(int fd, uint32_t size, FILE *to)
{
	char bytes[4096];

	while (size) {
		size_t got = read_some(fd, bytes, size < sizeof bytes ? size : sizeof bytes);
		fwrite(bytes, 1, got, to);
		size -= got;
	}
	if (fflush(to) != 0)
		exit(1);
}

int delegate(const char *path)
{
	struct {
		uint32_t status, stdout_size, stderr_size;
	} head;
	int fd = connect_to(path);

	for (size_t size = 0; size < sizeof head;)
		size += read_some(fd, (char *)&head + size, sizeof head - size);
	copy(fd, head.stdout_size, stdout);
	copy(fd, head.stderr_size, stderr);
	return head.status;
}
