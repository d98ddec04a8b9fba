/* Process Creation: fork; the child calls exit(0) at once; the parent waits. */
#include "reference.h"

#include <sys/wait.h>

/* In memory, as where an alarm ends the loop and reports it: every fork makes its page be copied. */
static volatile unsigned long done;

int main(int argc, char **argv)
{
	unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	double start = now_s();

	for (; done < count; done++) {
		int status;
		pid_t child = fork();

		if (child < 0)
			die("fork");
		if (child == 0)
			exit(0);
		if (wait(&status) != child || status != 0)
			die("wait");
	}
	report(count, now_s() - start, "lps");
}
