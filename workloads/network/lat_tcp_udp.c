/* lmbench's lat_tcp and lat_udp on the loopback: a message goes to another process and back. */
#include "loopback.h"
#include "partner.h"
#include "token.h"
#include "workload.h"

static void play(const int pair[2])
{
	start_token((struct ends){pair[0], pair[0]}, (struct ends){pair[1], pair[1]});
}

static void prepare_tcp(void)
{
	int pair[2];

	connect_tcp_pair(pair);
	play(pair);
}

static void prepare_udp(void)
{
	int pair[2];

	connect_udp_pair(pair);
	play(pair);
}

PLACED_WORKLOADS(lat_tcp, "lat-tcp",
	 .summary = "two processes pass a byte there and back over TCP on 127.0.0.1", .unit = "ops/s",
	 .units_per_op = 1, .syscalls_per_op = 4, .source = "lmbench 3 lat_tcp", .size = 1,
	 .prepare = prepare_tcp, .run = run_token, .check = check_token, .add_usage = add_partner_usage);
PLACED_WORKLOADS(lat_udp, "lat-udp",
	 .summary = "two processes pass 4 bytes there and back over UDP on 127.0.0.1", .unit = "ops/s",
	 .units_per_op = 1, .syscalls_per_op = 4, .source = "lmbench 3 lat_udp", .size = 4,
	 .prepare = prepare_udp, .run = run_token, .check = check_token, .add_usage = add_partner_usage);
