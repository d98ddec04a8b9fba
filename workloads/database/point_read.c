/* Rows read by their key, as a web page reads a session. */
#include "database.h"
#include "server.h"
#include "workload.h"

#include <stdio.h>
#include <string.h>

enum { ROWS = 10000 };

static char table[32];
static uint32_t key;

static void prepare(void)
{
	connect_to_database();
	snprintf(table, sizeof table, "point_%d", copy_number);
	ask_database("DROP TABLE IF EXISTS %s", table);
	ask_database("CREATE TABLE %s (id INTEGER PRIMARY KEY, content VARCHAR(64))", table);
	struct answer made = ask_database("INSERT INTO %s SELECT seq, 'This is row number ' || seq FROM %s",
					  table, sequence_to(ROWS - 1));
	if (made.affected != ROWS)
		fail("%d rows were to be made, and %llu were", ROWS, (unsigned long long)made.affected);
}

static void run(uint64_t n)
{
	char expected[64];

	for (; n; n--) {
		key = (key + 7919) % ROWS; /* a prime: all rows are on the way */
		struct answer found = ask_database("SELECT id, content FROM %s WHERE id=%u", table, key);
		snprintf(expected, sizeof expected, "This is row number %u", key);
		if (found.rows != 1 || strcmp(found.fields[1], expected))
			fail("the row %u is \"%s\"", key, found.fields[1]);
	}
}

WORKLOAD(point_read, .name = "app:db.point-read", .summary = "read one of 10,000 rows by its key", .unit = "ops/s",
	 .units_per_op = 1, .syscalls_per_op = 3, .syscalls_note = "the client's", .source = "Weighbridge",
	 .needs = "database", .prepare = prepare, .run = run, .add_usage = add_server_usage);
