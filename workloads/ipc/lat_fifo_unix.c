/* lmbench's lat_fifo and lat_unix: one byte goes to another process and back, through two named pipes or a
 * pair of connected sockets. */
#include "partner.h"
#include "token.h"
#include "workload.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Either end of a FIFO waits for the other to be opened, but for a reader that does not want to wait. */
static void open_fifo(const char *path, int ends[2])
{
	if (mkfifo(path, 0600) < 0)
		fail("mkfifo: %s", strerror(errno));
	ends[0] = open(path, O_RDONLY | O_NONBLOCK);
	ends[1] = open(path, O_WRONLY);
	if (ends[0] < 0 || ends[1] < 0 || fcntl(ends[0], F_SETFL, 0) < 0)
		fail("cannot open a FIFO: %s", strerror(errno));
}

static void prepare_fifo(void)
{
	int there[2], back[2];

	enter_scratch_directory();
	open_fifo("there", there);
	open_fifo("back", back);
	start_token((struct ends){back[0], there[1]}, (struct ends){there[0], back[1]});
}

static void prepare_unix(void)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		fail("socketpair: %s", strerror(errno));
	start_token((struct ends){pair[0], pair[0]}, (struct ends){pair[1], pair[1]});
}

PLACED_WORKLOADS(lat_fifo, "lat-fifo",
	 .summary = "two processes pass a byte there and back through two FIFOs", .unit = "ops/s",
	 .units_per_op = 1, .syscalls_per_op = 4, .source = "lmbench 3 lat_fifo", .size = 1,
	 .prepare = prepare_fifo, .run = run_token, .check = check_token, .add_usage = add_partner_usage);
PLACED_WORKLOADS(lat_unix, "lat-unix",
	 .summary = "two processes pass a byte there and back through a pair of AF_UNIX stream sockets",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 4, .source = "lmbench 3 lat_unix", .size = 1,
	 .prepare = prepare_unix, .run = run_token, .check = check_token, .add_usage = add_partner_usage);
