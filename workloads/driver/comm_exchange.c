/* Requests and answers, as many bytes there as back: over one connection, over one each, and beside something
 * else to see how long they take then. */
#include "comm.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PROBE_PAUSE_NS = 1000 * 1000 };

/* All of it has to leave, whatever Nagle's algorithm would hold back. */
void request_often(int data, uint64_t count, uint32_t chunk)
{
	set_no_delay(data, true);
	for (uint64_t before = now_ns(); count--;) {
		send_payload(data, chunk, chunk);
		receive_payload(data, chunk, chunk);
		uint64_t after = now_ns();
		histogram_add(after - before);
		before = after;
	}
}

void answer_requests(int data, uint64_t count, uint32_t chunk)
{
	set_no_delay(data, true);
	for (uint64_t done = 0; !count || done < count; done++) {
		receive_payload(data, chunk, chunk);
		send_payload(data, chunk, chunk);
	}
}

/* One at a time, with a pause between two: on a machine that is too busy for it, requests that come at fixed
 * times would tell of nothing but their queue. */
uint64_t probe(int data, _Atomic uint32_t *left)
{
	const struct timespec pause = {.tv_nsec = PROBE_PAUSE_NS};
	uint64_t count = 0;

	set_no_delay(data, true);
	do {
		uint64_t before = now_ns();
		send_payload(data, PROBE_BYTES, PROBE_BYTES);
		receive_payload(data, PROBE_BYTES, PROBE_BYTES);
		histogram_add(now_ns() - before);
		count++;
		nanosleep(&pause, NULL);
	} while (atomic_load(left));
	return count;
}

/* The peer closes first, so that it is that which has connections in TIME_WAIT, and no port is used up
 * here. */
void connect_often(const struct place *place, const struct peer_request *request,
		   const struct end_settings *own)
{
	char end;

	for (uint64_t before = now_ns(), left = request->amount; left--;) {
		int data = socket(place->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (data < 0)
			fail("socket: %s", strerror(errno));
		set_end(data, own);
		set_no_delay(data, true);
		if (connect(data, (const struct sockaddr *)&place->address, place->size) < 0)
			fail("cannot connect to %s: %s", request->address, strerror(errno));
		send_exactly(data, &request->token, sizeof request->token);
		send_payload(data, request->chunk, request->chunk);
		receive_payload(data, request->chunk, request->chunk);
		if (recv(data, &end, 1, 0) != 0)
			fail("the peer did not close the connection");
		close(data);
		uint64_t after = now_ns();
		histogram_add(after - before);
		before = after;
	}
}

void answer_often(int listener, const struct peer_request *request)
{
	for (uint64_t left = request->amount; left;) {
		int data = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (data < 0)
			fail("accept: %s", strerror(errno));
		set_no_delay(data, true);
		if (knows(data, request->token)) {
			receive_payload(data, request->chunk, request->chunk);
			send_payload(data, request->chunk, request->chunk);
			left--;
		}
		close(data);
	}
}
