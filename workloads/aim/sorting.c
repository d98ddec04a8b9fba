/* Prime numbers by a sieve; numbers sorted and found. */
#include "job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* 78,498 prime numbers, and 0 and 1, which nothing strikes out. */
enum { SIEVES = 5, FLAGS = 1000000, LEFT = 78500 };

static void job_sieve(void)
{
	char *flags = malloc(FLAGS);
	long left = 0;

	if (!flags)
		fail("malloc: %s", strerror(errno));
	for (int sieve = 0; sieve < SIEVES; sieve++) {
		memset(flags, 1, FLAGS);
		OPAQUE_MEMORY();
		/* Beyond the root of the last number nothing new is struck out; re-aim goes on all the same. */
		for (long i = 2; i < FLAGS; i++)
			if (flags[i])
				for (long k = i + i; k < FLAGS; k += i)
					flags[k] = 0;
		OPAQUE_MEMORY();
	}
	for (long i = 0; i < FLAGS; i++)
		left += flags[i];
	free(flags);
	if (left != LEFT)
		fail("%ld numbers are left in the sieve, not %d", left, LEFT);
}

enum { ROUNDS = 2, NUMBERS = 10000, SEARCHES = 2000 };

static int numbers[NUMBERS];

static int ascending(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;
	return (x > y) - (x < y);
}

static int descending(const void *a, const void *b)
{
	return ascending(b, a);
}

static void sort_numbers(int (*compare)(const void *, const void *), int first, int last)
{
	qsort(numbers, NUMBERS, sizeof *numbers, compare);
	if (numbers[0] != first || numbers[NUMBERS - 1] != last)
		fail("what was sorted begins with %d and ends with %d", numbers[0], numbers[NUMBERS - 1]);
}

static void job_sort_rtns_1(void)
{
	for (int i = 0; i < NUMBERS; i++)
		numbers[i] = i;
	for (int round = 0; round < ROUNDS; round++) {
		sort_numbers(ascending, 0, NUMBERS - 1);
		sort_numbers(descending, NUMBERS - 1, 0);
		sort_numbers(ascending, 0, NUMBERS - 1);
		/* Half of them are not there. */
		for (int i = 0; i < SEARCHES; i++) {
			int key = i * (2 * NUMBERS / SEARCHES);
			const int *found = bsearch(&key, numbers, NUMBERS, sizeof *numbers, ascending);

			if (found != (key < NUMBERS ? &numbers[key] : NULL))
				fail("%d is not found where it belongs", key);
		}
	}
}

SUB_TEST(sieve, job_sieve(), SIEVES, "sieves", 0,
	 .summary = "5 sieves of Eratosthenes over 1000000 bytes of malloc");
SUB_TEST(sort_rtns_1, job_sort_rtns_1(), 10, "sorts", 0, .summary = "2 rounds of 10000 numbers sorted up, down and up by qsort, and 2000 sought by bsearch");
