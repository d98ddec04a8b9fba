/* UnixBench's "Dc: sqrt(2) to 99 decimal places": the desk calculator is started and reads its task from a
 * file.
 *
 * The original gives all of them one open file, which the first has read to its end: the others do nothing.
 * Here each opens it anew. Its last command, q, is left out: GNU dc exits with status 1 after it. */
#include "workload.h"
#include "program.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char task[] = "99 k 2 v p\n";
/* The On-Line Encyclopedia of Integer Sequences, A002193. */
static const char root[] = "1.41421356237309504880168872420969807856967187537694"
			   "8073176679737990732478462107038850387534327641572\n";
static const char *dc;

static void prepare(void)
{
	dc = find_program("dc", "dc");
	setenv("DC_LINE_LENGTH", "0", 1); /* in one line */
	enter_scratch_directory();
	int fd = create_file("task", 0);
	if (write(fd, task, strlen(task)) != (long)strlen(task) || close(fd) < 0)
		fail("cannot write the task");
}

static void run(uint64_t n)
{
	char *arguments[] = {"dc", NULL};

	for (; n; n--)
		run_program(dc, arguments, "task", root);
}

WORKLOAD(dc, .name = "dc", .summary = "start dc, which works out the square root of 2 to 99 decimal places",
	 .unit = "lpm", .units_per_op = 60, .syscalls_per_op = 72,
	 .syscalls_note = "approximate: with dc 1.4.1 and glibc 2.36",
	 .source = "UnixBench 6.0 dc (Dc: sqrt(2) to 99 decimal places)", .prepare = prepare, .run = run);
