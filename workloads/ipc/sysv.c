/* System V's messages, semaphores and shared memory.
 *
 * Such an object outlives its process. Root's are made in an IPC namespace of this process alone, which
 * ends with it, whatever it dies of. Without that right the queue or the semaphore is private and removed
 * at the end, but SIGKILL leaves it: `ipcs` shows it, with key 0 and one owner. Shared memory is marked
 * for removal as soon as it is attached, so that nothing can leave it. */
#include "ipc_namespace.h"
#include "operation.h"

#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

enum { TEXT = 64, MIB = 1 << 20 };

static int queue = -1, semaphores = -1, memory;
static uint64_t count;
static char *kept, *attached;

struct message {
	long type;
	uint64_t number;
	char rest[TEXT - sizeof(uint64_t)];
};

static void prepare_queue(void)
{
	enter_ipc_namespace();
	queue = msgget(IPC_PRIVATE, 0600);
	if (queue < 0)
		fail("msgget: %s", strerror(errno));
}

static bool send_and_receive(void)
{
	struct message sent = {.type = 1, .number = count++}, received;

	return msgsnd(queue, &sent, TEXT, 0) == 0 && msgrcv(queue, &received, TEXT, 1, IPC_NOWAIT) == TEXT &&
	       received.number == sent.number;
}

static void check_queue(uint64_t n)
{
	struct msqid_ds status;

	(void)n;
	if (msgctl(queue, IPC_STAT, &status) < 0 || status.msg_qnum != 0)
		fail("messages are left in the queue");
}

static void remove_queue(void)
{
	if (queue >= 0)
		msgctl(queue, IPC_RMID, NULL);
}

static void prepare_semaphore(void)
{
	enter_ipc_namespace();
	semaphores = semget(IPC_PRIVATE, 1, 0600);
	if (semaphores < 0)
		fail("semget: %s", strerror(errno));
}

static bool change(int by)
{
	return semop(semaphores, &(struct sembuf){.sem_op = by, .sem_flg = IPC_NOWAIT}, 1) == 0;
}

static void check_semaphore(uint64_t n)
{
	struct semid_ds status;

	(void)n;
	if (semctl(semaphores, 0, GETVAL) != 0)
		fail("the semaphore is not 0, as at the start");
	if (semctl(semaphores, 0, IPC_STAT, &status) < 0 || status.sem_otime == 0)
		fail("the semaphore was never changed");
}

static void remove_semaphore(void)
{
	if (semaphores >= 0)
		semctl(semaphores, 0, IPC_RMID);
}

static void prepare_memory(void)
{
	enter_ipc_namespace();
	memory = shmget(IPC_PRIVATE, MIB, 0600);
	if (memory < 0)
		fail("shmget: %s", strerror(errno));
	kept = shmat(memory, NULL, 0);
	shmctl(memory, IPC_RMID, NULL);
	if (kept == (void *)-1)
		fail("shmat: %s", strerror(errno));
}

/* As the memory is marked for removal, it is attached once more only because `kept` is. */
static bool attach_and_detach(void)
{
	attached = shmat(memory, NULL, 0);
	return attached != (void *)-1 && attached != kept && shmdt(attached) == 0;
}

static void check_memory(uint64_t n)
{
	struct shmid_ds status;

	(void)n;
	attached = shmat(memory, NULL, 0);
	if (attached == (void *)-1 || shmctl(memory, IPC_STAT, &status) < 0)
		fail("shmat or shmctl: %s", strerror(errno));
	if (status.shm_nattch != 2)
		fail("the memory is attached %ld times, not twice", (long)status.shm_nattch);
	strcpy(attached, "shared");
	if (strcmp(kept, "shared"))
		fail("the memory is not shared");
}

OPERATION(message, "sysv-message", 2, send_and_receive(),
	  .summary = "msgsnd(2) of 64 bytes to a System V queue, and msgrcv(2)", .source = "msgop(2)",
	  .prepare = prepare_queue, .check = check_queue, .cleanup = remove_queue);
OPERATION(semaphore, "sysv-semaphore", 2, change(1) && change(-1),
	  .summary = "semop(2) of a System V semaphore, up and down", .source = "semop(2)",
	  .prepare = prepare_semaphore, .check = check_semaphore, .cleanup = remove_semaphore);
OPERATION(memory, "sysv-memory", 2, attach_and_detach(),
	  .summary = "shmat(2) and shmdt(2) of 1 MiB, not touched", .source = "shmop(2)", .prepare = prepare_memory,
	  .check = check_memory);
