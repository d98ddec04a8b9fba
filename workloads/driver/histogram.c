/* How long each operation took: counts in buckets that are nowhere wider than 1/64 of what is in them.
 *
 * Up to 64 ns each nanosecond has a bucket; from there on every power of two is cut into 64 equal
 * parts, as HdrHistogram does (https://hdrhistogram.org). The lower end of a bucket so tells its
 * width, and a reader needs no table. 30 KB hold every duration, and adding one is a few instructions.
 */
#include "driver.h"

#include <stdio.h>

#define PART_BITS 6
#define PARTS (1u << PART_BITS)

static uint64_t counts[HISTOGRAM_BUCKETS];

static uint64_t lower_end_ns(uint64_t bucket)
{
	unsigned int shift = bucket < 2 * PARTS ? 0 : bucket / PARTS - 1;

	return (bucket - shift * PARTS) << shift;
}

uint64_t histogram_bucket(uint64_t ns)
{
	unsigned int shift = 0;

	if (ns >= PARTS)
		shift = 63 - __builtin_clzll(ns) - PART_BITS;
	/* ns >> shift lies in the upper half of two times PARTS, but for the exact ones at the start. */
	return shift * PARTS + (ns >> shift);
}

void histogram_add(uint64_t ns)
{
	counts[histogram_bucket(ns)]++;
}

void histogram_print(void)
{
	const char *separator = "";

	putchar('[');
	for (uint64_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		if (!counts[i])
			continue;
		printf("%s[%llu,%llu]", separator, (unsigned long long)lower_end_ns(i),
		       (unsigned long long)counts[i]);
		separator = ",";
	}
	putchar(']');
}

void histogram_share(_Atomic uint64_t buckets[HISTOGRAM_BUCKETS])
{
	for (uint64_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		if (counts[i])
			atomic_fetch_add(&buckets[i], counts[i]);
}

void histogram_take(_Atomic uint64_t buckets[HISTOGRAM_BUCKETS])
{
	for (uint64_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		counts[i] = atomic_load(&buckets[i]);
}
