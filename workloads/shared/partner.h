/* The other processes of a workload, pinned, and bound to the driver's life.
 *
 * Everything ends by itself: partners are killed when the driver dies, also by SIGKILL. */
#ifndef PARTNER_H
#define PARTNER_H

#include <stdint.h>
#include <sys/resource.h>

/* Forks a partner; the first call places the driver. serve() returns at the end of its input, and says how
 * many turns it took. It may call fail(). A system call in which it waits is restarted, but for semop(2). */
void start_partner(uint64_t (*serve)(void));

/* Waits for all partners, which must have been told to end, and returns the sum of their turns. */
uint64_t end_partners(void);

/* For .add_usage */
void add_partner_usage(struct rusage *total);

#endif
