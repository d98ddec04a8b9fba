/* The client's side of PostgreSQL's protocol 3.0, as far as it is needed: "Frontend/Backend Protocol" in the
 * PostgreSQL documentation. No password, simple queries, one result each. */
#include "database.h"
#include "server.h"
#include "workload.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { LARGEST = 65536, VERSION_3 = 3 << 16 };

#define DUPLICATE_KEY "23505" /* SQLSTATE unique_violation */

static char message[LARGEST + 1];
static uint32_t message_size;
static int fd;

/* "could not write init file" is all that PostgreSQL says of a full disk. */
static const char *about_room(void)
{
	struct statvfs room;

	if (statvfs(".", &room) || room.f_bavail * room.f_frsize >= 1 << 20)
		return "";
	return "; no space is left in the directory of the sample";
}

static char receive_message(void)
{
	unsigned char head[5];

	receive_all(fd, head, sizeof head);
	message_size = (uint32_t)head[1] << 24 | head[2] << 16 | head[3] << 8 | head[4];
	if (message_size < 4 || message_size - 4 > LARGEST)
		fail("the server sent a message of %u bytes", message_size);
	message_size -= 4;
	receive_all(fd, message, message_size);
	message[message_size] = 0;
	return head[0];
}

/* A field of an error message, each of which is a letter and a text. */
static const char *error_field(char wanted)
{
	for (uint32_t at = 0; at < message_size && message[at]; at += strlen(message + at) + 1)
		if (message[at] == wanted)
			return message + at + 1;
	return "";
}

static void log_in(const char *variable)
{
	static const char parameters[] = "user\0bench\0database\0postgres\0";
	struct {
		uint32_t size, version;
		char parameters[sizeof parameters];
	} __attribute__((packed)) start = {htonl(8 + sizeof parameters), htonl(VERSION_3), {0}};

	fd = connect_to_server(variable);
	memcpy(start.parameters, parameters, sizeof parameters);
	send_all(fd, &start, sizeof start);
	for (char kind; (kind = receive_message()) != 'Z';) {
		if (kind == 'E')
			fail("the server refused the request: %s%s", error_field('M'), about_room());
		/* AuthenticationOk is a 0. */
		if (kind == 'R' && (message_size != 4 || memcmp(message, "\0\0\0", 4)))
			fail("the server wants a password");
	}
}

/* The number at *at, big endian, which moves behind it. */
static uint32_t take_number(uint32_t *at, int bytes)
{
	uint32_t value = 0;

	if (message_size - *at < (uint32_t)bytes)
		fail("the server sent a message that ends too early");
	for (; bytes; bytes--)
		value = value << 8 | (unsigned char)message[(*at)++];
	return value;
}

static void take_row(struct answer *answer)
{
	uint32_t at = 0, columns = take_number(&at, 2);

	for (uint32_t column = 0; column < columns; column++) {
		uint32_t size = take_number(&at, 4);
		if (size == UINT32_MAX) /* NULL */
			size = 0;
		if (size > message_size - at)
			fail("the server sent a message that ends too early");
		keep_field(answer, column, message + at, size);
		at += size;
	}
	answer->rows++;
}

static void ask(const char *statement, struct answer *answer)
{
	size_t length = strlen(statement) + 1;
	char query[5 + 512] = {'Q'};
	uint32_t size = htonl(4 + length);

	memcpy(query + 1, &size, sizeof size);
	memcpy(query + 5, statement, length);
	send_all(fd, query, 5 + length);
	for (char kind; (kind = receive_message()) != 'Z';) {
		switch (kind) {
		case 'D': take_row(answer); break;
		case 'C': { /* as in INSERT 0 1 */
			const char *count = strrchr(message, ' ');
			answer->affected = count ? strtoull(count + 1, NULL, 10) : 0;
			break;
		}
		case 'E':
			if (strcmp(error_field('C'), DUPLICATE_KEY))
				fail("the server refused the request: %s%s", error_field('M'), about_room());
			answer->is_duplicate = true;
			break;
		default: break; /* descriptions, notices */
		}
	}
}

static void disconnect(void)
{
	close(fd);
}

const struct protocol postgres_protocol = {
	.kind = "postgres",
	.connect = log_in,
	.disconnect = disconnect,
	.ask = ask,
	.is_durable = "SELECT (current_setting('fsync') = 'on'"
		      " AND current_setting('synchronous_commit') = 'on')::int",
	.sequence = "generate_series(0::bigint, %llu) AS seq"};
