/* The client's side of HTTP/1.1 (RFC 9112), as far as it is needed: GET over a connection that stays. What
 * goes wrong with a page is told and ends nothing: how many pages are wrong, and in which way, is asked. */
#ifndef HTTP_H
#define HTTP_H

#include <stdbool.h>
#include <stddef.h>

/* What is wrong with an answer; a workload has more. */
enum http_fault {
	NO_CONNECTION,
	CLOSED,
	NO_ANSWER,
	OTHER_STATUS,
	MALFORMED,
	OTHER_BYTES,
	STRANGER,
	HTTP_FAULTS,
	NO_FAULT = -1
};

/* Their names, for workload.faults. */
#define HTTP_FAULT_NAMES                                                                          \
	"no connection", "connection closed", "no answer in 10 s", "another status than 200", \
		"a malformed answer", "other bytes", "a request that somebody else made"

struct http_answer {
	char body[16384];
	size_t size;
	char cookie[64];   /* NAME=VALUE of Set-Cookie; empty where there is none */
	char problem[200]; /* where there is a fault, what it is */
};

/* Asks the server that the environment variable WEIGH_WEB names, with these further lines, each of which ends
 * with CR LF. It connects where there is no connection; after a fault there is none. */
enum http_fault http_get(const char *target, const char *headers, struct http_answer *answer);
void http_close(void);

/* Call remember_strangers() in prepare() and count_strangers() in check(): the second counts a STRANGER for
 * each request that other clients sent to the server since the first. Our servers log each request that does
 * not name the host in WEIGH_WEB_HOST, which nobody else knows. So the measured requests are not logged. */
void remember_strangers(void);
void count_strangers(void);

/* After one of these faults: a server that is not there, or does not answer, is no server to measure, unless
 * that is what is looked for. */
void wait_after(enum http_fault fault, const struct http_answer *answer);

#endif
