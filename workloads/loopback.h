/* Sockets on 127.0.0.1, with ports that the kernel chooses. */
#ifndef LOOPBACK_H
#define LOOPBACK_H

#include <netinet/in.h>

/* A listening TCP socket and its address. What it accepts is reset when it is closed: no connection of ours
 * is left in TIME_WAIT, where thousands of them would burden the samples that follow. */
int listen_on_loopback(struct sockaddr_in *address);

/* Two TCP sockets that are connected to each other. */
void connect_tcp_pair(int pair[2]);

/* Two UDP sockets that hear only each other. */
void connect_udp_pair(int pair[2]);

#endif
