/* One connection of a cell, on W_test: agreed with the peer, moved, and gone on with as long as something
 * else is scored. */
#include "comm.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/un.h>
#include <unistd.h>

static const struct comm_options *options;
static struct comm_board *board;
static const struct connection *connection;
static struct transfer *transfer;

static struct peer_request request; /* what the peer was asked */
static struct place peer;           /* where it listens */
static int control, data;           /* `data` is none for CONNECTS */
static uint64_t round_number;

static int reach_peer(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int reached = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (strlen(path) >= sizeof address.sun_path)
		fail("the path %s is too long for a socket", path);
	strcpy(address.sun_path, path);
	if (reached < 0 || connect(reached, (struct sockaddr *)&address, sizeof address) < 0)
		fail("cannot reach the peer at %s: %s", path, strerror(errno));
	return reached;
}

static void tell(const void *message, size_t size)
{
	if (send(control, message, size, MSG_NOSIGNAL) != (ssize_t)size)
		fail("the peer has ended: %s", strerror(errno));
}

static struct peer_message hear(enum peer_step expected)
{
	struct peer_message message;
	ssize_t got = recv(control, &message, sizeof message, MSG_WAITALL);

	if (got == 0)
		fail("the peer has ended");
	if (got != sizeof message)
		fail("cannot read from the peer: %s", got < 0 ? strerror(errno) : "its message has a wrong size");
	if (message.step == FAILED)
		fail("the peer reports: %.*s", PROBLEM_TEXT, message.problem);
	if (message.step != expected)
		fail("the peer is at step %d, not %d", message.step, expected);
	return message;
}

static void open_data(void)
{
	bool is_udp = connection->traffic == DATAGRAMS;

	data = socket(peer.address.ss_family, (is_udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);
	if (data < 0)
		fail("socket: %s", strerror(errno));
	if (!is_udp)
		set_end(data, &options->own);
	if (connect(data, (struct sockaddr *)&peer.address, peer.size) < 0)
		fail("cannot connect to %s: %s", connection->address, strerror(errno));
	if (is_udp) {
		greet(data, control, &request);
		return;
	}
	send_exactly(data, &request.token, sizeof request.token);
	push_out(data, options->own.no_delay);
}

static void agree(void)
{
	request = (struct peer_request){.version = COMM_VERSION,
					.traffic = connection->traffic,
					.peer_sends = !connection->is_send,
					.amount = connection->is_probe ? 0 : connection->amount,
					.quiet_ms = options->quiet_ms,
					.chunk = connection->is_probe ? PROBE_BYTES : options->chunk,
					.settings = options->peers};
	strcpy(request.address, connection->address);
	/* Whoever else finds the port does not know this. */
	if (getrandom(&request.token, sizeof request.token, 0) != sizeof request.token)
		fail("getrandom: %s", strerror(errno));
	tell(&request, sizeof request);
	peer.size = read_address(connection->address, hear(LISTENS).port, &peer.address);
	if (connection->traffic != CONNECTS)
		open_data();
	hear(CONNECTED);
}

/* When it returns, all of the payload has arrived. */
static void move_stream(void)
{
	uint64_t acknowledged = 0;

	if (!connection->is_send) {
		receive_payload(data, connection->amount, options->chunk);
		return;
	}
	send_payload(data, connection->amount, options->chunk);
	push_out(data, options->own.no_delay);
	receive_exactly(data, &acknowledged, sizeof acknowledged);
	if (acknowledged != connection->amount)
		fail("the peer acknowledged %llu of %llu bytes", (unsigned long long)acknowledged,
		     (unsigned long long)connection->amount);
}

/* Who sent waits for it. */
static void acknowledge(void)
{
	if (connection->traffic != STREAM || connection->is_send)
		return;
	send_exactly(data, &connection->amount, sizeof connection->amount);
	push_out(data, options->own.no_delay);
}

static void move_round(void)
{
	round_number++;
	tell(&(struct peer_message){.step = GO}, sizeof(struct peer_message));
	switch (connection->traffic) {
	case STREAM: move_stream(); break;
	case REQUESTS: request_often(data, connection->amount, options->chunk); break;
	case CONNECTS: connect_often(&peer, &request, &options->own); break;
	case DATAGRAMS:
		send_datagrams(data, &request, round_number);
		tell(&(struct peer_message){.step = ALL_SENT}, sizeof(struct peer_message));
	}
}

/* Nobody waits for the end of a round that is not scored: what is over ends it. */
static _Noreturn void refill(void)
{
	for (;;) {
		move_round();
		acknowledge();
		hear(DONE);
	}
}

static bool is_watched(void)
{
	return options->watches && connection->traffic == STREAM;
}

static void record(struct usage before, uint64_t retransmissions)
{
	struct sample used;

	record_usage(&used, before, usage());
	struct peer_message told = hear(DONE);
	used.system_ns -= transfer->watch.processor_ns;
	transfer->user_ns = used.user_ns, transfer->system_ns = used.system_ns > 0 ? used.system_ns : 0;
	transfer->peer_user_ns = told.user_ns, transfer->peer_system_ns = told.system_ns;
	transfer->arrived = told.arrived;
	transfer->reordered = told.reordered, transfer->duplicated = told.duplicated;
	if (connection->traffic == DATAGRAMS) {
		if (told.arrived < 2)
			fail("the peer received too few datagrams: %llu sent, %llu arrived",
			     (unsigned long long)connection->amount, (unsigned long long)told.arrived);
		transfer->elapsed_ns = told.span_ns;
	}
	if (connection->traffic == STREAM || connection->traffic == REQUESTS) {
		struct tcp_info info = tcp_info_of(data);
		transfer->retransmissions = info.tcpi_total_retrans - retransmissions + told.retransmissions;
		transfer->timeouts = timeouts_of(data) + told.timeouts;
		transfer->round_trip_us = info.tcpi_rtt;
		transfer->least_round_trip_us = info.tcpi_min_rtt;
	}
	if (connection->traffic == REQUESTS || connection->traffic == CONNECTS)
		histogram_share(board->buckets);
}

static _Noreturn void be_probe(void)
{
	tell(&(struct peer_message){.step = GO}, sizeof(struct peer_message));
	transfer->exchanges = probe(data, &board->transfers_left);
	histogram_share(board->buckets);
	_exit(0);
}

_Noreturn void be_connection(const struct comm_options *of, struct comm_board *shared, int number)
{
	options = of, board = shared;
	connection = &options->connections[number];
	transfer = &board->transfers[number];
	control = reach_peer(connection->control);
	agree();
	uint64_t retransmissions = connection->traffic == STREAM ? tcp_info_of(data).tcpi_total_retrans : 0;
	atomic_fetch_add(&board->ready, 1);
	wait_at_gate(&board->gate);
	if (connection->is_probe)
		be_probe();
	struct usage before = usage();
	if (is_watched())
		start_watch(data, connection->is_send, &transfer->watch, board->opened_ns);
	move_round();
	transfer->elapsed_ns = now_ns() - board->opened_ns;
	if (is_watched())
		end_watch();
	acknowledge();
	record(before, retransmissions);
	if (atomic_fetch_sub(&board->transfers_left, 1) == 1) {
		if (!atomic_load(&board->activities_left))
			open_gate(&board->over);
		open_gate(&board->all_transferred);
	}
	wait_at_gate(&board->all_transferred);
	if (atomic_load(&board->activities_left))
		refill();
	_exit(0);
}
