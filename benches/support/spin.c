/* spin STEPS [PER-MILLE]: so many steps of a loop; of so many in a thousand runs, 30 % more. */
#include <stdlib.h>
#include <sys/random.h>

int main(int argc, char **argv)
{
	unsigned long steps = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	unsigned int drawn = 0;
	if (argc > 2 && getrandom(&drawn, sizeof drawn, 0) == sizeof drawn &&
	    drawn % 1000 < strtoul(argv[2], NULL, 10))
		steps += steps * 3 / 10;
	for (volatile unsigned long step = 0; step < steps; step++)
		;
	return 0;
}
