/* A database is asked for single values, for whoever wants a proof of what it is. */
#include "driver.h"
#include "database.h"

#include <stdio.h>
#include <stdlib.h>

int ask(int argc, char **argv)
{
	static const struct workload asker = {.name = "ask"};

	if (argc < 3)
		usage_error("ask takes KIND:ADDRESS and statements");
	current = &asker;
	own_cleanup();
	if (setenv("WEIGH_DATABASE", argv[1], 1) < 0 || unsetenv("WEIGH_DURABILITY") < 0)
		fail("no memory for the address");
	connect_to_database();
	for (int i = 2; i < argc; i++) {
		struct answer answer = ask_database("%s", argv[i]);
		if (answer.rows != 1)
			fail("`%s` returned %llu rows", argv[i], (unsigned long long)answer.rows);
		puts(answer.fields[0]);
	}
	disconnect_from_database();
	return fflush(stdout) == 0 ? 0 : 1;
}
