/*
 * work threads THREADS STEPS   so many steps of a loop in each of so many threads
 * work wait MICROSECONDS STEPS a sleep, and so many steps of a loop
 * work walk KIBIBYTES STEPS    so many random reads in memory of that size, each from where the last one led
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_THREADS = 64, LINE_WORDS = 8 };

static void *spin(void *steps)
{
	for (volatile unsigned long step = 0; step < *(unsigned long *)steps; step++)
		;
	return NULL;
}

static int in_threads(unsigned long count, unsigned long steps)
{
	pthread_t threads[MOST_THREADS];
	if (count > MOST_THREADS)
		return 2;
	for (unsigned long number = 0; number < count; number++)
		if (pthread_create(&threads[number], NULL, spin, &steps) != 0)
			return 1;
	for (unsigned long number = 0; number < count; number++)
		pthread_join(threads[number], NULL);
	return 0;
}

static int wait_for(unsigned long us, unsigned long steps)
{
	struct timespec time = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
	spin(&steps);
	return nanosleep(&time, NULL) == 0 ? 0 : 1;
}

/* A ring through the first word of each cache line, in an order that no prefetcher guesses. */
static int walk(unsigned long kib, unsigned long steps)
{
	unsigned long lines = kib * 1024 / (LINE_WORDS * sizeof(unsigned long)), drawn = 1;
	unsigned long *memory = aligned_alloc(4096, kib * 1024);
	unsigned long *order = malloc(lines * sizeof(*order));
	if (lines == 0 || memory == NULL || order == NULL)
		return 1;
	for (unsigned long line = 0; line < lines; line++)
		order[line] = line;
	for (unsigned long line = lines - 1; line > 0; line--) {
		drawn = drawn * 6364136223846793005UL + 1442695040888963407UL;
		unsigned long other = (drawn >> 33) % (line + 1), kept = order[line];
		order[line] = order[other];
		order[other] = kept;
	}
	for (unsigned long line = 0; line < lines; line++)
		memory[order[line] * LINE_WORDS] = order[(line + 1) % lines] * LINE_WORDS;
	unsigned long at = 0;
	for (unsigned long step = 0; step < steps; step++)
		at = *(volatile unsigned long *)&memory[at];
	return at == 1;
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	unsigned long size = strtoul(argv[2], NULL, 10), steps = strtoul(argv[3], NULL, 10);
	if (strcmp(argv[1], "threads") == 0)
		return in_threads(size, steps);
	if (strcmp(argv[1], "wait") == 0)
		return wait_for(size, steps);
	return strcmp(argv[1], "walk") == 0 ? walk(size, steps) : 2;
}
