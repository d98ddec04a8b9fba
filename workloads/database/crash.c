/* What of a database outlives its crash: rows are inserted one by one, the server is killed in their midst,
 * and when it is there again, after its recovery, the rows are held against what it had acknowledged.
 *
 * A client of its own inserts, as it ends with the connection; in memory that both share it leaves how far
 * it came. Its rows are numbered, so it is exact which are to be there: all that were acknowledged, and
 * perhaps the next one, whose answer was on its way. */
#include "database.h"
#include "server.h"
#include "workload.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LEAST_ROWS = 10, LEAST_MS = 20, MOST_MS = 200, LIMIT_S = 60 };
enum { RECOVERY };
enum { LOST_INSERTS, FOREIGN_ROWS };
static const char *const faults[] = {"a crash that took acknowledged inserts", "rows that nobody made", NULL};

static struct {
	_Atomic uint64_t acknowledged; /* rows since the last crash */
} *client;
static uint64_t first_row, kept, crashes, acknowledged, lost, state = 2003;
static bool may_lose;

static uint64_t draw(uint64_t below)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (state >> 33) % below;
}

static void prepare(void)
{
	const char *durability = getenv("WEIGH_DURABILITY");

	if (copy_count > 1)
		fail("one client kills the server; leave the copies out");
	may_lose = durability && strcmp(durability, "relaxed") == 0;
	client = mmap(NULL, sizeof *client, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (client == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	enter_scratch_directory();
	connect_to_database();
	ask_database("DROP TABLE IF EXISTS crash");
	ask_database("CREATE TABLE crash (id BIGINT PRIMARY KEY, rdata VARCHAR(64))");
	disconnect_from_database();
}

/* In a child, whose words go to a file: who loses its connection has something to say. */
static pid_t start_child(void (*work)(void))
{
	fflush(stdout);
	pid_t child = fork();

	if (child < 0)
		fail("fork: %s", strerror(errno));
	if (child > 0)
		return child;
	int said = open("said", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (said < 0 || dup2(said, STDERR_FILENO) < 0)
		_exit(1);
	work();
	_exit(0);
}

static void insert_rows(void)
{
	connect_to_database();
	for (uint64_t row = first_row;; row++) {
		struct answer made = ask_database("INSERT INTO crash VALUES (%llu, 'Just another row')",
						  (unsigned long long)row);
		if (made.affected != 1)
			fail("the row %llu was not inserted", (unsigned long long)row);
		atomic_fetch_add(&client->acknowledged, 1);
	}
}

static _Noreturn void fail_with_its_words(const char *what)
{
	char words[512] = "";
	int said = open("said", O_RDONLY | O_CLOEXEC);

	if (said >= 0 && read(said, words, sizeof words - 1) > 0)
		words[strcspn(words, "\n")] = 0;
	fail("%s: %s", what, words);
}

/* Rows enough, and then some more for so long. */
static void let_insert(pid_t child)
{
	uint64_t limit = now_ns() + LIMIT_S * 1000000000ull;

	while (atomic_load(&client->acknowledged) < LEAST_ROWS) {
		if (waitpid(child, NULL, WNOHANG) == child)
			fail_with_its_words("the client ended before the server was killed");
		if (now_ns() > limit)
			fail("the server made less than %d rows in %d s", LEAST_ROWS, LIMIT_S);
		wait_until(now_ns() + 1000000);
	}
	wait_until(now_ns() + (LEAST_MS + draw(MOST_MS - LEAST_MS)) * 1000000);
}

static void kill_server(void)
{
	pid_t server = server_below();

	if (server == 0)
		fail("nobody starts the server again: as a fixture it is mariadb:revived or postgres:revived");
	if (kill(server, SIGKILL) < 0)
		fail("cannot kill the server: %s", strerror(errno));
}

/* Until it answers again. */
static void wait_for_server(void)
{
	uint64_t killed = now_ns();

	for (;;) {
		int status = 1;
		waitpid(start_child(connect_to_database), &status, 0);
		if (status == 0)
			break;
		if (now_ns() - killed > LIMIT_S * 1000000000ull)
			fail_with_its_words("the server did not come back");
		usleep(1000);
	}
	took(RECOVERY, now_ns() - killed);
}

static uint64_t rows_between(uint64_t from, uint64_t to)
{
	char statement[128];

	snprintf(statement, sizeof statement, "SELECT COUNT(*) FROM crash WHERE id >= %llu AND id < %llu",
		 (unsigned long long)from, (unsigned long long)to);
	return ask_number(statement);
}

static void reconcile(void)
{
	uint64_t made = atomic_load(&client->acknowledged), next = first_row + made;
	uint64_t found, on_its_way, gone;
	char text[160];

	connect_to_database();
	found = rows_between(first_row, next);
	on_its_way = rows_between(next, next + 1);
	disconnect_from_database();
	gone = made - found;
	snprintf(text, sizeof text, "%llu rows were acknowledged, and %llu are there", (unsigned long long)made,
		 (unsigned long long)found);
	if (gone && !may_lose)
		count_wrong(LOST_INSERTS, text);
	kept += found + on_its_way;
	acknowledged += made;
	lost += gone;
	crashes++;
	first_row = next + 1;
}

static void run(uint64_t n)
{
	for (; n; n--) {
		atomic_store(&client->acknowledged, 0);
		pid_t child = start_child(insert_rows);
		let_insert(child);
		kill_server();
		waitpid(child, NULL, 0);
		wait_for_server();
		reconcile();
	}
}

/* What outlived one crash outlives the next, and there is nothing else. */
static void check(uint64_t n)
{
	char text[160];

	connect_to_database();
	uint64_t rows = ask_number("SELECT COUNT(*) FROM crash");
	if (crashes != n)
		fail("%llu crashes, not %llu", (unsigned long long)crashes, (unsigned long long)n);
	snprintf(text, sizeof text, "%llu rows in all, and %llu after the single crashes",
		 (unsigned long long)rows, (unsigned long long)kept);
	if (rows > kept)
		count_wrong(FOREIGN_ROWS, text);
	if (rows < kept && !may_lose)
		count_wrong(LOST_INSERTS, text);
	if (rows < kept)
		lost += kept - rows;
}

static void tell(void)
{
	print_reading("lost_inserts", (double)lost / crashes, "rows/crash", "lower");
	print_reading("acknowledged_inserts", (double)acknowledged / crashes, "rows/crash", "higher");
}

WORKLOAD(crash, .name = "app:db.crash",
	 .summary = "insert rows, kill -9 the server in their midst, wait for its recovery, count what is there",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 3000, .syscalls_note = "the client's, about",
	 .source = "durability as in ACID (Haerder, Reuter 1983)", .needs = "revived database", .faults = faults,
	 .times = {"recovery"}, .prepare = prepare, .run = run, .check = check, .tell = tell);
