/* The loop of Whitcher's report on Lunar Linux and Red Hat (2003): a key is drawn at random and looked up,
 * and a row with it inserted where there is none.
 *
 * The original's condition was always false, so it inserted every time, and nobody saw the duplicates fail.
 * Here each answer is checked, and at the end the rows of the table are held against what the server
 * acknowledged and against the keys that were drawn. The fuller the table, the fewer inserts: workloads that
 * begin at so many per cent are points of a curve. */
#include "database.h"
#include "server.h"
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DATA "Just another row in the table"

/* SCATTER has no divisor in common with KEYS, so that multiples of it are different keys. */
enum { KEYS = 1 << 18, SCATTER = 40503 };

static unsigned char has_row[KEYS / 8];
static char table[32];
static uint64_t state, prefilled, inserted;

/* Splitmix64 (Steele, Lea, Flood 2014). */
static uint32_t next_key(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return (z ^ z >> 31) % KEYS;
}

static void begin_keys(void)
{
	state = 2003 + copy_number;
}

static bool take_note(uint32_t key)
{
	unsigned char bit = 1 << key % 8;
	bool is_new = !(has_row[key / 8] & bit);

	has_row[key / 8] |= bit;
	return is_new;
}

static void take_note_of_prefilled(void)
{
	for (uint64_t i = 0; i < prefilled; i++)
		take_note(i * SCATTER % KEYS);
}

static void fill(void)
{
	prefilled = (uint64_t)KEYS * current->count / 100;
	take_note_of_prefilled();
	if (prefilled == 0)
		return;
	struct answer answer = ask_database("INSERT INTO %s SELECT seq * %d %% %d, 0, '" DATA "' FROM %s", table,
					    SCATTER, KEYS, sequence_to(prefilled - 1));
	if (answer.affected != prefilled)
		fail("%llu rows were to be made, and %llu were", (unsigned long long)prefilled,
		     (unsigned long long)answer.affected);
}

static void prepare(void)
{
	connect_to_database();
	snprintf(table, sizeof table, "random_%d", copy_number);
	ask_database("DROP TABLE IF EXISTS %s", table);
	ask_database("CREATE TABLE %s (rindex INTEGER PRIMARY KEY, time INTEGER, rdata VARCHAR(64))", table);
	begin_keys();
	fill();
}

static void run(uint64_t n)
{
	for (; n; n--) {
		uint32_t key = next_key();
		bool is_new = take_note(key);
		struct answer found =
			ask_database("SELECT rindex,time,rdata FROM %s WHERE rindex=%u", table, key);
		if (found.rows != (is_new ? 0 : 1))
			fail("%llu rows have the key %u, which was %s", (unsigned long long)found.rows, key,
			     is_new ? "not inserted" : "inserted");
		if (!is_new && (strtoul(found.fields[0], NULL, 10) != key || strcmp(found.fields[2], DATA)))
			fail("the row of the key %u has the key %s and the text \"%s\"", key, found.fields[0],
			     found.fields[2]);
		if (!is_new)
			continue;
		struct answer made = ask_database("INSERT INTO %s VALUES (%u, %lld, '" DATA "')", table, key,
						  (long long)time(NULL));
		if (made.is_duplicate || made.affected != 1)
			fail("the key %u was not inserted, though there was none", key);
		inserted++;
	}
}

/* Draws all keys again. */
static uint64_t distinct_keys(uint64_t drawn)
{
	uint64_t distinct = prefilled;

	memset(has_row, 0, sizeof has_row);
	take_note_of_prefilled();
	for (begin_keys(); drawn; drawn--)
		distinct += take_note(next_key());
	return distinct;
}

static void check(uint64_t n)
{
	char count[64];

	snprintf(count, sizeof count, "SELECT COUNT(*) FROM %s", table);
	uint64_t rows = ask_number(count), distinct = distinct_keys(n);
	if (rows != prefilled + inserted || rows != distinct)
		fail("the table has %llu rows, the server acknowledged %llu, and %llu keys were drawn",
		     (unsigned long long)rows, (unsigned long long)(prefilled + inserted),
		     (unsigned long long)distinct);
}

#define RANDOM_INSERT(id, title, per_cent, at_first)                                                  \
	WORKLOAD(id, .name = title,                                                                   \
		 .summary = "look up a random key, and insert a row where there is none; "            \
			    "the table is " at_first " at first",                                     \
		 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 4 - 2 * per_cent / 100.0,     \
		 .syscalls_note = "the client's: two for a lookup, two for an insert",                \
		 .source = "J. Whitcher, Lunar Linux vs. Red Hat (2003): random inserts",             \
		 .needs = "database", .count = per_cent, .series = "random inserts over fill",        \
		 .x = per_cent, .x_unit = "% full", .prepare = prepare, .run = run, .check = check,   \
		 .add_usage = add_server_usage)

RANDOM_INSERT(empty, "app:db.random-insert", 0, "empty");
RANDOM_INSERT(at_30, "app:db.random-insert-30", 30, "30 % full");
RANDOM_INSERT(at_60, "app:db.random-insert-60", 60, "60 % full");
RANDOM_INSERT(at_90, "app:db.random-insert-90", 90, "90 % full");
