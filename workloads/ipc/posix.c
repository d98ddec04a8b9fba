/* POSIX message queues and shared memory. A queue's name is removed as soon as it is open. The name of
 * shared memory lasts for one operation: SIGKILL in the middle may leave an empty file in /dev/shm. All users
 * share these names, so ours are random: nobody can take one before us. */
#include "operation.h"

#include <fcntl.h>
#include <mqueue.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

enum { SIZE = 64, ATTEMPTS = 8 };

static mqd_t queue;
static char name[32], sent[SIZE], received[SIZE];
static uint64_t count;
static int first_free;
static bool is_named;

static void make_name(void)
{
	uint64_t number;

	if (getrandom(&number, sizeof number, 0) != sizeof number)
		fail("getrandom: %s", strerror(errno));
	snprintf(name, sizeof name, "/weigh-%016llx", (unsigned long long)number);
}

static int make_memory(void)
{
	return shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
}

static int make_queue(void)
{
	struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = SIZE};

	return mq_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NONBLOCK, 0600, &attributes);
}

/* Makes one under a name that nobody else has, and removes the name. */
static int make_unnamed(const char *call, int (*make)(void), int (*unlink_name)(const char *))
{
	int fd = -1;

	for (int attempt = 0; fd < 0 && attempt < ATTEMPTS; attempt++) {
		make_name();
		fd = make();
		if (fd < 0 && errno != EEXIST)
			break;
	}
	if (fd < 0)
		fail("%s of %s: %s", call, name, strerror(errno));
	unlink_name(name);
	return fd;
}

static void prepare_memory(void)
{
	close(make_unnamed("shm_open", make_memory, shm_unlink));
	first_free = next_descriptor();
}

static void prepare_queue(void)
{
	queue = make_unnamed("mq_open", make_queue, mq_unlink);
}

static bool send_and_receive(void)
{
	unsigned priority;

	memcpy(sent, &count, sizeof count);
	count++;
	return mq_send(queue, sent, SIZE, 3) == 0 && mq_receive(queue, received, SIZE, &priority) == SIZE &&
	       priority == 3 && memcmp(sent, received, SIZE) == 0;
}

static bool open_and_unlink(void)
{
	int fd = make_memory();

	is_named = fd >= 0;
	if (fd != first_free || shm_unlink(name))
		return false;
	is_named = false;
	return close(fd) == 0;
}

static void remove_memory(void)
{
	if (is_named) /* an operation failed, or was interrupted */
		shm_unlink(name);
}

OPERATION(queue, "mq-message", 2, send_and_receive(),
	  .summary = "mq_send(3) of 64 bytes to a POSIX message queue, and mq_receive(3)",
	  .source = "mq_overview(7)", .prepare = prepare_queue);
OPERATION(memory, "shm-open-unlink", 3, open_and_unlink(),
	  .summary = "shm_open(O_CREAT|O_EXCL), shm_unlink and close", .source = "shm_overview(7)",
	  .prepare = prepare_memory, .cleanup = remove_memory);
