/* Counters of the PMU, over this process and those that it starts. */
#ifndef COUNTER_H
#define COUNTER_H

#include <stdbool.h>
#include <stdint.h>

enum counted { KERNEL_INSTRUCTIONS, CYCLES };

struct counter {
	int fd; /* -1 without a PMU, or without the permission to use it */
	uint64_t value;
};

/* To be opened before prepare(), because only processes forked later inherit it. */
struct counter open_counter(bool is_wanted, enum counted what);
void start_counter(struct counter *counter);
void stop_counter(struct counter *counter);
/* As a field of JSON behind others; null where nothing was counted. */
void print_counter(const char *name, const struct counter *counter);

#endif
