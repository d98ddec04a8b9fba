/* Pipe-based Context Switching: two processes pass a number there and back through two pipes. */
#include "reference.h"

#include <sys/wait.h>

static void pass(int from, int to, unsigned long expected, int first)
{
	unsigned long number = expected;

	if (first && write(to, &number, sizeof number) != sizeof number)
		die("write");
	if (read(from, &number, sizeof number) != sizeof number || number != expected)
		die("read");
	if (!first && write(to, &number, sizeof number) != sizeof number)
		die("write");
}

int main(int argc, char **argv)
{
	unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	int there[2], back[2];

	if (pipe(there) < 0 || pipe(back) < 0)
		die("pipe");
	pid_t child = fork();
	if (child < 0)
		die("fork");
	if (child == 0) {
		for (unsigned long i = 0; i < count; i++)
			pass(there[0], back[1], i, 0);
		_exit(0);
	}
	double start = now_s();
	for (unsigned long i = 0; i < count; i++)
		pass(back[0], there[1], i, 1);
	double seconds = now_s() - start;
	waitpid(child, NULL, 0);
	report(count, seconds, "lps");
}
