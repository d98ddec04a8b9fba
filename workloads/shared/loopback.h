/* Sockets on 127.0.0.1, with ports that the kernel chooses. */
#ifndef LOOPBACK_H
#define LOOPBACK_H

#include <netinet/in.h>

/* A connection that is reset when it is closed is not left in TIME_WAIT, where thousands of them would
 * burden the samples that follow. What a socket accepts is like itself in this. */
void reset_when_closed(int fd);

/* A listening TCP socket and its address; what it accepts is reset when closed. */
int listen_on_loopback(struct sockaddr_in *address);

/* Two TCP sockets that are connected to each other, and reset when closed. */
void connect_tcp_pair(int pair[2]);

/* Two UDP sockets that hear only each other. */
void connect_udp_pair(int pair[2]);

#endif
