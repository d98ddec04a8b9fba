/* UnixBench's "Pipe-based Context Switching": two processes send a growing number back and forth through
 * two pipes, and each compares it with its own count. One round trip is two switches.
 * Only on one CPU is each of them sure to be a switch of context. */
#include "kernel.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <unistd.h>

static const uint64_t REPORT_USAGE = UINT64_MAX;

static int to_partner[2], from_partner[2];
static uint64_t count;
static pid_t partner;
static struct rusage *partner_usage; /* shared: the partner cannot be reaped while it is needed */

static void serve(pid_t driver)
{
	uint64_t own = 0, number;

	/* When the driver is killed, so is the partner; the driver may have died before this line. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != driver)
		_exit(1);
	place_partner();
	close(to_partner[1]);
	close(from_partner[0]);
	while (read(to_partner[0], &number, sizeof number) == sizeof number) {
		if (number == REPORT_USAGE)
			getrusage(RUSAGE_SELF, partner_usage);
		else if (number != own++)
			_exit(2);
		if (write(from_partner[1], &number, sizeof number) != sizeof number)
			_exit(3);
	}
	_exit(0); /* the driver closed its end */
}

static void prepare(void)
{
	pid_t driver = getpid();

	place_driver();
	signal(SIGPIPE, SIG_IGN); /* a dead partner shall be an error, not a death without words */
	partner_usage = mmap(NULL, sizeof *partner_usage, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (partner_usage == MAP_FAILED || pipe(to_partner) < 0 || pipe(from_partner) < 0)
		fail("mmap or pipe: %s", strerror(errno));
	partner = fork();
	if (partner < 0)
		fail("fork: %s", strerror(errno));
	if (partner == 0)
		serve(driver);
	close(to_partner[0]);
	close(from_partner[1]);
}

static inline void round_trip(uint64_t number)
{
	uint64_t answer;

	if (write(to_partner[1], &number, sizeof number) != sizeof number ||
	    read(from_partner[0], &answer, sizeof answer) != sizeof answer || answer != number)
		fail("the partner did not answer %llu", (unsigned long long)number);
}

static void run(uint64_t n)
{
	for (; n; n--)
		round_trip(count++);
}

static void add_usage(struct rusage *total)
{
	round_trip(REPORT_USAGE);
	timeradd(&total->ru_utime, &partner_usage->ru_utime, &total->ru_utime);
	timeradd(&total->ru_stime, &partner_usage->ru_stime, &total->ru_stime);
	total->ru_nvcsw += partner_usage->ru_nvcsw;
	total->ru_nivcsw += partner_usage->ru_nivcsw;
	total->ru_minflt += partner_usage->ru_minflt;
	total->ru_majflt += partner_usage->ru_majflt;
}

static void check(uint64_t n)
{
	if (count != n)
		fail("%llu round trips were counted", (unsigned long long)count);
	close(to_partner[1]);
	expect_exit(partner, 0);
}

PLACED_WORKLOADS(context1, "context1",
	 .summary = "two processes pass a number there and back through two pipes", .unit = "lps",
	 .units_per_op = 1, .syscalls_per_op = 4, .source = "UnixBench 6.0 context1 (Pipe-based Context Switching)",
	 .prepare = prepare, .run = run, .check = check, .add_usage = add_usage);
