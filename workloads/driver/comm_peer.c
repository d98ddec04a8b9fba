/* A peer: what a black box runs. It lives as long as the experiment; each connection has two processes of
 * its own, one that moves payload and one that waits for the end of the control socket, to end the other. */
#include "comm.h"
#include "ftp.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct workload peer = {.name = "comm-peer"};

/* For what fails in a worker, which tells the other side. */
static int control = -1;

static void tell(const struct peer_message *message)
{
	if (send(control, message, sizeof *message, MSG_NOSIGNAL) != sizeof *message)
		fail("the control socket: %s", strerror(errno));
}

/* Who asked has gone: so does this process, without a word. */
static void hear(void *message, size_t size)
{
	ssize_t got = recv(control, message, size, 0);

	if (got == 0)
		_exit(0);
	if (got != (ssize_t)size)
		fail("the control socket: %s", got < 0 ? strerror(errno) : "a message of another size");
}

/* Whether a connection begins with the number. On a network anybody may come, and say nothing. */
static bool knows(int data, uint64_t wanted)
{
	struct timeval patience = {.tv_sec = 2}, for_ever = {0};
	uint64_t token = 0;

	setsockopt(data, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	bool is_known = recv(data, &token, sizeof token, MSG_WAITALL) == sizeof token && token == wanted;
	setsockopt(data, SOL_SOCKET, SO_RCVTIMEO, &for_ever, sizeof for_ever);
	return is_known;
}

static int accept_connection(const struct peer_request *request)
{
	struct sockaddr_storage address;
	socklen_t size = read_address(request->address, 0, &address);
	int listener = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (listener < 0)
		fail("socket: %s", strerror(errno));
	set_end(listener, &request->settings);
	if (bind(listener, (struct sockaddr *)&address, size) < 0 || listen(listener, 1) < 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &size) < 0)
		fail("cannot listen on %s: %s", request->address, strerror(errno));
	/* The port is at the same place of both kinds of address. */
	tell(&(struct peer_message){.step = LISTENS,
				    .port = ntohs(((struct sockaddr_in *)&address)->sin_port)});
	for (;;) {
		int data = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (data < 0)
			fail("accept: %s", strerror(errno));
		if (knows(data, request->token)) {
			close(listener);
			set_no_delay(data, request->settings.no_delay);
			return data;
		}
		close(data);
	}
}

static void move_payload(int data, const struct peer_request *request)
{
	uint64_t acknowledged = 0;

	if (request->peer_sends) {
		send_payload(data, request->bytes, request->chunk);
		push_out(data, request->settings.no_delay);
		receive_exactly(data, &acknowledged, sizeof acknowledged);
		if (acknowledged != request->bytes)
			fail("W_test acknowledged %llu bytes", (unsigned long long)acknowledged);
		return;
	}
	receive_payload(data, request->bytes, request->chunk);
	send_exactly(data, &request->bytes, sizeof request->bytes);
	push_out(data, request->settings.no_delay);
}

/* Rounds, until the other side has enough. */
static _Noreturn void work(const struct peer_request *request)
{
	int data = accept_connection(request);
	uint64_t retransmissions = tcp_info_of(data).tcpi_total_retrans;

	tell(&(struct peer_message){.step = CONNECTED});
	for (;;) {
		struct peer_message message;
		struct sample used;
		hear(&message, sizeof message);
		if (message.step != GO)
			fail("told step %d in place of a round", message.step);
		struct usage before = usage();
		move_payload(data, request);
		record_usage(&used, before, usage());
		uint64_t in_all = tcp_info_of(data).tcpi_total_retrans;
		tell(&(struct peer_message){.step = DONE,
					    .user_ns = used.user_ns,
					    .system_ns = used.system_ns,
					    .retransmissions = in_all - retransmissions});
		retransmissions = in_all;
	}
}

/* What a worker says where it fails goes to who asked. */
static void pass_on(int complaints)
{
	struct peer_message message = {.step = FAILED};
	ssize_t length = read(complaints, message.problem, sizeof message.problem - 1);

	if (length > 0) {
		message.problem[strcspn(message.problem, "\n")] = '\0';
		send(control, &message, sizeof message, MSG_NOSIGNAL);
	}
}

static _Noreturn void attend(void)
{
	struct peer_request request;
	int complaints[2], status;

	hear(&request, sizeof request);
	request.address[ADDRESS_TEXT - 1] = request.settings.congestion[CONGESTION_NAME - 1] = '\0';
	if (request.version != COMM_VERSION || request.chunk < 1 || request.chunk > LONGEST_CHUNK)
		fail("a request that this version does not know");
	if (pipe2(complaints, O_CLOEXEC) < 0)
		fail("pipe: %s", strerror(errno));
	pid_t own = getpid(), worker = fork();
	if (worker < 0)
		fail("fork: %s", strerror(errno));
	if (worker == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != own)
			_exit(1);
		dup2(complaints[1], STDERR_FILENO);
		work(&request);
	}
	close(complaints[1]);
	struct pollfd ends[] = {{.fd = control, .events = POLLRDHUP}, {.fd = complaints[0], .events = POLLIN}};
	while (poll(ends, 2, -1) < 0 && errno == EINTR)
		;
	if (ends[1].revents)
		pass_on(complaints[0]);
	kill(worker, SIGKILL);
	waitpid(worker, &status, 0);
	_exit(0);
}

static void start_ftp(const char *text, uint16_t port)
{
	struct sockaddr_storage address;
	socklen_t size = read_address(text, port, &address);
	int listener = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	pid_t own = getpid();

	/* Of one that was there a moment ago, connections may linger. */
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(listener, (struct sockaddr *)&address, size) < 0 || listen(listener, 16) < 0)
		fail("cannot listen on %s, port %d: %s", text, port, strerror(errno));
	pid_t child = fork();
	if (child < 0)
		fail("fork: %s", strerror(errno));
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != own)
			_exit(1);
		serve_ftp(listener);
	}
	close(listener);
}

_Noreturn void serve_peers(const char *path, const char *ftp_address, uint16_t ftp_port)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	current = &peer;
	take_charge();
	/* It has its name when it listens, so that nobody is refused who sees it. */
	if (snprintf(address.sun_path, sizeof address.sun_path, "%s~", path) >= (int)sizeof address.sun_path)
		fail("the path %s is too long for a socket", path);
	prepare_payload();
	if (ftp_address)
		start_ftp(ftp_address, ftp_port);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) < 0 ||
	    listen(listener, MOST_CONNECTIONS) < 0 || rename(address.sun_path, path) < 0)
		fail("cannot listen on %s: %s", path, strerror(errno));
	/* Ended children are nobody's concern. */
	signal(SIGCHLD, SIG_IGN);
	for (pid_t own = getpid();;) {
		control = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (control < 0)
			fail("accept: %s", strerror(errno));
		pid_t child = fork();
		if (child == 0) {
			signal(SIGCHLD, SIG_DFL);
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() != own)
				_exit(1);
			close(listener);
			attend();
		}
		close(control);
	}
}
