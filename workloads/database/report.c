/* Decision support: one statement joins, filters and groups many rows, and sums them, after TPC-D's (1995)
 * queries. The client knows each row, so it checks each sum. */
#include "database.h"
#include "server.h"
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SALES = 20000, CUSTOMERS = 1000, REGIONS = 5, DAYS = 365, QUARTER = 90, MOST = 997 };

static char sales[32], customers[32];
static uint64_t done;

/* The content of a row follows from its number; the server computes it by the same formulas. */
static unsigned customer_of(unsigned sale)
{
	return (uint64_t)sale * 7919 % CUSTOMERS;
}

static void expect_rows(const char *what, struct answer made, unsigned rows)
{
	if (made.affected != rows)
		fail("%u %s were to be made, and %llu were", rows, what, (unsigned long long)made.affected);
}

static void prepare(void)
{
	connect_to_database();
	snprintf(sales, sizeof sales, "sales_%d", copy_number);
	snprintf(customers, sizeof customers, "customers_%d", copy_number);
	ask_database("DROP TABLE IF EXISTS %s", sales);
	ask_database("DROP TABLE IF EXISTS %s", customers);
	ask_database("CREATE TABLE %s (id INTEGER PRIMARY KEY, region INTEGER)", customers);
	ask_database("CREATE TABLE %s (id INTEGER PRIMARY KEY, customer INTEGER, day INTEGER, amount INTEGER)",
		     sales);
	expect_rows("customers",
		    ask_database("INSERT INTO %s SELECT seq, seq %% %d FROM %s", customers, REGIONS,
				 sequence_to(CUSTOMERS - 1)),
		    CUSTOMERS);
	expect_rows("sales",
		    ask_database("INSERT INTO %s SELECT seq, seq * 7919 %% %d, seq %% %d, seq %% %d + 1 FROM %s",
				 sales, CUSTOMERS, DAYS, MOST, sequence_to(SALES - 1)),
		    SALES);
}

/* Sales of a quarter that begins on this day, and the amount of the region with the largest amount. */
static void expected(unsigned first, uint64_t *count, uint64_t *largest)
{
	uint64_t amounts[REGIONS] = {0};

	*count = *largest = 0;
	for (unsigned sale = 0; sale < SALES; sale++) {
		unsigned day = sale % DAYS;

		if (day < first || day >= first + QUARTER)
			continue;
		++*count;
		amounts[customer_of(sale) % REGIONS] += sale % MOST + 1;
	}
	for (unsigned region = 0; region < REGIONS; region++)
		if (amounts[region] > *largest)
			*largest = amounts[region];
}

static void run(uint64_t n)
{
	static uint64_t counts[4], largest[4];

	for (; n; n--) {
		unsigned quarter = done++ % 4;
		struct answer found = ask_database(
			"SELECT SUM(sold), MAX(total) FROM (SELECT c.region, COUNT(*) AS sold, SUM(s.amount) AS total "
			"FROM %s s JOIN %s c ON c.id = s.customer WHERE s.day >= %u AND s.day < %u GROUP BY c.region) r",
			sales, customers, quarter * QUARTER, (quarter + 1) * QUARTER);

		if (!counts[quarter])
			expected(quarter * QUARTER, &counts[quarter], &largest[quarter]);
		if (found.rows != 1 || strtoull(found.fields[0], NULL, 10) != counts[quarter] ||
		    strtoull(found.fields[1], NULL, 10) != largest[quarter])
			fail("quarter %u has %s sales and %s as the largest amount, not %llu and %llu", quarter,
			     found.fields[0], found.fields[1], (unsigned long long)counts[quarter],
			     (unsigned long long)largest[quarter]);
	}
}

WORKLOAD(report, .name = "app:db.report",
	 .summary = "decision support: join 20,000 rows with 1,000, filter a quarter, group and sum", .unit = "ops/s",
	 .units_per_op = 1, .syscalls_per_op = 3, .syscalls_note = "the client's", .source = "after TPC-D (1995)",
	 .needs = "database", .prepare = prepare, .run = run, .add_usage = add_server_usage);
