/* UnixBench's "Grep a large file": grep counts the lines with a word in a text of 10,000 lines.
 *
 * Own text of the same size. Which of its lines have the word is decided here, so that the count is known. */
#include "workload.h"
#include "program.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINES = 10000, BYTES = 708495, EVERY = 100 }; /* the size of UnixBench's large.txt */

static const char *grep;

/* Lines of words without the one that is looked for; every hundredth has it. */
static void write_text(int fd)
{
	static const char *const words[] = {"gimble", "wabe", "image", "gum", "limp", "tulgey", "manxome", "grip",
					    "frame", "pig", "gyre", "rath", "mimsy", "glimpse", "gim", "imp"};
	static char text[BYTES + 1];
	uint32_t state = 1;
	char *end = text;

	for (long i = 0; i < LINES; i++) {
		long length = BYTES * (i + 1) / LINES - (end - text) - 1;
		for (bool first = true; length > 0; first = false) {
			state = state * 1664525 + 1013904223;
			const char *word = first && i % EVERY == 0 ? "gimp" : words[(state >> 16) % 16];
			/* A word is not cut: "gimp" is not to be made by that. */
			int part = strlen(word) < (size_t)length ? snprintf(end, length + 1, "%s ", word)
								 : snprintf(end, length + 1, "%*s", (int)length, "");
			end += part, length -= part;
		}
		*end++ = '\n';
	}
	if (write(fd, text, BYTES) != BYTES || close(fd) < 0)
		fail("cannot write the text");
}

static void prepare(void)
{
	grep = find_program("grep", "grep");
	enter_scratch_directory();
	write_text(create_file("large.txt", 0));
}

static void run(uint64_t n)
{
	char *arguments[] = {"grep", "-c", "gimp", "large.txt", NULL};
	char count[12];

	snprintf(count, sizeof count, "%d\n", LINES / EVERY);
	for (; n; n--)
		run_program(grep, arguments, "/dev/null", count);
}

WORKLOAD(grep, .name = "grep", .summary = "start grep, which counts the lines with a word in a text of 708495 bytes",
	 .unit = "lpm", .units_per_op = 60, .syscalls_per_op = 78,
	 .syscalls_note = "approximate: with grep 3.8 and glibc 2.36",
	 .source = "UnixBench 6.0 grep (Grep a large file)", .prepare = prepare, .run = run);
