/* The loops of five workloads by hand: no driver, no table, no function pointer. What the workloads take
 * more than this is what our framework costs. Each is written as the workload's is, with what it prepares
 * in static variables: another form of the same loop is worth an instruction or two, either way.
 *
 *   bare NAME N    does N operations and prints N and the nanoseconds that they took */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MESSAGE = 512, FILE_SIZE = 1234 };

static void die(const char *what)
{
	fprintf(stderr, "bare: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static pid_t parent;
static int zero, ends[2];
static char buffer[MESSAGE];

static void prepare(void)
{
	int file = open("file", O_CREAT | O_TRUNC | O_WRONLY, 0600);

	if (file < 0 || ftruncate(file, FILE_SIZE) < 0)
		die("file");
	zero = open("/dev/zero", O_RDONLY);
	if (zero < 0)
		die("/dev/zero");
	if (pipe(ends) < 0)
		die("pipe");
	parent = getppid();
}

static void do_getppid(uint64_t n)
{
	for (; n; n--)
		if (getppid() != parent)
			die("getppid");
}

static void do_read(uint64_t n)
{
	char byte = 1;

	for (; n; n--)
		if (read(zero, &byte, 1) != 1)
			die("read");
	if (byte)
		die("what was read");
}

static void do_stat(uint64_t n)
{
	struct stat status;

	for (; n; n--) {
		if (stat("file", &status) < 0)
			die("stat");
		if (status.st_size != FILE_SIZE)
			die("the size");
	}
}

static void do_pipe(uint64_t n)
{
	for (; n; n--)
		if (write(ends[1], buffer, MESSAGE) != MESSAGE || read(ends[0], buffer, MESSAGE) != MESSAGE)
			die("pipe");
}

/* Every i is kept from the optimiser, and the sum is a call, as in workloads/cpu/arithmetic.c. */
__attribute__((noinline, noclone)) static double sum(void)
{
	int total = 0;

	for (int i = 2; i <= 101; i++) {
		__asm__ volatile("" : "+r"(i));
		int square = i * i;
		total += square / (square - 1);
	}
	return total;
}

static void do_arithmetic(uint64_t n)
{
	static double result;

	for (; n; n--)
		result = sum();
	if (result != 100)
		die("the sum");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(uint64_t);
	} loops[] = {{"getppid", do_getppid},
		     {"read", do_read},
		     {"stat", do_stat},
		     {"pipe", do_pipe},
		     {"arith-int", do_arithmetic}};

	for (size_t i = 0; argc == 3 && i < sizeof loops / sizeof *loops; i++) {
		if (strcmp(argv[1], loops[i].name) != 0)
			continue;
		prepare();
		uint64_t n = strtoull(argv[2], NULL, 10), start = now_ns();
		loops[i].run(n);
		printf("{\"operations\":%s,\"elapsed_ns\":%llu}\n", argv[2],
		       (unsigned long long)(now_ns() - start));
		return 0;
	}
	fprintf(stderr, "bare NAME N, NAME one of getppid, read, stat, pipe, arith-int\n");
	return 2;
}
