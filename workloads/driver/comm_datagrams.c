/* Numbered datagrams from W_test to a peer, as fast as they go: what is lost, comes late or comes twice is
 * seen by their numbers. */
#include "comm.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { GREETING_EVERY_MS = 50, GREETINGS = 200 };

struct head {
	uint64_t token, number; /* of the experiment and its round; from 1, and 0 for a greeting */
};

static size_t content_of(const struct peer_request *request)
{
	size_t whole = request->chunk < LONGEST_DATAGRAM ? request->chunk : LONGEST_DATAGRAM;

	return whole > sizeof(struct head) ? whole - sizeof(struct head) : 0;
}

static void send_one(int socket, struct head head, size_t content)
{
	struct iovec parts[] = {{&head, sizeof head}, {(void *)payload_at(head.number * content), content}};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};

	while (sendmsg(socket, &message, 0) < 0)
		if (errno != ENOBUFS && errno != EINTR)
			fail("cannot send a datagram: %s", strerror(errno));
}

/* Until the peer says that one has come, which also finds out its hardware address. */
void greet(int socket, int control, const struct peer_request *request)
{
	struct pollfd answer = {.fd = control, .events = POLLIN};

	for (int tries = 0; tries < GREETINGS; tries++) {
		send_one(socket, (struct head){.token = request->token}, 0);
		if (poll(&answer, 1, GREETING_EVERY_MS) > 0)
			return;
	}
	fail("datagrams do not reach %s", request->address);
}

void be_greeted(int socket, const struct peer_request *request)
{
	struct head head = {0};
	struct sockaddr_storage from;
	socklen_t size = sizeof from;

	while (recvfrom(socket, &head, sizeof head, 0, (struct sockaddr *)&from, &size) < (ssize_t)sizeof head ||
	       head.token != request->token)
		size = sizeof from;
	/* From now on it hears nobody else. */
	if (connect(socket, (struct sockaddr *)&from, size) < 0)
		fail("connect: %s", strerror(errno));
}

void send_datagrams(int socket, const struct peer_request *request, uint64_t round)
{
	for (uint64_t number = 1; number <= request->amount; number++)
		send_one(socket, (struct head){request->token + round, number}, content_of(request));
}

static bool is_as_sent(const char *datagram, ssize_t got, const struct peer_request *request, uint64_t round)
{
	const struct head *head = (const struct head *)datagram;
	size_t content = content_of(request);

	if (got < (ssize_t)sizeof *head || head->token != request->token + round || head->number < 1 ||
	    head->number > request->amount)
		return false; /* a greeting, or one of an earlier round */
	if (got != (ssize_t)(sizeof *head + content) ||
	    memcmp(datagram + sizeof *head, payload_at(head->number * content), content))
		fail("datagram %llu differs from what was sent", (unsigned long long)head->number);
	return true;
}

struct peer_message count_datagrams(int socket, int control, const struct peer_request *request,
				    uint64_t round)
{
	struct peer_message seen = {.step = DONE};
	struct pollfd ends[] = {{.fd = socket, .events = POLLIN}, {.fd = control, .events = POLLIN}};
	uint8_t *has_come = calloc(request->amount / 8 + 1, 1);
	uint64_t first = 0, last = 0, highest = 0;
	bool is_all_sent = false;
	static _Alignas(struct head) char datagram[LONGEST_DATAGRAM + 1];

	if (!has_come)
		fail("no memory for the numbers of datagrams");
	while (seen.arrived < request->amount) {
		int ready = poll(ends, 1 + !is_all_sent, is_all_sent ? (int)request->quiet_ms : -1);
		if (ready == 0)
			break;
		if (ready > 0 && ends[1].revents && !is_all_sent) {
			struct peer_message message;
			ssize_t got = recv(control, &message, sizeof message, MSG_WAITALL);
			if (got != sizeof message || message.step != ALL_SENT)
				_exit(0); /* who asked has gone */
			is_all_sent = true;
		}
		for (ssize_t got; (got = recv(socket, datagram, sizeof datagram, MSG_DONTWAIT)) >= 0;) {
			if (!is_as_sent(datagram, got, request, round))
				continue;
			uint64_t number = ((struct head *)datagram)->number;
			last = now_ns();
			if (!first)
				first = last;
			if (has_come[number / 8] & 1 << number % 8) {
				seen.duplicated++;
				continue;
			}
			has_come[number / 8] |= 1 << number % 8;
			seen.arrived++;
			if (number < highest)
				seen.reordered++;
			else
				highest = number;
		}
	}
	free(has_come);
	seen.span_ns = last - first;
	if (!is_all_sent) {
		/* It is about to come. */
		struct peer_message message;
		if (recv(control, &message, sizeof message, MSG_WAITALL) != sizeof message)
			_exit(0);
	}
	return seen;
}
