/*
 * A command with a noise of its own: prints a sample of about 20 microseconds that never ran, and knows its
 * arm by whether a seccomp filter is on it. What is wrong with it is planted, so that the truth is known.
 *
 *     fake MODE STATE     STATE: a file with a seed, kept between launches
 *
 * The modes of noise() plant nothing in either arm, and their noise is another than the white one of 1 %.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

static uint64_t state;

/* Uniform in (0, 1): splitmix64. */
static double uniform(void)
{
	uint64_t z = (state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return ((double)((z ^ (z >> 31)) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

/* The logarithm of the time. `level` is kept between launches. */
static double noise(const char *mode, double *level)
{
	if (!strcmp(mode, "drifting")) { /* AR(1), and t with 2 degrees of freedom */
		*level = 0.9 * *level + 0.01 * normal();
		return *level + 0.01 * normal() / sqrt(-log(uniform()));
	}
	if (!strcmp(mode, "regimes")) {
		if (uniform() < 0.1)
			*level = *level > 0 ? 0 : 0.25;
		return *level + 0.01 * normal();
	}
	if (!strcmp(mode, "skewed"))
		return -0.02 * log(uniform());
	if (!strcmp(mode, "bimodal"))
		return (uniform() < 0.5 ? 0 : 0.05) + 0.003 * normal();
	return 0.01 * normal();
}

int main(int argc, char **argv)
{
	int treated = prctl(PR_GET_SECCOMP) == 2, after_treated = 0;
	unsigned long long seed = 0, launches = 0;
	double log_time = 0, level = 0;
	FILE *file;

	if (argc != 3 || !(file = fopen(argv[2], "r+")))
		return 2;
	if (fscanf(file, "%llu %d %llu %lf", &seed, &after_treated, &launches, &level) != 4)
		return 2;
	state = seed;
	log_time = noise(argv[1], &level);
	/* Every other launch is the second of its pair. */
	if (!strcmp(argv[1], "after-any") && after_treated)
		log_time += 0.02;
	if (!strcmp(argv[1], "after-baseline") && after_treated && !treated)
		log_time += 0.02;
	if (!strcmp(argv[1], "second-launch"))
		log_time += (launches % 2 ? 0.02 : 0) + (treated ? 0.01 : 0);
	if (!strcmp(argv[1], "stalls") && treated && uniform() < 0.05)
		log_time += log(3);
	rewind(file);
	fprintf(file, "%llu %d %llu %.9f\n", (unsigned long long)state, treated, launches + 1, level);
	if (fclose(file))
		return 2;
	printf("{\"operations\":1000,\"elapsed_ns\":%.0f}\n", 20000 * exp(log_time));
	return 0;
}
