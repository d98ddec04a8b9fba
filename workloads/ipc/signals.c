/* Signals that a process sends to itself, and what decides how they arrive. */
#include "operation.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile uint64_t caught;
static int last_value;
static pid_t own;
static sigset_t usr1, found;
static int fd;
static char other_stack[65536];
static const stack_t other = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
static stack_t now;

static void count(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)context;
	caught++;
	last_value = info->si_value.sival_int;
}

static void prepare(void)
{
	struct sigaction action = {.sa_sigaction = count, .sa_flags = SA_SIGINFO};

	own = getpid();
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	if (sigaction(SIGUSR1, &action, NULL) < 0 || sigprocmask(SIG_UNBLOCK, &usr1, NULL) < 0)
		fail("sigaction or sigprocmask: %s", strerror(errno));
}

static void prepare_signalfd(void)
{
	prepare();
	if (sigprocmask(SIG_BLOCK, &usr1, NULL) < 0)
		fail("sigprocmask: %s", strerror(errno));
	fd = signalfd(-1, &usr1, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		fail("signalfd: %s", strerror(errno));
}

/* The value that is sent along is how many there were before. */
static bool queue_value(void)
{
	union sigval value = {.sival_int = caught & 0xffffff};

	return sigqueue(own, SIGUSR1, value) == 0 && last_value == value.sival_int;
}

static bool send_and_read(void)
{
	struct signalfd_siginfo info;

	return kill(own, SIGUSR1) == 0 && read(fd, &info, sizeof info) == sizeof info &&
	       info.ssi_signo == SIGUSR1 && info.ssi_pid == (uint32_t)own;
}

static bool block_and_unblock(void)
{
	return sigprocmask(SIG_BLOCK, &usr1, NULL) == 0 && sigprocmask(SIG_UNBLOCK, &usr1, &found) == 0 &&
	       sigismember(&found, SIGUSR1);
}

static bool set_stack(void)
{
	return sigaltstack(&other, NULL) == 0 && sigaltstack(NULL, &now) == 0 && now.ss_sp == other_stack;
}

static void check_caught(uint64_t n)
{
	if (caught != n)
		fail("%llu signals were caught, not %llu", (unsigned long long)caught, (unsigned long long)n);
}

static void check_none_caught(uint64_t n)
{
	(void)n;
	check_caught(0);
}

OPERATION(kill, "kill", 2, kill(own, SIGUSR1) == 0,
	  .summary = "kill(2) of the process itself; a handler catches the signal", .source = "lmbench 3 lat_sig catch",
	  .syscalls_note = "kill, and rt_sigreturn from the handler", .prepare = prepare, .check = check_caught);
OPERATION(tgkill, "tgkill", 2, syscall(SYS_tgkill, own, own, SIGUSR1) == 0,
	  .summary = "tgkill(2) of the thread itself; a handler catches the signal", .source = "tgkill(2)",
	  .syscalls_note = "tgkill, and rt_sigreturn from the handler", .prepare = prepare,
	  .check = check_caught);
OPERATION(sigqueue, "sigqueue", 4, queue_value(),
	  .summary = "sigqueue(3) of a value to the process itself; a handler catches it",
	  .source = "rt_sigqueueinfo(2)", .prepare = prepare, .check = check_caught);
OPERATION(signalfd, "signalfd", 2, send_and_read(),
	  .summary = "kill(2) of the process itself, and read(2) of the signal from a signalfd",
	  .source = "signalfd(2)", .prepare = prepare_signalfd, .check = check_none_caught);
OPERATION(sigprocmask, "sigprocmask", 2, block_and_unblock(),
	  .summary = "sigprocmask(2): a signal blocked and unblocked", .source = "sigprocmask(2)",
	  .prepare = prepare, .check = check_none_caught);
OPERATION(sigaltstack, "sigaltstack", 2, set_stack(), .summary = "sigaltstack(2): set and asked for",
	  .source = "sigaltstack(2)");
