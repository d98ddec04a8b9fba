/* Two processes pass a token by read and write. */
#include "token.h"
#include "partner.h"
#include "workload.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct ends mine, theirs;
static uint64_t round_trips;

/* Every byte tells one token from the next, also where only one is sent. */
static uint64_t token_of(uint64_t number)
{
	return number * 0x0101010101010101;
}

static void close_ends(struct ends ends)
{
	close(ends.in);
	if (ends.out != ends.in)
		close(ends.out);
}

static uint64_t answer_tokens(void)
{
	long size = current->size, got;
	uint64_t turns = 0, received;

	close_ends(mine);
	while ((got = read(theirs.in, &received, size)) == size) {
		uint64_t expected = token_of(turns++);

		if (memcmp(&received, &expected, size) != 0)
			fail("the partner received a wrong token");
		if (write(theirs.out, &received, size) != size)
			fail("the partner cannot answer: %s", strerror(errno));
	}
	if (got != 0)
		fail("the partner cannot read: %s", strerror(errno));
	return turns;
}

void start_token(struct ends driver, struct ends partner)
{
	mine = driver;
	theirs = partner;
	start_partner(answer_tokens);
	close_ends(theirs);
}

void run_token(uint64_t n)
{
	long size = current->size;

	for (; n; n--) {
		uint64_t sent = token_of(round_trips++), answer;

		if (write(mine.out, &sent, size) != size || read(mine.in, &answer, size) != size)
			fail("the partner did not answer: %s", strerror(errno));
		if (memcmp(&answer, &sent, size) != 0)
			fail("the partner answered with a wrong token");
	}
}

void check_token(uint64_t n)
{
	send(mine.out, NULL, 0, 0); /* a datagram of nothing is the end where there is no end of file */
	if (shutdown(mine.out, SHUT_WR) < 0)
		close(mine.out); /* no socket but a pipe */
	uint64_t turns = end_partners();
	if (turns != n || round_trips != n)
		fail("%llu round trips were counted, %llu by the partner", (unsigned long long)round_trips,
		     (unsigned long long)turns);
}
