/* Where many processes wait until all are ready, and then start at the same moment. */
#include "driver.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

void open_gate(_Atomic uint32_t *gate)
{
	atomic_store(gate, 1);
	syscall(SYS_futex, gate, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void wait_at_gate(_Atomic uint32_t *gate)
{
	while (!atomic_load(gate))
		syscall(SYS_futex, gate, FUTEX_WAIT, 0, NULL, NULL, 0);
}
