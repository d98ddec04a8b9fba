/* What TCP did, by and by: a thread asks it (TCP_INFO) every millisecond. A cell is not known to be abnormal
 * before it is over, so each is watched. Where there is no room any more, every other look is forgotten, and
 * from then on there are half as many. */
#include "comm.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_EVERY_US = 1000 };

static struct watch *watch;
static int watched, end = -1;
static bool is_sender;
static uint64_t watch_opened_ns;
static pthread_t thread;

static uint64_t used_by_thread(void)
{
	struct timespec used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return used.tv_sec * 1000000000ull + used.tv_nsec;
}

static void look(void)
{
	struct tcp_info info = tcp_info_of(watched);
	/* What was sent for the first time: where in the stream it is, not how much left. */
	uint64_t sent = info.tcpi_bytes_sent - info.tcpi_bytes_retrans;
	struct look *at = &watch->look[watch->looks++];

	*at = (struct look){
		.at_us = (now_ns() - watch_opened_ns) / 1000,
		.window = info.tcpi_snd_cwnd,
		.round_trip_us = is_sender ? info.tcpi_rtt : info.tcpi_rcv_rtt,
		.retransmissions = info.tcpi_total_retrans,
		.sent = is_sender ? sent : info.tcpi_bytes_received,
		.acknowledged = is_sender ? info.tcpi_bytes_acked : info.tcpi_bytes_received,
	};
	if (watch->looks < MOST_LOOKS)
		return;
	for (uint32_t kept = 0; kept < MOST_LOOKS / 2; kept++)
		watch->look[kept] = watch->look[2 * kept];
	watch->looks = MOST_LOOKS / 2;
	watch->every_us *= 2;
}

static void *keep_looking(void *nothing)
{
	struct pollfd ended = {.fd = end, .events = POLLIN};
	struct timespec pause;

	do {
		look();
		pause.tv_sec = watch->every_us / 1000000;
		pause.tv_nsec = watch->every_us % 1000000 * 1000;
	} while (ppoll(&ended, 1, &pause, NULL) == 0);
	look();
	watch->processor_ns = used_by_thread();
	return nothing;
}

void start_watch(int data, bool is_send, struct watch *into, uint64_t opened_ns)
{
	watch = into, watched = data, is_sender = is_send, watch_opened_ns = opened_ns;
	watch->every_us = FIRST_EVERY_US;
	end = eventfd(0, EFD_CLOEXEC);
	if (end < 0 || pthread_create(&thread, NULL, keep_looking, NULL) != 0)
		fail("cannot start one more thread: see `ulimit -u`");
}

void end_watch(void)
{
	eventfd_write(end, 1);
	pthread_join(thread, NULL);
	close(end);
}

/* As lists, by field: that is a third of what objects take. */
void print_watch(const struct watch *of)
{
	printf("{\"every_us\":%u,\"looks\":[", of->every_us);
	for (uint32_t i = 0; i < of->looks; i++) {
		const struct look *at = &of->look[i];
		printf("%s[%u,%llu,%llu,%u,%u,%u]", i ? "," : "", at->at_us, (unsigned long long)at->sent,
		       (unsigned long long)at->acknowledged, at->retransmissions, at->window, at->round_trip_us);
	}
	printf("]}");
}
