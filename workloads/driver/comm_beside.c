/* What W_test does beside COMM: any workload, in as many copies as there are CPUs to contend for. A copy
 * does its units, and then more that nobody counts, until all that is scored has ended. */
#include "comm.h"

#include <unistd.h>

_Noreturn void be_activity(const struct beside *beside, struct comm_board *board, int number)
{
	uint64_t done = 0;

	current = beside->activity;
	begin_activity(number);
	atomic_fetch_add(&board->ready, 1);
	wait_at_gate(&board->gate);
	for (; !atomic_load(&board->over); done++) {
		current->run(1);
		if (done + 1 != beside->units)
			continue;
		board->activity_ns[number] = now_ns() - board->opened_ns;
		if (atomic_fetch_sub(&board->activities_left, 1) == 1 && !atomic_load(&board->transfers_left))
			open_gate(&board->over);
	}
	if (current->check)
		current->check(done + 1);
	if (current->cleanup)
		current->cleanup();
	_exit(0);
}
