/* Wrong answers, counted by kind, of a workload that goes on after them: how many there were, and the first
 * of each kind. */
#include "driver.h"

#include <stdio.h>
#include <string.h>

static struct faults own;
static uint64_t began_ns;

void faults_are_timed_from(uint64_t ns)
{
	began_ns = ns;
}

void count_wrong(int kind, const char *what)
{
	uint64_t now = now_ns();

	if (own.counts[kind]++ == 0) {
		own.first_ns[kind] = began_ns && now > began_ns ? now - began_ns : 0;
		snprintf(own.examples[kind], sizeof own.examples[kind], "%s", what);
	}
	own.not_done++;
}

void leave_undone(uint64_t operations)
{
	own.not_done += operations;
}

uint64_t not_done(void)
{
	return own.not_done;
}

void refuse_wrong_answers(void)
{
	for (int kind = 0; kind < MOST_FAULTS; kind++)
		if (own.counts[kind])
			fail("%llu of its answers were wrong, one of them: %s", (unsigned long long)own.not_done,
			     own.examples[kind]);
}

void take_faults(struct faults *faults)
{
	*faults = own;
}

void add_faults(struct faults *total, const struct faults *one)
{
	for (int kind = 0; kind < MOST_FAULTS; kind++) {
		if (!one->counts[kind])
			continue;
		if (!total->counts[kind] || one->first_ns[kind] < total->first_ns[kind]) {
			total->first_ns[kind] = one->first_ns[kind];
			strcpy(total->examples[kind], one->examples[kind]);
		}
		total->counts[kind] += one->counts[kind];
	}
}

/* A server may have sent anything. */
static void print_text(const char *text)
{
	for (; *text; text++)
		if (*text == '"' || *text == '\\')
			printf("\\%c", *text);
		else if (*text == '\n')
			putchar(' ');
		else if ((unsigned char)*text >= ' ' && (unsigned char)*text < 127)
			putchar(*text);
		else
			putchar('?');
}

void print_faults(const struct workload *of, const struct faults *faults)
{
	const char *separator = ",\"wrong\":[";
	bool is_any = false;

	for (int kind = 0; of->faults && of->faults[kind]; kind++) {
		if (!faults->counts[kind])
			continue;
		printf("%s{\"kind\":\"%s\",\"count\":%llu,\"first_ns\":%llu,\"example\":\"", separator,
		       of->faults[kind], (unsigned long long)faults->counts[kind],
		       (unsigned long long)faults->first_ns[kind]);
		print_text(faults->examples[kind]);
		printf("\"}");
		separator = ",";
		is_any = true;
	}
	if (is_any)
		putchar(']');
}
