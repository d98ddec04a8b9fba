/* A store of keys and values in memory, in the text protocol of Redis and Valkey (RESP). */
#include "server.h"
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VARIABLE "WEIGH_STORE"

enum { KEYS = 1000, VALUE_SIZE = 100 };

static int connection;
static uint64_t versions[KEYS], done;

static void value_of(char value[VALUE_SIZE + 1], unsigned key, uint64_t version)
{
	memset(value, '.', VALUE_SIZE);
	value[snprintf(value, VALUE_SIZE, "key %u, version %llu ", key, (unsigned long long)version)] = '.';
	value[VALUE_SIZE] = 0;
}

/* Line by line: what says that there is no such key is shorter. */
static void expect(const char *answer)
{
	char received[VALUE_SIZE + 32];
	size_t size = 0;

	for (size_t at = 0; answer[at]; at++) {
		receive_all(connection, received + size, 1);
		if (received[size++] != answer[at])
			break;
	}
	if (strncmp(received, answer, size))
		fail("the server answered \"%.*s\", where \"%s\" was expected", (int)size, received, answer);
}

static void set(unsigned key)
{
	char value[VALUE_SIZE + 1], name[32], command[256];

	value_of(value, key, ++versions[key]);
	snprintf(name, sizeof name, "%d:%u", copy_number, key);
	int size = snprintf(command, sizeof command, "*3\r\n$3\r\nSET\r\n$%zu\r\n%s\r\n$%d\r\n%s\r\n",
			    strlen(name), name, VALUE_SIZE, value);
	send_all(connection, command, size);
	expect("+OK\r\n");
}

static void get(unsigned key)
{
	char value[VALUE_SIZE + 1], name[32], command[128], answer[VALUE_SIZE + 16];

	value_of(value, key, versions[key]);
	snprintf(name, sizeof name, "%d:%u", copy_number, key);
	int size = snprintf(command, sizeof command, "*2\r\n$3\r\nGET\r\n$%zu\r\n%s\r\n", strlen(name), name);
	send_all(connection, command, size);
	snprintf(answer, sizeof answer, "$%d\r\n%s\r\n", VALUE_SIZE, value);
	expect(answer);
}

static void prepare(void)
{
	connection = connect_to_server(VARIABLE);
	for (unsigned key = 0; key < KEYS; key++)
		set(key);
}

/* One in ten sets. */
static void run(uint64_t n)
{
	for (; n; n--, done++) {
		unsigned key = done * 797 % KEYS;
		if (done % 10 == 0)
			set(key);
		else
			get(key);
	}
}

/* All of them, as they were last set. */
static void check(uint64_t n)
{
	(void)n;
	for (unsigned key = 0; key < KEYS; key++)
		get(key);
}

WORKLOAD(values, .name = "app:kv.get-set", .summary = "get a value of 100 bytes, or set it, one time in ten",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 3, .syscalls_note = "the client's",
	 .source = "Weighbridge", .needs = "store", .prepare = prepare, .run = run, .check = check,
	 .add_usage = add_server_usage);
