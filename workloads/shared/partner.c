/* Starts the other processes of a workload, asks them what they used, and sees them end. */
#include "partner.h"
#include "workload.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 128 };

/* What a partner tells. Shared: while a partner lives, wait4(2) does not say what it used. */
struct report {
	uint64_t turns;
	struct rusage usage;
};

static struct report *reports, *own;
static pid_t partners[MOST];
static int started;
static int answers[2];

/* By a signal, because that needs no word in the workload's own language, nor a branch in its loop. */
static void report_usage(int signal)
{
	int before = errno;

	(void)signal;
	getrusage(RUSAGE_SELF, &own->usage);
	if (write(answers[1], "", 1) != 1)
		_exit(1);
	errno = before;
}

/* The others wait for one that failed, and would for ever. It has said why. The driver is in run(), so that
 * fail() disturbs nothing. */
static void look_for_failure(int signal)
{
	siginfo_t ended = {0};

	(void)signal;
	if (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid && ended.si_status != 0)
		fail("a partner failed");
}

static void set_up(void)
{
	struct sigaction asked = {.sa_handler = report_usage, .sa_flags = SA_RESTART};
	struct sigaction ended = {.sa_handler = look_for_failure, .sa_flags = SA_RESTART | SA_NOCLDSTOP};

	place_driver();
	signal(SIGPIPE, SIG_IGN); /* a dead partner shall be an error, not a death without words */
	sigaction(SIGUSR1, &asked, NULL);
	sigaction(SIGCHLD, &ended, NULL);
	reports = mmap(NULL, MOST * sizeof *reports, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (reports == MAP_FAILED || pipe(answers) < 0)
		fail("mmap or pipe: %s", strerror(errno));
}

void start_partner(uint64_t (*serve)(void))
{
	pid_t driver = getpid(), partner;

	if (!started)
		set_up();
	if (started == MOST)
		fail("more than %d partners", MOST);
	own = &reports[started];
	partner = fork();
	if (partner < 0)
		fail("fork: %s", strerror(errno));
	if (partner == 0) {
		/* When the driver is killed, so is the partner; the driver may have died before this line. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != driver)
			_exit(1);
		place_partner();
		own->turns = serve();
		_exit(0);
	}
	partners[started++] = partner;
}

uint64_t end_partners(void)
{
	uint64_t turns = 0;

	for (int i = 0; i < started; i++) {
		expect_exit(partners[i], 0);
		turns += reports[i].turns;
	}
	return turns;
}

void add_partner_usage(struct rusage *total)
{
	for (int i = 0; i < started; i++) {
		const struct rusage *usage = &reports[i].usage;
		char answer;

		if (kill(partners[i], SIGUSR1) < 0 || read(answers[0], &answer, 1) != 1)
			fail("a partner does not report its resource use: %s", strerror(errno));
		timeradd(&total->ru_utime, &usage->ru_utime, &total->ru_utime);
		timeradd(&total->ru_stime, &usage->ru_stime, &total->ru_stime);
		total->ru_nvcsw += usage->ru_nvcsw;
		total->ru_nivcsw += usage->ru_nivcsw;
		total->ru_minflt += usage->ru_minflt;
		total->ru_majflt += usage->ru_majflt;
	}
}
