/* lmbench's lat_mem_rd: follows pointers through a buffer, so that each load waits for the one before. One
 * operation is one load.
 *
 * In steps of 64 or 256 bytes a processor guesses the next line; in random order it cannot, and large buffers
 * miss the TLB as well. */
#include "workload.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* In what order the nodes are linked: node i leads to node (factor * i + increment) mod nodes. */
struct order {
	uint64_t step; /* in bytes, between nodes */
	uint64_t factor, increment;
};

/* All nodes are on the way: increment and number of nodes have no common divisor, and factor - 1 can be
 * divided by all primes in that number, which are 2 and 3, and by 4 (Hull and Dobell 1962). */
static const struct order orders[] = {{64, 1, 1}, {256, 1, 1}, {64, 12 * 133 + 1, 1013}};
enum { NEXT_64, NEXT_256, RANDOM };

static char *buffer;
static uint64_t nodes;
static void **place;

static void **node(uint64_t number)
{
	return (void **)(buffer + number * orders[current->count].step);
}

static void **next(uint64_t number)
{
	const struct order *order = &orders[current->count];

	return node((order->factor * number + order->increment) % nodes);
}

static void prepare(void)
{
	nodes = current->size / orders[current->count].step;
	buffer = mmap(NULL, current->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buffer == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	for (uint64_t i = 0; i < nodes; i++)
		*node(i) = next(i);
	place = node(0);
}

static void run(uint64_t n)
{
	void **at = place;

	for (; n >= 8; n -= 8) {
		at = *at, at = *at, at = *at, at = *at;
		at = *at, at = *at, at = *at, at = *at;
	}
	for (; n; n--)
		at = *at;
	place = at;
}

/* Squaring the step gives the node after n of them. */
static void check(uint64_t n)
{
	uint64_t factor = orders[current->count].factor, increment = orders[current->count].increment, at = 0;

	for (uint64_t i = 0; i < nodes; i++)
		if (*node(i) != next(i))
			fail("node %llu leads elsewhere", (unsigned long long)i);
	for (; n; n /= 2) {
		if (n % 2)
			at = (factor * at + increment) % nodes;
		increment = (factor + 1) * increment % nodes;
		factor = factor * factor % nodes;
	}
	if (place != node(at))
		fail("so many loads do not lead here");
}

static void cleanup(void)
{
	if (buffer)
		munmap(buffer, current->size);
	buffer = NULL;
}

#define LOAD(label, bytes, id, way, order)                                                                \
	WORKLOAD(lat_mem_rd_##id##_##label, .name = "lat-mem-rd-" #id "-" #label,                           \
		 .summary = "a load of an address that was loaded before, in " #label ", " way, .unit = "ops/s", \
		 .units_per_op = 1, .syscalls_per_op = 0, .source = "lmbench 3 lat_mem_rd", .size = bytes,  \
		 .count = order, .series = "memory latency, " way, .x = bytes, .x_unit = "bytes",          \
		 .prepare = prepare, .run = run, .check = check, .cleanup = cleanup)

#define LOADS(label, bytes)                                                                                \
	LOAD(label, bytes, 64, "64 bytes on", NEXT_64);                                                     \
	LOAD(label, bytes, 256, "256 bytes on", NEXT_256);                                                  \
	LOAD(label, bytes, random, "at random", RANDOM)

#define KIB 1024
#define MIB (1024 * KIB)

LOADS(4k, 4 * KIB);
LOADS(8k, 8 * KIB);
LOADS(16k, 16 * KIB);
LOADS(32k, 32 * KIB);
LOADS(48k, 48 * KIB);
LOADS(64k, 64 * KIB);
LOADS(128k, 128 * KIB);
LOADS(256k, 256 * KIB);
LOADS(512k, 512 * KIB);
LOADS(1m, 1 * MIB);
LOADS(2m, 2 * MIB);
LOADS(4m, 4 * MIB);
LOADS(8m, 8 * MIB);
LOADS(16m, 16 * MIB);
LOADS(32m, 32 * MIB);
LOADS(64m, 64 * MIB);
