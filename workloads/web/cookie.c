/* A page that a program makes: it knows its visitor by a cookie, stores the visit in a database, and counts
 * them. After Whitcher's second test (2003), whose client never looked at the page: a server that sent errors
 * looked faster. Here the client computes each page itself and compares every byte, and at the end each good
 * page has its visit in the database, and no other visit is there. */
#include "database.h"
#include "http.h"
#include "server.h"
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { VIEWS_PER_VISITOR = 10, TABLE_ROWS = 60, PAGE_SIZE = 8192, VISITOR_DIGITS = 32 };
/* Of wrong pages, as many are asked after at a time as a statement has room for. */
enum { AT_A_TIME = 20, MOST_COPIES = 1024, GREETS_WITHIN_S = 10 };

/* Of nobody's, and of a process before this one that had more copies. */
#define OTHER_RUNS "(run < 0 OR run >= %d)"

enum cookie_fault {
	ERROR_PAGE = HTTP_FAULTS,
	OTHER_REQUEST,
	WRONG_COOKIE,
	LOST_VISIT,
	FOREIGN_VISIT,
	NO_DATABASE
};
static const char *const faults[] = {HTTP_FAULT_NAMES,
				     "an error page with status 200",
				     "the page of another request",
				     "a wrong cookie",
				     "a good page without its visit in the database",
				     "a visit in the database that nobody made",
				     "visits that a silent database did not tell",
				     NULL};

static struct http_answer answer;
static char visitor[VISITOR_DIGITS + 1]; /* empty before the first page of one */
static int run_number, views;
static uint64_t asked, last_row;
static struct {
	uint64_t *nonces;
	size_t count, room;
} wrong;

/* Several processes on one server, one after the other, have visits of their own. */
static int choose_run(void)
{
	const char *pass = getenv("WEIGH_PASS");

	return (pass ? atoi(pass) : 0) * MOST_COPIES + copy_number;
}

/* Not kept: a site may need all connections that its database has. */
static void prepare(void)
{
	run_number = choose_run();
	connect_to_database();
	ask_database("CREATE TABLE IF NOT EXISTS hits (id BIGINT AUTO_INCREMENT PRIMARY KEY, run INTEGER, "
		     "nonce BIGINT, visitor CHAR(%d), UNIQUE (run, nonce), KEY (visitor))",
		     VISITOR_DIGITS);
	ask_database("DELETE FROM hits WHERE run = %d", run_number);
	if (copy_number == 0)
		ask_database("DELETE FROM hits WHERE " OTHER_RUNS, run_number + copy_count);
	/* The site's own user administers nothing, so one connection is always left for us. */
	if (ask_number("SELECT COUNT(*) FROM mysql.db WHERE user = 'site'") == 0) {
		ask_database("CREATE USER IF NOT EXISTS site@localhost");
		ask_database("GRANT ALL ON weigh.* TO site@localhost");
	}
	disconnect_from_database();
	remember_strangers();
}

/* As crates/weigh-fixture/src/page.php has it: CRC-32. */
static uint32_t checksum(const char *text, size_t size)
{
	static uint32_t table[256];
	uint32_t crc = ~0u;

	for (uint32_t byte = 0; !table[255] && byte < 256; byte++) {
		uint32_t rest = byte;
		for (int bit = 0; bit < 8; bit++)
			rest = rest >> 1 ^ (rest & 1 ? 0xedb88320 : 0);
		table[byte] = rest;
	}
	for (size_t at = 0; at < size; at++)
		crc = crc >> 8 ^ table[(crc ^ (unsigned char)text[at]) & 0xff];
	return ~crc;
}

static size_t expected_page(char page[PAGE_SIZE], uint64_t row)
{
	size_t at = snprintf(page, PAGE_SIZE, "run %d\nnonce %llu\nvisitor %s\nnew %d\nrow %llu\nviews %d\n",
			     run_number, (unsigned long long)asked, visitor, views == 1,
			     (unsigned long long)row, views);

	for (int line = 0; line < TABLE_ROWS; line++)
		at += snprintf(page + at, PAGE_SIZE - at,
			       "<tr><td>%d</td><td>%llu</td><td>a line of the table</td></tr>\n", line,
			       (unsigned long long)(asked * 31 + line) % 1000003);
	return at + snprintf(page + at, PAGE_SIZE - at, "sum %08x\nend\n", checksum(page, at));
}

static int tell(int fault, const char *format, const char *text)
{
	snprintf(answer.problem, sizeof answer.problem, format, text);
	return fault;
}

/* Whether the cookie is what it was to be. */
static int take_cookie(void)
{
	static const char name[] = "lb=";

	if (views > 1)
		return *answer.cookie ? tell(WRONG_COOKIE, "a visitor who is known got %s", answer.cookie) : NO_FAULT;
	if (strncmp(answer.cookie, name, strlen(name)) || strlen(answer.cookie) != 3 + VISITOR_DIGITS)
		return tell(WRONG_COOKIE, "a new visitor got \"%s\"", answer.cookie);
	strcpy(visitor, answer.cookie + 3);
	return NO_FAULT;
}

