/* The command lines of COMM and of a peer. */
#include "comm.h"
#include "disk.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

/* ADDRESS,SOCKET; the path may have commas. */
static void add_connection(struct comm_options *options, const char *option, struct connection connection,
			   char *text)
{
	char *control = strchr(text, ',');

	if (options->count == MOST_CONNECTIONS)
		usage_error("more than %d connections", MOST_CONNECTIONS);
	if (!control)
		usage_error("--%s must end with ADDRESS,SOCKET, not '%s'", option, text);
	*control++ = '\0';
	if (strlen(text) >= ADDRESS_TEXT)
		usage_error("'%s' is not an address", text);
	strcpy(connection.address, text);
	connection.control = control;
	options->connections[options->count++] = connection;
}

/* AMOUNT,ADDRESS,SOCKET */
static void add_traffic(struct comm_options *options, const char *option, struct connection connection,
			char *text)
{
	char *address = strchr(text, ',');

	if (!address)
		usage_error("--%s takes AMOUNT,ADDRESS,SOCKET, not '%s'", option, text);
	*address++ = '\0';
	uint64_t most = connection.traffic == DATAGRAMS ? MOST_DATAGRAMS : 1ull << 44;

	connection.amount = number(option, text, 1, most);
	add_connection(options, option, connection, address);
}

/* NAME=COUNT: jobs of a mix, of which each copy does COUNT of so many. */
static void add_job(struct beside *beside, const char *option, char *text)
{
	static struct job jobs[MOST_TESTS];
	char *equals = strchr(text, '=');

	if (!equals)
		usage_error("--%s takes NAME=COUNT, not '%s'", option, text);
	*equals = '\0';
	const struct workload *test = find_workload(text);
	if (!test)
		usage_error("unknown workload '%s'; 'weigh-workloads list' lists all workloads", text);
	if (test->placement != ANYWHERE || test->exec_self)
		usage_error("'%s' cannot run alongside comm: it places or executes its own process", text);
	if (beside->mix.tests == MOST_TESTS)
		usage_error("a mix has %d tests at most", MOST_TESTS);
	jobs[beside->mix.tests++] = (struct job){.test = test, .count = number(option, equals + 1, 1, 1 << 20)};
	beside->mix.jobs = jobs;
	beside->activity = jobs[0].test;
}

/* NAME=COUNT: one workload, that each copy does so often. */
static void set_activity(struct beside *beside, char *text)
{
	char *equals = strchr(text, '=');

	if (!equals)
		usage_error("--beside takes NAME=COUNT, not '%s'", text);
	beside->units = number("beside", equals + 1, 1, 1ull << 40);
	strcpy(equals, "=1");
	beside->mix.tests = 0;
	add_job(beside, "beside", text);
}

static void set_congestion(struct comm_options *options, const char *name)
{
	if (strlen(name) >= CONGESTION_NAME)
		usage_error("'%s' is not a congestion control", name);
	strcpy(options->own.congestion, name);
	strcpy(options->peers.congestion, name);
}

/* What has different units has no sum, and beside nothing there is no probe. */
static void check_connections(const struct comm_options *options)
{
	const struct connection *first = options->connections;

	for (int i = 0; i < options->count; i++) {
		const struct connection *one = &options->connections[i];
		if (first->is_probe)
			usage_error("a probe must follow the scored connections");
		if (!one->is_probe && one->traffic != first->traffic)
			usage_error("streams, requests, connects and datagrams cannot be added: use one of them");
	}
}

