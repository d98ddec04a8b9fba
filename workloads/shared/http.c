#include "http.h"
#include "server.h"
#include "workload.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define VARIABLE "WEIGH_WEB"
#define HOST "WEIGH_WEB_HOST"
/* As crates/weigh-fixture/src/web_page.rs has it: a line of two bytes for each request. */
#define STRANGERS "/strangers"

enum { LONGEST_LINE = 4096, SILENCE_S = 10, PAUSE_US = 100000, BYTES_PER_STRANGER = 2 };

/* The connection, and what was received and not yet asked for. */
static struct {
	int fd;
	bool ends; /* the server says that it closes it after this answer */
	size_t from, to;
	char bytes[16384];
} http = {.fd = -1};

static bool is_silent; /* the last request had no answer */
static uint64_t strangers_before;
static struct http_answer strangers_log;

static enum http_fault tell(struct http_answer *answer, enum http_fault fault, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static enum http_fault tell(struct http_answer *answer, enum http_fault fault, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(answer->problem, sizeof answer->problem, format, arguments);
	va_end(arguments);
	return fault;
}

void http_close(void)
{
	if (http.fd >= 0)
		close(http.fd);
	http.fd = -1;
	http.from = http.to = 0;
}

/* More of what the server sends. */
static enum http_fault fill(struct http_answer *answer)
{
	ssize_t received;

	/* Whoever stood still meanwhile did not wait in vain: signal(7), SO_RCVTIMEO. */
	do
		received = recv(http.fd, http.bytes, sizeof http.bytes, 0);
	while (received < 0 && errno == EINTR);
	if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return tell(answer, NO_ANSWER, "the server did not answer within %d s", SILENCE_S);
	if (received < 0)
		return tell(answer, CLOSED, "cannot receive from the server: %s", strerror(errno));
	if (received == 0)
		return tell(answer, CLOSED, "the server closed the connection");
	http.from = 0;
	http.to = received;
	return NO_FAULT;
}

static enum http_fault take(struct http_answer *answer, char *bytes, size_t size)
{
	while (size) {
		if (http.from == http.to) {
			enum http_fault fault = fill(answer);
			if (fault != NO_FAULT)
				return fault;
		}
		size_t part = http.to - http.from < size ? http.to - http.from : size;
		memcpy(bytes, http.bytes + http.from, part);
		http.from += part;
		bytes += part;
		size -= part;
	}
	return NO_FAULT;
}

/* Without the CR LF that ends it. */
static enum http_fault take_line(struct http_answer *answer, char line[LONGEST_LINE])
{
	size_t at = 0;

	do {
		if (at == LONGEST_LINE - 1)
			return tell(answer, MALFORMED, "the server sent a line of more than %d bytes", LONGEST_LINE - 1);
		enum http_fault fault = take(answer, line + at, 1);
		if (fault != NO_FAULT)
			return fault;
	} while (line[at++] != '\n');
	if (at < 2 || line[at - 2] != '\r')
		return tell(answer, MALFORMED, "the server sent a line that ends without a carriage return");
	line[at - 2] = 0;
	return NO_FAULT;
}

/* What stands behind a header's name, or NULL. */
static const char *value_of(const char *line, const char *name)
{
	size_t length = strlen(name);

	if (strncasecmp(line, name, length) || line[length] != ':')
		return NULL;
	return line + length + 1 + strspn(line + length + 1, " \t");
}

/* How the body comes. */
struct framing {
	bool has_size, is_chunked;
	size_t size;
};

static enum http_fault take_header(struct http_answer *answer, const char *line, struct framing *framing)
{
	const char *value;

	if ((value = value_of(line, "Content-Length"))) {
		framing->size = strtoul(value, NULL, 10);
		framing->has_size = true;
	} else if ((value = value_of(line, "Transfer-Encoding"))) {
		framing->is_chunked = strcasecmp(value, "chunked") == 0;
	} else if ((value = value_of(line, "Connection"))) {
		http.ends = strcasecmp(value, "close") == 0;
	} else if ((value = value_of(line, "Set-Cookie"))) {
		size_t length = strcspn(value, ";");
		if (length >= sizeof answer->cookie)
			return tell(answer, MALFORMED, "the server sent a cookie of %zu bytes", length);
		memcpy(answer->cookie, value, length);
		answer->cookie[length] = 0;
	}
	return NO_FAULT;
}

/* The next part of the body, behind what there is of it. */
static enum http_fault take_part(struct http_answer *answer, size_t size)
{
	if (size >= sizeof answer->body - answer->size)
		return tell(answer, MALFORMED, "the page has more than %zu bytes", sizeof answer->body - 1);
	enum http_fault fault = take(answer, answer->body + answer->size, size);
	answer->size += size;
	return fault;
}

/* Apache sends what another program makes in pieces, each behind its size. */
static enum http_fault take_chunks(struct http_answer *answer)
{
	char line[LONGEST_LINE], *end;
	enum http_fault fault;
	size_t size;

	do {
		if ((fault = take_line(answer, line)) != NO_FAULT)
			return fault;
		size = strtoul(line, &end, 16);
		if (end == line || (*end && *end != ';'))
			return tell(answer, MALFORMED, "the server sent \"%.40s\" as the size of a chunk", line);
		if ((fault = take_part(answer, size)) != NO_FAULT)
			return fault;
		if ((fault = take_line(answer, line)) != NO_FAULT)
			return fault;
		if (*line)
			return tell(answer, MALFORMED, "the server sent a chunk that is longer than its announced size");
	} while (size);
	return NO_FAULT;
}

static const char *host(void)
{
	static const char *host;

	if (!host)
		host = getenv(HOST);
	if (!host)
		host = "weigh";
	return host;
}

static enum http_fault ask(const char *target, const char *headers, struct http_answer *answer)
{
	char line[LONGEST_LINE];
	int length = snprintf(line, sizeof line, "GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", target,
			      host(), headers);
	struct framing framing = {0};
	enum http_fault fault;

	if (length < 0 || (size_t)length >= sizeof line)
		fail("a request is too long");
	if (send(http.fd, line, length, MSG_NOSIGNAL) != length)
		return tell(answer, CLOSED, "cannot send to the server: %s", strerror(errno));
	if ((fault = take_line(answer, line)) != NO_FAULT)
		return fault;
	if (strncmp(line, "HTTP/1.1 200 ", 13))
		return tell(answer, OTHER_STATUS, "the server answered \"%.80s\", not 200", line);
	do {
		if ((fault = take_line(answer, line)) != NO_FAULT ||
		    (fault = take_header(answer, line, &framing)) != NO_FAULT)
			return fault;
	} while (*line);
	if (framing.is_chunked)
		return take_chunks(answer);
	if (!framing.has_size)
		return tell(answer, MALFORMED, "the server did not report the length of the page");
	return take_part(answer, framing.size);
}

enum http_fault http_get(const char *target, const char *headers, struct http_answer *answer)
{
	enum http_fault fault;

	answer->size = 0;
	answer->cookie[0] = answer->problem[0] = 0;
	http.ends = false;
	if (http.fd < 0)
		http.fd = try_to_connect(VARIABLE, SILENCE_S);
	is_silent = http.fd < 0;
	if (http.fd < 0)
		return tell(answer, errno == EAGAIN || errno == EINPROGRESS ? NO_ANSWER : NO_CONNECTION,
			    "cannot connect to the server at %s: %s", server_address(VARIABLE),
			    why_not_connected(SILENCE_S));
	fault = ask(target, headers, answer);
	is_silent = fault == NO_ANSWER;
	answer->body[answer->size < sizeof answer->body ? answer->size : 0] = 0;
	if (fault == NO_FAULT && http.from != http.to)
		fault = tell(answer, MALFORMED, "the server sent %zu bytes too many", http.to - http.from);
	if (fault != NO_FAULT || http.ends)
		http_close();
	return fault;
}

void wait_after(enum http_fault fault, const struct http_answer *answer)
{
	if (fault != NO_CONNECTION && fault != NO_ANSWER)
		return;
	if (!endures())
		fail("%s", answer->problem);
	usleep(PAUSE_US);
}

/* How many there were since the server began. */
static enum http_fault ask_for_strangers(uint64_t *strangers)
{
	/* The server may have closed one that was idle for long. */
	http_close();
	enum http_fault fault = http_get(STRANGERS, "Connection: close\r\n", &strangers_log);

	*strangers = strangers_log.size / BYTES_PER_STRANGER;
	return fault;
}

/* Not in a workload that endures wrong answers: it counts all since the server's start, so that it need not
 * wait here for a server that hangs. */
void remember_strangers(void)
{
	if (copy_number > 0 || endures() || !getenv(HOST))
		return;
	if (ask_for_strangers(&strangers_before) != NO_FAULT)
		fail("the server does not report requests of other clients: %s", strangers_log.problem);
}

void count_strangers(void)
{
	uint64_t strangers;

	if (copy_number > 0 || is_silent || !getenv(HOST))
		return;
	enum http_fault fault = ask_for_strangers(&strangers);
	if (fault != NO_FAULT) {
		count_wrong(fault, strangers_log.problem);
		return;
	}
	for (; strangers > strangers_before; strangers--)
		count_wrong(STRANGER, "a request named a different host than weigh's clients");
}
