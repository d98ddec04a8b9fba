/* The loop of Whitcher's report on Lunar Linux and Red Hat (2003): a key is drawn at random and looked up,
 * and a row with it inserted where there is none.
 *
 * The original's condition was always false, so it inserted every time, and nobody saw the duplicates fail.
 * Here each answer is checked, and at the end the rows of the table are held against what the server
 * acknowledged and against the keys that were drawn. The fuller the table, the fewer inserts: workloads that
 * begin at so many per cent are points of a curve.
 *
 * random-fill has his table of 2^20 keys, and passes over one server (WEIGH_PASS) go on with the same
 * table: it fills while it is measured. Keys are the same for each client whenever they are drawn again, so
 * the number of draws, which the database keeps, is all that a pass hands to the next.
 *
 * Clients have a table each, or all the same, as in 2003: then two may miss a key at the same time, and the
 * server lets only one of them insert it. */
#include "database.h"
#include "server.h"
#include "workload.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DATA "Just another row in the table"

/* SCATTER has no divisor in common with KEYS, so that multiples of it are different keys. */
enum { KEYS = 1 << 18, MOST_KEYS = 1 << 20, SCATTER = 40503 };

static unsigned char has_row[MOST_KEYS / 8];
static char table[32];
static uint64_t state, prefilled, inserted, drawn_before;

/* Of clients with the same table. */
enum { MOST_CLIENTS = 1024 };
static struct common {
	_Atomic uint64_t inserted, drawn[MOST_CLIENTS];
	_Atomic int clients_done;
} *common;

enum { SELECT, INSERT };

static uint32_t keys(void)
{
	return current->size ? current->size : KEYS;
}

/* Splitmix64 (Steele, Lea, Flood 2014). */
static uint32_t next_key(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return (z ^ z >> 31) % keys();
}

