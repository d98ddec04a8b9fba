/* A page of a web server, over a Unix socket. Every byte of it is compared. */
#include "http.h"
#include "server.h"
#include "workload.h"

#include <string.h>

#define VARIABLE "WEIGH_WEB"

enum { PAGE_SIZE = 5000 };

static char expected[PAGE_SIZE];
static struct http_answer answer;
static int connection = -1;

/* What fixture/web_page.rs writes. */
static void make_expected(void)
{
	for (int at = 0; at < PAGE_SIZE; at++)
		expected[at] = at % 64 == 63 ? '\n' : 'a' + (at * 7 + at / 64) % 26;
}

static void prepare(void)
{
	make_expected();
	connection = connect_to_server(VARIABLE);
}

static void get_page(bool is_last)
{
	http_get(connection, "/page.html", is_last ? "Connection: close\r\n" : "", &answer);
	if (answer.size != PAGE_SIZE)
		fail("the page has %zu bytes, not %d", answer.size, PAGE_SIZE);
	if (memcmp(answer.body, expected, PAGE_SIZE))
		fail("the page is not the one that was to be served");
}

static void get_pages(uint64_t n)
{
	for (; n; n--)
		get_page(false);
}

static void connect_and_get(uint64_t n)
{
	for (; n; n--) {
		get_page(true);
		close_connection(connection);
		connection = connect_to_server(VARIABLE);
	}
}

WORKLOAD(page, .name = "app:web.page", .summary = "get a page of 5,000 bytes over a connection that stays",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 2, .syscalls_note = "the client's",
	 .source = "Weighbridge", .needs = "web", .prepare = prepare, .run = get_pages, .add_usage = add_server_usage);

WORKLOAD(page_connect, .name = "app:web.page-connect", .summary = "connect, get a page of 5,000 bytes, close",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 7, .syscalls_note = "the client's",
	 .source = "Weighbridge", .needs = "web", .prepare = prepare, .run = connect_and_get,
	 .add_usage = add_server_usage);
