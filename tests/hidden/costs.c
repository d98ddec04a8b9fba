/* Costs that hide from whoever times the main thread, or a median of slices. Built once for each kind
 * (`-DKIND=deferred -DUS=15 …`, see tests/support/hidden.rs) as a library for LD_PRELOAD. The control is
 * `-DKIND=control`: the same wrapper of getppid(2), which counts its calls and reads the clock as often, so
 * that two libraries differ by the work alone. The numbers are microseconds of CPU time. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#ifndef US
#define US 1
#endif
#ifndef EVERY
#define EVERY 1 /* calls, or microseconds of a period */
#endif
#ifndef DELAY
#define DELAY 0
#endif
#define KIND_OF static __attribute__((unused))

enum { CLOCK_EVERY = 16 };
static uint64_t calls, now;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

/* Of this thread's own CPU time: another that has the CPU meanwhile does none of the work. */
static void burn(uint64_t us)
{
	uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + us * 1000;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

static void sleep_until(uint64_t ns)
{
	struct timespec due = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
}

/* Without the signals of the workload. It inherits the CPUs of who calls, as threads do. */
static void start(void *(*body)(void *))
{
	pthread_t thread;
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&thread, NULL, body, NULL) != 0)
		abort();
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

KIND_OF void control_begin(void) {}
KIND_OF void control_call(void) {}

/* At most every EVERY us of calls, US of work are due after DELAY, in a second thread. */
static _Atomic uint32_t waiting;
static uint64_t last, due;

KIND_OF void *deferred_body(void *unused)
{
	prctl(PR_SET_TIMERSLACK, 1);
	for (;;) {
		while (!atomic_load(&waiting))
			syscall(SYS_futex, &waiting, FUTEX_WAIT, 0, NULL, NULL, 0);
		sleep_until(due);
		burn(US);
		atomic_store(&waiting, 0);
	}
	return unused;
}

KIND_OF void deferred_begin(void)
{
	start(deferred_body);
}

KIND_OF void deferred_call(void)
{
	if (now < last + EVERY * 1000ull || atomic_load(&waiting))
		return;
	last = now;
	due = now + DELAY * 1000ull;
	atomic_store(&waiting, 1);
	syscall(SYS_futex, &waiting, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* US in each EVERY us, in a thread, or in a child that is not waited for; from DELAY on. */
static void work_now_and_then(void)
{
	uint64_t next = clock_ns(CLOCK_MONOTONIC) + DELAY * 1000ull;

	for (;;) {
		sleep_until(next);
		burn(US);
		next += EVERY * 1000ull;
	}
}

KIND_OF void *thread_body(void *unused)
{
	work_now_and_then();
	return unused;
}

KIND_OF void thread_begin(void)
{
	start(thread_body);
}

KIND_OF void thread_call(void) {}

KIND_OF void child_begin(void)
{
	if (fork() != 0)
		return;
	/* Nobody is to wait for the end of its output. */
	for (int fd = 0; fd < 3; fd++)
		close(fd);
	work_now_and_then();
}

KIND_OF void child_call(void) {}

/* US of work in the handler of a signal that an interval of wall time brings, or one of the process's CPU
 * time; or in a thread that the C library starts at each end of an interval. */
KIND_OF void handler(int number)
{
	(void)number;
	burn(US);
}

static void every_interval(int timer, int signal)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
	struct itimerval interval = {{0, EVERY}, {0, EVERY}};

	sigaction(signal, &action, NULL);
	setitimer(timer, &interval, NULL);
}

KIND_OF void alarm_begin(void)
{
	every_interval(ITIMER_REAL, SIGALRM);
}

KIND_OF void alarm_call(void) {}

KIND_OF void profile_begin(void)
{
	every_interval(ITIMER_PROF, SIGPROF);
}

KIND_OF void profile_call(void) {}

KIND_OF void expire(union sigval unused)
{
	(void)unused;
	burn(US);
}

KIND_OF void expiry_begin(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = expire};
	struct itimerspec interval = {{0, EVERY * 1000l}, {0, EVERY * 1000l}};
	timer_t timer;

	if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 || timer_settime(timer, 0, &interval, NULL) != 0)
		abort();
}

KIND_OF void expiry_call(void) {}

/* In each EVERY-th call itself. */
KIND_OF void rare_begin(void) {}

KIND_OF void rare_call(void)
{
	if (calls % EVERY == 0)
		burn(US);
}

/* Each call waits for US, once EVERY calls were made: as for room in a queue that is full by then. */
KIND_OF void queue_begin(void) {}

KIND_OF void queue_call(void)
{
	if (calls > EVERY)
		sleep_until(clock_ns(CLOCK_MONOTONIC) + US * 1000ull);
}

/* In each 16th call, once the process has run for DELAY. */
static uint64_t later_began;

KIND_OF void later_begin(void)
{
	later_began = clock_ns(CLOCK_MONOTONIC);
}

KIND_OF void later_call(void)
{
	if (calls % CLOCK_EVERY == 0 && now - later_began > DELAY * 1000ull)
		burn(US);
}

