#include "server.h"
#include "workload.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { SILENCE_S = 30 };

enum { MOST_LISTENERS = 8 };
static pid_t listeners[MOST_LISTENERS];
static int listener_count = -1; /* not yet asked */

/* What was received and not yet asked for. */
static struct {
	size_t from, to;
	char bytes[16384];
} buffered;

static const char *address_in(const char *variable)
{
	const char *value = getenv(variable);

	if (!value || !strchr(value, ':'))
		fail("it needs a server, and %s names none (KIND:SOCKET)", variable);
	return value;
}

const char *server_kind(const char *variable)
{
	static char kind[32];
	const char *value = address_in(variable);
	size_t length = strcspn(value, ":");

	if (length >= sizeof kind)
		fail("%s names no server that is known here", variable);
	memcpy(kind, value, length);
	kind[length] = 0;
	return kind;
}

static int connect_to(const char *path, size_t length)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval silence = {.tv_sec = SILENCE_S};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (length >= sizeof address.sun_path)
		fail("the path of the server's socket is too long: %s", path);
	memcpy(address.sun_path, path, length);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
		fail("cannot connect to the server at %s: %s", address.sun_path, strerror(errno));
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof silence) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &silence, sizeof silence) < 0)
		fail("setsockopt: %s", strerror(errno));
	return fd;
}

int connect_to_server(const char *variable)
{
	const char *path = strchr(address_in(variable), ':') + 1;

	return connect_to(path, strlen(path));
}

/* The processes that listen at the sockets of WEIGH_SERVERS. */
static void find_listeners(void)
{
	const char *at = getenv("WEIGH_SERVERS");

	listener_count = 0;
	while (at && *at && listener_count < MOST_LISTENERS) {
		size_t length = strcspn(at, ":");
		int fd = connect_to(at, length);
		struct ucred peer;
		socklen_t size = sizeof peer;
		if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
			fail("cannot tell who listens at %s: %s", at, strerror(errno));
		close(fd);
		listeners[listener_count++] = peer.pid;
		at += length + (at[length] == ':');
	}
}

static bool is_listener(pid_t pid)
{
	for (int i = 0; i < listener_count; i++)
		if (listeners[i] == pid)
			return true;
	return false;
}

static _Noreturn void fail_to(const char *what)
{
	if (errno == EAGAIN || errno == EWOULDBLOCK)
		fail("the server did not answer within %d s", SILENCE_S);
	fail("cannot %s the server: %s", what, strerror(errno));
}

void send_all(int fd, const void *bytes, size_t size)
{
	for (const char *at = bytes; size;) {
		ssize_t sent = send(fd, at, size, MSG_NOSIGNAL);
		if (sent < 0)
			fail_to("send to");
		at += sent;
		size -= sent;
	}
}

void receive_all(int fd, void *bytes, size_t size)
{
	for (char *at = bytes; size;) {
		if (buffered.from == buffered.to) {
			ssize_t received = recv(fd, buffered.bytes, sizeof buffered.bytes, 0);
			if (received < 0)
				fail_to("receive from");
			if (received == 0)
				fail("the server closed the connection");
			buffered.from = 0;
			buffered.to = received;
		}
		size_t part = buffered.to - buffered.from;
		if (part > size)
			part = size;
		memcpy(at, buffered.bytes + buffered.from, part);
		buffered.from += part;
		at += part;
		size -= part;
	}
}

void close_connection(int fd)
{
	if (buffered.from != buffered.to)
		fail("the server sent %zu bytes too many", buffered.to - buffered.from);
	close(fd);
}

/* Of a process with its threads, those that ended too, in ns; 0 of one that is gone. */
static uint64_t cpu_ns(pid_t pid)
{
	struct timespec time;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) < 0)
		return 0;
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

struct process {
	pid_t parent;
	uint64_t system_ns; /* in whole ticks (proc_pid_stat(5)) */
};

static struct process look_at(pid_t pid)
{
	struct process process = {0};
	unsigned long long user, system;
	char path[64], text[1024] = "";
	int parent;
	FILE *file;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return process;
	size_t size = fread(text, 1, sizeof text - 1, file);
	fclose(file);
	text[size] = 0;
	/* A name may have anything in it, but the last parenthesis ends it. */
	const char *rest = strrchr(text, ')');
	if (rest && sscanf(rest, ") %*c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu %llu", &parent, &user,
			   &system) == 3) {
		process.parent = parent;
		process.system_ns = system * (1000000000ull / sysconf(_SC_CLK_TCK));
	}
	return process;
}

static void add_process(pid_t pid, uint64_t *total_ns, uint64_t *system_ns)
{
	*total_ns += cpu_ns(pid);
	*system_ns += look_at(pid).system_ns;
}

void add_server_usage(struct rusage *total)
{
	static uint64_t first_ns, first_system_ns;
	static bool is_begun;
	uint64_t total_ns = 0, system_ns = 0;
	struct dirent *entry;
	DIR *processes;

	if (listener_count < 0 && copy_number == 0)
		find_listeners();
	if (listener_count <= 0)
		return;
	processes = opendir("/proc");
	if (!processes)
		fail("cannot read /proc for the server's CPU time: %s", strerror(errno));
	while ((entry = readdir(processes))) {
		pid_t pid = atoi(entry->d_name);
		if (pid > 0 && (is_listener(pid) || is_listener(look_at(pid).parent)))
			add_process(pid, &total_ns, &system_ns);
	}
	closedir(processes);
	if (!is_begun) {
		is_begun = true;
		first_ns = total_ns;
		first_system_ns = system_ns;
	}
	/* A child that ended takes its time along. */
	total_ns = total_ns > first_ns ? total_ns - first_ns : 0;
	system_ns = system_ns > first_system_ns ? system_ns - first_system_ns : 0;
	/* The clock is exact, the ticks tell which part of it was the kernel's. */
	if (system_ns > total_ns)
		system_ns = total_ns;
	struct timeval user = {(total_ns - system_ns) / 1000000000, (total_ns - system_ns) / 1000 % 1000000};
	struct timeval system = {system_ns / 1000000000, system_ns / 1000 % 1000000};
	timeradd(&total->ru_utime, &user, &total->ru_utime);
	timeradd(&total->ru_stime, &system, &total->ru_stime);
}
