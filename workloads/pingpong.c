/* The processes, their order and their end, for all ways of passing a number. As in ipc/context1.c, each
 * side compares the number with its own count. */
#include "pingpong.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <unistd.h>

/* Numbers that no count reaches. */
static const uint64_t REPORT_USAGE = 1ull << 62, END = 1ull << 63;

static const struct way *way;
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
	for (;;) {
		if (!way->take(PARTNER, &number))
			fail("the partner got nothing: %s", strerror(errno));
		if (number == END)
			_exit(0);
		if (number == REPORT_USAGE)
			getrusage(RUSAGE_SELF, partner_usage);
		else if (number != own++)
			fail("the partner got %llu", (unsigned long long)number);
		if (!way->pass(DRIVER, number))
			fail("the partner cannot answer: %s", strerror(errno));
	}
}

/* Not every way ends with the process at its other end: without this, the driver would wait for ever. */
static void partner_died(int signal)
{
	(void)signal;
	fail("the partner ended too early");
}

void start_partner(const struct way *chosen)
{
	pid_t driver = getpid();

	way = chosen;
	place_driver();
	partner_usage = mmap(NULL, sizeof *partner_usage, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (partner_usage == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	signal(SIGCHLD, partner_died);
	partner = fork();
	if (partner < 0)
		fail("fork: %s", strerror(errno));
	if (partner == 0)
		serve(driver);
}

static inline void round_trip(uint64_t number)
{
	uint64_t answer;

	if (!way->pass(PARTNER, number) || !way->take(DRIVER, &answer) || answer != number)
		fail("the partner did not answer %llu", (unsigned long long)number);
}

void run_pingpong(uint64_t n)
{
	for (; n; n--)
		round_trip(count++);
}

void add_partner_usage(struct rusage *total)
{
	round_trip(REPORT_USAGE);
	timeradd(&total->ru_utime, &partner_usage->ru_utime, &total->ru_utime);
	timeradd(&total->ru_stime, &partner_usage->ru_stime, &total->ru_stime);
	total->ru_nvcsw += partner_usage->ru_nvcsw;
	total->ru_nivcsw += partner_usage->ru_nivcsw;
	total->ru_minflt += partner_usage->ru_minflt;
	total->ru_majflt += partner_usage->ru_majflt;
}

void check_pingpong(uint64_t n)
{
	if (count != n)
		fail("%llu round trips were counted", (unsigned long long)count);
	signal(SIGCHLD, SIG_DFL);
	if (!way->pass(PARTNER, END))
		fail("the partner cannot be told to end: %s", strerror(errno));
	expect_exit(partner, 0);
}
