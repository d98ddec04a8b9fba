/* UnixBench's "Recursion Test": the Towers of Hanoi with ten disks. */
#include "workload.h"

enum { DISKS = 10, MOVES = (1 << DISKS) - 1 };

static int on_peg[3]; /* how many disks */

/* Returns the number of moves. That is opaque to the compiler, or it would make one of the recursions a
 * loop. */
SEPARATE static int move(int disks, int from, int to)
{
	int over = 3 - from - to, moves = 1;

	if (disks == 1) {
		on_peg[from]--;
		on_peg[to]++;
		return moves;
	}
	moves = move(disks - 1, from, over);
	moves += move(1, from, to);
	moves += move(disks - 1, over, to);
	OPAQUE(moves);
	return moves;
}

static void run(uint64_t n)
{
	for (; n; n--) {
		on_peg[0] = DISKS;
		on_peg[1] = on_peg[2] = 0;
		int moves = move(DISKS, 0, 2);
		if (moves != MOVES || on_peg[2] != DISKS || on_peg[1] || on_peg[0])
			fail("%d moves, %d disks arrived; not %d and %d", moves, on_peg[2], MOVES, DISKS);
	}
}

WORKLOAD(hanoi, .name = "hanoi", .summary = "solve the Towers of Hanoi with 10 disks: 1023 moves", .unit = "ops/s",
	 .units_per_op = 1, .syscalls_per_op = 0, .source = "UnixBench 6.0 hanoi (Recursion Test)", .run = run);
