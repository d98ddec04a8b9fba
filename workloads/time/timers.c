/* Timers that are set: to a moment far away, where setting them is all; and to one that is past, whose
 * expiry is read at once. */
#include "operation.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { AN_HOUR = 3600 };

static const struct itimerspec far = {.it_value.tv_sec = AN_HOUR};
static const struct itimerspec past = {.it_value.tv_nsec = 1};
static const struct itimerval far_too = {.it_value.tv_sec = AN_HOUR};
static struct itimerspec left;
static struct itimerval left_too;
static timer_t timer;
static int fd;
static uint64_t expiries, total;

static void open_timer(void)
{
	fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (fd < 0)
		fail("timerfd_create: %s", strerror(errno));
}

static void create_timer(void)
{
	struct sigevent nothing = {.sigev_notify = SIGEV_NONE};

	if (timer_create(CLOCK_MONOTONIC, &nothing, &timer) < 0)
		fail("timer_create: %s", strerror(errno));
}

/* Set again and again, so nearly all of the hour is left. */
static void check_left(const char *what, long seconds)
{
	if (seconds < AN_HOUR / 2 || seconds > AN_HOUR)
		fail("%s has %ld s to go, not an hour", what, seconds);
}

static void check_timerfd(uint64_t n)
{
	(void)n;
	timerfd_gettime(fd, &left);
	check_left("the timer", left.it_value.tv_sec);
}

static void check_timer(uint64_t n)
{
	(void)n;
	timer_gettime(timer, &left);
	check_left("the timer", left.it_value.tv_sec);
}

static void check_itimer(uint64_t n)
{
	(void)n;
	getitimer(ITIMER_REAL, &left_too);
	check_left("the interval timer", left_too.it_value.tv_sec);
}

static void stop_itimer(void)
{
	setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
}

static bool expire(void)
{
	if (timerfd_settime(fd, TFD_TIMER_ABSTIME, &past, NULL) < 0 ||
	    read(fd, &expiries, sizeof expiries) != sizeof expiries)
		return false;
	total += expiries;
	return true;
}

static void check_expiries(uint64_t n)
{
	if (total != n)
		fail("the timer expired %llu times, not %llu", (unsigned long long)total,
		     (unsigned long long)n);
}

OPERATION(timerfd_settime, "timerfd_settime", 1, timerfd_settime(fd, 0, &far, NULL) == 0,
	  .summary = "timerfd_settime(2) to an hour from now", .source = "timerfd_settime(2)",
	  .prepare = open_timer, .check = check_timerfd);
OPERATION(timerfd_expiry, "timerfd-expiry", 2, expire(),
	  .summary = "timerfd_settime(2) to a time that is past, and read(2) of the expiry",
	  .source = "timerfd_create(2)", .prepare = open_timer, .check = check_expiries);
OPERATION(timer_settime, "timer_settime", 1, timer_settime(timer, 0, &far, NULL) == 0,
	  .summary = "timer_settime(2) of a POSIX timer to an hour from now", .source = "timer_settime(2)",
	  .prepare = create_timer, .check = check_timer);
OPERATION(setitimer, "setitimer", 1, setitimer(ITIMER_REAL, &far_too, NULL) == 0,
	  .summary = "setitimer(ITIMER_REAL) to an hour from now", .source = "setitimer(2)",
	  .check = check_itimer, .cleanup = stop_itimer);
