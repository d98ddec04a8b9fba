/* The client's side of the protocol of MariaDB and MySQL, as far as it is needed: "Client/Server Protocol" in
 * the MariaDB Knowledge Base. No password, text statements, one result each. */
#include "database.h"
#include "server.h"
#include "workload.h"

#include <string.h>
#include <unistd.h>

enum { LARGEST = 65536 };

/* Capabilities. */
enum {
	LONG_PASSWORD = 1,
	CONNECT_WITH_DB = 8,
	PROTOCOL_41 = 0x200,
	SECURE_CONNECTION = 0x8000,
	PLUGIN_AUTH = 0x80000
};

/* With all connections taken, one more is for those who administer: they take turns. */
enum { TOO_MANY_CONNECTIONS = 1040, MOST_TRIES = 1000, PAUSE_US = 10000 };

enum { QUERY = 3, OK = 0, END = 0xfe, ERROR = 0xff, NULL_FIELD = 0xfb, UTF8 = 33, DUPLICATE_ENTRY = 1062 };

static unsigned char packet[LARGEST + 1];
static size_t packet_size;
static unsigned char sequence;
static int fd;

static void receive_packet(void)
{
	unsigned char head[4];

	receive_all(fd, head, sizeof head);
	packet_size = head[0] | head[1] << 8 | head[2] << 16;
	if (packet_size == 0 || packet_size > LARGEST)
		fail("the server sent a packet of %zu bytes", packet_size);
	receive_all(fd, packet, packet_size);
	packet[packet_size] = 0;
	sequence = head[3] + 1;
}

static void send_packet(const void *bytes, size_t size)
{
	unsigned char all[4 + 1024] = {size & 0xff, size >> 8 & 0xff, size >> 16 & 0xff, sequence};

	if (size > sizeof all - 4)
		fail("a packet of %zu bytes is too long", size);
	memcpy(all + 4, bytes, size);
	send_all(fd, all, 4 + size);
}

static unsigned error_code(void)
{
	return packet[1] | packet[2] << 8;
}

static _Noreturn void fail_with_error(void)
{
	const char *message = (const char *)packet + (packet[3] == '#' ? 9 : 3);

	fail("the server refused the request: %s (error %u)", packet_size > 9 ? message : "", error_code());
}

/* Whether there was a connection to be had. */
static bool log_in(void)
{
	static const char user[] = "root", database[] = "weigh", plugin[] = "mysql_native_password";
	const uint32_t capabilities =
		LONG_PASSWORD | CONNECT_WITH_DB | PROTOCOL_41 | SECURE_CONNECTION | PLUGIN_AUTH;
	unsigned char answer[128] = {0}, *at = answer;

	receive_packet();
	if (packet[0] == ERROR && error_code() == TOO_MANY_CONNECTIONS)
		return false;
	if (packet[0] == ERROR)
		fail_with_error();
	if (packet[0] != 10)
		fail("the server speaks version %d of the protocol, not 10", packet[0]);
	for (int byte = 0; byte < 4; byte++)
		*at++ = capabilities >> 8 * byte & 0xff;
	*at++ = LARGEST & 0xff;
	*at++ = LARGEST >> 8 & 0xff;
	*at++ = LARGEST >> 16 & 0xff;
	*at++ = 0;
	*at++ = UTF8;
	at += 23;
	memcpy(at, user, sizeof user);
	at += sizeof user;
	*at++ = 0; /* the length of the password's hash */
	memcpy(at, database, sizeof database);
	at += sizeof database;
	memcpy(at, plugin, sizeof plugin);
	at += sizeof plugin;
	send_packet(answer, at - answer);
	receive_packet();
	if (packet[0] == END) {
		/* Another plugin; without a password an empty packet says enough to any of them. */
		send_packet("", 0);
		receive_packet();
	}
	if (packet[0] == ERROR && error_code() == TOO_MANY_CONNECTIONS)
		return false;
	if (packet[0] != OK)
		fail_with_error();
	return true;
}

/* A length-encoded integer at *at, which moves behind it. */
static uint64_t take_length(size_t *at)
{
	if (*at >= packet_size)
		fail("the server sent a packet that ends too early");
	unsigned char first = packet[(*at)++];
	int bytes = first == 0xfc ? 2 : first == 0xfd ? 3 : first == 0xfe ? 8 : 0;
	uint64_t value = bytes ? 0 : first;

	if (*at + bytes > packet_size)
		fail("the server sent a packet that ends too early");
	for (int i = 0; i < bytes; i++)
		value |= (uint64_t)packet[(*at)++] << 8 * i;
	return value;
}

static bool is_end(void)
{
	return packet[0] == END && packet_size < 9;
}

static void take_row(struct answer *answer, uint64_t columns)
{
	size_t at = 0;

	for (uint64_t column = 0; column < columns; column++) {
		if (at < packet_size && packet[at] == NULL_FIELD) {
			at++;
			keep_field(answer, column, "", 0);
			continue;
		}
		uint64_t size = take_length(&at);
		if (size > packet_size - at)
			fail("the server sent a packet that ends too early");
		keep_field(answer, column, packet + at, size);
		at += size;
	}
	answer->rows++;
}

static void ask(const char *statement, struct answer *answer)
{
	char query[1 + 512] = {QUERY};
	size_t length = strlen(statement), at = 1;

	memcpy(query + 1, statement, length);
	sequence = 0;
	send_packet(query, 1 + length);
	receive_packet();
	if (packet[0] == ERROR) {
		if (error_code() != DUPLICATE_ENTRY)
			fail_with_error();
		answer->is_duplicate = true;
		return;
	}
	if (packet[0] == OK) {
		answer->affected = take_length(&at);
		return;
	}
	at = 0;
	uint64_t columns = take_length(&at);
	do
		receive_packet();
	while (!is_end());
	for (receive_packet(); !is_end(); receive_packet()) {
		if (packet[0] == ERROR)
			fail_with_error();
		take_row(answer, columns);
	}
}

/* As the standard has it, and the others do: || joins texts. */
static void connect_and_log_in(const char *variable)
{
	struct answer nothing = {0};

	for (int tries = 1;; tries++) {
		fd = connect_to_server(variable);
		if (log_in())
			break;
		close(fd);
		if (tries == MOST_TRIES)
			fail("the server has too many connections");
		usleep(PAUSE_US);
	}
	ask("SET sql_mode = CONCAT(@@sql_mode, ',PIPES_AS_CONCAT')", &nothing);
}

static void disconnect(void)
{
	close(fd);
}

const struct protocol mariadb_protocol = {
	.kind = "mariadb",
	.connect = connect_and_log_in,
	.disconnect = disconnect,
	.ask = ask,
	.is_durable = "SELECT @@innodb_flush_log_at_trx_commit = 1",
	.sequence = "seq_0_to_%llu"};
