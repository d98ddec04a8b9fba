/* The sub-tests of AIM7 and AIM9, as re-aim 7 has them: one operation is one invocation, which they call
 * a job. Written anew from a description of their work; docs/workloads.md says where they differ, and why.
 *
 * Many of them take turns in one process, so none keeps anything from one job to the next that another could
 * disturb, and each job verifies its own result: a comparison or two beside thousands of operations. */
#ifndef JOB_H
#define JOB_H

#include "workload.h"

/* What the rate counts is AIM's: so many `things` per job. */
#define SUB_TEST(id, job, units, things, calls, ...)                                                   \
	static void run_##id(uint64_t n)                                                               \
	{                                                                                              \
		for (; n; n--)                                                                         \
			job;                                                                           \
	}                                                                                              \
	WORKLOAD(id, .name = #id, .unit = things "/s", .units_per_op = units, .syscalls_per_op = calls, \
		 .source = "AIM9 (re-aim 7) " #id, .run = run_##id, __VA_ARGS__)

/* A sub-test of before once more, as NAME@cold: what each job reads is not in the page cache. */
#define COLD_SUB_TEST(id, units, things, calls, ...)                                                    \
	WORKLOAD(id##_cold, .name = #id "@cold", .unit = things "/s", .units_per_op = units,            \
		 .syscalls_per_op = calls, .source = "AIM9 (re-aim 7) " #id, .run = run_##id,           \
		 .is_cold = true, __VA_ARGS__)
#define TAKEN_OUT ", which is taken out of the page cache before"

/* The compiler has to assume that all memory was read and changed here. */
#define OPAQUE_MEMORY() __asm__ volatile("" : : : "memory")

/* The same numbers in every job, on every machine. */
static inline uint32_t next_number(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

#endif
