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

/* crates/weigh-net/src/far_host.rs sends one that is too old, to see whether a peer answers. */
_Static_assert(sizeof(struct peer_request) == 128, "INVALID_REQUEST of far_host.rs has this size");

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
	ssize_t got = recv(control, message, size, MSG_WAITALL);

	if (got == 0)
		_exit(0);
	if (got != (ssize_t)size)
		fail("the control socket: %s", got < 0 ? strerror(errno) : "a message has a wrong size");
}

static int listen_to(const struct peer_request *request)
{
	bool is_udp = request->traffic == DATAGRAMS;
	struct sockaddr_storage address;
	socklen_t size = read_address(request->address, 0, &address);
	int listener = socket(address.ss_family, (is_udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);

	if (listener < 0)
		fail("socket: %s", strerror(errno));
	if (!is_udp)
		set_end(listener, &request->settings);
	if (bind(listener, (struct sockaddr *)&address, size) < 0 ||
	    (!is_udp && listen(listener, MOST_CONNECTIONS) < 0) ||
	    getsockname(listener, (struct sockaddr *)&address, &size) < 0)
		fail("cannot listen on %s: %s", request->address, strerror(errno));
	/* The port is at the same place of both kinds of address. */
	tell(&(struct peer_message){.step = LISTENS,
				    .port = ntohs(((struct sockaddr_in *)&address)->sin_port)});
	return listener;
}

static int accept_connection(int listener, const struct peer_request *request)
{
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

/* What is left to do over: a connection, or what takes connections or datagrams. */
static int open_data(const struct peer_request *request)
{
	int listener = listen_to(request);

	switch (request->traffic) {
	case STREAM:
	case REQUESTS: return accept_connection(listener, request);
	case DATAGRAMS: be_greeted(listener, request);
	}
	return listener;
}

static void move_stream(int data, const struct peer_request *request)
{
	uint64_t acknowledged = 0;

	if (request->peer_sends) {
		send_payload(data, request->amount, request->chunk);
		push_out(data, request->settings.no_delay);
		receive_exactly(data, &acknowledged, sizeof acknowledged);
		if (acknowledged != request->amount)
			fail("W_test acknowledged only %llu bytes", (unsigned long long)acknowledged);
		return;
	}
	receive_payload(data, request->amount, request->chunk);
	send_exactly(data, &request->amount, sizeof request->amount);
	push_out(data, request->settings.no_delay);
}

static struct peer_message move_round(int data, const struct peer_request *request, uint64_t round)
{
	switch (request->traffic) {
	case STREAM: move_stream(data, request); break;
	case REQUESTS: answer_requests(data, request->amount, request->chunk); break;
	case CONNECTS: answer_often(data, request); break;
	case DATAGRAMS: return count_datagrams(data, control, request, round);
	}
	return (struct peer_message){.step = DONE};
}

/* What TCP sent again on this connection so far. */
static void read_counts(int data, const struct peer_request *request, uint64_t *retransmissions,
			uint64_t *timeouts)
{
	if (request->traffic != STREAM && request->traffic != REQUESTS)
		return;
	*retransmissions = tcp_info_of(data).tcpi_total_retrans;
	*timeouts = timeouts_of(data);
}

/* Rounds, until the other side has enough. */
static _Noreturn void work(const struct peer_request *request)
{
	uint64_t retransmissions = 0, timeouts = 0;
	int data = open_data(request);

	read_counts(data, request, &retransmissions, &timeouts);
	tell(&(struct peer_message){.step = CONNECTED});
	for (uint64_t round = 1;; round++) {
		uint64_t retransmissions_before = retransmissions, timeouts_before = timeouts;
		struct peer_message message;
		struct sample used;
		hear(&message, sizeof message);
		if (message.step != GO)
			fail("received step %d instead of a round", message.step);
		struct usage before = usage();
		message = move_round(data, request, round);
		record_usage(&used, before, usage());
		message.user_ns = used.user_ns, message.system_ns = used.system_ns;
		read_counts(data, request, &retransmissions, &timeouts);
		message.retransmissions = retransmissions - retransmissions_before;
		message.timeouts = timeouts - timeouts_before;
		tell(&message);
	}
}

static void check_request(const struct peer_request *request)
{
	if (request->version != COMM_VERSION || request->traffic > DATAGRAMS || request->chunk < 1 ||
	    request->chunk > LONGEST_CHUNK || request->quiet_ms > 60000 ||
	    (request->traffic == DATAGRAMS && request->amount > MOST_DATAGRAMS))
		fail("a request is unknown to this version");
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
		check_request(&request);
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
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	current = &peer;
	own_cleanup();
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
