/* A transaction that reads and writes, after TPC-B's (1990): an account gets an amount, and a line of history
 * says so. At the end the balances, the history and what the server acknowledged have to agree. */
#include "database.h"
#include "server.h"
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ACCOUNTS = 10000 };

static char accounts[32], history[32];
static int64_t balances[ACCOUNTS], total;
static uint64_t done;

static void prepare(void)
{
	connect_to_database();
	snprintf(accounts, sizeof accounts, "accounts_%d", copy_number);
	snprintf(history, sizeof history, "history_%d", copy_number);
	ask_database("DROP TABLE IF EXISTS %s", accounts);
	ask_database("DROP TABLE IF EXISTS %s", history);
	ask_database("CREATE TABLE %s (id INTEGER PRIMARY KEY, balance BIGINT)", accounts);
	ask_database("CREATE TABLE %s (account INTEGER, amount BIGINT)", history);
	struct answer made =
		ask_database("INSERT INTO %s SELECT seq, 0 FROM %s", accounts, sequence_to(ACCOUNTS - 1));
	if (made.affected != ACCOUNTS)
		fail("%d accounts were to be made, and %llu were", ACCOUNTS, (unsigned long long)made.affected);
}

static void change_one(const char *what, struct answer answer)
{
	if (answer.affected != 1)
		fail("%s changed %llu rows, not 1", what, (unsigned long long)answer.affected);
}

static void run(uint64_t n)
{
	for (; n; n--) {
		unsigned account = done * 7919 % ACCOUNTS;
		/* Odd, so never 0: MariaDB counts no row as changed whose values stay. */
		long long amount = (long long)(done % 1000) * 2 - 999;

		ask_database("BEGIN");
		change_one("UPDATE", ask_database("UPDATE %s SET balance = balance + %lld WHERE id = %u", accounts,
						  amount, account));
		struct answer found = ask_database("SELECT balance FROM %s WHERE id = %u", accounts, account);
		change_one("INSERT", ask_database("INSERT INTO %s VALUES (%u, %lld)", history, account, amount));
		ask_database("COMMIT");
		balances[account] += amount;
		total += amount;
		done++;
		if (found.rows != 1 || strtoll(found.fields[0], NULL, 10) != balances[account])
			fail("the balance of account %u is %s, not %lld", account, found.fields[0],
			     (long long)balances[account]);
	}
}

static void check(uint64_t n)
{
	struct answer sums = ask_database("SELECT (SELECT SUM(balance) FROM %s), SUM(amount), COUNT(*) FROM %s",
					  accounts, history);
	long long of_accounts = strtoll(sums.fields[0], NULL, 10), of_history = strtoll(sums.fields[1], NULL, 10);

	if (done != n || strtoull(sums.fields[2], NULL, 10) != n || of_accounts != total || of_history != total)
		fail("after %llu transactions of %lld there are %s lines of history of %lld, and accounts of %lld",
		     (unsigned long long)n, (long long)total, sums.fields[2], of_history, of_accounts);
}

WORKLOAD(transaction, .name = "app:db.transaction",
	 .summary = "a transaction: change a balance, read it, add a line of history, commit", .unit = "ops/s",
	 .units_per_op = 1, .syscalls_per_op = 15,
	 .syscalls_note = "the client's: three for each of five statements",
	 .source = "after TPC-B (1990)", .needs = "database", .prepare = prepare, .run = run, .check = check,
	 .add_usage = add_server_usage);
