/* COMM: connections between W_test and its peers, and what else W_test does meanwhile; one cell of a grid.
 *
 * Each connection and each copy of the activity is a process. All prepare, and wait; then one futex
 * releases them. Who sends is done when the receiver has acknowledged the last byte, who receives when
 * that has come. What ends first goes on with an unscored copy of its work until the other ends too, so
 * that each is timed beside the other from its beginning to its end. */
#include "comm.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct workload cell = {.name = "comm", .unit = "Mb/s", .units_per_op = 1e-6};
static struct comm_board *board;
static pid_t driver, group;

static int reach_peer(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int control = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (strlen(path) >= sizeof address.sun_path)
		fail("the path %s is too long for a socket", path);
	strcpy(address.sun_path, path);
	if (control < 0 || connect(control, (struct sockaddr *)&address, sizeof address) < 0)
		fail("cannot reach the peer at %s: %s", path, strerror(errno));
	return control;
}

static void tell(int control, const void *message, size_t size)
{
	if (send(control, message, size, MSG_NOSIGNAL) != (ssize_t)size)
		fail("the peer has ended: %s", strerror(errno));
}

static struct peer_message hear(int control, enum peer_step expected)
{
	struct peer_message message;
	ssize_t got = recv(control, &message, sizeof message, 0);

	if (got == 0)
		fail("the peer has ended");
	if (got != sizeof message)
		fail("the peer: %s", got < 0 ? strerror(errno) : "a message of another size");
	if (message.step == FAILED)
		fail("at the peer: %.*s", PROBLEM_TEXT, message.problem);
	if (message.step != expected)
		fail("the peer is at step %d, not %d", message.step, expected);
	return message;
}

static int connect_data(int control, const struct connection *connection, const struct comm_options *options)
{
	struct peer_request request = {.version = COMM_VERSION,
				       .peer_sends = !connection->is_send,
				       .bytes = connection->bytes,
				       .chunk = options->chunk,
				       .settings = options->peers};
	struct sockaddr_storage address;

	strcpy(request.address, connection->address);
	/* Whoever else finds the port does not know this. */
	if (getrandom(&request.token, sizeof request.token, 0) != sizeof request.token)
		fail("getrandom: %s", strerror(errno));
	tell(control, &request, sizeof request);
	uint32_t port = hear(control, LISTENS).port;
	socklen_t size = read_address(connection->address, port, &address);
	int data = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (data < 0)
		fail("socket: %s", strerror(errno));
	set_end(data, &options->own);
	if (connect(data, (struct sockaddr *)&address, size) < 0)
		fail("cannot connect to %s: %s", connection->address, strerror(errno));
	send_exactly(data, &request.token, sizeof request.token);
	push_out(data, options->own.no_delay);
	hear(control, CONNECTED);
	return data;
}

/* When it returns, all of the payload has arrived. */
static void move_round(int data, const struct connection *connection, const struct comm_options *options)
{
	uint64_t acknowledged = 0;

	if (!connection->is_send) {
		receive_payload(data, connection->bytes, options->chunk);
		return;
	}
	send_payload(data, connection->bytes, options->chunk);
	push_out(data, options->own.no_delay);
	receive_exactly(data, &acknowledged, sizeof acknowledged);
	if (acknowledged != connection->bytes)
		fail("%llu of %llu bytes were acknowledged", (unsigned long long)acknowledged,
		     (unsigned long long)connection->bytes);
}

/* Who sent waits for it. */
static void acknowledge(int data, const struct connection *connection, const struct comm_options *options)
{
	if (connection->is_send)
		return;
	send_exactly(data, &connection->bytes, sizeof connection->bytes);
	push_out(data, options->own.no_delay);
}

/* Nobody waits for the end of a round that is not scored: what is over ends it. */
static _Noreturn void refill(int control, int data, const struct connection *connection,
			     const struct comm_options *options)
{
	for (;;) {
		tell(control, &(struct peer_message){.step = GO}, sizeof(struct peer_message));
		move_round(data, connection, options);
		acknowledge(data, connection, options);
		hear(control, DONE);
	}
}

