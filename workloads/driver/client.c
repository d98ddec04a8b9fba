/* A client that is exempt from what is weighed: it waits at a Unix socket, and does in its own place, as
 * itself, what a process of an arm would do. That process (`delegate`) hands over its command line, what it
 * was told by weigh, and where it prints, and ends with the client's status: all that the treatment meets of
 * it is this. */
#include "driver.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_BYTES = 65536, MOST_WORDS = 256, OUTPUTS = 2 };
#define TOLD "WEIGH_"

extern char **environ;

struct order {
	uint32_t size, words, settings; /* the text has so many words, then settings, each with its NUL */
	char text[MOST_BYTES];
};
static struct order order;

static int socket_at(const char *path, int (*attach)(int, const struct sockaddr *, socklen_t))
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (strlen(path) >= sizeof address.sun_path)
		usage_error("the path of the client's socket is too long: %s", path);
	strcpy(address.sun_path, path);
	if (fd < 0 || attach(fd, (struct sockaddr *)&address, sizeof address) < 0)
		usage_error("the client's socket %s: %s", path, strerror(errno));
	return fd;
}

static void add(const char *word, uint32_t *count)
{
	size_t size = strlen(word) + 1;

	if (size > sizeof order.text - order.size || *count == MOST_WORDS)
		usage_error("too much is said to the client");
	memcpy(order.text + order.size, word, size);
	order.size += size;
	++*count;
}

/* One message with two file descriptors. */
union ancillary {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(int[OUTPUTS]))];
};

int delegate(const char *path, char **argv)
{
	const int outputs[OUTPUTS] = {STDOUT_FILENO, STDERR_FILENO};
	struct iovec bytes = {.iov_base = &order};
	union ancillary ancillary = {0};
	struct msghdr message = {.msg_iov = &bytes,
				 .msg_iovlen = 1,
				 .msg_control = &ancillary,
				 .msg_controllen = sizeof ancillary};
	int status = 1, fd = socket_at(path, connect);

	for (; *argv; argv++)
		add(*argv, &order.words);
	for (char **setting = environ; *setting; setting++)
		if (strncmp(*setting, TOLD, strlen(TOLD)) == 0 && strncmp(*setting, CLIENT "=", sizeof CLIENT))
			add(*setting, &order.settings);
	bytes.iov_len = offsetof(struct order, text) + order.size;
	ancillary.head = (struct cmsghdr){
		.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof outputs)};
	memcpy(CMSG_DATA(&ancillary.head), outputs, sizeof outputs);
	if (sendmsg(fd, &message, MSG_NOSIGNAL) != (ssize_t)bytes.iov_len ||
	    recv(fd, &status, sizeof status, 0) != sizeof status) {
		fprintf(stderr, "weigh-workloads: the client is gone\n");
		return 1;
	}
	return status;
}

/* The words of the order as a NULL-terminated list; where the next ones begin. */
static char *take_words(char *at, uint32_t count, char **words, int from)
{
	const char *end = order.text + order.size;

	for (uint32_t i = 0; i < count; i++) {
		char *nul = at < end ? memchr(at, 0, end - at) : NULL;
		if (!nul || i + from >= MOST_WORDS)
			_exit(2);
		words[from + i] = at;
		at = nul + 1;
	}
	words[from + count] = NULL;
	return at;
}

static _Noreturn void execute(const int outputs[OUTPUTS])
{
	static char *argv[MOST_WORDS + 1], *settings[MOST_WORDS + 1];
	char *at = take_words(order.text, order.words, argv, 0);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setsid();
	if (dup2(outputs[0], STDOUT_FILENO) < 0 || dup2(outputs[1], STDERR_FILENO) < 0)
		_exit(2);
	take_words(at, order.settings, settings, 0);
	for (char **setting = settings; *setting; setting++)
		putenv(*setting);
	if (order.words == 0)
		_exit(2);
	/* Its own build, whatever the arm's is: that may be what is weighed. */
	execv("/proc/self/exe", argv);
	perror(argv[0]);
	_exit(127);
}

/* Its status as a shell has it, or -1 where nobody waits for it any more. */
static int wait_for(pid_t child, int fd)
{
	struct pollfd ends[] = {{.fd = syscall(SYS_pidfd_open, child, 0), .events = POLLIN},
				{.fd = fd, .events = POLLIN}};
	int status = 0;

	while (poll(ends, 2, -1) < 0 && errno == EINTR)
		;
	if (!ends[0].revents)
		kill(-child, SIGKILL);
	waitpid(child, &status, 0);
	if (ends[0].fd >= 0)
		close(ends[0].fd);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void serve(int fd)
{
	union ancillary ancillary = {0};
	struct iovec bytes = {.iov_base = &order, .iov_len = sizeof order};
	struct msghdr message = {.msg_iov = &bytes,
				 .msg_iovlen = 1,
				 .msg_control = &ancillary,
				 .msg_controllen = sizeof ancillary};
	ssize_t received = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	int outputs[OUTPUTS];
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);

	if (!head || head->cmsg_type != SCM_RIGHTS || head->cmsg_len != CMSG_LEN(sizeof outputs))
		return;
	memcpy(outputs, CMSG_DATA(head), sizeof outputs);
	if (received == (ssize_t)(offsetof(struct order, text) + order.size)) {
		pid_t child = fork();
		if (child == 0)
			execute(outputs);
		int status = child < 0 ? 1 : wait_for(child, fd);
		send(fd, &status, sizeof status, MSG_NOSIGNAL);
	}
	for (int i = 0; i < OUTPUTS; i++)
		close(outputs[i]);
}

int client(int argc, char **argv)
{
	if (argc != 2)
		usage_error("client takes the path of its socket");
	/* Whoever sees it can connect. */
	char path[sizeof((struct sockaddr_un *)0)->sun_path];
	snprintf(path, sizeof path, "%s.new", argv[1]);
	int listener = socket_at(path, bind);
	if (listen(listener, 1) < 0 || rename(path, argv[1]) < 0)
		usage_error("listen: %s", strerror(errno));
	for (;;) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			continue;
		serve(fd);
		close(fd);
	}
}
