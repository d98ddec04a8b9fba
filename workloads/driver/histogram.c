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

static uint64_t counts[(64 - PART_BITS + 1) * PARTS];

void histogram_add(uint64_t ns)
{
	unsigned int shift = 0;

	if (ns >= PARTS)
		shift = 63 - __builtin_clzll(ns) - PART_BITS;
	/* ns >> shift lies in the upper half of two times PARTS, but for the exact ones at the start. */
	counts[shift * PARTS + (ns >> shift)]++;
}

void histogram_print(void)
{
	const char *separator = "";

	putchar('[');
	for (uint64_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		if (!counts[i])
			continue;
		unsigned int shift = i < 2 * PARTS ? 0 : i / PARTS - 1;
		printf("%s[%llu,%llu]", separator, (unsigned long long)(i - shift * PARTS) << shift,
		       (unsigned long long)counts[i]);
		separator = ",";
	}
	putchar(']');
}
