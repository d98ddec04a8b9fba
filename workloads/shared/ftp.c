#include "ftp.h"
#include "workload.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	LINE = 512,
	PIECE = 64 * 1024,
	MOST_UNKNOWN = 8, /* clients that have not given the password yet */
	PATIENCE_S = 5,   /* for all that such a client does */
};

/* Of one client. */
struct session {
	FILE *control;
	int listener; /* where it is passive; the same port for each file */
	struct sockaddr_storage address;
	const char *password; /* NULL where it may be any */
	bool is_known;
	int unknown; /* open until it is known: the server counts by it */
};

void fill_ftp_payload(char *bytes, size_t count, long offset)
{
	for (size_t i = 0; i < count; i += sizeof(uint32_t)) {
		uint32_t word = (uint32_t)(offset + i) * 2246822519u;
		memcpy(bytes + i, &word, count - i < sizeof word ? count - i : sizeof word);
	}
}

static void reply(struct session *session, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vfprintf(session->control, format, arguments);
	va_end(arguments);
	fputs("\r\n", session->control);
	fflush(session->control);
}

/* The port at which the client is to fetch a file; 0 where there is none. */
static unsigned int be_passive(struct session *session)
{
	struct sockaddr_storage address;
	socklen_t size = sizeof address;
	/* At the same place in both kinds of address. */
	in_port_t *port = &((struct sockaddr_in *)&address)->sin_port;

	if (getsockname(fileno(session->control), (struct sockaddr *)&address, &size) < 0)
		return 0;
	if (session->listener < 0) {
		*port = 0;
		int listener = socket(address.ss_family, SOCK_STREAM, 0);
		if (bind(listener, (struct sockaddr *)&address, size) < 0 || listen(listener, 4) < 0) {
			close(listener);
			return 0;
		}
		session->listener = listener;
	}
	getsockname(session->listener, (struct sockaddr *)&address, &size);
	session->address = address;
	return ntohs(*port);
}

static void passive(struct session *session)
{
	unsigned int port = be_passive(session);
	uint32_t host = ntohl(((struct sockaddr_in *)&session->address)->sin_addr.s_addr);

	if (!port || session->address.ss_family != AF_INET)
		reply(session, "425 There is no IPv4 port for it.");
	else
		reply(session, "227 Entering Passive Mode (%u,%u,%u,%u,%u,%u)", host >> 24, host >> 16 & 255,
		      host >> 8 & 255, host & 255, port >> 8, port & 255);
}

static void extended_passive(struct session *session)
{
	unsigned int port = be_passive(session);

	if (port)
		reply(session, "229 Entering Extended Passive Mode (|||%u|)", port);
	else
		reply(session, "425 There is no port for it.");
}

/* Of a connection; the port does not count. */
static bool is_same_host(int data, int control)
{
	struct sockaddr_storage ends[2] = {0};
	socklen_t sizes[2] = {sizeof ends[0], sizeof ends[1]};

	if (getpeername(data, (struct sockaddr *)&ends[0], &sizes[0]) < 0 ||
	    getpeername(control, (struct sockaddr *)&ends[1], &sizes[1]) < 0)
		return false;
	/* At the same place in both kinds of address. */
	for (int i = 0; i < 2; i++)
		((struct sockaddr_in *)&ends[i])->sin_port = 0;
	return sizes[0] == sizes[1] && memcmp(&ends[0], &ends[1], sizes[0]) == 0;
}

/* -1 where the client may have no data connection. */
static int open_data(struct session *session)
{
	int data = session->listener < 0 ? -1 : accept(session->listener, NULL, NULL);

	while (data >= 0 && !is_same_host(data, fileno(session->control))) {
		close(data);
		data = accept(session->listener, NULL, NULL);
	}
	reply(session, data < 0 ? "425 Use PASV or EPSV first." : "150 Here it comes.");
	return data;
}

/* How many bytes the file of this name has; -1 where there is none. */
static long size_of(const char *name)
{
	char *end = "?";
	long size = strncmp(name, "payload-", 8) == 0 && isdigit(name[8]) ? strtol(name + 8, &end, 10) : -1;

	return *end ? -1 : size;
}

static void retrieve(struct session *session, const char *name)
{
	static char piece[PIECE];
	long size = size_of(name), offset = 0;
	int data;

	if (size < 0) {
		reply(session, "550 There is only payload-N, of N bytes.");
		return;
	}
	if ((data = open_data(session)) < 0)
		return;
	while (offset < size) {
		long left = size - offset, part = left < PIECE ? left : PIECE;
		fill_ftp_payload(piece, part, offset);
		for (long sent = 0; sent < part;) {
			ssize_t one = send(data, piece + sent, part - sent, MSG_NOSIGNAL);
			if (one < 0) {
				close(data);
				reply(session, "426 The connection was closed.");
				return;
			}
			sent += one;
		}
		offset += part;
	}
	close(data);
	reply(session, "226 That was all.");
}

