/* Pipe Throughput: one process writes 512 bytes to a pipe and reads them back. */
#include "reference.h"

static char buffer[512];

int main(int argc, char **argv)
{
	unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	int ends[2];

	if (pipe(ends) < 0)
		die("pipe");
	double start = now_s();
	for (unsigned long i = 0; i < count; i++)
		if (write(ends[1], buffer, sizeof buffer) != sizeof buffer ||
		    read(ends[0], buffer, sizeof buffer) != sizeof buffer)
			die("pipe");
	report(count, now_s() - start, "lps");
}
