/* COMM of Maly, Gupta and Mynam (1996), and the peers that it talks to: what both sides know. docs/net.md
 * describes what is timed.
 *
 * COMM runs on W_test, a peer on each black box. A connection of TCP between them carries nothing but
 * payload and its acknowledgement; all other messages go over a Unix socket. On one machine none of them
 * crosses the measured link; with --active, ssh carries them over the same network. */
#ifndef COMM_H
#define COMM_H

#include "driver.h"

#include <linux/tcp.h> /* that of the C library lacks fields of tcp_info */
#include <netinet/in.h>
#include <sys/socket.h>

enum {
	COMM_VERSION = 2,
	MOST_CONNECTIONS = 64,
	LONGEST_CHUNK = 1 << 20,
	CONGESTION_NAME = 16, /* TCP_CA_NAME_MAX */
	ADDRESS_TEXT = 64,
	PROBLEM_TEXT = 200,
	PROBE_BYTES = 64,
	MOST_LOOKS = 256,
	LONGEST_DATAGRAM = 1452, /* what a packet of 1500 bytes carries, also over IPv6 */
	MOST_DATAGRAMS = 1 << 27, /* of a round: a peer keeps a bit for each, 16 MiB in all */
};

/* What goes over a connection. */
enum traffic {
	STREAM,    /* so many bytes, and an acknowledgement */
	REQUESTS,  /* so many, one after the other, each answered by as many bytes */
	CONNECTS,  /* the same, each over a connection of its own, which the peer closes */
	DATAGRAMS, /* so many of UDP, as fast as they go */
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
	uint32_t traffic;
	uint32_t peer_sends;
	uint32_t quiet_ms; /* after which no datagram comes any more */
	uint64_t amount;   /* of a round, in what its traffic counts; 0 for requests without an end */
	uint32_t chunk;    /* of a write, and of a read at most */
	struct end_settings settings;
	char address[ADDRESS_TEXT]; /* on which it listens */
	uint64_t token;             /* what the connection begins with */
};

enum peer_step {
	LISTENS,   /* on `port` */
	CONNECTED, /* by who knows the token */
	GO,        /* to the peer: a round begins */
	ALL_SENT,  /* to the peer: so many datagrams have left */
	DONE,      /* what the peer saw of the round */
	FAILED,
};

/* What goes over the control socket besides, in both directions. */
struct peer_message {
	enum peer_step step;
	uint32_t port;
	int64_t user_ns, system_ns;
	uint64_t retransmissions, timeouts;
	/* Of datagrams: those that came, those that came behind a later one, those that came again, and how
	 * long it took from the first to the last. */
	uint64_t arrived, reordered, duplicated, span_ns;
	char problem[PROBLEM_TEXT];
};

/* comm_data.c: payload, and TCP */
void prepare_payload(void);
/* One write, or one read, is `chunk` bytes at most. They fail where a byte is not as it was sent. */
void send_payload(int data, uint64_t bytes, uint32_t chunk);
void receive_payload(int data, uint64_t bytes, uint32_t chunk);
void send_exactly(int fd, const void *bytes, size_t count);
void receive_exactly(int fd, void *bytes, size_t count);
/* From this offset of the payload on, a chunk at least. */
const char *payload_at(uint64_t offset);
/* Whether a connection begins with the number. On a network anybody may come, and say nothing. */
bool knows(int data, uint64_t wanted);
/* What was written leaves, though it is no full segment. */
void push_out(int data, bool no_delay);
/* Before it connects or listens. */
void set_end(int fd, const struct end_settings *settings);
void set_no_delay(int fd, bool is_on);
struct tcp_info tcp_info_of(int data);
/* How often it waited in vain and sent again (RTO); 0 where the kernel does not tell (before 6.7). */
uint64_t timeouts_of(int data);
/* A numeric address, IPv4 or IPv6; its length. */
socklen_t read_address(const char *text, uint16_t port, struct sockaddr_storage *address);

/* comm_peer.c: a peer at this socket, and where there is an address a server of FTP besides */
_Noreturn void serve_peers(const char *control, const char *ftp_address, uint16_t ftp_port);

/* comm_exchange.c: requests and their answers; how long each took goes to the histogram */
struct place {
	struct sockaddr_storage address;
	socklen_t size;
};
void request_often(int data, uint64_t count, uint32_t chunk);
void answer_requests(int data, uint64_t count, uint32_t chunk);
void connect_often(const struct place *place, const struct peer_request *request,
		   const struct end_settings *own);
void answer_often(int listener, const struct peer_request *request);
/* A request about every millisecond, until `left` is 0; how many. */
uint64_t probe(int data, _Atomic uint32_t *left);

/* comm_datagrams.c */
void greet(int socket, int control, const struct peer_request *request);
void be_greeted(int socket, const struct peer_request *request);
void send_datagrams(int socket, const struct peer_request *request, uint64_t round);
/* Until all have come that were sent, or no more do. */
struct peer_message count_datagrams(int socket, int control, const struct peer_request *request,
				    uint64_t round);

/* comm_watch.c: a thread that looks at a connection every millisecond, and more rarely where it lasts */
struct look {
	uint32_t at_us; /* after the gate was opened */
	uint32_t window, round_trip_us, retransmissions;
	uint64_t sent, acknowledged; /* bytes; of what is received, both are what has come */
};
struct watch {
	uint32_t every_us, looks;
	uint64_t processor_ns; /* what looking took */
	struct look look[MOST_LOOKS];
};
void start_watch(int data, bool is_send, struct watch *watch, uint64_t opened_ns);
void end_watch(void);
void print_watch(const struct watch *watch);

/* comm_beside.c: what else W_test does meanwhile */
enum { MOST_TESTS = 64 };
struct beside {
	const struct workload *activity; /* NULL for nothing; the first test of a mix */
	struct load_options mix;         /* of which a unit is a job; of one test where it is no mix */
	uint64_t units;                  /* that each copy does, and is timed for */
	int copies;
};

/* comm.c, comm_connection.c */
struct connection {
	enum traffic traffic;
	bool is_send;  /* by W_test */
	bool is_probe; /* requests beside what is scored, for as long as that lasts */
	uint64_t amount;
	char address[ADDRESS_TEXT];
	const char *control;
};
struct comm_options {
	uint32_t chunk, quiet_ms;
	bool watches;
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
		uint64_t elapsed_ns, retransmissions, timeouts, round_trip_us, least_round_trip_us;
		int64_t user_ns, system_ns, peer_user_ns, peer_system_ns;
		uint64_t exchanges;                      /* of a probe */
		uint64_t arrived, reordered, duplicated; /* datagrams */
		struct watch watch;
	} transfers[MOST_CONNECTIONS];
	_Atomic uint64_t buckets[HISTOGRAM_BUCKETS]; /* of exchanges */
	uint64_t activity_ns[]; /* of each copy */
};
_Noreturn void be_connection(const struct comm_options *options, struct comm_board *board, int number);
/* comm_print.c */
void print_cell(const struct comm_options *options, struct comm_board *board);
_Noreturn void be_activity(const struct beside *beside, struct comm_board *board, int number);

#endif
