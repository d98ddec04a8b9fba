/* Two processes that pass a number there and back, by whatever way a workload has.
 *
 *	static const struct way way = {.pass = pass, .take = take};
 *	static void prepare(void) { …; start_pingpong(&way); }
 *	PLACED_WORKLOADS(id, "name", …, .prepare = prepare, PINGPONG);
 */
#ifndef PINGPONG_H
#define PINGPONG_H

#include "workload.h"
#include "partner.h"

enum side { DRIVER, PARTNER };

/* Both give false, with errno, when they fail. */
struct way {
	bool (*pass)(enum side to, uint64_t number);
	bool (*take)(enum side own, uint64_t *number);
};

/* Starts the partner; what it shall inherit is open by then. */
void start_pingpong(const struct way *way);

void run_pingpong(uint64_t n);
void check_pingpong(uint64_t n);

#define PINGPONG                                                                            \
	.unit = "ops/s", .units_per_op = 1, .run = run_pingpong, .check = check_pingpong, \
	.add_usage = add_partner_usage

#endif
