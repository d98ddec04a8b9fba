/* Execl Throughput: a process replaces itself by its own program, with what it has counted in the
 * arguments. No fork. The image has 8 KiB of memory that is not in the file. */
#include "reference.h"

static char bss[8192] __attribute__((used));

int main(int argc, char **argv)
{
	unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	unsigned long done = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	double start = argc > 3 ? strtod(argv[3], NULL) : now_s();
	char done_text[24], start_text[40];

	if (done == count)
		report(count, now_s() - start, "lps");
	snprintf(done_text, sizeof done_text, "%lu", done + 1);
	snprintf(start_text, sizeof start_text, "%.9f", start);
	execl(argv[0], argv[0], argv[1], done_text, start_text, (char *)NULL);
	die("execl");
}