static _Noreturn void be_connection(const struct comm_options *options, int number)
{
	const struct connection *connection = &options->connections[number];
	struct transfer *transfer = &board->transfers[number];
	struct sample used;

	int control = reach_peer(connection->control);
	int data = connect_data(control, connection, options);
	uint64_t retransmissions = tcp_info_of(data).tcpi_total_retrans;
	atomic_fetch_add(&board->ready, 1);
	wait_at_gate(&board->gate);
	struct usage before = usage();
	tell(control, &(struct peer_message){.step = GO}, sizeof(struct peer_message));
	move_round(data, connection, options);
	transfer->elapsed_ns = now_ns() - board->opened_ns;
	record_usage(&used, before, usage());
	acknowledge(data, connection, options);
	struct peer_message peer = hear(control, DONE);
	struct tcp_info info = tcp_info_of(data);
	transfer->user_ns = used.user_ns, transfer->system_ns = used.system_ns;
	transfer->peer_user_ns = peer.user_ns, transfer->peer_system_ns = peer.system_ns;
	transfer->retransmissions = info.tcpi_total_retrans - retransmissions + peer.retransmissions;
	transfer->round_trip_us = info.tcpi_rtt;
	transfer->least_round_trip_us = info.tcpi_min_rtt;
	if (atomic_fetch_sub(&board->transfers_left, 1) == 1) {
		if (!atomic_load(&board->activities_left))
			open_gate(&board->over);
		open_gate(&board->all_transferred);
	}
	wait_at_gate(&board->all_transferred);
	if (atomic_load(&board->activities_left))
		refill(control, data, connection, options);
	_exit(0);
}

/* Who failed has said why, unless it could not. */
static _Noreturn void give_up(const char *problem)
{
	if (problem)
		fprintf(stderr, "comm: %s\n", problem);
	dismiss_janitor(group);
	_exit(1);
}

static void start(const struct comm_options *options, int number)
{
	pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != driver)
			_exit(1); /* it died before that line */
		part_from_janitor();
		setpgid(0, group);
		if (number < options->count)
			be_connection(options, number);
		be_activity(&options->beside, board, number - options->count);
	}
	if (child < 0)
		give_up("this machine refuses another process");
	if (!group)
		group = child;
	if (number < options->count)
		board->transfers[number].pid = child;
	/* Here too, or a process could be in no group yet when the next one is to join it. */
	setpgid(child, group);
	if (child == group)
		leave_to_janitor(group);
}

/* One has ended: well, or all is lost. */
static void hear_of_end(int status)
{
	char problem[100];

	if (WIFSIGNALED(status)) {
		snprintf(problem, sizeof problem, "one of its processes was killed by signal %d", WTERMSIG(status));
		give_up(problem);
	}
	if (status)
		give_up(NULL);
}

static void wait_until_ready(uint32_t processes)
{
	int status;

	while (atomic_load(&board->ready) < processes) {
		if (waitpid(-group, &status, WNOHANG) > 0) {
			hear_of_end(status);
			give_up("one of its processes ended before it began");
		}
		poll(NULL, 0, 1);
	}
}

/* Activities end by themselves, and have checked their work then. Where there are such, connections may be
 * in a round that nobody scores, which has no end of its own. */
static void wait_until_over(int connections, int copies)
{
	int status, activities = 0;
	bool is_activity;

	for (int ended = 0; copies ? activities < copies : ended < connections; ended++) {
		pid_t pid = waitpid(-group, &status, 0);
		if (pid < 0)
			fail("waitpid: %s", strerror(errno));
		hear_of_end(status);
		is_activity = true;
		for (int i = 0; i < connections; i++)
			is_activity &= board->transfers[i].pid != pid;
		activities += is_activity;
	}
	leave_to_janitor(0);
	kill(-group, SIGKILL);
	while (waitpid(-group, &status, 0) > 0)
		;
}

