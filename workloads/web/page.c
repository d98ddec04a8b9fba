/* A page of a web server, over a Unix socket: HTTP/1.1 (RFC 9112). Every byte of it is compared. */
#include "server.h"
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define VARIABLE "WEIGH_WEB"

enum { PAGE_SIZE = 5000, LARGEST_HEAD = 4096 };

static char expected[PAGE_SIZE], page[PAGE_SIZE];
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

/* Without the CR LF that ends it. */
static void receive_line(char *line, size_t size)
{
	size_t at = 0;

	do {
		if (at == size - 1)
			fail("the server sent a line of more than %zu bytes", size - 1);
		receive_all(connection, line + at, 1);
	} while (line[at++] != '\n');
	if (at < 2 || line[at - 2] != '\r')
		fail("the server sent a line that ends without a carriage return");
	line[at - 2] = 0;
}

static void get_page(bool is_last)
{
	static const char stay[] = "GET /page.html HTTP/1.1\r\nHost: weigh\r\n\r\n",
			  leave[] = "GET /page.html HTTP/1.1\r\nHost: weigh\r\nConnection: close\r\n\r\n";
	static const char length[] = "Content-Length:";
	char line[LARGEST_HEAD];
	long size = -1;

	send_all(connection, is_last ? leave : stay, (is_last ? sizeof leave : sizeof stay) - 1);
	receive_line(line, sizeof line);
	if (strncmp(line, "HTTP/1.1 200 ", 13))
		fail("the server answered \"%s\", not 200", line);
	do {
		receive_line(line, sizeof line);
		if (strncasecmp(line, length, sizeof length - 1) == 0)
			size = strtol(line + sizeof length - 1, NULL, 10);
	} while (*line);
	if (size != PAGE_SIZE)
		fail("the page has %ld bytes, not %d", size, PAGE_SIZE);
	receive_all(connection, page, PAGE_SIZE);
	if (memcmp(page, expected, PAGE_SIZE))
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
