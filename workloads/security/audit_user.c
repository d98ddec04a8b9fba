/* Records that a program writes itself, as login, sudo and cron do: a message of the type USER_CMD by
 * netlink, and the kernel's acknowledgement. With auditing off, or where a rule of the list `user` says
 * never, the kernel takes the message and makes no record of it. */
#include "workload.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* audit-records.h of libaudit; linux/audit.h has the first and last number alone. */
enum { USER_CMD = 1123 };

/* As sudo words it. */
static const char text[] =
	"cwd=\"/root\" cmd=2F62696E2F74727565 exe=\"/usr/bin/sudo\" terminal=? res=success";

static struct {
	struct nlmsghdr head;
	char text[sizeof text];
} message;
static int audit = -1;

static void prepare(void)
{
	audit = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_AUDIT);
	if (audit < 0)
		fail("cannot open a netlink socket of auditing: %s (is the kernel built without CONFIG_AUDIT?)",
		     strerror(errno));
	message.head = (struct nlmsghdr){.nlmsg_len = NLMSG_LENGTH(sizeof text),
					 .nlmsg_type = USER_CMD,
					 .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK};
	memcpy(message.text, text, sizeof text);
}

/* An acknowledgement is an error of number 0, with the head of what it answers. */
static int answer(void)
{
	struct {
		struct nlmsghdr head;
		struct nlmsgerr error;
		char rest[1024];
	} got;
	ssize_t length = recv(audit, &got, sizeof got, 0);

	if (length < 0)
		return errno;
	if (length < (ssize_t)NLMSG_LENGTH(sizeof got.error) || got.head.nlmsg_type != NLMSG_ERROR)
		fail("the kernel answered something else than an acknowledgement");
	if (got.error.msg.nlmsg_seq != message.head.nlmsg_seq)
		fail("the kernel acknowledged message %u, not %u", got.error.msg.nlmsg_seq, message.head.nlmsg_seq);
	return -got.error.error;
}

static void run(uint64_t n)
{
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};

	for (; n; n--) {
		message.head.nlmsg_seq++;
		ssize_t sent = sendto(audit, &message, message.head.nlmsg_len, 0, (struct sockaddr *)&kernel,
				      sizeof kernel);
		int error = sent == (ssize_t)message.head.nlmsg_len ? answer() : errno;
		if (error == EPERM)
			fail("may not write audit records: run it as root, with CAP_AUDIT_WRITE, outside of user "
			     "namespaces");
		if (error)
			fail("cannot write an audit record: %s", strerror(error));
	}
}

static void cleanup(void)
{
	if (audit >= 0)
		close(audit);
	audit = -1;
}

WORKLOAD(audit_user, .name = "audit-user",
	 .summary = "write an audit record as sudo does (USER_CMD), and wait for the kernel's acknowledgement",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 2, .source = "netlink(7), audit_log_user_message(3)",
	 .prepare = prepare, .run = run, .cleanup = cleanup);
