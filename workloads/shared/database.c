#include "database.h"
#include "server.h"
#include "workload.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VARIABLE "WEIGH_DATABASE"
#define DURABILITY "WEIGH_DURABILITY"

static const struct protocol *protocol;

/* What the row is called is true of the server, not only of what it was started with. */
static void hold_durability(void)
{
	const char *wanted = getenv(DURABILITY);
	const char *found = ask_number(protocol->is_durable) ? "durable" : "relaxed";

	if (wanted && strcmp(wanted, found))
		fail("the server should be %s, but is %s", wanted, found);
}

void connect_to_database(void)
{
	static const struct protocol *const known[] = {&mariadb_protocol, &postgres_protocol,
						       &sqlite_protocol};
	const char *kind = server_kind(VARIABLE);

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strcmp(known[i]->kind, kind) == 0)
			protocol = known[i];
	if (!protocol)
		fail("%s names an unknown kind of database: %s", VARIABLE, kind);
	protocol->connect(VARIABLE);
	hold_durability();
}

void disconnect_from_database(void)
{
	if (protocol->disconnect)
		protocol->disconnect();
}

const char *sequence_to(uint64_t last)
{
	static char text[256];

	snprintf(text, sizeof text, protocol->sequence, (unsigned long long)last);
	return text;
}

struct answer ask_database(const char *format, ...)
{
	struct answer answer = {0};
	char statement[512];
	va_list arguments;

	va_start(arguments, format);
	int length = vsnprintf(statement, sizeof statement, format, arguments);
	va_end(arguments);
	if (length < 0 || (size_t)length >= sizeof statement)
		fail("a statement is too long");
	protocol->ask(statement, &answer);
	return answer;
}

uint64_t ask_number(const char *statement)
{
	struct answer answer = ask_database("%s", statement);
	char *end;
	uint64_t number = strtoull(answer.fields[0], &end, 10);

	if (answer.rows != 1 || end == answer.fields[0] || *end)
		fail("`%s` returned %llu rows, the last with \"%s\"", statement,
		     (unsigned long long)answer.rows, answer.fields[0]);
	return number;
}

void keep_field(struct answer *answer, unsigned number, const void *text, size_t size)
{
	if (number >= FIELDS || size >= FIELD_SIZE)
		fail("the server sent more than weigh requested: field %u of %zu bytes", number + 1, size);
	memcpy(answer->fields[number], text, size);
	answer->fields[number][size] = 0;
}
