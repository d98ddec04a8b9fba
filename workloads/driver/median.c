/* The middle of some numbers, which a few that were held up do not move. */
#include "driver.h"

#include <stdlib.h>

static int compare_numbers(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

double median(double *numbers, size_t count)
{
	qsort(numbers, count, sizeof *numbers, compare_numbers);
	return numbers[count / 2];
}