int comm(int argc, char **argv)
{
	static const struct option known[] = {
		{"chunk", required_argument, NULL, 'c'},
		{"send", required_argument, NULL, 's'},
		{"receive", required_argument, NULL, 'r'},
		{"requests", required_argument, NULL, 'q'},
		{"connects", required_argument, NULL, 'o'},
		{"datagrams", required_argument, NULL, 'u'},
		{"probe", required_argument, NULL, 'p'},
		{"quiet-ms", required_argument, NULL, 'm'},
		{"watch", no_argument, NULL, 'w'},
		{"beside", required_argument, NULL, 'b'},
		{"beside-job", required_argument, NULL, 'j'},
		{"beside-units", required_argument, NULL, 'U'},
		{"beside-copies", required_argument, NULL, 'n'},
		{"file-kib", required_argument, NULL, 'k'},
		{"no-delay", no_argument, NULL, 'd'},
		{"congestion", required_argument, NULL, 'g'},
		{"send-buffer", required_argument, NULL, 'S'},
		{"receive-buffer", required_argument, NULL, 'R'},
		{"peer-send-buffer", required_argument, NULL, 'P'},
		{"peer-receive-buffer", required_argument, NULL, 'Q'},
		{0},
	};
	static struct comm_options options = {.chunk = 65536, .quiet_ms = 200, .beside.copies = 1};
	const struct connection send = {.traffic = STREAM, .is_send = true}, receive = {.traffic = STREAM};
	const struct connection requests = {.traffic = REQUESTS}, connects = {.traffic = CONNECTS};
	const struct connection probe = {.traffic = REQUESTS, .is_probe = true};
	const struct connection datagrams = {.traffic = DATAGRAMS};
	const uint64_t buffer = 1 << 30;

	opterr = 0;
	for (int option; (option = getopt_long(argc, argv, ":", known, NULL)) != -1;) {
		switch (option) {
		case 'c': options.chunk = number("chunk", optarg, 1, LONGEST_CHUNK); break;
		case 's': add_traffic(&options, "send", send, optarg); break;
		case 'r': add_traffic(&options, "receive", receive, optarg); break;
		case 'q': add_traffic(&options, "requests", requests, optarg); break;
		case 'o': add_traffic(&options, "connects", connects, optarg); break;
		case 'u': add_traffic(&options, "datagrams", datagrams, optarg); break;
		case 'p': add_connection(&options, "probe", probe, optarg); break;
		case 'm': options.quiet_ms = number("quiet-ms", optarg, 1, 60000); break;
		case 'w': options.watches = true; break;
		case 'b': set_activity(&options.beside, optarg); break;
		case 'j': add_job(&options.beside, "beside-job", optarg); break;
		case 'U': options.beside.units = number("beside-units", optarg, 1, 1ull << 40); break;
		case 'k': disk_kib_option = (long)number("file-kib", optarg, 1, 1ull << 31); break;
		case 'n': options.beside.copies = number("beside-copies", optarg, 1, 1024); break;
		case 'd': options.own.no_delay = options.peers.no_delay = 1; break;
		case 'g': set_congestion(&options, optarg); break;
		case 'S': options.own.send_buffer = number("send-buffer", optarg, 1, buffer); break;
		case 'R': options.own.receive_buffer = number("receive-buffer", optarg, 1, buffer); break;
		case 'P': options.peers.send_buffer = number("peer-send-buffer", optarg, 1, buffer); break;
		case 'Q': options.peers.receive_buffer = number("peer-receive-buffer", optarg, 1, buffer); break;
		case ':': usage_error("%s needs a value", argv[optind - 1]);
		default: usage_error("unknown option '%s'", argv[optind - 1]);
		}
	}
	if (optind < argc)
		usage_error("comm takes options only, not '%s'", argv[optind]);
	if (!options.count && !options.beside.activity)
		usage_error("comm takes a connection (--send, --receive) or an activity (--beside)");
	check_connections(&options);
	if (options.beside.activity && !options.beside.units)
		usage_error("--beside-job needs --beside-units");
	reset_inherited_state();
	take_comm(&options);
	return 0;
}

int comm_peer(int argc, char **argv)
{
	if (argc != 2 && argc != 4)
		usage_error("comm-peer takes the path of a socket, and optionally ADDRESS and PORT for FTP");
	unsigned int port = argc == 4 ? number("comm-peer", argv[3], 1, 65535) : 0;
	reset_inherited_state();
	serve_peers(argv[1], argc == 4 ? argv[2] : NULL, port);
}
