/* UnixBench's "Shell Scripts": a script that sorts, dumps, searches and counts a small text, started once
 * or up to sixteen times at the same time by another script. Seven programs and a shell, four files, per
 * start.
 *
 * Own scripts with the same commands, own text of the same size. Unlike the original, a script that
 * failed makes the sample fail, and the last results are compared with what they must be: a script begins
 * with the rm of the files that the one before has left, where the original ends with it. */
#include "workload.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINES = 362, BYTES = 8546 }; /* as UnixBench's sort.src */

static const char multi[] = "#!/bin/sh\n"
			    "started=0\n"
			    "children=\n"
			    "while [ $started -lt $1 ]; do\n"
			    "	/bin/sh ./work.sh text $started &\n"
			    "	children=\"$children $!\"\n"
			    "	started=$((started + 1))\n"
			    "done\n"
			    "status=0\n"
			    "for child in $children; do wait $child || status=1; done\n"
			    "exit $status\n";

/* rm without -f is the check that every file was there. */
static const char work[] = "set -e\n"
			   "rm sorted.$2 found.$2 dump.$2 count.$2\n"
			   "sort <\"$1\" >sorted.$2\n"
			   "od sorted.$2 | sort -n -k 1 >dump.$2\n"
			   "grep the sorted.$2 | tee found.$2 | wc >count.$2\n";

static char text[BYTES + 1], *line[LINES];

static void write_file(const char *path, const char *content, int mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	if (fd < 0 || dprintf(fd, "%s", content) < 0 || close(fd) < 0)
		fail("cannot write %s: %s", path, strerror(errno));
}

/* Lines of five words in no order, one in three of them with a "the"; the last takes what is left. */
static void make_text(void)
{
	static const char *const words[] = {"the", "ale", "boar", "cask", "dune", "elm", "fox", "gale",
					    "hall", "iron", "jar", "kite", "loom", "mare", "nut", "oak"};
	uint32_t state = 1;
	char *end = text;

	for (int i = 0; i < LINES; i++) {
		long length = (long)BYTES * (i + 1) / LINES - (end - text) - 1;
		line[i] = end;
		for (bool the = i % 3 == 0; length > 0; the = false) {
			state = state * 1664525 + 1013904223;
			const char *word = words[the ? 0 : 1 + (state >> 16) % 15];
			int part = snprintf(end, length + 1, "%s ", word);
			part = part < length ? part : length;
			end += part, length -= part;
		}
		*end++ = '\n';
	}
	*end = 0;
}

static void prepare(void)
{
	enter_scratch_directory();
	make_text();
	write_file("text", text, 0600);
	write_file("multi.sh", multi, 0700);
	write_file("work.sh", work, 0600);
	for (long i = 0; i < 4 * current->count; i++) {
		static const char *const results[] = {"sorted", "found", "dump", "count"};
		char name[32];

		snprintf(name, sizeof name, "%s.%ld", results[i % 4], i / 4);
		write_file(name, "", 0600);
	}
}

static void run(uint64_t n)
{
	char copies[12];

	snprintf(copies, sizeof copies, "%ld", current->count);
	for (; n; n--) {
		pid_t child = fork();

		if (child < 0)
			fail("fork: %s", strerror(errno));
		if (child == 0) {
			execl("./multi.sh", "multi.sh", copies, (char *)NULL);
			_exit(127);
		}
		expect_exit(child, 0);
	}
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Compares what the last operation left with what we work out here. */
static void check(uint64_t n)
{
	char sorted[BYTES + 1] = "", dump_end[16], count[64], got[2 * BYTES * 4];
	long lines = 0, words = 0, bytes = 0, files = 0;

	(void)n;
	for (int i = 0; i < LINES; i++)
		line[i] = strndup(line[i], strcspn(line[i], "\n") + 1);
	qsort(line, LINES, sizeof *line, by_bytes);
	for (int i = 0; i < LINES; i++) {
		strcat(sorted, line[i]);
		if (strstr(line[i], "the")) {
			lines++, bytes += strlen(line[i]);
			for (char *c = line[i]; *c; c++)
				words += *c > ' ' && c[1] <= ' ';
		}
		free(line[i]);
	}
	snprintf(count, sizeof count, "%7ld %7ld %7ld\n", lines, words, bytes);
	snprintf(dump_end, sizeof dump_end, "\n%07o\n", BYTES); /* od ends with the size */

	DIR *directory = opendir(".");
	for (struct dirent *entry; directory && (entry = readdir(directory));) {
		const char *name = entry->d_name;
		int fd = open(name, O_RDONLY);
		long size = read(fd, got, sizeof got - 1);
		bool good = true;

		close(fd);
		if (size < 0 || !strchr(name, '.') || *name == '.')
			continue;
		got[size] = 0;
		if (strncmp(name, "sorted.", 7) == 0)
			good = strcmp(got, sorted) == 0;
		else if (strncmp(name, "dump.", 5) == 0)
			good = size > 9 && strcmp(got + size - 9, dump_end) == 0;
		else if (strncmp(name, "count.", 6) == 0)
			good = strcmp(got, count) == 0;
		else
			continue;
		if (!good)
			fail("%s is not what the commands must give", name);
		files++;
	}
	closedir(directory);
	if (files != 3 * current->count)
		fail("%ld results, not %ld", files, 3 * current->count);
}

#define SHELL(n, calls, version)                                                                         \
	WORKLOAD(shell##n, .name = "shell" #n, .summary = "shell scripts, " #n " concurrent, that "        \
		 "sort, dump, search and count a text of 8546 bytes", .unit = "lpm", .units_per_op = 60, \
		 .syscalls_per_op = calls, .syscalls_note = "approximate: with dash 0.5.12, coreutils 9.1, "   \
		 "grep 3.8 and glibc 2.36", .source = "UnixBench " version " shell" #n " (Shell Scripts)", \
		 .count = n, .parallel = n > 1, .prepare = prepare, .run = run, .check = check)

SHELL(1, 690, "6.0");
SHELL(2, 1320, "3.11");
SHELL(4, 2580, "3.11");
SHELL(8, 5100, "6.0");
SHELL(16, 10140, "6.0");