/* Which kind of wrong page it is; that of no error. */
static int look(void)
{
	char expected[PAGE_SIZE];
	unsigned long long nonce = 0, row = 0;
	int fault;

	if (strncmp(answer.body, "error ", 6) == 0)
		return tell(ERROR_PAGE, "%.150s", answer.body);
	if (sscanf(answer.body, "run %*d nonce %llu", &nonce) == 1 && nonce != asked)
		return tell(OTHER_REQUEST, "%.60s", answer.body);
	if ((fault = take_cookie()) != NO_FAULT)
		return fault;
	/* The database chose it: it is later than the last. */
	const char *line = strstr(answer.body, "\nrow ");
	if (line)
		row = strtoull(line + strlen("\nrow "), NULL, 10);
	size_t size = expected_page(expected, row);
	if (size != answer.size || memcmp(expected, answer.body, size) || row <= last_row)
		return tell(OTHER_BYTES, "%.100s", answer.body);
	last_row = row;
	return NO_FAULT;
}

static void keep_wrong(void)
{
	if (wrong.count == wrong.room) {
		wrong.room = wrong.room ? 2 * wrong.room : 64;
		wrong.nonces = realloc(wrong.nonces, wrong.room * sizeof *wrong.nonces);
		if (!wrong.nonces)
			fail("no memory for the numbers of %zu wrong pages", wrong.room);
	}
	wrong.nonces[wrong.count++] = asked;
}

static void view(void)
{
	char target[64], cookie[64] = "";

	views = views % VIEWS_PER_VISITOR + 1;
	snprintf(target, sizeof target, "/page.php?run=%d&n=%llu", run_number, (unsigned long long)asked);
	if (views > 1)
		snprintf(cookie, sizeof cookie, "Cookie: lb=%s\r\n", visitor);
	int fault = http_get(target, cookie, &answer);
	if (fault == NO_FAULT)
		fault = look();
	if (fault != NO_FAULT) {
		keep_wrong();
		views = 0; /* what the server knows of this visitor is uncertain: the next one is new */
		count_wrong(fault, answer.problem);
	}
	asked++;
	wait_after(fault, &answer);
}

static void run(uint64_t n)
{
	for (; n && !time_is_over(); n--)
		view();
	leave_undone(n);
}

/* Of the wrong pages, how many have a visit in the database. */
static uint64_t visits_of_wrong_pages(void)
{
	uint64_t visits = 0;

	for (size_t from = 0; from < wrong.count;) {
		char list[AT_A_TIME * 21] = "";
		size_t at = 0;
		for (int i = 0; i < AT_A_TIME && from < wrong.count; i++)
			at += snprintf(list + at, sizeof list - at, "%s%llu", i ? "," : "",
				       (unsigned long long)wrong.nonces[from++]);
		struct answer found = ask_database("SELECT COUNT(*) FROM hits WHERE run = %d AND nonce IN (%s)",
						   run_number, list);
		visits += strtoull(found.fields[0], NULL, 10);
	}
	return visits;
}

/* Visits of no copy of ours, neither of this pass nor of an earlier one. The first copy counts them. */
static uint64_t visits_of_other_runs(void)
{
	if (copy_number > 0)
		return 0;
	struct answer found =
		ask_database("SELECT COUNT(*) FROM hits WHERE " OTHER_RUNS, run_number + copy_count);
	return strtoull(found.fields[0], NULL, 10);
}

/* It greets whoever connects. */
static bool database_greets(void)
{
	int fd = try_to_connect("WEIGH_DATABASE", GREETS_WITHIN_S);
	char first;
	bool greets = fd >= 0 && recv(fd, &first, sizeof first, MSG_PEEK) == sizeof first;

	if (fd >= 0)
		close(fd);
	return greets;
}

/* A wrong page may have made a visit or not; a good one has, and nobody else. */
static void check(uint64_t n)
{
	uint64_t good = asked - wrong.count;
	char text[100];

	(void)n;
	count_strangers();
	/* The wrong pages of a pass count also where the database stands still. */
	if (endures() && !database_greets()) {
		snprintf(text, sizeof text, "%llu good pages, of which the database told nothing",
			 (unsigned long long)good);
		count_wrong(NO_DATABASE, text);
		return;
	}
	connect_to_database();
	struct answer found = ask_database(
		"SELECT COUNT(*), COUNT(DISTINCT nonce), COALESCE(SUM(nonce >= %llu), 0) FROM hits WHERE run = %d",
		(unsigned long long)asked, run_number);
	uint64_t beyond = strtoull(found.fields[2], NULL, 10), foreign = beyond + visits_of_other_runs();
	uint64_t visits = strtoull(found.fields[1], NULL, 10) - beyond - visits_of_wrong_pages();
	disconnect_from_database();
	snprintf(text, sizeof text, "%llu good pages, %llu visits of them", (unsigned long long)good,
		 (unsigned long long)visits);
	for (uint64_t lost = good - visits; visits < good && lost; lost--)
		count_wrong(LOST_VISIT, text);
	for (; foreign; foreign--)
		count_wrong(FOREIGN_VISIT, text);
}

WORKLOAD(cookie, .name = "app:web.cookie",
	 .summary = "get a page of PHP that knows its visitor by a cookie, stores the visit and counts them",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 2, .syscalls_note = "the client's",
	 .source = "J. Whitcher, Lunar Linux vs. Red Hat (2003): page views", .needs = "site", .faults = faults,
	 .prepare = prepare, .run = run, .check = check, .add_usage = add_server_usage);
