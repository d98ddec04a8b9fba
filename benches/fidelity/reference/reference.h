/* What the reference programs share. They are written for this bench from the published definitions of
 * UnixBench's tests, do so many operations, and print as UnixBench's do: a count, and the seconds. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

static void report(double count, double seconds, const char *unit)
{
	fprintf(stderr, "COUNT|%.0f|1|%s\nTIME|%.9f\n", count, unit, seconds);
	exit(0);
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}