static void begin_keys(int client)
{
	state = 2003 + client;
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

static void make_table_if_missing(void)
{
	ask_database("CREATE TABLE IF NOT EXISTS %s "
		     "(rindex INTEGER PRIMARY KEY, time INTEGER, rdata VARCHAR(64))",
		     table);
}

static void make_table(void)
{
	ask_database("DROP TABLE IF EXISTS %s", table);
	make_table_if_missing();
}

static void prepare(void)
{
	connect_to_database();
	snprintf(table, sizeof table, "random_%d", copy_number);
	make_table();
	begin_keys(copy_number);
	fill();
}

/* In a process of its own: a connection is none for copies that are forked later. */
static void prepare_common(void)
{
	int status = 0;
	pid_t child;

	strcpy(table, "random");
	common = mmap(NULL, sizeof *common, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (common == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	fflush(stdout);
	child = fork();
	if (child == 0) {
		connect_to_database();
		make_table();
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		fail("cannot start who makes the table: %s", strerror(errno));
	if (status)
		_exit(1); /* it has said why */
}

static void prepare_client(void)
{
	connect_to_database();
	begin_keys(copy_number);
}

/* Of a key that this client knows to be in the table, or not. */
static bool look_up(uint32_t key, bool is_known)
{
	uint64_t began = now_ns();
	struct answer found = ask_database("SELECT rindex,time,rdata FROM %s WHERE rindex=%u", table, key);

	took(SELECT, now_ns() - began);
	if (found.rows != is_known && (is_known || !common || found.rows > 1))
		fail("%llu rows have the key %u, which was %s", (unsigned long long)found.rows, key,
		     is_known ? "inserted" : "not inserted");
	if (found.rows && (strtoul(found.fields[0], NULL, 10) != key || strcmp(found.fields[2], DATA)))
		fail("the row of the key %u has the key %s and the text \"%s\"", key, found.fields[0],
		     found.fields[2]);
	return found.rows;
}

static void insert(uint32_t key)
{
	uint64_t began = now_ns();
	struct answer made = ask_database("INSERT INTO %s VALUES (%u, %lld, '" DATA "')", table, key,
					  (long long)time(NULL));

	took(INSERT, now_ns() - began);
	/* Another client was faster. */
	if (made.is_duplicate && copy_count > 1 && common)
		return;
	if (made.is_duplicate || made.affected != 1)
		fail("the key %u was not inserted, though there was none", key);
	inserted++;
}

static void run(uint64_t n)
{
	for (; n; n--) {
		uint32_t key = next_key();
		if (!look_up(key, !take_note(key)))
			insert(key);
	}
}

/* Draws again what a client has drawn. */
static uint64_t draw_again(int client, uint64_t drawn)
{
	uint64_t distinct = 0;

	for (begin_keys(client); drawn; drawn--)
		distinct += take_note(next_key());
	return distinct;
}

static uint64_t count_rows(void)
{
	char count[64];

	snprintf(count, sizeof count, "SELECT COUNT(*) FROM %s", table);
	return ask_number(count);
}

static void reconcile(uint64_t acknowledged, uint64_t distinct)
{
	uint64_t rows = count_rows();

	if (rows != acknowledged || rows != distinct)
		fail("the table has %llu rows, the server acknowledged %llu, and %llu keys were drawn",
		     (unsigned long long)rows, (unsigned long long)acknowledged, (unsigned long long)distinct);
}

static void check(uint64_t n)
{
	memset(has_row, 0, sizeof has_row);
	take_note_of_prefilled();
	reconcile(prefilled + inserted, prefilled + draw_again(copy_number, n));
}

/* The last client does it for all. */
static void check_common(uint64_t n)
{
	uint64_t distinct = 0;

	atomic_fetch_add(&common->inserted, inserted);
	atomic_store(&common->drawn[copy_number], n);
	if (atomic_fetch_add(&common->clients_done, 1) + 1 < copy_count)
		return;
	memset(has_row, 0, sizeof has_row);
	for (int client = 0; client < copy_count; client++)
		distinct += draw_again(client, atomic_load(&common->drawn[client]));
	reconcile(atomic_load(&common->inserted), distinct);
}

static void prepare_to_fill(void)
{
	const char *pass = getenv("WEIGH_PASS");
	char drawn[96];

	connect_to_database();
	snprintf(table, sizeof table, "fill_%d", copy_number);
	if (!pass || atoi(pass) <= 1) {
		ask_database("DROP TABLE IF EXISTS %s", table);
		ask_database("DROP TABLE IF EXISTS %s_drawn", table);
	}
	/* A first pass that was killed may have made neither. */
	make_table_if_missing();
	ask_database("CREATE TABLE IF NOT EXISTS %s_drawn (drawn BIGINT)", table);
	snprintf(drawn, sizeof drawn, "SELECT COALESCE(MAX(drawn), 0) FROM %s_drawn", table);
	drawn_before = ask_number(drawn);
	inserted = draw_again(copy_number, drawn_before);

	/* A pass that was killed did not say how often it drew. But each new key became a row, in order: what
	 * it drew is known from the rows, but for old keys at its end, which change nothing. */
	uint64_t rows = count_rows();
	if (rows > keys())
		fail("the table has %llu rows, more than there are keys", (unsigned long long)rows);
	for (; inserted < rows; drawn_before++)
		inserted += take_note(next_key());
}

static void check_filled(uint64_t n)
{
	uint64_t drawn = drawn_before + n;

	memset(has_row, 0, sizeof has_row);
	reconcile(inserted, draw_again(copy_number, drawn));
	ask_database("INSERT INTO %s_drawn VALUES (%llu)", table, (unsigned long long)drawn);
}

#define RANDOM_INSERT(id, title, per_cent, at_first)                                                  \
	WORKLOAD(id, .name = title,                                                                   \
		 .summary = "look up a random key, and insert a row where there is none; "            \
			    "the table is " at_first " at first",                                     \
		 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 6 - 3 * per_cent / 100.0,     \
		 .syscalls_note = "the client's: three for a lookup, three for an insert",            \
		 .source = "J. Whitcher, Lunar Linux vs. Red Hat (2003): random inserts",             \
		 .needs = "database", .count = per_cent, .series = "random inserts over fill",        \
		 .x = per_cent, .x_unit = "% full", .times = {"select", "insert"},                    \
		 .prepare = prepare, .run = run, .check = check, .add_usage = add_server_usage)

RANDOM_INSERT(empty, "app:db.random-insert", 0, "empty");
RANDOM_INSERT(at_30, "app:db.random-insert-30", 30, "30 % full");
RANDOM_INSERT(at_60, "app:db.random-insert-60", 60, "60 % full");
RANDOM_INSERT(at_90, "app:db.random-insert-90", 90, "90 % full");
WORKLOAD(filling, .name = "app:db.random-fill",
	 .summary = "look up a random key of 2^20, and insert a row where there is none; with --for the table fills",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 6,
	 .syscalls_note = "the client's, while the table is empty: three for a lookup, three for an insert",
	 .size = MOST_KEYS,
	 .source = "J. Whitcher, Lunar Linux vs. Red Hat (2003): random inserts", .needs = "database",
	 .times = {"select", "insert"}, .prepare = prepare_to_fill, .run = run, .check = check_filled,
	 .add_usage = add_server_usage);
WORKLOAD(in_common, .name = "app:db.random-insert-shared",
	 .summary = "look up a random key, and insert a row where there is none; all clients in one table",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 6,
	 .syscalls_note = "the client's: three for a lookup, three for an insert",
	 .source = "J. Whitcher, Lunar Linux vs. Red Hat (2003): random inserts", .needs = "database",
	 .times = {"select", "insert"}, .prepare_once = prepare_common, .prepare = prepare_client, .run = run,
	 .check = check_common, .add_usage = add_server_usage);
