#include "server.h"
#include "workload.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
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

static void close_keeping_error(int fd)
{
	int error = errno;

	close(fd);
	errno = error;
}

static const char *address_in(const char *variable)
{
	const char *value = getenv(variable);

	if (!value || !strchr(value, ':'))
		fail("it needs a server: set %s to KIND:ADDRESS", variable);
	return value;
}

const char *server_kind(const char *variable)
{
	static char kind[32];
	const char *value = address_in(variable);
	size_t length = strcspn(value, ":");

	if (length >= sizeof kind)
		fail("%s names an unknown kind of server", variable);
	memcpy(kind, value, length);
	kind[length] = 0;
	return kind;
}

const char *server_address(const char *variable)
{
	return strchr(address_in(variable), ':') + 1;
}

/* Whose calls wait so long at most: also for a connection that a full queue or a firewall keeps from us. */
static int patient_socket(int family, int silence_s)
{
	struct timeval silence = {.tv_sec = silence_s};
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof silence) < 0 ||
			setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &silence, sizeof silence) < 0))
		fail("setsockopt: %s", strerror(errno));
	return fd;
}

static int connect_to_socket(const char *path, int silence_s)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = patient_socket(AF_UNIX, silence_s);

	if (strlen(path) >= sizeof address.sun_path)
		fail("the path of the server's socket is too long: %s", path);
	strcpy(address.sun_path, path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
		return fd;
	close_keeping_error(fd);
	return -1;
}

/* HOST:PORT in numbers. */
static int connect_to_port(const char *text, int silence_s)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	const char *colon = strchr(text, ':');
	char host[INET_ADDRSTRLEN] = "";
	const int on = 1;
	int fd;

	if (colon && (size_t)(colon - text) < sizeof host)
		memcpy(host, text, colon - text);
	if (inet_pton(AF_INET, host, &address.sin_addr) != 1)
		fail("the server's address is neither a path nor HOST:PORT in numbers: %s", text);
	address.sin_port = htons(atoi(colon + 1));
	fd = patient_socket(AF_INET, silence_s);
	if (fd < 0 || (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
		       setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0))
		return fd;
	close_keeping_error(fd);
	return -1;
}

int try_to_connect(const char *variable, int silence_s)
{
	const char *address = server_address(variable);

	return *address == '/' ? connect_to_socket(address, silence_s) : connect_to_port(address, silence_s);
}

/* A connection that is not answered in time fails with EAGAIN on a Unix socket, with EINPROGRESS by TCP. */
const char *why_not_connected(int silence_s)
{
	static char text[100];

	if (errno != EAGAIN && errno != EINPROGRESS)
		return strerror(errno);
	snprintf(text, sizeof text, "no answer within %d s (its queue is full, or a firewall blocks it)",
		 silence_s);
	return text;
}

int connect_to_server(const char *variable)
{
	int fd = try_to_connect(variable, SILENCE_S);

	if (fd < 0)
		fail("cannot connect to the server at %s: %s", server_address(variable),
		     why_not_connected(SILENCE_S));
	return fd;
}

/* The processes of WEIGH_SERVERS. */
static void find_listeners(void)
{
	const char *at = getenv("WEIGH_SERVERS");

	listener_count = 0;
	while (at && *at && listener_count < MOST_LISTENERS) {
		listeners[listener_count++] = atoi(at);
		at += strcspn(at, ":");
		at += *at == ':';
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
		/* Whoever stood still meanwhile did not wait in vain: signal(7), SO_RCVTIMEO. */
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			fail_to("send to");
		at += sent;
		size -= sent;
	}
}

/* Clients wait in poll(2), as the libraries of MariaDB and PostgreSQL have them do. For clients that wait in
 * recv(2) a server did up to a sixth less: MariaDB, durable inserts of four of them. Who stood still until
 * the time was over has it once more, in recv(2). */
static ssize_t receive(int fd)
{
	struct pollfd answer = {.fd = fd, .events = POLLIN};

	if (poll(&answer, 1, SILENCE_S * 1000) < 0)
		return -1;
	return recv(fd, buffered.bytes, sizeof buffered.bytes, 0);
}

void receive_all(int fd, void *bytes, size_t size)
{
	for (char *at = bytes; size;) {
		if (buffered.from == buffered.to) {
			ssize_t received = receive(fd);
			if (received < 0 && errno == EINTR)
				continue;
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

pid_t server_below(void)
{
	struct dirent *entry;
	pid_t found = 0;
	DIR *processes;

	if (listener_count < 0)
		find_listeners();
	processes = opendir("/proc");
	if (listener_count < 1 || !processes)
		fail("cannot find a server process to kill (WEIGH_SERVERS)");
	while (!found && (entry = readdir(processes))) {
		pid_t pid = atoi(entry->d_name);
		if (pid > 0 && look_at(pid).parent == listeners[0])
			found = pid;
	}
	closedir(processes);
	return found;
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
