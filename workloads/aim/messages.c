/* Messages that a process writes and reads back itself: through a pipe, a FIFO, a pair of sockets, TCP, UDP,
 * and through shared memory between semaphores. Each message has its number, at its start and at its end. */
#include "job.h"
#include "ipc_namespace.h"
#include "loopback.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LARGEST = 4096, MESSAGES = 99, TCP_MESSAGES = 89, TURNS = 100, SHARED = 65536 };

/* Any; those of window systems; those of databases; those of files. */
static const int sizes[] = {1,    3,    5,  7,  16, 32, 64, 512, 1024, 2048, 4096, 1,   3,
			    5,    7,    16, 32, 64, 512, 1024, 2048, 4096, 32, 32, 32, 32,
			    32,   32,   512, 512, 512, 512, 512, 2048, 2048, 2048, 2048};

static char sent[LARGEST], received[LARGEST];

static int size_of(int message)
{
	return sizes[message % (sizeof sizes / sizeof *sizes)];
}

static void number_message(int message, int size)
{
	sent[0] = sent[size - 1] = message + 1;
}

static void expect_message(const char *found, int message, int size)
{
	if (found[0] != (char)(message + 1) || found[size - 1] != (char)(message + 1))
		fail("message %d, of %d bytes, is not what was written", message, size);
}

static void pass_messages(int to, int from, int count)
{
	for (int message = 0; message < count; message++) {
		int size = size_of(message);

		number_message(message, size);
		if (write(to, sent, size) != size)
			fail("cannot write %d bytes: %s", size, strerror(errno));
		for (int done = 0, part; done < size; done += part) {
			part = read(from, received + done, size - done);
			if (part <= 0)
				fail("cannot read %d bytes: %s", size, part ? strerror(errno) : "there are fewer");
		}
		expect_message(received, message, size);
	}
	close(to), close(from);
}

static void job_pipe_cpy(void)
{
	int ends[2];

	if (pipe(ends) < 0)
		fail("pipe: %s", strerror(errno));
	pass_messages(ends[1], ends[0], MESSAGES);
}

static void job_fifo_test(void)
{
	static const char name[] = "fifo_test";

	if (mkfifo(name, 0600) < 0)
		fail("mkfifo: %s", strerror(errno));
	int from = open(name, O_RDONLY | O_NONBLOCK), to = open(name, O_WRONLY | O_NONBLOCK);
	if (from < 0 || to < 0)
		fail("cannot open a FIFO: %s", strerror(errno));
	pass_messages(to, from, MESSAGES);
	if (unlink(name) < 0)
		fail("unlink: %s", strerror(errno));
}

static void pass_through_sockets(int type)
{
	int pair[2];

	if (socketpair(AF_UNIX, type, 0, pair) < 0)
		fail("socketpair: %s", strerror(errno));
	pass_messages(pair[0], pair[1], MESSAGES);
}

static void job_tcp_test(void)
{
	int pair[2], yes = 1;

	connect_tcp_pair(pair);
	for (int i = 0; i < 2; i++)
		if (setsockopt(pair[i], IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) < 0)
			fail("TCP_NODELAY: %s", strerror(errno));
	pass_messages(pair[0], pair[1], TCP_MESSAGES);
}

static void job_udp_test(void)
{
	int pair[2];

	connect_udp_pair(pair);
	pass_messages(pair[0], pair[1], MESSAGES);
}

static int semaphore = -1;

static void change(int by)
{
	if (semop(semaphore, &(struct sembuf){.sem_op = by}, 1) < 0)
		fail("semop: %s", strerror(errno));
}

static void remove_semaphore(void)
{
	if (semaphore >= 0)
		semctl(semaphore, 0, IPC_RMID);
	semaphore = -1;
}

/* Marked for removal as soon as it is attached, so that nothing can leave it. */
static char *attach_memory(void)
{
	int memory = shmget(IPC_PRIVATE, SHARED, 0600);
	char *shared = memory < 0 ? (void *)-1 : shmat(memory, NULL, 0);

	if (memory >= 0)
		shmctl(memory, IPC_RMID, NULL);
	if (shared == (void *)-1)
		fail("cannot have shared memory: %s", strerror(errno));
	return shared;
}

static void job_shared_memory(void)
{
	char *shared = attach_memory();

	semaphore = semget(IPC_PRIVATE, 1, 0600);
	if (semaphore < 0 || semctl(semaphore, 0, SETVAL, 1) < 0)
		fail("cannot have a semaphore: %s", strerror(errno));
	for (int turn = 0; turn < TURNS; turn++) {
		int size = size_of(turn);

		number_message(turn, size);
		change(-1);
		memcpy(shared, sent, size);
		change(1);
		OPAQUE_MEMORY();
		change(-1);
		memcpy(received, shared, size);
		change(1);
		expect_message(received, turn, size);
	}
	remove_semaphore();
	shmdt(shared);
}

SUB_TEST(pipe_cpy, job_pipe_cpy(), 100, "msgs", 201,
	 .summary = "99 messages of 1 to 4096 bytes written to a new pipe and read back");
SUB_TEST(fifo_test, job_fifo_test(), 100, "msgs", 204, .prepare = enter_scratch_directory,
	 .summary = "99 messages of 1 to 4096 bytes written to a new FIFO and read back");
SUB_TEST(stream_pipe, pass_through_sockets(SOCK_STREAM), 100, "msgs", 201, .summary = "99 messages of 1 to 4096 bytes through a new pair of UNIX stream sockets");
SUB_TEST(dgram_pipe, pass_through_sockets(SOCK_DGRAM), 100, "msgs", 201, .summary = "99 messages of 1 to 4096 bytes through a new pair of UNIX datagram sockets");
SUB_TEST(tcp_test, job_tcp_test(), 90, "msgs", 192,
	 .summary = "89 messages of 1 to 4096 bytes through a new TCP connection on 127.0.0.1");
SUB_TEST(udp_test, job_udp_test(), 100, "msgs", 208, .summary = "99 messages of 1 to 4096 bytes through a new pair of UDP sockets on 127.0.0.1");
SUB_TEST(shared_memory, job_shared_memory(), TURNS, "msgs", 407, .prepare = enter_ipc_namespace,
	 .cleanup = remove_semaphore,
	 .summary = "100 messages of 1 to 4096 bytes copied to new shared memory and back, between System V semaphores");
