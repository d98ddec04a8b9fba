/* lmbench's lat_sig: a handler is installed; a signal is sent and caught; a write to memory that may only be
 * read is caught. lmbench subtracts kill(2) without a signal from the catching, and what is left of that from
 * the fault. Here each is a workload of its own, gross. */
#include "workload.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile uint64_t caught;

static void count(int signal)
{
	(void)signal;
	caught++;
}

static void run_install(uint64_t n)
{
	struct sigaction action = {.sa_handler = count}, before;

	for (; n; n--)
		if (sigaction(SIGUSR1, &action, NULL) < 0)
			fail("sigaction: %s", strerror(errno));
	if (sigaction(SIGUSR1, NULL, &before) < 0 || before.sa_handler != count)
		fail("the handler was not installed");
}

static void prepare_catch(void)
{
	struct sigaction action = {.sa_handler = count};

	sigaction(SIGUSR1, &action, NULL);
}

static void run_catch(uint64_t n)
{
	pid_t self = getpid();

	for (; n; n--)
		if (kill(self, SIGUSR1) < 0)
			fail("kill: %s", strerror(errno));
}

static void run_overhead(uint64_t n)
{
	pid_t self = getpid();

	for (; n; n--)
		if (kill(self, 0) < 0)
			fail("kill: %s", strerror(errno));
}

static volatile char *protected;
static sigjmp_buf way_out;
static volatile uint64_t faults_left;

/* Returning repeats the write, and so the fault. */
static void count_fault(int signal)
{
	(void)signal;
	caught++;
	if (--faults_left == 0)
		siglongjmp(way_out, 1);
}

static void prepare_fault(void)
{
	struct sigaction action = {.sa_handler = count_fault, .sa_flags = SA_NODEFER};

	protected = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (protected == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	sigaction(SIGSEGV, &action, NULL);
}

static void run_fault(uint64_t n)
{
	faults_left = n;
	if (sigsetjmp(way_out, 0) == 0)
		*protected = 1;
	if (faults_left)
		fail("a write to protected memory succeeded");
}

static void check(uint64_t n)
{
	if (caught != n)
		fail("%llu signals were caught", (unsigned long long)caught);
}

WORKLOAD(lat_sig_install, .name = "lat-sig-install", .summary = "sigaction(2): install a handler", .unit = "ops/s",
	 .units_per_op = 1, .syscalls_per_op = 1, .source = "lmbench 3 lat_sig install", .run = run_install);
WORKLOAD(lat_sig_catch, .name = "lat-sig-catch", .summary = "send itself a signal and catch it", .unit = "ops/s",
	 .units_per_op = 1, .syscalls_per_op = 2, .syscalls_note = "kill and rt_sigreturn",
	 .source = "lmbench 3 lat_sig catch", .prepare = prepare_catch, .run = run_catch, .check = check);
WORKLOAD(lat_sig_overhead, .name = "lat-sig-overhead", .summary = "kill(2) of itself without a signal", .unit = "ops/s",
	 .units_per_op = 1, .syscalls_per_op = 1, .source = "lmbench 3 lat_sig, what it subtracts", .run = run_overhead);
WORKLOAD(lat_sig_prot, .name = "lat-sig-prot", .summary = "write to protected memory and catch the signal",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 1, .syscalls_note = "rt_sigreturn",
	 .source = "lmbench 3 lat_sig prot", .prepare = prepare_fault, .run = run_fault, .check = check);
