/* COMM of Maly, Gupta and Mynam (1996), and the peers that it talks to: what both sides know. docs/net.md
 * describes what is timed.
 *
 * COMM runs on W_test, a peer on each black box. A connection of TCP between them carries nothing but
 * payload and its acknowledgement; all else goes over a Unix socket of sequenced packets, so that no
 * message of ours ever crosses the link that is measured. */
#ifndef COMM_H
#define COMM_H

#include "driver.h"

#include <linux/tcp.h> /* that of the C library lacks fields of tcp_info */
#include <netinet/in.h>
#include <sys/socket.h>

enum {
	COMM_VERSION = 1,
	MOST_CONNECTIONS = 64,
	LONGEST_CHUNK = 1 << 20,
	CONGESTION_NAME = 16, /* TCP_CA_NAME_MAX */
	ADDRESS_TEXT = 64,
	PROBLEM_TEXT = 200,
};

/* How a socket of one end is set; 0 and "" leave the kernel's default. */
struct end_settings {
	uint32_t send_buffer, receive_buffer;
	uint32_t no_delay;
	char congestion[CONGESTION_NAME];
};

/* What a peer is asked for, once per connection. */
struct peer_request {
	uint32_t version;
	uint32_t peer_sends;
	uint64_t bytes; /* of a round */
	uint32_t chunk; /* of a write, and of a read at most */
	struct end_settings settings;
	char address[ADDRESS_TEXT]; /* on which it listens */
	uint64_t token;             /* what the connection begins with */
};

enum peer_step {
	LISTENS,   /* on `port` */
	CONNECTED, /* by who knows the token */
	GO,        /* to the peer: a round begins */
	DONE,      /* what the peer saw of the round */
	FAILED,
};

/* What goes over the control socket besides, in both directions. */
struct peer_message {
	enum peer_step step;
	uint32_t port;
	int64_t user_ns, system_ns;
	uint64_t retransmissions;
	char problem[PROBLEM_TEXT];
};

/* comm_data.c: payload, and TCP */
void prepare_payload(void);
/* One write, or one read, is `chunk` bytes at most. They fail where a byte is not as it was sent. */
void send_payload(int data, uint64_t bytes, uint32_t chunk);
void receive_payload(int data, uint64_t bytes, uint32_t chunk);
void send_exactly(int fd, const void *bytes, size_t count);
void receive_exactly(int fd, void *bytes, size_t count);
/* What was written leaves, though it is no full segment. */
void push_out(int data, bool no_delay);
/* Before it connects or listens. */
void set_end(int fd, const struct end_settings *settings);
void set_no_delay(int fd, bool is_on);
struct tcp_info tcp_info_of(int data);
/* A numeric address, IPv4 or IPv6; its length. */
socklen_t read_address(const char *text, uint16_t port, struct sockaddr_storage *address);

/* comm_peer.c: a peer at this socket, and where there is an address a server of FTP besides */
_Noreturn void serve_peers(const char *control, const char *ftp_address, uint16_t ftp_port);

/* comm_beside.c: what else W_test does meanwhile */
struct beside {
	const struct workload *activity; /* NULL for nothing */
	uint64_t units;                  /* that each copy does, and is timed for */
	int copies;
};

/* comm.c */
struct connection {
	bool is_send; /* by W_test */
	uint64_t bytes;
	char address[ADDRESS_TEXT];
	const char *control;
};
struct comm_options {
	uint32_t chunk;
	int count;
	struct connection connections[MOST_CONNECTIONS];
	struct end_settings own, peers;
	struct beside beside;
};
void take_comm(const struct comm_options *options);

/* In memory that all processes of a cell share. */
struct comm_board {
	_Atomic uint32_t gate, ready;
	_Atomic uint32_t transfers_left;  /* of those that are scored */
	_Atomic uint32_t activities_left; /* copies that have not done their units */
	_Atomic uint32_t all_transferred; /* a gate */
	_Atomic uint32_t over;            /* a gate: nothing is scored any more */
	uint64_t opened_ns;
	struct transfer {
		pid_t pid;
		uint64_t elapsed_ns, retransmissions, round_trip_us, least_round_trip_us;
		int64_t user_ns, system_ns, peer_user_ns, peer_system_ns;
	} transfers[MOST_CONNECTIONS];
	uint64_t activity_ns[]; /* of each copy */
};
_Noreturn void be_activity(const struct beside *beside, struct comm_board *board, int number);

#endif
