/* What a cell came to, as a line of JSON. */
#include "comm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* How each kind of traffic is counted. Exchanges are those of requests with answers. */
static const struct workload units[] = {
	[STREAM] = {.name = "comm", .unit = "Mb/s", .units_per_op = 1e-6},
	[REQUESTS] = {.name = "comm", .unit = "requests/s", .units_per_op = 1},
	[CONNECTS] = {.name = "comm", .unit = "connects/s", .units_per_op = 1},
	[DATAGRAMS] = {.name = "comm", .unit = "Mb/s", .units_per_op = 1e-6},
};

static const struct comm_options *options;
static const struct comm_board *board;

static enum traffic scored(void)
{
	return options->connections[0].traffic;
}

/* Bits, where it is payload. Of datagrams, what came behind the first, from which their time is. */
static uint64_t operations_of(int i)
{
	const uint64_t datagram = options->chunk < LONGEST_DATAGRAM ? options->chunk : LONGEST_DATAGRAM;
	const uint64_t least = 16; /* its token and number */

	switch (scored()) {
	case STREAM: return 8 * options->connections[i].amount;
	case DATAGRAMS:
		return 8 * (board->transfers[i].arrived - 1) * (datagram < least ? least : datagram);
	default: return options->connections[i].amount;
	}
}

static struct sample sum(void)
{
	struct sample total = {.operations = 0};

	for (int i = 0; i < options->count; i++) {
		const struct transfer *transfer = &board->transfers[i];
		if (options->connections[i].is_probe)
			continue;
		if (total.elapsed_ns < transfer->elapsed_ns)
			total.elapsed_ns = transfer->elapsed_ns;
		total.operations += operations_of(i);
		total.user_ns += transfer->user_ns;
		total.system_ns += transfer->system_ns;
	}
	total.total_operations = total.operations;
	total.rate = total.operations * units[scored()].units_per_op * 1e9 / total.elapsed_ns;
	return total;
}

static uint64_t activity_ns(void)
{
	uint64_t last = 0;

	for (int i = 0; i < options->beside.copies; i++)
		if (last < board->activity_ns[i])
			last = board->activity_ns[i];
	return last;
}

/* Of the activity alone. */
static struct sample sum_of_activity(void)
{
	struct sample total = {.operations = options->beside.units * options->beside.copies};

	total.elapsed_ns = activity_ns();
	total.total_operations = total.operations;
	total.rate = total.operations * 1e9 / total.elapsed_ns;
	return total;
}

/* CPU time at both ends: of a gigabyte, or of a request. */
static void print_processor(const struct sample *total)
{
	double own_ns = total->user_ns + total->system_ns, peers_ns = 0;

	for (int i = 0; i < options->count; i++)
		peers_ns += board->transfers[i].peer_user_ns + board->transfers[i].peer_system_ns;
	if (scored() == STREAM || scored() == DATAGRAMS) {
		double gigabytes = total->operations / 8e9;
		print_reading("cpu_per_gb", own_ns / 1e9 / gigabytes, "s/GB", "lower");
		print_reading("peer_cpu_per_gb", peers_ns / 1e9 / gigabytes, "s/GB", "lower");
	} else {
		print_reading("cpu_per_request", own_ns / total->operations, "ns", "lower");
		print_reading("peer_cpu_per_request", peers_ns / total->operations, "ns", "lower");
	}
}

static void print_tcp(void)
{
	uint64_t retransmissions = 0, timeouts = 0, round_trip = 0, least = 0;

	for (int i = 0; i < options->count; i++) {
		const struct transfer *transfer = &board->transfers[i];
		retransmissions += transfer->retransmissions;
		timeouts += transfer->timeouts;
		if (round_trip < transfer->round_trip_us)
			round_trip = transfer->round_trip_us;
		if (least < transfer->least_round_trip_us)
			least = transfer->least_round_trip_us;
	}
	print_reading("retransmissions", retransmissions, "segments", "lower");
	print_reading("timeouts", timeouts, "timeouts", "lower");
	print_reading("round_trip", round_trip * 1e3, "ns", "lower");
	print_reading("least_round_trip", least * 1e3, "ns", "lower");
}

static void print_datagrams(void)
{
	uint64_t sent = 0, arrived = 0, reordered = 0, duplicated = 0;

	for (int i = 0; i < options->count; i++) {
		if (options->connections[i].is_probe)
			continue;
		sent += options->connections[i].amount;
		arrived += board->transfers[i].arrived;
		reordered += board->transfers[i].reordered;
		duplicated += board->transfers[i].duplicated;
	}
	print_reading("datagrams", sent, "datagrams", "higher");
	print_reading("datagrams_lost", sent - arrived, "datagrams", "lower");
	print_reading("datagrams_reordered", reordered, "datagrams", "lower");
	print_reading("datagrams_duplicated", duplicated, "datagrams", "lower");
}

static void print_watches(void)
{
	const char *separator = "";

	printf(",\"watch\":{\"opened_ns\":%llu,\"connections\":[", (unsigned long long)board->opened_ns);
	for (int i = 0; i < options->count; i++) {
		if (!board->transfers[i].watch.looks)
			continue;
		printf("%s", separator);
		print_watch(&board->transfers[i].watch);
		separator = ",";
	}
	printf("]}");
}

static void print_exchanges(struct comm_board *shared)
{
	bool has_exchanges = scored() == REQUESTS || scored() == CONNECTS;

	for (int i = 0; i < options->count; i++)
		has_exchanges |= options->connections[i].is_probe;
	if (!has_exchanges)
		return;
	histogram_take(shared->buckets);
	printf(",\"latencies\":{\"clock_ns\":0,\"buckets\":");
	histogram_print();
	printf("}");
}

void print_cell(const struct comm_options *of, struct comm_board *shared)
{
	static const struct options as_it_is;
	static struct workload activity;

	options = of, board = shared;
	if (options->count) {
		struct sample total = sum();
		current = &units[scored()];
		print_sample(&as_it_is, &total);
		print_processor(&total);
		if (scored() == DATAGRAMS)
			print_datagrams();
		else
			print_tcp();
		if (options->beside.activity)
			print_reading("activity_rate", sum_of_activity().rate, "units/s", "higher");
		print_readings(&total);
		print_exchanges(shared);
		if (options->watches && scored() == STREAM)
			print_watches();
	} else {
		struct sample total = sum_of_activity();
		activity = *options->beside.activity;
		activity.unit = "units/s";
		current = &activity;
		print_sample(&as_it_is, &total);
	}
	printf("}\n");
	if (fflush(stdout) != 0)
		fail("cannot write the result: %s", strerror(errno));
}