/* Once in EVERY calls, US KiB are written: what is in the caches is the workload's no longer. */
KIND_OF void pollute_begin(void) {}

KIND_OF void pollute_call(void)
{
	static volatile char *bytes;

	if (!bytes)
		bytes = malloc(US * 1024ul);
	if (calls % EVERY == 0)
		for (size_t i = 0; i < US * 1024ul; i += 64)
			bytes[i]++;
}

/* Once in EVERY calls, US records more are kept; and all that are kept are looked at. */
struct record {
	struct record *before;
	char content[112];
};

KIND_OF void leak_begin(void) {}

KIND_OF void leak_call(void)
{
	static struct record *records;
	static volatile char seen;

	if (calls % EVERY)
		return;
	for (int i = 0; i < US; i++) {
		struct record *one = calloc(1, sizeof *one);
		one->before = records;
		records = one;
	}
	for (struct record *one = records; one; one = one->before)
		seen += one->content[0];
}

/* In each program that is executed, before its main(). */
KIND_OF void executed_begin(void) {}
KIND_OF void executed_call(void) {}

KIND_OF void executed_load(void)
{
	burn(US);
}

/* In each process that is forked, before fork() returns there. */
KIND_OF void forked_begin(void) {}
KIND_OF void forked_call(void) {}

KIND_OF void in_child(void)
{
	burn(US);
}

KIND_OF void forked_load(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

/* A thread of the kernel, which looks for requests of an io_uring for US after each, of which there is one in
 * each EVERY us of calls. */
static struct {
	int fd;
	_Atomic uint32_t *tail, *flags;
	uint32_t *array, mask;
	_Atomic uint32_t *done_head, *done_tail;
	struct io_uring_sqe *entries;
} ring;

static void *map_ring(size_t size, off_t what)
{
	void *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd, what);

	if (mapped == MAP_FAILED)
		abort();
	return mapped;
}

KIND_OF void poller_begin(void)
{
	struct io_uring_params p = {
		.flags = IORING_SETUP_SQPOLL | IORING_SETUP_SQ_AFF,
		.sq_thread_cpu = (uint32_t)sched_getcpu(),
		.sq_thread_idle = US / 1000, /* milliseconds */
	};

	ring.fd = (int)syscall(SYS_io_uring_setup, 4, &p);
	if (ring.fd < 0)
		abort();
	char *requests = map_ring(p.sq_off.array + p.sq_entries * sizeof(uint32_t), IORING_OFF_SQ_RING);
	char *answers = map_ring(p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe), IORING_OFF_CQ_RING);

	ring.entries = map_ring(p.sq_entries * sizeof *ring.entries, IORING_OFF_SQES);
	ring.tail = (void *)(requests + p.sq_off.tail);
	ring.flags = (void *)(requests + p.sq_off.flags);
	ring.array = (void *)(requests + p.sq_off.array);
	ring.mask = p.sq_entries - 1;
	ring.done_head = (void *)(answers + p.cq_off.head);
	ring.done_tail = (void *)(answers + p.cq_off.tail);
}

KIND_OF void poller_call(void)
{
	if (now < last + EVERY * 1000ull)
		return;
	last = now;
	atomic_store(ring.done_head, atomic_load(ring.done_tail));
	uint32_t tail = atomic_load(ring.tail);
	ring.entries[tail & ring.mask] = (struct io_uring_sqe){.opcode = IORING_OP_NOP};
	ring.array[tail & ring.mask] = tail & ring.mask;
	atomic_store(ring.tail, tail + 1);
	if (atomic_load(ring.flags) & IORING_SQ_NEED_WAKEUP)
		syscall(SYS_io_uring_enter, ring.fd, 0, 0, IORING_ENTER_SQ_WAKEUP, NULL, 0);
}

/* A worker of the kernel, which carries US bytes from one end of a terminal to the other, where nobody reads
 * them, once in EVERY us of calls. */
static int terminal = -1, other_end;

KIND_OF void worker_begin(void)
{
	terminal = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0)
		abort();
	other_end = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (other_end < 0)
		abort();
}

KIND_OF void worker_call(void)
{
	static char bytes[US];

	if (now < last + EVERY * 1000ull)
		return;
	last = now;
	if (write(terminal, bytes, US) < 0)
		tcflush(other_end, TCIOFLUSH);
}

#define JOIN(a, b) a##b
#define PART(kind, part) JOIN(kind, part)

#ifdef ON_LOAD
__attribute__((constructor)) static void load(void)
{
	PART(KIND, _load)();
}
#endif

/* The first call is where a workload is prepared: it is on its CPUs by then, and what begins here stays there
 * too. */
pid_t getppid(void)
{
	if (calls++ == 0)
		PART(KIND, _begin)();
	if (calls % CLOCK_EVERY == 0)
		now = clock_ns(CLOCK_MONOTONIC);
	PART(KIND, _call)();
	return (pid_t)syscall(SYS_getppid);
}
