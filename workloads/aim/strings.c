/* Strings and blocks of memory, as the C library handles them: numbers read and printed, characters told
 * apart, strings put together and searched, memory allocated, set, searched and copied. */
#include "job.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 100, TEXT = 1023, MOST = 8192 };

/* The compiler knows none of it: what is called with constants might be worked out beforehand. */
static char text[TEXT + 1], to[TEXT + 1];

static void read_numbers(int i)
{
	char number[32];
	double real;
	long whole;

	snprintf(number, sizeof number, "%d.25", i);
	OPAQUE_MEMORY();
	real = atof(number) + strtod(number, NULL);
	whole = atol(number) + atoi(number) + strtol(number, NULL, 10);
	if (real != 2 * i + 0.5 || whole != 3L * i)
		fail("%s is read as %g / 2 and %ld / 3", number, real, whole);
}

/* All characters from 1 to 127, eight times, and seven control characters. */
static void tell_characters(void)
{
	long kinds = 0;

	for (int i = 0; i < TEXT; i++)
		text[i] = i % 127 + 1;
	text[TEXT] = 0;
	OPAQUE_MEMORY();
	for (const char *c = text; *c; c++)
		kinds += !!isalnum(*c) + !!isalpha(*c) + !!iscntrl(*c) + !!isdigit(*c) + !!isgraph(*c) +
			 !!islower(*c) + !!isprint(*c) + !!ispunct(*c) + !!isspace(*c) + !!isupper(*c) +
			 !!isxdigit(*c);
	if (kinds != 8 * 457 + 7)
		fail("%ld characters are of a kind", kinds);
}

static void put_together(void)
{
	char piece[34] = "abcdefghijklmnopqrstuvwxyz:012345";
	size_t rest = 32;

	OPAQUE(rest);
	*to = 0;
	OPAQUE_MEMORY();
	for (int i = 0; i < TEXT / 33; i++) {
		strcat(to, piece);
		OPAQUE_MEMORY();
	}
	to[TEXT - 32] = 0;
	strncat(to, piece, rest);
	OPAQUE_MEMORY();
	if (strlen(to) != TEXT || to[TEXT - 1] != '4')
		fail("a string of %zu bytes ends with '%s'", strlen(to), to + TEXT - 32);
}

static void search(int i)
{
	time_t moment = 86400L * i + 43200; /* noon, so that it is the same year everywhere */
	const char *date = ctime(&moment);

	OPAQUE_MEMORY();
	if (!date || !strstr(date, " 1970") || strcoll(to, text) <= 0 || strcspn(to, ":") != 26 ||
	    strpbrk(to, "9:") != to + 26 || strrchr(to, ':') != to + TEXT - 6 || strspn(to, "abcdefg") != 7 ||
	    strstr(to, "5abc") != to + 32)
		fail("something is not found where it is");
}

static void job_string_rtns(void)
{
	for (int i = 1; i <= ROUNDS; i++) {
		read_numbers(i);
		tell_characters();
		put_together();
		search(i);
	}
}

enum { PIECES = 100 };

static char *allocated(void *memory)
{
	if (!memory)
		fail("cannot allocate memory: %s", strerror(errno));
	return memory;
}

static void job_mem_rtns_1(void)
{
	static const char content[45] = "four and forty characters that are copied...";
	char *names[PIECES], *pieces[PIECES], *zeros[PIECES];
	uint32_t state = 1;

	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < PIECES; i++) {
			names[i] = strcpy(allocated(malloc(sizeof content)), content);
			OPAQUE_MEMORY();
		}
		for (int i = 0; i < PIECES; i++) {
			long size = next_number(&state) % MOST + 1;

			pieces[i] = allocated(malloc(size));
			zeros[i] = allocated(calloc(1, size));
			if (zeros[i][0] || zeros[i][size - 1])
				fail("memory of calloc is not zero");
			pieces[i][0] = pieces[i][size - 1] = zeros[i][0] = zeros[i][size - 1] = i + 1;
			OPAQUE_MEMORY();
		}
		for (int i = 0; i < PIECES; i++) {
			if (strcmp(names[i], content) || pieces[i][0] != i + 1 || zeros[i][0] != i + 1)
				fail("memory does not keep what is written to it");
			free(names[i]), free(pieces[i]), free(zeros[i]);
		}
	}
}

static char blocks[2][MOST + 64];

static void job_mem_rtns_2(void)
{
	uint32_t state = 1;

	for (int round = 0; round < ROUNDS; round++) {
		size_t size = next_number(&state) % MOST + 1;
		char *a = blocks[0] + next_number(&state) % 32, *b = blocks[1] + next_number(&state) % 32;

		memset(a, 'a', size), memset(b, 'b', size);
		OPAQUE_MEMORY();
		a[size - 1] = 'z';
		bool is_found = memchr(a, 'z', size) == a + size - 1, differs = memcmp(a, b, size) != 0;
		memcpy(b, a, size);
		OPAQUE_MEMORY();
		memmove(b + 16, b, size);
		OPAQUE_MEMORY();
		if (!is_found || !differs || b[15 + size] != 'z')
			fail("blocks of %zu bytes are not set, searched and moved", size);
	}
}

enum { LARGEST = 65536, ALL_SIZES = 250200 };

/* All powers of two, and as many more that a pass copies ALL_SIZES bytes. */
static const int sizes[] = {1,    2,    4,    8,     16,    32,    64, 128, 256, 512, 1024, 2048,  4096,
			    8192, 16384, 32768, 65536, 65536, 32768, 16384, 4096, 256, 64, 16, 8, 1};
static char source[LARGEST], target[LARGEST];

static void job_ram_copy(void)
{
	long copied = 0;

	for (int round = 0; round < ROUNDS; round++)
		for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
			source[sizes[i] - 1] = round + i;
			OPAQUE_MEMORY();
			memcpy(target, source, sizes[i]);
			OPAQUE_MEMORY();
			copied += sizes[i];
			if (target[sizes[i] - 1] != (char)(round + i))
				fail("%d bytes are not copied to their last", sizes[i]);
		}
	if (copied != (long)ROUNDS * ALL_SIZES)
		fail("%ld bytes are copied", copied);
}

SUB_TEST(string_rtns, job_string_rtns(), ROUNDS, "rounds", 100,
	 .syscalls_note = "approximate: ctime looks at /etc/localtime, unless TZ is set", .summary = "100 rounds of numbers read and printed, 1023 characters told apart, strings put together and searched");
SUB_TEST(mem_rtns_1, job_mem_rtns_1(), 30000, "pieces", 49,
	 .syscalls_note = "approximate: glibc 2.36 grows and shrinks the heap as often", .summary = "100 rounds of 300 pieces of 1 to 8192 bytes, allocated by malloc and calloc, written and freed");
SUB_TEST(mem_rtns_2, job_mem_rtns_2(), ROUNDS, "rounds", 0,
	 .summary = "100 rounds of 2 memset, memchr, memcmp, memcpy, memmove of 1 to 8192 bytes");
SUB_TEST(ram_copy, job_ram_copy(), ROUNDS * ALL_SIZES / 1000.0, "kB", 0,
	 .summary = "100 rounds of 26 memcpy of 1 to 65536 bytes, 250200 bytes together");
