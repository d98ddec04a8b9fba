/* The client's side of HTTP/1.1 (RFC 9112), as far as it is needed: GET over a connection that stays, and a
 * body of a length that is told. */
#ifndef HTTP_H
#define HTTP_H

#include <stdbool.h>
#include <stddef.h>

struct http_answer {
	char body[16384];
	size_t size;
	char cookie[64]; /* NAME=VALUE of Set-Cookie; empty where there is none */
};

/* Asks with these further lines, each of which ends with CR LF, and fails unless the answer is 200 and
 * whole. */
void http_get(int fd, const char *target, const char *headers, struct http_answer *answer);

#endif
