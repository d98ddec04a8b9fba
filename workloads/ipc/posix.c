/* POSIX message queues and shared memory. A queue's name is removed as soon as it is open. The name of
 * shared memory lasts for one operation: SIGKILL in the middle may leave an empty /dev/shm/weigh-PID. */
#include "operation.h"

#include <fcntl.h>
#include <mqueue.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SIZE = 64 };

static mqd_t queue;
static char name[32], sent[SIZE], received[SIZE];
static uint64_t count;
static int first_free;

static void make_name(void)
{
	snprintf(name, sizeof name, "/weigh-%d", (int)getpid());
}

static void prepare_memory(void)
{
	make_name();
	first_free = next_descriptor();
}

static void prepare_queue(void)
{
	struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = SIZE};

	make_name();
	queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NONBLOCK, 0600, &attributes);
	if (queue < 0)
		fail("mq_open: %s", strerror(errno));
	mq_unlink(name);
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
	int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);

	return fd == first_free && shm_unlink(name) == 0 && close(fd) == 0;
}

static void remove_memory(void)
{
	shm_unlink(name); /* there is none, unless an operation failed */
}

OPERATION(queue, "mq-message", 2, send_and_receive(),
	  .summary = "mq_send(3) of 64 bytes to a POSIX message queue, and mq_receive(3)",
	  .source = "mq_overview(7)", .prepare = prepare_queue);
OPERATION(memory, "shm-open-unlink", 3, open_and_unlink(),
	  .summary = "shm_open(O_CREAT|O_EXCL), shm_unlink and close", .source = "shm_overview(7)",
	  .prepare = prepare_memory, .cleanup = remove_memory);