static void store(struct session *session)
{
	static char piece[PIECE];
	int data = open_data(session);
	ssize_t got;

	if (data < 0)
		return;
	while ((got = recv(data, piece, sizeof piece, 0)) > 0)
		;
	close(data);
	reply(session, got < 0 ? "426 The connection was closed." : "226 Taken, and forgotten.");
}

static void be_known(struct session *session)
{
	alarm(0);
	close(session->unknown);
	session->unknown = -1;
	session->is_known = true;
}

static void greet(struct session *session, const char *password)
{
	if (!session->password || strcmp(password, session->password) == 0)
		be_known(session);
	reply(session, session->is_known ? "230 Welcome." : "530 That is not it.");
}

/* `false` after the last one. */
static bool obey(struct session *session, char *line)
{
	char *argument = line + strcspn(line, " \r\n");

	if (*argument == ' ')
		*argument++ = '\0';
	argument[strcspn(argument, "\r\n")] = line[strcspn(line, "\r\n")] = '\0';
	if (strcasecmp(line, "USER") == 0)
		reply(session, "331 %s", session->password ? "Which?" : "Any password will do.");
	else if (strcasecmp(line, "PASS") == 0)
		greet(session, argument);
	else if (!session->is_known)
		reply(session, "530 Not before USER and PASS.");
	else if (strcasecmp(line, "TYPE") == 0)
		reply(session, strcasecmp(argument, "I") ? "504 There is TYPE I alone." : "200 So it is.");
	else if (strcasecmp(line, "PASV") == 0)
		passive(session);
	else if (strcasecmp(line, "EPSV") == 0)
		extended_passive(session);
	else if (strcasecmp(line, "SIZE") == 0 && size_of(argument) >= 0)
		reply(session, "213 %ld", size_of(argument));
	else if (strcasecmp(line, "RETR") == 0)
		retrieve(session, argument);
	else if (strcasecmp(line, "STOR") == 0)
		store(session);
	else if (strcasecmp(line, "NOOP") == 0)
		reply(session, "200 Nothing done.");
	else if (strcasecmp(line, "QUIT") == 0)
		reply(session, "221 Goodbye.");
	else
		reply(session, "502 Not known here.");
	return strcasecmp(line, "QUIT") != 0;
}

static void attend(int control, int unknown)
{
	struct session session = {.control = fdopen(control, "r+"), .listener = -1,
				  .password = getenv("WEIGH_NONCE"), .unknown = unknown};
	char line[LINE];
	int on = 1;

	/* Whatever a stranger says meanwhile, it ends this process. */
	signal(SIGALRM, SIG_DFL);
	alarm(PATIENCE_S);
	if (!session.password)
		be_known(&session);

	/* One reply follows another: Nagle's algorithm would hold it until the first is acknowledged, 40 ms. */
	setsockopt(control, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (!session.control)
		return;
	reply(&session, "220 weigh: files that are made up.");
	while (fgets(line, sizeof line, session.control) && obey(&session, line))
		;
}

/* Starts a process for the next client; gives what is closed when that client is known, or gone. */
static int admit(int listener, pid_t own)
{
	int control = accept(listener, NULL, NULL), unknown[2];

	if (control < 0)
		fail("accept: %s", strerror(errno));
	if (pipe2(unknown, O_CLOEXEC) < 0)
		fail("pipe: %s", strerror(errno));
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == own) {
			close(listener);
			attend(control, unknown[1]);
		}
		_exit(0);
	}
	close(control);
	close(unknown[1]);
	return unknown[0];
}

_Noreturn void serve_ftp(int listener)
{
	struct pollfd ends[1 + MOST_UNKNOWN] = {{.events = POLLIN}};
	int unknown = 0;

	signal(SIGCHLD, SIG_IGN); /* ended children are nobody's concern */
	for (pid_t own = getpid();;) {
		/* Others wait in the queue of the listener: anybody on this network may connect. */
		ends[0].fd = unknown < MOST_UNKNOWN ? listener : -1;
		if (poll(ends, 1 + unknown, -1) < 0) {
			if (errno == EINTR)
				continue;
			fail("poll: %s", strerror(errno));
		}
		for (int i = unknown; i > 0; i--) {
			if (!ends[i].revents)
				continue;
			close(ends[i].fd);
			ends[i] = ends[unknown--];
		}
		if (ends[0].revents)
			ends[++unknown] = (struct pollfd){.fd = admit(listener, own)};
	}
}
