/* Payload that tells its place, so that a byte that is lost, changed or in the wrong place is found; and
 * what is set and read of TCP. */
#include "comm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A prime, so that what is shifted by any power of two is not what it should be. */
enum { PERIOD = 65521 };

static char *payload, *received;

void prepare_payload(void)
{
	uint64_t state = 1;

	payload = malloc(PERIOD + LONGEST_CHUNK);
	received = malloc(LONGEST_CHUNK);
	if (!payload || !received)
		fail("no memory for the payload");
	for (long i = 0; i < PERIOD; i++) {
		state = state * 6364136223846793005ull + 1442695040888963407ull;
		payload[i] = state >> 56;
	}
	for (long i = PERIOD; i < PERIOD + LONGEST_CHUNK; i++)
		payload[i] = payload[i - PERIOD];
}

const char *payload_at(uint64_t offset)
{
	return payload + offset % PERIOD;
}

void send_exactly(int fd, const void *bytes, size_t count)
{
	for (const char *at = bytes; count;) {
		ssize_t sent = send(fd, at, count, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			fail("send: %s", strerror(errno));
		at += sent, count -= sent;
	}
}

void receive_exactly(int fd, void *bytes, size_t count)
{
	for (char *at = bytes; count;) {
		ssize_t got = recv(fd, at, count, 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			fail("recv: %s", strerror(errno));
		if (got == 0)
			fail("the other end closed the connection %zu bytes too early", count);
		at += got, count -= got;
	}
}

bool knows(int data, uint64_t wanted)
{
	struct timeval patience = {.tv_sec = 2}, for_ever = {0};
	uint64_t token = 0;

	setsockopt(data, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	bool is_known = recv(data, &token, sizeof token, MSG_WAITALL) == sizeof token && token == wanted;
	setsockopt(data, SOL_SOCKET, SO_RCVTIMEO, &for_ever, sizeof for_ever);
	return is_known;
}

void send_payload(int data, uint64_t bytes, uint32_t chunk)
{
	for (uint64_t offset = 0; offset < bytes; offset += chunk) {
		uint64_t left = bytes - offset;
		send_exactly(data, payload_at(offset), left < chunk ? left : chunk);
	}
}

void receive_payload(int data, uint64_t bytes, uint32_t chunk)
{
	for (uint64_t offset = 0; offset < bytes;) {
		uint64_t left = bytes - offset;
		ssize_t got = recv(data, received, left < chunk ? left : chunk, 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			fail("recv: %s", strerror(errno));
		if (got == 0)
			fail("the other end closed the connection after %llu of %llu bytes", (unsigned long long)offset,
			     (unsigned long long)bytes);
		if (memcmp(received, payload_at(offset), got))
			fail("the %zd bytes from number %llu on differ from the bytes that were sent", got,
			     (unsigned long long)offset);
		offset += got;
	}
}

static void set(int fd, int level, int option, const void *value, socklen_t size, const char *name)
{
	if (setsockopt(fd, level, option, value, size) < 0)
		fail("%s: %s", name, strerror(errno));
}

void set_no_delay(int fd, bool is_on)
{
	int value = is_on;

	set(fd, IPPROTO_TCP, TCP_NODELAY, &value, sizeof value, "TCP_NODELAY");
}

/* Switching Nagle's algorithm off sends what it held back (tcp(7)). */
void push_out(int data, bool no_delay)
{
	if (no_delay)
		return;
	set_no_delay(data, true);
	set_no_delay(data, false);
}

void set_end(int fd, const struct end_settings *settings)
{
	int send_buffer = settings->send_buffer, receive_buffer = settings->receive_buffer;

	if (send_buffer)
		set(fd, SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof send_buffer, "SO_SNDBUF");
	if (receive_buffer)
		set(fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer, "SO_RCVBUF");
	if (*settings->congestion && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, settings->congestion,
						strlen(settings->congestion)) < 0)
		fail("cannot set the congestion control `%s`: %s (see net.ipv4.tcp_available_congestion_control)",
		     settings->congestion, strerror(errno));
	set_no_delay(fd, settings->no_delay);
}

struct tcp_info tcp_info_of(int data)
{
	struct tcp_info info = {0};
	socklen_t size = sizeof info;

	if (getsockopt(data, IPPROTO_TCP, TCP_INFO, &info, &size) < 0)
		fail("TCP_INFO: %s", strerror(errno));
	return info;
}

uint64_t timeouts_of(int data)
{
	/* Behind what the headers of 2023 know: tcpi_total_rto. */
	enum { AT = 240, KNOWN = 248 };
	char info[KNOWN] = {0};
	socklen_t size = sizeof info;
	uint16_t timeouts;

	if (getsockopt(data, IPPROTO_TCP, TCP_INFO, info, &size) < 0 || size < KNOWN)
		return 0;
	memcpy(&timeouts, info + AT, sizeof timeouts);
	return timeouts;
}

socklen_t read_address(const char *text, uint16_t port, struct sockaddr_storage *address)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)address;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;

	memset(address, 0, sizeof *address);
	if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		return sizeof *v4;
	}
	if (inet_pton(AF_INET6, text, &v6->sin6_addr) != 1)
		fail("`%s` is not an address", text);
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons(port);
	return sizeof *v6;
}
