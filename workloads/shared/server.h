/* A server that somebody else started, which a workload asks over a Unix socket or by TCP. */
#ifndef SERVER_H
#define SERVER_H

#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

/* Connects to the server that the environment variable `variable` names, as KIND:ADDRESS: the path of a
 * socket, or HOST:PORT in numbers. */
int connect_to_server(const char *variable);
/* -1 where it cannot (errno); neither side waits longer than that for the other. */
int try_to_connect(const char *variable, int silence_s);
/* Why that failed. */
const char *why_not_connected(int silence_s);
const char *server_address(const char *variable);

/* The KIND of that. */
const char *server_kind(const char *variable);

/* All of it, or fails: also where the server closes the connection, or says nothing for half a minute. What
 * comes is buffered, for one connection at a time. */
void send_all(int fd, const void *bytes, size_t size);
void receive_all(int fd, void *bytes, size_t size);

/* For workload.add_usage: the CPU time of the servers whose processes WEIGH_SERVERS names, and of their
 * children.
 * Of several copies the first adds it, as all ask the same. */
void add_server_usage(struct rusage *total);

/* The process that the first of WEIGH_SERVERS has started, which is the server where that one is only there
 * to start it again; 0 where there is none. */
pid_t server_below(void);

#endif
