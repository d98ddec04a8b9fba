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

	snprintf(number, sizeof number, "%g", i + 0.25);
	OPAQUE_MEMORY();
	real = atof(number) + strtod(number, NULL);
	snprintf(number, sizeof number, "%ld", (long)(real / 2));
	OPAQUE_MEMORY();
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

static const char *volatile piece = "abcdefghijklmnop:0";

/* A string that grows by the piece, or by its first ten characters, as long as there is room for a piece.
 * Each time its length is counted again, and it is compared. */
static void fill(bool with_whole)
{
	const char *next = piece;
	int same = 0;

	strcpy(to, next);
	while (sizeof to - strlen(to) > strlen(next)) {
		if (with_whole)
			strcat(to, next);
		else
			strncat(to, next, 10);
		OPAQUE_MEMORY();
		same += with_whole ? strcmp(to, next) == 0 : strncmp(to, next, 10) == 0;
	}
	if (strlen(to) != 1008 || same != (with_whole ? 0 : 99))
		fail("a string has %zu bytes, and was the same %d times", strlen(to), same);
}

static void search(int i)
{
	time_t moment = 86400L * i + 43200; /* noon, so that it is the same year everywhere */
	const char *date = ctime(&moment);

	OPAQUE_MEMORY();
	if (!date || !strstr(date, " 1970") || strcoll(to, text) <= 0 || strcspn(to, ":") != 16 ||
	    strpbrk(to, "9:") != to + 16 || strrchr(to, ':') != to + 16 || strspn(to, "abcdefg") != 7 ||
	    strstr(to, "0abc") != to + 17)
		fail("something is not found where it is");
}

static void job_string_rtns(void)
{
	for (int i = 1; i <= ROUNDS; i++) {
		read_numbers(i);
		tell_characters();
		fill(true);
		fill(false);
		search(i);
	}
}

/* Of what is allocated, and of blocks that are set and copied. */
static const int block_sizes[] = {1,  3,  5,  7,   9,    11,   33,   65,   129,  1024,
				  1025, 1023, 8192, 4096, 4095, 11,   33,   65,   129,  1024};

static int block_size(int i)
{
	return block_sizes[i % (sizeof block_sizes / sizeof *block_sizes)];
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

	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < PIECES; i++) {
			names[i] = strcpy(allocated(malloc(sizeof content)), content);
			pieces[i] = allocated(malloc(block_size(i)));
			zeros[i] = allocated(calloc(block_size(i + 1), 1));
			OPAQUE_MEMORY();
			if (zeros[i][0] || zeros[i][block_size(i + 1) - 1])
				fail("memory of calloc is not zero");
			pieces[i][0] = zeros[i][0] = i + 1;
			OPAQUE_MEMORY();
		}
		for (int i = PIECES - 1; i >= 0; i--) {
			if (strcmp(names[i], content) || pieces[i][0] != i + 1 || zeros[i][0] != i + 1)
				fail("memory does not keep what is written to it");
			free(names[i]), free(zeros[i]), free(pieces[i]);
		}
	}
}

static char blocks[2][MOST + 64];

static void job_mem_rtns_2(void)
{
	for (int round = 0; round < ROUNDS; round++) {
		size_t size = block_size(round);
		char *a = blocks[0] + round % 8, *b = blocks[1] + round / 8 % 8;

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

enum { LARGEST = 65536, COPIES = 100, COPIED = 139996 };

/* As re-aim has them: most are short, and few large ones are most of the bytes. */
static const struct { int bytes, times; } copies[] = {
	{1, 5},     {2, 5},     {3, 5},     {4, 5},     {5, 5},     {6, 5},     {7, 43},    {8, 2},    {9, 2},
	{11, 2},    {17, 2},    {33, 2},    {63, 2},    {127, 1},   {256, 1},   {512, 1},   {1001, 1}, {1024, 1},
	{1200, 1},  {1492, 1},  {1500, 1},  {2048, 1},  {3172, 1},  {4096, 1},  {8192, 1},  {16384, 1},
	{32768, 1}, {65536, 1}};
/* At all places of eight. */
static char source[LARGEST + 8], target[LARGEST + 8];

static void job_ram_copy(void)
{
	long copied = 0;
	int number = 0;

	for (size_t i = 0; i < sizeof copies / sizeof *copies; i++)
		for (int k = 0; k < copies[i].times; k++, number++) {
			char *from = source + number / 8 % 8, *into = target + number % 8;
			int last = copies[i].bytes - 1;

			from[last] = number;
			OPAQUE_MEMORY();
			memcpy(into, from, copies[i].bytes);
			OPAQUE_MEMORY();
			copied += copies[i].bytes;
			if (into[last] != (char)number)
				fail("%d bytes are not copied to their last", copies[i].bytes);
		}
	if (number != COPIES || copied != COPIED)
		fail("%ld bytes are copied in %d times", copied, number);
}

SUB_TEST(string_rtns, job_string_rtns(), ROUNDS, "rounds", 100,
	 .syscalls_note = "approximate: ctime looks at /etc/localtime, unless TZ is set", .summary = "100 rounds of numbers read and printed, 1023 characters told apart, strings put together and searched");
SUB_TEST(mem_rtns_1, job_mem_rtns_1(), 30000, "pieces", 0,
	 .syscalls_note = "approximate: as the C library keeps its heap", .summary = "100 rounds of 300 pieces of 1 to 8192 bytes, allocated by malloc and calloc, written and freed");
SUB_TEST(mem_rtns_2, job_mem_rtns_2(), ROUNDS, "rounds", 0,
	 .summary = "100 rounds of 2 memset, memchr, memcmp, memcpy, memmove of 1 to 8192 bytes");
SUB_TEST(ram_copy, job_ram_copy(), COPIED / 1000.0, "kB", 0,
	 .summary = "100 memcpy of 1 to 65536 bytes, 139996 bytes together");
