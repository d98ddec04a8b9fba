#include "http.h"
#include "server.h"
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { LONGEST_LINE = 4096 };

/* Without the CR LF that ends it. */
static void receive_line(int fd, char line[LONGEST_LINE])
{
	size_t at = 0;

	do {
		if (at == LONGEST_LINE - 1)
			fail("the server sent a line of more than %d bytes", LONGEST_LINE - 1);
		receive_all(fd, line + at, 1);
	} while (line[at++] != '\n');
	if (at < 2 || line[at - 2] != '\r')
		fail("the server sent a line that ends without a carriage return");
	line[at - 2] = 0;
}

/* What stands behind a header's name, or NULL. */
static const char *value_of(const char *line, const char *name)
{
	size_t length = strlen(name);

	if (strncasecmp(line, name, length) || line[length] != ':')
		return NULL;
	return line + length + 1 + strspn(line + length + 1, " \t");
}

static void take_cookie(const char *value, struct http_answer *answer)
{
	size_t length = strcspn(value, ";");

	if (length >= sizeof answer->cookie)
		fail("the server sent a cookie of %zu bytes", length);
	memcpy(answer->cookie, value, length);
	answer->cookie[length] = 0;
}

void http_get(int fd, const char *target, const char *headers, struct http_answer *answer)
{
	char line[LONGEST_LINE];
	int length = snprintf(line, sizeof line, "GET %s HTTP/1.1\r\nHost: weigh\r\n%s\r\n", target, headers);
	bool has_size = false;

	if (length < 0 || (size_t)length >= sizeof line)
		fail("a request is too long");
	send_all(fd, line, length);
	answer->cookie[0] = 0;
	receive_line(fd, line);
	if (strncmp(line, "HTTP/1.1 200 ", 13))
		fail("the server answered \"%s\", not 200", line);
	do {
		const char *value;
		receive_line(fd, line);
		if ((value = value_of(line, "Content-Length"))) {
			answer->size = strtoul(value, NULL, 10);
			has_size = true;
		} else if ((value = value_of(line, "Set-Cookie"))) {
			take_cookie(value, answer);
		}
	} while (*line);
	if (!has_size || answer->size >= sizeof answer->body)
		fail("the server did not tell how long the page is, or it is too long");
	receive_all(fd, answer->body, answer->size);
	answer->body[answer->size] = 0;
}
