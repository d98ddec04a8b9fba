/* SQLite: its library reads and writes a file, in the workload's own process. It is the system's, found when
 * it is needed, so that nobody else needs it. */
#include "database.h"
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef WEIGH_STATIC
static void open_file(const char *variable)
{
	(void)variable;
	fail("this build of the workloads cannot load SQLite's library");
}

static void ask(const char *statement, struct answer *answer)
{
	(void)statement, (void)answer;
}
#else
#include <dlfcn.h>

/* https://www.sqlite.org/rescode.html */
enum { OK = 0, ROW = 100, DONE = 101, CONSTRAINT_PRIMARYKEY = 1555, CONSTRAINT_UNIQUE = 2067 };
enum { BUSY_MS = 30000 };

static void *file;

/* Of https://www.sqlite.org/c3ref/intro.html. */
static struct {
	int (*open)(const char *, void **);
	int (*busy_timeout)(void *, int);
	int (*prepare)(void *, const char *, int, void **, const char **);
	int (*step)(void *);
	int (*column_count)(void *);
	const unsigned char *(*column_text)(void *, int);
	int (*column_bytes)(void *, int);
	int (*finalize)(void *);
	int (*changes)(void *);
	int (*extended_errcode)(void *);
	const char *(*errmsg)(void *);
} sqlite;

static void *find(void *library, const char *name)
{
	void *found = dlsym(library, name);

	if (!found)
		fail("SQLite's library lacks %s", name);
	return found;
}

static void load(void)
{
	void *library = dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		fail("SQLite is not installed (Debian: apt-get install libsqlite3-0)");
	sqlite.open = find(library, "sqlite3_open");
	sqlite.busy_timeout = find(library, "sqlite3_busy_timeout");
	sqlite.prepare = find(library, "sqlite3_prepare_v2");
	sqlite.step = find(library, "sqlite3_step");
	sqlite.column_count = find(library, "sqlite3_column_count");
	sqlite.column_text = find(library, "sqlite3_column_text");
	sqlite.column_bytes = find(library, "sqlite3_column_bytes");
	sqlite.finalize = find(library, "sqlite3_finalize");
	sqlite.changes = find(library, "sqlite3_changes");
	sqlite.extended_errcode = find(library, "sqlite3_extended_errcode");
	sqlite.errmsg = find(library, "sqlite3_errmsg");
}

static void ask(const char *statement, struct answer *answer)
{
	void *prepared;
	int result;

	if (sqlite.prepare(file, statement, -1, &prepared, NULL) != OK)
		fail("SQLite refused `%s`: %s", statement, sqlite.errmsg(file));
	while ((result = sqlite.step(prepared)) == ROW) {
		for (int column = 0; column < sqlite.column_count(prepared); column++) {
			const unsigned char *text = sqlite.column_text(prepared, column);
			keep_field(answer, column, text ? (const char *)text : "",
				   sqlite.column_bytes(prepared, column));
		}
		answer->rows++;
	}
	int code = sqlite.extended_errcode(file);
	answer->is_duplicate =
		result != DONE && (code == CONSTRAINT_PRIMARYKEY || code == CONSTRAINT_UNIQUE);
	if (result != DONE && !answer->is_duplicate)
		fail("SQLite: `%s`: %s", statement, sqlite.errmsg(file));
	answer->affected = sqlite.changes(file);
	sqlite.finalize(prepared);
}

/* When a commit is on disk, the connection says, not the file. */
static void open_file(const char *variable)
{
	const char *path = strchr(getenv(variable), ':') + 1, *durability = getenv("WEIGH_DURABILITY");
	bool is_relaxed = durability && strcmp(durability, "relaxed") == 0;
	struct answer mode = {0}, nothing = {0};

	load();
	if (sqlite.open(path, &file) != OK)
		fail("SQLite cannot open %s: %s", path, file ? sqlite.errmsg(file) : "no memory");
	sqlite.busy_timeout(file, BUSY_MS);
	ask("PRAGMA journal_mode = WAL", &mode);
	if (strcmp(mode.fields[0], "wal"))
		fail("SQLite has the journal mode %s, not wal", mode.fields[0]);
	ask(is_relaxed ? "PRAGMA synchronous = NORMAL" : "PRAGMA synchronous = FULL", &nothing);
}
#endif

const struct protocol sqlite_protocol = {
	.kind = "sqlite",
	.connect = open_file,
	.ask = ask,
	.is_durable = "SELECT synchronous = 2 FROM pragma_synchronous",
	.sequence = "(WITH RECURSIVE numbers (seq) AS (SELECT 0 UNION ALL SELECT seq + 1 FROM numbers"
		    " WHERE seq < %llu) SELECT seq FROM numbers)"};
