/* The FTP activity of BTU (Maly, Gupta and Mynam, 1996): a client that fetches a file again and again, and
 * writes it to the disk. The server is that of WEIGH_FTP (ADDRESS PORT), with WEIGH_NONCE as password, or
 * else one of our own on 127.0.0.1. */
#include "ftp.h"
#include "loopback.h"
#include "workload.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { SIZE = 1 << 20, PIECE = 64 * 1024 };

static FILE *control;
static struct sockaddr_storage server;
static socklen_t server_size;
static char piece[PIECE];

static void read_server(const char *text)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)&server;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&server;
	char address[INET6_ADDRSTRLEN];
	unsigned short port;

	if (sscanf(text, "%45s %hu", address, &port) != 2)
		fail("WEIGH_FTP is ADDRESS PORT, not `%s`", text);
	if (inet_pton(AF_INET, address, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET, v4->sin_port = htons(port);
		server_size = sizeof *v4;
	} else if (inet_pton(AF_INET6, address, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6, v6->sin6_port = htons(port);
		server_size = sizeof *v6;
	} else {
		fail("`%s` is not an address", address);
	}
}

static void start_server(void)
{
	pid_t own = getpid();
	int listener = listen_on_loopback((struct sockaddr_in *)&server);
	struct linger no_linger = {0};

	server_size = sizeof(struct sockaddr_in);
	/* What it has sent is to arrive. */
	setsockopt(listener, SOL_SOCKET, SO_LINGER, &no_linger, sizeof no_linger);
	pid_t child = fork();
	if (child < 0)
		fail("fork: %s", strerror(errno));
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != own)
			_exit(1);
		serve_ftp(listener);
	}
	close(listener);
}

static int connect_to(const struct sockaddr_storage *address)
{
	int fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)address, server_size) < 0)
		fail("cannot connect to the FTP server: %s", strerror(errno));
	return fd;
}

/* The reply, of which only the last line counts. */
static const char *expect(int code)
{
	static char line[512];

	do {
		if (!fgets(line, sizeof line, control))
			fail("the FTP server has closed the connection");
	} while (line[0] < '0' || line[0] > '9' || line[3] == '-');
	if (atoi(line) != code)
		fail("the FTP server said %.*s, not %d", (int)strcspn(line, "\r\n"), line, code);
	return line;
}

static const char *command(int code, const char *words)
{
	fprintf(control, "%s\r\n", words);
	fflush(control);
	return expect(code);
}

static void prepare(void)
{
	const char *given = getenv("WEIGH_FTP"), *password = getenv("WEIGH_NONCE");
	char words[100];

	enter_scratch_directory();
	if (given)
		read_server(given);
	else
		start_server();
	control = fdopen(connect_to(&server), "r+");
	if (!control)
		fail("fdopen: %s", strerror(errno));
	expect(220);
	command(331, "USER anonymous");
	snprintf(words, sizeof words, "PASS %s", password ? password : "weigh@example.invalid");
	command(230, words);
	command(200, "TYPE I");
}

static int open_data(void)
{
	struct sockaddr_storage address = server;
	unsigned short port;
	const char *answer = command(229, "EPSV"), *at = strchr(answer, '(');

	if (!at || sscanf(at, "(|||%hu|)", &port) != 1)
		fail("the FTP server named no port: %s", answer);
	/* At the same place in both kinds of address. */
	((struct sockaddr_in *)&address)->sin_port = htons(port);
	return connect_to(&address);
}

static void run(uint64_t n)
{
	while (n--) {
		int data = open_data(), file = open("fetched", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		long size = 0;
		ssize_t got;
		fprintf(control, "RETR payload-%d\r\n", SIZE);
		fflush(control);
		expect(150);
		while ((got = recv(data, piece, sizeof piece, 0)) > 0) {
			if (write(file, piece, got) != got)
				fail("cannot write what was fetched: %s", strerror(errno));
			size += got;
		}
		if (got < 0 || size != SIZE)
			fail("of %d bytes %ld came: %s", SIZE, size, got < 0 ? strerror(errno) : "no more");
		close(data);
		close(file);
		expect(226);
	}
}

static void check(uint64_t n)
{
	static char expected[PIECE];
	int file = open("fetched", O_RDONLY | O_CLOEXEC);

	(void)n;
	for (long offset = 0; offset < SIZE; offset += PIECE) {
		fill_ftp_payload(expected, PIECE, offset);
		if (pread(file, piece, PIECE, offset) != PIECE || memcmp(piece, expected, PIECE))
			fail("what was fetched differs from byte %ld on", offset);
	}
	close(file);
}

static void cleanup(void)
{
	fclose(control);
}

WORKLOAD(activity_ftp, .name = "activity-ftp", .summary = "a file of 1 MiB fetched by FTP, and written",
	 .unit = "KBps", .units_per_op = SIZE / 1024.0, .syscalls_per_op = 69,
	 .syscalls_note = "client and server; how many a file takes depends on how it arrives",
	 .source = "BTU, FTP activity (Maly 1996, 4.2); RFC 959", .prepare = prepare, .run = run, .check = check,
	 .cleanup = cleanup);