static struct sample sum(const struct comm_options *options)
{
	struct sample total = {.operations = 0};

	for (int i = 0; i < options->count; i++) {
		const struct transfer *transfer = &board->transfers[i];
		if (total.elapsed_ns < transfer->elapsed_ns)
			total.elapsed_ns = transfer->elapsed_ns;
		total.operations += 8 * options->connections[i].bytes;
		total.user_ns += transfer->user_ns;
		total.system_ns += transfer->system_ns;
	}
	total.total_operations = total.operations;
	total.rate = total.operations * cell.units_per_op * 1e9 / total.elapsed_ns;
	return total;
}

static uint64_t activity_ns(const struct beside *beside)
{
	uint64_t last = 0;

	for (int i = 0; i < beside->copies; i++)
		if (last < board->activity_ns[i])
			last = board->activity_ns[i];
	return last;
}

/* Of the activity alone. */
static struct sample sum_of_activity(const struct beside *beside)
{
	struct sample total = {.operations = beside->units * beside->copies};

	total.elapsed_ns = activity_ns(beside);
	total.total_operations = total.operations;
	total.rate = total.operations * 1e9 / total.elapsed_ns;
	return total;
}

static void print_of_transfers(const struct comm_options *options, const struct sample *total)
{
	double gigabytes = total->operations / 8e9, peers_ns = 0, round_trip = 0, least = 0;
	uint64_t retransmissions = 0;

	for (int i = 0; i < options->count; i++) {
		const struct transfer *transfer = &board->transfers[i];
		peers_ns += transfer->peer_user_ns + transfer->peer_system_ns;
		retransmissions += transfer->retransmissions;
		if (round_trip < transfer->round_trip_us)
			round_trip = transfer->round_trip_us;
		if (least < transfer->least_round_trip_us)
			least = transfer->least_round_trip_us;
	}
	print_reading("retransmissions", retransmissions, "segments", "lower");
	print_reading("cpu_per_gb", (total->user_ns + total->system_ns) / 1e9 / gigabytes, "s/GB", "lower");
	print_reading("peer_cpu_per_gb", peers_ns / 1e9 / gigabytes, "s/GB", "lower");
	print_reading("round_trip", round_trip * 1e3, "ns", "lower");
	print_reading("least_round_trip", least * 1e3, "ns", "lower");
	if (options->beside.activity)
		print_reading("activity_rate", sum_of_activity(&options->beside).rate, "units/s", "higher");
	print_readings(total);
}

static void print(const struct comm_options *options)
{
	static const struct options as_it_is;
	static struct workload activity;

	if (options->count) {
		struct sample total = sum(options);
		print_sample(&as_it_is, &total);
		print_of_transfers(options, &total);
	} else {
		struct sample total = sum_of_activity(&options->beside);
		activity = *options->beside.activity;
		activity.unit = "units/s";
		current = &activity;
		print_sample(&as_it_is, &total);
	}
	printf("}\n");
	if (fflush(stdout) != 0)
		fail("cannot write the result: %s", strerror(errno));
}

void take_comm(const struct comm_options *options)
{
	const struct beside *beside = &options->beside;
	int copies = beside->activity ? beside->copies : 0;
	size_t bytes = sizeof *board + copies * sizeof *board->activity_ns;

	current = &cell;
	take_charge();
	driver = getpid();
	board = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (board == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	prepare_payload();
	atomic_store(&board->transfers_left, options->count);
	atomic_store(&board->activities_left, copies);
	enter_scratch_directory();
	start_janitor();
	for (int i = 0; i < options->count + copies; i++)
		start(options, i);
	wait_until_ready(options->count + copies);
	board->opened_ns = now_ns();
	open_gate(&board->gate);
	wait_until_over(options->count, copies);
	dismiss_janitor(0);
	print(options);
}
