/* A page that a program makes: it knows its visitor by a cookie, stores the visit in a database, and counts
 * them. After Whitcher's second test (2003), whose client never looked at the page: a server that sent errors
 * looked faster. Here the client computes each page itself and compares every byte, and at the end all visits
 * are in the database, once each. */
#include "database.h"
#include "http.h"
#include "server.h"
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VIEWS_PER_VISITOR = 10, TABLE_ROWS = 60, PAGE_SIZE = 8192, VISITOR_DIGITS = 32 };

static struct http_answer answer;
static int connection;
static char visitor[VISITOR_DIGITS + 1];
static uint64_t done, last_row;

static void prepare(void)
{
	connect_to_database();
	ask_database("CREATE TABLE IF NOT EXISTS hits (id BIGINT AUTO_INCREMENT PRIMARY KEY, run INTEGER, "
		     "nonce BIGINT, visitor CHAR(%d), UNIQUE (run, nonce), KEY (visitor))",
		     VISITOR_DIGITS);
	ask_database("DELETE FROM hits WHERE run = %d", copy_number);
	connection = connect_to_server("WEIGH_WEB");
}

/* As fixture/page.php has it. */
static uint32_t checksum(const char *text, size_t size)
{
	uint32_t crc = ~0u;

	for (size_t at = 0; at < size; at++) {
		crc ^= (unsigned char)text[at];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return ~crc;
}

static size_t expected_page(char page[PAGE_SIZE], uint64_t row, int views)
{
	size_t at = snprintf(page, PAGE_SIZE, "run %d\nnonce %llu\nvisitor %s\nnew %d\nrow %llu\nviews %d\n",
			     copy_number, (unsigned long long)done, visitor, views == 1,
			     (unsigned long long)row, views);

	for (int line = 0; line < TABLE_ROWS; line++)
		at += snprintf(page + at, PAGE_SIZE - at,
			       "<tr><td>%d</td><td>%llu</td><td>a line of the table</td></tr>\n", line,
			       (unsigned long long)(done * 31 + line) % 1000003);
	return at + snprintf(page + at, PAGE_SIZE - at, "sum %08x\nend\n", checksum(page, at));
}

static void take_visitor(void)
{
	static const char name[] = "lb=";

	if (strncmp(answer.cookie, name, strlen(name)) || strlen(answer.cookie) != 3 + VISITOR_DIGITS)
		fail("a new visitor got the cookie \"%s\"", answer.cookie);
	strcpy(visitor, answer.cookie + 3);
}

/* Which kind of wrong page it is. */
static _Noreturn void fail_as(const char *expected)
{
	unsigned long long nonce = 0;

	if (strncmp(answer.body, "error ", 6) == 0)
		fail("an error page with status 200: %.80s", answer.body);
	if (sscanf(answer.body, "run %*d nonce %llu", &nonce) == 1 && nonce != done)
		fail("the page of another request: it has the nonce %llu, not %llu", nonce,
		     (unsigned long long)done);
	fail("the page is not the one that was to be made: \"%.60s…\", not \"%.60s…\"", answer.body, expected);
}

static void view(void)
{
	char target[64], cookie[64] = "", expected[PAGE_SIZE];
	int views = done % VIEWS_PER_VISITOR + 1;
	unsigned long long row = 0;

	snprintf(target, sizeof target, "/page.php?run=%d&n=%llu", copy_number, (unsigned long long)done);
	if (views > 1)
		snprintf(cookie, sizeof cookie, "Cookie: lb=%s\r\n", visitor);
	http_get(connection, target, cookie, &answer);
	if (views == 1 && strncmp(answer.body, "error ", 6))
		take_visitor();
	else if (views > 1 && *answer.cookie)
		fail("a visitor who is known got another cookie");
	/* The database chose it: it is later than the last. */
	const char *line = strstr(answer.body, "\nrow ");
	if (line)
		row = strtoull(line + strlen("\nrow "), NULL, 10);
	size_t size = expected_page(expected, row, views);
	if (size != answer.size || memcmp(expected, answer.body, size) || row <= last_row)
		fail_as(expected);
	last_row = row;
	done++;
}

static void run(uint64_t n)
{
	for (; n; n--)
		view();
}

static void check(uint64_t n)
{
	struct answer found = ask_database(
		"SELECT COUNT(*), COUNT(DISTINCT nonce), MAX(nonce) FROM hits WHERE run = %d", copy_number);
	uint64_t rows = strtoull(found.fields[0], NULL, 10), nonces = strtoull(found.fields[1], NULL, 10);

	if (rows != n || nonces != n || strtoull(found.fields[2], NULL, 10) != n - 1)
		fail("of %llu good pages the database has %llu visits, %llu different", (unsigned long long)n,
		     (unsigned long long)rows, (unsigned long long)nonces);
}

WORKLOAD(cookie, .name = "app:web.cookie",
	 .summary = "get a page of PHP that knows its visitor by a cookie, stores the visit and counts them",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 2, .syscalls_note = "the client's",
	 .source = "J. Whitcher, Lunar Linux vs. Red Hat (2003): page views", .needs = "site", .prepare = prepare,
	 .run = run, .check = check, .add_usage = add_server_usage);
