/* A page of a web server. Every byte of it is compared. */
#include "http.h"
#include "server.h"
#include "workload.h"

#include <stdio.h>
#include <string.h>

enum { PAGE_SIZE = 5000 };

static const char *const faults[] = {HTTP_FAULT_NAMES, NULL};
static char expected[PAGE_SIZE];
static struct http_answer answer;

/* What crates/weigh-fixture/src/web_page.rs writes. */
static void prepare(void)
{
	for (int at = 0; at < PAGE_SIZE; at++)
		expected[at] = at % 64 == 63 ? '\n' : 'a' + (at * 7 + at / 64) % 26;
	remember_strangers();
}

static void check(uint64_t n)
{
	(void)n;
	count_strangers();
}

static void get_page(bool is_last)
{
	enum http_fault fault = http_get("/page.html", is_last ? "Connection: close\r\n" : "", &answer);

	if (fault == NO_FAULT && answer.size == PAGE_SIZE && memcmp(answer.body, expected, PAGE_SIZE) == 0)
		return;
	if (fault == NO_FAULT) {
		fault = OTHER_BYTES;
		snprintf(answer.problem, sizeof answer.problem, "a page of %zu bytes: \"%.60s\"", answer.size,
			 answer.body);
	}
	count_wrong(fault, answer.problem);
	wait_after(fault, &answer);
}

static void get_pages(uint64_t n)
{
	for (; n && !time_is_over(); n--)
		get_page(false);
	leave_undone(n);
}

static void connect_and_get(uint64_t n)
{
	for (; n && !time_is_over(); n--) {
		get_page(true);
		http_close();
	}
	leave_undone(n);
}

WORKLOAD(page, .name = "app:web.page", .summary = "get a page of 5,000 bytes over a connection that stays",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 2, .syscalls_note = "the client's",
	 .source = "Weighbridge", .needs = "web", .faults = faults, .prepare = prepare, .run = get_pages,
	 .check = check, .add_usage = add_server_usage);

WORKLOAD(page_connect, .name = "app:web.page-connect", .summary = "connect, get a page of 5,000 bytes, close",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 8, .syscalls_note = "the client's",
	 .source = "Weighbridge", .needs = "web", .faults = faults, .prepare = prepare, .run = connect_and_get,
	 .check = check, .add_usage = add_server_usage);
